package protocol

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// requestCase is the params of one stage. The same cases are held against the
// JSON Schema.
type requestCase struct {
	name  string
	stage Stage // "" = before_tool
	in    string
	path  string // data.path of the refusal; "" = accepted
	text  string // a part of its message
	// unseen marks what a JSON Schema reads otherwise.
	unseen bool
}

func requestCases() []requestCase {
	const call = `"tool":"bash","arguments":{}`
	return []requestCase{
		{name: "smallest", in: `{` + call + `}`},
		{name: "everything", in: `{"meta":{"agent_id":"a","session_id":"s","turn_id":"t","parent_turn_id":"p","task_id":"k","user_id":"u","node_id":"n","iteration":3,"agent":"x","model":"m","cwd":"/","trace_id":"r","native":[1],"own":{}},` +
			`"context":{"any":1},"call_id":"c","state":{"k":1},` + call + `,"read_only":true,"deadline_ms":5000,"dry_run":true,"approve":true,"asked":false,"trail":true,"own":[1]}`},
		{name: "null is as if it were not there", in: `{"meta":null,"context":null,"call_id":null,"state":null,` + call + `,"read_only":null,"deadline_ms":null,"dry_run":null,"approve":null,"asked":null,"trail":null}`},
		{name: "null in meta", in: `{"meta":{"agent_id":null,"iteration":null},` + call + `}`},
		{name: "no tool", in: `{"arguments":{}}`, path: "tool", text: "is missing"},
		{name: "empty tool", in: `{"tool":"","arguments":{}}`, path: "tool", text: "is empty"},
		{name: "tool null", in: `{"tool":null,"arguments":{}}`, path: "tool", text: "expected a string, got null"},
		{name: "tool number", in: `{"tool":1,"arguments":{}}`, path: "tool", text: "expected a string, got a number"},
		{name: "no arguments", in: `{"tool":"t"}`, path: "arguments", text: "is missing"},
		{name: "arguments null", in: `{"tool":"t","arguments":null}`, path: "arguments", text: "expected an object, got null"},
		{name: "arguments text", in: `{"tool":"t","arguments":"{}"}`, path: "arguments", text: "expected an object, got a string"},
		{name: "Arguments", in: `{"tool":"t","Arguments":{}}`, path: "Arguments", text: `is "arguments" in other letters`},
		{name: "TOOL beside tool", in: `{` + call + `,"TOOL":"u"}`, path: "TOOL", text: `is "tool" in other letters`, unseen: true},
		{name: "Dry_Run", in: `{` + call + `,"Dry_Run":true}`, path: "Dry_Run", text: `is "dry_run" in other letters`, unseen: true},
		{name: "read_only text", in: `{` + call + `,"read_only":"true"}`, path: "read_only", text: "expected a boolean"},
		{name: "meta list", in: `{` + call + `,"meta":[]}`, path: "meta", text: "expected an object"},
		{name: "meta.agent_id number", in: `{` + call + `,"meta":{"agent_id":1}}`, path: "meta.agent_id", text: "expected a string, got a number"},
		{name: "meta.CWD beside cwd", in: `{` + call + `,"meta":{"cwd":"/a","CWD":"/b"}}`, path: "meta.CWD", text: `is "cwd" in other letters`, unseen: true},
		{name: "meta.iteration text", in: `{` + call + `,"meta":{"iteration":"1"}}`, path: "meta.iteration", text: "expected a number"},
		{name: "meta.iteration 1.5", in: `{` + call + `,"meta":{"iteration":1.5}}`, path: "meta.iteration", text: "expected an integer"},
		{name: "meta.iteration 1.0", in: `{` + call + `,"meta":{"iteration":1.0}}`, path: "meta.iteration", text: "expected an integer", unseen: true},
		{name: "context text", in: `{` + call + `,"context":"x"}`, path: "context", text: "expected an object"},
		{name: "call_id number", in: `{` + call + `,"call_id":7}`, path: "call_id", text: "expected a string"},
		{name: "state list", in: `{` + call + `,"state":[]}`, path: "state", text: "expected an object"},
		{name: "dry_run 1", in: `{` + call + `,"dry_run":1}`, path: "dry_run", text: "expected a boolean"},
		{name: "approve text", in: `{` + call + `,"approve":"yes"}`, path: "approve", text: "expected a boolean"},
		{name: "asked 0", in: `{` + call + `,"asked":0}`, path: "asked", text: "expected a boolean"},
		{name: "trail object", in: `{` + call + `,"trail":{}}`, path: "trail", text: "expected a boolean"},
		{name: "deadline 0", in: `{` + call + `,"deadline_ms":0}`, path: "deadline_ms", text: "must be positive"},
		{name: "deadline negative", in: `{` + call + `,"deadline_ms":-1}`, path: "deadline_ms", text: "must not be negative"},
		{name: "deadline text", in: `{` + call + `,"deadline_ms":"5"}`, path: "deadline_ms", text: "expected a number"},
		{name: "deadline 0.5", in: `{` + call + `,"deadline_ms":0.5}`, path: "deadline_ms", text: "expected an integer"},
		{name: "deadline 1e3", in: `{` + call + `,"deadline_ms":1e3}`, path: "deadline_ms", text: "expected an integer", unseen: true},
		{name: "for ever", in: `{` + call + `,"deadline_ms":9007199254740991}`},

		{name: "message", stage: StageUserMessage, in: `{"message":{"role":"user","content":"hi"}}`},
		{name: "message of blocks", stage: StageUserMessage, in: `{"message":{"content":[{"type":"text","text":"hi"}],"role":"user"}}`},
		{name: "message without content", stage: StageUserMessage, in: `{"message":{"role":"user"}}`},
		{name: "message text", stage: StageUserMessage, in: `{"message":"hi"}`, path: "message", text: "expected an object"},
		{name: "content number", stage: StageUserMessage, in: `{"message":{"role":"user","content":1}}`, path: "message.content", text: "expected a string or an array of blocks, got a number"},
		{name: "content object", stage: StageAfterTool, in: `{"result":{"is_error":false,"content":{"x":"secret"}}}`, path: "result.content", text: "expected a string or an array of blocks, got an object"},
		{name: "content of the output", stage: StageOutput, in: `{"output":{"content":true}}`, path: "output.content", text: "got a boolean"},
		{name: "content below is free", stage: StageAfterTool, in: `{"result":{"data":{"content":1},"content":"x"}}`},
		{name: "nothing to judge", stage: StageUserMessage, in: `{}`, path: "message", text: "is missing"},
		{name: "before_agent", stage: StageBeforeAgent, in: `{"request":{"input":"x"}}`},
		{name: "system_prompt", stage: StageSystemPrompt, in: `{"prompt":{"content":"be good"}}`},
		{name: "inject_instructions", stage: StageInjectInstructions, in: `{}`},
		{name: "inject_instructions request text", stage: StageInjectInstructions, in: `{"request":"x"}`, path: "request", text: "expected an object"},
		{name: "before_llm", stage: StageBeforeLLM, in: `{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[],"options":{}}`},
		{name: "before_llm smallest", stage: StageBeforeLLM, in: `{"messages":[]}`},
		{name: "before_llm without messages", stage: StageBeforeLLM, in: `{"model":"m"}`, path: "messages", text: "is missing"},
		{name: "messages object", stage: StageBeforeLLM, in: `{"messages":{}}`, path: "messages", text: "expected an array"},
		{name: "model number", stage: StageBeforeLLM, in: `{"messages":[],"model":4}`, path: "model", text: "expected a string"},
		{name: "tools object", stage: StageBeforeLLM, in: `{"messages":[],"tools":{}}`, path: "tools", text: "expected an array"},
		{name: "options list", stage: StageBeforeLLM, in: `{"messages":[],"options":[]}`, path: "options", text: "expected an object"},
		{name: "after_llm", stage: StageAfterLLM, in: `{"response":{"content":null,"tool_calls":[{}]}}`},
		{name: "approve_tool", stage: StageApproveTool, in: `{` + call + `,"asked":true}`},
		{name: "after_tool", stage: StageAfterTool, in: `{"result":{"content":"ok"},"tool":"bash","arguments":{},"duration_ms":1.5}`},
		{name: "after_tool without what is fixed", stage: StageAfterTool, in: `{"result":{},"tool":null}`},
		{name: "duration text", stage: StageAfterTool, in: `{"result":{},"duration_ms":"1s"}`, path: "duration_ms", text: "expected a number"},
		{name: "fixed tool number", stage: StageAfterTool, in: `{"result":{},"tool":1}`, path: "tool", text: "expected a string"},
		{name: "before_compact", stage: StageBeforeCompact, in: `{"request":{"trigger":"auto","tokens":1000}}`},
		{name: "stop", stage: StageStop, in: `{"request":{"reason":"done"}}`},
	}
}

