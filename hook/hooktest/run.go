package hooktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// patience is how long a hook may take where the suite expects an answer. It
// is long because only a failing harness ever needs it.
const patience = 30 * time.Second

// Run runs the suite. open starts a new [Hook] and returns the way to it; Run
// closes it. The hook must be asked at all stages and told of all events, and it
// must be possible to call it eight times at once.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	for _, part := range []struct {
		name string
		run  func(*testing.T, Harness)
	}{
		{"decisions", testDecisions},
		{"approvals", testApprovals},
		{"requests", testRequests},
		{"large", testLarge},
		{"failures", testFailures},
		{"cancel", testCancel},
		{"concurrent", testConcurrent},
		{"events", testEvents},
	} {
		t.Run(part.name, func(t *testing.T) {
			h := open(t)
			t.Cleanup(h.Close)
			part.run(t, h)
		})
	}
}

// scripted returns a request that tells the reference hook what to do.
func scripted(stage *protocol.StageInfo, s script) *protocol.Request {
	req := sample(stage)
	req.Context, req.Timeout = s.json(), patience
	return req
}

// interceptions returns the stages at which an interceptor is asked.
func interceptions() []protocol.StageInfo {
	return slices.DeleteFunc(protocol.Stages(), func(s protocol.StageInfo) bool { return s.Name == protocol.StageApproveTool })
}

func stage(name protocol.Stage) *protocol.StageInfo { return protocol.NewStageTable().Stage(name) }

// answers lists decisions as a hook may write them: each verb of the stage,
// and everything that a decision can hold.
func answers(stage *protocol.StageInfo) []string {
	list := []string{
		`{}`,
		`{"action":"continue","reason":"why \u00e9 <&>"}`,
		`{"warnings":["one","two"],"add_context":["a","b"],"jump_to":"review"}`,
		`{"state":{"confidence_score":0.90,"list":[1,{"a":null}]}}`,
		`{"action":"abort_turn","reason":"enough"}`,
		`{"action":"hard_abort","reason":"more than enough"}`,
		`{"action":"deny","reason":"also where the stage has no deny"}`,
	}
	change := `{"content":"other","n":9007199254740993}`
	if !stage.Wrapped() && stage.Result != "" {
		change = fmt.Sprintf(`{%q:%s}`, stage.Subject[1], sampleParam(stage.Subject[1]))
	}
	for _, verb := range stage.Verbs {
		switch verb {
		case protocol.ActionModify:
			list = append(list,
				fmt.Sprintf(`{"action":"modify","reason":"better","%s":%s}`, stage.Result, change),
				fmt.Sprintf(`{"%s":%s}`, stage.Result, change),
				`{"action":"modify","patch":[{"op":"remove","path":"/x"}]}`)
		case protocol.ActionRespond:
			list = append(list, fmt.Sprintf(`{"action":"respond","%s":{"content":"from the hook","n":1.0}}`, stage.Respond))
		case protocol.ActionAsk:
			list = append(list, `{"action":"ask","permission":"shell","reason":"looks risky"}`)
		case protocol.ActionInject:
			list = append(list,
				`{"action":"inject","inject":{"role":"user","content":"go on"}}`,
				`{"action":"inject","inject":[{"role":"user","content":"one"},{"role":"user","content":[]}]}`)
		default:
			list = append(list, fmt.Sprintf(`{"action":%q}`, verb))
		}
	}
	return list
}

func testDecisions(t *testing.T, h Harness) {
	for _, stage := range interceptions() {
		for _, answer := range answers(&stage) {
			want, err := protocol.DecodeDecision(&stage, []byte(answer))
			require.NoError(t, err, "the suite's own answer at %s: %s", stage.Name, answer)
			got, err := h.Intercept(t.Context(), scripted(&stage, script{Answer: jsontext.Value(answer)}))
			require.NoError(t, err, "%s: %s", stage.Name, answer)
			want.Action, got.Action = want.Decided(), got.Decided()
			require.Equal(t, want, got, "%s: %s", stage.Name, answer)
		}
	}
}

