package hooktest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// The hooks below keep all promises but one.

type intercept func(context.Context, *protocol.Request) (protocol.Decision, error)

func (f intercept) Intercept(ctx context.Context, req *protocol.Request) (protocol.Decision, error) {
	return f(ctx, req)
}

type approve func(context.Context, *protocol.Request) (protocol.Approval, error)

func (f approve) Approve(ctx context.Context, req *protocol.Request) (protocol.Approval, error) {
	return f(ctx, req)
}

type observe func(context.Context, *hook.Event) error

func (f observe) Observe(ctx context.Context, ev *hook.Event) error { return f(ctx, ev) }

func at(stage protocol.Stage, d protocol.Decision) intercept {
	return func(_ context.Context, req *protocol.Request) (protocol.Decision, error) {
		if req.Stage.Name == stage {
			return d, nil
		}
		return hook.Continue(), nil
	}
}

func TestBrokenPromisesAreFound(t *testing.T) {
	release := make(chan struct{}) // lets what hangs end
	for name, c := range map[string]struct {
		hook any
		want string
	}{
		"no hook": {struct{}{}, "fills no role"},
		"an error": {intercept(func(context.Context, *protocol.Request) (protocol.Decision, error) {
			return protocol.Decision{}, errors.New("no database")
		}), "it failed (no database)"},
		"a verb of another stage": {at(protocol.StageAfterTool, hook.Deny("no")), `after_tool: it answered "deny", which is not possible there`},
		"an unreadable answer":    {at(protocol.StageBeforeTool, protocol.Decision{Action: protocol.ActionModify, Subject: jsontext.Value(`{"tool":7}`)}), "can't be used"},
		"broken JSON":             {at(protocol.StageBeforeLLM, protocol.Decision{Action: protocol.ActionRespond, Respond: jsontext.Value(`{"content":`)}), "can't be used"},
		"a change of nothing":     {at(protocol.StageStop, protocol.Decision{Subject: jsontext.Value(`{}`)}), "nothing can be changed at stop"},
		"respond without an answer": {at(protocol.StageBeforeAgent, protocol.Decision{Action: protocol.ActionRespond}),
			`respond without`},
		"a panic over arguments": {intercept(func(_ context.Context, req *protocol.Request) (protocol.Decision, error) {
			if args := req.Subject.Get("arguments"); args != nil {
				obj, _ := protocol.ParseObject(args)
				_ = obj.Get("command")[0]
			}
			return protocol.Decision{}, nil
		}), "it panicked"},
		"a panic of an approver": {approve(func(_ context.Context, req *protocol.Request) (protocol.Approval, error) {
			panic("not yet")
		}), "approve_tool: it panicked (panic: not yet)"},
		"a panic over an event": {observe(func(_ context.Context, ev *hook.Event) error {
			_ = ev.Payload[0]
			return nil
		}), "event session_start: it panicked"},
		"a changed request": {intercept(func(_ context.Context, req *protocol.Request) (protocol.Decision, error) {
			if len(req.Subject) > 0 {
				req.Subject[0].Value = jsontext.Value(`"rm"`)
			}
			return protocol.Decision{}, nil
		}), "it changed the request"},
		"never an answer": {intercept(func(ctx context.Context, _ *protocol.Request) (protocol.Decision, error) {
			<-ctx.Done()
			return protocol.Decision{}, ctx.Err()
		}), "it gave no answer within 5s"},
		"deaf to its context": {intercept(func(ctx context.Context, _ *protocol.Request) (protocol.Decision, error) {
			if ctx.Err() != nil {
				<-release
			}
			return protocol.Decision{}, nil
		}), "it went on for 1s after its context had ended"},
		"an observer that is": {observe(func(context.Context, *hook.Event) error {
			<-release
			return nil
		}), "event session_start: it went on for 1s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release = make(chan struct{})
				broken := brokenPromises(c.hook)
				close(release)
				require.NotEmpty(t, broken)
				require.Contains(t, broken[0], c.want)
			})
		})
	}
}

// careful is a hook that keeps its promises, in all roles.
type careful struct {
	hook.NoTool
	hook.NoLLM
}

func (careful) BeforeTool(_ context.Context, call *hook.ToolCall) (protocol.Decision, error) {
	var args struct {
		Command string `json:"command"`
	}
	if err := call.Decode(&args); err != nil {
		return protocol.Decision{}, err
	}
	return hook.Modify(map[string]any{"arguments": map[string]string{"command": args.Command}})
}

func (careful) Approve(context.Context, *protocol.Request) (protocol.Approval, error) {
	return protocol.Approval{Approved: true}, nil
}

func (careful) Observe(_ context.Context, ev *hook.Event) error {
	if ev.Payload == nil {
		return errors.New("nothing to see")
	}
	return nil
}

func TestAHookThatKeepsItsPromisesPasses(t *testing.T) {
	Check(t, careful{})
	Check(t, intercept(func(context.Context, *protocol.Request) (protocol.Decision, error) { return hook.Continue(), nil }))
}
