package metrics

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/manager"
	"github.com/hookd/hookd/protocol"
)

// mounted returns a meter that a hook with this config has turned on until the
// test ends, and the hook's log.
func mounted(t testing.TB, config string, o Options) (*Meter, *Hook, *observer.ObservedLogs) {
	t.Helper()
	m := NewMeter(o)
	core, logs := observer.New(zap.InfoLevel)
	h, err := New(jsontext.Value(config), t.TempDir(), m, zap.New(core))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.Close()) })
	return m, h, logs
}

// call is a call as a recorder is shown it.
func call(t testing.TB, stage protocol.Stage, params string, change ...func(*manager.Record)) *manager.Record {
	t.Helper()
	members, err := protocol.ParseObject(jsontext.Value(params))
	require.NoError(t, err)
	req, bad := protocol.DecodeRequest(protocol.NewStageTable().Stage(stage), members)
	require.Nil(t, bad, "%v", bad)
	rec := &manager.Record{Caller: &manager.Caller{}, Request: req, Final: req.Subject, Result: &protocol.Result{}, Started: time.Now(), Duration: 3 * time.Millisecond}
	for _, c := range change {
		c(rec)
	}
	return rec
}

func tool(session, agent string) string {
	return fmt.Sprintf(`{"tool":"bash","arguments":{},"meta":{"session_id":%q,"agent":%q}}`, session, agent)
}

func says(action protocol.Action) func(*manager.Record) {
	return func(r *manager.Record) { r.Result.Action = action }
}

func trail(steps ...protocol.Step) func(*manager.Record) {
	return func(r *manager.Record) { r.Result.Trail = steps }
}

// scrape returns the page that a collector reads.
func scrape(t testing.TB, m *Meter) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	require.Equal(t, 200, w.Code, w.Body.String())
	return w.Body.String()
}

// has wants a line of a page.
func has(t testing.TB, page string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !slices.Contains(strings.Split(page, "\n"), line) {
			name, _, _ := strings.Cut(line, "{")
			t.Fatalf("there is no line %q, but\n%s", line, strings.Join(regexp.MustCompile(`(?m)^`+name+`.*$`).FindAllString(page, -1), "\n"))
		}
	}
}

func TestCalls(t *testing.T) {
	m, _, _ := mounted(t, `{"agents":["nightly"]}`, Options{Agents: map[string]string{"claude": "claude", "claude-code": "claude"}})
	m.Take(call(t, protocol.StageBeforeTool, tool("s", "claude"), trail(
		protocol.Step{Hook: "a", Outcome: protocol.OutcomeContinue, Duration: 70 * time.Microsecond},
		protocol.Step{Hook: "b", Outcome: protocol.OutcomeTimeout, Duration: 5 * time.Second},
	)))
	m.Take(call(t, protocol.StageBeforeTool, tool("s", "claude-code"), says(protocol.ActionDeny), trail(
		protocol.Step{Hook: "a", Outcome: protocol.OutcomeDeny, Duration: time.Millisecond},
		protocol.Step{Hook: "b", Outcome: protocol.OutcomeNotRun},
	)))
	m.Take(call(t, protocol.StageBeforeTool, tool("s", "nightly")))
	m.Take(call(t, protocol.StageBeforeTool, tool("s", "somebody")))
	m.Take(call(t, protocol.StageBeforeTool, `{"tool":"bash","arguments":{}}`, func(r *manager.Record) { r.Caller.Name = "claude" }, func(r *manager.Record) { r.Err = errors.New("gone") }))
	m.Take(call(t, protocol.StageApproveTool, tool("s", "claude"), func(r *manager.Record) { r.Result.Approval = &protocol.ApprovalResult{Approved: true} }))
	m.Take(call(t, protocol.StageApproveTool, tool("s", "claude"), func(r *manager.Record) { r.Result.Approval = &protocol.ApprovalResult{} }))
	m.Take(call(t, protocol.StageBeforeTool, tool("s", "claude"), func(r *manager.Record) { r.Request.DryRun = true })) // counts nowhere
	page := scrape(t, m)
	has(t, page,
		`hookd_calls_total{action="continue",agent="claude",stage="before_tool"} 1`,
		`hookd_calls_total{action="deny",agent="claude",stage="before_tool"} 1`,
		`hookd_calls_total{action="continue",agent="nightly",stage="before_tool"} 1`,
		`hookd_calls_total{action="continue",agent="other",stage="before_tool"} 1`,
		`hookd_calls_total{action="cancelled",agent="claude",stage="before_tool"} 1`,
		`hookd_calls_total{action="allow",agent="claude",stage="approve_tool"} 1`,
		`hookd_calls_total{action="deny",agent="claude",stage="approve_tool"} 1`,
		`hookd_decision_duration_seconds_bucket{stage="before_tool",le="0.0025"} 0`,
		`hookd_decision_duration_seconds_bucket{stage="before_tool",le="0.005"} 5`,
		`hookd_hook_turns_total{hook="a",outcome="continue",stage="before_tool"} 1`,
		`hookd_hook_turns_total{hook="a",outcome="deny",stage="before_tool"} 1`,
		`hookd_hook_turns_total{hook="b",outcome="not_run",stage="before_tool"} 1`,
		`hookd_hook_failures_total{hook="b",outcome="timeout"} 1`,
		`hookd_hook_duration_seconds_bucket{hook="a",stage="before_tool",le="0.0001"} 1`,
		`hookd_hook_duration_seconds_count{hook="b",stage="before_tool"} 1`,
		`hookd_tool_calls_total{agent="claude"} 1`,
	)
	require.NotContains(t, page, `hookd_hook_failures_total{hook="a"`)
}

