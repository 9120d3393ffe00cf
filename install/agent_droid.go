package install

import (
	"path/filepath"
	"time"

	"github.com/tailscale/hujson"
)

func droidFolder(p *Place, s Scope) string {
	if s == Project {
		return p.in(".factory")
	}
	return filepath.Join(p.Home, ".factory")
}

func droidSpec() *spec {
	// A name that Droid does not know makes it drop the whole file.
	list := events(decide, "SessionStart", "UserPromptSubmit")
	list = append(list, events(gate, "PreToolUse")...)
	list = append(list, events(decide, "PostToolUse", "PreCompact", "SubagentStop", "Stop")...)
	list = append(list, events(watch, "Notification", "SessionEnd")...)
	return &spec{
		name: "droid", title: "Factory Droid", also: []string{"factory"}, programs: []string{"droid"},
		folders: func(p *Place) []string { return []string{droidFolder(p, User)} },
		events:  list, scopes: both(),
		form: form{typed: true, command: "command", timeout: "timeout", unit: time.Second, group: plainGroup},
		targets: func(p *Place, s Scope) ([]target, error) {
			return []target{droidTarget(droidFolder(p, s))}, nil
		},
		stale: func(p *Place, s Scope) []target {
			dir := droidFolder(p, s)
			return []target{
				{path: filepath.Join(dir, "hooks.json"), edit: jsonFile{}},
				{path: filepath.Join(dir, "settings.json"), edit: claudeHooks()},
			}
		},
		todo: func(*Place, Scope) []string {
			return []string{"Start droid anew: it reads hooks once, at its start. Version 0.186 read hooks from settings.json only; see with /hooks whether they are there."}
		},
		check: checkDroid,
		probe: probe{
			event:   "PreToolUse",
			payload: `{"session_id":"hookd-doctor","transcript_path":"","cwd":"/","permission_mode":"off","hook_event_name":"PreToolUse","message_id":"hookd-doctor","tool_name":"Execute","tool_input":{"command":"true"}}`,
			answer:  claudeAnswer,
		},
	}
}

// droidTarget is hooks.json, whose root are the events, unless the user keeps
// hooks in settings.json: a new hooks.json would make Droid forget those.
func droidTarget(dir string) target {
	hooks, settings := filepath.Join(dir, "hooks.json"), filepath.Join(dir, "settings.json")
	if !isFile(hooks) && hasHooks(settings) {
		return target{path: settings, edit: claudeHooks()}
	}
	return target{path: hooks, edit: jsonFile{}}
}

// hasHooks reports whether there is an object named hooks with something in it.
func hasHooks(path string) bool {
	file, err := readDisk(path)
	if err != nil || file.text == nil {
		return false
	}
	d, err := parseDocument(path, file.text)
	if err != nil {
		return false
	}
	v, err := d.lookup("hooks")
	if err != nil || v == nil {
		return false
	}
	obj, ok := v.Value.(*hujson.Object)
	return ok && len(obj.Members) > 0
}
