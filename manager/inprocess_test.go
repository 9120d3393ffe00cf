package manager

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	zaplog "go.uber.org/zap/zaptest/observer"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// A panic stays in the hook: the call is judged by the policy, and the log
// gets the stack, which the agent does not.
func TestPanics(t *testing.T) {
	core, logs := zaplog.New(zap.WarnLevel)
	m := New(Options{Log: zap.New(core)})
	defer func() { require.NoError(t, m.Close(t.Context())) }()
	h := &goHook{
		intercept: func(context.Context, *protocol.Request) (protocol.Decision, error) {
			panic(fmt.Errorf("no map for you"))
		},
		approve: func(context.Context, *protocol.Request) (protocol.Approval, error) {
			var none []int
			return protocol.Approval{Approved: none[1] == 0}, nil
		},
	}
	plain, quick := h.registration("plain"), h.registration("quick")
	plain.FailPolicy, quick.Roles.Quick = hook.FailContinue, true
	swap(t, m, plain, quick)

	res := call(t, m)
	require.Equal(t, protocol.ActionDeny, res.Action)
	require.Equal(t, "quick", res.DecidedBy)
	require.Equal(t, []protocol.Degraded{{Hook: "plain", Outcome: protocol.OutcomePanic, Detail: "no map for you"}}, res.Degraded)
	require.Len(t, logs.All(), 2)
	for _, e := range logs.TakeAll() {
		require.Contains(t, e.ContextMap()["stack"], "inprocess_test.go")
	}

	res, err := m.Call(t.Context(), &Caller{}, request(t, protocol.StageApproveTool, aCall))
	require.NoError(t, err)
	require.False(t, res.Approval.Approved)
	require.Contains(t, res.Approval.Reason, "index out of range")
	require.NotContains(t, res.Approval.Reason, "goroutine")
}

// stubborn is an in-process hook that pays no heed to its context.
type stubborn struct {
	goHook
	gate chan struct{}
}

func newStubborn() *stubborn {
	s := &stubborn{gate: make(chan struct{})}
	s.intercept = func(context.Context, *protocol.Request) (protocol.Decision, error) {
		<-s.gate
		return hook.Continue(), nil
	}
	return s
}

// outcomeIn runs a call and returns the outcome of its only hook.
func outcomeIn(t *testing.T, m *HookManager) protocol.Outcome {
	t.Helper()
	res := call(t, m)
	require.Len(t, res.Trail, 1)
	return res.Trail[0].Outcome
}

func TestAbandonedCallsAreCapped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStubborn()
		m := mounted(t, s.registration("stubborn"))
		for range abandonedCalls {
			require.Equal(t, protocol.OutcomeTimeout, outcomeIn(t, m))
		}
		start := time.Now()
		require.Equal(t, protocol.OutcomeBreakerOpen, outcomeIn(t, m), "no ninth goroutine")
		require.Zero(t, time.Since(start), "and nobody waits for it")

		swap(t, m, s.registration("stubborn"))
		require.Equal(t, protocol.OutcomeBreakerOpen, outcomeIn(t, m), "a reload does not forget them")

		close(s.gate)
		synctest.Wait()
		require.Equal(t, protocol.OutcomeContinue, outcomeIn(t, m), "they have come back")
		require.Zero(t, m.Stats()["stubborn"].InFlight)
	})
}

// Calls that wait within their time are not abandoned, however many they are.
func TestManyCallsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &goHook{intercept: func(ctx context.Context, _ *protocol.Request) (protocol.Decision, error) {
			time.Sleep(time.Second)
			return hook.Continue(), nil
		}}
		m := mounted(t, slow.registration("slow"))
		var wg sync.WaitGroup
		for range 5 * abandonedCalls {
			wg.Go(func() {
				if res := call(t, m); res.Action != "" {
					t.Errorf("%+v", res)
				}
			})
		}
		synctest.Wait()
		require.EqualValues(t, 5*abandonedCalls, m.Stats()["slow"].InFlight)
		wg.Wait()
		require.EqualValues(t, 5*abandonedCalls, m.Stats()["slow"].Outcomes[protocol.OutcomeContinue])
	})
}

