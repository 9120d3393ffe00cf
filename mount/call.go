package mount

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/rpc"
)

// errTimeout is what a call ends with when the hook's own time is over.
var errTimeout = errors.New("the hook's time is over")

// Intercept asks the child for a decision.
func (p *process) Intercept(ctx context.Context, req *protocol.Request) (protocol.Decision, error) {
	return judge(ctx, p, req, func(answer []byte) (protocol.Decision, error) {
		return p.dialect.Decision(req, answer)
	})
}

// Approve asks the child for a yes.
func (p *process) Approve(ctx context.Context, req *protocol.Request) (protocol.Approval, error) {
	return judge(ctx, p, req, p.dialect.Approval)
}

// judge asks the child and reads its answer.
func judge[T any](ctx context.Context, p *process, req *protocol.Request, read func([]byte) (T, error)) (T, error) {
	var none T
	r, err := p.enter()
	if err != nil {
		return none, err
	}
	defer p.leave(r)
	if !slices.Contains(r.welcome.Stages, req.Stage.Name) {
		// Met only until somebody asks for the hook's registration again.
		return none, &hook.Failure{Outcome: protocol.OutcomeHookError, Detail: "it left this stage out when it was greeted"}
	}
	answer, err := r.ask(ctx, req)
	if err != nil {
		return none, err
	}
	verdict, err := read(answer)
	if err != nil {
		return none, &hook.Failure{Outcome: protocol.OutcomeBadAnswer, Detail: clip(err.Error()), Err: err}
	}
	r.proved()
	return verdict, nil
}

// Observe tells the child what happened and returns when it is written.
func (p *process) Observe(ctx context.Context, ev *hook.Event) error {
	return p.ObserveAll(ctx, []*hook.Event{ev})
}

// ObserveAll does so with several events, in one write.
func (p *process) ObserveAll(ctx context.Context, events []*hook.Event) error {
	r, err := p.enter()
	if err != nil {
		return err
	}
	defer p.leave(r)
	method, params := "", make([][]byte, len(events))
	for i, ev := range events {
		method, params[i] = p.dialect.Event(ev.Event, ev.Seq, ev.Missed)
	}
	if err := r.peer.NotifyAll(ctx, method, params...); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return r.failure(err)
	}
	return nil
}

// ask calls the child when it has room, and returns its answer as it stood on
// the wire.
func (r *run) ask(ctx context.Context, req *protocol.Request) (jsontext.Value, error) {
	if err := r.takeSlot(ctx, req.Timeout); err != nil {
		return nil, err
	}
	// The hook's clock starts here, and its late answer is waited for as long
	// whatever becomes of ctx.
	now := time.Now()
	overdue, left := now.Add(req.Timeout), req.Timeout
	if deadline, ok := ctx.Deadline(); ok {
		left = min(left, deadline.Sub(now))
	}
	garbage := r.garbage.Load()
	answer, err := r.peer.CallWithin(ctx, req.Timeout, errTimeout, req.Stage.Method(), r.p.dialect.Params(req, max(left.Milliseconds(), 1)))
	if errors.Is(err, rpc.ErrNotSent) { // it owes no answer
		<-r.slots
		return nil, r.cutShort(ctx, err, req, garbage)
	}
	if timedOut := errors.Is(err, errTimeout); timedOut || err != nil && ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		r.gaveUp(overdue, timedOut)
		return nil, r.cutShort(ctx, err, req, garbage)
	}
	<-r.slots
	if err == nil {
		r.answered()
		return answer, nil
	}
	if errors.Is(err, rpc.ErrClosed) && r.garbage.Load() > garbage {
		return nil, r.unreadable("the hook ended", garbage)
	}
	return nil, r.failure(err)
}

// takeSlot waits until the child has room for one more call.
func (r *run) takeSlot(ctx context.Context, timeout time.Duration) error {
	select {
	case r.slots <- struct{}{}:
		return nil
	default:
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case r.slots <- struct{}{}:
		return nil
	case <-timer.C:
		return &hook.Failure{Outcome: protocol.OutcomeOverloaded, Detail: fmt.Sprintf("it worked on %d other calls (max_in_flight) for %s", cap(r.slots), timeout)}
	case <-r.peer.Done():
		return r.failure(r.peer.Err())
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// cutShort is the error of a call that was given up with err.
func (r *run) cutShort(ctx context.Context, err error, req *protocol.Request, garbage int64) error {
	if !errors.Is(err, errTimeout) {
		return context.Cause(ctx)
	}
	detail := fmt.Sprintf("no answer within %s", req.Timeout)
	if r.garbage.Load() > garbage {
		return r.unreadable(detail, garbage)
	}
	return &hook.Failure{Outcome: protocol.OutcomeTimeout, Detail: detail, Err: errTimeout}
}

// unreadable is the failure of a call that got no answer while lines came that
// could not be read: one of them may have been it.
func (r *run) unreadable(detail string, before int64) error {
	return &hook.Failure{
		Outcome: protocol.OutcomeGarbage,
		Detail:  fmt.Sprintf("%s, but wrote %d lines that can't be read (hookd's log shows them): print only answers on stdout", detail, r.garbage.Load()-before),
		Err:     rpc.ErrGarbage,
	}
}

// failure names the outcome of a call that ended with err.
func (r *run) failure(err error) error {
	f := &hook.Failure{Err: err}
	answer, answered := errors.AsType[*protocol.Error](err)
	switch {
	case answered:
		f.Outcome, f.Detail = protocol.OutcomeHookError, "it answered with an error: "+clip(answer.Error())
	case errors.Is(err, rpc.ErrOversize):
		f.Outcome, f.Detail = protocol.OutcomeOversize, fmt.Sprintf("its answer is longer than %d bytes (limits.max_message_bytes)", r.p.limits.MaxMessageBytes)
	case errors.Is(err, rpc.ErrDuplicateMember):
		f.Outcome, f.Detail = protocol.OutcomeBadAnswer, "its answer holds a name twice"
	case errors.Is(err, rpc.ErrGarbage):
		f.Outcome, f.Detail = protocol.OutcomeGarbage, "its answer can't be read (hookd's log shows it)"
	case errors.Is(err, rpc.ErrOverloaded):
		f.Outcome, f.Detail = protocol.OutcomeOverloaded, "it does not read what is sent to it"
	default:
		f.Outcome, f.Detail = protocol.OutcomeCrash, r.lastWords()
	}
	return f
}

// lastWords says why the run ended, for those whose calls ended with it.
func (r *run) lastWords() string {
	r.p.mu.Lock()
	reason := r.reason
	r.p.mu.Unlock()
	if reason != "" {
		return reason
	}
	timer := time.NewTimer(r.p.timing.exit)
	defer timer.Stop()
	select {
	case <-r.program.Done():
		return "it " + r.program.Exit().How()
	case <-timer.C:
		return "it ended"
	}
}

// maxText is how much of what a hook says goes into a message, in bytes.
const maxText = 300

func clip(s string) string {
	if len(s) > maxText {
		return strings.ToValidUTF8(s[:maxText], "") + "…"
	}
	return s
}
