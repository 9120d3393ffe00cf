package goose

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/agent/agenttest"
	"github.com/hookd/hookd/agent/native"
)

var update = flag.Bool("update", false, "write what becomes of the payloads anew")

func TestGolden(t *testing.T) {
	agenttest.Golden(t, New(), "testdata/goose.txtar", *update)
}

// TestExactAnswers holds the bytes that goose is known to read.
func TestExactAnswers(t *testing.T) {
	const call = `{"event":"PreToolUse","session_id":"s","tool_name":"developer__shell","tool_input":{"command":"ls"},"working_dir":"/w","tool_call_id":"c"}`
	const ended = `{"event":"Stop","session_id":"s","last_assistant_message":"x"}`
	agenttest.Exactly(t, New(),
		agenttest.Exact{Event: "PreToolUse", Payload: call, Result: `{"action":"deny_tool","reason":"R"}`, Stderr: "R", Exit: 2},
		agenttest.Exact{Event: "PreToolUse", Payload: call, Result: `{"action":"continue"}`},
		agenttest.Exact{Event: "Stop", Payload: ended, Result: `{"action":"inject","inject":{"role":"user","content":"M"}}`, Stderr: "M", Exit: 2},
		agenttest.Exact{Event: "Stop", Payload: ended, Result: `{"action":"continue"}`},
	)
}

// TestStdoutStaysEmpty holds that goose is never given what it takes for a broken
// hook.
func TestStdoutStaysEmpty(t *testing.T) {
	agenttest.EachAnswer(t, New(), "testdata/goose.txtar", func(event, name string, a native.Answer) {
		require.Empty(t, a.Stdout, "%s: %s", event, name)
	})
}

func FuzzGoose(f *testing.F) {
	agenttest.Fuzz(f, New(),
		`{"event":"PreToolUse","session_id":"s","tool_name":"developer__shell","tool_input":{"command":"ls"},"working_dir":"/w","tool_call_id":"c"}`,
		`{"event":"PreToolUseResult","decision":"allow"}`,
		`{"event":"UserPromptSubmit","message":"p"}`,
	)
}
