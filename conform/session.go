package conform

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/child"
	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/rpc"
)

// errTimeout is the cause with which the context of a call ends when the
// hook's time is over.
var errTimeout = errors.New("no answer in time")

// session is one life of the hook under test.
type session struct {
	process *child.Process
	pipes   *pipes
	peer    *rpc.Peer
	timeout time.Duration
	welcome protocol.HookWelcome

	mu    sync.Mutex
	noise []rpc.Noise
	news  chan struct{} // holds a value when there is noise nobody has seen
}

// open takes over a process that was started. The caller closes the session.
func open(process *child.Process, timeout time.Duration, firstID uint64) *session {
	s := &session{
		process: process, pipes: &pipes{in: process.Stdin(), out: process.Stdout()}, timeout: timeout,
		news: make(chan struct{}, 1),
	}
	s.peer = rpc.NewPeer(context.Background(), s.pipes, rpc.Options{
		Silent: true, FirstID: firstID, WriteTimeout: timeout, FrameTimeout: timeout, OnNoise: s.hear,
	})
	return s
}

func (s *session) hear(n rpc.Noise) {
	s.mu.Lock()
	s.noise = append(s.noise, n)
	s.mu.Unlock()
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// heard returns the noise since mark, and a new mark.
func (s *session) heard(mark int) ([]rpc.Noise, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.noise[mark:]), len(s.noise)
}

// await waits for noise of a kind since mark.
func (s *session) await(kind rpc.NoiseKind, mark int) bool {
	timer := time.NewTimer(s.timeout)
	defer timer.Stop()
	for {
		list, _ := s.heard(mark)
		if slices.ContainsFunc(list, func(n rpc.Noise) bool { return n.Kind == kind }) {
			return true
		}
		select {
		case <-s.news:
		case <-s.peer.Done():
			return false
		case <-timer.C:
			return false
		}
	}
}

// close kills the hook if it still runs.
func (s *session) close() {
	s.process.Kill()
	_ = s.peer.Close()
	<-s.process.Done()
}

// call makes a call with the hook's time.
func (s *session) call(ctx context.Context, method string, params []byte) (jsontext.Value, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.timeout, errTimeout)
	defer cancel()
	return s.peer.Call(ctx, method, params)
}

// ask asks at a stage.
func (s *session) ask(ctx context.Context, r *protocol.Request) (jsontext.Value, error) {
	return s.call(ctx, r.Stage.Method(), r.AppendParams(nil, s.timeout.Milliseconds()))
}

// trouble says why a call got no answer, and what to do about it.
func (s *session) trouble(err error, mark int) Result {
	noise, _ := s.heard(mark)
	count := func(kind rpc.NoiseKind) (n int, first string) {
		for _, item := range noise {
			if item.Kind == kind {
				if n++; n == 1 {
					first = item.Detail
				}
			}
		}
		return n, first
	}
	garbage, line := count(rpc.NoiseGarbage)
	foreign, _ := count(rpc.NoiseUnknownID)
	twice, _ := count(rpc.NoiseDuplicateReply)
	switch {
	case errors.Is(err, rpc.ErrOversize):
		return fail("answer with less: hookd denies the call", "its answer is longer than hookd reads")
	case errors.Is(err, rpc.ErrDuplicateMember):
		return fail("write each name once", "its answer holds a name twice")
	case errors.Is(err, rpc.ErrGarbage):
		return fail("let a JSON library write the whole line", "its answer can't be read: %s", clip(line))
	case errors.Is(err, errTimeout) && foreign+twice > 0:
		return fail("copy the request's id into the answer, byte for byte", "no answer within %s, but %d with another id", s.timeout, foreign+twice)
	case errors.Is(err, errTimeout) && garbage > 0:
		return fail("print one line of JSON-RPC for each request and nothing else", "no answer within %s, but %d lines that can't be read: %s", s.timeout, garbage, clip(line))
	case errors.Is(err, errTimeout):
		return fail("answer every request, end the line with \\n, flush stdout after it", "no answer within %s", s.timeout)
	case errors.Is(err, rpc.ErrClosed):
		return fail("catch what goes wrong and answer with a JSON-RPC error instead of ending", "%s", s.lastWords())
	}
	return fail("", "%v", err)
}

// lastWords says how the hook ended.
func (s *session) lastWords() string {
	timer := time.NewTimer(3 * time.Second)
	defer timer.Stop()
	select {
	case <-s.process.Done():
	case <-timer.C:
		return "it closed its stdout"
	}
	words := "it " + s.process.Exit().How()
	if tail := s.process.StderrTail(); len(tail) > 0 {
		words += ", after writing to stderr: " + clip(strings.TrimSpace(tail[len(tail)-1]))
	}
	return words
}

// pipes is the stream to the hook. What is written can be held, to be sent at
// once or in pieces.
type pipes struct {
	in  io.Writer
	out *child.Output

	mu    sync.Mutex
	held  []byte
	lines int // that are to be held; 0: nothing is
	full  chan struct{}
}

func (p *pipes) Read(b []byte) (int, error) { return p.out.Read(b) }

func (p *pipes) Write(b []byte) (int, error) {
	p.mu.Lock()
	if p.lines == 0 {
		p.mu.Unlock()
		return p.in.Write(b)
	}
	defer p.mu.Unlock()
	p.held = append(p.held, b...)
	if bytes.Count(p.held, []byte("\n")) >= p.lines && p.full != nil {
		close(p.full)
		p.full = nil
	}
	return len(b), nil
}

// hold keeps the next lines back until release.
func (p *pipes) hold(lines int) (full <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines, p.full = lines, make(chan struct{})
	return p.full
}

// release writes what is held in so many pieces.
func (p *pipes) release(pieces int) error {
	p.mu.Lock()
	held := p.held
	p.held, p.lines, p.full = nil, 0, nil
	p.mu.Unlock()
	size := len(held)/pieces + 1
	for piece := range slices.Chunk(held, size) {
		if _, err := p.in.Write(piece); err != nil {
			return fmt.Errorf("write to the hook: %w", err)
		}
		if pieces > 1 {
			time.Sleep(5 * time.Millisecond) // so that the hook reads them one by one
		}
	}
	return nil
}

func (p *pipes) Close() error { return p.out.Close() }
