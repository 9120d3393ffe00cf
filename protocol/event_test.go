package protocol

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
)

func TestDecodeEvent(t *testing.T) {
	for _, c := range []struct {
		in   string
		want string // as an observer gets it; "" = refused
		path string
		text string
	}{
		{in: `{"kind":"turn_start","time":"2026-01-02T03:04:05Z"}`,
			want: `{"kind":"turn_start","time":"2026-01-02T03:04:05Z","severity":"info","source":"agent","id":"e1","seq":7,"missed":2}`},
		{in: `{"severity":"warn","payload":{ "n":1.0 },"time":"2026-01-02T03:04:05.123456789+02:00","meta":{"own":1,"turn_id":"t"},"kind":"tool_error"}`,
			want: `{"kind":"tool_error","meta":{"own":1,"turn_id":"t"},"time":"2026-01-02T01:04:05.123456789Z","payload":{ "n":1.0 },"severity":"warn","source":"agent","id":"e1","seq":7,"missed":2}`},
		{in: `{"kind":"x_own.thing","meta":null,"payload":null,"severity":null,"time":null}`,
			want: `{"kind":"x_own.thing","time":"0001-01-01T00:00:00Z","severity":"info","source":"agent","id":"e1","seq":7,"missed":2}`},
		// What only hookd may say is not taken from an agent; what it does not know is passed on.
		{in: `{"own":{ "a":1 },"kind":"error","source":"hookd","id":"forged","seq":1,"missed":0,"other":null}`,
			want: `{"kind":"error","time":"0001-01-01T00:00:00Z","severity":"info","source":"agent","id":"e1","own":{ "a":1 },"other":null,"seq":7,"missed":2}`},
		{in: `{"kind":"error","source":7,"id":null,"seq":"x"}`, want: `{"kind":"error","time":"0001-01-01T00:00:00Z","severity":"info","source":"agent","id":"e1","seq":7,"missed":2}`},

		{in: `{}`, path: "kind", text: "is missing"},
		{in: `{"kind":null}`, path: "kind", text: "is missing"},
		{in: `{"Kind":"turn_start"}`, path: "kind", text: "is missing"},
		{in: `{"kind":1}`, path: "kind", text: "expected a string"},
		{in: `{"kind":"x_` + strings.Repeat("a", 127) + `"}`, path: "kind", text: "too long"},
		{in: `{"kind":"turn_strat"}`, path: "kind", text: `did you mean "turn_start"`},
		{in: `{"kind":"Turn_Start"}`, path: "kind", text: `did you mean "turn_start"`},
		{in: `{"kind":"mine"}`, path: "kind", text: "a kind of your own starts with x_"},
		{in: `{"kind":"error","meta":[]}`, path: "meta", text: "expected an object"},
		{in: `{"kind":"error","meta":{"turn_id":1}}`, path: "meta.turn_id", text: "expected a string"},
		{in: `{"kind":"error","payload":[]}`, path: "payload", text: "expected an object"},
		{in: `{"kind":"error","severity":"fatal"}`, path: "severity", text: "one of debug, info, warn, error"},
		{in: `{"kind":"error","severity":1}`, path: "severity", text: "expected a string"},
		{in: `{"kind":"error","time":1767322800}`, path: "time", text: "expected a string"},
		{in: `{"kind":"error","time":"yesterday"}`, path: "time", text: "expected RFC 3339"},
		{in: `{"kind":"error","time":"2026-01-02 03:04:05Z"}`, path: "time", text: "expected RFC 3339"},
		{in: `{"kind":"error","time":"9999-12-31T23:59:59-01:00"}`, path: "time", text: "expected RFC 3339"},
	} {
		ev, err := DecodeEvent(object(t, c.in))
		if c.want == "" {
			require.NotNil(t, err, c.in)
			require.Nil(t, ev, c.in)
			require.Equal(t, CodeInvalidParams, err.Code)
			require.ErrorContains(t, err, c.text, c.in)
			var data struct{ Path string }
			require.NoError(t, json.Unmarshal(err.Data, &data))
			require.Equal(t, c.path, data.Path, c.in)
			continue
		}
		require.Nil(t, err, c.in)
		require.Empty(t, ev.ID, "hookd sets it")
		ev.ID = "e1"
		require.Equal(t, c.want, string(ev.AppendJSON(nil, 7, 2)))
		again, err := DecodeEvent(object(t, c.want))
		require.Nil(t, err)
		again.ID = "e1"
		require.Equal(t, ev, again)
	}
}

