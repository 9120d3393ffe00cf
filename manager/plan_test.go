package manager

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// Inline is true only when nothing that waits could be asked.
func TestPlanInline(t *testing.T) {
	hookOn := func(name string, quick bool, stage protocol.Stage, tools ...string) *hook.Registration {
		h := continues()
		h.approve = func(context.Context, *protocol.Request) (protocol.Approval, error) {
			return protocol.Approval{Approved: true}, nil
		}
		r := h.registration(name)
		r.Stages, r.Roles.Quick = []protocol.Stage{stage}, quick
		var err error
		r.Match, err = hook.NewMatch(tools, nil)
		require.NoError(t, err)
		return r
	}
	async := hookOn("async", false, protocol.StageBeforeTool)
	async.Mode = hook.Async
	const before, approve = protocol.StageBeforeTool, protocol.StageApproveTool
	for _, c := range []struct {
		what   string
		stage  protocol.Stage
		params string
		hooks  []*hook.Registration
		want   bool
	}{
		{"no hook", before, aCall, nil, true},
		{"none that matches", before, aCall, []*hook.Registration{hookOn("a", false, before, "read")}, true},
		{"a quick one", before, aCall, []*hook.Registration{hookOn("a", true, before)}, true},
		{"a slow one", before, aCall, []*hook.Registration{hookOn("a", false, before)}, false},
		{"one that is not waited for", before, aCall, []*hook.Registration{async}, true},
		{"a quick one, which may rename the call for a slow one", before, aCall, []*hook.Registration{hookOn("a", true, before), hookOn("b", false, before, "read")}, false},
		{"a quick one, which may ask or respond, and a slow approver", before, aCall, []*hook.Registration{hookOn("a", true, before), hookOn("b", false, approve)}, false},
		{"a slow approver and nobody who could need it", before, aCall, []*hook.Registration{hookOn("b", false, approve)}, true},
		{"a slow approver and approve", before, `{"tool":"bash","arguments":{},"approve":true}`, []*hook.Registration{hookOn("b", false, approve)}, false},
		{"a quick approver and approve", before, `{"tool":"bash","arguments":{},"approve":true}`, []*hook.Registration{hookOn("b", true, approve)}, true},
		{"an approval by a slow one", approve, aCall, []*hook.Registration{hookOn("b", false, approve)}, false},
		{"an approval by nobody", approve, aCall, []*hook.Registration{hookOn("b", false, approve, "read")}, true},
		{"a slow one elsewhere", before, aCall, []*hook.Registration{hookOn("a", false, protocol.StageAfterTool)}, true},
	} {
		m := mounted(t, c.hooks...)
		require.Equal(t, c.want, m.Plan(&Caller{}, request(t, c.stage, c.params)).Inline, c.what)
	}
	g, err := NewGeneration(9, Rules{Disabled: true}, []*hook.Registration{hookOn("a", false, before)})
	require.NoError(t, err)
	m := mounted(t)
	m.Swap(g)
	require.True(t, m.Plan(&Caller{}, request(t, before, aCall)).Inline, "hooks are disabled")
}
