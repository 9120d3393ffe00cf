package child

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A file that was just written can be busy for a moment, because a process that
// is being forked holds it open until its own program is loaded.
const (
	textBusyTries = 3
	textBusyPause = 50 * time.Millisecond
)

// Spawner starts children, all from one operating system thread. The kernel
// kills a child when the thread that started it ends, not when the process
// does, so that thread must live as long as its children. Make one with
// NewSpawner and Close it when all children were stopped.
//
// Where hookd is the first process of a container, or shall adopt, it also takes
// care of what children leave behind; see [Options].
type Spawner struct {
	helper   *Helper
	orphans  *orphans // nil when there can be none
	timing   timing
	requests chan request
	children sync.WaitGroup

	mu       sync.Mutex
	unreaped map[int]*Process // by process id
	names    map[string]bool  // of all children there ever were

	open  context.Context // ends with Close
	close context.CancelFunc
	ended chan struct{} // the thread is gone
}

type request struct {
	ctx   context.Context
	order order
	reply chan started // unbuffered: taking it is taking over the process
}

// order is what the thread starts.
type order struct {
	Spec
	path    string
	program *os.File // the checked file at path when it is pinned, else nil
	fence   *fence
}

type started struct {
	process *Process
	err     error
}

// Options are what a Spawner is made with. The zero value is good.
type Options struct {
	// Helper limits what children may do; nil starts them as they are.
	Helper *Helper
	// Adopt makes this process the parent of what its children leave behind,
	// until Close: those processes are reaped when they end, and killed when
	// they have left their child's group and the child is gone. It is for a
	// program whose processes all come from its Spawner, or are waited for.
	// Only Linux can do it.
	Adopt bool
}

// NewSpawner returns a Spawner that is ready to start children, without any
// options. The caller closes it.
func NewSpawner() *Spawner { return New(Options{}) }

// New returns a Spawner that is ready to start children. The caller closes it.
func New(o Options) *Spawner { return newSpawner(o, orphanPause, orphanAge) }

// newSpawner looks for orphans every pause, where there can be any.
func newSpawner(o Options, pause, age time.Duration) *Spawner {
	s := &Spawner{
		helper: o.Helper, timing: defaultTiming, requests: make(chan request), ended: make(chan struct{}),
		unreaped: map[int]*Process{}, names: map[string]bool{},
	}
	if o.Adopt && adopt(true) || os.Getpid() == 1 { // the first process inherits all orphans
		s.orphans = newOrphans(age, s)
	}
	s.open, s.close = context.WithCancel(context.Background())
	go s.run(pause)
	return s
}

