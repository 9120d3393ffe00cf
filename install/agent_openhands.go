package install

import (
	"path/filepath"
	"time"
)

func openhandsSpec() *spec {
	list := events(watch, "session_start")
	list = append(list, events(decide, "user_prompt_submit")...)
	list = append(list, events(gate, "pre_tool_use")...)
	list = append(list, events(watch, "post_tool_use")...)
	list = append(list, events(decide, "stop")...)
	list = append(list, events(watch, "session_end")...)
	return &spec{
		name: "openhands", title: "OpenHands CLI", programs: []string{"openhands"},
		folders: func(p *Place) []string { return []string{filepath.Join(p.Home, ".openhands")} },
		events:  list, scopes: both(),
		form: form{typed: true, command: "command", timeout: "timeout", unit: time.Second, group: plainGroup},
		targets: one(jsonFile{},
			func(p *Place) string { return filepath.Join(p.Home, ".openhands", "hooks.json") },
			func(p *Place) string { return p.in(".openhands", "hooks.json") }),
		todo: func(*Place, Scope) []string { return []string{"Start openhands anew."} },
		probe: probe{
			event:   "pre_tool_use",
			payload: `{"event_type":"PreToolUse","session_id":"hookd-doctor","working_dir":"/","tool_name":"terminal","tool_input":{"command":"true"}}`,
			answer:  openhandsAnswer,
		},
	}
}
