package telemetry

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/zap"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/manager"
	"github.com/hookd/hookd/protocol"
)

const (
	user, agent, llm, answered, tool, approve, done, stop, output = protocol.StageUserMessage, protocol.StageBeforeAgent, protocol.StageBeforeLLM,
		protocol.StageAfterLLM, protocol.StageBeforeTool, protocol.StageApproveTool, protocol.StageAfterTool, protocol.StageStop, protocol.StageOutput
)

// TestTrace sends a run to a collector over HTTP and looks at every span of it.
func TestTrace(t *testing.T) {
	s := &store{}
	server := httptest.NewServer(s)
	defer server.Close()
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "headers"), []byte("# for the collector\nX-Tenant: a\n"), 0o600))
	to, err := New(jsontext.Value(`{"endpoint":"`+server.URL+`/otel","headers_file":"headers","service_name":"guard"}`), folder, NewSink(), zap.NewNop())
	require.NoError(t, err)
	require.True(t, to.Active())

	meta := `{"agent_id":"a-1","session_id":"s-1","turn_id":"u-1","task_id":"t-1","model":"big-1"}`
	pass(t, to, meta, user, llm)
	deny := decided(t, tool, meta, protocol.Result{
		Action: protocol.ActionDeny, Reason: canary, DecidedBy: "policy", Degraded: []protocol.Degraded{{Hook: "slow", Outcome: protocol.OutcomeTimeout, Detail: canary}},
		Trail: []protocol.Step{
			{Hook: "slow", Outcome: protocol.OutcomeTimeout, Duration: 4 * time.Millisecond, Detail: canary},
			{Hook: "rewrite", Outcome: protocol.OutcomeModify, Action: protocol.ActionModify, Duration: 2 * time.Millisecond, Changed: []string{canary}},
			{Hook: "policy", Outcome: protocol.OutcomeDeny, Action: protocol.ActionDeny, Duration: 9 * time.Millisecond, Detail: canary, Recheck: true},
		},
	})
	to.Take(deny)
	to.Take(decided(t, approve, meta, protocol.Result{Approval: &protocol.ApprovalResult{Approved: true, Reason: canary, By: canary}, DecidedBy: "human"}))
	gone := decided(t, done, meta, protocol.Result{Action: protocol.ActionAbortTurn})
	gone.Err, gone.Result.Action = errors.New(canary), protocol.ActionContinue
	to.Take(gone)
	pass(t, to, meta, stop, output)
	require.NoError(t, to.Close())

	require.Equal(t, strings.TrimLeft(`
invoke_agent bot ok stop
  hookd user_message ok continue
  hookd before_llm ok continue
  hookd before_tool ok deny
    hook slow timeout timeout
    hook rewrite ok modify
    hook policy ok deny
  hookd approve_tool ok allow
  hookd after_tool error continue
  hookd stop ok continue
  hookd output ok continue
`, "\n"), s.tree())
	require.Equal(t, "guard", s.service)
	require.Equal(t, "/otel/v1/traces", s.path)
	require.Equal(t, "a", s.headers.Get("X-Tenant"))
	require.Equal(t, "application/x-protobuf", s.headers.Get("Content-Type"))
	require.NotContains(t, string(s.raw), canary)

	run := s.one(t, "invoke_agent bot")
	require.Equal(t, map[string]string{
		"agent.id": "a-1", "task.id": "t-1", "conversation.id": "s-1", "model.id": "big-1", "status": "ok",
		"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.id": "a-1", "gen_ai.agent.name": "bot",
		"gen_ai.conversation.id": "s-1", "gen_ai.request.model": "big-1",
		"hookd.turn.id": "u-1", "hookd.run.end": "stop", "hookd.run.calls": "7", "hookd.run.stopped_calls": "1", "hookd.degraded": "1",
	}, attributesOf(run.Attributes))
	call := s.one(t, "hookd before_tool")
	require.Equal(t, map[string]string{
		"agent.id": "a-1", "task.id": "t-1", "conversation.id": "s-1", "model.id": "big-1", "status": "ok",
		"gen_ai.agent.id": "a-1", "gen_ai.agent.name": "bot", "gen_ai.conversation.id": "s-1", "gen_ai.request.model": "big-1",
		"tool.name": "bash", "gen_ai.tool.name": "bash", "gen_ai.tool.call.id": "c-1",
		"hookd.stage": "before_tool", "hookd.verdict": "deny", "hookd.decided_by": "policy", "hookd.degraded": "1", "hookd.generation": "3",
	}, attributesOf(call.Attributes))
	require.Equal(t, deny.Started.UnixNano(), start(call).UnixNano())
	require.Equal(t, 10*time.Millisecond, took(call))
	require.Equal(t, "true", attributesOf(s.one(t, "hookd approve_tool").Attributes)["hookd.approved"])
	require.Equal(t, "small-1", attributesOf(s.one(t, "hookd before_llm").Attributes)["model.id"])

	slow, policy := s.one(t, "hook slow"), s.one(t, "hook policy")
	require.Equal(t, start(call), start(slow))
	require.Equal(t, 4*time.Millisecond, took(slow))
	require.Equal(t, start(call).Add(6*time.Millisecond), start(policy), "one hook behind the other")
	require.Equal(t, 4*time.Millisecond, took(policy), "no hook lasts longer than its call")
	require.Equal(t, tracepb.Status_STATUS_CODE_ERROR, slow.Status.Code)
	require.Equal(t, map[string]string{
		"hookd.hook": "policy", "hookd.outcome": "deny", "hookd.action": "deny", "hookd.recheck": "true", "status": "ok",
	}, attributesOf(policy.Attributes))
	require.Equal(t, "true", attributesOf(s.one(t, "hook rewrite").Attributes)["hookd.changed"])
	require.Equal(t, Stats{SentSpans: 11}, to.Stats())
}

