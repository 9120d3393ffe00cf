package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/internal/lazycontext"
	"github.com/hookd/hookd/protocol"
)

// Plan is a call that is about to run. It is used once. The request must not change
// any more, also after the answer: a recorder may keep it.
type Plan struct {
	m      *HookManager
	gen    *Generation
	caller *Caller
	req    *protocol.Request
	// Call numbers the calls of a manager, from 1. Its [Record] bears the number too.
	Call uint64
	// Inline: Run will not wait for anything, so that it may run on the
	// goroutine that reads from the agent.
	Inline bool
}

// Plan looks at what a call will need.
func (m *HookManager) Plan(caller *Caller, req *protocol.Request) Plan {
	p := Plan{m: m, gen: m.current.Load(), caller: caller, req: req, Call: m.calls.Add(1), Inline: true}
	if w, ok := m.recorder.(interface{ Waits() bool }); ok && w.Waits() {
		p.Inline = false // for a disk
	}
	if p.gen.rules.Disabled {
		return p
	}
	agent := caller.agentName(req.Meta)
	asked := false
	for _, mb := range p.gen.byStage[req.Stage.Name] {
		if mb.Match.Matches(req.Tool(), req.Stage.Tool(), agent) {
			if x, ok := mb.If.(hook.Excluder); ok && x.Excludes(req) {
				continue
			}
			asked = true
			// A condition takes longer than the one who reads from the agent has.
			p.Inline = p.Inline && !mb.slow() && mb.If == nil
		}
	}
	// What a quick hook changes can bring in hooks that do not match yet, and
	// approvers come on top.
	if asked && anySlow(p.gen.byStage[req.Stage.Name]) ||
		(asked || req.Approve) && req.Stage.Name == protocol.StageBeforeTool && anySlow(p.gen.byStage[protocol.StageApproveTool]) {
		p.Inline = false
	}
	return p
}

// slow reports whether a call waits for the member.
func (mb *member) slow() bool { return !mb.Roles.Quick && mb.Mode != hook.Async }

func anySlow(list []*member) bool { return slices.ContainsFunc(list, (*member).slow) }

// Call plans and runs a call.
func (m *HookManager) Call(ctx context.Context, caller *Caller, req *protocol.Request) (*protocol.Result, error) {
	p := m.Plan(caller, req)
	return p.Run(ctx)
}

// Run takes the call through its hooks and returns the answer. The error is a
// [protocol.Error] when the request can't be served as it is, and the cause of
// ctx when the agent no longer wants it.
func (p *Plan) Run(ctx context.Context) (*protocol.Result, error) {
	m := p.m
	for !p.gen.acquire() { // swapped out and drained between Plan and Run
		p.gen = m.current.Load()
	}
	defer p.gen.release()
	if p.gen.closed {
		return nil, protocol.Errorf(protocol.CodeShuttingDown, "%v", ErrShuttingDown)
	}
	r := &run{
		m: m, gen: p.gen, call: p.Call, caller: p.caller, base: p.req, stage: p.req.Stage,
		subject: p.req.Subject, tool: p.req.Tool(), agent: p.caller.agentName(p.req.Meta), started: m.now(),
	}
	r.result.Generation = p.gen.Number
	chain, approval, err := r.deadlines()
	if err != nil {
		return nil, err
	}
	if p.gen.rules.Disabled {
		r.passDisabled()
	} else if r.stage.Name == protocol.StageApproveTool {
		r.approveStage(ctx, approval)
	} else {
		r.intercept(ctx, chain, approval)
	}
	return r.finish(ctx)
}

// run is one call on its way. It belongs to one goroutine.
type run struct {
	m      *HookManager
	gen    *Generation
	call   uint64
	caller *Caller
	base   *protocol.Request // as the agent sent it
	stage  *protocol.StageInfo
	agent  string

	meta    protocol.Object // filled at the first hook
	subject protocol.Object // as the hooks made it
	tool    string          // in subject; "" where there is none
	version int             // counts the changes of subject
	digest  string          // of the call with the subject at the end; "" = not computed
	state   protocol.Object
	turns   []seen
	started time.Time

	asked       bool   // an interceptor said ask
	why         asking // what the first of them said
	mustApprove bool   // a respond that may not pass by the approvers
	changer     string // the hook that changed subject last
	responder   string // the hook whose respond is used
	result      protocol.Result
	held        []held
	cancelled   error // why the agent no longer waits
	failures    []protocol.Step
}