func testApprovals(t *testing.T, h Harness) {
	for answer, want := range map[string]protocol.Approval{
		`{"approved":true}`: {Approved: true},
		`{"approved":true,"reason":"fine \u00e9","by":"ann"}`: {Approved: true, Reason: "fine é", By: "ann"},
		`{"approved":false}`:                             {},
		`{"approved":false,"reason":"no","by":"a rule"}`: {Reason: "no", By: "a rule"},
	} {
		got, err := h.Approve(t.Context(), scripted(stage(protocol.StageApproveTool), script{Answer: jsontext.Value(answer)}))
		require.NoError(t, err, answer)
		require.Equal(t, want, got, answer)
	}
}

// testRequests checks that a hook sees what was asked, byte for byte, and how
// much time it has.
func testRequests(t *testing.T, h Harness) {
	for _, stage := range interceptions() {
		req := scripted(&stage, script{Do: doEcho})
		want := string(req.AppendParams(nil, 0))
		d, err := h.Intercept(t.Context(), req)
		require.NoError(t, err, stage.Name)
		require.Equal(t, want, string(d.State.Get(saysParams)), stage.Name)
		require.Equal(t, want, string(req.AppendParams(nil, 0)), "%s: the caller's request has changed", stage.Name)
	}
	req := scripted(stage(protocol.StageApproveTool), script{Do: doEcho})
	a, err := h.Approve(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, string(req.AppendParams(nil, 0)), a.Reason)

	left := ask(t, h, scripted(stage(protocol.StageStop), script{Do: doDeadline}), saysLeft)
	require.Positive(t, left)
	require.LessOrEqual(t, left, int(patience.Milliseconds())+1)
}

// ask returns a number that the hook says.
func ask(t *testing.T, h Harness, req *protocol.Request, member string) int {
	t.Helper()
	d, err := h.Intercept(t.Context(), req)
	require.NoError(t, err)
	n, err := strconv.Atoi(string(d.State.Get(member)))
	require.NoError(t, err)
	return n
}

func testLarge(t *testing.T, h Harness) {
	messages := `[{"role":"user","content":"` + strings.Repeat("lorem ipsum ", 1<<17) + `"}]`
	for _, answer := range []string{`{}`, `{"action":"modify","request":{"messages":` + messages + `}}`} {
		req := scripted(stage(protocol.StageBeforeLLM), script{Answer: jsontext.Value(answer)})
		req.Subject = req.Subject.With("messages", jsontext.Value(messages))
		d, err := h.Intercept(t.Context(), req)
		require.NoError(t, err)
		if d.Subject != nil {
			require.Equal(t, len(`{"messages":`+messages+`}`), len(d.Subject))
		}
	}
}

// testFailures checks what a caller is told when a hook fails, and that the
// next call is answered as if nothing had been.
func testFailures(t *testing.T, h Harness) {
	for _, c := range []struct {
		do      order
		timeout time.Duration
		// A panic in another process is told as any of its errors.
		want []protocol.Outcome
	}{
		{doFail, patience, []protocol.Outcome{protocol.OutcomeHookError}},
		{doPanic, patience, []protocol.Outcome{protocol.OutcomePanic, protocol.OutcomeHookError}},
		{doWait, 100 * time.Millisecond, []protocol.Outcome{protocol.OutcomeTimeout}},
	} {
		before := scripted(stage(protocol.StageBeforeTool), script{Do: c.do})
		before.Timeout = c.timeout
		d, err := h.Intercept(t.Context(), before)
		require.Error(t, err, "%s: got %+v", c.do, d)
		require.Contains(t, c.want, outcomeOf(t.Context(), err), "%s: %v", c.do, err)

		d, err = h.Intercept(t.Context(), scripted(before.Stage, script{Answer: jsontext.Value(`{"action":"deny"}`)}))
		require.NoError(t, err, "after %s", c.do)
		require.Equal(t, protocol.ActionDeny, d.Action, "after %s", c.do)

		approve := scripted(stage(protocol.StageApproveTool), script{Do: c.do, Answer: jsontext.Value(`{"approved":true}`)})
		approve.Timeout = c.timeout
		a, err := h.Approve(t.Context(), approve)
		require.Error(t, err, c.do)
		require.Contains(t, c.want, outcomeOf(t.Context(), err), "%s: %v", c.do, err)
		require.False(t, a.Approved, "%s: a failure must not hold a yes", c.do)

		a, err = h.Approve(t.Context(), scripted(approve.Stage, script{Answer: jsontext.Value(`{"approved":true}`)}))
		require.NoError(t, err, "after %s", c.do)
		require.True(t, a.Approved, "after %s", c.do)
	}
}