// TestReasons wants reasons only where the config asks for them, and short.
func TestReasons(t *testing.T) {
	s := &store{}
	to := newFor(t, s, `,"reasons":true`)
	long := strings.Repeat("é", 1000)
	to.Take(decided(t, tool, `{}`, protocol.Result{Action: protocol.ActionDeny, Reason: "no rm", Trail: []protocol.Step{{Hook: "policy", Outcome: protocol.OutcomeDeny, Detail: long}}}))
	require.NoError(t, to.Close())
	require.Equal(t, "no rm", attributesOf(s.one(t, "hookd before_tool").Attributes)["hookd.reason"])
	require.Equal(t, strings.Repeat("é", 256)+"…", attributesOf(s.one(t, "hook policy").Attributes)["hookd.reason"])
}

// TestRuns plays calls and events and wants to see these traces. Nothing ends by
// time here.
func TestRuns(t *testing.T) {
	type play = func(t *testing.T, to *Telemetry)
	answer := func(stage protocol.Stage, meta string, action protocol.Action) play {
		return func(t *testing.T, to *Telemetry) {
			to.Take(decided(t, stage, meta, protocol.Result{Action: action}))
		}
	}
	calls := func(meta string, stages ...protocol.Stage) play {
		return func(t *testing.T, to *Telemetry) { pass(t, to, meta, stages...) }
	}
	event := func(kind protocol.EventKind, meta string) play {
		return func(t *testing.T, to *Telemetry) { tell(t, to, kind, meta) }
	}
	const s, u, task = `{"session_id":"s"}`, `{"session_id":"s","turn_id":"u"}`, `{"session_id":"s","turn_id":"u","task_id":"t"}`
	const sub = `{"turn_id":"v","task_id":"t","parent_turn_id":"u"}`
	for _, c := range []struct {
		name string
		play []play
		want string
	}{
		{"two turns of a session", []play{calls(s, user, stop, output, user, stop)}, `
invoke_agent bot ok stop
  hookd user_message ok continue
  hookd stop ok continue
  hookd output ok continue
invoke_agent bot ok stop
  hookd user_message ok continue
  hookd stop ok continue`},
		{"another round", []play{calls(u, llm), answer(stop, u, protocol.ActionInject), calls(u, llm, stop)}, `
invoke_agent bot ok stop
  hookd before_llm ok continue
  hookd stop ok inject
  hookd before_llm ok continue
  hookd stop ok continue`},
		{"events alone", []play{event(protocol.EventTurnStart, u), event(protocol.EventLLMRetry, u), event(protocol.EventTurnEnd, u)}, `
invoke_agent bot ok turn_end`},
		{"agent end", []play{calls(task, llm), event(protocol.EventAgentEnd, task)}, `
invoke_agent bot ok agent_end
  hookd before_llm ok continue`},
		{"the end of a session ends its runs", []play{calls(u, llm), calls(task, llm), calls(`{"session_id":"other"}`, llm), event(protocol.EventSessionEnd, s)}, `
invoke_agent bot ok session_end
  hookd before_llm ok continue
invoke_agent bot ok session_end
  hookd before_llm ok continue
invoke_agent bot timeout shutdown
  hookd before_llm ok continue`},
		{"error", []play{calls(u, llm), event(protocol.EventAgentError, u)}, `
invoke_agent bot error agent_error
  hookd before_llm ok continue`},
		{"error after stop", []play{calls(u, stop), event(protocol.EventAgentError, u), event(protocol.EventTurnEnd, u)}, `
invoke_agent bot error agent_error
  hookd stop ok continue`},
		{"error of an unknown run", []play{event(protocol.EventAgentError, u)}, `
invoke_agent bot error agent_error`},
		{"end of an unknown run", []play{event(protocol.EventTurnEnd, u), event(protocol.EventIterationEnd, u), event(protocol.EventSessionEnd, s)}, ``},
		{"the agent says timeout", []play{event(protocol.EventAgentStart, u), event(protocol.EventAgentTimeout, u)}, `
invoke_agent bot timeout agent_timeout`},
		{"aborted by a hook", []play{calls(u, llm), answer(answered, u, protocol.ActionAbortTurn), calls(u, stop)}, `
invoke_agent bot stopped abort_turn
  hookd before_llm ok continue
  hookd after_llm ok abort_turn
  hookd stop ok continue`},
		{"denied tool goes on", []play{answer(tool, u, protocol.ActionDeny), calls(u, llm, stop)}, `
invoke_agent bot ok stop
  hookd before_tool ok deny
  hookd before_llm ok continue
  hookd stop ok continue`},
		{"denied message", []play{answer(user, s, protocol.ActionDeny), calls(s, user, stop)}, `
invoke_agent bot stopped user_message denied
  hookd user_message ok deny
invoke_agent bot ok stop
  hookd user_message ok continue
  hookd stop ok continue`},
		{"answered by a hook", []play{answer(agent, u, protocol.ActionRespond)}, `
invoke_agent bot ok before_agent answered
  hookd before_agent ok respond`},
		{"only output", []play{calls(u, output)}, `
invoke_agent bot ok output
  hookd output ok continue`},
		{"sub-agent with a turn of its own", []play{calls(u, llm), calls(`{"turn_id":"v","parent_turn_id":"u"}`, agent, stop), calls(u, stop)}, `
invoke_agent bot ok stop
  hookd before_llm ok continue
  invoke_agent bot ok stop
    hookd before_agent ok continue
    hookd stop ok continue
  hookd stop ok continue`},
		{"sub-agent of the same task", []play{calls(task, llm), calls(sub, agent, stop), event(protocol.EventAgentEnd, sub), calls(task, llm, stop)}, `
invoke_agent bot ok stop
  hookd before_llm ok continue
  hookd before_agent ok continue
  hookd stop ok continue
  hookd before_llm ok continue
  hookd stop ok continue`},
		{"end of a sub-agent of the same task", []play{calls(task, llm), event(protocol.EventAgentError, sub), calls(task, llm)}, `
invoke_agent bot timeout shutdown
  hookd before_llm ok continue
  hookd before_llm ok continue`},
		{"not closed", []play{calls(u, user)}, `
invoke_agent bot timeout shutdown
  hookd user_message ok continue`},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &store{}
				to := newFor(t, s, "")
				for _, p := range c.play {
					p(t, to)
					time.Sleep(50 * time.Millisecond)
				}
				require.NoError(t, to.Close())
				require.Equal(t, strings.TrimSpace(c.want), strings.TrimSpace(s.tree()))
				require.NotContains(t, string(s.raw), canary)
				require.Zero(t, to.Stats().OpenRuns)
			})
		})
	}
}