// seen remembers what a member saw, for the recheck.
type seen struct {
	mb      *member
	matched bool
	version int // of the subject, after its turn
}

// held remembers what a member's condition said of a version of the subject.
type held struct {
	mb      *member
	version int
	ok      bool
}

// deadlines says how long the chain and the approvals may take. A deadline of
// the agent's caps both, less what the way back needs; that of the approvals
// counts from the start of the call. An agent waits as long as for an approval
// only when it has asked for one.
func (r *run) deadlines() (chain, approval clock, err *protocol.Error) {
	chain = clock{r.gen.rules.ChainTimeout, errChainDeadline}
	own, err := deadline("deadline_ms", r.base.DeadlineMS)
	answer := r.caller.Deadline
	if r.base.Approve || r.stage.Name == protocol.StageApproveTool {
		answer = r.caller.ApprovalDeadline
	}
	chain.cap(cmp.Or(own, r.caller.Deadline))
	approval.cap(cmp.Or(own, answer))
	return chain, approval, err
}

// clock is a time limit with the reason that holds when it runs out; a zero
// limit is none.
type clock struct {
	limit time.Duration
	cause error
}

func (c *clock) cap(deadline time.Duration) {
	if deadline == 0 {
		return
	}
	if d := deadline - deadlineMargin; c.limit == 0 || d < c.limit {
		c.limit, c.cause = d, errAgentDeadline
	}
}

func (c clock) start(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.limit == 0 {
		return context.WithCancel(ctx)
	}
	l := lazycontext.WithDeadline(ctx, time.Now().Add(c.limit), c.cause)
	return l, l.Release
}

func (r *run) passDisabled() {
	r.result.Warnings = append(r.result.Warnings, "hooks are disabled in the config: nothing was checked")
	if r.stage.Name == protocol.StageApproveTool || r.base.Approve && r.stage.Name == protocol.StageBeforeTool {
		r.result.Approval = &protocol.ApprovalResult{Approved: true, Reason: "hooks are disabled in the config", Digest: r.base.Digest()}
	}
}

// intercept runs the interceptors, and the approvers when they are due in the
// same call.
func (r *run) intercept(ctx context.Context, limit, approval clock) {
	// Where no hook matches, none changes what others could match.
	if members := r.gen.byStage[r.stage.Name]; slices.ContainsFunc(members, r.matches) {
		r.runChain(ctx, limit, members)
	}
	if r.stage.Name != protocol.StageBeforeTool || r.stopped() {
		return
	}
	digest := r.finalRequest().Digest()
	r.digest = digest
	if !r.base.DryRun {
		r.caller.asked.remember(digest, r.asked, r.why, r.m.now())
	}
	if r.base.Approve || r.mustApprove || (r.asked && r.result.Respond != nil) {
		r.approveCall(ctx, approval, digest)
	}
}

// runChain gives the interceptors their turns and guards their second look.
func (r *run) runChain(ctx context.Context, limit clock, members []*member) {
	ctx, cancel := limit.start(ctx)
	defer cancel()
	for i, mb := range members {
		if r.takeTurn(ctx, mb) {
			r.skipRest(members[i+1:])
			break
		}
	}
	if !r.stopped() {
		r.recheck(ctx)
	}
	r.settleSubject()
}

// takeTurn asks one member if it is meant, and reports whether the chain ends.
func (r *run) takeTurn(ctx context.Context, mb *member) (stop bool) {
	t := seen{mb: mb, matched: r.matches(mb), version: r.version}
	if !t.matched {
		r.turns = append(r.turns, t)
		return false
	}
	if mb.Mode == hook.Async {
		r.askLater(mb, r.stage)
		return false // no verdict, so no second look
	}
	d, step := r.ask(ctx, mb)
	stop = r.apply(mb, &d, &step)
	r.result.Trail = append(append(r.result.Trail, step), d.Steps...)
	mb.unit.stats.turn(&step)
	t.version = r.version
	r.turns = append(r.turns, t)
	return stop
}

