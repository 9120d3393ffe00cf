package mount

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/hookd/hookd/child"
	"github.com/hookd/hookd/rpc"
)

// supervise runs the program over and over until the process is closed.
func (p *process) supervise() {
	defer close(p.done)
	for p.closing.Err() == nil {
		if !p.restarts.open && !p.suspected() { // else it stays failed until it has greeted
			p.become(Starting)
		}
		r, err := p.begin()
		good := false
		if err == nil {
			good, err = p.serve(r)
		}
		switch {
		case p.closing.Err() != nil:
		case err == nil: // a new run was asked for
			p.restarts.reset()
		default:
			p.note(err, r == nil)
			p.pause(err, good)
		}
	}
	p.become(Stopped)
}

// note remembers why a run ended, or did not begin.
func (p *process) note(err error, unborn bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lastErr, p.unborn = err, unborn
	_, p.suspect = errors.AsType[*child.ChangedError](err)
}

// suspected reports whether a pinned file was not what it was when the program
// was to be started last.
func (p *process) suspected() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.suspect
}

// pause waits before the next run.
func (p *process) pause(err error, good bool) {
	var wait time.Duration
	if p.suspected() { // it has not run badly: it has not run
		wait = p.timing.untrusted
		if p.become(Untrusted) {
			p.log.Error("hook is not started: a pinned file is not what it was", zap.Error(err))
		}
	} else {
		wait = p.restarts.ended(time.Now(), good, p.jitter())
		state := Backoff
		if p.restarts.open {
			state = Failed
		}
		p.become(state)
		p.log.Warn("hook is down", zap.Error(err), zap.Duration("next_start_in", wait))
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.closing.Done():
	case asked := <-p.restart:
		p.restarts.reset()
		p.become(Starting)
		close(asked.taken)
	}
}

// begin starts the program and greets it.
func (p *process) begin() (*run, error) {
	late := fmt.Errorf("it did not answer the greeting within %s", p.timing.greeting)
	ctx, cancel := context.WithTimeoutCause(p.closing, p.timing.greeting, late)
	defer cancel()
	print := FileFingerprint(p.files())
	p.mu.Lock()
	number := p.runs
	p.runs++
	p.print, p.tail = print, nil
	p.mu.Unlock()

	program, err := p.start(ctx)
	if err != nil {
		return nil, startTrouble(err)
	}
	p.mu.Lock()
	p.program, p.started = program, time.Now()
	p.suspect = false
	p.mu.Unlock()
	p.confine(program.Confinement())
	r := newRun(p, program, number)
	if err = r.greet(ctx); err == nil {
		return r, nil
	}
	switch {
	case errors.Is(err, rpc.ErrClosed):
		err = fmt.Errorf("before it answered the greeting, %w", r.fate())
	case errors.Is(err, late):
		program.Kill()
		if n := r.garbage.Load(); n > 0 {
			err = fmt.Errorf("%w, but wrote %d lines that can't be read: print only answers on stdout", err, n)
		}
	}
	return nil, p.dismiss(r, err)
}

// confine takes note of how the program is limited, and says aloud what of it
// could not be had.
func (p *process) confine(c child.Confinement) {
	p.mu.Lock()
	known := p.confined != nil && slices.Equal(p.confined.Missing, c.Missing)
	p.confined = &c
	p.mu.Unlock()
	// That this program limits no hook at all is not this hook's affair.
	if !known && len(c.Missing) > 0 && (len(c.Active) > 0 || len(c.Missing) > 1) {
		p.log.Warn("hook is not limited in every way", zap.Strings("missing", c.Missing))
	}
}

// serve lets calls in until the run ends or has to be ended. The error says
// why; it is nil when that was asked for.
func (p *process) serve(r *run) (good bool, err error) {
	p.mu.Lock()
	p.run, p.welcome = r, &r.welcome
	p.mu.Unlock()
	p.log.Info("hook is ready", zap.Int("pid", r.program.PID()), zap.String("greeted", r.welcome.Name))

	f := p.watch(r)
	switch {
	case f.wanted:
	case f.reason == "":
		err = errEnded
	default:
		err = errors.New(f.reason)
	}
	p.retire(r, f.reason, err)
	if f.taken != nil {
		close(f.taken)
	}
	if f.drain != nil {
		p.drain(r, f)
	}
	if f.kill {
		r.program.Kill()
	}
	if err == errEnded {
		err = r.fate()
	}
	err = p.dismiss(r, err)
	<-r.idle // an answer that came at the last moment counts
	return r.good.Load(), err
}

