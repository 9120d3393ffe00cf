package dialect

import (
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/protocol"
)

func stage(name protocol.Stage) *protocol.StageInfo { return protocol.NewStageTable().Stage(name) }

// members reads an object as it comes from a wire.
func parsed(t testing.TB, text string) protocol.Object {
	t.Helper()
	o, err := protocol.DecodeObject([]byte(text), 0)
	require.NoError(t, err)
	return o
}

// request is what a hookd agent asks with these params.
func request(t testing.TB, name protocol.Stage, params string) *protocol.Request {
	t.Helper()
	req, bad := protocol.DecodeRequest(stage(name), parsed(t, params))
	require.Nil(t, bad)
	return req
}

const ourMetaText = `"meta":{"agent_id":"main","session_id":"s-1","turn_id":"t-1","iteration":2}`

func TestHello(t *testing.T) {
	hello := protocol.HookHello{Name: "gate", Version: 1, Modes: []string{"tool"}, Stages: []protocol.Stage{"before_tool"}}
	for d, last := range map[Dialect]string{"": "", Hookd: "", Picoclaw: "", PicoclawSite: "1"} {
		params, err := d.Hello(hello)
		require.NoError(t, err)
		o := parsed(t, string(params))
		require.Equal(t, `"gate"`, string(o.Get("name")))
		require.Equal(t, "1", string(o.Get("version")), "a number, which scripts compare")
		require.Equal(t, `["tool"]`, string(o.Get("modes")))
		require.Equal(t, last, string(o.Get("protocol_version")))
	}
}

func TestParams(t *testing.T) {
	pascal := `"AgentID":"main","TurnID":"t-1","ParentTurnID":"","SessionKey":"s-1","Iteration":2,`
	meta := `{"agent_id":"main","session_id":"s-1","turn_id":"t-1","iteration":2,` + pascal
	for name, c := range map[string]struct {
		dialect        Dialect
		stage          protocol.Stage
		params, wanted string
	}{
		"hookd adds nothing": {
			Hookd, protocol.StageBeforeTool, `{` + ourMetaText + `,"tool":"bash","arguments":{"n":1.50}}`,
			`{` + ourMetaText + `,"tool":"bash","arguments":{"n":1.50},"deadline_ms":7}`,
		},
		"no dialect is hookd's": {"", protocol.StageBeforeTool, `{"tool":"bash","arguments":{}}`, `{"tool":"bash","arguments":{},"deadline_ms":7}`},
		"before_tool": {
			Picoclaw, protocol.StageBeforeTool,
			`{` + ourMetaText + `,"context":{"inbound":{"channel":"cli","chat_id":"c-9"}},"call_id":"call-1","tool":"bash","arguments":{"n":1.50}}`,
			`{"meta":` + meta + `"TracePath":"turn.tool.before","Source":"runTurn"},"context":{"inbound":{"channel":"cli","chat_id":"c-9"}},"call_id":"call-1",` +
				`"tool":"bash","arguments":{"n":1.50},"channel":"cli","chat_id":"c-9","tool_call_id":"call-1","deadline_ms":7}`,
		},
		"approve_tool without meta": {
			Picoclaw, protocol.StageApproveTool, `{"tool":"bash","arguments":{}}`,
			`{"meta":{"AgentID":"","TurnID":"","ParentTurnID":"","SessionKey":"","Iteration":0,"TracePath":"turn.tool.approve","Source":"runTurn"},` +
				`"tool":"bash","arguments":{},"channel":"","chat_id":"","deadline_ms":7}`,
		},
		"what came from PicoClaw stays": {
			Picoclaw, protocol.StageBeforeLLM, `{"meta":{"AgentID":"x","TracePath":"here"},"messages":[],"channel":"tg"}`,
			`{"meta":{"AgentID":"x","TracePath":"here","TurnID":"","ParentTurnID":"","SessionKey":"","Iteration":0,"Source":"runTurn"},"messages":[],"channel":"tg","chat_id":"","deadline_ms":7}`,
		},
		"after_tool": {
			Picoclaw, protocol.StageAfterTool,
			`{` + ourMetaText + `,"tool":"bash","arguments":{},"duration_ms":15.5,"result":{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"is_error":false}}`,
			`{"meta":` + meta + `"TracePath":"turn.tool.after","Source":"runTurn"},"result":{"for_llm":"ab","is_error":false},` +
				`"tool":"bash","arguments":{},"duration_ms":15.5,"channel":"","chat_id":"","duration":15500000,"deadline_ms":7}`,
		},
		"site": {
			PicoclawSite, protocol.StageBeforeTool, `{` + ourMetaText + `,"tool":"bash","arguments":{"n":1.50},"name":"mine"}`,
			`{"meta":` + meta + `"TracePath":"turn.tool.before","Source":"runTurn"},"tool":"bash","arguments":{"n":1.50},"name":"bash","channel":"","chat_id":"","args":{"n":1.50},"deadline_ms":7}`,
		},
		"site, after_llm": {
			PicoclawSite, protocol.StageAfterLLM, `{"response":{"content":"hi"}}`,
			`{"meta":{"AgentID":"","TurnID":"","ParentTurnID":"","SessionKey":"","Iteration":0,"TracePath":"turn.llm.response","Source":"runTurn"},"response":{"content":"hi"},"channel":"","chat_id":"","deadline_ms":7}`,
		},
		"a stage that PicoClaw has not": {Picoclaw, protocol.StageStop, `{"request":{"reason":"done"}}`, `{"request":{"reason":"done"},"deadline_ms":7}`},
	} {
		t.Run(name, func(t *testing.T) {
			req := request(t, c.stage, c.params)
			before := string(req.AppendParams(nil, 0))
			require.Equal(t, c.wanted, string(c.dialect.Params(req, 7)))
			require.Equal(t, before, string(req.AppendParams(nil, 0)), "the request itself stays as it is")
		})
	}
}