func (r *run) matches(mb *member) bool {
	return mb.Match.Matches(r.tool, r.stage.Tool(), r.agent) && (mb.If == nil || r.holds(mb))
}

// holds asks a member's condition about the subject as it is now, once.
func (r *run) holds(mb *member) bool {
	for _, h := range r.held {
		if h.mb == mb && h.version == r.version {
			return h.ok
		}
	}
	if r.meta == nil {
		r.meta = r.caller.fillMeta(r.base.Meta, r.gen.number)
		r.state = r.base.State
	}
	req := *r.finalRequest()
	req.Meta = r.meta
	ok := condition(mb.If, &req)
	r.held = append(r.held, held{mb, r.version, ok})
	return ok
}

// condition asks a condition. One that can't be judged holds.
func condition(c hook.Condition, req *protocol.Request) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = true
		}
	}()
	return c.Holds(req)
}

// finalRequest is the request with the subject as it is now.
func (r *run) finalRequest() *protocol.Request {
	if r.version == 0 {
		return r.base
	}
	req := *r.base
	req.Subject = r.subject
	return &req
}

// requestFor is what a member is shown: the current subject and state, meta
// with what hookd knows, and nothing that was for hookd alone.
func (r *run) requestFor(mb *member, stage *protocol.StageInfo) *protocol.Request {
	if r.meta == nil {
		r.meta = r.caller.fillMeta(r.base.Meta, r.gen.number)
		r.state = r.base.State
	}
	req := *r.base
	req.Stage = stage
	req.Meta, req.Subject, req.State = r.meta, r.subject, r.state
	req.Timeout = mb.StageTimeout(stage.Name)
	req.Approve, req.Asked, req.Trail, req.DeadlineMS = false, nil, false, 0
	return &req
}

// ask gets a member's decision. What went wrong stands in the step.
func (r *run) ask(ctx context.Context, mb *member) (protocol.Decision, protocol.Step) {
	req := r.requestFor(mb, r.stage)
	a, step := r.turn(ctx, mb, req)
	if step.Outcome != "" {
		return protocol.Decision{}, step
	}
	step.Action = a.decision.Decided()
	step.Outcome = protocol.Outcome(step.Action)
	step.Detail = a.decision.Reason // the answer keeps only the deciding one
	return a.decision, step
}

// turn calls a member once. The step has an outcome only when it failed.
func (r *run) turn(ctx context.Context, mb *member, req *protocol.Request) (answer, protocol.Step) {
	stats := mb.unit.stats
	stats.inFlight.Add(1)
	start := r.m.now()
	a, err := answer{}, context.Cause(ctx) // a deadline that has passed asks nobody any more
	if err == nil {
		a, err = mb.invoke(ctx, req)
	}
	step := protocol.Step{Hook: mb.Name, Duration: r.m.now().Sub(start)}
	stats.inFlight.Add(-1)
	if err != nil {
		r.fail(ctx, mb, &step, err, req.Timeout)
	}
	return a, step
}

// fail names what went wrong in a turn.
func (r *run) fail(ctx context.Context, mb *member, step *protocol.Step, err error, timeout time.Duration) {
	step.Outcome, step.Detail = outcomeOf(ctx, err, timeout)
	if step.Outcome == protocol.OutcomeCancelled {
		r.cancelled = context.Cause(ctx)
		return
	}
	var stack []zap.Field
	if p, ok := errors.AsType[*panicError](err); ok {
		stack = append(stack, zap.ByteString("stack", p.stack))
	}
	r.noteFailure(mb, step, stack...)
	if f, ok := errors.AsType[*hook.Failure](err); ok && f.Warning != "" {
		r.warn(mb, "%s", f.Warning)
	}
}

// noteFailure tells the counters, the log and, after the answer, the observers.
func (r *run) noteFailure(mb *member, step *protocol.Step, more ...zap.Field) {
	r.m.countFailure(mb, r.stage, step, more...)
	r.failures = append(r.failures, *step)
}

func (m *HookManager) countFailure(mb *member, stage *protocol.StageInfo, step *protocol.Step, more ...zap.Field) {
	mb.unit.stats.failed(string(step.Outcome)+colon(step.Detail), m.now())
	m.log.Warn("hook failed", append(more,
		zap.String("hook", mb.Name), zap.String("stage", string(stage.Name)),
		zap.String("outcome", string(step.Outcome)), zap.String("detail", step.Detail))...)
}

