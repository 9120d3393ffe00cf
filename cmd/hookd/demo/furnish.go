package demo

import (
	"bytes"
	"embed"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"text/template"

	"github.com/hookd/hookd/child"
	"github.com/hookd/hookd/daemon"
	examples "github.com/hookd/hookd/examples/hooks"
)

//go:embed files
var files embed.FS

// plan is what the template of the config reads.
type plan struct {
	Examples []example // hooks that may not run here
	StandIns []example // those in whose place a hook of the demo runs, inside hookd
	Policy   string    // dry-run's fail_policy
	Log      bool      // a file gets all events
}

// example is a hook whose interpreter may be missing.
type example struct {
	Name, Interpreter, Script string
	Stages                    string // as they stand in the config
	Why                       string // it does not run
}

// furnish fills the folder: the config and the hooks, and in work and home what
// the agent finds.
func (d *demo) furnish() error {
	for _, dir := range []string{"work", "home"} {
		if err := os.Mkdir(d.path(dir), 0o700); err != nil {
			return err
		}
	}
	for _, f := range []struct {
		from     fs.FS
		name, to string
	}{
		{examples.Files, "review_gate.py", "review_gate.py"},
		{examples.Files, "redact.mjs", "redact.mjs"},
		{examples.Files, "notify.sh", "notify.sh"},
		{files, "files/dry_run.sh", "dry_run.sh"},
		{files, "files/on_call.sh", "on_call.sh"},
		{files, "files/deploy.sh", "work/deploy.sh"},
		{files, "files/deploy.env", "work/deploy.env"},
		{files, "files/thesis.txt", "home/thesis.txt"},
	} {
		text, err := fs.ReadFile(f.from, f.name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(d.path(f.to), text, 0o600); err != nil {
			return err
		}
	}
	return d.choose()
}

// choose writes a config of hooks that start: an example that does not gets a
// stand-in.
func (d *demo) choose() error {
	d.plan = plan{Policy: "deny", Examples: []example{
		{Name: "redact", Interpreter: "node", Script: "redact.mjs", Stages: `"before_llm", "after_tool"`},
		{Name: "review-gate", Interpreter: "python3", Script: "review_gate.py", Stages: `"before_tool"`},
	}}
	for {
		if err := d.configure(); err != nil {
			return err
		}
		report, err := daemon.Check(d.ctx, daemon.CheckOptions{ConfigPath: d.path("config.json"), Builtins: standIns(), Version: d.Version})
		if err != nil {
			return err
		}
		before := len(d.plan.Examples)
		for _, h := range report.Hooks {
			i := slices.IndexFunc(d.plan.Examples, func(e example) bool { return e.Name == h.Name })
			if h.Error == "" || i < 0 {
				continue
			}
			broken := d.plan.Examples[i]
			if broken.Why = broken.Interpreter + " is not installed"; installed(broken.Interpreter) {
				broken.Why, _, _ = strings.Cut(h.Error, "\n")
			}
			d.plan.Examples = slices.Delete(d.plan.Examples, i, i+1)
			d.plan.StandIns = append(d.plan.StandIns, broken)
		}
		if len(d.plan.Examples) == before {
			if len(report.Problems) > 0 {
				return errors.New(strings.Join(report.Problems, "\n"))
			}
			return nil
		}
	}
}

func installed(program string) bool {
	_, err := child.Resolve(program, "")
	return err == nil
}

// configure writes the config as it is planned.
func (d *demo) configure() error {
	t, err := template.ParseFS(files, "files/config.json.tmpl")
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := t.Execute(&text, d.plan); err != nil {
		return err
	}
	return os.WriteFile(d.path("config.json"), text.Bytes(), 0o600)
}
