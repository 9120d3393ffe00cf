package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

const reasonNobody = "nobody can be asked"

// approveStage answers a separate approve_tool call.
func (r *run) approveStage(ctx context.Context, limit clock) {
	digest := r.base.Digest()
	asked, why, known := r.caller.asked.lookup(digest, r.m.now())
	if !known {
		// Not seen, or forgotten: it counts as asked, unless the agent says no.
		asked = r.base.Asked == nil || *r.base.Asked
	} else if r.base.Asked != nil {
		asked = asked || *r.base.Asked
	}
	r.asked, r.why = asked, why
	r.result.Approval = r.approve(ctx, limit, digest)
	if !r.result.Approval.Approved {
		r.result.Reason = r.result.Approval.Reason
	}
}

// approveCall asks the approvers within a before_tool call, on the final call,
// and turns the answer into the call's verdict.
func (r *run) approveCall(ctx context.Context, limit clock, digest string) {
	res := &r.result
	decidedBy := res.DecidedBy
	res.DecidedBy = "" // an approver's name, when it is a no
	res.Approval = r.approve(ctx, limit, digest)
	if r.cancelled != nil {
		return
	}
	if !res.Approval.Approved {
		res.Action, res.Reason = protocol.ActionDeny, res.Approval.Reason
		return
	}
	if res.Action != protocol.ActionAsk {
		res.DecidedBy = decidedBy
		return
	}
	// The question has been answered: what is left is the call itself.
	switch {
	case res.Respond != nil:
		res.Action, res.DecidedBy = protocol.ActionRespond, r.responder
	case res.Subject != nil:
		res.Action, res.DecidedBy = protocol.ActionModify, r.changer
	default:
		res.Action = protocol.ActionContinue
	}
	res.Reason = res.Approval.Reason
}

// approve asks the approvers that are due. agent is how long the agent waits.
func (r *run) approve(ctx context.Context, agent clock, digest string) *protocol.ApprovalResult {
	var due []*member
	there := false // an approver whose word counts, and who had one
	limit := clock{cause: errHookTimeout}
	for _, mb := range r.gen.byStage[protocol.StageApproveTool] {
		if r.matches(mb) && (mb.When != hook.IfAsked || r.asked || r.mustApprove) {
			due = append(due, mb)
			limit.limit = max(limit.limit, mb.ApprovalTimeout)
		}
	}
	res := &protocol.ApprovalResult{Digest: digest, Approved: true}
	if len(due) > 0 {
		if agent.limit != 0 {
			left := max(agent.limit-r.m.now().Sub(r.started), 1)
			if left < limit.limit {
				limit = clock{left, agent.cause}
			}
		}
		there = r.askApprovers(ctx, limit, due, res)
	}
	if res.Approved && !there && (r.asked || !r.gen.rules.ApproveUnasked) {
		res.Approved, res.Reason = false, reasonNobody
	}
	if res.Approved && there && r.m.approvals.Err() != nil {
		res.Approved, res.Reason, res.By = false, context.Cause(r.m.approvals).Error(), ""
	}
	return res
}

// askApprovers asks one after another; the first no ends it. No readable yes
// is a no. It reports whether anybody whose word counts had one.
func (r *run) askApprovers(ctx context.Context, limit clock, due []*member, res *protocol.ApprovalResult) (there bool) {
	stage := r.m.stages.Stage(protocol.StageApproveTool)
	ctx, stop := r.untilShutdown(ctx)
	defer stop()
	ctx, cancel := limit.start(ctx)
	defer cancel()
	for i, mb := range due {
		if mb.Mode == hook.Async {
			r.askLater(mb, stage)
			continue
		}
		a, step := r.askApprover(ctx, mb, stage)
		abstained := step.Outcome == protocol.OutcomeContinue
		no, reason := !a.Approved && !abstained, r.refusal(ctx, mb, &step, a, limit)
		there = there || mb.counts() && !abstained
		switch {
		case abstained:
		case mb.Mode == hook.Shadow:
			hideOutcome(&step)
			no = false
		case mb.Mode == hook.Warn && no && step.Outcome != protocol.OutcomeCancelled:
			r.warn(mb, "would have refused (mode warn): %s", reason)
			if step.Outcome.Failed() {
				r.passOver(&step)
			}
			no = false
		case !no:
			res.Reason, res.By = a.Reason, cmp.Or(a.By, mb.Name)
		}
		r.result.Trail = append(append(r.result.Trail, step), a.Steps...)
		mb.unit.stats.turn(&step)
		if no {
			res.Approved, res.Reason, res.By = false, reason, a.By
			if step.Outcome != protocol.OutcomeCancelled {
				r.result.DecidedBy = mb.Name
			}
			r.skipRestOf(due[i+1:])
			return there
		}
	}
	return there
}

