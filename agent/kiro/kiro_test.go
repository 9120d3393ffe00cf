package kiro

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/agent/agenttest"
	"github.com/hookd/hookd/agent/native"
)

var update = flag.Bool("update", false, "write what becomes of the payloads anew")

func TestGolden(t *testing.T) {
	agenttest.Golden(t, New(), "testdata/kiro.txtar", *update)
}

// TestExactAnswers holds the bytes that Kiro is known to read.
func TestExactAnswers(t *testing.T) {
	const call = `{"hook_event_name":"preToolUse","cwd":"/w","tool_name":"execute_bash","tool_input":{"command":"ls"}}`
	const started = `{"hook_event_name":"agentSpawn","cwd":"/w"}`
	const prompt = `{"hook_event_name":"userPromptSubmit","cwd":"/w","prompt":"hi"}`
	agenttest.Exactly(t, New(),
		agenttest.Exact{Event: "preToolUse", Payload: call, Result: `{"action":"deny_tool","reason":"R"}`, Stderr: "R", Exit: 2},
		agenttest.Exact{Event: "agentSpawn", Payload: started, Result: `{"action":"continue","add_context":["C"]}`, Stdout: `C`},
		agenttest.Exact{Event: "userPromptSubmit", Payload: prompt, Result: `{"action":"continue","add_context":["C"]}`, Stdout: `C`},
		agenttest.Exact{Event: "preToolUse", Payload: call, Result: `{"action":"continue"}`},
		agenttest.Exact{Event: "agentSpawn", Payload: started, Result: `{"action":"continue"}`},
	)
}

// TestText holds that context is said as text, and only where there is some.
func TestText(t *testing.T) {
	a := agenttest.Answer(t, New(), "agentSpawn", `{}`, `{"action":"continue","add_context":["{\"not\": read as JSON"]}`, native.Policy{})
	require.Equal(t, `{"not": read as JSON`, string(a.Stdout))
	require.True(t, a.Text)
	agenttest.EachAnswer(t, New(), "testdata/kiro.txtar", func(event, name string, a native.Answer) {
		require.Equal(t, a.Text, len(a.Stdout) > 0, "%s: %s", event, name)
	})
}

func FuzzKiro(f *testing.F) {
	agenttest.Fuzz(f, New(),
		`{"hook_event_name":"preToolUse","cwd":"/w","tool_name":"execute_bash","tool_input":{"command":"ls"}}`,
		`{"hook_event_name":"postToolUse","tool_name":"fs_read","tool_response":{"success":false,"result":[1]}}`,
		`{"hook_event_name":"userPromptSubmit","prompt":7}`,
	)
}
