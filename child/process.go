package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// timing holds how long the steps of an end take.
type timing struct {
	eof      time.Duration // from closing stdin to SIGTERM
	term     time.Duration // from SIGTERM to SIGKILL
	leftover time.Duration // from the end of the child to cutting its stdout, and to SIGKILL for its group if nobody asked for the end
	vanish   time.Duration // for the group to be gone after SIGKILL
}

var defaultTiming = timing{
	eof:      2 * time.Second,
	term:     2 * time.Second,
	leftover: 900 * time.Millisecond, // so that reading ends within 1 s
	vanish:   400 * time.Millisecond, // so that the whole ladder ends within 4.5 s
}

var errRunning = errors.New("still running")

// Process is a child that was started. Its methods may be called from any
// goroutine.
type Process struct {
	cmd            *exec.Cmd
	stdin          *os.File
	stdout, stderr *Output
	status         *os.File // what the helper says; nil without one
	confinement    *Confinement
	log            stderrLog
	timing         timing
	name           string
	began          uint64 // in the system's count

	stopping, killing context.Context // what was asked for
	stop, kill        context.CancelFunc

	mu     sync.Mutex
	reaped bool // the id of the group may belong to others

	exit Exit // set before done is closed
	done chan struct{}
}

// PID returns the process id, which is also the id of the process group.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Stdin returns the pipe the child reads. The caller may close it, which asks
// the child to end; it is closed in any case when the child has ended. Writes
// then fail with os.ErrClosed or EPIPE. Write deadlines work as long as nobody
// calls its Fd method.
func (p *Process) Stdin() *os.File { return p.stdin }

// Stdout returns the pipe the child writes. The caller closes it.
func (p *Process) Stdout() *Output { return p.stdout }

// Confinement says how the child is limited. It must not be changed.
func (p *Process) Confinement() Confinement { return *p.confinement }

// Done is closed when the child was reaped, no process of its group runs any
// more and its standard error was read to the end; of a Spawner that adopts also
// when what had left the group was killed. What it wrote to standard
// output can still be read.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exit says how the child ended. Before Done is closed, its Err is set.
func (p *Process) Exit() Exit {
	select {
	case <-p.done:
		return p.exit
	default:
		return Exit{Code: -1, Err: errRunning}
	}
}

// StderrTail returns the last lines, at most 20, that the child wrote to
// standard error, oldest first and escaped like those given to Spec.Stderr.
func (p *Process) StderrTail() []string { return p.log.last() }

// Stop ends the child and its group: it closes stdin, sends SIGTERM to what
// still runs after 2 s and SIGKILL 2 s later, and returns when Done is closed.
// When ctx ends, SIGKILL is sent at once. Calls join each other: the first
// starts the steps, and the context of any can cut them short. A process that
// left the group (setsid) finds its stdin at the end; it is killed only by a
// Spawner that adopts.
func (p *Process) Stop(ctx context.Context) Exit {
	p.stop()
	select {
	case <-p.done:
	case <-ctx.Done():
		p.Kill()
		<-p.done
	}
	return p.exit
}

// Kill sends SIGKILL to the child and its group and does not wait.
func (p *Process) Kill() {
	p.kill()
	p.signal(syscall.SIGKILL)
}

// signal reaches every process of the group. Until the child is reaped its
// process id is taken, if only by a zombie, so no other process or group can
// have it. Errors mean that nobody is left, or nobody whom hookd may signal.
func (p *Process) signal(sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return
	}
	_ = unix.Kill(-p.PID(), sig)
	if sig == syscall.SIGKILL {
		_ = unix.Kill(p.PID(), sig) // the child itself may have left its group
	}
}

// awaitProgram waits until the helper, if there is one, has become the program.
// If it does not, nothing is left of it, except that the end of one that hangs
// is not waited for.
func (p *Process) awaitProgram(ctx context.Context, path string) error {
	if p.confinement != nil {
		return nil
	}
	c, err := awaitHelper(ctx, p.status, path)
	if err == nil {
		p.confinement = c
		return nil
	}
	p.abandon()
	if ctx.Err() != nil {
		return &StartError{"start", path, context.Cause(ctx), ""}
	}
	select {
	case <-p.done:
	case <-ctx.Done():
	}
	return err
}

// abandon ends a child that nobody has got.
func (p *Process) abandon() {
	p.Kill()
	p.stdout.Close()
	p.status.Close() // maybe once more
}

// supervise leads the child from its start until it can be reaped.
func (p *Process) supervise() {
	defer p.stop()
	defer p.kill()
	var helpers sync.WaitGroup
	helpers.Go(func() { p.log.drain(p.stderr) })
	exited := make(chan struct{})
	var cutStdout *time.Timer
	helpers.Go(func() {
		waitExit(p.PID())
		p.stdin.Close() // tells processes that the child left behind to end
		cutStdout = time.AfterFunc(p.timing.leftover, p.stdout.cut)
		close(exited)
	})

	select {
	case <-exited:
		p.awaitGroup(p.killing, exited, p.timing.leftover)
	case <-p.stopping.Done():
		p.stdin.Close()
		if !p.awaitGroup(p.killing, exited, p.timing.eof) {
			p.signal(syscall.SIGTERM)
			p.awaitGroup(p.killing, exited, p.timing.term)
		}
	case <-p.killing.Done():
	}
	p.signal(syscall.SIGKILL)
	<-exited
	p.awaitGroup(context.Background(), exited, p.timing.vanish)

	// Who holds a pipe now has left the group on purpose and is not waited for.
	cutStdout.Stop()
	p.stdout.cut()
	p.stderr.cut()
	helpers.Wait()
	p.stderr.Close()
}

// awaitGroup waits until no process of the group runs, or d has passed, or ctx
// ends, and reports whether the group is gone.
func (p *Process) awaitGroup(ctx context.Context, exited <-chan struct{}, d time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	select {
	case <-exited:
	case <-ctx.Done():
		return false
	}
	for pause := time.Millisecond; groupRuns(p.PID()); pause = min(2*pause, 100*time.Millisecond) {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// reap frees the process id. The child has ended, so it does not block.
func (p *Process) reap() Exit {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.cmd.Wait()
	p.reaped = true
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		return Exit{Code: -1, Err: fmt.Errorf("wait for process %d: %w", p.PID(), err)}
	}
	exit := Exit{Code: p.cmd.ProcessState.ExitCode()}
	if status := p.cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
		exit.Signal = unix.SignalName(status.Signal())
		if exit.Signal == "" {
			exit.Signal = "signal " + strconv.Itoa(int(status.Signal()))
		}
	}
	return exit
}

// Exit says how a child ended. The zero value is a success.
type Exit struct {
	Code   int    // exit status; -1 if there is none
	Signal string // what killed it, such as "SIGSEGV"; empty if it exited
	Err    error  // how it ended is not known, for this reason
}

// String returns a phrase such as "exit status 3" or "killed by SIGSEGV".
func (e Exit) String() string {
	switch {
	case e.Err != nil:
		return e.Err.Error()
	case e.Signal != "":
		return "killed by " + e.Signal
	}
	return "exit status " + strconv.Itoa(e.Code)
}

// How is [Exit.String] as a predicate: "ended with exit status 3", "was killed
// by SIGSEGV".
func (e Exit) How() string {
	if e.Err == nil && e.Signal != "" {
		return "was " + e.String()
	}
	return "ended with " + e.String()
}
