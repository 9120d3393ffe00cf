package manager

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// goHook is a hook in plain Go, made of functions.
type goHook struct {
	intercept func(context.Context, *protocol.Request) (protocol.Decision, error)
	approve   func(context.Context, *protocol.Request) (protocol.Approval, error)
	observe   func(context.Context, *hook.Event) error
}

func (h *goHook) Intercept(ctx context.Context, req *protocol.Request) (protocol.Decision, error) {
	return h.intercept(ctx, req)
}

func (h *goHook) Approve(ctx context.Context, req *protocol.Request) (protocol.Approval, error) {
	return h.approve(ctx, req)
}

func (h *goHook) Observe(ctx context.Context, ev *hook.Event) error { return h.observe(ctx, ev) }

// registration mounts the hook in process: what it can do is what it is for.
func (h *goHook) registration(name string) *hook.Registration {
	r := &hook.Registration{
		Name: name, Source: hook.InProcess, FailPolicy: hook.FailDeny,
		Roles:   hook.Roles{Value: h},
		Timeout: 5 * time.Second, ApprovalTimeout: 60 * time.Second, ObserverTimeout: 500 * time.Millisecond,
	}
	if h.intercept != nil {
		r.Roles.Interceptor = h
		r.Stages = append(r.Stages, protocol.StageBeforeTool)
	}
	if h.approve != nil {
		r.Roles.Approver = h
		r.Stages = append(r.Stages, protocol.StageApproveTool)
	}
	if h.observe != nil {
		r.Roles.Observer = h
		all, _ := protocol.ParseSubscription("*")
		r.Events = append(r.Events, all)
	}
	return r
}

// mounted returns a manager with these hooks, closed at the end of the test.
func mounted(t testing.TB, hooks ...*hook.Registration) *HookManager {
	t.Helper()
	m := New(Options{})
	t.Cleanup(func() { require.NoError(t, m.Close(context.Background())) })
	swap(t, m, hooks...)
	return m
}

// swap makes these hooks the next generation and returns the one before.
func swap(t testing.TB, m *HookManager, hooks ...*hook.Registration) *Generation {
	t.Helper()
	g, err := NewGeneration(m.Generation().Number+1, Rules{ChainTimeout: 30 * time.Second, ApproveUnasked: true}, hooks)
	require.NoError(t, err)
	return m.Swap(g)
}

func request(t testing.TB, stage protocol.Stage, params string) *protocol.Request {
	t.Helper()
	obj, err := protocol.DecodeObject([]byte(params), 0)
	require.NoError(t, err)
	req, bad := protocol.DecodeRequest(protocol.NewStageTable().Stage(stage), obj)
	require.Nil(t, bad)
	return req
}

const aCall = `{"tool":"bash","arguments":{"command":"ls"}}`

// call runs a before_tool call.
func call(t testing.TB, m *HookManager) *protocol.Result {
	t.Helper()
	res, err := m.Call(t.Context(), &Caller{Name: "bot"}, request(t, protocol.StageBeforeTool, aCall))
	require.NoError(t, err)
	return res
}
