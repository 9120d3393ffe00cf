package install

import (
	"path/filepath"
	"time"
)

func geminiHome(p *Place) string { return filepath.Join(p.Home, ".gemini") }

func geminiSpec() *spec {
	list := events(decide, "SessionStart", "BeforeAgent", "BeforeModel", "BeforeToolSelection")
	list = append(list, events(gate, "BeforeTool")...)
	list = append(list, events(decide, "AfterTool", "AfterAgent")...)
	list = append(list, events(watch, "PreCompress", "Notification", "SessionEnd")...)
	list = append(list, event{name: "AfterModel", role: decide, left: "it runs for every chunk of an answer"})
	return &spec{
		name: "gemini", title: "Gemini CLI", also: []string{"gemini-cli"}, programs: []string{"gemini"}, since: "0.26.0",
		folders: func(p *Place) []string { return []string{filepath.Join(geminiHome(p), "settings.json")} },
		events:  list, scopes: both(),
		form: form{named: true, typed: true, command: "command", timeout: "timeout", unit: time.Millisecond, group: plainGroup},
		targets: one(claudeHooks(),
			func(p *Place) string { return filepath.Join(geminiHome(p), "settings.json") },
			func(p *Place) string { return p.in(".gemini", "settings.json") }),
		todo: func(_ *Place, s Scope) []string {
			if s == Project {
				return []string{"Start gemini in the project and trust the folder; in an untrusted one its hooks are blocked."}
			}
			return []string{"Start gemini anew. See the entries with /hooks."}
		},
		check: checkGemini,
		probe: probe{
			event:   "BeforeTool",
			payload: `{"session_id":"hookd-doctor","transcript_path":"","cwd":"/","hook_event_name":"BeforeTool","timestamp":"2026-01-01T00:00:00.000Z","tool_name":"run_shell_command","tool_input":{"command":"true","description":"hookd doctor"}}`,
			answer:  geminiAnswer,
		},
	}
}
