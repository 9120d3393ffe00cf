package daemon_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/daemon"
	"github.com/hookd/hookd/hook"
)

// one is a config with one hook process in this mode.
func one(t testing.TB, mode, rest string) string {
	return fmt.Sprintf(`{"hooks": {"processes": {"gate": %s}}}`, process(t, mode, rest))
}

// process is an entry that runs the test binary as a hook.
func process(t testing.TB, mode, rest string) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	if rest == "" {
		rest = `"intercept": ["before_tool"], "fail_policy": "deny"`
	}
	return fmt.Sprintf(`{"command": [%q], "env": {%q: %q, "GORACE": "atexit_sleep_ms=0"}, %s}`, self, asHook, mode, rest)
}

const lsCall = `{"tool":"bash","arguments":{"command":"ls"}}`

func TestAgentGreets(t *testing.T) {
	d := startDaemon(t, one(t, "continue", ""))

	a := d.dial(t)
	require.Equal(t, "error -32602: name: is missing", a.ask("hook.hello", `{}`))
	require.Contains(t, a.ask("hook.hello", `{"name":"a","deadline_ms":299}`), "error -32602: deadline_ms")
	require.Contains(t, a.ask("hook.hello", `{"name":"a","version":1,"unheard_of":[]}`), `"ok":true,"name":"hookd","version":1`)
	require.Contains(t, a.ask("hook.hello", `{"name":"a"}`), "error -32600")
	require.Contains(t, a.ask("hook.before_tool", lsCall), `"action":"continue"`)

	// Who does not greet is served all the same, and can't greet later.
	silent := d.dial(t)
	require.Contains(t, silent.ask("hook.before_tool", lsCall), `"action":"continue"`)
	require.Contains(t, silent.ask("hook.hello", `{"name":"a"}`), "error -32600")

	// Another version is told which one is spoken, and shown the door.
	other := d.dial(t)
	require.Contains(t, other.ask("hook.hello", `{"name":"a","version":99}`), "error -32005")
	_, err := other.r.ReadByte()
	require.Error(t, err)

	var s *daemon.Status
	until(t, "the third has gone", func() bool { s = d.status(t); return len(s.Agents) == 2 })
	require.Equal(t, "a", s.Agents[0].Name)
	require.Equal(t, os.Getpid(), s.Agents[0].PID)
	require.Equal(t, os.Getuid(), s.Agents[0].UID)
	require.EqualValues(t, 1, s.Agents[0].Calls)
	require.Equal(t, "before_tool", s.Agents[0].LastEvent)
}

func TestAgentThatSendsGarbageKeepsItsConnection(t *testing.T) {
	d := startDaemon(t, one(t, "continue", ""))
	a := d.dial(t)
	for _, bad := range []struct {
		line string
		code int
	}{
		{`{"jsonrpc":"2.0","id":1,"method":"hook.before_tool"`, -32700},
		{"\x00", -32700},
		{`{"jsonrpc":"2.0","id":1,"method":"hook.before_tool","params":{"tool":"a","tool":"b","arguments":{}}}`, -32700},
		{`[]`, -32600},
		{`{"jsonrpc":"1.0","id":1,"method":"hook.stop","params":{}}`, -32600},
		{`{"jsonrpc":"2.0","id":1.5,"method":"hook.stop","params":{}}`, -32600},
		{`{"jsonrpc":"2.0","id":1,"method":"hook.nope","params":{}}`, -32601},
		{`{"jsonrpc":"2.0","id":1,"method":"hook.before_tool","params":[1]}`, -32602},
		{`{"jsonrpc":"2.0","id":1,"method":"hook.before_tool","params":{"tool":5,"arguments":{}}}`, -32602},
		{`{"jsonrpc":"2.0","id":1,"method":"hook.before_tool","params":{"tool":"a","arguments":{},"deadline_ms":100}}`, -32602},
	} {
		a.send(bad.line)
		ans := a.read()
		require.NotNil(t, ans.Error, bad.line)
		require.Equal(t, bad.code, ans.Error.Code, bad.line)
	}
	require.Contains(t, a.ask("hook.before_tool", lsCall), `"action":"continue"`)
}

