package install

import (
	"path/filepath"
	"time"
)

func crushSpec() *spec {
	return &spec{
		name: "crush", title: "Crush", programs: []string{"crush"},
		folders: func(p *Place) []string { return []string{p.config("crush")} },
		events:  events(gate, "PreToolUse"), scopes: both(),
		form: form{command: "command", timeout: "timeout", unit: time.Second},
		targets: func(p *Place, s Scope) ([]target, error) {
			path := filepath.Join(p.home("CRUSH_GLOBAL_CONFIG", ""), "crush.json")
			switch {
			case s == Project && isFile(p.in(".crush.json")):
				path = p.in(".crush.json")
			case s == Project:
				path = p.in("crush.json")
			case p.getenv("CRUSH_GLOBAL_CONFIG") == "":
				path = filepath.Join(p.config("crush"), "crush.json")
			}
			return []target{{path: path, edit: claudeHooks()}}, nil
		},
		stale: func(p *Place, s Scope) []target {
			if s == User {
				return nil
			}
			return []target{{path: p.in("crush.json"), edit: claudeHooks()}, {path: p.in(".crush.json"), edit: claudeHooks()}}
		},
		todo: func(*Place, Scope) []string {
			return []string{"Start crush anew. It has hooks for the main agent's calls only, not for those of sub-agents."}
		},
		probe: probe{
			event:   "PreToolUse",
			payload: `{"event":"PreToolUse","session_id":"hookd-doctor","cwd":"/","tool_name":"bash","tool_input":{"command":"true"}}`,
			answer:  crushAnswer,
		},
	}
}
