// Package daemon is the running house: it makes sockets, hooks and config meet,
// reloads, answers for its state, and takes everything down in order.
//
// The way in is [Run]. What happens while it runs:
//
//   - agent.go serves agents: every request becomes a call of the manager.
//   - control.go serves those who rule hookd, on a socket of its own that no
//     hook can hold up.
//   - reload.go turns each good version of the config into a generation,
//     overrides.go lets an operator outrank it, hooks.go keeps the running hooks.
//   - people.go is where persons rule: approvals.go and sessions.go.
//   - record.go keeps the durable record of what was decided.
//   - metrics.go is what the built-in metrics looks up.
//   - status.go says how everybody fares.
//   - systemd.go keeps a service manager informed and takes its sockets.
package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/hookd/hookd/child"
	"github.com/hookd/hookd/client"
	"github.com/hookd/hookd/commands"
	"github.com/hookd/hookd/config"
	"github.com/hookd/hookd/manager"
	"github.com/hookd/hookd/mount"
	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/rpc"
)

// How long the parts of a shutdown may take. Together they stay under ten
// seconds.
const (
	drainCalls     = 5 * time.Second
	drainObservers = 300 * time.Millisecond
	stopHooks      = 4100 * time.Millisecond
	closeRecord    = 500 * time.Millisecond
)

// Options say how to run.
type Options struct {
	// ConfigPath is the file; empty means none: defaults and the log.
	ConfigPath string
	// Socket and ControlSocket override the config; empty = not said.
	Socket, ControlSocket string
	// Stdio, when set, is served as an agent too. When it ends, Run returns.
	Stdio io.ReadWriteCloser
	// Builtins are kinds of in-process hooks besides those that ship.
	Builtins []mount.Builtin
	// Helper limits what hook processes may do, see [child.Main]; nil = they may
	// do what hookd may.
	Helper *child.Helper
	// Alone says that this process is hookd and nothing else. It then adopts
	// what hooks leave behind, hides its memory from other processes of its user
	// unless it logs at level debug (only Linux can do both), and decides when the
	// runtime collects memory and gives it back.
	Alone bool
	// Recorder is shown every answer before it is sent, beside the durable record
	// that the config asks for; nil = none. An error of either makes it a no.
	Recorder manager.Recorder
	// Metrics serves GET /metrics at the HTTP door in the place of the built-in
	// metrics; nil = that does, when the config has it.
	Metrics http.Handler
	// Version is what hookd calls its version.
	Version string
	// Stderr gets the log; nil = os.Stderr.
	Stderr io.Writer
	// Getenv looks up the environment; nil = os.Getenv.
	Getenv func(string) string
	// Reload asks for a reload each time something comes, such as a SIGHUP.
	Reload <-chan os.Signal
	// Hurry ends a shutdown at once when something comes, such as a second
	// signal.
	Hurry <-chan struct{}
	// Serving, when set, is called when the sockets are open.
	Serving func(Sockets)
}

// Sockets are where a daemon listens.
type Sockets struct{ Agents, Control string }

// Daemon is a running hookd.
type daemon struct {
	Options
	log      *zap.Logger
	level    zap.AtomicLevel
	registry *mount.Registry
	spawner  *child.Spawner
	mounter  *mount.Mounter
	manager  *manager.HookManager
	stages   *protocol.StageTable
	bytes    *rpc.Budget
	agents   *rpc.Server
	control  *rpc.Server
	scripts  *commands.Runner
	door     *httpDoor // nil: the config leaves it shut
	people   *people
	book     *book
	takers   *takers
	sockets  Sockets
	handed   inherited
	started  time.Time

	// requests is how everything that changes the set of hooks reaches the one
	// goroutine that does (reload.go).
	requests chan request
	// changes says that the config file is another one; nil = it is not watched.
	changes <-chan struct{}
	// refresh asks for a look at what the hooks said of themselves; one slot.
	refresh chan struct{}
	// news asks for a word to the service manager (systemd.go); one slot.
	news      chan struct{}
	announced atomic.Bool // the service manager knows that hookd is ready

	set     hookSet      // that goroutine's
	view    atomic.Value // of *hookSet: what others may read of the set
	watcher atomic.Pointer[config.Watcher]
	drains  sync.WaitGroup // background work of reloads

	mu       sync.Mutex
	sessions map[*session]struct{}
	mounted  map[*mount.Mounted]struct{} // all that are not closed
	heard    map[string]SeenAgent        // coding agents, by name

	retries retries // of coding agents

	refused atomic.Int64 // stage calls sent as notifications
	dropped atomic.Int64 // events that are not an agent's to send
	denied  atomic.Int64 // connections of others
}

