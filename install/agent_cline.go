package install

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
)

func clineFolder(p *Place, s Scope) string {
	if s == Project {
		return p.in(".clinerules", "hooks")
	}
	return filepath.Join(p.Home, "Documents", "Cline", "Hooks")
}

func clineSpec() *spec {
	list := events(decide, "TaskStart", "TaskResume", "UserPromptSubmit")
	list = append(list, events(gate, "PreToolUse")...)
	list = append(list, events(decide, "PostToolUse", "PreCompact")...)
	list = append(list, events(watch, "TaskCancel", "TaskComplete")...)
	return &spec{
		name: "cline", title: "Cline", programs: []string{"cline"},
		folders: func(p *Place) []string { return []string{filepath.Join(p.Home, "Documents", "Cline")} },
		events:  list, scopes: both(),
		form: form{command: "command", direct: true},
		targets: func(p *Place, s Scope) ([]target, error) {
			dir := clineFolder(p, s)
			if rules := filepath.Dir(dir); s == Project && isFile(rules) {
				return nil, fmt.Errorf("%s is a file: make it a folder with the file in it, as Cline wants it for hooks", rules)
			}
			var targets []target
			for _, e := range list {
				targets = append(targets, target{path: filepath.Join(dir, e.name), edit: scriptFile(e.name), mode: 0o755, only: e.name})
			}
			return targets, nil
		},
		todo: func(*Place, Scope) []string {
			return []string{"Turn hooks on in Cline's settings (Features, Enable Hooks), and see the entries in its Hooks tab."}
		},
		probe: probe{
			event:   "PreToolUse",
			payload: `{"clineVersion":"0","hookName":"PreToolUse","timestamp":"1767225600000","taskId":"hookd-doctor","workspaceRoots":["/"],"userId":"hookd-doctor","preToolUse":{"toolName":"execute_command","parameters":{"command":"true"}}}`,
			answer:  clineAnswer,
		},
	}
}

// scriptFile is an executable file that runs hookd-hook for one event.
func scriptFile(event string) wholeFile {
	return wholeFile{
		comment: "#", skip: 1,
		render: func(want []entry) ([]byte, error) {
			line, err := shellLine(want[0].call.Argv())
			return []byte("#!/bin/sh\nexec " + line + "\n"), err
		},
		read: func(text []byte) []entry { return readScript(event, text) },
	}
}

// readScript finds the call in a script of ours.
func readScript(event string, text []byte) []entry {
	for line := range bytes.Lines(text) {
		if c, ours := readLine(strings.TrimSpace(string(line))); ours {
			return []entry{{event: event, call: c}}
		}
	}
	return nil
}