// TestOnlyWhileMounted wants nothing to be counted while no hook is there, and
// what was counted to stay.
func TestOnlyWhileMounted(t *testing.T) {
	m := NewMeter(Options{})
	m.Take(call(t, protocol.StageStop, `{}`))
	m.SummaryTriggered()
	_, on := m.Session("@")
	require.False(t, on)
	mount := func(config string) *Hook {
		h, err := New(jsontext.Value(config), t.TempDir(), m, zap.NewNop())
		require.NoError(t, err)
		return h
	}
	one := mount(`{"every_steps":1}`)
	m.Take(call(t, protocol.StageStop, `{}`))
	m.SummaryTriggered()
	two := mount(`{"every_steps":2}`) // a reload makes the new one first
	require.Same(t, two, m.active.Load())
	require.NoError(t, two.Close()) // and is refused
	require.Same(t, one, m.active.Load())
	m.Take(call(t, protocol.StageStop, `{}`))
	require.NoError(t, one.Close())
	m.Take(call(t, protocol.StageStop, `{}`))
	m.SummaryTriggered()
	m.Gone("@")
	has(t, scrape(t, m), `hookd_calls_total{action="continue",agent="other",stage="stop"} 2`, `hook_summarization_triggered_total 1`)
}

func TestSummaries(t *testing.T) {
	m, _, _ := mounted(t, ``, Options{})
	m.SummaryTriggered()
	m.SummaryBefore(9000)
	m.SummaryAfter(1000)
	m.SummaryFallback()
	m.SummaryTook(1500 * time.Microsecond)
	has(t, scrape(t, m), "hook_summarization_triggered_total 1", "hook_summarization_tokens_before_sum 9000", "hook_summarization_tokens_after_sum 1000",
		"hook_summarization_fallback_total 1", "hook_summarization_duration_ms_sum 1.5", `hook_summarization_duration_ms_bucket{le="10"} 1`)
}

