package claude

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/agent/agenttest"
	"github.com/hookd/hookd/agent/native"
	"github.com/hookd/hookd/protocol"
)

var update = flag.Bool("update", false, "write what becomes of the payloads anew")

func dialects() []*native.Format {
	return []*native.Format{Claude(), Codex(), Qwen(), Droid(), Kimi(), VSCode()}
}

func TestGolden(t *testing.T) {
	for _, d := range dialects() {
		t.Run(d.Name(), func(t *testing.T) {
			agenttest.Golden(t, d, filepath.Join("testdata", d.Name()+".txtar"), *update)
		})
	}
}

const (
	callPayload = `{"session_id":"s","cwd":"/w","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"}}`
	codeCall    = `{"sessionId":"s","cwd":"/w","hookEventName":"PreToolUse","tool_name":"run_in_terminal","tool_input":{"command":"ls"}}`
)

// TestExactAnswers holds the bytes that the agents are known to read.
func TestExactAnswers(t *testing.T) {
	deny := `{"action":"deny_tool","reason":"R"}`
	change := `{"action":"modify","call":{"tool":"Bash","arguments":{"command":"ls -l"}}}`
	moreContext := `{"action":"continue","add_context":["C"]}`
	another := `{"action":"inject","inject":{"role":"user","content":"M"}}`
	denied := `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"R"}}`
	changed := `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","updatedInput":{"command":"ls -l"}}}`
	refused := `{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"deny","message":"R"}}}`
	for _, tc := range []struct {
		d              *native.Format
		event, payload string
		result         string
		stdout, stderr string
		exit           int
	}{
		{Claude(), "PreToolUse", callPayload, deny, denied, "", 0},
		{Codex(), "PreToolUse", callPayload, deny, denied, "", 0},
		{Qwen(), "PreToolUse", callPayload, deny, denied, "", 0},
		{Droid(), "PreToolUse", callPayload, deny, denied, "", 0},
		{VSCode(), "PreToolUse", codeCall, deny, denied, "", 0},
		{Kimi(), "PreToolUse", callPayload, deny, "", "R", 2},

		{Claude(), "PreToolUse", callPayload, change, changed, "", 0},
		{Codex(), "PreToolUse", callPayload, change, changed, "", 0},

		{Claude(), "PermissionRequest", withEvent(callPayload, "PermissionRequest"), `{"approved":false,"reason":"R"}`, refused, "", 0},
		{Codex(), "PermissionRequest", withEvent(callPayload, "PermissionRequest"), `{"approved":false,"reason":"R"}`, refused, "", 0},

		{Claude(), "PreToolUse", callPayload, moreContext, contextAt("PreToolUse"), "", 0},
		{Claude(), "PostToolUse", resultPayload, moreContext, contextAt("PostToolUse"), "", 0},
		{Claude(), "UserPromptSubmit", promptPayload, moreContext, contextAt("UserPromptSubmit"), "", 0},
		{Claude(), "SessionStart", startPayload, moreContext, contextAt("SessionStart"), "", 0},
		{Codex(), "PreToolUse", callPayload, moreContext, contextAt("PreToolUse"), "", 0},
		{Codex(), "PostToolUse", resultPayload, moreContext, contextAt("PostToolUse"), "", 0},
		{Codex(), "UserPromptSubmit", promptPayload, moreContext, contextAt("UserPromptSubmit"), "", 0},
		{Codex(), "SessionStart", startPayload, moreContext, contextAt("SessionStart"), "", 0},
		{Codex(), "SubagentStart", withEvent(startPayload, "SubagentStart"), moreContext, contextAt("SubagentStart"), "", 0},

		{Claude(), "Stop", stopPayload, another, `{"decision":"block","reason":"M"}`, "", 0},
		{Codex(), "Stop", stopPayload, another, `{"decision":"block","reason":"M"}`, "", 0},
		{VSCode(), "Stop", `{"hookEventName":"Stop","sessionId":"s"}`, another, `{"hookSpecificOutput":{"hookEventName":"Stop","decision":"block","reason":"M"}}`, "", 0},

		{Claude(), "PreToolUse", callPayload, `{"action":"continue"}`, "", "", 0},
		{Codex(), "PreToolUse", callPayload, `{"action":"continue"}`, "", "", 0},
		{VSCode(), "PreToolUse", codeCall, `{"action":"continue"}`, "", "", 0},
		{Codex(), "Stop", stopPayload, `{"action":"continue"}`, `{}`, "", 0},
		{Codex(), "SubagentStop", withEvent(stopPayload, "SubagentStop"), `{"action":"continue"}`, `{}`, "", 0},
		{Claude(), "Stop", stopPayload, `{"action":"continue"}`, "", "", 0},
	} {
		a := agenttest.Answer(t, tc.d, tc.event, tc.payload, tc.result, native.Policy{})
		require.Equal(t, tc.stdout, string(a.Stdout), "%s %s", tc.d.Name(), tc.result)
		require.Equal(t, tc.stderr, string(a.Stderr), "%s %s", tc.d.Name(), tc.result)
		require.Equal(t, tc.exit, a.ExitCode, "%s %s", tc.d.Name(), tc.result)
		require.Empty(t, a.Warnings, "%s %s", tc.d.Name(), tc.result)
	}
}

