package commands

import (
	"bytes"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// said is a verdict in a form that can be compared: what Claude Code would do.
func said(d protocol.Decision, err error) string {
	if err != nil {
		f, ok := errors.AsType[*hook.Failure](err)
		if !ok {
			return "error " + err.Error()
		}
		return "failed " + string(f.Outcome)
	}
	text := string(d.Decided())
	if d.Reason != "" {
		text += " (" + d.Reason + ")"
	}
	if d.Subject != nil {
		text += " " + string(d.Subject)
	}
	for _, m := range d.Inject {
		text += " " + string(m)
	}
	if len(d.AddContext) > 0 {
		text += " +" + strings.Join(d.AddContext, "|")
	}
	if len(d.Warnings) > 0 {
		text += " !" + strings.Join(d.Warnings, "|")
	}
	return text
}

const specific = `{"hookSpecificOutput":{"hookEventName":"PreToolUse",`

// TestVerdictsOfScripts: what a script prints and how it ends, and what that
// means by Claude Code's rules. Each is run by hookd and, as a check of the
// table itself, straight by sh.
func TestVerdictsOfScripts(t *testing.T) {
	prompt := `{"message":{"role":"user","content":"hi"},"meta":{"session_id":"s","cwd":"/"}}`
	stop := `{"request":{"reason":"done"},"meta":{"session_id":"s","cwd":"/"}}`
	result := `{"tool":"Bash","arguments":{"command":"ls"},"result":{"content":"out","is_error":false},"meta":{"session_id":"s","cwd":"/"}}`
	compact := `{"request":{"trigger":"auto"},"meta":{"cwd":"/"}}`
	run := newRunner(t, 0)
	for _, c := range []struct {
		event, stdout, stderr string
		exit                  int
		want                  string
	}{
		// Exit status and plain text.
		{"PreToolUse", "", "", 0, "continue"},
		{"PreToolUse", "just talking", "", 0, "continue"},
		{"PreToolUse", "", "not that", 2, "deny (not that)"},
		{"PreToolUse", "", "", 2, "deny (blocked by a hook)"},
		{"PreToolUse", "text on stdout is no reason", "the reason", 2, "deny (the reason)"},
		{"PreToolUse", "", "oops", 1, "failed hook_error"},
		{"PreToolUse", "", "", 127, "failed hook_error"},
		{"PreToolUse", "", "", 3, "failed hook_error"},
		{"UserPromptSubmit", "it is Monday", "", 0, "continue +it is Monday"},
		{"UserPromptSubmit", "", "no secrets", 2, "deny (no secrets)"},
		{"UserPromptSubmit", "half", "broken", 1, "failed hook_error"},
		{"PostToolUse", "plain", "", 0, "continue"},
		{"PostToolUse", "", "format it", 2, "continue +format it"},
		{"Stop", "", "not done yet", 2, `inject (not done yet) {"role":"user","content":"not done yet"}`},
		{"Stop", "bye", "", 0, "continue"},
		{"PreCompact", "", "keep it", 2, "deny (keep it)"},
		// JSON.
		{"PreToolUse", "{}", "", 0, "continue"},
		{"PreToolUse", specific + `"permissionDecision":"deny","permissionDecisionReason":"R"}}`, "", 0, "deny (R)"},
		{"PreToolUse", specific + `"permissionDecision":"allow"}}`, "", 0, "allow"},
		{"PreToolUse", specific + `"permissionDecision":"ask","permissionDecisionReason":"sure?"}}`, "", 0, "ask (sure?)"},
		{"PreToolUse", specific + `"permissionDecision":"defer"}}`, "", 0, "ask !defer is asked about instead"},
		{"PreToolUse", specific + `"updatedInput":{"command":"ls -l"}}}`, "", 0, `modify {"arguments":{"command":"ls -l"}}`},
		{"PreToolUse", specific + `"permissionDecision":"allow","updatedInput":{"command":"ls -l"}}}`, "", 0, `allow {"arguments":{"command":"ls -l"}}`},
		{"PreToolUse", specific + `"additionalContext":"C"}}`, "", 0, "continue +C"},
		{"PreToolUse", `{"decision":"block","reason":"old form"}`, "", 0, "deny (old form)"},
		{"PreToolUse", `{"decision":"approve","reason":"fine"}`, "", 0, "allow (fine)"},
		{"PreToolUse", `{"continue":false,"stopReason":"enough"}`, "", 0, "abort_turn (enough)"},
		{"PreToolUse", `{"systemMessage":"look"}`, "", 0, "continue !look"},
		{"PreToolUse", `{"suppressOutput":true}`, "", 0, "continue"},
		{"UserPromptSubmit", `{"decision":"block","reason":"R"}`, "", 0, "deny (R)"},
		{"UserPromptSubmit", `{"hookSpecificOutput":{"hookEventName":"UserPromptSubmit","additionalContext":"C"}}`, "", 0, "continue +C"},
		{"PostToolUse", `{"decision":"block","reason":"R"}`, "", 0, "continue +R"},
		{"PostToolUse", `{"hookSpecificOutput":{"hookEventName":"PostToolUse","updatedToolOutput":{"stdout":"clean"}}}`, "", 0, `modify {"content":"clean"}`},
		{"Stop", `{"decision":"block","reason":"M"}`, "", 0, `inject (M) {"role":"user","content":"M"}`},
		{"Stop", `{"continue":false,"stopReason":"x","decision":"block","reason":"M"}`, "", 0, "abort_turn (x)"},
		// Both, and what goes wrong.
		{"PreToolUse", specific + `"permissionDecision":"allow"}}`, "", 2, "deny (blocked by a hook)"},
		{"PreToolUse", specific + `"permissionDecision":"deny","permissionDecisionReason":"from JSON"}}`, "from stderr", 2, "deny (from JSON)"},
		{"PreToolUse", specific + `"permissionDecision":"deny","permissionDecisionReason":"R"}}`, "", 1, "deny (R)"},
		{"PreToolUse", `{"broken`, "", 0, "failed hook_error"},
		{"PreToolUse", `{"broken`, "why", 2, "deny (why)"},
		{"PreToolUse", `{"hookSpecificOutput":{"hookEventName":"PostToolUse"}}`, "", 0, "failed hook_error"},
		{"PreToolUse", specific + `"permissionDecision":"Deny"}}`, "", 0, "failed hook_error"},
		{"PreToolUse", specific + `"permissionDecision":"deny","permissionDecision":"allow"}}`, "", 0, "failed hook_error"},
		{"PreToolUse", `{"permissionDecision":"deny"}`, "", 0, "failed hook_error"}, // not where it belongs
		{"PreToolUse", `{"unknown":1}`, "", 0, "continue !its output has a member that nobody knows: unknown"},
		{"PreToolUse", specific + `"permissionDecision":"deny","permissionDecisionReason":"R","more":1}}`, "", 0, "deny (R) !its output has a member that nobody knows: hookSpecificOutput.more"},
		{"PreToolUse", specific + `"updatedInput":"text"}}`, "", 0, "failed hook_error"},
		{"PreToolUse", `{} trailing`, "", 0, "failed hook_error"},
		{"PreToolUse", "\uFEFF" + specific + `"permissionDecision":"deny","permissionDecisionReason":"R"}}`, "", 0, "deny (R)"},
	} {
		name := c.event + " " + c.stdout + " " + c.stderr
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := "cat >/dev/null; printf '%s' " + quoted(c.stdout) + "; printf '%s' " + quoted(c.stderr) + " >&2; exit " + string(rune('0'+c.exit/100)) + string(rune('0'+c.exit/10%10)) + string(rune('0'+c.exit%10))
			var stdout, stderr bytes.Buffer
			direct := exec.CommandContext(t.Context(), "sh", "-c", script)
			direct.Stdout, direct.Stderr = &stdout, &stderr
			_ = direct.Run() // its status is looked at
			require.Equal(t, c.exit, direct.ProcessState.ExitCode())
			require.Equal(t, c.stdout, stdout.String())
			require.Equal(t, c.stderr, stderr.String())

			reg := only(t, oneCommand(t, c.event, script), run)
			stage, params := protocol.StageBeforeTool, bash
			switch c.event {
			case "UserPromptSubmit":
				stage, params = protocol.StageUserMessage, prompt
			case "PostToolUse":
				stage, params = protocol.StageAfterTool, result
			case "Stop":
				stage, params = protocol.StageStop, stop
			case "PreCompact":
				stage, params = protocol.StageBeforeCompact, compact
			}
			require.Equal(t, c.want, said(reg.Roles.Interceptor.Intercept(t.Context(), asked(t, stage, params))))
		})
	}
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// TestOwnForm: 0 passes, 2 blocks, everything else is a failure, whatever was
// printed; and the members of that form.
func TestOwnForm(t *testing.T) {
	run := newRunner(t, 0)
	for _, c := range []struct{ event, command, want string }{
		{"PreToolUse", `echo '{"permissionDecision":"deny","reason":"R"}'`, "deny (R)"},
		{"PreToolUse", `echo '{"permissionDecision":"ask"}'`, "ask"},
		{"PreToolUse", `echo '{"updatedInput":{"command":"x"}}'`, `modify {"arguments":{"command":"x"}}`},
		{"PreToolUse", `echo '{"addContext":"C"}'`, "continue +C"},
		{"PreToolUse", `echo '{"injectMessage":{"role":"system","content":"S"}}'`, "continue +S"},
		{"PreToolUse", `echo '{"injectMessage":{"role":"user","content":"U"}}'`, "continue !U"},
		{"PreToolUse", `echo '{"permissionDecision":"deny"}'; exit 1`, "failed hook_error"},
		{"PreToolUse", `echo no >&2; exit 2`, "deny (no)"},
		{"PreToolUse", `kill -9 $$`, "failed hook_error"},
		{"PreToolUse", `echo '{"permissionDecison":"deny"}'`, "failed bad_answer"},
		{"PreToolUse", `echo '{"permissionDecision":"denny"}'`, "failed bad_answer"},
		{"Stop", `echo '{"injectMessage":{"role":"user","content":"go on"}}'`, `inject {"role":"user","content":"go on"}`},
	} {
		stage, params := protocol.StageBeforeTool, bash
		if c.event == "Stop" {
			stage, params = protocol.StageStop, `{"request":{},"meta":{"session_id":"s"}}`
		}
		reg := only(t, ownCommand(t, c.event, c.command, ""), run)
		require.Equal(t, c.want, said(reg.Roles.Interceptor.Intercept(t.Context(), asked(t, stage, params))), c.command)
	}
}

