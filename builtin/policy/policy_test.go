package policy

import (
	"context"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

func ask(t *testing.T, p *Policy, tool, args string) protocol.Decision {
	t.Helper()
	stage := protocol.NewStageTable().Stage(protocol.StageBeforeTool)
	req, bad := protocol.DecodeRequest(stage, protocol.Object{{Name: "tool", Value: protocol.Quote(tool)}, {Name: "arguments", Value: jsontext.Value(args)}})
	require.Nil(t, bad)
	d, err := p.Intercept(context.Background(), req)
	require.NoError(t, err)
	require.NoError(t, d.Check(stage))
	return d
}

func TestPolicy(t *testing.T) {
	const table = `{"default":"approve","rules":[
		{"tools":["secret_*"],"action":"deny","reason":"not from here","risk":"high"},
		{"tools":["read_file","/^list_/"],"action":"auto"},
		{"tools":["Write"],"action":"auto","skip_prompt":true},
		{"kinds":["shell"],"if":"all(shell.commands, .name in ['ls', 'git']) && !shell.unresolved","action":"auto"},
		{"kinds":["shell"],"if":"shell.mayRun('rm')","action":"deny","risk":"medium"},
		{"kinds":["file_read"],"action":"auto"},
		{"tools":["risky"],"if":"args.n + 1 > 2","action":"auto"},
		{"tools":["careful"],"if":"args.n + 1 > 2","action":"deny"},
		{"tools":["send_mail"],"action":"approve","reason":"it goes out","risk":"medium"}
	]}`
	p, err := New(jsontext.Value(table))
	require.NoError(t, err)
	for name, c := range map[string]struct {
		tool, args         string
		action             protocol.Action
		reason, permission string
	}{
		"deny by glob":       {"secret_get", `{}`, "deny", "not from here (risk: high)", ""},
		"auto by name":       {"read_file", `{"path":"a"}`, "", "", ""},
		"auto under another": {"Read", `{"file_path":"a"}`, "", "", ""},
		"auto by pattern":    {"list_things", `{}`, "", "", ""},
		"allow":              {"write_file", `{"path":"a","content":""}`, "allow", "", ""},
		"an editor writes":   {"str_replace_based_edit_tool", `{"command":"create","path":"a","file_text":""}`, "allow", "", ""},
		"an editor views":    {"str_replace_based_edit_tool", `{"command":"view","path":"a"}`, "", "", ""},
		"an editor edits":    {"str_replace_based_edit_tool", `{"command":"str_replace","path":"a","old_str":"x","new_str":"y"}`, "ask", "str_replace_based_edit_tool needs approval (default of the policy)", "str_replace_based_edit_tool"},
		"shell":              {"Bash", `{"command":"ls && git log"}`, "", "", ""},
		"shell unresolved":   {"Bash", `{"command":"ls && $X"}`, "deny", "Bash is not allowed (rule 5 of the policy) (risk: medium)", ""},
		"shell with rm":      {"run_command", `{"CommandLine":"ls; rm -r x"}`, "deny", "run_command is not allowed (rule 5 of the policy) (risk: medium)", ""},
		"shell else":         {"Bash", `{"command":"make"}`, "ask", "Bash needs approval (default of the policy)", "Bash"},
		"auto if judged":     {"risky", `{"n":5}`, "", "", ""},
		"not auto if not":    {"risky", `{"n":"x"}`, "ask", "risky needs approval (default of the policy)", "risky"},
		"deny if not judged": {"careful", `{"n":"x"}`, "deny", "careful is not allowed (rule 8 of the policy)", ""},
		"approve with risk":  {"send_mail", `{}`, "ask", "it goes out (risk: medium)", "medium"},
		"nobody knows it":    {"frobnicate", `{}`, "ask", "frobnicate needs approval (default of the policy)", "frobnicate"},
	} {
		t.Run(name, func(t *testing.T) {
			d := ask(t, p, c.tool, c.args)
			require.Equal(t, protocol.Decision{Action: c.action, Reason: c.reason, Permission: c.permission}, d)
		})
	}
}

func TestDefaults(t *testing.T) {
	for config, want := range map[string]protocol.Action{``: "ask", `{"default":"auto"}`: "", `{"default":"deny"}`: "deny"} {
		p, err := New(jsontext.Value(config))
		require.NoError(t, err)
		require.Equal(t, want, ask(t, p, "x", `{}`).Action, config)
	}
}

// TestFirstWins wants the order of the rules to count, not how strict they are.
func TestFirstWins(t *testing.T) {
	p, err := New(jsontext.Value(`{"rules":[{"tools":["x"],"action":"auto"},{"tools":["*"],"action":"deny"},{"tools":["y"],"action":"auto"}]}`))
	require.NoError(t, err)
	require.Equal(t, protocol.Action(""), ask(t, p, "x", `{}`).Action)
	require.Equal(t, protocol.ActionDeny, ask(t, p, "y", `{}`).Action)
}

func TestRoles(t *testing.T) {
	p, err := New(nil)
	require.NoError(t, err)
	roles, err := hook.RolesOf(p)
	require.NoError(t, err)
	require.True(t, roles.Quick)
	require.Equal(t, []protocol.Stage{protocol.StageBeforeTool}, roles.Stages)
	// At other stages it has no say.
	stage := protocol.NewStageTable().Stage(protocol.StageOutput)
	d, err := p.Intercept(context.Background(), &protocol.Request{Stage: stage})
	require.NoError(t, err)
	require.Equal(t, protocol.Decision{}, d)
}
