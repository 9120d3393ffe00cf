package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/hookd/hookd/child"
	"github.com/hookd/hookd/commands"
	"github.com/hookd/hookd/config"
	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/manager"
	"github.com/hookd/hookd/mount"
	"github.com/hookd/hookd/protocol"
)

// CheckOptions say what to check.
type CheckOptions struct {
	// ConfigPath is the file.
	ConfigPath string
	// NoStart leaves hooks unstarted: only the file is judged.
	NoStart bool
	// Builtins are kinds of in-process hooks besides those that ship.
	Builtins []mount.Builtin
	// Helper limits what hook processes may do, as in [Options].
	Helper  *child.Helper
	Version string
	// Stderr is where built-ins write that log there; nil drops it.
	Stderr io.Writer
	// Call, when set, is run through the hooks that started, as a dry run.
	Call *protocol.Request
}

// CheckReport is what a check found.
type CheckReport struct {
	Hooks []CheckedHook `json:"hooks"`
	// Problems make the config unusable, each with its place.
	Problems []string `json:"problems"`
	// Warnings do not.
	Warnings []string `json:"warnings"`
	// CommandFiles are the files of command hooks that are there.
	CommandFiles []CommandFile
	// Result is the answer to CheckOptions.Call.
	Result *protocol.Result `json:"-"`
}

// CommandFile is a hooks.json with its hooks, in the order in which they are
// asked.
type CommandFile struct {
	Path  string
	Layer string
	Hooks []string
}

// CheckedHook is one entry.
type CheckedHook struct {
	Name     string      `json:"name"`
	Source   hook.Source `json:"source"`
	Disabled bool        `json:"disabled"`
	// Started is false when it was not tried or failed; Greeted is what the
	// hook calls itself, and Took how long start and greeting took, which
	// TookUS has in microseconds.
	Started bool          `json:"started"`
	Greeted string        `json:"greeted"`
	Took    time.Duration `json:"-"`
	TookUS  int64         `json:"took_us"`
	// Active are the stages and events it has; Rules what is set for it.
	Active []string `json:"active"`
	Rules  []string `json:"rules"`
	// Limits say how a process is limited; nil for a built-in, and for one that
	// was not started.
	Limits *child.Confinement `json:"limits,omitzero"`
	// Pins are the files whose content is fixed, as they are named.
	Pins []string `json:"pins,omitzero"`
	// Canary is the answer to the hook's canary; nil = it has none, or was not
	// asked.
	Canary *mount.CanaryStatus `json:"canary,omitzero"`
	// Error says why it does not start, with its last lines on stderr.
	Error  string   `json:"error"`
	Stderr []string `json:"stderr"`
}

// Check loads a config, starts and greets every enabled hook, stops them, and
// reports. It needs no daemon and touches no socket. The error is a
// [config.LoadError] when the file can't be read as a config.
func Check(ctx context.Context, o CheckOptions) (*CheckReport, error) {
	if o.Stderr == nil {
		o.Stderr = io.Discard
	}
	registry, err := offlineRegistry(o.Stderr, o.Builtins)
	if err != nil {
		return nil, err
	}
	cfg, err := config.Load(o.ConfigPath, registry.Check)
	if err != nil {
		return nil, err
	}
	report := &CheckReport{Warnings: guardsBeforeRewriters(cfg)}
	if !cfg.Hooks.Enabled {
		report.Warnings = append(report.Warnings, "hooks.enabled is false: nothing is checked, every stage answers continue")
	}
	spawner := child.New(child.Options{Helper: o.Helper, Adopt: o.Helper != nil})
	defer spawner.Close()
	c := checker{
		CheckOptions: o, cfg: cfg, report: report,
		mounter: mount.NewMounter(mount.MounterOptions{
			Registry: registry, Spawner: spawner, Log: zap.NewNop(), Limits: cfg.Limits,
			Server: protocol.Software{Name: "hookd", Version: o.Version}, Folder: filepath.Dir(o.ConfigPath),
		}),
	}
	defer c.close()
	c.files()
	c.start(ctx)
	c.try(ctx)
	c.together(ctx)
	return report, nil
}

type checker struct {
	CheckOptions
	cfg     *config.Config
	mounter *mount.Mounter
	report  *CheckReport
	running []*mountedHook
	scripts []*hook.Registration
}

