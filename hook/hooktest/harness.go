// Package hooktest checks hooks. [Check] is for people who write one: it calls
// the hook as hookd would and reports each promise that it breaks.
//
//	func TestPromises(t *testing.T) { hooktest.Check(t, &guard{}) }
//
// [Run] is for those who build a way to run hooks: it calls one hook, [Hook],
// through it, and the same answers and failures must come out as from any other way.
package hooktest

import (
	"context"
	"errors"
	"fmt"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// Harness is one way to run a hook. Its methods are called concurrently, except
// Observe.
//
// Intercept and Approve keep [protocol.Request.Timeout]. What they fail with is
// compared as a [protocol.Outcome]: a [hook.Failure] names it, the cause of ctx
// is cancelled, and anything else is hook_error.
type Harness interface {
	hook.Interceptor
	hook.Approver
	// Observe may return before the hook has seen the event, and may keep what
	// the hook says of it to itself.
	hook.Observer
	// Close ends the hook and waits for it.
	Close()
}

// outcomeOf names a failure.
func outcomeOf(ctx context.Context, err error) protocol.Outcome {
	if f, ok := errors.AsType[*hook.Failure](err); ok {
		return f.Outcome
	}
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return protocol.OutcomeCancelled
	}
	return protocol.OutcomeHookError
}

// direct runs a hook by calling it.
type direct struct{ roles hook.Roles }

func (d direct) Close() {}

func (d direct) Intercept(ctx context.Context, req *protocol.Request) (protocol.Decision, error) {
	return call(ctx, req, d.roles.Interceptor.Intercept)
}

func (d direct) Approve(ctx context.Context, req *protocol.Request) (protocol.Approval, error) {
	return call(ctx, req, d.roles.Approver.Approve)
}

func (d direct) Observe(ctx context.Context, ev *hook.Event) error {
	_, err := call(ctx, &protocol.Request{}, func(ctx context.Context, _ *protocol.Request) (struct{}, error) {
		return struct{}{}, d.roles.Observer.Observe(ctx, ev)
	})
	return err
}

var errTimeout = errors.New("the hook's time is over")

// call calls a hook with its timeout, if there is one.
func call[T any](ctx context.Context, req *protocol.Request, f func(context.Context, *protocol.Request) (T, error)) (answer T, err error) {
	if req.Timeout > 0 {
		c, cancel := context.WithTimeoutCause(ctx, req.Timeout, errTimeout)
		defer cancel()
		ctx = c
	}
	defer func() {
		if p := recover(); p != nil {
			err = &hook.Failure{Outcome: protocol.OutcomePanic, Detail: fmt.Sprint(p)}
		}
	}()
	answer, err = f(ctx, req)
	if errors.Is(err, errTimeout) {
		err = &hook.Failure{Outcome: protocol.OutcomeTimeout, Err: err}
	}
	return answer, err
}
