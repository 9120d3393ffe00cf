package install

import (
	"path/filepath"
	"slices"
	"time"
)

// kiroFolders are where Kiro CLI and its older self, Amazon Q, keep agents.
func kiroFolders(p *Place, s Scope) []string {
	if s == Project {
		return []string{p.in(".kiro", "agents"), p.in(".amazonq", "cli-agents")}
	}
	return []string{filepath.Join(p.Home, ".kiro", "agents"), filepath.Join(p.Home, ".aws", "amazonq", "cli-agents")}
}

func kiroSpec() *spec {
	list := events(decide, "agentSpawn", "userPromptSubmit")
	list = append(list, events(gate, "preToolUse")...)
	list = append(list, events(watch, "postToolUse", "stop")...)
	return &spec{
		name: "kiro", title: "Kiro CLI and Amazon Q", also: []string{"kiro-cli", "amazon-q", "amazonq", "q"}, programs: []string{"kiro-cli", "q"},
		folders: func(p *Place) []string {
			return []string{filepath.Join(p.Home, ".kiro"), filepath.Join(p.Home, ".aws", "amazonq")}
		},
		events: list, scopes: both(),
		form:    form{command: "command", timeout: "timeout_ms", unit: time.Millisecond},
		targets: kiroTargets,
		todo: func(*Place, Scope) []string {
			return []string{
				`Hooks belong to an agent: only sessions of the agents named above have them. Make one of them the default with: kiro-cli agent set-default NAME`,
				"Install again after you have added an agent. Kiro CLI 3 also has hook files of its own in .kiro/hooks, which hookd does not write.",
			}
		},
		check: checkKiro,
		probe: probe{
			event:   "preToolUse",
			payload: `{"hook_event_name":"preToolUse","cwd":"/","tool_name":"execute_bash","tool_input":{"command":"true"}}`,
			answer:  silentAnswer,
		},
	}
}

// kiroTargets are all agents that there are, or one of our own when there are
// none: hooks stand in an agent's file.
func kiroTargets(p *Place, s Scope) ([]target, error) {
	var list []target
	folders := kiroFolders(p, s)
	for _, dir := range folders {
		paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
		if err != nil {
			return nil, err
		}
		slices.Sort(paths)
		for _, path := range paths {
			list = append(list, kiroTarget(path))
		}
	}
	if len(list) == 0 {
		dir := folders[0]
		if old := filepath.Dir(folders[1]); isFolder(old) && !isFolder(filepath.Dir(dir)) {
			dir = folders[1]
		}
		list = append(list, kiroTarget(filepath.Join(dir, "hookd.json")))
	}
	return list, nil
}

func kiroTarget(path string) target {
	edit := claudeHooks()
	if filepath.Base(path) == "hookd.json" {
		edit.root = object("name", "hookd", "description", "All tools, with hookd watching", "tools", []string{"*"})
	}
	return target{path: path, edit: edit}
}
