package hook

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/protocol"
)

func registration(t *testing.T) Registration {
	t.Helper()
	roles, err := RolesOf(struct {
		watcher
		judge
		approverOnly
	}{})
	require.NoError(t, err)
	everything, err := protocol.ParseSubscription("*")
	require.NoError(t, err)
	return Registration{
		Name: "guard", Source: InProcess, Roles: roles,
		Stages: []protocol.Stage{protocol.StageBeforeTool, protocol.StageApproveTool}, Events: []protocol.Subscription{everything},
		FailPolicy: FailDeny, Timeout: time.Second, ApprovalTimeout: time.Minute, ObserverTimeout: time.Second,
	}
}

func TestRegistrationCheck(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Registration)
		err    string
	}{
		{"good", func(*Registration) {}, ""},
		{"required", func(r *Registration) { r.Required, r.Mode = true, Enforce }, ""},
		{"observer only", func(r *Registration) { r.Stages, r.Roles.Interceptor, r.Roles.Approver = nil, nil, nil }, ""},
		{"approver only", func(r *Registration) {
			r.Stages, r.Events, r.Roles.Interceptor, r.Roles.Observer = []protocol.Stage{protocol.StageApproveTool}, nil, nil, nil
		}, ""},
		{"modes", func(r *Registration) { r.Mode, r.When = Shadow, IfAsked }, ""},

		{"no name", func(r *Registration) { r.Name = "" }, "needs a name"},
		{"no fail policy", func(r *Registration) { r.FailPolicy = "" }, "neither continue nor deny"},
		{"another fail policy", func(r *Registration) { r.FailPolicy = "Deny" }, `"Deny"`},
		{"unknown mode", func(r *Registration) { r.Mode = "audit" }, `mode "audit"`},
		{"unknown when", func(r *Registration) { r.When = "never" }, `when "never"`},
		{"required and warn", func(r *Registration) { r.Required, r.Mode = true, Warn }, "required"},
		{"required and shadow", func(r *Registration) { r.Required, r.Mode = true, Shadow }, "required"},
		{"required and async", func(r *Registration) { r.Required, r.Mode = true, Async }, "required"},
		{"no timeout", func(r *Registration) { r.Timeout = 0 }, "positive"},
		{"negative approval timeout", func(r *Registration) { r.ApprovalTimeout = -1 }, "positive"},
		{"no observer timeout", func(r *Registration) { r.ObserverTimeout = 0 }, "positive"},
		{"nothing to do", func(r *Registration) { r.Stages, r.Events = nil, nil }, "neither a stage nor an event"},
		{"no approver", func(r *Registration) { r.Roles.Approver = nil }, "no approver"},
		{"no interceptor", func(r *Registration) { r.Roles.Interceptor = nil }, "no interceptor"},
		{"no observer", func(r *Registration) { r.Roles.Observer = nil }, "no observer"},
		{"a stage that it does not handle", func(r *Registration) { r.Roles.Stages = []protocol.Stage{protocol.StageStop} }, "does not handle before_tool"},
		{"an unknown stage", func(r *Registration) { r.Stages = append(r.Stages, "before_tol") }, `unknown stage "before_tol" (did you mean "before_tool"?)`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := registration(t)
			c.change(&r)
			if err := r.Check(); c.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.err)
			}
		})
	}
}

func TestRegistrationRules(t *testing.T) {
	for _, c := range []struct {
		policy           FailPolicy
		required, denies bool
	}{{FailContinue, false, false}, {FailContinue, true, true}, {FailDeny, false, true}, {FailDeny, true, true}} {
		r := Registration{FailPolicy: c.policy, Required: c.required}
		require.Equal(t, c.denies, r.Denies(), c)
	}

	r := registration(t)
	require.True(t, r.Handles(protocol.StageBeforeTool))
	require.False(t, r.Handles(protocol.StageStop))
	require.True(t, r.Observes(protocol.EventTurnEnd))
	r.Events = nil
	require.False(t, r.Observes(protocol.EventTurnEnd))
	require.Equal(t, time.Second, r.StageTimeout(protocol.StageBeforeTool))
	require.Equal(t, time.Minute, r.StageTimeout(protocol.StageApproveTool))
}
