package daemon

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"go.uber.org/zap"

	"github.com/hookd/hookd/child"
	"github.com/hookd/hookd/commands"
	"github.com/hookd/hookd/config"
	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/mount"
	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/trust"
)

// Answer is what a call is, or would be, answered.
type Answer struct {
	// Result is the answer; nil when there is none, and Problems say why. While
	// Open holds names it is the answer if none of these had an opinion.
	Result *protocol.Result
	// Open are the hooks that were not asked and may decide otherwise.
	Open []string
	// Problems say what went wrong.
	Problems []string
}

// Answer says what a call is answered. Without run nothing is started: built-ins
// that judge by the call alone are asked, and every other hook that would be is
// named as open. With run hooks are started and asked as a dry run, and command
// hooks run for real. The errors are those of [Explain].
func (o ExplainOptions) Answer(ctx context.Context, run bool) (*Answer, error) {
	registry, cfg, err := loadOffline(o.ConfigPath, io.Discard, o.Builtins)
	if err != nil {
		return nil, err
	}
	files, err := commands.Load(layerFiles(cfg.Layers)...)
	if err != nil {
		return nil, fmt.Errorf("command hooks: %w", err)
	}
	spawner := child.New(child.Options{})
	defer spawner.Close()
	runner := commands.NewRunner(commands.RunnerOptions{Spawner: spawner, Getenv: o.Getenv})
	req := *o.Request
	c := checker{
		CheckOptions: CheckOptions{Stderr: io.Discard, Call: &req}, cfg: cfg, report: &CheckReport{},
		mounter: mount.NewMounter(mount.MounterOptions{
			Registry: registry, Spawner: spawner, Log: zap.NewNop(), Limits: cfg.Limits,
			Server: protocol.Software{Name: "hookd"}, Folder: filepath.Dir(o.ConfigPath),
		}),
		scripts: slices.Concat(commands.Registrations(files, runner), trustedScripts(cfg, &req, runner, o.Getenv)),
	}
	defer c.close()
	open := &opened{}
	if run {
		for _, r := range c.scripts {
			if r.Roles.Interceptor != nil {
				r.Roles.Interceptor = forReal{r.Roles.Interceptor}
			}
			if r.Roles.Approver != nil {
				r.Roles.Approver = approvesForReal{r.Roles.Approver}
			}
		}
		c.start(ctx)
	} else {
		for _, r := range c.scripts {
			open.stand(r)
		}
		made := checker{running: c.foresee(ctx, o.Builtins, open)}
		defer made.close()
	}
	c.together(ctx)
	return &Answer{Result: c.report.Result, Open: open.list(), Problems: c.report.Problems}, nil
}

// What built-ins do by the call alone: they can be asked without a daemon. Those
// who only watch decide nothing, and are not made: some open files.
const (
	judging  = "policy secrets pii input_guard messages"
	watching = "log metrics telemetry record"
)

