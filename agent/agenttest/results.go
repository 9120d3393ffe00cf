package agenttest

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/agent/native"
	"github.com/hookd/hookd/protocol"
)

// namedResult is one of hookd's answers.
type namedResult struct {
	name   string
	result *protocol.Result
}

// results returns hookd's answers that are possible for a call.
func results(t testing.TB, c *native.Call) []namedResult {
	if c.Stage == "" {
		return []namedResult{{"nothing asked", nil}}
	}
	var list []namedResult
	add := func(name, raw string) {
		r, err := protocol.DecodeResult(stageInfo(c.Stage), []byte(raw))
		require.NoError(t, err, "%s: %s", name, raw)
		list = append(list, namedResult{name, r})
	}
	if c.Stage == protocol.StageApproveTool {
		add("approved", `{"approved":true,"by":"ada"}`)
		add("refused", `{"approved":false,"reason":"R","decided_by":"ada"}`)
		add("no approver", `{"approved":false,"reason":"nobody can be asked"}`)
		return list
	}
	add("continue", `{"action":"continue"}`)
	for _, verb := range [...]protocol.Action{protocol.ActionAllow, protocol.ActionAsk, protocol.ActionDeny} {
		if stageInfo(c.Stage).Allows(verb) {
			add(string(verb), `{"action":"`+string(verb)+`","reason":"R"}`)
		}
	}
	if changed := changedSubject(c); changed != nil {
		add("modify", `{"action":"modify","`+stageInfo(c.Stage).Result+`":`+string(changed)+`}`)
	}
	if c.Stage == protocol.StageBeforeTool {
		add("modify and ask", `{"action":"ask","reason":"R","call":`+string(changedSubject(c))+`}`)
		add("another tool", `{"action":"modify","call":{"tool":"Elsewhere","arguments":{}}}`)
		add("approved by hookd", `{"action":"continue","approval":{"approved":true,"by":"ada"}}`)
	}
	if respond := stageInfo(c.Stage).Respond; respond != "" {
		add("respond", `{"action":"respond","`+respond+`":{"content":"A"}}`)
	}
	if stageInfo(c.Stage).Allows(protocol.ActionInject) {
		add("inject", `{"action":"inject","inject":[{"role":"user","content":"M"},{"role":"user","content":[{"type":"text","text":"N"}]}]}`)
	}
	add("add_context", `{"action":"continue","add_context":["C","D"]}`)
	add("abort_turn", `{"action":"abort_turn","reason":"R"}`)
	add("hard_abort", `{"action":"hard_abort","reason":"R"}`)
	add("warnings", `{"action":"continue","warnings":["W"]}`)
	return list
}

// changedSubject returns the subject with its first text changed, as hookd
// sends it: whole.
func changedSubject(c *native.Call) jsontext.Value {
	info := stageInfo(c.Stage)
	if c.Stage == protocol.StageBeforeLLM {
		request := protocol.Object{{Name: "messages", Value: jsontext.Value(`[{"role":"user","content":"changed"}]`)}}
		for _, name := range info.Subject {
			if v := c.Params.Get(name); v != nil && name != "messages" {
				request = append(request, protocol.Member{Name: name, Value: v})
			}
		}
		return request.AppendJSON(nil)
	}
	if !info.Wrapped() {
		if c.Stage != protocol.StageBeforeTool {
			return nil
		}
		args := append(protocol.Object(nil), c.Arguments...)
		changed := false
		for i := range args {
			if args[i].Value.Kind() == '"' && !changed {
				args[i].Value, changed = protocol.Quote("changed"), true
			}
		}
		if !changed {
			args = args.With("added", jsontext.Value("true"))
		}
		return protocol.Object{{Name: "tool", Value: protocol.Quote(c.ToolName)}, {Name: "arguments", Value: args.AppendJSON(nil)}}.AppendJSON(nil)
	}
	subject, err := protocol.ParseObject(c.Params.Get(info.Result))
	if err != nil || subject.Get("content") == nil {
		return nil
	}
	return subject.With("content", protocol.Quote("changed")).AppendJSON(nil)
}

// Answer reads a payload and writes hookd's answer to it.
func Answer(t testing.TB, d native.Dialect, event, payload, result string, p native.Policy) native.Answer {
	t.Helper()
	c, err := d.Read(event, []byte(payload))
	require.NoError(t, err)
	r, err := protocol.DecodeResult(stageInfo(c.Stage), []byte(result))
	require.NoError(t, err)
	return d.Write(c, r, p)
}

// Exact is an answer to the byte.
type Exact struct {
	Event, Payload string
	// Result is hookd's answer.
	Result         string
	Stdout, Stderr string
	Exit           int
}

// Exactly holds answers that an agent is known to read. They need no warning:
// nothing of hookd's answer is lost.
func Exactly(t *testing.T, d native.Dialect, list ...Exact) {
	t.Helper()
	for _, x := range list {
		a := Answer(t, d, x.Event, x.Payload, x.Result, native.Policy{})
		about := x.Event + " " + x.Result
		require.Equal(t, x.Stdout, string(a.Stdout), about)
		require.Equal(t, x.Stderr, string(a.Stderr), about)
		require.Equal(t, x.Exit, a.ExitCode, about)
		require.Empty(t, a.Warnings, about)
	}
}

// Fuzz holds that a dialect reads and answers whatever it is given without a
// panic, and that what it says is always one answer.
func Fuzz(f *testing.F, d native.Dialect, seeds ...string) {
	for _, row := range d.Rows() {
		for _, s := range seeds {
			f.Add(row.Event, []byte(s))
		}
	}
	f.Add("", []byte("\xef\xbb\xbf{\"a\":\"\xff\\ud800\"}"))
	f.Fuzz(func(t *testing.T, event string, payload []byte) {
		for _, want := range unavailable() {
			CheckAnswer(t, d.Unavailable(event, want, "x", payload))
		}
		c, err := d.Read(event, payload)
		if err != nil {
			var broken *native.PayloadError
			require.ErrorAs(t, err, &broken)
			return
		}
		if c.Stage != "" {
			_, rpcErr := protocol.DecodeRequest(stageInfo(c.Stage), wire(t, c.Params))
			require.Nil(t, rpcErr)
		}
		if c.Kind != "" {
			_, rpcErr := protocol.DecodeEvent(wire(t, c.EventParams))
			require.Nil(t, rpcErr)
		}
		for _, r := range results(t, c) {
			CheckAnswer(t, d.Write(c, r.result, native.Policy{}))
			CheckAnswer(t, d.Write(c, r.result, native.Policy{Ask: native.FallbackSilent, Modify: native.FallbackSilent, KeepPrompt: true}))
		}
	})
}
