package claude

import (
	"slices"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/agent/agenttest"
	"github.com/hookd/hookd/agent/native"
	"github.com/hookd/hookd/protocol"
)

// TestCodexAnswersAreValid checks every answer to every payload against what
// Codex takes: one unknown member and it acts as if the hook had said nothing.
func TestCodexAnswersAreValid(t *testing.T) {
	n := 0
	agenttest.EachAnswer(t, Codex(), "testdata/codex.txtar", func(event, name string, a native.Answer) {
		checkCodex(t, event, name, a.Stdout)
		require.Empty(t, a.Stderr)
		require.Zero(t, a.ExitCode)
		n++
	})
	require.Greater(t, n, 100)
}

// codexMembers says which members Codex takes at an event, in an answer and in
// its hookSpecificOutput.
func codexMembers(event string) (top, specific []string) {
	top = []string{"continue", "stopReason", "systemMessage"}
	switch event {
	case "PreToolUse":
		return []string{"systemMessage", "hookSpecificOutput"}, []string{"permissionDecision", "permissionDecisionReason", "updatedInput", "additionalContext"}
	case "PermissionRequest":
		return []string{"systemMessage", "hookSpecificOutput"}, []string{"decision"}
	case "PostToolUse", "UserPromptSubmit":
		return append(top, "decision", "reason", "hookSpecificOutput"), []string{"additionalContext"}
	case "SessionStart", "SubagentStart":
		return append(top, "hookSpecificOutput"), []string{"additionalContext"}
	case "Stop", "SubagentStop":
		return append(top, "decision", "reason"), nil
	case "PreCompact", "PostCompact":
		return top, nil
	}
	return nil, nil // nothing may be said
}

func checkCodex(t *testing.T, event, name string, stdout []byte) {
	t.Helper()
	if len(stdout) == 0 {
		require.NotContains(t, []string{"Stop", "SubagentStop"}, event, "%s: %s needs JSON", name, event)
		return
	}
	o, err := protocol.DecodeObject(stdout, 0)
	require.NoError(t, err)
	top, specific := codexMembers(event)
	for _, m := range o {
		require.Contains(t, top, m.Name, "%s at %s: %s", name, event, stdout)
		switch m.Name {
		case "continue":
			require.Equal(t, "false", string(m.Value))
		case "decision":
			require.Equal(t, `"block"`, string(m.Value))
			require.NotEmpty(t, protocol.MetaString(o, "reason"), "%s at %s: a block needs a reason", name, event)
		case "hookSpecificOutput":
			checkCodexSpecific(t, event, specific, m.Value)
		default:
			require.EqualValues(t, '"', m.Value.Kind())
		}
	}
}

func checkCodexSpecific(t *testing.T, event string, allowed []string, v jsontext.Value) {
	t.Helper()
	o, err := protocol.ParseObject(v)
	require.NoError(t, err)
	require.Equal(t, event, protocol.MetaString(o, "hookEventName"))
	for _, m := range o {
		if m.Name != "hookEventName" {
			require.Contains(t, allowed, m.Name, "%s", v)
		}
	}
	switch protocol.MetaString(o, "permissionDecision") {
	case "allow":
		require.NotNil(t, o.Get("updatedInput"), "allow is valid beside a changed input only: %s", v)
	case "deny":
		require.NotEmpty(t, protocol.MetaString(o, "permissionDecisionReason"), "%s", v)
		require.Nil(t, o.Get("updatedInput"))
	case "":
		require.Nil(t, o.Get("updatedInput"), "%s", v)
	default:
		t.Errorf("%s: Codex takes this for a failure", v)
	}
	if d := o.Get("decision"); d != nil {
		decision, err := protocol.ParseObject(d)
		require.NoError(t, err)
		require.Contains(t, []string{"allow", "deny"}, protocol.MetaString(decision, "behavior"))
		for _, m := range decision {
			require.True(t, slices.Contains([]string{"behavior", "message"}, m.Name), "%s", d)
		}
	}
}