func TestEvent(t *testing.T) {
	event := func(kind protocol.EventKind, payload string) *protocol.Event {
		ev := &protocol.Event{
			Kind: kind, Meta: parsed(t, `{"agent_id":"main","session_id":"s","turn_id":"t"}`),
			Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Severity: "info", Source: "agent", ID: "e-1",
		}
		if payload != "" {
			ev.Payload = jsontext.Value(payload)
		}
		return ev
	}
	method, params := Hookd.Event(event("turn_start", `{"message":"hi"}`), 3, 1)
	require.Equal(t, "hook.event", method)
	require.Contains(t, string(params), `"kind":"turn_start"`)

	for _, c := range []struct {
		kind          protocol.EventKind
		payload       string
		theirs, wants string
	}{
		{"turn_start", `{"message":{"role":"user","content":"hi"}}`, "agent.turn.start", `{"UserMessage":"hi"}`},
		{"turn_start", `{"message":"hi"}`, "agent.turn.start", `{"UserMessage":"hi"}`},
		{"turn_end", `{"status":"error","steps":3,"duration_ms":2.5}`, "agent.turn.end", `{"Status":"error","Iterations":3,"Duration":2500000}`},
		{"turn_end", `{"request":{"last_message":{"role":"assistant","content":"done"}}}`, "agent.turn.end", `{"FinalContent":"done","FinalContentLen":4,"Status":"completed"}`},
		{"tool_exec_start", `{"tool":"bash","arguments":{"n":1.50}}`, "agent.tool.exec_start", `{"Tool":"bash","Arguments":{"n":1.50}}`},
		{"tool_exec_end", `{"tool":"bash","duration_ms":15,"is_error":false,"for_llm_len":4}`, "agent.tool.exec_end", `{"Tool":"bash","Duration":15000000,"IsError":false,"ForLLMLen":4}`},
		{"follow_up_queued", `{"source_tool":"x"}`, "agent.follow_up.queued", `{"SourceTool":"x"}`},
		{"subturn_result_delivered", `{"target_chat_id":"c"}`, "agent.subturn.result_delivered", `{"TargetChatID":"c"}`},
		{"agent_error", `{"message":"no"}`, "agent.error", `{"Message":"no"}`},
		{"decision", `{"stage":"before_tool","duration_us":5}`, "hookd.decision", `{"stage":"before_tool","duration_us":5}`},
		{"x_mcp.tool.call.end", `{"duration_ms":5}`, "mcp.tool.call.end", `{"duration_ms":5}`},
		{"x_mine", ``, "hookd.x_mine", `{}`},
	} {
		t.Run(string(c.kind), func(t *testing.T) {
			method, params := Picoclaw.Event(event(c.kind, c.payload), 3, 1)
			require.Equal(t, "hook.runtime_event", method)
			o := parsed(t, string(params))
			require.Equal(t, c.theirs, protocol.Unquote(o.Get("kind")))
			require.Equal(t, c.wants, string(o.Get("payload")))
			require.Equal(t, `{"agent_id":"main","session_key":"s","turn_id":"t"}`, string(o.Get("scope")))
			require.Equal(t, "3 1", string(o.Get("seq"))+" "+string(o.Get("missed")))
			require.Equal(t, `"2026-01-02T03:04:05Z"`, string(o.Get("time")))

			method, params = PicoclawSite.Event(event(c.kind, c.payload), 3, 1)
			require.Equal(t, "hook.event", method)
			o = parsed(t, string(params))
			require.Equal(t, string(c.kind), protocol.Unquote(o.Get("type")))
			require.Equal(t, c.wants, string(o.Get("data")))
		})
	}
}

// Every kind of an agent's loop that PicoClaw has comes back as it went.
func TestEventKindsRoundTrip(t *testing.T) {
	for _, k := range theirKinds() {
		require.Equal(t, protocol.EventKind(k.ours), ourKind(theirKind(protocol.EventKind(k.ours))))
		s, err := protocol.ParseSubscription(agentPrefix + k.theirs)
		require.NoError(t, err)
		require.True(t, s.Matches(protocol.EventKind(k.ours)), "an entry that observes %s", k.theirs)
	}
}

func TestNames(t *testing.T) {
	for ours, theirs := range map[string]string{
		"tool": "Tool", "for_llm_len": "ForLLMLen", "is_error": "IsError", "target_chat_id": "TargetChatID", "parent_turn_id": "ParentTurnID",
		"omitted_oversized": "OmittedOversized", "final_content_len": "FinalContentLen", "agent_id": "AgentID",
	} {
		require.Equal(t, theirs, pascal(ours))
		require.Equal(t, ours, snake(theirs))
	}
}

func TestDurations(t *testing.T) {
	for ns, ms := range map[string]string{"15000000": "15", "1": "0.000001", "0": "0", "100000000": "100", "1500000": "1.5"} {
		require.Equal(t, ms, string(milliseconds(jsontext.Value(ns))))
		require.Equal(t, ns, string(nanoseconds(jsontext.Value(ms))))
	}
	require.Equal(t, "0", string(nanoseconds(jsontext.Value(`1e999999999`))))
	require.Nil(t, milliseconds(jsontext.Value(`"5"`)))
}
