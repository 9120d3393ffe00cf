package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"go.uber.org/zap"

	"github.com/hookd/hookd/child"
	"github.com/hookd/hookd/config"
	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/manager"
	"github.com/hookd/hookd/mount"
	"github.com/hookd/hookd/protocol"
)

// ReplayOptions say through which hooks calls are to be taken.
type ReplayOptions struct {
	// ConfigPath is the file; empty = the defaults.
	ConfigPath string
	// Builtins are kinds of in-process hooks besides those that ship.
	Builtins []mount.Builtin
	// Helper limits what hook processes may do, as in [Options].
	Helper  *child.Helper
	Version string
	// Stderr is where built-ins write that log there; nil drops it.
	Stderr io.Writer
}

// Replay is a house in which calls are tried as dry runs. It touches no socket
// and no record, asks no person and runs no command hook. Make one with
// [OpenReplay] and close it.
type Replay struct {
	// Warnings say what is not as in the daemon.
	Warnings []string

	checker *checker
	manager *manager.HookManager
	spawner *child.Spawner
}

// OpenReplay loads a config and starts its hooks, all of which must start. The
// error is a [config.LoadError] when the file can't be read as a config.
func OpenReplay(ctx context.Context, o ReplayOptions) (*Replay, error) {
	if o.Stderr == nil {
		o.Stderr = io.Discard
	}
	registry, cfg, err := loadOffline(o.ConfigPath, o.Stderr, o.Builtins)
	if err != nil {
		return nil, err
	}
	spawner := child.New(child.Options{Helper: o.Helper, Adopt: o.Helper != nil})
	r := &Replay{spawner: spawner, checker: &checker{
		CheckOptions: CheckOptions{ConfigPath: o.ConfigPath, Stderr: o.Stderr}, cfg: cfg, report: &CheckReport{},
		mounter: mount.NewMounter(mount.MounterOptions{
			Registry: registry, Spawner: spawner, Log: zap.NewNop(), Limits: cfg.Limits,
			Server: protocol.Software{Name: "hookd", Version: o.Version}, Folder: filepath.Dir(o.ConfigPath),
		}),
	}}
	if err := r.start(ctx); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

func (r *Replay) start(ctx context.Context) error {
	c := r.checker
	c.files()
	c.start(ctx)
	if len(c.report.Problems) > 0 {
		return errors.New(strings.Join(c.report.Problems, "\n"))
	}
	var regs []*hook.Registration
	for _, h := range c.running {
		reg, err := h.registration()
		if err != nil {
			return err
		}
		regs = append(regs, reg)
	}
	if n := len(c.scripts); n > 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("%d command hooks are not run, because a script does not know of dry runs: what they would say is left out", n))
	}
	if !c.cfg.Hooks.Enabled {
		r.Warnings = append(r.Warnings, "hooks.enabled is false in the config: nothing is checked")
	}
	g, err := manager.NewGeneration(1, rulesOf(c.cfg), regs)
	if err != nil {
		return fmt.Errorf("%s: %w", c.cfg.Path, err)
	}
	r.manager = manager.New(manager.Options{})
	r.manager.Swap(g)
	return nil
}

// Call takes a call of this agent through the hooks, as a dry run.
func (r *Replay) Call(ctx context.Context, agent string, req *protocol.Request) (*protocol.Result, error) {
	dry := *req
	dry.DryRun = true
	return r.manager.Call(ctx, &manager.Caller{Name: agent, PID: -1, UID: -1}, &dry)
}

// Close stops the hooks.
func (r *Replay) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), stopHooks)
	defer cancel()
	if r.manager != nil {
		// Nobody is told of a dry run, so there is nothing that could be cut short.
		_ = r.manager.Close(ctx)
	}
	r.checker.close()
	_ = r.spawner.Close()
}

// FindRecord returns where hookd keeps the record under a config, which need not
// be without mistakes, and whether it keeps one. An empty configPath means
// defaults. path is "" when no folder is known.
func FindRecord(configPath, socket string, getenv func(string) string) (path string, kept bool, err error) {
	cfg := config.Default()
	if configPath != "" {
		if cfg, err = config.Load(configPath, nil); err != nil {
			return "", false, err
		}
	}
	return RecordPath(cfg, socket, getenv), cfg.Record.Mode != "off", nil
}