func TestDecodeRequest(t *testing.T) {
	for _, c := range requestCases() {
		if c.stage == "" {
			c.stage = StageBeforeTool
		}
		t.Run(c.name, func(t *testing.T) {
			r, err := DecodeRequest(stage(c.stage), object(t, c.in))
			if c.path == "" {
				require.Nil(t, err)
				return
			}
			require.NotNil(t, err)
			require.Nil(t, r)
			require.Equal(t, CodeInvalidParams, err.Code)
			require.ErrorContains(t, err, c.text)
			var data struct{ Path string }
			require.NoError(t, json.Unmarshal(err.Data, &data))
			require.Equal(t, c.path, data.Path)
		})
	}
}

func TestDecodeRequestFields(t *testing.T) {
	r, err := DecodeRequest(stage(StageBeforeTool), object(t, requestCases()[1].in))
	require.Nil(t, err)
	require.Equal(t, "c", r.CallID)
	require.Equal(t, "a", r.MetaString("agent_id"))
	require.Empty(t, r.MetaString("iteration"), "no text")
	require.Empty(t, r.MetaString("missing"))
	require.Equal(t, `[1]`, string(r.Meta.Get("native")))
	require.Equal(t, `{"any":1}`, string(r.Context))
	require.Equal(t, `1`, string(r.State.Get("k")))
	require.Equal(t, "bash", r.Tool())
	require.EqualValues(t, 5000, r.DeadlineMS)
	require.True(t, r.DryRun && r.Approve && r.Trail)
	require.False(t, *r.Asked)
	require.Equal(t, `{"own":[1]}`, string(r.Extra.AppendJSON(nil)))

	r, err = DecodeRequest(stage(StageBeforeTool), object(t, requestCases()[2].in))
	require.Nil(t, err)
	require.Equal(t, &Request{Stage: r.Stage, Subject: object(t, `{"tool":"bash","arguments":{}}`)}, r)

	r, err = DecodeRequest(stage(StageBeforeTool), object(t, `{"tool":"t","arguments":{},"deadline_ms":9223372036854775807}`))
	require.Nil(t, err)
	require.Less(t, r.DeadlineMS, math.MaxInt64/int64(time.Millisecond), "as a time.Duration it does not overflow")
	require.Greater(t, time.Duration(r.DeadlineMS)*time.Millisecond, 365*24*time.Hour)
}