// Run serves until ctx ends, shuts down in order, and returns nil; or returns
// why it could not start or go on.
func Run(ctx context.Context, o Options) error {
	if o.Stderr == nil {
		o.Stderr = os.Stderr
	}
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	d := &daemon{
		Options: o, level: zap.NewAtomicLevel(), stages: protocol.NewStageTable(), started: time.Now(),
		requests: make(chan request), refresh: make(chan struct{}, 1), news: make(chan struct{}, 1), sessions: map[*session]struct{}{},
		mounted: map[*mount.Mounted]struct{}{}, people: &people{}, book: newBook(),
	}
	d.takers = d.newTakers()
	if d.Alone && o.Getenv("GOGC") == "" && o.Getenv("GOMEMLIMIT") == "" {
		defer runtime.KeepAlive(ballast())
	}
	var err error
	if d.registry, err = mount.NewRegistry(slices.Concat(shipped(o.Stderr, func() *child.Spawner { return d.spawner }, d.takers), d.people.builtins(), d.book.builtins(), o.Builtins)...); err != nil {
		return fmt.Errorf("built-in hooks: %w", err)
	}
	cfg, err := d.load()
	if err != nil {
		return err
	}
	if d.log, err = newLogger(cfg.Log, d.level, o.Stderr); err != nil {
		return err
	}
	d.setLevel(cfg.Log.Level)
	if d.handed, err = d.inherit(); err != nil {
		return err
	}
	defer d.handed.close()
	d.sockets.Agents = client.SocketPath(d.named(agentsName, o.Socket, cfg.Socket), o.Getenv)
	d.sockets.Control = client.ControlSocketPath(d.named(controlName, o.ControlSocket, cfg.Control), d.sockets.Agents, o.Getenv)
	return d.run(ctx, cfg)
}

// load reads the config, or makes the one that holds without a file.
func (d *daemon) load() (*config.Config, error) {
	if d.ConfigPath == "" {
		return config.Default(), nil
	}
	return config.Load(d.ConfigPath, d.registry.Check)
}

