package install

import (
	"path/filepath"
	"time"
)

func kimiFile(p *Place) string {
	return filepath.Join(p.home("KIMI_SHARE_DIR", ".kimi"), "config.toml")
}

func kimiSpec() *spec {
	list := events(decide, "SessionStart", "UserPromptSubmit")
	list = append(list, events(gate, "PreToolUse")...)
	list = append(list, events(decide, "PostToolUse")...)
	list = append(list, events(watch, "PostToolUseFailure", "SubagentStart")...)
	list = append(list, events(decide, "SubagentStop", "Stop")...)
	list = append(list, events(watch, "StopFailure", "PreCompact", "PostCompact", "Notification", "SessionEnd")...)
	for i := range list {
		list[i].max = 600 * time.Second
	}
	return &spec{
		name: "kimi", title: "Kimi CLI", also: []string{"kimi-cli"}, programs: []string{"kimi"},
		folders: func(p *Place) []string { return []string{filepath.Dir(kimiFile(p))} },
		events:  list, scopes: []Scope{User},
		form: form{event: "event", command: "command", timeout: "timeout", unit: time.Second},
		targets: func(p *Place, _ Scope) ([]target, error) {
			return []target{{path: kimiFile(p), edit: tomlFile{}}}, nil
		},
		todo: func(*Place, Scope) []string { return []string{"Start kimi anew."} },
		probe: probe{
			event:   "PreToolUse",
			payload: `{"hook_event_name":"PreToolUse","session_id":"hookd-doctor","cwd":"/","tool_name":"Shell","tool_input":{"command":"true"},"tool_call_id":"hookd-doctor"}`,
			answer:  kimiAnswer,
		},
	}
}
