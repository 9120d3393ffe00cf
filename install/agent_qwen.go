package install

import (
	"path/filepath"
	"time"
)

func qwenHome(p *Place) string { return filepath.Join(p.Home, ".qwen") }

func qwenSpec() *spec {
	list := events(decide, "SessionStart", "UserPromptSubmit")
	list = append(list, events(gate, "PreToolUse")...)
	list = append(list, events(decide, "PermissionRequest", "PostToolUse", "PostToolUseFailure", "SubagentStart", "SubagentStop", "PreCompact", "Stop")...)
	list = append(list, events(watch, "Notification", "SessionEnd")...)
	list = append(list, event{name: "TodoCreated", role: decide, left: "only new versions know it"}, event{name: "TodoCompleted", role: decide, left: "only new versions know it"})
	list = append(list, leftOut("it runs for every piece of text that is shown", "MessageDisplay")...)
	list = append(list, leftOut("only new versions know it", "PermissionDenied", "PostCompact", "StopFailure", "SessionDelete")...)
	return &spec{
		name: "qwen", title: "Qwen Code", also: []string{"qwen-code"}, programs: []string{"qwen"},
		folders: func(p *Place) []string { return []string{qwenHome(p)} },
		events:  list, scopes: both(),
		// Older versions read milliseconds; newer ones read 1000 and more as such.
		form: form{named: true, typed: true, command: "command", timeout: "timeout", unit: time.Millisecond, group: plainGroup},
		targets: one(claudeHooks(),
			func(p *Place) string { return filepath.Join(qwenHome(p), "settings.json") },
			func(p *Place) string { return p.in(".qwen", "settings.json") }),
		todo: func(_ *Place, s Scope) []string {
			list := []string{"Start qwen anew. See the entries with /hooks."}
			if s == Project {
				list = append(list, "The folder must be trusted, or its hooks are passed over.")
			}
			return list
		},
		check: checkQwen,
		probe: probe{
			event:   "PreToolUse",
			payload: `{"session_id":"hookd-doctor","transcript_path":"","cwd":"/","permission_mode":"default","hook_event_name":"PreToolUse","timestamp":"2026-01-01T00:00:00.000Z","tool_name":"run_shell_command","tool_input":{"command":"true"},"tool_call_id":"hookd-doctor"}`,
			answer:  claudeAnswer,
		},
	}
}