// watch returns why a run has to be ended; without a reason when it has ended
// by itself.
func (p *process) watch(r *run) fault {
	proven := time.NewTimer(p.timing.proven)
	defer proven.Stop()
	alarm := time.NewTimer(p.timing.proven)
	defer alarm.Stop()
	for {
		owes, stuck, again := r.debts(time.Now())
		if stuck {
			r.fail(fault{reason: fmt.Sprintf("all of its %d places (max_in_flight) were held by calls without an answer for %s%s", cap(r.slots), p.timing.stuck, r.strangeAnswers())})
		}
		if owes {
			p.become(Degraded)
		} else {
			p.become(Ready)
		}
		alarm.Stop()
		if !again.IsZero() {
			alarm.Reset(time.Until(again))
		}
		select {
		case <-alarm.C:
		case <-r.news:
			if r.good.Load() {
				p.restarts.reset()
			}
		case <-proven.C:
			r.good.Store(true)
			p.restarts.reset()
		case f := <-r.faults:
			return f
		case <-r.peer.Done():
			return fault{}
		case asked := <-p.restart:
			return fault{reason: "it is restarted on request", wanted: true, drain: asked.ctx, taken: asked.taken}
		case <-p.closing.Done():
			return fault{reason: errClosed.Error(), wanted: true, drain: p.hurry}
		}
	}
}

// retire lets nobody into the run any more.
func (p *process) retire(r *run, reason string, err error) {
	p.mu.Lock()
	r.draining, r.reason = true, reason
	if r.calls == 0 {
		close(r.idle)
	}
	if err != nil {
		p.lastErr, p.unborn = err, false
	}
	p.mu.Unlock()
	p.become(Stopping)
}

// drain waits until those inside a retired run have left, or may not any
// longer.
func (p *process) drain(r *run, f fault) {
	var limit <-chan time.Time
	if f.within > 0 {
		timer := time.NewTimer(f.within)
		defer timer.Stop()
		limit = timer.C
	}
	select {
	case <-r.idle:
	case <-r.peer.Done():
	case <-limit:
	case <-f.drain.Done():
	case <-p.hurry.Done():
	}
}

// dismiss closes the stream, stops the program, and returns err with its last
// lines on stderr.
func (p *process) dismiss(r *run, err error) error {
	r.peer.Close()
	r.program.Stop(p.hurry)
	tail := r.program.StderrTail()
	p.mu.Lock()
	p.run, p.program, p.started, p.tail = nil, nil, time.Time{}, tail
	p.mu.Unlock()
	if err == nil || len(tail) == 0 {
		return err
	}
	last := tail[max(0, len(tail)-stderrInErrors):]
	return &trouble{err: err, brief: brief(err), full: fmt.Sprintf("%v; last on stderr: %s", err, strings.Join(last, " | "))}
}

const (
	// stderrInErrors is how many lines of stderr an error holds.
	stderrInErrors = 3
	// endWait is how long is waited, after the stream closed, for the program to
	// end by itself.
	endWait = time.Second
)

var errEnded = errors.New("it ended")

// fate says what happened to a program whose stream has closed.
func (r *run) fate() error {
	err := r.peer.Err()
	switch {
	case errors.Is(err, rpc.ErrSlowReader):
		return errors.New("it did not read what was sent to it")
	case errors.Is(err, rpc.ErrSlowLine):
		return errors.New("it did not finish a line in time")
	case errors.Is(err, rpc.ErrFlood):
		return errors.New("it flooded its standard output")
	}
	timer := time.NewTimer(endWait)
	defer timer.Stop()
	select {
	case <-r.program.Done():
		return errors.New("it " + r.program.Exit().How())
	case <-timer.C:
	}
	if errors.Is(err, io.EOF) {
		return errors.New("it closed its standard output and went on running")
	}
	return errors.New("it closed its standard input and went on running")
}

// trouble is an error that says less to agents than to those who run hookd.
type trouble struct {
	err         error
	brief, full string
}

func (t *trouble) Error() string { return t.full }
func (t *trouble) Unwrap() error { return t.err }

// brief returns the text of err for agents: without paths and without what a
// program wrote.
func brief(err error) string {
	if t, ok := errors.AsType[*trouble](err); ok {
		return t.brief
	}
	return err.Error()
}

func startTrouble(err error) error {
	t := &trouble{err: err, brief: "it could not be started", full: err.Error()}
	if start, ok := errors.AsType[*child.StartError](err); ok {
		t.brief += ": " + start.Err.Error()
	}
	return t
}