// apply lets a decision act by the rules of the stage and of the member's mode,
// and reports whether the chain ends.
func (r *run) apply(mb *member, d *protocol.Decision, step *protocol.Step) (stop bool) {
	switch {
	case step.Outcome == protocol.OutcomeCancelled:
		return true
	case mb.Mode == hook.Shadow:
		hideOutcome(step)
		return false
	case step.Outcome.Failed():
		return r.applyFailure(mb, step)
	}
	verb := step.Action
	if !r.stage.Allows(verb) {
		verb = protocol.ActionContinue
	}
	if !verb.Stops() {
		if err := r.change(mb, d, step); err != nil {
			step.Outcome, step.Detail = protocol.OutcomeBadAnswer, err.Error()
			r.noteFailure(mb, step)
			return r.applyFailure(mb, step)
		}
	}
	if verb != step.Action {
		r.ignoreVerb(mb, step)
	}
	if mb.Mode == hook.Warn && (verb.Stops() || verb == protocol.ActionAsk) {
		r.warn(mb, "would have said %s%s (mode warn)", verb, colon(d.Reason))
		verb = protocol.ActionContinue
	}
	for _, w := range d.Warnings {
		r.warn(mb, "%s", w)
	}
	r.result.AddContext = append(r.result.AddContext, d.AddContext...)
	if d.State != nil {
		r.state = mergeState(r.state, d.State, r.gen.strategies)
		r.result.State = r.state
	}
	if d.JumpTo != "" {
		r.result.JumpTo = d.JumpTo
	}
	return r.applyVerb(mb, d, verb, step)
}

// ignoreVerb says aloud that a verb has no meaning at this stage.
func (r *run) ignoreVerb(mb *member, step *protocol.Step) {
	r.warn(mb, "%s is not possible at %s and was ignored", step.Action, r.stage.Name)
	step.Outcome, step.Detail = protocol.OutcomeContinue, "not possible at this stage, ignored"
}

// hideOutcome makes a step that of a shadow, and keeps what went wrong.
func hideOutcome(step *protocol.Step) {
	if step.Outcome.Failed() {
		step.Detail = string(step.Outcome) + colon(step.Detail)
	}
	step.Outcome = protocol.OutcomeShadow
}

// change merges what a decision changes into the subject.
func (r *run) change(mb *member, d *protocol.Decision, step *protocol.Step) error {
	var err error
	next := r.subject
	switch {
	case d.Patch != nil:
		next, step.Changed, err = applyPatch(r.stage, r.subject, d.Patch)
	case d.Subject != nil:
		next, step.Changed, err = r.stage.Apply(r.subject, d.Subject)
	}
	if err != nil || len(step.Changed) == 0 {
		return err
	}
	r.subject, r.changer = next, mb.Name
	r.version++
	r.tool = r.finalRequest().Tool()
	r.raise(protocol.ActionModify, mb, d.Reason)
	return nil
}

func (r *run) applyVerb(mb *member, d *protocol.Decision, verb protocol.Action, step *protocol.Step) (stop bool) {
	switch verb {
	case protocol.ActionContinue, protocol.ActionModify:
		return false // what changed has been applied
	case protocol.ActionRespond:
		if r.result.Respond != nil {
			r.warn(mb, "its respond was not used: another hook has responded already")
			return false
		}
		r.result.Respond, r.responder = d.Respond, mb.Name
		r.mustApprove = r.mustApprove || !mb.MayRespond
	case protocol.ActionAsk:
		if !r.asked {
			r.why = asking{d.Reason, mb.Name}
		}
		r.asked = true
		if r.result.Permission == "" {
			r.result.Permission = d.Permission
		}
	case protocol.ActionInject:
		if !r.base.DryRun && !r.repeats().allow(r.caller.session(r.base.Meta), mb.Name, mb.MaxRepeats) {
			step.Outcome = protocol.OutcomeLimitReached
			r.warn(mb, "has injected as often as it may in this session (max_repeats)")
			return false
		}
		r.result.Inject = append(r.result.Inject, d.Inject...)
	}
	r.raise(verb, mb, d.Reason)
	return verb.Stops()
}