const (
	resultPayload = `{"session_id":"s","hook_event_name":"PostToolUse","tool_name":"Bash","tool_input":{"command":"ls"},"tool_response":"a"}`
	promptPayload = `{"session_id":"s","hook_event_name":"UserPromptSubmit","prompt":"hi"}`
	startPayload  = `{"session_id":"s","hook_event_name":"SessionStart","source":"startup"}`
	stopPayload   = `{"session_id":"s","hook_event_name":"Stop","stop_hook_active":false}`
)

func contextAt(event string) string {
	return `{"hookSpecificOutput":{"hookEventName":"` + event + `","additionalContext":"C"}}`
}

func withEvent(payload, event string) string {
	o, err := protocol.DecodeObject([]byte(payload), 0)
	if err != nil {
		panic(err)
	}
	return string(o.With("hook_event_name", protocol.Quote(event)).AppendJSON(nil))
}

// TestPolicy holds the choices that a caller has.
func TestPolicy(t *testing.T) {
	ask := `{"action":"ask","reason":"R"}`
	a := agenttest.Answer(t, Codex(), "", callPayload, ask, native.Policy{Ask: native.FallbackSilent})
	require.Empty(t, a.Stdout, "Codex's own policy decides")
	require.Equal(t, []string{"codex has no form for ask at PreToolUse: left out"}, a.Warnings)

	change := `{"action":"modify","call":{"tool":"Bash","arguments":{"command":"ls -l"}}}`
	a = agenttest.Answer(t, Claude(), "", callPayload, change, native.Policy{KeepPrompt: true})
	require.Equal(t, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"command":"ls -l"}}}`, string(a.Stdout))
	a = agenttest.Answer(t, Codex(), "", callPayload, change, native.Policy{KeepPrompt: true})
	require.Contains(t, string(a.Stdout), `"permissionDecision":"allow"`, "Codex refuses a changed input without it")

	a = agenttest.Answer(t, Kimi(), "", callPayload, change, native.Policy{})
	require.Equal(t, 2, a.ExitCode, "it must not run unchanged")
	a = agenttest.Answer(t, Kimi(), "", callPayload, change, native.Policy{Modify: native.FallbackSilent})
	require.Equal(t, 0, a.ExitCode)
	require.Equal(t, []string{"kimi has no form for modify at PreToolUse: left out"}, a.Warnings)
}

// TestUnreadable holds that a gate stays shut when nothing is known of the call.
func TestUnreadable(t *testing.T) {
	const cut = `{"hook_event_name": "PreToolUse", "tool_name": "Ba`
	for _, d := range dialects() {
		_, err := d.Read("PreToolUse", []byte(cut))
		var broken *native.PayloadError
		require.ErrorAs(t, err, &broken)
		require.Equal(t, d.Name(), broken.Agent)

		for _, event := range []string{"PreToolUse", ""} {
			a := d.Unavailable(event, native.UnavailableDefault, err.Error(), []byte(cut))
			require.NotEmpty(t, string(a.Stdout)+string(a.Stderr), "%s %q", d.Name(), event)
			a = d.Unavailable(event, native.UnavailableContinue, err.Error(), []byte(cut))
			require.Empty(t, string(a.Stdout)+string(a.Stderr), "%s %q", d.Name(), event)
		}
		a := d.Unavailable("", native.UnavailableDefault, "noise", []byte("noise"))
		require.Equal(t, 2, a.ExitCode, "%s: nothing is known but that a hook was run", d.Name())
		require.Equal(t, "hookd gave no verdict: noise", string(a.Stderr))
	}
}

// TestEventInPayloadCounts holds that a hook registered for Stop answers as
// SubagentStop where the agent says that it is one.
func TestEventInPayloadCounts(t *testing.T) {
	a := agenttest.Answer(t, Claude(), "Stop", withEvent(stopPayload, "SubagentStop"), `{"action":"continue","add_context":["C"]}`, native.Policy{})
	require.Equal(t, contextAt("SubagentStop"), string(a.Stdout))
	_, err := Claude().Read("PreToolUse", []byte(withEvent(callPayload, "beforeShellExecution")))
	require.ErrorContains(t, err, "names another event")
}

func FuzzClaude(f *testing.F) { agenttest.Fuzz(f, Claude(), seeds()...) }
func FuzzCodex(f *testing.F)  { agenttest.Fuzz(f, Codex(), seeds()...) }
func FuzzDroid(f *testing.F)  { agenttest.Fuzz(f, Droid(), seeds()...) }
func FuzzKimi(f *testing.F)   { agenttest.Fuzz(f, Kimi(), seeds()...) }
func FuzzVSCode(f *testing.F) { agenttest.Fuzz(f, VSCode(), seeds()...) }

func seeds() []string {
	return []string{
		callPayload, codeCall, resultPayload, promptPayload, startPayload, stopPayload,
		`{"tool_name":"apply_patch","tool_input":"{\"command\":\"*** Add File: a\\n+b\"}","tool_response":{"file":{"content":"x"}},"duration_ms":1.5}`,
	}
}