// TestVerdictThatIsNone: in hookd's form a verdict that can't be seen as one is
// named.
func TestVerdictThatIsNone(t *testing.T) {
	run := newRunner(t, 0)
	const noVerdict = "it printed JSON that is no verdict: a verdict is one object, with nothing before it"
	for output, want := range map[string]string{
		"\uFEFF" + `{"permissionDecision":"deny","permissionDecisionReason":"R"}`:     "deny (R)",
		"\n\uFEFF\n" + `{"permissionDecision":"deny","permissionDecisionReason":"R"}`: "deny (R)",
		`[{"permissionDecision":"deny"}]`:                                             "continue !" + noVerdict,
		"loading rules\n" + `{"permissionDecision":"deny"}`:                           "continue !" + noVerdict,
		"loading rules\n  {\n" + `"decision":"block"}`:                                "continue !" + noVerdict,
		`rules: {"permissionDecision":"deny"}`:                                        "continue !" + noVerdict,
		"just talking":                                                                "continue",
	} {
		reg := only(t, ownCommand(t, "PreToolUse", "printf '%s' "+quoted(output), ""), run)
		require.Equal(t, want, said(reg.Roles.Interceptor.Intercept(t.Context(), asked(t, protocol.StageBeforeTool, bash))), output)
	}
	// Where text is context it stays so.
	reg := only(t, ownCommand(t, "UserPromptSubmit", `echo '[1]'`, ""), run)
	d, err := reg.Roles.Interceptor.Intercept(t.Context(), asked(t, protocol.StageUserMessage, `{"message":{"role":"user","content":"hi"}}`))
	require.Equal(t, "continue +[1] !"+noVerdict, said(d, err))
}