// What goes to a hook: read by hookd and not passed on are approve, asked and
// trail; all else stands in a fixed order, byte for byte.
func TestAppendParams(t *testing.T) {
	for _, c := range []struct {
		stage    Stage
		in, want string
		left     int64
	}{
		{StageBeforeTool, `{"own":{ "z":1, "a":1.0 },"arguments":{ "n":9007199254740993 },"asked":true,"tool":"b\u0061sh","approve":true,"trail":true,"other":null,"deadline_ms":9000}`,
			`{"arguments":{ "n":9007199254740993 },"tool":"b\u0061sh","own":{ "z":1, "a":1.0 },"other":null,"deadline_ms":250}`, 250},
		{StageBeforeTool, `{"dry_run":true,"state":{"b":1e400,"a":"\u0062"},"call_id":"c\n","context":{ },"meta":{"own":1,"agent_id":"a"},"tool":"t","arguments":{}}`,
			`{"meta":{"own":1,"agent_id":"a"},"context":{ },"call_id":"c\n","state":{"b":1e400,"a":"\u0062"},"tool":"t","arguments":{},"dry_run":true}`, 0},
		{StageAfterTool, `{"duration_ms":2.50,"z":1,"arguments":{},"a":2,"result":{},"tool":"t"}`, `{"result":{},"duration_ms":2.50,"arguments":{},"tool":"t","z":1,"a":2}`, 0},
		{StageInjectInstructions, `{}`, `{}`, 0},
		{StageInjectInstructions, `{}`, `{"deadline_ms":5}`, 5},
	} {
		r, err := DecodeRequest(stage(c.stage), object(t, c.in))
		require.Nil(t, err)
		require.Equal(t, c.want, string(r.AppendParams(nil, c.left)))
		again, err := DecodeRequest(r.Stage, object(t, c.want))
		require.Nil(t, err)
		require.Equal(t, c.left, again.DeadlineMS)
		require.Equal(t, c.want, string(again.AppendParams(nil, c.left)))
	}
}

func TestDigest(t *testing.T) {
	digest := func(name Stage, params string) string {
		r, err := DecodeRequest(stage(name), object(t, params))
		require.Nil(t, err)
		return r.Digest()
	}
	sum := sha256.Sum256([]byte("bash\x00" + `{"command":"ls -l  /","n":1.0}`))
	want := hex.EncodeToString(sum[:])
	require.Equal(t, "bbed6da6", want[:8], "the known vector")
	for _, same := range []string{
		`{"tool":"bash","arguments":{"command":"ls -l  /","n":1.0}}`,
		`{"arguments": { "command" : "ls -l  /" ,` + "\r\n\t" + `"n" : 1.0 } , "tool":"b\u0061sh","own":1}`,
	} {
		require.Equal(t, want, digest(StageBeforeTool, same))
		require.Equal(t, want, digest(StageApproveTool, same), "the approver's call is the interceptor's call")
	}
	require.Equal(t, want, digest(StageAfterTool, `{"result":{},"tool":"bash","arguments":{"command":"ls -l  /","n":1.0}}`))
	for _, other := range []string{
		`{"tool":"bash","arguments":{"command":"ls -l  /","n":1}}`,        // another number text
		`{"tool":"bash","arguments":{"command":"ls -l  /","n":1.00}}`,     // another number text
		`{"tool":"bash","arguments":{"n":1.0,"command":"ls -l  /"}}`,      // another order
		`{"tool":"bash","arguments":{"command":"ls -l /","n":1.0}}`,       // space inside of a string
		`{"tool":"bash","arguments":{"command":"ls -l  \u002f","n":1.0}}`, // another escape
		`{"tool":"Bash","arguments":{"command":"ls -l  /","n":1.0}}`,
		`{"tool":"bash\u0000","arguments":{"command":"ls -l  /","n":1.0}}`,
	} {
		require.NotEqual(t, want, digest(StageBeforeTool, other), other)
	}
	require.Empty(t, digest(StageStop, `{}`), "no tool call")
}
