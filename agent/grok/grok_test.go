package grok

import (
	"flag"
	"testing"

	"github.com/hookd/hookd/agent/agenttest"
)

var update = flag.Bool("update", false, "write what becomes of the payloads anew")

func TestGolden(t *testing.T) {
	agenttest.Golden(t, New(), "testdata/grok.txtar", *update)
}

// TestExactAnswers holds the bytes that Grok Build is known to read.
func TestExactAnswers(t *testing.T) {
	const call = `{"hookEventName":"pre_tool_use","sessionId":"s","workspaceRoot":"/w","toolName":"run_terminal_command","toolInput":{"command":"ls"}}`
	const pascal = `{"hookEventName":"PreToolUse","sessionId":"s","workspaceRoot":"/w","toolName":"run_terminal_command","toolInput":{"command":"ls"}}`
	agenttest.Exactly(t, New(),
		agenttest.Exact{Event: "PreToolUse", Payload: call, Result: `{"action":"deny_tool","reason":"R"}`, Stdout: `{"decision":"deny","reason":"R"}`, Exit: 2},
		agenttest.Exact{Event: "PreToolUse", Payload: pascal, Result: `{"action":"deny_tool","reason":"R"}`, Stdout: `{"decision":"deny","reason":"R"}`, Exit: 2},
		agenttest.Exact{Event: "beforeShellExecution", Payload: call, Result: `{"action":"deny_tool","reason":"R"}`, Stdout: `{"decision":"deny","reason":"R"}`, Exit: 2},
		agenttest.Exact{Event: "PreToolUse", Payload: call, Result: `{"action":"continue"}`},
	)
}

func FuzzGrok(f *testing.F) {
	agenttest.Fuzz(f, New(),
		`{"hookEventName":"pre_tool_use","sessionId":"s","workspaceRoot":"/w","toolName":"run_terminal_command","toolInput":{"command":"ls"}}`,
		`{"hookEventName":"post_tool_use","toolName":"x","toolResult":{"output":"y"}}`,
		`{"hook_event_name":"Stop","sessionId":"s"}`,
	)
}
