package dialect

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/protocol"
)

func TestRecognise(t *testing.T) {
	for name, c := range map[string]struct {
		method, params string
		picoclaw       bool
	}{
		"greeting":           {"hook.hello", `{"name":"hookd","version":1,"modes":["tool"]}`, true},
		"hookd's greeting":   {"hook.hello", `{"name":"a","version":1}`, false},
		"hookd as a host":    {"hook.hello", `{"name":"a","version":1,"modes":["tool"],"stages":["before_tool"]}`, false},
		"modes is no list":   {"hook.hello", `{"name":"a","modes":"tool"}`, false},
		"meta":               {"hook.before_tool", `{"meta":{"AgentID":"a","SessionKey":"s"},"tool":"t","arguments":{}}`, true},
		"hookd's meta":       {"hook.before_tool", `{"meta":{"agent_id":"a","session_id":"s"},"tool":"t","arguments":{}}`, false},
		"only text in meta":  {"hook.before_tool", `{"meta":{"cwd":"\"SessionKey\""},"tool":"t","arguments":{}}`, false},
		"deep in meta":       {"hook.before_tool", `{"meta":{"native":{"SessionKey":"s"}},"tool":"t","arguments":{}}`, false},
		"meta is no object":  {"hook.before_tool", `{"meta":["SessionKey"],"tool":"t","arguments":{}}`, false},
		"its kind of events": {"hook.runtime_event", `{"kind":"agent.turn.start"}`, true},
		"hookd's events":     {"hook.event", `{"kind":"turn_start"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.picoclaw, Recognise(c.method, parsed(t, c.params)) != nil)
		})
	}
}

func TestGreet(t *testing.T) {
	var none *Host
	h := &protocol.AgentHello{Name: "a", DeadlineMS: 7}
	none.Greet(h)
	require.Equal(t, &protocol.AgentHello{Name: "a", DeadlineMS: 7}, h)
	Recognise("hook.hello", parsed(t, `{"modes":["observe","tool"]}`)).Greet(h)
	require.Equal(t, &protocol.AgentHello{Name: "a", DeadlineMS: 4800, ApprovalDeadlineMS: 59800, Events: true}, h)
	Recognise("hook.hello", parsed(t, `{"modes":["tool"]}`)).Greet(h)
	require.False(t, h.Events)

	b, err := (&Host{}).Welcome(protocol.AgentWelcome{OK: true, Generation: 5})
	require.NoError(t, err)
	require.Equal(t, `{"ok":true,"name":"hookd"}`, string(b))
	b, err = none.Welcome(protocol.AgentWelcome{OK: true, Generation: 5})
	require.NoError(t, err)
	require.Contains(t, string(b), `"generation":5`)
}

func TestHostRequest(t *testing.T) {
	for name, c := range map[string]struct {
		stage          protocol.Stage
		params, wanted string
	}{
		"meta": {
			protocol.StageBeforeTool, `{"meta":{"AgentID":"a","TurnID":"","ParentTurnID":"","SessionKey":"s","Iteration":3,"TracePath":"p","Source":"x"},"tool":"t","arguments":{"n":9007199254740993}}`,
			`{"meta":{"AgentID":"a","TurnID":"","ParentTurnID":"","SessionKey":"s","Iteration":3,"TracePath":"p","Source":"x","agent_id":"a","session_id":"s","iteration":3},"tool":"t","arguments":{"n":9007199254740993}}`,
		},
		"nulls of a Go program": {protocol.StageBeforeLLM, `{"meta":null,"messages":null,"tools":null,"model":"m"}`, `{"messages":[],"model":"m"}`},
		"no arguments":          {protocol.StageApproveTool, `{"tool":"t","arguments":null}`, `{"tool":"t","arguments":{}}`},
		"no response":           {protocol.StageAfterLLM, `{"response":null}`, `{"response":{}}`},
		"a tool's result": {
			protocol.StageAfterTool, `{"tool":"t","arguments":{},"result":{"for_llm":"x","for_user":"","is_error":false},"duration":1500000}`,
			`{"result":{"content":"x","for_user":"","is_error":false},"tool":"t","arguments":{},"duration_ms":1.5,"duration":1500000}`,
		},
		"a stage that PicoClaw has not": {protocol.StageStop, `{"meta":{"SessionKey":"s"},"request":{}}`, `{"meta":{"SessionKey":"s"},"request":{}}`},
	} {
		t.Run(name, func(t *testing.T) {
			req, bad := (&Host{}).Request(stage(c.stage), parsed(t, c.params))
			require.Nil(t, bad)
			require.Equal(t, c.wanted, string(req.AppendParams(nil, 0)))
			var none *Host
			own, bad := none.Request(stage(c.stage), parsed(t, c.params))
			if bad == nil {
				require.NotContains(t, string(own.AppendParams(nil, 0)), `"agent_id"`)
			}
		})
	}
	req, bad := (&Host{}).Request(stage(protocol.StageBeforeTool), parsed(t, `{"tool":"t","arguments":{}}`))
	require.Nil(t, bad)
	require.EqualValues(t, 4800, req.DeadlineMS, "also for approvals that hookd asks for itself")
	_, bad = (&Host{}).Request(stage(protocol.StageBeforeTool), parsed(t, `{"tool":"","arguments":{}}`))
	require.ErrorContains(t, bad, "tool: is empty")
}

const hostCall = `{"meta":{"SessionKey":"s"},"context":{"a":1},"tool":"t","arguments":{"z":1,"a":"<b>"},"chat_id":"c"}`

// answered is what a host gets for a result of hookd's.
func answered(t *testing.T, h *Host, name protocol.Stage, params string, res *protocol.Result, due bool) string {
	t.Helper()
	in := parsed(t, params)
	req, bad := h.Request(stage(name), in)
	require.Nil(t, bad)
	b := h.Answer(req, in, res, func(string) bool { return due })
	require.NoError(t, protocol.CheckValue(b, 0))
	return string(b)
}

func TestHostAnswer(t *testing.T) {
	const (
		llm    = `{"meta":{},"model":"m","messages":[{"role":"user","content":"key"}],"tools":[{"type":"function"}],"options":{"n":1},"graceful_terminal":false}`
		reply  = `{"meta":{},"model":"m","response":{"content":"key","finish_reason":"stop"}}`
		result = `{"meta":{},"tool":"t","arguments":{},"result":{"for_llm":"key","for_user":"u","is_error":false},"duration":5}`
	)
	for name, c := range map[string]struct {
		stage  protocol.Stage
		params string
		res    protocol.Result
		wanted string
	}{
		"continue":  {protocol.StageBeforeTool, hostCall, protocol.Result{Generation: 3, Degraded: []protocol.Degraded{{Hook: "x"}}, Warnings: []string{"w"}, AddContext: []string{"c"}}, `{"action":"continue"}`},
		"allow":     {protocol.StageBeforeTool, hostCall, protocol.Result{Action: protocol.ActionAllow}, `{"action":"continue"}`},
		"deny":      {protocol.StageBeforeTool, hostCall, protocol.Result{Action: protocol.ActionDeny, Reason: "no", DecidedBy: "gate"}, `{"action":"deny_tool","reason":"no"}`},
		"abort":     {protocol.StageBeforeTool, hostCall, protocol.Result{Action: protocol.ActionAbortTurn, Reason: "no"}, `{"action":"abort_turn","reason":"no"}`},
		"hard":      {protocol.StageAfterLLM, reply, protocol.Result{Action: protocol.ActionHardAbort}, `{"action":"hard_abort"}`},
		"deny, llm": {protocol.StageBeforeLLM, llm, protocol.Result{Action: protocol.ActionDeny, Reason: "no"}, `{"action":"abort_turn","reason":"no"}`},
		"modify is whole": {
			protocol.StageBeforeTool, hostCall, protocol.Result{Action: protocol.ActionModify, Subject: jsontext.Value(`{"tool":"t","arguments":{"z":9007199254740993},"read_only":true}`)},
			`{"action":"modify","call":{"meta":{"SessionKey":"s"},"context":{"a":1},"chat_id":"c","tool":"t","arguments":{"z":9007199254740993}}}`,
		},
		"respond": {
			protocol.StageBeforeTool, hostCall, protocol.Result{Action: protocol.ActionRespond, Respond: jsontext.Value(`{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"is_error":false}`)},
			`{"action":"respond","result":{"for_llm":"ab","is_error":false}}`,
		},
		"respond, as PicoClaw names it": {
			protocol.StageBeforeTool, hostCall, protocol.Result{Action: protocol.ActionRespond, Respond: jsontext.Value(`{"for_llm":"a","for_user":"u"}`)},
			`{"action":"respond","result":{"for_llm":"a","for_user":"u"}}`,
		},
		"respond, an image": {
			protocol.StageBeforeTool, hostCall, protocol.Result{Action: protocol.ActionRespond, Respond: jsontext.Value(`{"content":[{"type":"image"}]}`)},
			`{"action":"deny_tool","reason":"a hook gave a result that is more than text, which the host can't take"}`,
		},
		"respond, llm": {
			protocol.StageBeforeLLM, llm, protocol.Result{Action: protocol.ActionRespond, Respond: jsontext.Value(`{}`)},
			`{"action":"abort_turn","reason":"a hook answered in place of the model, which the host can't take"}`,
		},
		"request": {
			protocol.StageBeforeLLM, llm, protocol.Result{Action: protocol.ActionModify, Subject: jsontext.Value(`{"model":"m","messages":[{"role":"user","content":"…"}],"options":{"n":1}}`)},
			`{"action":"modify","request":{"meta":{},"graceful_terminal":false,"model":"m","messages":[{"role":"user","content":"…"}],"options":{"n":1}}}`,
		},
		"response": {
			protocol.StageAfterLLM, reply, protocol.Result{Action: protocol.ActionModify, Subject: jsontext.Value(`{"content":"…","finish_reason":"stop"}`)},
			`{"action":"modify","response":{"meta":{},"model":"m","response":{"content":"…","finish_reason":"stop"}}}`,
		},
		"response of blocks": {
			protocol.StageAfterLLM, reply, protocol.Result{Action: protocol.ActionModify, Subject: jsontext.Value(`{"content":[{"type":"text","text":"…"}]}`)},
			`{"action":"modify","response":{"meta":{},"model":"m","response":{"content":"…"}}}`,
		},
		"response, an image": {
			protocol.StageAfterLLM, reply, protocol.Result{Action: protocol.ActionModify, Subject: jsontext.Value(`{"content":[{"type":"image"}]}`)},
			`{"action":"abort_turn","reason":"a hook made more than text of it, which the host can't take"}`,
		},
		"result": {
			protocol.StageAfterTool, result, protocol.Result{Action: protocol.ActionModify, Subject: jsontext.Value(`{"content":"…","for_user":"u","is_error":false}`)},
			`{"action":"modify","result":{"meta":{},"tool":"t","arguments":{},"result":{"for_user":"u","is_error":false,"for_llm":"…"},"duration":5}}`,
		},
		"result, by PicoClaw's name": {
			protocol.StageAfterTool, result, protocol.Result{Action: protocol.ActionModify, Subject: jsontext.Value(`{"content":"key","is_error":false,"for_llm":"…"}`)},
			`{"action":"modify","result":{"meta":{},"tool":"t","arguments":{},"result":{"is_error":false,"for_llm":"…"},"duration":5}}`,
		},
		"result, two texts": {
			protocol.StageAfterTool, result, protocol.Result{Action: protocol.ActionModify, Subject: jsontext.Value(`{"content":"a","for_llm":"b"}`)},
			`{"action":"abort_turn","reason":"hooks changed content and for_llm of the result, which are the same, in two ways"}`,
		},
		"longer than it reads": {
			protocol.StageBeforeLLM, llm, protocol.Result{Action: protocol.ActionModify, Subject: jsontext.Value(`{"messages":[{"content":"` + strings.Repeat("x", maxHostLine) + `"}]}`)},
			`{"action":"abort_turn","reason":"what the hooks made of it is longer than the host can read"}`,
		},
		"yes":     {protocol.StageApproveTool, hostCall, protocol.Result{Approval: &protocol.ApprovalResult{Approved: true, By: "me", Digest: "d"}, Generation: 1}, `{"approved":true,"reason":""}`},
		"no":      {protocol.StageApproveTool, hostCall, protocol.Result{Approval: &protocol.ApprovalResult{Reason: "no"}}, `{"approved":false,"reason":"no"}`},
		"nothing": {protocol.StageApproveTool, hostCall, protocol.Result{}, `{"approved":false,"reason":""}`},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.wanted, answered(t, &Host{approves: true}, c.stage, c.params, &c.res, true))
		})
	}
	var none *Host
	require.Equal(t, `{"action":"deny_tool","reason":"no","generation":3}`,
		answered(t, none, protocol.StageBeforeTool, hostCall, &protocol.Result{Action: protocol.ActionDeny, Reason: "no", Generation: 3}, true))
}

func TestHostAsk(t *testing.T) {
	ask := &protocol.Result{Action: protocol.ActionAsk, Reason: "publishes"}
	h := &Host{approves: true}
	require.Equal(t, `{"action":"continue"}`, answered(t, h, protocol.StageBeforeTool, hostCall, ask, true))
	require.Equal(t, `{"action":"deny_tool","reason":"publishes"}`, answered(t, h, protocol.StageBeforeTool, hostCall, ask, false), "nobody can be asked")
	require.Equal(t, `{"action":"deny_tool","reason":"publishes"}`, answered(t, &Host{}, protocol.StageBeforeTool, hostCall, ask, true), "the host will not ask")
	require.Equal(t, `{"action":"deny_tool","reason":"it needs approval, and nobody can be asked"}`,
		answered(t, h, protocol.StageBeforeTool, hostCall, &protocol.Result{Action: protocol.ActionAsk}, false))
	changed := &protocol.Result{Action: protocol.ActionAsk, Subject: jsontext.Value(`{"tool":"u","arguments":{}}`)}
	require.Equal(t, `{"action":"modify","call":{"meta":{"SessionKey":"s"},"context":{"a":1},"chat_id":"c","tool":"u","arguments":{}}}`,
		answered(t, h, protocol.StageBeforeTool, hostCall, changed, true))
}

// A Go host sends what it was told to run with other bytes: sorted, escaped,
// numbers through floating point. It is the same call all the same.
func TestHostApprovalKnowsTheCall(t *testing.T) {
	h := &Host{approves: true}
	asked := func(params string) *bool {
		req, bad := h.Request(stage(protocol.StageApproveTool), parsed(t, params))
		require.Nil(t, bad)
		return req.Asked
	}
	const again = `{"tool":"t","arguments":{"a":"\u003cb\u003e","z":1.0}}`
	require.Nil(t, asked(again), "never seen: hookd counts it as asked")
	answered(t, h, protocol.StageBeforeTool, hostCall, &protocol.Result{}, true)
	require.False(t, *asked(again))
	answered(t, h, protocol.StageBeforeTool, hostCall, &protocol.Result{Action: protocol.ActionAsk}, true)
	require.True(t, *asked(again))
	require.Nil(t, asked(`{"tool":"u","arguments":{"a":"<b>","z":1}}`))
	require.Nil(t, asked(`{"tool":"t","arguments":{"a":"<b>","z":2}}`))

	answered(t, h, protocol.StageBeforeTool, hostCall, &protocol.Result{Action: protocol.ActionModify, Subject: jsontext.Value(`{"tool":"t","arguments":{"rewritten":9007199254740993}}`)}, true)
	require.False(t, *asked(`{"tool":"t","arguments":{"rewritten":9007199254740992}}`))

	h.asked.remember(parsed(t, `{"tool":"t","arguments":{"a":1e999}}`), false)
	require.Nil(t, asked(`{"tool":"t","arguments":{"a":1e999}}`), "what can't be compared is not known")
	for i := range maxAsked {
		h.asked.remember(protocol.Object{{Name: "tool", Value: protocol.Quote(strings.Repeat("x", i+1))}}, false)
	}
	require.Nil(t, asked(again), "the oldest are forgotten")
	require.Len(t, h.asked.calls, maxAsked)
}

func TestHostRefusal(t *testing.T) {
	err := protocol.InvalidParams("tool", "is empty")
	for name, want := range map[protocol.Stage]string{
		protocol.StageBeforeTool:  `{"action":"deny_tool","reason":"tool: is empty"}`,
		protocol.StageBeforeLLM:   `{"action":"abort_turn","reason":"tool: is empty"}`,
		protocol.StageAfterTool:   `{"action":"abort_turn","reason":"tool: is empty"}`,
		protocol.StageApproveTool: `{"approved":false,"reason":"tool: is empty"}`,
	} {
		b, got := (&Host{}).Refusal(stage(name), err)
		require.NoError(t, got)
		require.Equal(t, want, string(b))
	}
	b, got := (&Host{}).Refusal(stage(protocol.StageStop), err)
	require.Equal(t, err, got)
	require.Nil(t, b)
	var none *Host
	_, got = none.Refusal(stage(protocol.StageBeforeTool), errors.New("x"))
	require.EqualError(t, got, "x")
}

func TestHostEvent(t *testing.T) {
	const envelope = `,"time":"2026-01-02T03:04:05.5Z","id":"evt-1","source":{"component":"agent","name":"main"},"severity":"warn",` +
		`"scope":{"agent_id":"main","session_key":"s","turn_id":"t"},"correlation":{"parent_turn_id":"p"},"attrs":{"iteration":1}}`
	for _, c := range []struct{ kind, payload, ours, wants string }{
		{"agent.turn.start", `{"UserMessage":"hi","MediaCount":0}`, "turn_start", `{"message":{"role":"user","content":"hi"},"media_count":0}`},
		{"agent.tool.exec_end", `{"Tool":"t","Duration":15000000,"ForLLMLen":3,"IsError":true}`, "tool_exec_end", `{"tool":"t","duration_ms":15,"for_llm_len":3,"is_error":true}`},
		{"agent.turn.end", `{"Status":"completed","Iterations":2,"UserMessage":"hi"}`, "turn_end", `{"status":"completed","steps":2,"user_message":"hi"}`},
		{"agent.error", `{"Stage":"llm","Message":"no"}`, "agent_error", `{"stage":"llm","message":"no"}`},
		{"mcp.tool.call.end", `{"tool":"t","duration_ms":3}`, "x_mcp.tool.call.end", `{"tool":"t","duration_ms":3}`},
	} {
		t.Run(c.kind, func(t *testing.T) {
			ev, bad := (&Host{}).Event(MethodRuntimeEvent, parsed(t, `{"kind":"`+c.kind+`","payload":`+c.payload+envelope))
			require.Nil(t, bad)
			require.Equal(t, c.ours, string(ev.Kind))
			require.Equal(t, c.wants, string(ev.Payload))
			require.Equal(t, "warn", ev.Severity)
			require.Equal(t, `{"agent_id":"main","session_id":"s","turn_id":"t","parent_turn_id":"p"}`, string(ev.Meta.AppendJSON(nil)))

			// To a PicoClaw hook it goes on as it came.
			ev.Time = ev.Time.UTC()
			_, params := Picoclaw.Event(ev, 1, 0)
			out := parsed(t, string(params))
			require.Equal(t, c.kind, protocol.Unquote(out.Get("kind")))
			in := parsed(t, `{`+envelope[1:])
			for _, same := range []string{"time", "scope", "correlation", "attrs", "severity"} {
				require.JSONEq(t, string(in.Get(same)), string(out.Get(same)), same)
			}
			for _, m := range parsed(t, c.payload) {
				require.Equal(t, string(m.Value), string(object(out.Get("payload")).Get(m.Name)), m.Name)
			}
		})
	}
	for _, wrong := range []string{`{}`, `{"kind":"agent.new.thing"}`, `{"kind":"decision"}`, `{"kind":5}`, `{"kind":"agent.turn.start","payload":"x"}`} {
		_, bad := (&Host{}).Event(MethodRuntimeEvent, parsed(t, wrong))
		require.NotNil(t, bad, wrong)
	}
	ev, bad := (&Host{}).Event(protocol.MethodEvent, parsed(t, `{"kind":"turn_start"}`))
	require.Nil(t, bad)
	require.Equal(t, protocol.EventTurnStart, ev.Kind)
}

// FuzzHost: whatever a host sends, it is given one of PicoClaw's words.
func FuzzHost(f *testing.F) {
	for _, params := range []string{hostCall, `{"tool":"t","arguments":null}`, `{"meta":{"Iteration":1.5},"tool":"t","arguments":{}}`, paramsOf(protocol.StageAfterTool), `{"result":{"for_llm":5},"tool":"t"}`, `{"messages":null}`} {
		f.Add([]byte(params), []byte(`{"content":[{"type":"text","text":"x"}]}`), uint8(0))
	}
	names := []protocol.Stage{protocol.StageBeforeTool, protocol.StageAfterTool, protocol.StageBeforeLLM, protocol.StageAfterLLM, protocol.StageApproveTool}
	verbs := []protocol.Action{"", protocol.ActionAllow, protocol.ActionModify, protocol.ActionRespond, protocol.ActionAsk, protocol.ActionDeny, protocol.ActionAbortTurn}
	f.Fuzz(func(t *testing.T, params, made []byte, n uint8) {
		in, err := protocol.DecodeObject(params, 0)
		if err != nil {
			return
		}
		subject, err := protocol.DecodeObject(made, 0)
		if err != nil {
			return
		}
		h, info, action := &Host{approves: n&1 == 0}, stage(names[int(n)%len(names)]), verbs[int(n)/len(names)%len(verbs)]
		req, bad := h.Request(info, in)
		var b []byte
		if bad != nil {
			b, err = h.Refusal(info, bad)
			require.NoError(t, err)
		} else {
			res := &protocol.Result{Action: action, Respond: jsontext.Value(made)}
			if info.CheckSubject("", subject) == nil {
				res.Subject = jsontext.Value(made)
			}
			b = h.Answer(req, in, res, func(string) bool { return true })
		}
		out, err := protocol.DecodeObject(b, protocol.DefaultMaxDepth+8)
		require.NoError(t, err, "%s", b)
		if info.Name == protocol.StageApproveTool {
			require.Equal(t, "false", string(out.Get("approved")))
			return
		}
		words := []string{`"continue"`, `"modify"`, `"abort_turn"`, `"hard_abort"`}
		if info.Name == protocol.StageBeforeTool {
			words = append(words, `"deny_tool"`, `"respond"`)
		}
		require.Contains(t, words, string(out.Get("action")))
		if action.Stops() || bad != nil {
			require.NotContains(t, []string{`"continue"`, `"modify"`, `"respond"`}, string(out.Get("action")))
		}
	})
}