// repeats is where injects are counted: with the session, or with the
// connection when the agent names none.
func (r *run) repeats() *repeats {
	if r.caller.session(r.base.Meta) == "" {
		return &r.caller.repeats
	}
	return &r.m.repeats
}

// raise makes verb the answer when it outranks what is there.
func (r *run) raise(verb protocol.Action, mb *member, reason string) {
	if verb.Rank() > r.result.Action.Rank() || (verb == protocol.ActionModify && r.result.Action == protocol.ActionModify) {
		r.result.Action, r.result.Reason, r.result.DecidedBy = verb, reason, mb.Name
	}
}

// applyFailure decides what a turn without a readable answer means.
func (r *run) applyFailure(mb *member, step *protocol.Step) (stop bool) {
	denies := (step.Outcome.AlwaysDenies() || mb.Denies()) && mb.Mode != hook.Warn
	if denies && r.stage.OnFailure != protocol.ActionContinue {
		r.raise(r.stage.OnFailure, mb, failureReason(mb, step))
		return true
	}
	r.passOver(step)
	return false
}

// passOver names a hook that failed although the call goes on.
func (r *run) passOver(step *protocol.Step) {
	r.result.Degraded = append(r.result.Degraded, protocol.Degraded{Hook: step.Hook, Outcome: step.Outcome, Detail: step.Detail})
}

// failureReason tells the agent, and through it the model and the user, why
// nothing goes on.
func failureReason(mb *member, step *protocol.Step) string {
	why := "its answer can't be trusted"
	switch {
	case step.Outcome.NoAnswer() && mb.Required:
		why = "it is required"
	case step.Outcome.NoAnswer():
		why = "its fail_policy is deny"
	case step.Outcome == protocol.OutcomeOverloaded || step.Outcome == protocol.OutcomeChainDeadline:
		why = "it could not be asked in time"
	}
	return fmt.Sprintf("hook %q gave no verdict, and %s (%s%s)", mb.Name, why, step.Outcome, colon(step.Detail))
}

func colon(s string) string {
	if s == "" {
		return ""
	}
	return ": " + s
}

func (r *run) warn(mb *member, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.result.Warnings = append(r.result.Warnings, mb.Name+": "+text)
	r.m.log.Warn("hook warns", zap.String("hook", mb.Name), zap.String("stage", string(r.stage.Name)), zap.String("warning", text))
}

func (r *run) stopped() bool { return r.result.Action.Stops() || r.cancelled != nil }

// skipRest notes the members that the end of the chain leaves unasked.
func (r *run) skipRest(rest []*member) {
	for _, mb := range rest {
		if r.matches(mb) {
			step := protocol.Step{Hook: mb.Name, Outcome: protocol.OutcomeNotRun}
			r.result.Trail = append(r.result.Trail, step)
			mb.unit.stats.turn(&step)
		}
	}
}

// askLater hands the call to a hook in mode async and does not wait.
func (r *run) askLater(mb *member, stage *protocol.StageInfo) {
	step := protocol.Step{Hook: mb.Name, Outcome: protocol.OutcomeAsync}
	req := r.requestFor(mb, stage)
	queued := mb.unit.later(func() {
		ctx, cancel := context.WithTimeoutCause(context.Background(), req.Timeout, errHookTimeout)
		defer cancel()
		if _, err := mb.invoke(ctx, req); err != nil {
			failed := protocol.Step{Hook: mb.Name}
			failed.Outcome, failed.Detail = outcomeOf(ctx, err, req.Timeout)
			r.m.countFailure(mb, stage, &failed)
		}
	})
	if !queued {
		step.Detail = "its queue is full, the call was dropped"
		mb.unit.stats.missed.Add(1)
	}
	r.result.Trail = append(r.result.Trail, step)
	mb.unit.stats.turn(&step)
}

