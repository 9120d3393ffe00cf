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
	Version  string
	// Stderr is where built-ins write that log there; nil drops it.
	Stderr io.Writer
	// Call, when set, is run through the hooks that started, as a dry run.
	Call *protocol.Request
}

// CheckReport is what a check found.
type CheckReport struct {
	Hooks []CheckedHook
	// Problems make the config unusable, each with its place.
	Problems []string
	// Warnings do not.
	Warnings []string
	// Result is the answer to CheckOptions.Call.
	Result *protocol.Result
}

// CheckedHook is one entry.
type CheckedHook struct {
	Name     string
	Source   hook.Source
	Disabled bool
	// Started is false when it was not tried or failed; Greeted is what the
	// hook calls itself, and Took how long start and greeting took.
	Started bool
	Greeted string
	Took    time.Duration
	// Active are the stages and events it has; Rules what is set for it.
	Active []string
	Rules  []string
	// Error says why it does not start, with its last lines on stderr.
	Error  string
	Stderr []string
}

// Check loads a config, starts and greets every enabled hook, stops them, and
// reports. It needs no daemon and touches no socket. The error is a
// [config.LoadError] when the file can't be read as a config.
func Check(ctx context.Context, o CheckOptions) (*CheckReport, error) {
	if o.Stderr == nil {
		o.Stderr = io.Discard
	}
	registry, err := mount.NewRegistry(append(shipped(o.Stderr), o.Builtins...)...)
	if err != nil {
		return nil, fmt.Errorf("built-in hooks: %w", err)
	}
	cfg, err := config.Load(o.ConfigPath, registry.Check)
	if err != nil {
		return nil, err
	}
	report := &CheckReport{Warnings: guardsBeforeRewriters(cfg)}
	if !cfg.Hooks.Enabled {
		report.Warnings = append(report.Warnings, "hooks.enabled is false: nothing is checked, every stage answers continue")
	}
	spawner := child.NewSpawner()
	defer spawner.Close()
	c := checker{
		CheckOptions: o, cfg: cfg, report: report,
		mounter: mount.NewMounter(mount.MounterOptions{
			Registry: registry, Spawner: spawner, Log: zap.NewNop(), Limits: cfg.Limits,
			Server: protocol.Software{Name: "hookd", Version: o.Version}, Folder: filepath.Dir(o.ConfigPath),
		}),
	}
	defer c.close()
	c.start(ctx)
	c.together(ctx)
	return report, nil
}

type checker struct {
	CheckOptions
	cfg     *config.Config
	mounter *mount.Mounter
	report  *CheckReport
	running []*mountedHook
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
		h := CheckedHook{Name: e.Name, Source: e.Source, Disabled: !e.Enabled, Active: active(e.Intercept, e.Observe), Rules: rules(e)}
		if l := list[i]; l.h != nil {
			if l.err = l.h.mounted.Ready(ctx); l.err == nil {
				l.err = h.describe(l.h)
			}
			s := l.h.mounted.Status()
			h.Took, h.Greeted, h.Stderr = time.Since(l.began), s.Greeted, s.StderrTail
			h.Started = l.err == nil
			list[i].err = l.err
		}
		if err := list[i].err; err != nil {
			h.Error = err.Error()
			c.report.Problems = append(c.report.Problems, c.cfg.Problem(e, err.Error()).Error())
		}
		c.report.Hooks = append(c.report.Hooks, h)
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
		r, err := h.mounted.Registration(h.entry)
		if err != nil {
			c.report.Problems = append(c.report.Problems, err.Error())
			return
		}
		regs = append(regs, r)
	}
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
