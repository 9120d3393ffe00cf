package opencode

import (
	"flag"
	"testing"

	"github.com/hookd/hookd/agent/agenttest"
)

var update = flag.Bool("update", false, "write what becomes of the payloads anew")

func TestGolden(t *testing.T) {
	agenttest.Golden(t, New(), "testdata/opencode.txtar", *update)
}

// TestExactAnswers holds the bytes that the plug-in is known to read.
func TestExactAnswers(t *testing.T) {
	const call = `{"hook_event_name":"tool.execute.before","session_id":"s","tool_name":"bash","tool_input":{"command":"ls","description":"d"}}`
	const result = `{"hook_event_name":"tool.execute.after","tool_name":"bash","tool_input":{},"tool_response":{"output":"x"}}`
	const prompt = `{"hook_event_name":"chat.message","prompt":"hi"}`
	agenttest.Exactly(t, New(),
		agenttest.Exact{Event: "tool.execute.before", Payload: call, Result: `{"action":"deny_tool","reason":"R"}`, Stdout: `{"decision":"deny","reason":"R"}`},
		agenttest.Exact{Event: "chat.message", Payload: prompt, Result: `{"action":"deny","reason":"R"}`, Stdout: `{"decision":"deny","reason":"R"}`},
		agenttest.Exact{Event: "tool.execute.before", Payload: call, Result: `{"action":"modify","call":{"tool":"bash","arguments":{"command":"ls -l"}}}`, Stdout: `{"args":{"command":"ls -l"}}`},
		agenttest.Exact{Event: "tool.execute.after", Payload: result, Result: `{"action":"modify","result":{"content":"y"},"add_context":["C"]}`, Stdout: `{"output":"y","context":"C"}`},
		agenttest.Exact{Event: "chat.message", Payload: prompt, Result: `{"action":"continue","add_context":["C"]}`, Stdout: `{"context":"C"}`},
		agenttest.Exact{Event: "tool.execute.before", Payload: call, Result: `{"action":"continue"}`},
		agenttest.Exact{Event: "chat.message", Payload: prompt, Result: `{"action":"continue"}`},
	)
}

func FuzzOpencode(f *testing.F) {
	agenttest.Fuzz(f, New(),
		`{"hook_event_name":"tool.execute.before","session_id":"s","tool_name":"bash","tool_input":{"command":"ls","description":"d"}}`,
		`{"hook_event_name":"tool.execute.after","tool_name":"x","tool_response":{"error":{"a":1}}}`,
		`{"hook_event_name":"session.error","properties":{"error":{"data":{"message":1}}}}`,
	)
}