// untilShutdown ends ctx also when all approvals must become a no.
func (r *run) untilShutdown(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	if err := context.Cause(r.m.approvals); err != nil {
		cancel(err) // now, so that nobody is asked any more
	}
	unhook := context.AfterFunc(r.m.approvals, func() { cancel(context.Cause(r.m.approvals)) })
	return ctx, func() { unhook(); cancel(nil) }
}

func (r *run) askApprover(ctx context.Context, mb *member, stage *protocol.StageInfo) (protocol.Approval, protocol.Step) {
	req := r.requestFor(mb, stage)
	if r.stage.Name != stage.Name {
		req.Subject = approvalSubject(req.Subject, stage)
	}
	req.Extra = r.why.in(req.Extra)
	a, step := r.turn(ctx, mb, req)
	switch {
	case step.Outcome != "":
		if r.m.approvals.Err() != nil && errors.Is(context.Cause(ctx), context.Cause(r.m.approvals)) {
			r.cancelled = nil // the agent is still there and waits for its no
		}
		return protocol.Approval{}, step
	case a.approval.Abstained:
		step.Outcome, step.Action = protocol.OutcomeContinue, protocol.ActionContinue
	case a.approval.Approved:
		step.Outcome, step.Action = protocol.OutcomeAllow, protocol.ActionAllow
	default:
		step.Outcome, step.Action = protocol.OutcomeDeny, protocol.ActionDeny
	}
	return a.approval, step
}

// in tells an approver why it is asked, and lets no agent tell that.
func (a asking) in(extra protocol.Object) protocol.Object {
	if a == (asking{}) && extra.Get("ask") == nil {
		return extra
	}
	out := slices.DeleteFunc(slices.Clone(extra), func(m protocol.Member) bool { return m.Name == "ask" })
	if a == (asking{}) {
		return out
	}
	return append(out, protocol.Member{Name: "ask", Value: protocol.Object{
		{Name: "reason", Value: protocol.Quote(a.reason)}, {Name: "by", Value: protocol.Quote(a.by)},
	}.AppendJSON(nil)})
}

// approvalSubject leaves of a before_tool call what an approver judges.
func approvalSubject(subject protocol.Object, stage *protocol.StageInfo) protocol.Object {
	out := make(protocol.Object, 0, len(stage.Subject))
	for _, name := range stage.Subject {
		if v := subject.Get(name); v != nil {
			out = append(out, protocol.Member{Name: name, Value: v})
		}
	}
	return out
}

// refusal is the reason of a no, for the model and the user.
func (r *run) refusal(ctx context.Context, mb *member, step *protocol.Step, a protocol.Approval, limit clock) string {
	switch step.Outcome {
	case protocol.OutcomeAllow, protocol.OutcomeContinue:
		return ""
	case protocol.OutcomeDeny:
		return fmt.Sprintf("denied by %s%s", mb.Name, colon(a.Reason))
	case protocol.OutcomeCancelled:
		return context.Cause(ctx).Error()
	case protocol.OutcomeTimeout:
		if ctx.Err() == nil {
			return fmt.Sprintf("approval timed out (%s)", seconds(mb.ApprovalTimeout))
		}
		fallthrough
	case protocol.OutcomeChainDeadline:
		return fmt.Sprintf("approval timed out (%s)", seconds(limit.limit))
	}
	return fmt.Sprintf("denied by %s: %s%s", mb.Name, step.Outcome, colon(step.Detail))
}

// seconds writes a duration as people say it: "60 s", "0.5 s".
func seconds(d time.Duration) string {
	return fmt.Sprintf("%g s", d.Round(10*time.Millisecond).Seconds())
}

// skipRestOf notes approvers that a no leaves unasked.
func (r *run) skipRestOf(rest []*member) {
	for _, mb := range rest {
		step := protocol.Step{Hook: mb.Name, Outcome: protocol.OutcomeNotRun}
		r.result.Trail = append(r.result.Trail, step)
		mb.unit.stats.turn(&step)
	}
}