func (d *daemon) run(ctx context.Context, cfg *config.Config) (err error) {
	// The record and the sockets come first: a second daemon must stop here,
	// before it starts any hook.
	control, agents, err := d.openPlaces(ctx, cfg)
	defer d.closeBook(closeRecord) // last, when nobody decides anything any more
	if err != nil {
		return err
	}
	if agents != nil {
		defer control.Close()
		defer agents.Close()
	}

	d.bytes = rpc.NewBudget(cfg.Limits.MaxBytesInFlight)
	d.manager = manager.New(manager.Options{Log: d.log.Named("manager"), Recorder: d.recorder()})
	d.spawner = child.New(child.Options{Helper: d.Helper, Adopt: d.Alone})
	defer d.spawner.Close()
	d.openPeople(d.book.peopleStores())
	d.mounter = mount.NewMounter(mount.MounterOptions{
		Registry: d.registry, Spawner: d.spawner, Log: d.log.Named("hook"), Limits: cfg.Limits,
		Server: d.software(), Folder: filepath.Dir(d.ConfigPath), OnState: d.hookState, OnProgress: d.hookProgress,
	})
	if d.Helper == nil {
		d.log.Info("hook processes are not limited: this program does not start them through itself")
	}
	d.scripts = commands.NewRunner(commands.RunnerOptions{Spawner: d.spawner, Progress: d.scriptProgress, Getenv: d.Getenv})
	if err := d.firstGeneration(ctx, cfg); err != nil {
		d.takeDown()
		return err
	}
	d.book.begun(cfg, d.manager.Generation().Number, d.Version)
	door, err := d.openHTTP(cfg)
	if err != nil {
		d.takeDown()
		return err
	}
	d.agents = rpc.NewServer(d.knowing(d.agentServer(cfg)))
	d.control = rpc.NewServer(d.controlServer(cfg))

	serving, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	var parts sync.WaitGroup
	serve := func(name string, s *rpc.Server, l net.Listener) {
		if err := s.Serve(context.WithoutCancel(ctx), l); !errors.Is(err, rpc.ErrServerClosed) {
			stop(fmt.Errorf("%s: %w", name, err))
		}
	}
	if agents != nil {
		parts.Go(func() {
			if d.handed[agentsName] != nil {
				d.awaitHooks(serving)
			}
			serve("socket", d.agents, agents)
		})
		parts.Go(func() { serve("control socket", d.control, control) })
	}
	if door != nil {
		parts.Go(func() {
			if err := door.serve(); err != nil {
				stop(err)
			}
		})
		d.door = door
	}
	if w := d.watch(serving); w != nil {
		defer w.Close()
	}
	parts.Go(func() { d.reloads(serving) })
	parts.Go(func() { d.watchLayers(serving) })
	informing, stopInforming := context.WithCancel(serving)
	defer stopInforming()
	parts.Go(func() { d.keepInformed(informing) })
	if d.Alone {
		parts.Go(func() { giveBack(serving, lookAtHeap, freeMemory, forgetStart) })
	}
	if d.Stdio != nil {
		parts.Go(func() { stop(d.serveStdio(parent(serving))) })
	}
	d.log.Info("serving", zap.String("socket", d.sockets.Agents), zap.String("control_socket", d.sockets.Control),
		zap.String("config", d.ConfigPath), zap.Int("hooks", len(d.manager.Generation().Hooks())), zap.String("version", d.Version))
	if d.Serving != nil {
		d.Serving(d.sockets)
	}

	select {
	case <-ctx.Done():
		d.log.Info("shutting down", zap.String("cause", context.Cause(ctx).Error()))
	case <-serving.Done():
		if err = context.Cause(serving); errors.Is(err, io.EOF) {
			err = nil // stdio ended: the agent is done with us
		}
	}
	stopInforming()
	d.tell(systemd.SdNotifyStopping, "STATUS=shutting down")
	d.shutdown(func() { stop(context.Canceled); parts.Wait() })
	return err
}

// openPlaces opens the record and the two sockets. Of two hookds the one
// without sockets leaves, whoever was first at the record.
func (d *daemon) openPlaces(ctx context.Context, cfg *config.Config) (control, agents net.Listener, err error) {
	kept := d.openBook(cfg, RecordPath(cfg, d.sockets.Agents, d.Getenv))
	if kept != nil && !isTaken(kept) {
		return nil, nil, kept
	}
	if control, agents, err = d.listen(cfg); err != nil {
		return nil, nil, err
	}
	switch {
	case kept == nil:
		return control, agents, nil
	case agents == nil:
		return nil, nil, d.openOwnBook(cfg)
	}
	if err := d.awaitBook(ctx, cfg, kept); err != nil {
		control.Close()
		agents.Close()
		return nil, nil, err
	}
	return control, agents, nil
}

