package install

import (
	"path/filepath"
	"time"
)

func goosePlugin(p *Place, s Scope) string {
	if s == Project {
		return p.in(".agents", "plugins", "hookd")
	}
	return filepath.Join(p.Home, ".agents", "plugins", "hookd")
}

const gooseManifest = `{
  "name": "hookd",
  "version": "1.0.0",
  "description": "Asks hookd before tools run"
}
`

func gooseSpec() *spec {
	list := events(watch, "SessionStart", "UserPromptSubmit")
	list = append(list, events(gate, "PreToolUse")...)
	list = append(list, events(watch, "PostToolUse", "PostToolUseFailure")...)
	list = append(list, events(decide, "Stop")...)
	list = append(list, events(watch, "SessionEnd")...)
	list = append(list, leftOut("PreToolUse and PostToolUse tell the same", "PreToolUseResult", "BeforeReadFile", "AfterFileEdit", "BeforeShellExecution", "AfterShellExecution")...)
	return &spec{
		name: "goose", title: "goose", programs: []string{"goose"}, since: "1.38.0",
		folders: func(p *Place) []string { return []string{p.config("goose")} },
		events:  list, scopes: both(),
		// Without a matcher: "*" is no regular expression, and the rule would be
		// passed over.
		form: form{typed: true, command: "command", timeout: "timeout", unit: time.Second, closed: "on_failure", closedValue: "block", group: plainGroup},
		targets: func(p *Place, s Scope) ([]target, error) {
			dir := goosePlugin(p, s)
			return []target{
				{path: filepath.Join(dir, "hooks", "hooks.json"), edit: claudeHooks(), prune: dir},
				{path: filepath.Join(dir, "plugin.json"), edit: fixedFile{gooseManifest}, prune: dir},
			}, nil
		},
		todo: func(*Place, Scope) []string { return []string{"Start goose (1.38 or later) anew."} },
		probe: probe{
			event:   "PreToolUse",
			payload: `{"event":"PreToolUse","session_id":"hookd-doctor","matcher_context":"developer__shell","tool_name":"developer__shell","tool_input":{"command":"true"},"working_dir":"/","tool_call_id":"hookd-doctor"}`,
			answer:  gooseAnswer,
		},
	}
}
