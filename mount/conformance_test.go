package mount

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/hook/hooktest"
	"github.com/hookd/hookd/protocol"
)

// TestConformance runs the suite for all ways to run a hook against a real
// process that is mounted.
func TestConformance(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	hooktest.Run(t, func(t *testing.T) hooktest.Harness {
		e := faultEntry(t, "reference")
		e.MaxInFlight = 0 // as many as the hook says
		e.Intercept = nil
		for _, s := range protocol.Stages() {
			e.Intercept = append(e.Intercept, s.Name)
		}
		m := b.mountReady(t, e)
		r, err := m.Registration(e)
		require.NoError(t, err)
		require.Equal(t, e.Intercept, r.Stages)
		return mountedHook{t, m, r.Roles}
	})
}

// mountedHook is the way to it: the roles that hookd would ask.
type mountedHook struct {
	t     *testing.T
	m     *Mounted
	roles hook.Roles
}

func (h mountedHook) Intercept(ctx context.Context, req *protocol.Request) (protocol.Decision, error) {
	return h.roles.Interceptor.Intercept(ctx, req)
}

func (h mountedHook) Approve(ctx context.Context, req *protocol.Request) (protocol.Approval, error) {
	return h.roles.Approver.Approve(ctx, req)
}

func (h mountedHook) Observe(ctx context.Context, ev *hook.Event) error {
	return h.roles.Observer.Observe(ctx, ev)
}

// Close ends a hook that has done nothing to be restarted for.
func (h mountedHook) Close() {
	s := h.m.Status()
	require.Zero(h.t, s.Restarts, s.LastError)
	require.NoError(h.t, h.m.Close(context.Background()))
	require.Empty(h.t, h.m.Status().LastError)
}
