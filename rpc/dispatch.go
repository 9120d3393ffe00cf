package rpc

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/sourcegraph/jsonrpc2"
	"go.uber.org/zap"

	"github.com/hookd/hookd/protocol"
)

// cancelMethod is the notification that cancels a request, in both directions.
const cancelMethod = "$/cancelRequest"

var null = []byte("null")

func overloaded(why string) *protocol.Error {
	return protocol.Errorf(protocol.CodeOverloaded, "overloaded: %s", why)
}

// handler is the jsonrpc2.Handler of a peer.
type handler struct{ p *Peer }

// Handle implements jsonrpc2.Handler for the envelope that the stream has just read.
func (h handler) Handle(context.Context, *jsonrpc2.Conn, *jsonrpc2.Request) {
	p := h.p
	e := p.stream.in
	p.stream.in = envelope{}
	r := &Request{Method: e.method, ID: e.id, Params: e.params, Members: e.members, Peer: p, Size: e.size}
	if r.Notification() {
		p.notified(r)
		return
	}
	if err := p.admit(r); err != nil {
		p.reply(r, Work{}, nil, err)
		return
	}
	w, err := p.accept(r)
	switch {
	case err != nil:
	case w.Run == nil:
		p.stream.noise(NoiseRequest, r.ID, clipName(r.Method))
		err = protocol.Errorf(protocol.CodeMethodNotFound, "unknown method %q", clipName(r.Method))
	case !w.Inline:
		p.spawn(r, w)
		return
	}
	var result []byte
	if err == nil {
		result, err = p.run(p.ctx, r, w.Run)
	}
	p.answer(r, w, result, err)
}

// admit decides whether a request may be served, and if so takes its place.
func (p *Peer) admit(r *Request) *protocol.Error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.open[r.ID]; ok {
		return &protocol.Error{
			Code:    protocol.CodeInvalidRequest,
			Message: fmt.Sprintf("id %s is in flight already", r.ID),
			Data:    []byte(`{"reason":"duplicate_id"}`),
		}
	}
	switch {
	case p.draining:
		return protocol.Errorf(protocol.CodeShuttingDown, "shutting down")
	case p.inFlight >= p.o.Limits.MaxInFlight:
		return overloaded(fmt.Sprintf("%d requests are in flight", p.inFlight))
	case !p.o.Bytes.take(r.Size):
		return overloaded("too many bytes are in flight")
	}
	p.inFlight++
	p.unanswered++
	return nil
}

// answer gives the place of a request back and sends the answer: in this
// order, because the peer may use the place as soon as it has read the answer.
func (p *Peer) answer(r *Request, w Work, result []byte, err *protocol.Error) {
	p.o.Bytes.give(r.Size)
	p.mu.Lock()
	delete(p.open, r.ID)
	p.inFlight--
	p.mu.Unlock()
	p.reply(r, w, result, err)
	p.mu.Lock()
	p.unanswered--
	var idle []func()
	if p.unanswered == 0 {
		idle, p.idle = p.idle, nil
	}
	p.mu.Unlock()
	for _, f := range idle {
		p.out.whenIdle(f)
	}
	if w.Last {
		p.out.whenIdle(func() { p.Fail(ErrShutdown) })
	}
}

func (p *Peer) reply(r *Request, w Work, result []byte, err *protocol.Error) {
	if p.ctx.Err() != nil {
		if w.Undelivered != nil {
			w.Undelivered(p.Err())
		}
		return
	}
	m := &message{lost: w.Undelivered}
	if err != nil {
		m.encodeError(r.ID, err)
	} else {
		m.encodeResult(r.ID, result)
	}
	p.sendAnswer(m)
}

// spawn answers a request on another goroutine.
func (p *Peer) spawn(r *Request, w Work) {
	ctx, cancel := context.WithCancelCause(p.ctx)
	p.mu.Lock()
	if p.open == nil {
		p.open = map[ID]context.CancelCauseFunc{}
	}
	p.open[r.ID] = cancel
	p.mu.Unlock()
	p.wg.Add(1)
	p.workers.do(job{ctx, cancel, r, w})
}

func (j *job) do() {
	p := j.r.Peer
	defer p.wg.Done()
	result, err := p.run(j.ctx, j.r, j.w.Run)
	j.cancel(nil)
	p.answer(j.r, j.w, result, err)
}

// accept asks the handler.
func (p *Peer) accept(r *Request) (w Work, err *protocol.Error) {
	if p.o.Handler == nil {
		return Work{}, nil
	}
	defer p.recovered(r, &err)
	return p.o.Handler.Accept(r), nil
}

// run calls the handler's work and names its error.
func (p *Peer) run(ctx context.Context, r *Request, f func(context.Context) ([]byte, error)) (result []byte, rerr *protocol.Error) {
	defer p.recovered(r, &rerr)
	result, err := f(ctx)
	if err == nil {
		return result, nil
	}
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		return nil, e
	}
	if errors.Is(context.Cause(ctx), ErrCancelled) {
		return nil, protocol.Errorf(protocol.CodeCancelled, "cancelled")
	}
	if p.ctx.Err() != nil { // nobody is there to be told
		return nil, internalError()
	}
	p.log("request failed", r, zap.Error(err))
	return nil, internalError()
}

func internalError() *protocol.Error {
	return protocol.Errorf(protocol.CodeInternal, "internal error")
}

// recovered is deferred around the handler.
func (p *Peer) recovered(r *Request, err **protocol.Error) {
	if v := recover(); v != nil {
		p.log("request panicked", r, zap.Any("panic", v), zap.ByteString("stack", debug.Stack()))
		*err = internalError()
	}
}

func (p *Peer) log(msg string, r *Request, fields ...zap.Field) {
	if p.o.Log != nil {
		p.o.Log.Error(msg, append(fields, zap.String("method", clipName(r.Method)), zap.Stringer("id", r.ID))...)
	}
}

// notified deals with a notification, in the order of arrival.
func (p *Peer) notified(r *Request) {
	if r.Method == cancelMethod {
		if id, ok := parseID(r.Members.Get("id")); ok {
			p.mu.Lock()
			cancel := p.open[id]
			p.mu.Unlock()
			if cancel != nil {
				cancel(ErrCancelled)
			}
		}
		return
	}
	if p.o.Handler == nil {
		p.stream.noise(NoiseRequest, ID{}, clipName(r.Method))
		return
	}
	w, err := p.accept(r)
	if err == nil && w.Run != nil {
		_, _ = p.run(p.ctx, r, w.Run)
	}
	if w.Last {
		p.out.whenIdle(func() { p.Fail(ErrShutdown) })
	}
}

// pollHangup is how often is looked whether a peer that sends nothing more
// still reads.
const pollHangup = 50 * time.Millisecond

// halfClosed is called when the peer has ended its side of the stream. It may
// still wait for answers, so it returns when they are written or the other
// side is gone as well.
func (p *Peer) halfClosed() {
	idle := make(chan struct{})
	p.whenIdle(func() { close(idle) })
	tick := time.NewTicker(pollHangup)
	defer tick.Stop()
	for !hungUp(p.fd) {
		select {
		case <-idle:
			return
		case <-p.ctx.Done():
			return
		case <-tick.C:
		}
	}
}