func TestEventKinds(t *testing.T) {
	require.Len(t, AgentEvents(), 33)
	for _, k := range AgentEvents() {
		_, err := DecodeEvent(Object{{"kind", Quote(k)}})
		require.Nil(t, err, k)
		require.NotContains(t, HookdEvents(), k)
	}
	for _, k := range HookdEvents() {
		_, err := DecodeEvent(Object{{"kind", Quote(k)}})
		require.ErrorContains(t, err, "hookd's own", k)
	}
	for _, s := range Stages() {
		if s.Event != "" {
			require.Contains(t, AgentEvents(), s.Event, s.Name)
		}
	}
}

func TestHookdEvent(t *testing.T) {
	ev := NewHookdEvent(EventDecision, Object{{"turn_id", Quote("t")}}, jsontext.Value(`{"stage":"stop"}`))
	require.Equal(t, "hookd", ev.Source)
	require.Equal(t, time.UTC, ev.Time.Location())
	require.WithinDuration(t, time.Now(), ev.Time, time.Minute)
	ev.Time = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	require.Equal(t, `{"kind":"decision","meta":{"turn_id":"t"},"time":"2026-01-02T03:04:05Z","payload":{"stage":"stop"},"severity":"info","source":"hookd","seq":0,"missed":18446744073709551615}`,
		string(ev.AppendJSON(nil, 0, 1<<64-1)))
}

func TestParseSubscription(t *testing.T) {
	for _, c := range []struct {
		text    string
		want    string // hookd's words; "" = refused
		matches string
		not     string
		err     string
	}{
		{text: "*", want: "*", matches: "turn_start decision x_y"},
		{text: "all", want: "*", matches: "turn_start decision x_y"},
		{text: "", want: "*", matches: "turn_start"},
		{text: "turn_end", want: "turn_end", matches: "turn_end", not: "turn_start turn_end2 Turn_end"},
		{text: "decision", want: "decision", matches: "decision", not: "hook_state"},
		{text: "tool_*", want: "tool_*", matches: "tool_exec_start tool_error", not: "x_tool_ subagent_stop turn_end"},
		{text: "*_end", want: "*_end", matches: "turn_end session_end", not: "turn_start"},
		{text: "llm_re????", want: "llm_re????", matches: "", not: "llm_request llm_response", err: "matches no event"},
		{text: "llm_retr?", want: "llm_retr?", matches: "llm_retry", not: "llm_request"},
		{text: "x_mine", want: "x_mine", matches: "x_mine", not: "x_mine2"},
		{text: "x_my.thing", want: "x_my.thing", matches: "x_my.thing", not: "x_my_thing"},
		{text: "x_*", want: "x_*", matches: "x_ x_mine x_a/b x_a.b", not: "turn_end"},
		{text: "agent.turn.end", want: "turn_end", matches: "turn_end", not: "agent_end"},
		{text: "agent.tool.*", want: "tool_*", matches: "tool_exec_end", not: "turn_end"},
		{text: "agent.error", want: "agent_error", matches: "agent_error", not: "tool_error"},
		{text: "gateway.reload.failed", want: "gateway_reload_failed", not: "config_reloaded"},
		{text: "mcp.tool.call.start", want: "mcp_tool_call_start", not: "tool_exec_start"},
		{text: "turn_strat", err: `unknown event "turn_strat" (did you mean "turn_start"?)`},
		{text: "TURN_END", err: `did you mean "turn_end"`},
		{text: "beforeShellExec", err: "unknown event"},
		{text: " turn_end", err: `did you mean "turn_end"`},
		{text: "agent.turn.ended", err: "unknown event"},
		{text: "agent.", err: "unknown event"},
		{text: "turn.end", err: `did you mean "turn_end"`},
		{text: "gateway", err: "unknown event"},
		{text: "shell_*", err: "matches no event"},
		{text: "tool_[ab]*", err: "matches no event"},
		{text: "tool_[ab]", err: "unknown event"},
		{text: `tool_\*`, err: "matches no event"},
		{text: strings.Repeat("x_", 200), err: "too long"},
	} {
		s, err := ParseSubscription(c.text)
		if c.err != "" {
			require.ErrorContains(t, err, c.err, c.text)
			require.False(t, s.Matches(EventTurnEnd), "the zero value matches nothing")
			continue
		}
		require.NoError(t, err, c.text)
		require.Equal(t, c.want, s.String())
		for _, k := range strings.Fields(c.matches) {
			require.True(t, s.Matches(EventKind(k)), "%s matches %s", c.text, k)
		}
		for _, k := range strings.Fields(c.not) {
			require.False(t, s.Matches(EventKind(k)), "%s does not match %s", c.text, k)
		}
	}
}