// testCancel checks that a hook learns that its answer is no longer wanted.
func testCancel(t *testing.T, h Harness) {
	waiting := func() int {
		return ask(t, h, scripted(stage(protocol.StageOutput), script{Do: doWaiting}), saysWaiting)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := h.Intercept(ctx, scripted(stage(protocol.StageBeforeLLM), script{Do: doWait}))
		ended <- err
	}()
	eventually(t, "the hook has the call", func() bool { return waiting() == 1 })
	cancel(errors.New("the agent went away"))
	require.Equal(t, protocol.OutcomeCancelled, outcomeOf(ctx, <-ended))
	eventually(t, "the hook is told that the call was cancelled", func() bool { return waiting() == 0 })
}

// testConcurrent checks that calls do not wait for one another, and that each
// gets its own answer.
func testConcurrent(t *testing.T, h Harness) {
	const calls = 8
	var wg sync.WaitGroup
	reasons := make([]string, calls)
	errs := make([]error, calls)
	for i := range calls {
		answer := fmt.Sprintf(`{"action":"deny","reason":"call %d"}`, i)
		req := scripted(stage(protocol.StageBeforeTool), script{Do: doMeet, Calls: calls, Answer: jsontext.Value(answer)})
		wg.Go(func() {
			d, err := h.Intercept(t.Context(), req)
			reasons[i], errs[i] = d.Reason, err
		})
	}
	wg.Wait()
	for i := range calls {
		require.NoError(t, errs[i])
		require.Equal(t, fmt.Sprintf("call %d", i), reasons[i])
	}
}

// testEvents checks that events come in order and whole, whatever the hook
// does with them.
func testEvents(t *testing.T, h Harness) {
	var want []string
	for i, s := range []script{{}, {Do: doFail}, {Do: doPanic}, {}} {
		ev := &hook.Event{Seq: uint64(10 + i), Missed: uint64(i), Event: &protocol.Event{
			Kind: protocol.EventToolExecEnd, Time: time.Date(2026, 1, 2, 3, 4, 5, 6_000_000, time.UTC),
			Meta:    protocol.Object{{Name: "agent", Value: protocol.Quote("hooktest")}, {Name: "iteration", Value: jsontext.Value("3")}},
			Payload: s.json(), Severity: "warn", Source: "agent", ID: strconv.Itoa(i),
			Extra: protocol.Object{{Name: "x_unknown", Value: jsontext.Value(`[1.0,null]`)}},
		}}
		switch i {
		case 0: // one that only hookd makes
			ev.Kind, ev.Source = protocol.EventDecision, "hookd"
		case 3: // one without anything
			ev.Event = &protocol.Event{Kind: "x_own", Payload: s.json()}
		}
		want = append(want, string(ev.AppendJSON(nil, ev.Seq, ev.Missed)))
		_ = h.Observe(t.Context(), ev) // a harness that tells of the hook's error may
	}
	all := "[" + strings.Join(want, ",") + "]"
	got := ""
	eventually(t, "all events have come", func() bool {
		d, err := h.Intercept(t.Context(), scripted(stage(protocol.StageStop), script{Do: doEvents}))
		require.NoError(t, err)
		got = string(d.State.Get(saysEvents))
		return len(got) >= len(all)
	})
	require.Equal(t, all, got)
}

// eventually asks again and again: a hook in another process can't be waited
// for in another way.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(2 * time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "did not happen within %s: %s", patience, what)
	}
}
