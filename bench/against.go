package bench

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/hookd/hookd/child"
)

// rival is how people do without hookd: a program that is started per event,
// reads it from stdin, writes its decision and ends.
type rival struct {
	name    string
	program []string // and where its own path is asked for, as a shim costs time too
	script  string
	part    int // of the calls; more for what takes longer
	target  float64
}

func rivals() []rival {
	return []rival{
		{"python", []string{"python3", "-c", "import sys; print(sys.executable)"}, `import json, sys
call = json.load(sys.stdin)
deny = "rm -rf /" in call["arguments"]["command"]
print(json.dumps({"action": "deny_tool" if deny else "continue"}))`, 500, 100},
		{"node", []string{"node", "-p", "process.execPath"}, `const call = JSON.parse(require("fs").readFileSync(0, "utf8"));
const deny = call.arguments.command.includes("rm -rf /");
console.log(JSON.stringify({action: deny ? "deny_tool" : "continue"}));`, 500, 100},
		{"sh", []string{"sh", "-c", "command -v sh"}, `read -r call
case $call in
  *"rm -rf /"*) echo '{"action":"deny_tool"}' ;;
  *) echo '{"action":"continue"}' ;;
esac`, 50, 10},
	}
}

// Rivals returns what T10 can compare with.
func Rivals() []string {
	var names []string
	for _, rival := range rivals() {
		names = append(names, rival.name)
	}
	return names
}

// processPerEvent is T10: a call that is denied, by a Go hook under hookd and by
// programs that are started for it. What a start costs at all comes first; it
// has no target.
func processPerEvent(r *run) ([]Row, error) {
	params := toolParams("bash", "rm -rf / ", 200)
	h, err := r.start(object{"processes": object{"rule": r.hook("rule", nil)}})
	if err != nil {
		return nil, err
	}
	defer h.stop()
	c, err := h.dial()
	if err != nil {
		return nil, err
	}
	defer c.w.Close()
	ask := c.asking(callLine("hook.before_tool", params), `"deny_tool"`)
	nothing, err := child.Resolve("true", "")
	if err != nil {
		return nil, err
	}
	row, err := r.versus(rival{name: "true", part: 50}, newSeries(func() error { _, err := runOnce(nothing, nil, nil); return err }), newSeries(ask))
	if err != nil {
		return nil, err
	}
	row.Work = "starting /bin/true, which decides nothing"
	rows := []Row{row}
	for _, v := range rivals() {
		if len(r.Against) > 0 && !slices.Contains(r.Against, v.name) {
			continue
		}
		path, err := v.find()
		if err != nil {
			if len(r.Against) > 0 {
				return nil, err
			}
			continue
		}
		row, err := r.versus(v, newSeries(func() error { return v.decide(path, params) }), newSeries(ask))
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// versus measures both in turn.
func (r *run) versus(v rival, theirs, ours *series) (Row, error) {
	n := r.share(v.part, 5)
	for _, s := range []*series{theirs, ours} { // warm up
		if err := s.some(r.ctx, 3); err != nil {
			return Row{}, err
		}
		s.took = s.took[:0]
	}
	for range n {
		if err := theirs.some(r.ctx, 1); err != nil {
			return Row{}, err
		}
		if err := ours.some(r.ctx, r.share(n, 20)); err != nil {
			return Row{}, err
		}
	}
	return Row{Work: "a " + v.name + " process per event, against one Go child", Floor: round(theirs.p(0.5), 0),
		P50: round(ours.p(0.5), 1), P99: round(ours.p(0.99), 1), Ratio: round(theirs.p(0.5)/ours.p(0.5), 0),
		Unit: "× faster", Target: v.target, AtLeast: true}, nil
}

// find returns the path of the program itself.
func (v rival) find() (string, error) {
	path, err := child.Resolve(v.program[0], "")
	if err != nil {
		return "", err
	}
	out, err := runOnce(path, v.program[1:], nil)
	return strings.TrimSpace(string(out)), err
}

// decide starts a process for one event.
func (v rival) decide(path string, params []byte) error {
	flag := "-c"
	if v.name == "node" {
		flag = "-e"
	}
	out, err := runOnce(path, []string{flag, v.script}, append(params, '\n'))
	if err == nil && !bytes.Contains(out, []byte("deny_tool")) {
		err = fmt.Errorf("%s answered %q", v.name, out)
	}
	return err
}

// runOnce is the least that it takes to run a program.
func runOnce(path string, args []string, in []byte) (out []byte, err error) {
	stdin, feed, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer feed.Close()
	read, stdout, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, stdin.Close())
	}
	defer read.Close()
	p, err := os.StartProcess(path, append([]string{path}, args...), &os.ProcAttr{Files: []*os.File{stdin, stdout, os.Stderr}})
	stdin.Close()
	stdout.Close()
	if err != nil {
		return nil, err
	}
	_, err = feed.Write(in)
	feed.Close()
	out, readErr := io.ReadAll(read)
	state, waitErr := p.Wait()
	if err = errors.Join(err, readErr, waitErr); err == nil && !state.Success() {
		err = fmt.Errorf("%s: %s", path, state)
	}
	return out, err
}
