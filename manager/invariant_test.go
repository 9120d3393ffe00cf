package manager

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// checked is a call that has been answered, with all that is needed to judge
// whether hookd kept its promises.
type checked struct {
	hooks  []checkedHook
	rules  Rules
	caller *Caller
	req    *protocol.Request
	res    *protocol.Result
	err    error
	final  protocol.Object
	// unrecorded: the recorder failed, so the answer is a no that no hook gave.
	unrecorded bool
}

type checkedHook struct {
	*hook.Registration
	asks []ask // during this call
}

// check holds what must be true after every call, whatever its hooks did.
func (c *checked) check(t *testing.T) {
	t.Helper()
	c.checkAnswer(t)
	if c.rules.Disabled {
		require.Empty(t, c.res.Trail)
		return
	}
	c.checkTrail(t)
	c.checkFailures(t)
	if c.passed() {
		c.checkGuards(t)
	}
}

func (c *checked) approveStage() bool { return c.req.Stage.Name == protocol.StageApproveTool }

// passed reports whether the agent may go on.
func (c *checked) passed() bool {
	if c.err != nil || c.res.Action.Stops() {
		return false
	}
	return !c.approveStage() || c.res.Approval.Approved
}

// checkAnswer: an agent can read it, and it says nothing beside its verdict.
func (c *checked) checkAnswer(t *testing.T) {
	t.Helper()
	stage := c.req.Stage
	wire := c.res.AppendJSON(nil, stage, true)
	back, err := protocol.DecodeResult(stage, wire)
	require.NoError(t, err, "%s", wire)
	if !c.approveStage() {
		require.Equal(t, c.res.Action.Stops(), back.Action.Stops())
	}
	require.True(t, c.res.Action == "" || stage.Allows(c.res.Action) || c.approveStage(), "%s at %s", c.res.Action, stage.Name)
	if !c.passed() {
		require.Nil(t, c.res.Subject, "a no carries no call")
		require.Nil(t, c.res.Respond, "a no carries no response")
		require.Empty(t, c.res.Inject, "a no carries no message")
		require.False(t, c.res.Approval != nil && c.res.Approval.Approved, "a no is no approval")
	}
	if c.res.Action != protocol.ActionAsk {
		require.Empty(t, c.res.Permission)
	}
	require.Equal(t, c.res.Action == protocol.ActionRespond, c.res.Respond != nil)
	changed := !protocol.SameValue(c.req.Subject.AppendJSON(nil), c.final.AppendJSON(nil))
	require.Equal(t, changed && c.passed(), c.res.Subject != nil, "the subject is there exactly when it changed")
	if c.res.Subject != nil {
		require.True(t, protocol.SameValue(stage.SubjectValue(c.final), c.res.Subject))
		require.NoError(t, protocol.CheckValue(c.res.Subject, 0))
	}
	if !changed {
		require.Equal(t, string(c.req.Subject.AppendJSON(nil)), string(c.final.AppendJSON(nil)), "an unchanged subject keeps its bytes")
	}
}

// ordered is the hooks as they must be asked.
func (c *checked) ordered(stage protocol.Stage) []checkedHook {
	var list []checkedHook
	for _, h := range c.hooks {
		if h.Handles(stage) {
			list = append(list, h)
		}
	}
	slices.SortFunc(list, func(a, b checkedHook) int {
		switch {
		case a.Source == hook.InProcess && b.Source != hook.InProcess:
			return -1
		case a.Source != hook.InProcess && b.Source == hook.InProcess:
			return 1
		case a.Layer != b.Layer:
			return int(a.Layer - b.Layer)
		case a.Priority != b.Priority:
			return a.Priority - b.Priority
		case a.Name < b.Name:
			return -1
		}
		return 1
	})
	return list
}

func (c *checked) agentName() string {
	if c.caller.Name != "" {
		return c.caller.Name
	}
	return c.req.MetaString("agent")
}

func (c *checked) finalTool() string {
	return (&protocol.Request{Subject: c.final, Fixed: c.req.Fixed}).Tool()
}

