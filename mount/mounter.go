package mount

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/hookd/hookd/child"
	"github.com/hookd/hookd/config"
	"github.com/hookd/hookd/dialect"
	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// MounterOptions are what hooks are made with.
type MounterOptions struct {
	// Registry holds the built-ins; nil means none.
	Registry *Registry
	// Spawner starts the children. The caller closes it, after all hooks.
	Spawner *child.Spawner
	// Log gets what hooks do and what children write to stderr; nil = none.
	Log *zap.Logger
	// Limits bound what a child may make hookd hold.
	Limits protocol.Limits
	// Server is how hookd names itself to children.
	Server protocol.Software
	// Folder is where relative paths in the config of built-ins start: that of
	// the config file.
	Folder string
	// OnState, if set, is told each change of a process hook's state, in the
	// order in which they happen. It must not wait for the hook.
	OnState func(name string, s Status)
	// OnProgress, if set, is told what process hooks say of calls that they
	// still work on, at most ten times a second each. It must not wait.
	OnProgress func(Progress)
}

// Mounter makes hooks of entries.
type Mounter struct {
	MounterOptions
	timing timing
}

// NewMounter returns a Mounter.
func NewMounter(o MounterOptions) *Mounter {
	if o.Registry == nil {
		o.Registry = &Registry{}
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	o.Limits = o.Limits.WithDefaults()
	return &Mounter{o, defaultTiming()}
}

// Mount makes the hook of an entry, for this generation and those after it. A
// built-in is made at once. The supervisor of a process is started and not
// waited for: see [Mounted.Ready]. The caller closes the hook. ctx limits the
// mounting only.
func (m *Mounter) Mount(ctx context.Context, e *config.Entry, generation uint64) (*Mounted, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("mount %q: %w", e.Name, context.Cause(ctx))
	}
	hook, err := m.mount(e, generation)
	if err != nil {
		return nil, fmt.Errorf("mount %q: %w", e.Name, err)
	}
	return hook, nil
}

func (m *Mounter) mount(e *config.Entry, generation uint64) (*Mounted, error) {
	mounted := &Mounted{entry: e, key: e.ProcessKey(), began: time.Now()}
	log := m.Log.With(zap.String("hook", e.Name))
	if e.Source == hook.Process {
		p := newProcess(m.job(e, generation, log))
		mounted.process, mounted.roles = p, hook.Roles{Observer: p, Interceptor: p, Approver: p, Remote: true}
		return mounted, nil
	}
	b, ok := m.Registry.builtins[e.Name]
	if !ok {
		return nil, errors.New(m.Registry.Check(e)[0].Message)
	}
	if err := b.validate(e.Config); err != nil {
		return nil, err
	}
	value, err := b.New(BuiltinContext{Name: e.Name, Config: e.Config, Folder: m.Folder, Generation: generation, Log: log})
	if err != nil {
		return nil, err
	}
	mounted.value = value
	if mounted.roles, err = hook.RolesOf(value); err != nil {
		return nil, errors.Join(err, mounted.closeValue())
	}
	mounted.events, mounted.stages = b.handles(mounted.roles)
	mounted.priority, mounted.timeout, mounted.when = b.Priority, b.Timeout, b.When
	return mounted, nil
}

// job says how to run the process of an entry.
func (m *Mounter) job(e *config.Entry, generation uint64, log *zap.Logger) job {
	spec := child.Spec{
		Name: e.Name, Argv: e.Command, Dir: e.Dir, Env: e.Env, PassEnv: e.PassEnv, Pins: pinsOf(e),
		Background: len(e.Intercept) == 0,
		Stderr: func(line []byte, dropped int64) {
			if dropped > 0 {
				log.Warn("lines on the hook's stderr were dropped", zap.Int64("bytes", dropped))
				return
			}
			log.Warn("hook says on stderr", zap.ByteString("line", line))
		},
	}
	if names := child.Withheld(spec); len(names) > 0 {
		log.Warn("variables in pass_env are not passed on; set them in env if they are meant", zap.Strings("names", names))
	}
	events := make([]string, len(e.Observe))
	for i, s := range e.Observe {
		events[i] = s.String()
	}
	limits := protocol.Limits{MaxMessageBytes: m.Limits.MaxMessageBytes, MaxInFlight: e.MaxInFlight}
	if limits.MaxInFlight == 0 {
		limits.MaxInFlight = m.Limits.MaxInFlight
	}
	return job{
		name: e.Name, dialect: dialect.Dialect(e.Dialect),
		offer: protocol.HookHello{
			Name: e.Name, Version: protocol.Version, Modes: protocol.Modes(e.Intercept, len(events) > 0), Stages: e.Intercept,
			Events: events, Server: m.Server, Generation: generation, Limits: limits, Config: e.Config,
		},
		maxInFlight: e.MaxInFlight, strategies: e.KeyStrategies, files: e.Files, limits: m.Limits,
		start: func(ctx context.Context) (program, error) {
			spec.Sandbox = sandboxOf(e)
			process, err := m.Spawner.Start(ctx, spec)
			if err != nil {
				return nil, err
			}
			return childProgram{process}, nil
		},
		escaped: func() int64 { return m.Spawner.Escaped(e.Name) },
		timing:  m.timing, jitter: rand.Float64, log: log, onState: m.OnState, onProgress: m.OnProgress,
	}
}

// sandboxOf returns an entry's sandbox, in which the files of its command can
// be read as they are now.
func sandboxOf(e *config.Entry) *child.Sandbox {
	if e.Sandbox == nil {
		return nil
	}
	return &child.Sandbox{Read: append(slices.Clip(e.Sandbox.Read), e.CommandFiles()...), Write: e.Sandbox.Write, Network: e.Sandbox.Network}
}

func pinsOf(e *config.Entry) (pins []child.Pin) {
	for _, p := range e.Pins {
		pins = append(pins, child.Pin{Path: p.Path, SHA256: p.SHA256})
	}
	return pins
}

// CheckPins compares the files that an entry pins with what they are now, and
// reports each that is another one at its place in the config.
func CheckPins(c *config.Config, e *config.Entry) (problems []*config.LoadError) {
	for i, p := range pinsOf(e) {
		if err := p.Check(); err != nil {
			problems = append(problems, c.ProblemAt(e.Pins[i].Pointer, err.Error()))
		}
	}
	return problems
}

// childProgram makes one stream of a child's stdin and stdout.
type childProgram struct{ *child.Process }

func (c childProgram) Read(b []byte) (int, error)  { return c.Stdout().Read(b) }
func (c childProgram) Write(b []byte) (int, error) { return c.Stdin().Write(b) }

// SyscallConn gives the descriptor that is written to, so that a call needs no
// goroutine when the pipe takes it at once.
func (c childProgram) SyscallConn() (syscall.RawConn, error) { return c.Stdin().SyscallConn() }

// ReadConn gives the descriptor that is read from.
func (c childProgram) ReadConn() (syscall.RawConn, error) { return c.Stdout().SyscallConn() }

func (c childProgram) Close() error {
	c.Stdin().Close() // it may be closed already, because the child has ended
	return c.Stdout().Close()
}
