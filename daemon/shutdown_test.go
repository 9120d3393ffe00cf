package daemon_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/daemon"
)

// Calls under way are answered, an approval becomes a no, children are gone,
// and all that in time.
func TestShutdownAnswersWhatIsOpen(t *testing.T) {
	d := startDaemon(t, fmt.Sprintf(`{"hooks": {"processes": {"slow": %s, "human": %s, "stubborn": %s}}}`,
		process(t, "slow", `"intercept": ["before_tool"], "max_in_flight": 16`),
		process(t, "hang", `"intercept": ["approve_tool"]`),
		process(t, "ignore-term", `"intercept": ["stop"]`)))
	running := pids(d.status(t))
	calls, approvals := d.dial(t), d.dial(t)
	for i := range 10 {
		calls.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"hook.before_tool","params":%s}`, i, lsCall))
	}
	for i := range 3 {
		approvals.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"hook.approve_tool","params":{"tool":"t%d","arguments":{}}}`, i, i))
	}
	require.Eventually(t, func() bool {
		s := d.status(t)
		open := 0
		for _, h := range s.Hooks {
			open += h.InFlight
		}
		return open >= 11 // the human takes one at a time
	}, 10*time.Second, 5*time.Millisecond)

	start := time.Now()
	ended := make(chan error, 1)
	go func() { ended <- d.stop() }()
	for range 10 {
		require.Contains(t, string(calls.read().Result), `"action":"deny_tool"`) // the hook's own answer
	}
	for range 3 {
		require.Contains(t, string(approvals.read().Result), `"approved":false,"reason":"shutting down"`)
	}
	require.NoError(t, <-ended)
	require.Less(t, time.Since(start), 10*time.Second)
	for name, pid := range running {
		require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH, name)
	}
	for _, path := range []string{d.sockets.Agents, d.sockets.Control} {
		require.NoFileExists(t, path)
	}
}

// A second signal does not wait for anybody.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	hurry := make(chan struct{})
	d := startDaemonWith(t, daemon.Options{
		ConfigPath: writeConfig(t, one(t, "ignore-term", `"intercept": ["before_tool"], "timeout_ms": 60000`)), Hurry: hurry,
	})
	pid := pids(d.status(t))["gate"]
	a := d.dial(t)
	a.send(`{"jsonrpc":"2.0","id":1,"method":"hook.before_tool","params":` + lsCall + `}`)
	require.Eventually(t, func() bool { return d.status(t).Hooks[0].InFlight == 1 }, 10*time.Second, 5*time.Millisecond)
	ended := make(chan error, 1)
	go func() { ended <- d.stop() }()
	require.Eventually(t, func() bool { return strings.Contains(d.log.String(), "shutting down") }, 10*time.Second, time.Millisecond)
	start := time.Now()
	close(hurry)
	require.NoError(t, <-ended)
	require.Less(t, time.Since(start), 2*time.Second)
	require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH)
}

// The control socket answers whatever the hooks do.
func TestStatusAnswersWhileEverythingHangs(t *testing.T) {
	d := startDaemon(t, fmt.Sprintf(`{"limits": {"max_in_flight": 1024}, "hooks": {"processes": {"hung": %s}}}`,
		process(t, "hang", `"intercept": ["before_tool"], "timeout_ms": 60000, "fail_policy": "deny"`)))
	a := d.dial(t)
	for i := range 100 {
		a.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"hook.before_tool","params":%s}`, i, lsCall))
	}
	for range 10 {
		start := time.Now()
		d.status(t)
		require.Less(t, time.Since(start), time.Second)
	}
	a.conn.Close() // the agent goes away, and so do its calls
	require.Eventually(t, func() bool { return len(d.status(t).Agents) == 0 }, 10*time.Second, 10*time.Millisecond)
}