// A config of PicoClaw may name these, in either spelling.
func TestParseSubscriptionPicoclaw(t *testing.T) {
	for old, dotted := range map[string]string{
		"turn_start": "agent.turn.start", "turn_end": "agent.turn.end",
		"llm_request": "agent.llm.request", "llm_delta": "agent.llm.delta", "llm_response": "agent.llm.response", "llm_retry": "agent.llm.retry",
		"context_compress": "agent.context.compress", "session_summarize": "agent.session.summarize",
		"tool_exec_start": "agent.tool.exec_start", "tool_exec_end": "agent.tool.exec_end", "tool_exec_skipped": "agent.tool.exec_skipped",
		"steering_injected": "agent.steering.injected", "follow_up_queued": "agent.follow_up.queued", "interrupt_received": "agent.interrupt.received",
		"subturn_spawn": "agent.subturn.spawn", "subturn_end": "agent.subturn.end",
		"subturn_result_delivered": "agent.subturn.result_delivered", "subturn_orphan": "agent.subturn.orphan",
		"error": "agent.error",
	} {
		s, err := ParseSubscription(old)
		require.NoError(t, err)
		require.True(t, s.Matches(EventKind(old)))
		s, err = ParseSubscription(dotted)
		require.NoError(t, err)
		if old != "error" { // its dotted form says whose error it is
			require.True(t, s.Matches(EventKind(old)), dotted)
		}
	}
	for _, dotted := range strings.Fields("channel.lifecycle.initialized channel.webhook.registered channel.message.outbound_sent channel.rate_limited " +
		"bus.publish.failed bus.close.drained gateway.start gateway.ready gateway.shutdown gateway.reload.started mcp.server.connected mcp.tool.discovered mcp.tool.call.end") {
		s, err := ParseSubscription(dotted)
		require.NoError(t, err, dotted)
		for _, k := range append(AgentEvents(), HookdEvents()...) {
			require.False(t, s.Matches(k), "%s is no event of an agent's loop", dotted)
		}
	}
}

func TestFrozenEventsReadTheSame(t *testing.T) {
	params, err := DecodeObject([]byte(`{"kind":"tool_exec_end","meta":{"a":1},"payload":{"tool":"bash"},"severity":"warn","x":[1]}`), 0)
	require.NoError(t, err)
	ev, bad := DecodeEvent(params)
	require.Nil(t, bad)
	ev.ID = "7"
	first, second := ev.AppendJSON(nil, 1, 0), ev.AppendJSON([]byte("["), 2, 3)
	ev.Freeze()
	for range 2 {
		require.Equal(t, string(first), string(ev.AppendJSON(nil, 1, 0)))
		require.Equal(t, string(second), string(ev.AppendJSON([]byte("["), 2, 3)))
	}
}