// An agent that goes away leaves a stubborn hook behind, which counts too.
func TestCallsAbandonedByTheAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStubborn()
		m := mounted(t, s.registration("stubborn"))
		for range abandonedCalls {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Millisecond, func() { cancel(ErrAgentGone) })
			_, err := m.Call(ctx, &Caller{}, request(t, protocol.StageBeforeTool, aCall))
			require.ErrorIs(t, err, ErrAgentGone)
		}
		require.Equal(t, protocol.OutcomeBreakerOpen, outcomeIn(t, m))
		close(s.gate)
	})
}

// What a Go hook makes is judged as strictly as what comes over a wire.
func TestDecisionsMadeInGoAreChecked(t *testing.T) {
	for name, c := range map[string]struct {
		stage  protocol.Stage
		params string
		d      protocol.Decision
	}{
		"a verb of the wire":     {protocol.StageBeforeTool, aCall, protocol.Decision{Action: protocol.WireDenyTool}},
		"a verb in another case": {protocol.StageBeforeTool, aCall, protocol.Decision{Action: "Deny"}},
		"a tool that is no text": {protocol.StageBeforeTool, aCall, protocol.Decision{Action: protocol.ActionModify, Subject: []byte(`{"tool":5}`)}},
		"an unknown member":      {protocol.StageBeforeTool, aCall, protocol.Decision{Action: protocol.ActionModify, Subject: []byte(`{"command":"ls"}`)}},
		"a name twice":           {protocol.StageBeforeTool, aCall, protocol.Decision{Action: protocol.ActionModify, Subject: []byte(`{"arguments":{"a":1,"a":2}}`)}},
		"no JSON":                {protocol.StageBeforeTool, aCall, protocol.Decision{Action: protocol.ActionModify, Subject: []byte(`{"arguments":{}`)}},
		"more than JSON":         {protocol.StageBeforeTool, aCall, protocol.Decision{Action: protocol.ActionModify, Subject: []byte(`{},"action":"allow"`)}},
		"subject and patch":      {protocol.StageBeforeTool, aCall, protocol.Decision{Action: protocol.ActionModify, Subject: []byte(`{}`), Patch: []byte(`[]`)}},
		"respond with nothing":   {protocol.StageBeforeTool, aCall, protocol.Decision{Action: protocol.ActionRespond}},
		"respond with a text":    {protocol.StageBeforeTool, aCall, protocol.Decision{Action: protocol.ActionRespond, Respond: []byte(`"x"`)}},
		"state that is no JSON":  {protocol.StageBeforeTool, aCall, protocol.Decision{State: protocol.Object{{Name: "k", Value: []byte(`nul`)}}}},
		"a change where none is": {protocol.StageBeforeCompact, `{"request":{}}`, protocol.Decision{Action: protocol.ActionModify, Subject: []byte(`{"request":{}}`)}},
		"a patch where none is":  {protocol.StageBeforeCompact, `{"request":{}}`, protocol.Decision{Patch: []byte(`[]`)}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, quick := range []bool{false, true} {
				h := &goHook{intercept: func(context.Context, *protocol.Request) (protocol.Decision, error) { return c.d, nil }}
				r := h.registration("go")
				r.Stages, r.Roles.Quick, r.FailPolicy = []protocol.Stage{c.stage}, quick, hook.FailContinue
				m := mounted(t, r)
				res, err := m.Call(t.Context(), &Caller{}, request(t, c.stage, c.params))
				require.NoError(t, err)
				require.Equal(t, protocol.OutcomeBadAnswer, res.Trail[0].Outcome)
				require.NotEmpty(t, res.Trail[0].Detail)
				require.Nil(t, res.Subject)
				require.Nil(t, res.State)
				require.Equal(t, c.stage == protocol.StageBeforeTool, res.Action == protocol.ActionDeny)
			}
		})
	}
	t.Run("inject with nothing", func(t *testing.T) {
		h := &goHook{intercept: func(context.Context, *protocol.Request) (protocol.Decision, error) {
			return protocol.Decision{Action: protocol.ActionInject}, nil
		}}
		r := h.registration("go")
		r.Stages = []protocol.Stage{protocol.StageStop}
		res, err := mounted(t, r).Call(t.Context(), &Caller{}, request(t, protocol.StageStop, `{"request":{}}`))
		require.NoError(t, err)
		require.Len(t, res.Degraded, 1)
		require.Empty(t, res.Action)
	})
}