// TestLateEvents wants events that come after calls that were later to end
// nothing.
func TestLateEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		to := newFor(t, s, "")
		late := func(kind protocol.EventKind, at time.Time) {
			ev := &protocol.Event{Kind: kind, Source: "agent", Time: at, Meta: protocol.Object{{Name: "agent", Value: protocol.Quote("bot")}}}
			require.NoError(t, to.Observe(t.Context(), &hook.Event{Event: ev}))
		}
		time.Sleep(time.Second + 500*time.Microsecond) // not on the second
		pass(t, to, `{}`, user)
		before := time.Now().Add(-20 * time.Millisecond)
		late(protocol.EventTurnEnd, before)
		pass(t, to, `{}`, llm)
		synctest.Wait()
		require.EqualValues(t, 1, to.Stats().OpenRuns)
		pass(t, to, `{}`, stop)
		late(protocol.EventTurnStart, before) // of the turn that is over
		late(protocol.EventTurnEnd, time.Now().Add(time.Hour))
		require.NoError(t, to.Close())
		require.Equal(t, "invoke_agent bot ok stop\n  hookd user_message ok continue\n  hookd before_llm ok continue\n  hookd stop ok continue\n", s.tree())
		require.Less(t, took(s.one(t, "invoke_agent bot")), time.Second, "no clock of an agent's makes a run longer")
	})
}