// TestFigures wants what is told at stages and in events to count once.
func TestFigures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h, _ := mounted(t, ``, Options{Agents: map[string]string{"a": "a"}})
		began := time.Now()
		event := func(kind protocol.EventKind, source, payload string) {
			ev := &protocol.Event{Kind: kind, Source: source, Meta: protocol.Object{{Name: "agent", Value: protocol.Quote("a")}, {Name: "session_id", Value: protocol.Quote("s")}}, Payload: jsontext.Value(payload)}
			require.NoError(t, h.Observe(t.Context(), &hook.Event{Event: ev}))
		}
		const meta = `"meta":{"session_id":"s","agent":"a"}`
		want := Figures{Started: began, Last: began}
		check := func() {
			t.Helper()
			f, on := m.Session("s")
			require.True(t, on)
			require.Equal(t, want, f)
		}
		m.Take(call(t, protocol.StageBeforeLLM, `{"messages":[],`+meta+`}`))
		want.Steps = 1
		check()
		time.Sleep(time.Minute)
		m.Take(call(t, protocol.StageAfterLLM, `{"response":{"content":"x","usage":{"input_tokens":10,"output_tokens":5}},`+meta+`}`))
		want.Last, want.Usage.Input, want.Usage.Output = time.Now(), 10, 5
		check()
		event(protocol.EventLLMResponse, "hookd", `{"usage":{"input_tokens":10,"output_tokens":5}}`) // made of the stage
		event(protocol.EventLLMResponse, "agent", `{"usage":{"input_tokens":10,"output_tokens":5}}`) // the same, told twice
		check()
		event(protocol.EventLLMResponse, "agent", `{"usage":{"total_tokens":100}}`)
		want.Steps, want.Usage.Total = 2, 100
		check()
		m.Take(call(t, protocol.StageBeforeTool, `{"tool":"x","arguments":{},`+meta+`}`, says(protocol.ActionDeny)))
		want.Denials = 1
		check()
		m.Take(call(t, protocol.StageBeforeTool, `{"tool":"x","arguments":{},`+meta+`}`))
		m.Take(call(t, protocol.StageAfterTool, `{"tool":"x","arguments":{},"result":{"content":"","is_error":true},`+meta+`}`))
		event(protocol.EventToolError, "agent", `{}`)
		event(protocol.EventToolExecEnd, "agent", `{"result":{"is_error":true}}`)
		event(protocol.EventAgentTimeout, "hookd", `{}`)
		want.ToolCalls, want.ToolErrors, want.AgentErrors = 1, 1, 1
		check()
		require.Equal(t, int64(2), want.Errors())
		event(protocol.EventToolExecEnd, "agent", `{"is_error":true}`)
		want.ToolCalls, want.ToolErrors = 2, 2
		check()
		has(t, scrape(t, m), `hookd_steps_total{agent="a"} 2`, `hookd_tool_calls_total{agent="a"} 2`, `hookd_tool_errors_total{agent="a"} 2`,
			`hookd_agent_errors_total{agent="a"} 1`, `hookd_tokens_total{agent="a",direction="input"} 10`,
			`hookd_tokens_total{agent="a",direction="output"} 5`, `hookd_tokens_total{agent="a",direction="unsplit"} 100`, `hookd_sessions 1`)
		event(protocol.EventSessionEnd, "agent", ``)
		want = Figures{}
		check()
		has(t, scrape(t, m), `hookd_steps_total{agent="a"} 2`, `hookd_sessions 0`)
	})
}

// TestLines wants a line every so many steps and at the end, and none at 0.
func TestLines(t *testing.T) {
	step := func(t *testing.T, m *Meter) {
		m.Take(call(t, protocol.StageAfterLLM, `{"response":{"content":"","usage":{"total_tokens":7}},"meta":{"session_id":"s"}}`))
	}
	end := &hook.Event{Event: &protocol.Event{Kind: protocol.EventSessionEnd, Meta: protocol.Object{{Name: "session_id", Value: protocol.Quote("s")}}}}
	synctest.Test(t, func(t *testing.T) {
		m, h, logs := mounted(t, `{"every_steps":2}`, Options{})
		for range 5 {
			step(t, m)
		}
		m.Gone("nobody")
		m.Gone("s")
		require.NoError(t, h.Observe(t.Context(), end))
		require.NoError(t, h.Observe(t.Context(), end)) // is over already
		synctest.Wait()
		var lines []string
		for _, l := range logs.All() {
			fields := l.ContextMap()
			require.Equal(t, "s", fields["session"])
			lines = append(lines, fmt.Sprintf("%s: %d steps, %d tokens", l.Message, fields["steps"], fields["tokens_unsplit"]))
		}
		require.Equal(t, []string{
			"session so far: 2 steps, 14 tokens", "session so far: 4 steps, 28 tokens",
			"session left: the agent disconnected: 5 steps, 35 tokens", "session ended: 5 steps, 35 tokens",
		}, lines)
	})
	synctest.Test(t, func(t *testing.T) {
		m, h, logs := mounted(t, `{"every_steps":0}`, Options{})
		for range 5 {
			step(t, m)
		}
		m.Gone("s")
		require.NoError(t, h.Observe(t.Context(), end))
		synctest.Wait()
		require.Zero(t, logs.Len())
	})
}

