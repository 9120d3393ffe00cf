package install

import (
	"path/filepath"
	"time"

	"github.com/hookd/hookd/protocol"
)

func antigravitySpec() *spec {
	list := events(decide, "PreInvocation")
	list = append(list, events(gate, "PreToolUse")...)
	list = append(list, events(watch, "PostToolUse")...)
	list = append(list, events(decide, "PostInvocation", "Stop")...)
	list = append(list, leftOut("it is not documented", "SessionStart")...)
	// Keys at the root are names of hooks, so ours is "hookd".
	edit := jsonFile{at: []string{"hookd"}, own: true}
	return &spec{
		name: "antigravity", title: "Antigravity CLI", also: []string{"agy"}, programs: []string{"agy"}, since: "1.1.9",
		folders: func(p *Place) []string {
			return []string{filepath.Join(geminiHome(p), "config"), filepath.Join(geminiHome(p), "antigravity-cli")}
		},
		events: list, scopes: both(),
		form: form{
			typed: true, command: "command", timeout: "timeout", unit: time.Second,
			group: func(e event) protocol.Object {
				if e.name == "PreToolUse" || e.name == "PostToolUse" {
					return object("matcher", ".*")
				}
				return nil
			},
		},
		targets: one(edit,
			func(p *Place) string { return filepath.Join(geminiHome(p), "config", "hooks.json") },
			func(p *Place) string { return p.in(".agents", "hooks.json") }),
		// All of these are read and merged, so an entry in two of them fires twice.
		stale: func(p *Place, s Scope) []target {
			if s == Project {
				return nil
			}
			return []target{
				{path: filepath.Join(geminiHome(p), "hooks.json"), edit: edit},
				{path: filepath.Join(geminiHome(p), "antigravity-cli", "hooks.json"), edit: edit},
			}
		},
		todo: func(_ *Place, s Scope) []string {
			list := []string{`Start agy anew, and see the entries with: agy -p '/hooks' --output-format json`}
			if s == Project {
				list = append(list, `"agy -p" reads a project's hooks only with --add-dir and the project's absolute path.`)
			}
			return list
		},
		check: checkAntigravity,
		probe: probe{
			event:   "PreToolUse",
			payload: `{"conversationId":"hookd-doctor","workspacePaths":["/"],"transcriptPath":"","artifactDirectoryPath":"","modelName":"none","stepIdx":0,"toolCall":{"name":"run_command","args":{"CommandLine":"true","Cwd":"/"}}}`,
			answer:  antigravityAnswer,
		},
	}
}