// listen opens the two sockets. A hookd that is the child of an agent does
// without when another one has them and nobody asked for them: each of several
// agents may start one.
func (d *daemon) listen(cfg *config.Config) (control, agents net.Listener, err error) {
	if control, err = d.handed.listen(controlName, d.sockets.Control, cfg.Control); err != nil {
		err = fmt.Errorf("control socket: %w", err)
	} else if agents, err = d.handed.listen(agentsName, d.sockets.Agents, cfg.Socket); err != nil {
		control.Close()
		err = fmt.Errorf("socket: %w", err)
	}
	named := cmp.Or(d.Socket, d.ControlSocket, cfg.Socket.Path, cfg.Control.Path, d.Getenv("HOOKD_SOCKET"), d.Getenv("HOOKD_CONTROL_SOCKET"))
	if errors.Is(err, rpc.ErrAlreadyRunning) && d.Stdio != nil && named == "" {
		d.log.Info("another hookd has the sockets; this one serves its agent only", zap.String("socket", d.sockets.Agents))
		d.sockets = Sockets{}
		return nil, nil, nil
	}
	return control, agents, err
}

// shutdown takes the house down from the door inwards: agents first, so that
// calls under way still find their hooks; control last, so that status answers
// meanwhile.
func (d *daemon) shutdown(stopParts func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	done := make(chan struct{})
	defer close(done)
	go func() { // ends with shutdown
		select {
		case <-d.Hurry:
			cancel(errors.New("a second signal"))
		case <-done:
		}
	}()

	d.manager.DenyApprovals(manager.ErrShuttingDown)
	calls, stopCalls := context.WithTimeoutCause(ctx, drainCalls, manager.ErrShuttingDown)
	var doors sync.WaitGroup
	if d.door != nil {
		doors.Go(func() { d.door.shutdown(calls) })
	}
	if err := d.agents.Shutdown(calls); err != nil {
		d.log.Warn("calls were cut short", zap.Error(err))
	}
	doors.Wait()
	stopCalls()
	observers, stopObservers := context.WithTimeout(ctx, drainObservers)
	if err := d.manager.Close(observers); err != nil {
		d.log.Warn("observers were cut short", zap.Error(err))
	}
	stopObservers()
	dropCanaries(d.current().hooks, nil)
	hooks, stopStopping := context.WithTimeout(ctx, stopHooks)
	d.closeHooks(hooks)
	stopStopping()
	// Serve of the control socket is among the parts.
	d.control.Close()
	stopParts()
	dropCanaries(d.set.hooks, nil) // of a reload that has come in between
	d.drains.Wait()
	d.log.Info("stopped")
}

// takeDown ends what a failed start has begun.
func (d *daemon) takeDown() {
	ctx, cancel := context.WithTimeout(context.Background(), stopHooks)
	defer cancel()
	dropCanaries(d.set.hooks, nil)
	d.closeHooks(ctx)
	// Nothing was served, so there is nothing that could be cut short.
	_ = d.manager.Close(ctx)
}

func (d *daemon) software() protocol.Software {
	return protocol.Software{Name: "hookd", Version: d.Version}
}

// authorize lets hookd's own user, root and those whom the config names in.
func (d *daemon) authorize(allowed []int) func(rpc.Creds) error {
	return func(c rpc.Creds) error {
		if c.UID == os.Geteuid() || c.UID == 0 || slices.Contains(allowed, c.UID) {
			return nil
		}
		d.denied.Add(1)
		err := fmt.Errorf("user %d may not connect here", c.UID)
		d.book.turnedAway(c, err)
		return err
	}
}

func (d *daemon) setLevel(name string) {
	// The config has been checked, and an unknown word would leave the level.
	if l, err := zapcore.ParseLevel(strings.ToLower(name)); err == nil {
		d.level.SetLevel(l)
	}
	if d.Alone {
		if err := hideMemory(d.level.Level() != zapcore.DebugLevel); err != nil {
			d.log.Warn("the memory of hookd can be read by other processes of its user", zap.Error(err))
		}
	}
}
