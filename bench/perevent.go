package bench

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hookd/hookd/child"
)

// thinProgram is what coding agents start per event.
const thinProgram = "hookd-hook"

// eventPayload is what Claude Code gives its hooks.
const eventPayload = `{"session_id":"bench","hook_event_name":"PreToolUse","cwd":"/tmp","permission_mode":"default","tool_name":"Bash",` +
	`"tool_input":{"command":"rm -rf / # and some more words, as a real command has them"},"tool_use_id":"toolu_%d"}`

// perEvent is T14: what a user of a coding agent feels. The floor is the start
// of a process that does nothing, and a hook script in Python does what people
// have today. Without the program hookd-hook there is nothing to measure.
func perEvent(r *run) ([]Row, error) {
	program, err := r.thin()
	if err != nil {
		if len(r.Only) > 0 {
			return nil, err
		}
		return nil, nil
	}
	rule := object{"kinds": []string{"shell"}, "if": "command contains 'rm -rf /'", "action": "deny", "reason": "deletes everything"}
	ask, stop, err := r.agentsHook(program, object{"builtins": object{"policy": object{"config": object{"default": "auto", "rules": []object{rule}}}}})
	if err != nil {
		return nil, err
	}
	defer stop()
	process, stop, err := r.agentsHook(program, object{"processes": object{"rule": r.hook("rule", nil)}})
	if err != nil {
		return nil, err
	}
	defer stop()
	nothing, err := child.Resolve("true", "")
	if err != nil {
		return nil, err
	}
	floor := newSeries(func() error { _, err := runOnce(nothing, nil, nil); return err })
	if err := r.inTurn(r.share(50, 20), ask, floor, process); err != nil {
		return nil, err
	}
	row := func(work string, s *series) Row {
		return Row{Work: work, Floor: round(floor.p(0.5), 0), P50: round(s.p(0.5), 0), P99: round(s.p(0.99), 0), Ratio: round(s.p(0.5)/floor.p(0.5), 2), Unit: "× floor"}
	}
	rows := []Row{row("hookd-hook and a policy, against starting /bin/true", ask), row("the same, with a hook process in Go", process)}
	rows[0].Target, rows[1].AtLeast = 3, true
	for _, v := range rivals() {
		path, err := v.find()
		if v.name != "python" || err != nil {
			continue
		}
		theirs := newSeries(func() error {
			out, err := runOnce(path, []string{"-c", pythonHook}, fmt.Appendf(nil, eventPayload, 0))
			if err == nil && !bytes.Contains(out, []byte(`"deny"`)) {
				err = fmt.Errorf("python answered %q", out)
			}
			return err
		})
		row, err := r.versus(v, theirs, ask)
		if err != nil {
			return nil, err
		}
		row.Work, row.Target = "a hook script in Python, against hookd-hook", 20
		rows = append(rows, row)
	}
	return rows, nil
}

// agentsHook is a call that a coding agent makes through the program, and that a
// daemon with these "hooks" denies.
func (r *run) agentsHook(program string, hooks object) (s *series, stop func(), err error) {
	h, err := r.start(hooks)
	if err != nil {
		return nil, nil, err
	}
	call := 0
	return newSeries(func() error {
		call++ // the same call twice would get the first answer
		payload := fmt.Appendf(nil, eventPayload, call)
		out, err := runOnce(program, []string{"--agent", "claude", "--event", "PreToolUse", "--socket", h.agents}, payload)
		if err == nil && !bytes.Contains(out, []byte(`"permissionDecision":"deny"`)) {
			err = fmt.Errorf("%s answered %q", thinProgram, out)
		}
		return err
	}), h.stop, nil
}

// pythonHook is a hook as people write them for a coding agent.
const pythonHook = `import json, re, sys, os, subprocess, pathlib
call = json.load(sys.stdin)
command = call.get("tool_input", {}).get("command", "")
if re.search(r"rm\s+-rf\s+/", command):
    print(json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "no"}}))`

// thin finds the program beside this one or in PATH, and else builds it.
func (r *run) thin() (string, error) {
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), thinProgram)
		if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() {
			return beside, nil
		}
	}
	if path, err := child.Resolve(thinProgram, ""); err == nil {
		return path, nil
	}
	program := filepath.Join(r.folder, thinProgram)
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	compiler, err := child.Resolve("go", "")
	if err == nil {
		_, err = runOnce(compiler, []string{"build", "-ldflags=-s -w", "-o", program, "github.com/hookd/hookd/cmd/" + thinProgram}, nil)
	}
	if err != nil {
		return "", fmt.Errorf("%s is neither beside this program nor in PATH: go build ./cmd/%s", thinProgram, thinProgram)
	}
	return program, nil
}