// TestLimits wants no run to stay open for ever, whatever its agent does.
func TestLimits(t *testing.T) {
	const limits = `,"max_run_minutes":30,"run_idle_minutes":5,"max_runs":2`
	end := func(s *tracepb.Span) string { return attributesOf(s.Attributes)["hookd.run.end"] }
	t.Run("idle", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &store{}
			to := newFor(t, s, limits)
			pass(t, to, `{}`, user)
			time.Sleep(4 * time.Minute)
			pass(t, to, `{}`, llm)
			time.Sleep(4*time.Minute + 59*time.Second)
			require.EqualValues(t, 1, to.Stats().OpenRuns)
			time.Sleep(3 * time.Second) // and one for the batch
			require.Zero(t, to.Stats().OpenRuns)
			run := s.one(t, "invoke_agent bot")
			require.Equal(t, howIdle, end(run))
			require.Equal(t, "timeout", attributesOf(run.Attributes)["status"])
			require.Equal(t, tracepb.Status_STATUS_CODE_ERROR, run.Status.Code)
			require.Equal(t, 4*time.Minute+10*time.Millisecond, took(run), "until it was silent")
		})
	})
	t.Run("too long", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &store{}
			to := newFor(t, s, limits)
			for range 30 {
				pass(t, to, `{}`, llm)
				time.Sleep(time.Minute)
			}
			time.Sleep(2 * time.Second)
			run := s.one(t, "invoke_agent bot")
			require.Equal(t, howMax, end(run))
			require.Equal(t, "timeout", attributesOf(run.Attributes)["status"])
			require.Equal(t, 30*time.Minute+10*time.Millisecond, took(run))
		})
	})
	t.Run("too many", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &store{}
			to := newFor(t, s, limits)
			pass(t, to, `{"task_id":"a"}`, user)
			time.Sleep(time.Second)
			pass(t, to, `{"task_id":"b"}`, user)
			time.Sleep(time.Second)
			pass(t, to, `{"task_id":"a"}`, llm)
			pass(t, to, `{"task_id":"c"}`, user)
			time.Sleep(2 * time.Second)
			require.EqualValues(t, 2, to.Stats().OpenRuns)
			run := s.one(t, "invoke_agent bot")
			require.Equal(t, "b", attributesOf(run.Attributes)["task.id"], "the one that was silent for longest")
			require.Equal(t, howEvicted, end(run))
			require.Equal(t, "timeout", attributesOf(run.Attributes)["status"])
		})
	})
	t.Run("over and lingering", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &store{}
			to := newFor(t, s, limits)
			pass(t, to, `{}`, user, stop)
			time.Sleep(linger - time.Second)
			require.EqualValues(t, 1, to.Stats().OpenRuns)
			time.Sleep(3 * time.Second)
			require.Zero(t, to.Stats().OpenRuns)
			require.Less(t, took(s.one(t, "invoke_agent bot")), 20*time.Millisecond, "waiting does not make it longer")
			time.Sleep(2 * time.Hour) // nothing ticks, nothing is sent
			require.Equal(t, 2, s.count())
		})
	})
	t.Run("flood", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &store{}
			to := newFor(t, s, limits)
			for i := range 500 {
				pass(t, to, fmt.Sprintf(`{"task_id":"%s%d"}`, strings.Repeat("x", 1000), i), llm)
				synctest.Wait()
				require.LessOrEqual(t, to.Stats().OpenRuns, int64(2))
			}
			require.NoError(t, to.Close())
			require.Len(t, s.named("invoke_agent bot"), 500, "long ids that differ stay different")
			for _, span := range s.all() {
				for _, v := range attributesOf(span.Attributes) {
					require.LessOrEqual(t, len(v), maxText)
				}
			}
		})
	})
}

