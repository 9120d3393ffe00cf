package mount

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/hookd/hookd/child"
	"github.com/hookd/hookd/dialect"
	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// program is one operating system process as its supervisor sees it: what it
// writes can be read, and what is written it reads.
type program interface {
	io.ReadWriteCloser
	PID() int
	Done() <-chan struct{}
	Exit() child.Exit
	StderrTail() []string
	Confinement() child.Confinement
	Stop(ctx context.Context) child.Exit
	Kill()
}

// job is what a process hook is made from.
type job struct {
	name        string
	dialect     dialect.Dialect // of all that is said to the child and read from it
	offer       protocol.HookHello
	maxInFlight int // 0: as the hook says
	strategies  map[string]protocol.KeyStrategy
	files       func() []string
	limits      protocol.Limits
	// start starts the program; ctx limits the start only.
	start func(ctx context.Context) (program, error)
	// escaped counts the processes that have left the program's group; nil = none.
	escaped func() int64
	timing  timing
	jitter  func() float64
	log     *zap.Logger
	// onState is told each change of state, in order, by one goroutine.
	onState func(name string, s Status)
	// onProgress is told what the hook says of calls that it still works on.
	onProgress func(Progress)
}

// process is a hook that runs in a child process, and its supervisor: one
// goroutine that starts the child, watches it while it serves, and starts it
// again. It fills all roles; which of them count is the entry's to say.
type process struct {
	job
	// closing ends when the hook is to be closed, and hurry when nobody has the
	// patience to wait for calls and for the steps of a stop.
	closing, hurry context.Context
	close, hasten  context.CancelFunc
	restart        chan restartRequest
	done           chan struct{} // the supervisor has returned

	restarts restarts // the supervisor's

	mu       sync.Mutex
	state    State
	changed  chan struct{} // closed and made anew with each change of state
	run      *run          // the one that may be called, nil when none
	program  program       // the one that exists, nil when none
	started  time.Time
	runs     int
	lastErr  error              // why the last run ended or did not start
	unborn   bool               // it did not start,
	suspect  bool               // because a pinned file is not what it was
	confined *child.Confinement // as it was last started
	welcome  *protocol.HookWelcome
	tail     []string // stderr of the last run
	noise    map[string]int64
	garbage  string // the last unreadable line
	print    string // the fingerprint of the files
}

// restartRequest asks the supervisor for a new run. ctx limits how long calls
// in flight may take to finish.
type restartRequest struct {
	ctx   context.Context
	taken chan struct{} // closed when the old run is over or about to be
}

func newProcess(j job) *process {
	p := &process{
		job: j, state: Starting, changed: make(chan struct{}), noise: map[string]int64{},
		restart: make(chan restartRequest), done: make(chan struct{}),
	}
	p.closing, p.close = context.WithCancel(context.Background())
	p.hurry, p.hasten = context.WithCancel(context.Background())
	p.restarts.timing = &p.timing
	go p.supervise()
	return p
}

// Remote makes the manager leave timeouts to the process.
func (p *process) Remote() {}

// become sets the state and tells those who wait for it. It reports whether it
// was another one.
func (p *process) become(s State) bool {
	p.mu.Lock()
	if p.state == s {
		p.mu.Unlock()
		return false
	}
	p.state = s
	close(p.changed)
	p.changed = make(chan struct{})
	p.mu.Unlock()
	if p.onState != nil {
		p.onState(p.name, p.status())
	}
	return true
}

// life returns the run that may be called, nil when none may, and a channel
// that is closed when the state changes.
func (p *process) life() (*run, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run == nil || p.run.draining {
		return nil, p.changed
	}
	return p.run, p.changed
}

// status returns how the process fares.
func (p *process) status() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Status{
		Name: p.name, State: p.state, Started: p.started, Restarts: max(p.runs-1, 0),
		Noise: maps.Clone(p.noise), Garbage: p.garbage, StderrTail: p.tail, Fingerprint: p.print,
	}
	if p.lastErr != nil {
		s.LastError = p.lastErr.Error()
	}
	s.Confinement = p.confined
	if p.escaped != nil {
		s.Escaped = p.escaped()
	}
	if p.program != nil {
		s.PID, s.StderrTail = p.program.PID(), p.program.StderrTail()
	}
	if p.run != nil {
		s.InFlight, s.Capacity = len(p.run.slots), cap(p.run.slots)
	}
	if p.welcome != nil {
		s.Greeted, s.Stages = p.welcome.Name, slices.Clone(p.welcome.Stages)
	}
	return s
}

// greeted returns the answer to the last greeting, nil before the first.
func (p *process) greeted() *protocol.HookWelcome {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.welcome
}

var errClosed = errors.New("it was closed")

// ready waits until the process may be called, and returns the reason as soon
// as it is known that the current attempt to start it has failed.
func (p *process) ready(ctx context.Context) error {
	for {
		p.mu.Lock()
		state, err, changed := p.state, p.lastErr, p.changed
		p.mu.Unlock()
		switch state {
		case Ready, Degraded:
			return nil
		case Backoff, Failed, Untrusted:
			return err
		case Stopped:
			return errClosed
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// renew ends the run that serves, or the pause before the next, and waits
// until the new one is ready.
func (p *process) renew(ctx context.Context) error {
	r := restartRequest{ctx, make(chan struct{})}
	select {
	case p.restart <- r:
	case <-p.done:
		return errClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	<-r.taken
	return p.ready(ctx)
}

// shut lets calls in flight finish, stops the child and waits for the
// supervisor. When ctx ends, calls are given up and the child is killed.
func (p *process) shut(ctx context.Context) {
	p.close()
	select {
	case <-p.done:
	case <-ctx.Done():
		p.hasten()
		<-p.done
	}
}

// enter takes part in the run that serves. Whoever was let in calls leave.
func (p *process) enter() (*run, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.run; r != nil && !r.draining {
		r.calls++
		return r, nil
	}
	f := &hook.Failure{Outcome: protocol.OutcomeStarting, Detail: "it is being started"}
	switch {
	case p.closing.Err() != nil:
		f.Outcome, f.Detail = protocol.OutcomeCrash, errClosed.Error()
	case p.suspect:
		f.Outcome, f.Detail = protocol.OutcomeUntrustedChanged, brief(p.lastErr)
	case p.state == Failed:
		f.Outcome, f.Detail = protocol.OutcomeBreakerOpen, fmt.Sprintf("it ended or did not start %d times in a minute, the last time because %s", p.timing.badRuns, brief(p.lastErr))
	case p.unborn:
		f.Outcome, f.Detail = protocol.OutcomeSpawnFailed, brief(p.lastErr)
	case p.lastErr != nil:
		f.Detail = "it is being restarted because " + brief(p.lastErr)
	}
	return nil, f
}

// leave ends what enter began.
func (p *process) leave(r *run) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.calls--; r.draining && r.calls == 0 {
		close(r.idle)
	}
}

// count counts noise and keeps what an unreadable line looked like.
func (p *process) count(kind, garbage string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.noise[kind]++
	if garbage != "" {
		p.garbage = garbage
	}
}