// checkTrail: every matched hook left one step, in order, with an outcome of
// the closed list; not_run only under a no; whoever answered was asked.
func (c *checked) checkTrail(t *testing.T) {
	t.Helper()
	var turns, guards, approvers []protocol.Step
	inApproval := c.approveStage()
	interceptors := c.ordered(c.req.Stage.Name)
	for i, st := range c.res.Trail {
		require.Contains(t, protocol.Outcomes(), st.Outcome)
		if st.Outcome == protocol.OutcomeNotRun {
			require.False(t, c.passed() && !c.unrecorded, "not_run under a yes")
		}
		switch {
		case st.Recheck:
			guards = append(guards, st)
		case inApproval || len(guards) > 0 || c.res.Approval != nil && c.isApproverTurn(i):
			inApproval = true
			approvers = append(approvers, st)
		default:
			turns = append(turns, st)
		}
	}
	if !c.approveStage() {
		// Guards that only the final subject would have concerned follow the
		// second looks that a no cut short.
		for len(approvers) > 0 && c.res.Approval == nil {
			require.Equal(t, protocol.OutcomeNotRun, approvers[0].Outcome)
			approvers = approvers[1:]
		}
		require.Equal(t, c.matched(interceptors), names(turns), "matched hooks and first turns")
	}
	if c.res.Approval != nil {
		c.checkApprovers(t, approvers)
	}
	for _, h := range c.hooks {
		answered := 0
		for _, st := range c.res.Trail {
			if st.Hook == h.Name && h.Mode != hook.Async && answerOutcome(st.Outcome) {
				answered++
			}
		}
		require.GreaterOrEqual(t, len(h.asks), answered, "%s answered without being asked", h.Name)
	}
}

// isApproverTurn reports whether step i belongs to the approvals: every
// interceptor that matched has had its turn before it.
func (c *checked) isApproverTurn(i int) bool {
	return i >= len(c.matched(c.ordered(c.req.Stage.Name)))
}

// matched names the interceptors whose match fitted the call at their turn.
func (c *checked) matched(list []checkedHook) []string {
	out := []string{}
	tool, subject := c.req.Tool(), c.req.Subject
	for i, h := range list {
		if !h.Match.Matches(tool, c.req.Stage.Tool(), c.agentName()) || !holdsFor(h, subject) {
			continue
		}
		out = append(out, h.Name)
		for _, st := range c.res.Trail {
			if st.Hook == h.Name && slices.Contains(st.Changed, "tool") {
				tool = h.asks[0].renamed
			}
			if st.Hook == h.Name && !st.Recheck && len(st.Changed) > 0 {
				subject = c.seenAfter(list[i+1:])
			}
		}
	}
	return out
}

// seenAfter is the subject that the next hook saw, or the final one.
func (c *checked) seenAfter(rest []checkedHook) protocol.Object {
	for _, h := range rest {
		if len(h.asks) > 0 {
			return h.asks[0].subject
		}
	}
	return c.final
}

func holdsFor(h checkedHook, subject protocol.Object) bool {
	return h.If == nil || condition(h.If, &protocol.Request{Subject: subject})
}

func (c *checked) checkApprovers(t *testing.T, steps []protocol.Step) {
	t.Helper()
	var always, all []string
	for _, h := range c.ordered(protocol.StageApproveTool) {
		if h.Match.Matches(c.finalTool(), true, c.agentName()) && holdsFor(h, c.final) {
			all = append(all, h.Name)
			if h.When != hook.IfAsked {
				always = append(always, h.Name)
			}
		}
	}
	got := names(steps)
	require.Truef(t, slices.Equal(got, always) || slices.Equal(got, all), "approvers: %v, want %v or %v", got, always, all)
	if !c.res.Approval.Approved {
		return
	}
	// Not one whose word counts may have said anything but a readable yes.
	for _, st := range steps {
		if m := c.hook(t, st.Hook).Mode; m == "" || m == hook.Enforce {
			require.Equal(t, protocol.OutcomeAllow, st.Outcome, "%s did not say yes", st.Hook)
		}
	}
}