// An error that is only called as that of a context is the hook's own.
func TestErrorsThatLookLikeOurs(t *testing.T) {
	for _, err := range []error{context.DeadlineExceeded, context.Canceled, fmt.Errorf("dial: %w", context.Canceled), errors.New("x")} {
		h := &goHook{intercept: func(context.Context, *protocol.Request) (protocol.Decision, error) { return protocol.Decision{}, err }}
		require.Equal(t, protocol.OutcomeHookError, outcomeIn(t, mounted(t, h.registration("h"))), "%v", err)
	}
}

// A remote hook keeps its time itself, and may return whatever its context
// says when the approvals' own deadline has passed.
func TestRemoteApproverReturnsItsContextsError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, of := range []func(context.Context) error{context.Cause, context.Context.Err} {
			h := &goHook{approve: func(ctx context.Context, _ *protocol.Request) (protocol.Approval, error) {
				<-ctx.Done()
				return protocol.Approval{}, of(ctx)
			}}
			r := h.registration("human")
			r.Roles.Remote = true
			res, err := mounted(t, r).Call(t.Context(), &Caller{}, request(t, protocol.StageApproveTool, aCall))
			require.NoError(t, err, "the agent is still there")
			require.Equal(t, protocol.OutcomeTimeout, res.Trail[0].Outcome)
			require.Equal(t, "approval timed out (60 s)", res.Approval.Reason)
		}
	})
}

// Hooks are not told what only hookd is to know.
func TestHooksSeeWhatIsForThem(t *testing.T) {
	h := &goHook{
		intercept: func(_ context.Context, req *protocol.Request) (protocol.Decision, error) {
			require.False(t, req.Approve)
			require.Nil(t, req.Asked)
			require.False(t, req.Trail)
			require.Zero(t, req.DeadlineMS)
			require.Equal(t, 5*time.Second, req.Timeout)
			return hook.Continue(), nil
		},
		approve: func(_ context.Context, req *protocol.Request) (protocol.Approval, error) {
			require.Equal(t, protocol.StageApproveTool, req.Stage.Name)
			require.Nil(t, req.Subject.Get("read_only"))
			require.Equal(t, 60*time.Second, req.Timeout)
			return protocol.Approval{Approved: true}, nil
		},
	}
	req := request(t, protocol.StageBeforeTool, `{"tool":"bash","arguments":{},"read_only":true,"approve":true,"asked":true,"trail":true,"deadline_ms":100000}`)
	res, err := mounted(t, h.registration("h")).Call(t.Context(), &Caller{}, req)
	require.NoError(t, err)
	require.True(t, res.Approval.Approved)
	require.Len(t, res.Trail, 2)
}

// The queue of a hook in mode async is bounded; what does not fit is dropped,
// counted and said.
func TestAsyncQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStubborn()
		r := s.registration("async")
		r.Mode, r.Roles.Remote = hook.Async, true
		m := mounted(t, r)
		call(t, m)
		synctest.Wait() // the worker holds the first
		for range asyncQueue {
			require.Empty(t, call(t, m).Trail[0].Detail)
		}
		res := call(t, m)
		require.Equal(t, protocol.OutcomeAsync, res.Trail[0].Outcome)
		require.Contains(t, res.Trail[0].Detail, "dropped")
		require.EqualValues(t, 1, m.Stats()["async"].Missed)
		close(s.gate)
	})
}