// recheck asks guards once more when the final subject is not the one they
// saw. Only their deny, ask and abort count: nothing changes any more.
func (r *run) recheck(ctx context.Context) {
	for i, t := range r.turns {
		// A guard that has seen the subject sees it again, also when its match no
		// longer means what it became: a rewriter can't lead it past a guard.
		if t.version == r.version || !t.mb.rechecks() || !t.matched && !r.matches(t.mb) {
			continue
		}
		d, step := r.ask(ctx, t.mb)
		step.Recheck = true
		stop := r.applyRecheck(t.mb, &d, &step)
		r.result.Trail = append(append(r.result.Trail, step), d.Steps...)
		t.mb.unit.stats.turn(&step)
		if stop {
			for _, rest := range r.turns[i+1:] {
				if !rest.matched && rest.mb.rechecks() {
					r.skipRest([]*member{rest.mb})
				}
			}
			return
		}
	}
}

func (r *run) applyRecheck(mb *member, d *protocol.Decision, step *protocol.Step) (stop bool) {
	verb := step.Action
	switch {
	case step.Outcome == protocol.OutcomeCancelled:
		return true
	case step.Outcome.Failed():
		return r.applyFailure(mb, step)
	case !r.stage.Allows(verb):
		r.ignoreVerb(mb, step)
		return false
	case verb != protocol.ActionAsk && !verb.Stops():
		return false
	case mb.Mode == hook.Warn:
		r.warn(mb, "would have said %s%s (mode warn)", verb, colon(d.Reason))
		return false
	}
	return r.applyVerb(mb, d, verb, step)
}

// settleSubject puts the merged subject into the answer, when its meaning is
// another than the agent's.
func (r *run) settleSubject() {
	if r.version == 0 {
		return
	}
	changed := false
	for _, m := range r.subject {
		if !protocol.SameValue(r.base.Subject.Get(m.Name), m.Value) {
			changed = true
		}
	}
	if changed || len(r.subject) != len(r.base.Subject) {
		r.result.Subject = r.stage.SubjectValue(r.subject)
		return
	}
	// Changed and changed back: the agent's own bytes stand.
	r.subject, r.version = r.base.Subject, 0
	if r.result.Action == protocol.ActionModify {
		r.result.Action, r.result.Reason, r.result.DecidedBy = "", "", ""
	}
}

// finish shows the answer to the recorder and to observers.
func (r *run) finish(ctx context.Context) (*protocol.Result, error) {
	res := &r.result
	if r.cancelled == nil && ctx.Err() != nil { // no hook has noticed
		r.cancelled = context.Cause(ctx)
	}
	if r.cancelled != nil {
		res.Action, res.Reason, res.DecidedBy = r.denial(), r.cancelled.Error(), ""
		if res.Approval != nil {
			res.Approval.Approved, res.Approval.Reason = false, res.Reason
		}
		ctx = context.WithoutCancel(ctx) // the record is wanted all the same
	}
	r.trim()
	took := r.m.now().Sub(r.started)
	if r.m.recorder != nil {
		rec := &Record{Call: r.call, Caller: r.caller, Request: r.base, Final: r.subject, Digest: r.digest, Result: res, Started: r.started, Duration: took, Err: r.cancelled}
		if err := r.m.recorder.Record(ctx, rec); err != nil && r.cancelled == nil {
			r.denyUnrecorded(err)
		}
	}
	r.publish(took)
	return res, r.cancelled
}

// trim takes out of the answer what does not go with its verb.
func (r *run) trim() {
	res := &r.result
	if res.Action != protocol.ActionAsk {
		res.Permission = ""
	}
	if res.Action.Stops() {
		res.Subject, res.Respond, res.Inject = nil, nil, nil
	}
}

// denial is the strongest "no" that the stage knows.
func (r *run) denial() protocol.Action {
	if r.stage.OnFailure == protocol.ActionContinue {
		return protocol.ActionAbortTurn
	}
	return r.stage.OnFailure
}

// denyUnrecorded turns the answer into a no, because what can't be proved must
// not happen.
func (r *run) denyUnrecorded(err error) {
	res := &r.result
	r.m.log.Error("decision not recorded", zap.String("stage", string(r.stage.Name)), zap.Error(err))
	reason := "the decision could not be recorded" + colon(err.Error())
	if res.Approval != nil {
		res.Approval.Approved, res.Approval.Reason = false, reason
	}
	if r.stage.Name == protocol.StageApproveTool {
		return
	}
	if !res.Action.Stops() {
		res.Action, res.Reason, res.DecidedBy = r.denial(), reason, ""
		r.trim()
	}
}
