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
	"strings"

	"github.com/hookd/hookd/protocol"
)

// Observer is told about events. Observe is called from one goroutine, in the
// order of the events, with a context that ends after the observer's timeout.
// An error is counted and logged; it changes nothing else.
type Observer interface {
	Observe(ctx context.Context, ev *Event) error
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

// Stager limits the stages at which an interceptor is called. Without it an
// interceptor is called at every stage that its entry asks for.
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
	Err    error
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
// none is an error, which says when v is nearly one: a method is missing or
// has another signature.
func RolesOf(v any) (Roles, error) {
	r := Roles{Value: v}
	if v == nil {
		return r, fmt.Errorf("hook is nil")
	}
	r.Observer, _ = v.(Observer)
	r.Approver, _ = v.(Approver)
	_, r.Quick = v.(Quick)
	_, r.Remote = v.(Remote)
	r.Interceptor, _ = v.(Interceptor)
	if r.Interceptor != nil {
		if s, ok := v.(Stager); ok {
			r.Stages = s.Stages()
		}
	} else {
		r.Interceptor, r.Stages = typedInterceptor(v)
	}
	if r.Observer == nil && r.Interceptor == nil && r.Approver == nil {
		return r, fmt.Errorf("%T fills no role: it is no hook.Observer, hook.Interceptor, hook.Approver, hook.ToolInterceptor or hook.LLMInterceptor%s", v, nearMiss(v))
	}
	if r.Interceptor == nil || r.Approver == nil || r.Observer == nil {
		if hint := nearMiss(v); hint != "" {
			return r, fmt.Errorf("%T fills only a part of a role%s", v, hint)
		}
	}
	return r, nil
}

// nearMiss looks for methods that carry a role's name without making one, a
// mistake that would otherwise leave a hook silently uncalled.
func nearMiss(v any) string {
	t := reflect.TypeOf(v)
	partOf := map[string]bool{}
	_, isTool := v.(ToolInterceptor)
	_, isLLM := v.(LLMInterceptor)
	_, isGeneric := v.(Interceptor)
	_, isObserver := v.(Observer)
	_, isApprover := v.(Approver)
	for i := range t.NumMethod() {
		switch name := t.Method(i).Name; name {
		case "BeforeTool", "AfterTool":
			partOf["a tool hook needs BeforeTool and AfterTool with the signatures of hook.ToolInterceptor (embed hook.NoTool)"] = !isTool
		case "BeforeLLM", "AfterLLM":
			partOf["a model hook needs BeforeLLM and AfterLLM with the signatures of hook.LLMInterceptor (embed hook.NoLLM)"] = !isLLM
		case "Intercept":
			partOf["Intercept has not the signature of hook.Interceptor"] = !isGeneric
		case "Observe":
			partOf["Observe has not the signature of hook.Observer"] = !isObserver
		case "Approve":
			partOf["Approve has not the signature of hook.Approver"] = !isApprover
		}
	}
	var hints []string
	for hint, miss := range partOf {
		if miss {
			hints = append(hints, hint)
		}
	}
	if len(hints) == 0 {
		if t.Kind() != reflect.Pointer && reflect.PointerTo(t).NumMethod() > t.NumMethod() {
			return fmt.Sprintf("; *%s has more methods: mount a pointer", strings.TrimPrefix(t.String(), "*"))
		}
		return ""
	}
	// One hint is enough to go on; take the first in a fixed order.
	first := hints[0]
	for _, h := range hints[1:] {
		first = min(first, h)
	}
	return "; " + first
}