func TestTraceContext(t *testing.T) {
	const trace, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	for name, c := range map[string]struct {
		meta          string
		trace, parent string
		other         string // the trace that it is not
		none          bool
	}{
		"traceparent":          {meta: `{"traceparent":"00-` + trace + `-` + span + `-01"}`, trace: trace, parent: span},
		"and a trace id":       {meta: `{"traceparent":"00-` + trace + `-` + span + `-01","trace_id":"1af7651916cd43dd8448eb211c80319c"}`, trace: trace, parent: span},
		"not sampled":          {meta: `{"traceparent":"00-` + trace + `-` + span + `-00"}`, none: true},
		"trace id":             {meta: `{"trace_id":"` + trace + `"}`, trace: trace},
		"trace id as a UUID":   {meta: `{"trace_id":"0AF76519-16cd-43dd-8448-eb211c80319c"}`, trace: trace},
		"zero UUID":            {meta: `{"trace_id":"00000000-0000-0000-0000-000000000000"}`},
		"hyphens elsewhere":    {meta: `{"trace_id":"0af7651916cd43dd-8448-eb21-1c80-319c"}`, other: trace},
		"bad traceparent":      {meta: `{"traceparent":"00-` + trace + `-` + strings.Repeat("0", 16) + `-01","trace_id":"` + trace + `"}`, trace: trace},
		"traceparent not text": {meta: `{"traceparent":7}`},
		"zero trace id":        {meta: `{"trace_id":"` + strings.Repeat("0", 32) + `"}`},
		"free trace id":        {meta: `{"trace_id":"my trace of thirty-two letters.."}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := &store{}
			to := newFor(t, s, "")
			pass(t, to, c.meta, user, stop)
			require.NoError(t, to.Close())
			if c.none {
				require.Empty(t, s.all())
				return
			}
			run := s.one(t, "invoke_agent bot")
			require.Equal(t, c.parent, hex.EncodeToString(run.ParentSpanId))
			require.Len(t, run.TraceId, 16)
			if c.trace != "" {
				require.Equal(t, c.trace, traceOf(run))
			}
			require.NotEqual(t, c.other, traceOf(run))
			require.Equal(t, traceOf(run), traceOf(s.one(t, "hookd stop")))
		})
	}
}

// TestSample wants whole traces, or nothing of them.
func TestSample(t *testing.T) {
	for part, want := range map[string][2]int{"0": {0, 0}, "0.5": {60, 140}, "1": {200, 200}} {
		s := &store{}
		to := newFor(t, s, `,"sample":`+part)
		for i := range 200 {
			pass(t, to, fmt.Sprintf(`{"task_id":"%d"}`, i), llm)
		}
		require.NoError(t, to.Close())
		runs := len(s.named("invoke_agent bot"))
		require.GreaterOrEqual(t, runs, want[0], part)
		require.LessOrEqual(t, runs, want[1], part)
		require.Len(t, s.named("hookd before_llm"), runs)
	}
}

func TestInactive(t *testing.T) {
	for _, config := range []string{``, `{}`, `{"endpoint":"","service_name":"x"}`} {
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1") // what other programs are told is not for hookd
		to, err := New(jsontext.Value(config), t.TempDir(), NewSink(), zap.NewNop())
		require.NoError(t, err)
		require.False(t, to.Active())
		rec := decided(t, llm, `{}`, protocol.Result{})
		require.Zero(t, testing.AllocsPerRun(10, func() { to.Take(rec) }))
		tell(t, to, protocol.EventTurnStart, `{}`)
		require.NoError(t, to.Close())
		require.Zero(t, to.Stats())
	}
}

// TestLeftOut wants dry runs and what hookd derives not to be traced.
func TestLeftOut(t *testing.T) {
	s := &store{}
	to := newFor(t, s, "")
	dry := decided(t, llm, `{}`, protocol.Result{})
	dry.Request.DryRun = true
	to.Take(dry)
	require.NoError(t, to.Observe(t.Context(), &hook.Event{Event: protocol.NewHookdEvent(protocol.EventTurnStart, nil, nil)}))
	require.NoError(t, to.Close())
	pass(t, to, `{}`, llm) // after the end
	tell(t, to, protocol.EventTurnStart, `{}`)
	require.NoError(t, to.Close())
	require.Empty(t, s.all())
}

// recorder shows a manager's records.
type recorder struct{ *Telemetry }

func (r recorder) Record(_ context.Context, rec *manager.Record) error {
	r.Telemetry.Take(rec)
	return nil
}

type denier struct{ hook.NoTool }

func (denier) BeforeTool(context.Context, *hook.ToolCall) (protocol.Decision, error) {
	return hook.Deny(canary), nil
}

// TestManager records what a real manager decides, and wants the hook to be one
// that can be mounted.
func TestManager(t *testing.T) {
	s := &store{}
	to := newFor(t, s, "")
	roles, err := hook.RolesOf(to)
	require.NoError(t, err)
	require.NotNil(t, roles.Observer)
	for _, kind := range Events() {
		_, err := protocol.ParseSubscription(kind)
		require.NoError(t, err)
	}

	guard, err := hook.RolesOf(denier{})
	require.NoError(t, err)
	m := manager.New(manager.Options{Recorder: recorder{to}})
	g, err := manager.NewGeneration(1, manager.Rules{ChainTimeout: time.Minute}, []*hook.Registration{{
		Name: "guard", Source: hook.InProcess, Roles: guard, Stages: guard.Stages, FailPolicy: hook.FailDeny,
		Timeout: time.Minute, ApprovalTimeout: time.Minute, ObserverTimeout: time.Minute,
	}})
	require.NoError(t, err)
	m.Swap(g)
	defer func() { require.NoError(t, m.Close(context.Background())) }()
	_, err = m.Call(t.Context(), bot, asks(t, tool, paramsOf(tool, `{}`)))
	require.NoError(t, err)
	_, err = m.Call(t.Context(), bot, asks(t, stop, paramsOf(stop, `{}`)))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = m.Call(ctx, bot, asks(t, tool, paramsOf(tool, `{"task_id":"gone"}`)))
	require.Error(t, err)
	require.NoError(t, to.Close())
	require.Equal(t, strings.TrimLeft(`
invoke_agent bot ok stop
  hookd before_tool ok deny
    hook guard ok deny
  hookd stop ok continue
invoke_agent bot timeout shutdown
  hookd before_tool error deny
    hook guard ok cancelled
`, "\n"), s.tree())
	require.NotContains(t, string(s.raw), canary)
}

// TestSink wants calls to reach the newest hook, and the one before it again
// when that is taken away, as when a reload is refused.
func TestSink(t *testing.T) {
	sink, stores := NewSink(), []*store{{}, {}, {}}
	var open []*Telemetry
	show := func(task string) { sink.Take(decided(t, llm, `{"task_id":"`+task+`"}`, protocol.Result{})) }
	show("nobody")
	_, active := sink.Stats()
	require.False(t, active)
	for i, s := range stores {
		to, err := build(jsontext.Value(there), "", sink, zap.NewNop(), s)
		require.NoError(t, err)
		open = append(open, to)
		show(fmt.Sprint(i))
	}
	idle, err := New(nil, "", sink, zap.NewNop())
	require.NoError(t, err)
	show("2")
	require.NoError(t, idle.Close())
	require.NoError(t, open[0].Close())
	show("2")
	require.NoError(t, open[2].Close())
	show("1")
	_, active = sink.Stats()
	require.True(t, active)
	require.NoError(t, open[1].Close())
	show("nobody")
	for i, calls := range []int{1, 2, 3} {
		require.Equal(t, fmt.Sprint(i), attributesOf(stores[i].one(t, "invoke_agent bot").Attributes)["task.id"])
		require.Len(t, stores[i].named("hookd before_llm"), calls)
	}
}

// TestFull wants what comes too fast to be counted, and nobody to wait.
func TestFull(t *testing.T) {
	to := &Telemetry{queue: make(chan *item, 1)} // and nobody who works
	pass(t, to, `{}`, llm, llm)
	tell(t, to, protocol.EventTurnEnd, `{}`)
	require.Len(t, to.queue, 1)
	require.EqualValues(t, 2, to.dropped.Load())
}
