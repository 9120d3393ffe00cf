package crush

import (
	"flag"
	"testing"

	"github.com/hookd/hookd/agent/agenttest"
)

var update = flag.Bool("update", false, "write what becomes of the payloads anew")

func TestGolden(t *testing.T) {
	agenttest.Golden(t, New(), "testdata/crush.txtar", *update)
}

// TestExactAnswers holds the bytes that Crush is known to read.
func TestExactAnswers(t *testing.T) {
	const call = `{"event":"PreToolUse","session_id":"s","cwd":"/w","tool_name":"bash","tool_input":{"command":"ls","description":"d"}}`
	agenttest.Exactly(t, New(),
		agenttest.Exact{Event: "PreToolUse", Payload: call, Result: `{"action":"deny_tool","reason":"R"}`, Stdout: `{"version":1,"decision":"deny","reason":"R"}`},
		agenttest.Exact{Event: "PreToolUse", Payload: call, Result: `{"action":"modify","call":{"tool":"bash","arguments":{"command":"ls -l","description":"d"}}}`, Stdout: `{"decision":null,"updated_input":{"command":"ls -l"}}`},
		agenttest.Exact{Event: "PreToolUse", Payload: call, Result: `{"action":"allow"}`, Stdout: `{"version":1,"decision":"allow"}`},
		agenttest.Exact{Event: "PreToolUse", Payload: call, Result: `{"action":"continue","add_context":["C"]}`, Stdout: `{"decision":null,"context":"C"}`},
		agenttest.Exact{Event: "PreToolUse", Payload: call, Result: `{"action":"abort_turn","reason":"R"}`, Stdout: `{"version":1,"decision":"deny","halt":true,"reason":"R"}`},
		agenttest.Exact{Event: "PreToolUse", Payload: call, Result: `{"action":"hard_abort","reason":"R"}`, Stderr: "R", Exit: 49},
		agenttest.Exact{Event: "PreToolUse", Payload: call, Result: `{"action":"continue"}`},
	)
}

func FuzzCrush(f *testing.F) {
	agenttest.Fuzz(f, New(),
		`{"event":"PreToolUse","session_id":"s","cwd":"/w","tool_name":"bash","tool_input":{"command":"ls","description":"d"}}`,
		`{"event":"pre_tool_use","tool_name":"x","tool_input":"{\"a\":1}"}`,
		`{"event":"PostToolUse"}`,
	)
}