// files reads the files of command hooks.
func (c *checker) files() {
	files, err := commands.Load(layerFiles(c.cfg.Layers)...)
	if err != nil {
		c.report.Problems = append(c.report.Problems, strings.Split(err.Error(), "\n")...)
	}
	c.scripts = commands.Registrations(files, commands.NewRunner(commands.RunnerOptions{}))
	for _, f := range files {
		r := CommandFile{Path: f.Path, Layer: f.Layer.String()}
		for _, h := range f.Hooks(f.Layer, 0, nil) {
			r.Hooks = append(r.Hooks, h.Name)
		}
		if f.Disabled {
			c.report.Warnings = append(c.report.Warnings, f.Path+" is disabled: nothing in it runs")
		}
		c.report.Warnings = append(c.report.Warnings, f.Warnings...)
		c.report.CommandFiles = append(c.report.CommandFiles, r)
	}
}

// start starts every enabled hook, side by side, and notes how it went.
func (c *checker) start(ctx context.Context) {
	type started struct {
		h     *mountedHook
		began time.Time
		err   error
	}
	list := make([]started, len(c.cfg.Hooks.Entries))
	for i := range c.cfg.Hooks.Entries {
		e := &c.cfg.Hooks.Entries[i]
		if !e.Enabled || c.NoStart {
			continue
		}
		list[i] = started{began: time.Now()}
		m, err := c.mounter.Mount(ctx, e, 1)
		if err != nil {
			list[i].err = err
			continue
		}
		list[i].h = &mountedHook{entry: e, mounted: m}
		c.running = append(c.running, list[i].h)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, readyWithin, fmt.Errorf("it was not ready within %s", readyWithin))
	defer cancel()
	for i := range list {
		e := &c.cfg.Hooks.Entries[i]
		h := CheckedHook{Name: e.Name, Source: e.Source, Disabled: !e.Enabled, Active: active(e.Intercept, e.Observe), Rules: rules(e), Pins: pinned(e), Stderr: []string{}}
		if l := list[i]; l.h != nil {
			if l.err = l.h.mounted.Ready(ctx); l.err == nil {
				l.err = h.describe(l.h)
			}
			s := l.h.mounted.Status()
			h.Took, h.Greeted, h.Stderr, h.Limits = time.Since(l.began), s.Greeted, s.StderrTail, s.Confinement
			h.TookUS = h.Took.Microseconds()
			h.Started = l.err == nil
			list[i].err = l.err
		}
		if err := list[i].err; err != nil {
			h.Error = err.Error()
			c.report.Problems = append(c.report.Problems, c.problems(e, err)...)
		}
		c.warn(e, &h)
		c.report.Hooks = append(c.report.Hooks, h)
	}
}

// problems names why a hook does not start: changed files each at its place.
func (c *checker) problems(e *config.Entry, err error) (list []string) {
	for _, changed := range mount.CheckPins(c.cfg, e) {
		list = append(list, changed.Error())
	}
	if list == nil {
		list = append(list, c.cfg.Problem(e, err.Error()).Error())
	}
	return list
}

// warn says what is asked for and not in force.
func (c *checker) warn(e *config.Entry, h *CheckedHook) {
	say := func(pointer, text string) {
		c.report.Warnings = append(c.report.Warnings, c.cfg.ProblemAt(pointer, text).Error())
	}
	var missing []string
	if h.Limits != nil {
		missing = h.Limits.Missing
	} else if c.NoStart && e.Sandbox != nil {
		missing = child.Gaps(sandbox(e))
	}
	if len(missing) > 0 {
		say(e.Pointer, "not in force on this system: "+strings.Join(missing, "; "))
	}
	// A pinned interpreter runs whatever its script says.
	if len(e.Pins) == 1 && e.Pins[0].Path == e.Command[0] {
		for _, file := range e.CommandFiles() {
			if file != e.Pins[0].File() {
				say(e.Pins[0].Pointer, fmt.Sprintf("only the program is pinned, not %s, which it is called with: name both, as in {%q: …}", file, filepath.Base(file)))
			}
		}
	}
}

func sandbox(e *config.Entry) *child.Sandbox {
	return &child.Sandbox{Read: e.Sandbox.Read, Write: e.Sandbox.Write, Network: e.Sandbox.Network}
}

func pinned(e *config.Entry) (files []string) {
	for _, p := range e.Pins {
		files = append(files, p.Path)
	}
	return files
}

