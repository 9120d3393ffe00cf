package install

import "time"

func codexHome(p *Place) string { return p.home("CODEX_HOME", ".codex") }

func codexSpec() *spec {
	list := events(decide, "SessionStart", "UserPromptSubmit")
	list = append(list, events(gate, "PreToolUse")...)
	list = append(list, events(decide, "PermissionRequest", "PostToolUse", "SubagentStart", "SubagentStop", "PreCompact", "Stop")...)
	list = append(list, events(watch, "PostCompact")...)
	list = append(list, event{name: "SessionEnd", role: watch, max: 3 * time.Second})
	list = append(list, event{name: "Interrupt", role: watch, max: 3 * time.Second, left: "only Codex 0.150 and later knows it"})
	list = append(list, event{name: "StopFailure", role: watch, left: "only some versions know it"})
	return &spec{
		name: "codex", title: "Codex", also: []string{"codex-cli"}, programs: []string{"codex"}, since: "0.124.0",
		folders: func(p *Place) []string { return []string{codexHome(p)} },
		events:  list, scopes: both(),
		// The root of the file may hold hooks and a description, and nothing else.
		form: form{typed: true, command: "command", login: true, timeout: "timeout", unit: time.Second, group: plainGroup},
		targets: one(claudeHooks(),
			func(p *Place) string { return codexHome(p) + "/hooks.json" },
			func(p *Place) string { return p.in(".codex", "hooks.json") }),
		todo: func(_ *Place, s Scope) []string {
			list := []string{`Approve the hooks once: start codex, type /hooks and trust each of them. Until then Codex passes them over without a word, always so in "codex exec" and in the VS Code extension.`}
			if s == Project {
				list = append(list, "The project itself must be trusted too, or Codex does not read its hooks.")
			}
			return list
		},
		check: checkCodex,
		probe: probe{
			event:   "PreToolUse",
			payload: `{"session_id":"hookd-doctor","turn_id":"hookd-doctor","transcript_path":null,"cwd":"/","hook_event_name":"PreToolUse","model":"none","permission_mode":"default","tool_name":"Bash","tool_input":{"command":"true"},"tool_use_id":"hookd-doctor"}`,
			answer:  claudeAnswer,
		},
	}
}