// Start starts a child. ctx limits the start only: ending it later does nothing
// to the child. The caller must Stop or Kill the process, or see it end, and
// close its Stdout. The error is a *StartError; it wraps a *ChangedError when a
// pinned file has not the right content.
func (s *Spawner) Start(ctx context.Context, spec Spec) (*Process, error) {
	if len(spec.Argv) == 0 || spec.Argv[0] == "" {
		return nil, &StartError{"start", spec.Name, errors.New("the command is empty"), "name a program in command"}
	}
	for name := range spec.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return nil, &StartError{"start", spec.Name, syscall.EINVAL, "correct this name in env: " + string(printable([]byte(name)))}
		}
	}
	for try := 0; ; try++ {
		process, err := s.start(ctx, spec)
		if try == textBusyTries || !errors.Is(err, syscall.ETXTBSY) {
			return process, err
		}
		select {
		case <-time.After(textBusyPause):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// start makes one attempt.
func (s *Spawner) start(ctx context.Context, spec Spec) (*Process, error) {
	path, missing := Resolve(spec.Argv[0], spec.Dir)
	// When the program is pinned, that it is gone is a change too.
	program, err := verify(spec.Pins, path)
	if program != nil {
		defer program.Close()
	}
	if err != nil {
		return nil, err
	}
	if missing != nil {
		return nil, missing
	}
	fence, err := spec.Sandbox.fence(path, spec.Dir)
	if err != nil {
		return nil, err
	}
	process, err := s.request(ctx, order{spec, path, program, fence})
	if err == nil {
		err = process.awaitProgram(ctx, path)
	}
	if err == nil && len(spec.Pins) > 0 {
		process.confinement.Active = append(process.confinement.Active, "sha256")
	}
	if err != nil {
		if failed, ok := errors.AsType[*StartError](err); ok && fence != nil && errors.Is(err, syscall.EACCES) {
			failed.Hint = "the sandbox may keep it from running: add the folders of the program and of what runs it to sandbox.read"
		}
		return nil, err
	}
	return process, nil
}

func (s *Spawner) request(ctx context.Context, o order) (*Process, error) {
	refuse := func(err error) (*Process, error) { return nil, &StartError{"start", o.path, err, ""} }
	if ctx.Err() != nil {
		return refuse(context.Cause(ctx)) // select would choose at random
	}
	r := request{ctx, o, make(chan started)}
	select {
	case <-ctx.Done():
		return refuse(context.Cause(ctx))
	case <-s.open.Done():
		return refuse(ErrClosed)
	case s.requests <- r:
	}
	select {
	case <-ctx.Done():
		return refuse(context.Cause(ctx))
	case result := <-r.reply:
		return result.process, result.err
	}
}

// Close kills the children that still run, because they would die with the
// thread anyway, waits until all have ended, and ends the thread. Start fails
// from now on. It may be called several times and never returns an error.
func (s *Spawner) Close() error {
	s.close()
	<-s.ended
	return nil
}

func (s *Spawner) run(pause time.Duration) {
	// Never unlocked: no other goroutine may run on this thread, since it could
	// end it.
	runtime.LockOSThread()
	defer close(s.ended)
	if s.orphans != nil {
		defer adopt(false)
		defer s.lookAround(pause)()
	}
	for {
		select {
		case <-s.open.Done():
			s.children.Wait()
			return
		case r := <-s.requests:
			process, err := s.launch(r.order)
			select {
			case r.reply <- started{process, err}:
			case <-r.ctx.Done(): // the caller has left
				if err == nil {
					process.abandon()
				}
			}
		}
	}
}

// lookAround looks for orphans every now and then until the function that it
// returns is called.
func (s *Spawner) lookAround(pause time.Duration) (stop func()) {
	var looking sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	looking.Go(func() {
		ticker := time.NewTicker(pause)
		defer ticker.Stop()
		for {
			select {
			case now := <-ticker.C:
				s.orphans.look(now, true)
			case <-ctx.Done():
				return
			}
		}
	})
	return func() { cancel(); looking.Wait() }
}

// launch runs on the thread.
func (s *Spawner) launch(o order) (_ *Process, err error) {
	var ours, theirs []*os.File
	defer func() {
		for _, file := range theirs {
			file.Close()
		}
		if err != nil {
			for _, file := range ours {
				file.Close()
			}
		}
	}()
	pipe := func() (r, w *os.File) {
		if err == nil {
			r, w, err = os.Pipe()
		}
		return r, w
	}
	helper := s.helper
	if o.Plain {
		helper = nil
	}
	stdinR, stdinW := pipe()
	stdoutR, stdoutW := pipe()
	stderrR, stderrW := pipe()
	var statusR, statusW *os.File
	if helper != nil {
		statusR, statusW = pipe()
	}
	ours, theirs = []*os.File{stdinW, stdoutR, stderrR, statusR}, []*os.File{stdinR, stdoutW, stderrW, statusW}
	if err != nil {
		return nil, &StartError{"make pipes for", o.path, errnoOf(err), "raise the limit of open files"}
	}
	growPipe(stdinW)
	growPipe(stdoutR)
	stdout, err := newOutput(stdoutR)
	if err != nil {
		return nil, &StartError{"make pipes for", o.path, err, ""}
	}
	stderr, err := newOutput(stderrR)
	if err != nil {
		return nil, &StartError{"make pipes for", o.path, err, ""}
	}
	// Files, not readers and writers: so Wait copies nothing and closes nothing,
	// and an answer of a child that is already gone can still be read.
	cmd := &exec.Cmd{
		Path: o.path, Args: o.Argv, Dir: o.Dir, Env: Environ(o.Spec, os.LookupEnv),
		Stdin: stdinR, Stdout: stdoutW, Stderr: stderrW, SysProcAttr: ownGroup(),
	}
	if helper != nil {
		if err := helper.lead(cmd, o, statusW); err != nil {
			return nil, &StartError{"start", o.path, err, ""}
		}
	}
	if s.orphans != nil {
		// Until it is known that the process is ours it looks like an orphan.
		s.orphans.mu.Lock()
		defer s.orphans.mu.Unlock()
	}
	if err := cmd.Start(); err != nil {
		return nil, explain(o.path, err)
	}
	if helper == nil {
		_ = preferForOOM(cmd.Process.Pid) // nothing depends on it
	}

	p := &Process{
		cmd: cmd, stdin: stdinW, stdout: stdout, stderr: stderr, status: statusR,
		log: stderrLog{hand: o.Stderr}, timing: s.timing, name: o.Name, done: make(chan struct{}),
	}
	if helper == nil {
		p.confinement = unconfined(o.Sandbox)
	}
	p.stopping, p.stop = context.WithCancel(context.Background())
	p.killing, p.kill = context.WithCancel(s.open)
	s.keep(p)
	return p, nil
}

// keep supervises a process until it has ended, and what it left behind too.
func (s *Spawner) keep(p *Process) {
	if s.orphans != nil {
		p.began = startOf(p.PID())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unreaped[p.PID()], s.names[p.name] = p, true
	s.children.Go(func() {
		defer close(p.done)
		p.supervise()
		if s.orphans != nil {
			s.orphans.look(time.Now(), true) // while the group is known to be ours
		}
		p.exit = p.reap()
		s.mu.Lock()
		if s.unreaped[p.PID()] == p { // another may have the process id by now
			delete(s.unreaped, p.PID())
		}
		s.mu.Unlock()
		if s.orphans != nil {
			s.orphans.sweep()
		}
	})
}