// An approver without an opinion neither grants nor refuses: what counts is
// whether anybody else does, and whether the call was asked about.
func TestAbstainingApprover(t *testing.T) {
	abstain := func(context.Context, *protocol.Request) (protocol.Approval, error) {
		return protocol.Approval{Abstained: true, Steps: []protocol.Step{{Hook: "behind it", Outcome: protocol.OutcomeContinue}}}, nil
	}
	yes := func(context.Context, *protocol.Request) (protocol.Approval, error) {
		return protocol.Approval{Approved: true}, nil
	}
	m := New(Options{})
	defer func() { require.NoError(t, m.Close(t.Context())) }()
	ask := func(asked bool) *protocol.ApprovalResult {
		req := request(t, protocol.StageApproveTool, aCall)
		req.Asked = &asked
		res, err := m.Call(t.Context(), &Caller{}, req)
		require.NoError(t, err)
		require.Equal(t, protocol.OutcomeContinue, res.Trail[0].Outcome)
		require.Equal(t, "behind it", res.Trail[1].Hook)
		return res.Approval
	}
	none := (&goHook{approve: abstain}).registration("a")
	swap(t, m, none)
	require.Equal(t, "nobody can be asked", ask(true).Reason)
	require.True(t, ask(false).Approved)
	require.Empty(t, ask(false).By, "nobody has said yes")
	swap(t, m, none, (&goHook{approve: yes}).registration("b"))
	require.True(t, ask(true).Approved)
	require.Equal(t, "b", ask(true).By)
}

// A failure may bring a warning for the user.
func TestFailureWithAWarning(t *testing.T) {
	m := New(Options{})
	defer func() { require.NoError(t, m.Close(t.Context())) }()
	h := (&goHook{intercept: func(context.Context, *protocol.Request) (protocol.Decision, error) {
		return protocol.Decision{}, &hook.Failure{Outcome: protocol.OutcomeHookError, Detail: "exit 3", Warning: "the check did not run"}
	}}).registration("h")
	h.FailPolicy = hook.FailContinue
	swap(t, m, h)
	res := call(t, m)
	require.Equal(t, []string{"h: the check did not run"}, res.Warnings)
	require.Len(t, res.Degraded, 1)
}

// An approver is told why it is asked, by hookd and by nobody else.
func TestApproverIsToldWhy(t *testing.T) {
	var seen string
	ask := (&goHook{intercept: func(_ context.Context, req *protocol.Request) (protocol.Decision, error) {
		require.Contains(t, []string{"", `"forged"`}, string(req.Extra.Get("ask")))
		return hook.Ask("publishes"), nil
	}}).registration("gate")
	human := (&goHook{approve: func(_ context.Context, req *protocol.Request) (protocol.Approval, error) {
		seen = string(req.Extra.Get("ask"))
		return protocol.Approval{Approved: true}, nil
	}}).registration("human")
	m := mounted(t, ask, human)
	caller := &Caller{Name: "bot"}
	call := func(stage protocol.Stage, params string) string {
		seen = "nobody was asked"
		_, err := m.Call(t.Context(), caller, request(t, stage, params))
		require.NoError(t, err)
		return seen
	}
	const why = `{"reason":"publishes","by":"gate"}`
	require.Empty(t, call(protocol.StageApproveTool, `{"tool":"x","arguments":{},"ask":"forged"}`), "nothing is known of this call")
	require.Equal(t, why, call(protocol.StageBeforeTool, `{"tool":"x","arguments":{},"approve":true,"ask":"forged"}`))
	require.Equal(t, why, call(protocol.StageApproveTool, `{"tool":"x","arguments":{}}`), "remembered for the separate call")
	swap(t, m, human)
	require.Equal(t, why, call(protocol.StageApproveTool, `{"tool":"x","arguments":{},"asked":false}`))
	require.Empty(t, call(protocol.StageBeforeTool, `{"tool":"y","arguments":{},"approve":true}`))
}