// foresee mounts the built-ins that judge by the call alone, and puts another in
// the place of every other hook. It returns those that were made all the same.
func (c *checker) foresee(ctx context.Context, own []mount.Builtin, open *opened) (made []*mountedHook) {
	for i := range c.cfg.Hooks.Entries {
		e := &c.cfg.Hooks.Entries[i]
		custom := slices.ContainsFunc(own, func(b mount.Builtin) bool { return b.Name == e.Name })
		switch {
		case !e.Enabled, e.Source == hook.InProcess && slices.Contains(strings.Fields(watching), e.Name):
			continue
		case e.Source == hook.InProcess && !custom && e.Name != "human":
			m, err := c.mounter.Mount(ctx, e, 1)
			if err != nil {
				c.report.Problems = append(c.report.Problems, c.problems(e, err)...)
				continue
			}
			h := &mountedHook{entry: e, mounted: m}
			if slices.Contains(strings.Fields(judging), e.Name) {
				c.running = append(c.running, h)
				continue
			}
			r, err := h.registration()
			if err == nil {
				open.stand(r)
				c.scripts = append(c.scripts, r)
			}
			made = append(made, h)
			continue
		}
		r := &hook.Registration{
			Name: e.Name, Source: e.Source, Priority: c.mounter.Registry.Priority(e), Stages: e.Intercept, Match: e.Match, If: e.If, FailPolicy: e.FailPolicy,
			Required: e.Required, Recheck: e.Recheck, Mode: e.Mode, When: cmp.Or(e.When, hook.Always), MayRespond: e.MayRespond,
			Timeout: e.Timeout, ApprovalTimeout: e.ApprovalTimeout, ObserverTimeout: e.ObserverTimeout,
		}
		if e.Intercept == nil && e.Source == hook.InProcess {
			r.Stages = []protocol.Stage{c.Call.Stage.Name}
			if e.Name == "human" {
				r.Stages, r.When = []protocol.Stage{protocol.StageApproveTool}, cmp.Or(e.When, hook.IfAsked)
			}
		}
		r.Roles = hook.Roles{Interceptor: stand{}, Approver: stand{}}
		open.stand(r)
		c.scripts = append(c.scripts, r)
	}
	return made
}

// opened collects the hooks that would have been asked.
type opened struct {
	mu    sync.Mutex
	names []string
}

func (o *opened) note(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !slices.Contains(o.names, name) {
		o.names = append(o.names, name)
	}
}

func (o *opened) list() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.names)
}

// stand puts one in the hook's place that has no opinion.
func (o *opened) stand(r *hook.Registration) {
	s := stand{name: r.Name}
	if r.Mode == "" || r.Mode == hook.Enforce { // else it decides nothing
		s.open = o
	}
	intercepts, approves := r.Roles.Interceptor != nil, r.Roles.Approver != nil
	r.Events = nil
	r.Roles = hook.Roles{Value: s, Stages: r.Roles.Stages, Quick: true}
	if intercepts {
		r.Roles.Interceptor = s
	}
	if approves {
		r.Roles.Approver = s
	}
}

// stand is asked in a hook's place.
type stand struct {
	name string
	open *opened
}

// Intercept notes that the hook would be asked.
func (s stand) Intercept(context.Context, *protocol.Request) (protocol.Decision, error) {
	if s.open != nil {
		s.open.note(s.name)
	}
	return protocol.Decision{}, nil
}

// Approve notes that the hook would be asked.
func (s stand) Approve(context.Context, *protocol.Request) (protocol.Approval, error) {
	if s.open != nil {
		s.open.note(s.name)
	}
	return protocol.Approval{Approved: true}, nil
}

// forReal asks a script as if the call were no dry run.
type forReal struct{ hook.Interceptor }

// Intercept runs the script.
func (r forReal) Intercept(ctx context.Context, req *protocol.Request) (protocol.Decision, error) {
	as := *req
	as.DryRun = false
	return r.Interceptor.Intercept(ctx, &as)
}

// approvesForReal does so for an approver.
type approvesForReal struct{ hook.Approver }

// Approve runs the script.
func (r approvesForReal) Approve(ctx context.Context, req *protocol.Request) (protocol.Approval, error) {
	as := *req
	as.DryRun = false
	return r.Approver.Approve(ctx, &as)
}

// trustedScripts are those of the project in which the call happens, if its
// file is trusted as it is.
func trustedScripts(cfg *config.Config, req *protocol.Request, run *commands.Runner, getenv func(string) string) (list []*hook.Registration) {
	for _, rel := range cfg.Layers.Project {
		cwd := req.MetaString("cwd")
		path, content, err := trust.Open(cwd, rel)
		if cwd == "" || err != nil {
			continue
		}
		f, err := commands.Parse(path, content)
		if err != nil {
			continue
		}
		store := &trust.Store{Path: TrustList(getenv)}
		if state, _, err := store.State(path, content, f.Names()); err == nil && state == trust.Trusted {
			list = append(list, f.Hooks(hook.LayerProject, 0, run)...)
		}
	}
	return list
}
