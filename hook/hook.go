// Package hook is for people who write a hook in Go. A hook fills one or more
// of three roles:
//
//   - an [Observer] is told what happened and never waited for,
//   - an [Interceptor] may change or stop a step,
//   - an [Approver] says yes or no to a tool call.
//
// Most hooks care for a few stages only and are easier written with the typed
// helpers: embed [NoTool] or [NoLLM], override the methods you need, and the
// value is an interceptor. The same value runs inside hookd (see package
// mount) or as a process of its own (see package hook/serve).
package hook

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/hookd/hookd/protocol"
)

// Observer is told about events. Observe is called from one goroutine, in the
// order of the events, with a context that ends after the observer's timeout.
// An error is counted and logged; it changes nothing else.
type Observer interface {
	Observe(ctx context.Context, ev *Event) error
}

// Batcher is an observer that takes several events at once for less than one
// after the other. hookd then calls ObserveAll, with events in their order, and
// lets a few milliseconds pass between two calls when many events come. An error
// is about all of them.
type Batcher interface {
	Observer
	ObserveAll(ctx context.Context, events []*Event) error
}

// Interceptor judges a step before or after it happens. Intercept is called
// concurrently, with a context that ends when the answer is no longer wanted.
// It must treat req as read-only. An error is a failure ("hook_error"), not a
// verdict: to deny, return a decision. To name another failure, return an
// error that wraps a [Failure].
type Interceptor interface {
	Intercept(ctx context.Context, req *protocol.Request) (protocol.Decision, error)
}

// Approver says whether a tool call may run. The rules of [Interceptor] hold;
// an error is a no.
type Approver interface {
	Approve(ctx context.Context, req *protocol.Request) (protocol.Approval, error)
}

// Quick marks a hook that never waits for anything: no I/O, no locks held
// long, no sleep. hookd calls it without a goroutine of its own, which is
// faster, and its timeout can't interrupt it.
type Quick interface{ Quick() }

// Remote marks the host of a hook that runs elsewhere, such as in a child
// process. It keeps [protocol.Request.Timeout] itself, because its clock starts
// only when the call could be handed over, and it returns at once when ctx
// ends. So hookd calls it directly and puts no timeout of its own around it.
type Remote interface{ Remote() }

// Abstainer marks an approver that usually has no opinion, so that nobody may
// count on it to decide what was asked about.
type Abstainer interface{ Abstains() }

// Stager limits the stages at which an interceptor is called. Without it an
// interceptor is called at every stage that its entry asks for, a typed helper
// at those that it has methods for.
type Stager interface {
	Stages() []protocol.Stage
}

// Event is what an observer gets: an event, its number for this observer, and
// how many were lost before it because the observer was slow.
type Event struct {
	*protocol.Event
	Seq    uint64
	Missed uint64
}

// Failure is an error that names the outcome of a hook's turn. Hosts of hooks
// (child processes, remote hooks) return it; in-process hooks rarely need it.
type Failure struct {
	Outcome protocol.Outcome
	// Detail says what happened, for people. It never holds payload.
	Detail string
	// Warning, when set, is shown to the user where the failure is passed over.
	Warning string
	Err     error
}

// Error returns the outcome with its detail.
func (f *Failure) Error() string {
	if f.Detail == "" {
		return string(f.Outcome)
	}
	return string(f.Outcome) + ": " + f.Detail
}

// Unwrap returns the cause, if any.
func (f *Failure) Unwrap() error { return f.Err }

// Roles are what a value can do.
type Roles struct {
	// Value is what the roles were found on. Two registrations with the same
	// value are the same running hook under different rules.
	Value       any
	Observer    Observer
	Interceptor Interceptor
	Approver    Approver
	// Stages are where Interceptor wants to be called; nil = everywhere.
	Stages []protocol.Stage
	// Quick and Remote tell which of the markers the value carries.
	Quick  bool
	Remote bool
}

// RolesOf finds the roles that v fills, helpers included. A value that fills
// none is an error, and so is one with a method that would never be called: a
// second method is missing, or it has another signature.
func RolesOf(v any) (Roles, error) {
	r := Roles{Value: v}
	if rv := reflect.ValueOf(v); v == nil || rv.Kind() == reflect.Pointer && rv.IsNil() {
		return r, fmt.Errorf("hook is nil")
	}
	r.Observer, _ = v.(Observer)
	r.Approver, _ = v.(Approver)
	_, r.Quick = v.(Quick)
	_, r.Remote = v.(Remote)
	r.Interceptor, _ = v.(Interceptor)
	helper, stages := typedInterceptor(v)
	switch {
	case helper != nil && r.Interceptor != nil:
		return r, fmt.Errorf("%T has Intercept beside the methods of hook.ToolInterceptor or hook.LLMInterceptor, which would never be called: keep one of them", v)
	case helper != nil:
		r.Interceptor, r.Stages = helper, stages
	}
	if s, ok := v.(Stager); ok && r.Interceptor != nil {
		r.Stages = s.Stages()
		for _, stage := range r.Stages {
			if helper != nil && !slices.Contains(stages, stage) {
				return r, fmt.Errorf("%T names the stage %s, but has no method for it", v, stage)
			}
		}
	}
	hint := nearMiss(v)
	switch {
	case r.Observer == nil && r.Interceptor == nil && r.Approver == nil:
		return r, fmt.Errorf("%T fills no role: it is no hook.Observer, hook.Interceptor, hook.Approver, hook.ToolInterceptor or hook.LLMInterceptor%s", v, hint)
	case hint != "":
		return r, fmt.Errorf("%T fills only a part of a role%s", v, hint)
	}
	return r, nil
}

// nearMiss looks for methods that carry a role's name without making one, a
// mistake that would otherwise leave a hook silently uncalled.
func nearMiss(v any) string {
	t := reflect.TypeOf(v)
	has := func(t reflect.Type, method string) bool { _, ok := t.MethodByName(method); return ok }
	for _, role := range []struct {
		fills   bool
		methods []string
		hint    string
	}{
		{is[ToolInterceptor](v), []string{"BeforeTool", "AfterTool"}, "a tool hook needs BeforeTool and AfterTool with the signatures of hook.ToolInterceptor (embed hook.NoTool)"},
		{is[LLMInterceptor](v), []string{"BeforeLLM", "AfterLLM"}, "a model hook needs BeforeLLM and AfterLLM with the signatures of hook.LLMInterceptor (embed hook.NoLLM)"},
		{is[Interceptor](v), []string{"Intercept"}, "Intercept has not the signature of hook.Interceptor"},
		{is[Observer](v), []string{"Observe"}, "Observe has not the signature of hook.Observer"},
		{is[Approver](v), []string{"Approve"}, "Approve has not the signature of hook.Approver"},
	} {
		for _, method := range role.methods {
			switch {
			case role.fills:
			case has(t, method):
				return "; " + role.hint
			case t.Kind() != reflect.Pointer && has(reflect.PointerTo(t), method):
				return fmt.Sprintf("; *%s has the method %s: mount a pointer", t, method)
			}
		}
	}
	return ""
}

func is[T any](v any) bool { _, ok := v.(T); return ok }