// TestNobodyFillsTheMemory wants what agents choose to stay bounded.
func TestNobodyFillsTheMemory(t *testing.T) {
	m, _, _ := mounted(t, `{"every_steps":0}`, Options{Sessions: 10})
	for i := range 2 * maxHooks {
		m.Take(call(t, protocol.StageBeforeTool, tool(fmt.Sprint("session", i), fmt.Sprint("agent", i)), trail(protocol.Step{Hook: fmt.Sprint("hook", i), Outcome: protocol.OutcomeContinue})))
	}
	page := scrape(t, m)
	has(t, page, "hookd_sessions 10", fmt.Sprintf(`hookd_hook_turns_total{hook="other",outcome="continue",stage="before_tool"} %d`, maxHooks),
		fmt.Sprintf(`hookd_calls_total{action="continue",agent="other",stage="before_tool"} %d`, 2*maxHooks))
	require.Equal(t, maxHooks+1, strings.Count(page, "\nhookd_hook_turns_total{"))
	require.NotContains(t, page, "session1")
	require.NotContains(t, page, "agent1")
}

// TestTogether takes from many goroutines; the race detector looks on.
func TestTogether(t *testing.T) {
	m, _, _ := mounted(t, `{"every_steps":1}`, Options{})
	var wg sync.WaitGroup
	for i := range 8 {
		rec := call(t, protocol.StageAfterLLM, fmt.Sprintf(`{"response":{"content":"","usage":{"total_tokens":1}},"meta":{"session_id":"s%d"}}`, i%3), trail(protocol.Step{Hook: fmt.Sprint(i % 2), Outcome: protocol.OutcomeContinue}))
		wg.Go(func() {
			for range 100 {
				m.Take(rec)
			}
		})
	}
	wg.Go(func() {
		for range 5 {
			h, err := New(nil, "", m, zap.NewNop())
			if err == nil {
				err = h.Close()
			}
			if err != nil {
				t.Error(err)
			}
			scrape(t, m)
		}
	})
	wg.Wait()
	has(t, scrape(t, m), `hookd_calls_total{action="continue",agent="other",stage="after_llm"} 800`, `hookd_tokens_total{agent="other",direction="unsplit"} 800`)
}

// TestTakeMakesNoGarbage holds the cost of a call: the texts of its meta, and
// nothing for its series.
func TestTakeMakesNoGarbage(t *testing.T) {
	m, _, _ := mounted(t, ``, Options{Agents: map[string]string{"claude": "claude"}})
	rec := aCall(t)
	m.Take(rec)
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() { m.Take(rec) }), 4.0)
}

func aCall(t testing.TB) *manager.Record {
	return call(t, protocol.StageBeforeTool, tool("s-1", "claude"), trail(
		protocol.Step{Hook: "policy", Outcome: protocol.OutcomeContinue, Duration: 80 * time.Microsecond},
		protocol.Step{Hook: "secrets", Outcome: protocol.OutcomeContinue, Duration: 400 * time.Microsecond},
		protocol.Step{Hook: "guard", Outcome: protocol.OutcomeTimeout, Duration: 2 * time.Second},
	))
}

func BenchmarkTake(b *testing.B) {
	m, _, _ := mounted(b, ``, Options{Agents: map[string]string{"claude": "claude"}})
	rec := aCall(b)
	b.ReportAllocs()
	for b.Loop() {
		m.Take(rec)
	}
}

// BenchmarkTakeOff is what a call costs while nobody counts.
func BenchmarkTakeOff(b *testing.B) {
	m, rec := NewMeter(Options{}), aCall(b)
	b.ReportAllocs()
	for b.Loop() {
		m.Take(rec)
	}
}

// FuzzObserve wants payloads of any shape to be borne.
func FuzzObserve(f *testing.F) {
	f.Add("llm_response", `{"usage":{"input_tokens":1}}`, `{"response":{"usage":{"total_tokens":1}},"meta":{"session_id":"s"}}`)
	f.Add("tool_exec_end", `{"result":{"is_error":true}}`, `{"response":[]}`)
	f.Add("error", `[]`, `{"response":{"usage":[1e999]}}`)
	m, h, _ := mounted(f, `{"every_steps":1}`, Options{Sessions: 10})
	stage := protocol.NewStageTable().Stage(protocol.StageAfterLLM)
	f.Fuzz(func(t *testing.T, kind, payload, params string) {
		if !jsontext.Value(payload).IsValid() {
			payload = "{}"
		}
		require.NoError(t, h.Observe(context.Background(), &hook.Event{Event: &protocol.Event{Kind: protocol.EventKind(kind), Source: "agent", Payload: jsontext.Value(payload)}}))
		members, err := protocol.DecodeObject([]byte(params), 0)
		if err != nil {
			return
		}
		req, bad := protocol.DecodeRequest(stage, members)
		if bad != nil {
			return
		}
		m.Take(&manager.Record{Caller: &manager.Caller{}, Request: req, Result: &protocol.Result{}})
		scrape(t, m)
	})
}