func TestPermissionRequest(t *testing.T) {
	run := newRunner(t, 0)
	for _, c := range []struct {
		own     bool
		command string
		want    protocol.Approval
	}{
		{false, `true`, protocol.Approval{Abstained: true}},
		{false, `exit 2`, protocol.Approval{Abstained: true}}, // ignored there
		{true, `echo no >&2; exit 2`, protocol.Approval{Reason: "no"}},
		{false, `echo '{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"deny","message":"R"}}}'`, protocol.Approval{Reason: "R"}},
		{false, `echo '{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow"}}}'`, protocol.Approval{Approved: true}},
	} {
		f := oneCommand(t, "PermissionRequest", c.command)
		if c.own {
			f = ownCommand(t, "PermissionRequest", c.command, "")
		}
		a, err := only(t, f, run).Roles.Approver.Approve(t.Context(), asked(t, protocol.StageApproveTool, bash))
		require.NoError(t, err)
		require.Equal(t, c.want, a, c.command)
	}
	a, err := only(t, oneCommand(t, "PermissionRequest", "exit 7"), run).Roles.Approver.Approve(t.Context(), asked(t, protocol.StageApproveTool, bash))
	require.NoError(t, err)
	require.True(t, a.Abstained)
	require.Equal(t, protocol.OutcomeHookError, a.Steps[0].Outcome, "passed over, and not in silence")
}

func TestLongContextIsCut(t *testing.T) {
	text := strings.Repeat("ä", spillChars) + "more"
	require.Equal(t, strings.Repeat("ä", spillChars)+"… (4 more characters were cut)", clip(text, spillChars))
	require.Equal(t, "short", clip("short", spillChars))
}

func FuzzOutput(f *testing.F) {
	f.Add(specific+`"permissionDecision":"deny"}}`, 0)
	f.Add(`{"decision":"block"}`, 2)
	o := &occasion{tool: "Bash", args: protocol.Object{{Name: "command", Value: []byte(`"ls"`)}}}
	f.Fuzz(func(t *testing.T, stdout string, exit int) {
		for _, r := range eventRows() {
			for _, form := range []Form{FormClaude, FormHookd} {
				v, err := read(o, r, form, ended{exit: exit & 255, stdout: []byte(stdout)})
				if err != nil {
					f, ok := errors.AsType[*hook.Failure](err)
					require.True(t, ok && f.Outcome.Failed())
					continue
				}
				if stage := protocol.NewStageTable().Stage(r.stage); stage != nil && r.stage != protocol.StageApproveTool {
					require.NoError(t, v.decision.Check(stage), "%s %q", r.name, stdout)
				}
				if exit&255 == 2 && r.stage == protocol.StageBeforeTool {
					require.Equal(t, protocol.ActionDeny, v.decision.Action, "2 blocks")
				}
			}
		}
	})
}
