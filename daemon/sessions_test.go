package daemon_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/builtin/cancel"
	"github.com/hookd/hookd/daemon"
	"github.com/hookd/hookd/protocol"
)

func (d *runningDaemon) session(t testing.TB, id string) daemon.SessionDetails {
	t.Helper()
	var s daemon.SessionDetails
	require.NoError(t, d.control(t, daemon.MethodSessionsShow, daemon.SessionParams{Session: id}, &s))
	return s
}

func TestSessionStates(t *testing.T) {
	d := startDaemon(t, people(`, "timeout_ms": 400`))
	a := d.dial(t)
	a.ask("hook.hello", `{"name":"bot","session_id":"s-1"}`)
	a.ask("hook.user_message", `{"message":{"role":"user","content":"hi"}}`)
	require.Equal(t, cancel.Running, d.session(t, "s-1").State)
	for name, end := range map[string]func(id string){
		"yes": func(id string) {
			_, err := d.approve(t, daemon.ApprovalAnswerParams{ID: id})
			require.NoError(t, err)
		},
		"no": func(id string) {
			require.NoError(t, d.control(t, daemon.MethodApprovalsDeny, daemon.ApprovalAnswerParams{ID: id}, nil))
		},
		"timeout": func(string) {},
	} {
		a.asks("hook.before_tool", pushCall)
		open := d.tickets(t, 1)[0]
		s := d.session(t, "s-1")
		require.Equal(t, cancel.WaitingApproval, s.State, name)
		require.Equal(t, 1, s.Waiting)
		require.Equal(t, open.ID, s.Approvals[0].ID)
		end(open.ID)
		a.read()
		s = d.session(t, "s-1")
		require.Equal(t, cancel.Running, s.State, name)
		require.Empty(t, s.Approvals)
	}
	var list []daemon.SessionStatus
	require.NoError(t, d.control(t, daemon.MethodSessionsList, nil, &list))
	require.Len(t, list, 1)
	require.Equal(t, "bot", list[0].Agent)
	require.EqualValues(t, 4, list[0].Calls)
	require.Nil(t, list[0].Tokens)
	a.ask("hook.after_llm", `{"response":{"content":"x","usage":{"total_tokens":7}}}`)
	s := d.session(t, "s-1")
	require.EqualValues(t, 7, *s.Tokens)
	require.EqualValues(t, 3, s.Stages[protocol.StageBeforeTool])
	require.Equal(t, "after_llm", s.LastEvent)
	require.Equal(t, "user_message", s.Recent[0].What)
}

func TestCancelSession(t *testing.T) {
	d := startDaemon(t, people(""))
	a, other := d.dial(t), d.dial(t)
	a.ask("hook.hello", `{"name":"bot","session_id":"s-1"}`)
	other.ask("hook.hello", `{"name":"bot","session_id":"s-2"}`)
	for _, call := range []*agent{a, other} {
		call.asks("hook.before_tool", `{"tool":"bash","arguments":{},"approve":true}`)
	}
	d.tickets(t, 2)
	var done daemon.SessionChanged
	require.NoError(t, d.control(t, daemon.MethodSessionsCancel, daemon.SessionParams{Session: "s-1", Reason: "it loops"}, &done))
	require.Equal(t, cancel.Cancelled, done.State)
	require.Equal(t, 1, done.Denied)
	require.Equal(t, "it loops", done.Reason)
	why := "the session was cancelled by " + done.CancelledBy + ": it loops"
	require.Contains(t, string(a.read().Result), fmt.Sprintf(`"action":"deny_tool","reason":"denied by human: %s"`, why))
	for stage, params := range map[string]string{
		"user_message": `{"message":{"role":"user","content":"hi"}}`, "before_llm": `{"model":"m","messages":[]}`,
		"before_tool": lsCall, "after_tool": `{"tool":"bash","arguments":{},"result":{"content":"x"}}`, "stop": `{"request":{}}`, "output": `{"output":{"content":"x"}}`,
	} {
		require.Contains(t, a.ask("hook."+stage, params), fmt.Sprintf(`"action":"abort_turn","reason":%q`, why), stage)
	}
	// Nobody is asked any more.
	require.Contains(t, a.ask("hook.approve_tool", `{"tool":"bash","arguments":{},"asked":false}`), fmt.Sprintf(`"approved":false,"reason":"denied by cancel: %s"`, why))
	require.Len(t, d.tickets(t, 1), 1, "the other session goes on waiting")

	require.NoError(t, d.control(t, daemon.MethodSessionsResume, daemon.SessionParams{Session: "s-1"}, &done))
	require.Equal(t, cancel.Running, done.State)
	require.Contains(t, a.ask("hook.before_llm", `{"model":"m","messages":[]}`), `"action":"continue"`)
	require.ErrorContains(t, d.control(t, daemon.MethodSessionsResume, daemon.SessionParams{Session: "s-1"}, nil), "is not cancelled")
	require.ErrorContains(t, d.control(t, daemon.MethodSessionsCancel, daemon.SessionParams{Session: "s1"}, nil), `there is no session "s1" (did you mean "s-1"?)`)
	require.ErrorContains(t, d.control(t, daemon.MethodSessionsCancel, daemon.SessionParams{}, nil), "session: is missing")

	// The end of a session ends its cancellation.
	require.NoError(t, d.control(t, daemon.MethodSessionsCancel, daemon.SessionParams{Session: "s-1"}, nil))
	a.send(`{"jsonrpc":"2.0","method":"hook.event","params":{"kind":"session_end"}}`)
	require.Eventually(t, func() bool {
		var list []daemon.SessionStatus
		require.NoError(t, d.control(t, daemon.MethodSessionsList, nil, &list))
		return !slices.ContainsFunc(list, func(s daemon.SessionStatus) bool { return s.Session == "s-1" })
	}, 10*time.Second, 5*time.Millisecond)
	require.Contains(t, a.ask("hook.before_llm", `{"model":"m","messages":[]}`), `"action":"continue"`)
}

// A call that waits for nobody else is answered at once also with cancel in
// front of it.
func TestCancelAnswersInline(t *testing.T) {
	d := startDaemon(t, `{"hooks": {"builtins": {"cancel": {"priority": 10}}}}`)
	a := d.dial(t)
	require.Contains(t, a.ask("hook.before_tool", lsCall), `"action":"continue"`)
	require.Equal(t, "@", func() string {
		var list []daemon.SessionStatus
		require.NoError(t, d.control(t, daemon.MethodSessionsList, nil, &list))
		return list[0].Session
	}())
	// With nobody who approves, cancel is nobody who approves.
	require.Contains(t, a.ask("hook.approve_tool", `{"tool":"bash","arguments":{},"asked":true}`), `"approved":false,"reason":"nobody can be asked"`)
}

func TestSessionsNeedTheBuiltin(t *testing.T) {
	d := startDaemon(t, strings.Replace(people(""), `"cancel": {"priority": 10}, `, "", 1))
	require.ErrorContains(t, d.control(t, daemon.MethodSessionsList, nil, nil), `sessions are not followed: add "cancel": {"priority": 10} to hooks.builtins`)
}
