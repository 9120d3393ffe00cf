package openhands

import (
	"flag"
	"testing"

	"github.com/hookd/hookd/agent/agenttest"
)

var update = flag.Bool("update", false, "write what becomes of the payloads anew")

func TestGolden(t *testing.T) {
	agenttest.Golden(t, New(), "testdata/openhands.txtar", *update)
}

// TestExactAnswers holds the bytes that OpenHands is known to read.
func TestExactAnswers(t *testing.T) {
	const call = `{"event_type":"PreToolUse","session_id":"s","working_dir":"/w","tool_name":"terminal","tool_input":{"command":"ls"}}`
	const prompt = `{"event_type":"UserPromptSubmit","message":"hi"}`
	const ended = `{"event_type":"Stop"}`
	agenttest.Exactly(t, New(),
		agenttest.Exact{Event: "pre_tool_use", Payload: call, Result: `{"action":"deny_tool","reason":"R"}`, Stdout: `{"decision":"deny","reason":"R"}`, Exit: 2},
		agenttest.Exact{Event: "user_prompt_submit", Payload: prompt, Result: `{"action":"deny","reason":"R"}`, Stdout: `{"decision":"deny","reason":"R"}`, Exit: 2},
		agenttest.Exact{Event: "user_prompt_submit", Payload: prompt, Result: `{"action":"continue","add_context":["C"]}`, Stdout: `{"additionalContext":"C"}`},
		agenttest.Exact{Event: "stop", Payload: ended, Result: `{"action":"inject","inject":{"role":"user","content":"M"}}`, Stdout: `{"decision":"deny","reason":"M"}`, Exit: 2},
		agenttest.Exact{Event: "pre_tool_use", Payload: call, Result: `{"action":"continue"}`},
		agenttest.Exact{Event: "stop", Payload: ended, Result: `{"action":"continue"}`},
	)
}

func FuzzOpenhands(f *testing.F) {
	agenttest.Fuzz(f, New(),
		`{"event_type":"PreToolUse","session_id":"s","working_dir":"/w","tool_name":"terminal","tool_input":{"command":"ls"}}`,
		`{"event_type":"Stop","metadata":7,"message":"m"}`,
		`{"event_type":"PostToolUse","tool_name":"t","tool_response":{"content":[]}}`,
	)
}
