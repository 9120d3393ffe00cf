package copilot

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/agent/agenttest"
	"github.com/hookd/hookd/agent/native"
)

var update = flag.Bool("update", false, "write what becomes of the payloads anew")

func TestGolden(t *testing.T) {
	agenttest.Golden(t, New(), "testdata/copilot.txtar", *update)
}

const callPayload = `{"timestamp":1793600000000,"cwd":"/w","sessionId":"s","toolName":"bash","toolArgs":"{\"command\":\"ls\"}"}`

// TestExactAnswers holds the bytes that Copilot is known to read.
func TestExactAnswers(t *testing.T) {
	for _, tc := range []struct{ event, payload, result, stdout string }{
		{"preToolUse", callPayload, `{"action":"deny_tool","reason":"R"}`, `{"permissionDecision":"deny","permissionDecisionReason":"R"}`},
		{"permissionRequest", callPayload, `{"approved":false,"reason":"R"}`, `{"behavior":"deny","message":"R"}`},
		{"preToolUse", callPayload, `{"action":"modify","call":{"tool":"bash","arguments":{"command":"ls -l"}}}`, `{"permissionDecision":"allow","modifiedArgs":{"command":"ls -l"}}`},
		{"sessionStart", `{"sessionId":"s","source":"new"}`, `{"action":"continue","add_context":["C"]}`, `{"additionalContext":"C"}`},
		{"subagentStart", `{"sessionId":"s","agentName":"a"}`, `{"action":"continue","add_context":["C"]}`, `{"additionalContext":"C"}`},
		{"postToolUse", `{"sessionId":"s","toolName":"bash","toolArgs":{},"toolResult":{"resultType":"success","textResultForLlm":"x"}}`, `{"action":"continue","add_context":["C"]}`, `{"additionalContext":"C"}`},
		{"agentStop", `{"sessionId":"s","stopReason":"end_turn"}`, `{"action":"inject","inject":{"role":"user","content":"M"}}`, `{"decision":"block","reason":"M"}`},
		{"preToolUse", callPayload, `{"action":"continue"}`, ``},
	} {
		a := agenttest.Answer(t, New(), tc.event, tc.payload, tc.result, native.Policy{})
		require.Equal(t, tc.stdout, string(a.Stdout))
		require.Empty(t, a.Stderr)
		require.Zero(t, a.ExitCode, "any other code denies, whatever stdout says")
		require.Empty(t, a.Warnings)
	}
}

// TestGateNeverExits holds that the code of a preToolUse is 0: the agent denies
// on any other, whatever is said.
func TestGateNeverExits(t *testing.T) {
	agenttest.EachAnswer(t, New(), "testdata/copilot.txtar", func(event, name string, a native.Answer) {
		if event == "preToolUse" {
			require.Zero(t, a.ExitCode, "%s", name)
		}
	})
}

// TestVSCode holds that what VS Code runs under Copilot's name is answered in
// its own form.
func TestVSCode(t *testing.T) {
	d := New()
	const payload = `{"hookEventName":"PreToolUse","sessionId":"s","tool_name":"run_in_terminal","tool_input":{"command":"ls"}}`
	c, err := d.Read("preToolUse", []byte(payload))
	require.NoError(t, err)
	require.Equal(t, "copilot", c.Agent)
	require.Equal(t, "vscode", c.Dialect())
	a := d.Unavailable("", native.UnavailableDefault, "gone", []byte(payload[:80]))
	require.Equal(t, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"hookd gave no verdict: gone"}}`, string(a.Stdout))
}

func TestEventIsGuessed(t *testing.T) {
	for payload, want := range map[string]string{
		callPayload: "preToolUse",
		`{"sessionId":"s","toolName":"bash","toolArgs":{},"toolResult":{}}`: "postToolUse",
		`{"sessionId":"s","toolName":"bash","toolArgs":{},"error":"e"}`:     "postToolUseFailure",
	} {
		c, err := New().Read("", []byte(payload))
		require.NoError(t, err)
		require.Equal(t, want, c.Event)
	}
	_, err := New().Read("", []byte(`{"sessionId":"s","prompt":"p"}`))
	require.ErrorContains(t, err, "names the event")
}

func FuzzCopilot(f *testing.F) {
	agenttest.Fuzz(f, New(), callPayload,
		`{"hook_event_name":"PreToolUse","tool_name":"x","command":"y"}`,
		`{"hookEventName":"Stop","sessionId":"s"}`,
		`{"sessionId":"s","toolName":"bash","toolArgs":"{","toolResult":{"resultType":"failure","textResultForLlm":"x"},"error":{"message":1}}`)
}
