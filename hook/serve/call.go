package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/hookd/hookd/internal/lazycontext"
	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/rpc"
)

// errDeadline is the cause with which the context of a call ends at its deadline.
var errDeadline = errors.New("the caller's deadline has passed")

// grace is how long a caller has to notice itself that its deadline has passed.
const grace = 250 * time.Millisecond

// Accept implements [rpc.Handler].
func (s *server) Accept(r *rpc.Request) rpc.Work {
	stage := s.table.Method(r.Method)
	switch {
	case r.Notification(): // a stage without an id is not judged: nobody could read the answer
		if r.Method == protocol.MethodEvent && s.roles.Observer != nil && s.ready() == nil {
			s.events.push(r.Members)
		}
	case r.Method == protocol.MethodHello:
		return rpc.Work{Inline: true, Run: func(context.Context) ([]byte, error) { return s.hello(r.Params) }}
	case stage != nil && slices.Contains(s.stages, stage.Name):
		if err := s.ready(); err != nil {
			return rpc.Work{Inline: true, Run: func(context.Context) ([]byte, error) { return nil, err }}
		}
		return rpc.Work{Inline: s.roles.Quick, Run: func(ctx context.Context) ([]byte, error) { return s.call(ctx, stage, r.Members) }}
	}
	return rpc.Work{}
}

// call asks the hook. Params that the hook does not look at are not decoded.
func (s *server) call(caller context.Context, stage *protocol.StageInfo, params protocol.Object) ([]byte, error) {
	req, invalid := protocol.DecodeRequest(stage, params)
	if invalid != nil {
		return nil, invalid
	}
	// The same request as inside hookd.
	req.Timeout, req.DeadlineMS = time.Duration(req.DeadlineMS)*time.Millisecond, 0
	ctx := caller
	if req.Timeout > 0 && !s.roles.Quick {
		l := lazycontext.WithDeadline(caller, time.Now().Add(req.Timeout), errDeadline)
		defer l.Release()
		ctx = l
	}
	answer, err := s.ask(ctx, req)
	if err != nil {
		return nil, failure(caller, ctx, err)
	}
	if bytes.IndexByte(answer, '\n') >= 0 { // a message is one line
		answer = protocol.Compact(answer)
	}
	return answer, nil
}

// ask waits until the hook has room for the call, and calls it.
func (s *server) ask(ctx context.Context, req *protocol.Request) (answer []byte, err error) {
	if err := s.takeSlot(ctx); err != nil {
		return nil, err
	}
	defer func() { <-s.slots }()
	if len(s.slots) > 1 {
		s.crowded()
	}
	defer s.recovered(string(req.Stage.Name), &err)
	buf := make([]byte, 0, 128) // more than most answers need
	if req.Stage.Name == protocol.StageApproveTool {
		a, err := s.roles.Approver.Approve(ctx, req)
		return a.AppendJSON(buf), err
	}
	d, err := s.roles.Interceptor.Intercept(ctx, req)
	return d.AppendJSON(buf, req.Stage), err
}

// takeSlot takes a place among the calls that the hook works on.
func (s *server) takeSlot(ctx context.Context) error {
	select {
	case s.slots <- struct{}{}:
		return nil
	default:
	}
	select {
	case s.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// failure is what the caller is told of an error. One that comes after the end
// of ctx is none of the hook's: it gave up, as it should.
func failure(caller, ctx context.Context, err error) *protocol.Error {
	if ctx.Err() == nil {
		return protocol.Errorf(protocol.CodeInternal, "%v", err)
	}
	// At its deadline the caller ends the call itself. An answer that is a
	// little quicker would look like a failure in time.
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-caller.Done():
	case <-timer.C:
	}
	return protocol.Errorf(protocol.CodeCancelled, "%v", context.Cause(ctx))
}

// recovered is deferred around every call of the hook. The stack is for the log only.
func (s *server) recovered(where string, err *error) {
	if p := recover(); p != nil {
		s.log.Printf("panic in %s: %v\n%s", where, p, debug.Stack())
		*err = fmt.Errorf("panic: %v", p)
	}
}
