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
// Where hookd is the first process of a container, it also reaps the orphans
// that it inherits.
type Spawner struct {
	timing   timing
	requests chan request
	children sync.WaitGroup

	mu       sync.Mutex
	unreaped map[int]*Process // by process id

	open  context.Context // ends with Close
	close context.CancelFunc
	ended chan struct{} // the thread is gone
}

type request struct {
	ctx   context.Context
	spec  Spec
	path  string
	reply chan started // unbuffered: taking it is taking over the process
}

type started struct {
	process *Process
	err     error
}

// NewSpawner returns a Spawner that is ready to start children. The caller
// closes it.
func NewSpawner() *Spawner {
	if os.Getpid() == 1 {
		return newSpawner(orphanPause, orphanAge)
	}
	return newSpawner(0, 0) // orphans go to the init of the system
}

// newSpawner looks for orphans every pause; 0 is never.
func newSpawner(pause, age time.Duration) *Spawner {
	s := &Spawner{
		timing: defaultTiming, requests: make(chan request), ended: make(chan struct{}), unreaped: map[int]*Process{},
	}
	s.open, s.close = context.WithCancel(context.Background())
	go s.run(pause, age)
	return s
}

// Start starts a child. ctx limits the start only: ending it later does nothing
// to the child. The caller must Stop or Kill the process, or see it end, and
// close its Stdout. The error is a *StartError.
func (s *Spawner) Start(ctx context.Context, spec Spec) (*Process, error) {
	if len(spec.Argv) == 0 || spec.Argv[0] == "" {
		return nil, &StartError{"start", spec.Name, errors.New("the command is empty"), "name a program in command"}
	}
	for name := range spec.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return nil, &StartError{"start", spec.Name, syscall.EINVAL, "correct this name in env: " + string(printable([]byte(name)))}
		}
	}
	path, err := Resolve(spec.Argv[0], spec.Dir)
	if err != nil {
		return nil, err
	}
	for try := 0; ; try++ {
		process, err := s.request(ctx, spec, path)
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

func (s *Spawner) request(ctx context.Context, spec Spec, path string) (*Process, error) {
	refuse := func(err error) (*Process, error) { return nil, &StartError{"start", path, err, ""} }
	if ctx.Err() != nil {
		return refuse(context.Cause(ctx)) // select would choose at random
	}
	r := request{ctx, spec, path, make(chan started)}
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

func (s *Spawner) run(pause, age time.Duration) {
	// Never unlocked: no other goroutine may run on this thread, since it could
	// end it.
	runtime.LockOSThread()
	defer close(s.ended)
	inherited := orphans{age: age}
	var look <-chan time.Time
	if pause > 0 {
		ticker := time.NewTicker(pause)
		defer ticker.Stop()
		look = ticker.C
	}
	for {
		select {
		case now := <-look:
			inherited.reap(now, s.owns)
		case <-s.open.Done():
			s.children.Wait()
			return
		case r := <-s.requests:
			process, err := s.launch(r.spec, r.path)
			select {
			case r.reply <- started{process, err}:
			case <-r.ctx.Done(): // the caller has left
				if err == nil {
					process.Kill()
					process.stdout.Close()
				}
			}
		}
	}
}

// launch runs on the thread.
func (s *Spawner) launch(spec Spec, path string) (_ *Process, err error) {
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
	stdinR, stdinW := pipe()
	stdoutR, stdoutW := pipe()
	stderrR, stderrW := pipe()
	ours, theirs = []*os.File{stdinW, stdoutR, stderrR}, []*os.File{stdinR, stdoutW, stderrW}
	if err != nil {
		return nil, &StartError{"make pipes for", path, errnoOf(err), "raise the limit of open files"}
	}
	growPipe(stdinW)
	growPipe(stdoutR)
	stdout, err := newOutput(stdoutR)
	if err != nil {
		return nil, &StartError{"make pipes for", path, err, ""}
	}
	stderr, err := newOutput(stderrR)
	if err != nil {
		return nil, &StartError{"make pipes for", path, err, ""}
	}
	// Files, not readers and writers: so Wait copies nothing and closes nothing,
	// and an answer of a child that is already gone can still be read.
	cmd := &exec.Cmd{
		Path: path, Args: spec.Argv, Dir: spec.Dir, Env: Environ(spec, os.LookupEnv),
		Stdin: stdinR, Stdout: stdoutW, Stderr: stderrW, SysProcAttr: ownGroup(),
	}
	if err := cmd.Start(); err != nil {
		return nil, explain(path, err)
	}
	preferForOOM(cmd.Process.Pid)

	p := &Process{
		cmd: cmd, stdin: stdinW, stdout: stdout, stderr: stderr,
		log: stderrLog{hand: spec.Stderr}, timing: s.timing, done: make(chan struct{}),
	}
	p.stopping, p.stop = context.WithCancel(context.Background())
	p.killing, p.kill = context.WithCancel(s.open)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unreaped[p.PID()] = p
	s.children.Go(func() {
		p.supervise()
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.unreaped[p.PID()] == p { // another may have the process id by now
			delete(s.unreaped, p.PID())
		}
	})
	return p, nil
}

// owns reports whether a process is a child that os/exec has yet to reap.
func (s *Spawner) owns(pid int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unreaped[pid] != nil
}
