package install

import (
	"path/filepath"
	"time"
)

func grokSpec() *spec {
	list := events(watch, "SessionStart", "UserPromptSubmit")
	list = append(list, events(gate, "PreToolUse")...)
	list = append(list, events(watch, "PostToolUse", "PostToolUseFailure", "Stop", "SessionEnd")...)
	return &spec{
		name: "grok", title: "Grok Build", also: []string{"grok-build"}, programs: []string{"grok"},
		folders: func(p *Place) []string { return []string{filepath.Join(p.Home, ".grok")} },
		events:  list, scopes: both(),
		form: form{typed: true, command: "command", timeout: "timeout", unit: time.Second, group: plainGroup},
		targets: one(claudeHooks(),
			func(p *Place) string { return filepath.Join(p.Home, ".grok", "hooks", "hookd.json") },
			func(p *Place) string { return p.in(".grok", "hooks", "hookd.json") }),
		todo: func(_ *Place, s Scope) []string {
			if s == Project {
				return []string{"Start grok in the project and type /hooks-trust, or start it with --trust."}
			}
			return []string{"Start grok anew. See the entries in the tab of /hooks."}
		},
		imports: []imported{
			{"claude", both(), "leave one of the two out: uninstall grok, or claude"},
			{"cursor", []Scope{Project}, "leave one of the two out: uninstall grok, or cursor"},
		},
		probe: probe{
			event:   "PreToolUse",
			payload: `{"hookEventName":"PreToolUse","sessionId":"hookd-doctor","cwd":"/","workspaceRoot":"/","toolName":"run_terminal_cmd","toolInput":{"command":"true"}}`,
			answer:  grokAnswer,
		},
	}
}