// try asks the hooks that have started their canaries.
func (c *checker) try(ctx context.Context) {
	ctx, cancel := context.WithTimeoutCause(ctx, tryWithin, fmt.Errorf("no answer within %s", tryWithin))
	defer cancel()
	for _, h := range c.running { // all at once
		if h.canary = c.mounter.Canary(h.mounted, h.entry, nil); h.canary != nil {
			defer h.canary.Close()
		}
	}
	for _, h := range c.running {
		if h.canary == nil {
			continue
		}
		i := slices.IndexFunc(c.report.Hooks, func(r CheckedHook) bool { return r.Name == h.entry.Name })
		if !c.report.Hooks[i].Started {
			continue
		}
		if err := h.canary.First(ctx); err != nil {
			c.report.Problems = append(c.report.Problems, c.cfg.ProblemAt(h.entry.Canary.Pointer, err.Error()).Error())
		}
		status := h.canary.Status()
		c.report.Hooks[i].Canary = &status
	}
}

// describe fills in what is active after the greeting.
func (h *CheckedHook) describe(m *mountedHook) error {
	r, err := m.mounted.Registration(m.entry)
	if err != nil {
		return err
	}
	h.Active = active(r.Stages, r.Events)
	return nil
}

// together finds what is wrong only between hooks, and runs the dry run.
func (c *checker) together(ctx context.Context) {
	if c.NoStart || len(c.report.Problems) > 0 {
		return
	}
	var regs []*hook.Registration
	for _, h := range c.running {
		r, err := h.registration()
		if err != nil {
			c.report.Problems = append(c.report.Problems, err.Error())
			return
		}
		regs = append(regs, r)
	}
	regs = append(regs, c.scripts...)
	g, err := manager.NewGeneration(1, rulesOf(c.cfg), regs)
	if err != nil {
		c.report.Problems = append(c.report.Problems, c.cfg.Path+": "+err.Error())
		return
	}
	if c.Call == nil {
		return
	}
	m := manager.New(manager.Options{})
	m.Swap(g)
	c.Call.DryRun = true
	res, err := m.Call(ctx, &manager.Caller{Name: "hookd-check", PID: -1, UID: -1}, c.Call)
	if err != nil {
		c.report.Problems = append(c.report.Problems, "call: "+err.Error())
	} else {
		c.report.Result = res
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainObservers)
	defer cancel()
	if err := m.Close(closing); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		c.report.Problems = append(c.report.Problems, err.Error())
	}
}

func (c *checker) close() {
	ctx, cancel := context.WithTimeout(context.Background(), stopHooks)
	defer cancel()
	done := make(chan struct{})
	for _, h := range c.running {
		go func() { // waited for below
			// A built-in's close error is told when it matters, in the daemon.
			_ = h.mounted.Close(ctx)
			done <- struct{}{}
		}()
	}
	for range c.running {
		<-done
	}
}

func active(stages []protocol.Stage, events []protocol.Subscription) []string {
	words := make([]string, 0, len(stages)+len(events))
	for _, s := range stages {
		words = append(words, string(s))
	}
	return append(words, patterns(events)...)
}

// rules says what is set for an entry beyond the usual.
func rules(e *config.Entry) []string {
	words := []string{"fail_policy " + string(e.FailPolicy)}
	if e.Required {
		words = append(words, "required")
	}
	if e.Mode != hook.Enforce {
		words = append(words, "mode "+string(e.Mode))
	}
	if len(e.MatchTools) > 0 {
		words = append(words, "tools "+strings.Join(e.MatchTools, ","))
	}
	if len(e.MatchAgents) > 0 {
		words = append(words, "agents "+strings.Join(e.MatchAgents, ","))
	}
	return words
}

// guardsBeforeRewriters warns where a guard is asked before a hook that may
// change what it has seen: it will be asked again, which costs a round trip.
func guardsBeforeRewriters(cfg *config.Config) (warnings []string) {
	entries := slices.Clone(cfg.Hooks.Entries)
	slices.SortStableFunc(entries, func(a, b config.Entry) int {
		if a.Source != b.Source {
			if a.Source == hook.InProcess {
				return -1
			}
			return 1
		}
		return a.Priority - b.Priority
	})
	guards := func(e *config.Entry) bool { return e.FailPolicy == hook.FailDeny || e.Required || e.Recheck }
	for _, stage := range protocol.Stages() {
		if !stage.Allows(protocol.ActionModify) {
			continue
		}
		var guard *config.Entry
		for i := range entries {
			e := &entries[i]
			if !e.Enabled || !slices.Contains(e.Intercept, stage.Name) {
				continue
			}
			if guard != nil && !guards(e) {
				warnings = append(warnings, cfg.Problem(guard, fmt.Sprintf("at %s this guard is asked before %q, which may change what it has seen; it is then asked again. A higher priority number than %d saves that", stage.Name, e.Name, e.Priority)).Error())
				break
			}
			if guards(e) {
				guard = e
			}
		}
	}
	return warnings
}