func TestStageWithoutIDIsRefusedAndCounted(t *testing.T) {
	d := startDaemon(t, one(t, "continue", ""))
	a := d.dial(t)
	a.send(`{"jsonrpc":"2.0","method":"hook.before_tool","params":` + lsCall + `}`)
	a.send(`{"jsonrpc":"2.0","method":"hook.event","params":{"kind":"decision"}}`)
	a.send(`{"jsonrpc":"2.0","method":"hook.event","params":{"kind":"turn_start"}}`)
	require.Contains(t, a.ask("hook.before_tool", lsCall), `"action":"continue"`) // and no answer before
	s := d.status(t)
	require.EqualValues(t, 1, s.Counters.StagesWithoutID)
	require.EqualValues(t, 1, s.Counters.EventsDropped)
	require.EqualValues(t, 1, s.Hooks[0].Calls)
}

// A reviewer that starts an agent must not end up asking itself.
func TestHookMayNotAsk(t *testing.T) {
	d := startDaemon(t, one(t, "ask-hookd", ""))
	answer := d.dial(t).ask("hook.before_tool", fmt.Sprintf(`{"tool":"bash","arguments":{"socket":%q}}`, d.sockets.Agents))
	require.Contains(t, answer, "-32004")
	require.Contains(t, answer, "may not ask hookd")
	require.Contains(t, answer, "gate")
}

func TestSocketsAreTheOwnersAlone(t *testing.T) {
	d := startDaemon(t, `{}`)
	for _, path := range []string{d.sockets.Agents, d.sockets.Control} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), path)
	}
}

// A hung hook and one that crashes all the time stand beside a healthy one:
// they do not slow it, are named in every answer, and status says so.
func TestSickHooksBesideAHealthyOne(t *testing.T) {
	d := startDaemon(t, fmt.Sprintf(`{"hooks": {"processes": {
		"healthy": %s, "hung": %s, "crashing": %s}}}`,
		process(t, "continue", `"intercept": ["user_message", "before_tool"], "fail_policy": "deny"`),
		process(t, "hang", `"intercept": ["before_tool"], "timeout_ms": 300`),
		process(t, "crash", `"intercept": ["before_tool"]`)))
	sick := d.dial(t)
	done := make(chan string)
	go func() {
		answer := ""
		for range 5 {
			sick.id++
			sick.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"hook.before_tool","params":{"tool":"t","arguments":{},"trail":true}}`, sick.id))
			answer = string(sick.read().Result)
		}
		done <- answer
	}()
	a := d.dial(t)
	slowest := time.Duration(0)
	var answer string
	for running := true; running; {
		start := time.Now()
		require.Contains(t, a.ask("hook.user_message", `{"message":{"role":"user","content":"hi"}}`), `"action":"continue"`)
		slowest = max(slowest, time.Since(start))
		select {
		case answer = <-done:
			running = false
		default:
		}
	}
	require.Less(t, slowest, 300*time.Millisecond, "the healthy hook waited for a sick one")
	require.Contains(t, answer, `"action":"continue"`)
	require.Contains(t, answer, `{"hook":"hung","outcome":"`)
	require.Contains(t, answer, `{"hook":"crashing","outcome":"`)
	require.Contains(t, answer, `"degraded":[`)
	for _, h := range d.status(t).Hooks {
		if h.Name == "healthy" {
			require.Zero(t, h.Failures)
			require.Equal(t, "ready", h.State)
		} else if h.Source == hook.Process {
			require.NotZero(t, h.Failures, h.Name)
			require.NotEmpty(t, h.LastError, h.Name)
		}
	}
}

// Twelve calls at once for a hook that takes one at a time and 250 ms for it,
// with a limit of a second: whoever can't be served in time is denied, and
// nobody is let through because the hook was busy.
func TestLoadDoesNotOpenTheGate(t *testing.T) {
	d := startDaemon(t, one(t, "slow", `"intercept": ["before_tool"], "timeout_ms": 1000, "max_in_flight": 1`))
	a := d.dial(t)
	for i := range 12 {
		a.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"hook.before_tool","params":{"tool":"t","arguments":{},"trail":true}}`, i))
	}
	judged, overloaded := 0, 0
	for range 12 {
		answer := string(a.read().Result)
		switch {
		case strings.Contains(answer, `"outcome":"deny"`): // the hook's own answer
			judged++
		case strings.Contains(answer, `"outcome":"overloaded"`):
			overloaded++
			require.Contains(t, answer, `"action":"deny_tool"`)
		default:
			t.Errorf("neither judged nor refused: %s", answer)
		}
	}
	require.GreaterOrEqual(t, judged, 1)
	require.GreaterOrEqual(t, overloaded, 1)
}