func names(steps []protocol.Step) []string {
	out := []string{}
	for _, st := range steps {
		out = append(out, st.Hook)
	}
	return out
}

func answerOutcome(o protocol.Outcome) bool {
	switch o {
	case protocol.OutcomeContinue, protocol.OutcomeAllow, protocol.OutcomeModify, protocol.OutcomeRespond, protocol.OutcomeAsk,
		protocol.OutcomeDeny, protocol.OutcomeInject, protocol.OutcomeAbortTurn, protocol.OutcomeHardAbort, protocol.OutcomeLimitReached:
		return true
	}
	return false
}

func (c *checked) hook(t *testing.T, name string) checkedHook {
	t.Helper()
	i := slices.IndexFunc(c.hooks, func(h checkedHook) bool { return h.Name == name })
	require.GreaterOrEqual(t, i, 0, "a step of an unknown hook %q", name)
	return c.hooks[i]
}

func (c *checked) canDeny() bool { return c.req.Stage.OnFailure != protocol.ActionContinue }

// checkFailures: a failure either made the answer a no, or is named in
// degraded; and nothing else is named there.
func (c *checked) checkFailures(t *testing.T) {
	t.Helper()
	left := slices.Clone(c.res.Degraded)
	for _, st := range c.res.Trail {
		if !st.Outcome.Failed() {
			continue
		}
		i := slices.Index(left, protocol.Degraded{Hook: st.Hook, Outcome: st.Outcome, Detail: st.Detail})
		if i >= 0 {
			left = slices.Delete(left, i, i+1)
			continue
		}
		require.False(t, c.passed() && !c.unrecorded, "%s was passed over silently: %s", st.Hook, st.Outcome)
		require.True(t, c.err != nil || c.unrecorded || c.res.DecidedBy == st.Hook, "%s failed, the no is by %q", st.Hook, c.res.DecidedBy)
	}
	require.Empty(t, left, "degraded names what did not fail")
	if !c.passed() {
		return
	}
	for _, st := range c.res.Trail {
		h := c.hook(t, st.Hook)
		enforced := h.Mode == "" || h.Mode == hook.Enforce
		if enforced && c.canDeny() && (h.Denies() || st.Outcome.AlwaysDenies()) {
			require.True(t, answerOutcome(st.Outcome), "%s must answer, but: %s", h.Name, st.Outcome)
		}
		if enforced {
			require.False(t, protocol.Action(st.Outcome).Stops(), "%s said %s", h.Name, st.Outcome)
		}
	}
}

// checkGuards: every guard has seen the call as it will run.
func (c *checked) checkGuards(t *testing.T) {
	t.Helper()
	for _, h := range c.ordered(c.req.Stage.Name) {
		if c.approveStage() || !h.Recheck && !h.Denies() || h.Mode == hook.Shadow || h.Mode == hook.Async {
			continue
		}
		if !h.Match.Matches(c.finalTool(), c.req.Stage.Tool(), c.agentName()) || !holdsFor(h, c.final) {
			continue
		}
		saw := slices.ContainsFunc(h.asks, func(a ask) bool {
			return a.stage == c.req.Stage.Name && protocol.SameValue(a.subject.AppendJSON(nil), c.final.AppendJSON(nil))
		})
		require.True(t, saw || c.lastToChange() == h.Name || !c.canDeny() || c.passedOver(h.Name), "%s has not seen the final %s", h.Name, c.req.Stage.Name)
	}
}

func (c *checked) lastToChange() string {
	name := ""
	for _, st := range c.res.Trail {
		if len(st.Changed) > 0 {
			name = st.Hook
		}
	}
	return name
}

func (c *checked) passedOver(name string) bool {
	return slices.ContainsFunc(c.res.Degraded, func(d protocol.Degraded) bool { return d.Hook == name })
}
