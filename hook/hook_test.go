package hook

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/protocol"
)

type (
	ctx      = context.Context
	decision = protocol.Decision

	watcher struct{}         // an observer
	judge   struct{}         // an interceptor
	narrow  struct{ judge }  // … for some stages
	toolish struct{ NoTool } // a typed helper
	full    struct {         // both typed helpers and the other roles
		NoTool
		NoLLM
		watcher
	}
	approverOnly struct{}
	fast         struct{ watcher }

	half          struct{} // BeforeTool without AfterTool
	oldSignature  struct{} // Intercept with another signature
	oldObserver   struct{} // a good approver, a bad observer
	halfBeside    struct{ judge }
	both          struct{ toolish } // Intercept beside a typed helper
	pointer       struct{}          // methods on the pointer
	pointerHalf   struct{ watcher } // … for one of its roles
	withSetter    struct{ watcher } // another method on the pointer
	narrowTool    struct{ toolish } // a typed helper for one of its stages
	narrowTooMuch struct{ toolish } // … for one that it does not handle
)

func (watcher) Observe(ctx, *Event) error                        { return nil }
func (judge) Intercept(ctx, *protocol.Request) (decision, error) { return Continue(), nil }
func (narrow) Stages() []protocol.Stage                          { return []protocol.Stage{protocol.StageStop} }
func (approverOnly) Approve(ctx, *protocol.Request) (protocol.Approval, error) {
	return protocol.Approval{}, nil
}
func (fast) Quick()                                       {}
func (fast) Remote()                                      {}
func (half) BeforeTool(ctx, *ToolCall) (decision, error)  { return Continue(), nil }
func (oldSignature) Intercept(*protocol.Request) decision { return Continue() }
func (oldObserver) Observe(*Event)                        {}
func (oldObserver) Approve(ctx, *protocol.Request) (protocol.Approval, error) {
	return protocol.Approval{}, nil
}
func (halfBeside) AfterLLM(ctx, *ModelResponse) (decision, error) { return Continue(), nil }
func (both) Intercept(ctx, *protocol.Request) (decision, error)   { return Continue(), nil }
func (*pointer) Observe(ctx, *Event) error                        { return nil }
func (*pointerHalf) Approve(ctx, *protocol.Request) (protocol.Approval, error) {
	return protocol.Approval{}, nil
}
func (*withSetter) Reset()                     {}
func (narrowTool) Stages() []protocol.Stage    { return []protocol.Stage{protocol.StageAfterTool} }
func (narrowTooMuch) Stages() []protocol.Stage { return []protocol.Stage{protocol.StageStop} }

func TestRolesOf(t *testing.T) {
	llm := []protocol.Stage{protocol.StageBeforeLLM, protocol.StageAfterLLM}
	tool := []protocol.Stage{protocol.StageBeforeTool, protocol.StageAfterTool}
	for _, c := range []struct {
		name  string
		value any
		roles string // o, i, a, q, r
		at    []protocol.Stage
		err   string
	}{
		{name: "observer", value: watcher{}, roles: "o"},
		{name: "observer by pointer", value: &watcher{}, roles: "o"},
		{name: "interceptor", value: judge{}, roles: "i"},
		{name: "interceptor at some stages", value: narrow{}, roles: "i", at: []protocol.Stage{protocol.StageStop}},
		{name: "approver", value: approverOnly{}, roles: "a"},
		{name: "typed", value: toolish{}, roles: "i", at: tool},
		{name: "typed at one of its stages", value: narrowTool{}, roles: "i", at: tool[1:]},
		{name: "everything", value: &full{}, roles: "oi", at: append(llm, tool...)},
		{name: "markers", value: fast{}, roles: "oqr"},
		{name: "methods on the pointer", value: &pointer{}, roles: "o"},
		{name: "another method on the pointer", value: withSetter{}, roles: "o"},

		{name: "nil", value: nil, err: "hook is nil"},
		{name: "nil pointer", value: (*pointer)(nil), err: "hook is nil"},
		{name: "nothing", value: struct{}{}, err: "fills no role"},
		{name: "no methods at all", value: 7, err: "int fills no role"},
		{name: "half a typed helper", value: half{}, err: "embed hook.NoTool"},
		{name: "another signature", value: oldSignature{}, err: "Intercept has not the signature of hook.Interceptor"},
		{name: "one good role, one bad", value: oldObserver{}, err: "Observe has not the signature of hook.Observer"},
		{name: "half a helper beside a role", value: halfBeside{}, err: "embed hook.NoLLM"},
		{name: "two ways to intercept", value: both{}, err: "never be called"},
		{name: "value instead of pointer", value: pointer{}, err: "mount a pointer"},
		{name: "value instead of pointer for one role", value: pointerHalf{}, err: "mount a pointer"},
		{name: "stages that a helper has not", value: narrowTooMuch{}, err: "stop"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := RolesOf(c.value)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			for mark, has := range map[string]bool{"o": r.Observer != nil, "i": r.Interceptor != nil, "a": r.Approver != nil, "q": r.Quick, "r": r.Remote} {
				require.Equal(t, strings.Contains(c.roles, mark), has, mark)
			}
			require.Equal(t, c.at, r.Stages)
			require.Equal(t, c.value, r.Value)
		})
	}
}

func TestFailure(t *testing.T) {
	cause := errors.New("exit status 1")
	err := error(&Failure{Outcome: protocol.OutcomeCrash, Detail: "it exited", Err: cause})
	require.Equal(t, "crash: it exited", err.Error())
	require.ErrorIs(t, err, cause)
	f, ok := errors.AsType[*Failure](errors.Join(err))
	require.True(t, ok)
	require.Equal(t, protocol.OutcomeCrash, f.Outcome)
	require.Equal(t, "timeout", (&Failure{Outcome: protocol.OutcomeTimeout}).Error())
}
