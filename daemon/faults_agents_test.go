package daemon_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/daemon"
	"github.com/hookd/hookd/internal/invariant"
	"github.com/hookd/hookd/protocol"
)

// agentFaults are those of agents, and of what they make hooks go through.
func agentFaults() []fault {
	both := map[string]any{"intercept": []string{"before_tool", "approve_tool"}, "max_in_flight": 4}
	return []fault{
		{name: "agent-leaves-in-a-call", play: func(t *testing.T, p *patient) {
			c := p.caller(t)
			c.begin(orders{After: p.file})
			until(t, "the hook has the call", func() bool { return p.status(t).InFlight == 1 })
			c.conn.Close()
			p.says(t, "cancelled")
			rec := p.books.ended(t, c.lastCall)
			require.ErrorContains(t, rec.err, "closed")
			require.False(t, rec.allowed)
			p.mark(t) // it says yes, and nobody hears it
			p.noisy(t, "late_reply", 1)
			p.recovered(t, 0)
		}},
		{name: "agent-leaves-in-an-approval", entry: both, play: func(t *testing.T, p *patient) {
			c := p.caller(t)
			c.stage = "approve_tool"
			c.begin(orders{After: p.file})
			until(t, "the hook is asked", func() bool { return p.status(t).InFlight == 1 })
			begin := time.Now()
			c.conn.Close()
			rec := p.books.ended(t, c.lastCall)
			require.Less(t, time.Since(begin), 10*time.Second)
			require.Error(t, rec.err)
			require.False(t, rec.allowed)
			p.says(t, "cancelled")
			p.mark(t)
			p.noisy(t, "late_reply", 1)
			require.False(t, p.books.ended(t, c.lastCall).allowed, "the yes came too late")
			p.recovered(t, 0)
		}},
		{name: "agent-cancels", play: func(t *testing.T, p *patient) {
			c := p.caller(t)
			c.begin(orders{After: p.file})
			until(t, "the hook has the call", func() bool { return p.status(t).InFlight == 1 })
			c.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":%d}}`, c.id))
			a := c.read()
			c.answered(a)
			require.Equal(t, protocol.CodeCancelled, a.Error.Code)
			p.says(t, "cancelled")
			p.mark(t)
			p.noisy(t, "late_reply", 1)
			c.done()
			p.recovered(t, 0)
		}},
		{name: "agent-closes-its-side", play: func(t *testing.T, p *patient) {
			c := p.caller(t)
			c.begin(orders{After: p.file})
			until(t, "the hook has the call", func() bool { return p.status(t).InFlight == 1 })
			require.NoError(t, c.conn.(*net.UnixConn).CloseWrite())
			p.caller(t).agent.ask("hook.nothing", `{}`) // hookd has gone on meanwhile
			p.mark(t)
			c.answer().continues(p.name)
			_, err := c.r.ReadByte()
			require.ErrorIs(t, err, io.EOF)
			require.NotContains(t, strings.Join(p.status(t).Stderr, "\n"), "cancelled")
			p.recovered(t, 0)
		}},
		{name: "agent-cancels-anothers-approval", entry: both, play: func(t *testing.T, p *patient) {
			c, stranger := p.caller(t), p.caller(t)
			c.stage, c.matched = "approve_tool", c.matched[:1]
			c.begin(orders{After: p.file})
			until(t, "the hook is asked", func() bool { return p.status(t).InFlight == 1 })
			for _, id := range []string{strconv.Itoa(c.id), strconv.Quote(strconv.Itoa(c.id)), "999", "null"} {
				stranger.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":%s}}`, id))
			}
			stranger.done() // hookd has read them
			p.mark(t)
			v := c.answer()
			require.True(t, *v.Approved, v.text)
			c.done()
			require.NotContains(t, strings.Join(p.status(t).Stderr, "\n"), "cancelled")
			p.recovered(t, 0)
		}},
		{name: "agent-uses-an-id-twice", entry: both, play: func(t *testing.T, p *patient) {
			c := p.caller(t)
			c.begin(orders{After: p.file})
			c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"hook.before_tool","params":%s}`, c.id, c.params(orders{}, 0)))
			a := c.read()
			require.EqualValues(t, c.id, a.ID)
			require.Equal(t, protocol.CodeInvalidRequest, a.Error.Code)
			require.Contains(t, a.Error.Message, "in flight already")
			p.mark(t)
			c.answer().continues(p.name)
			c.done()
			require.EqualValues(t, 1, p.status(t).Calls)
			p.recovered(t, 0)
		}},
		{name: "agent-sends-a-batch", play: func(t *testing.T, p *patient) {
			c := p.caller(t)
			call := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"hook.before_tool","params":%s}`, c.params(orders{}, 0))
			c.send("[" + call + "," + call + "]")
			a := c.read()
			require.Nil(t, a.ID)
			require.Equal(t, protocol.CodeInvalidRequest, a.Error.Code)
			require.Contains(t, a.Error.Message, "batches are not supported")
			c.done()
			require.Zero(t, p.status(t).Calls)
			p.recovered(t, 0)
		}},
		{name: "agent-sends-too-much", play: func(t *testing.T, p *patient) {
			c := p.caller(t)
			line := func(size int) string {
				c.id++
				return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"hook.before_tool","params":%s}`, c.id, c.params(orders{}, size))
			}
			rest := wardLimit - len(line(0))
			exact := line(rest)
			require.Len(t, exact, wardLimit)
			c.calls.Asked(c, strconv.Itoa(c.id), time.Now().Add(patience))
			c.send(exact)
			c.answer().continues(p.name)
			for _, more := range []int{1, 3 * wardLimit} {
				c.send(line(rest + more))
				a := c.read()
				require.EqualValues(t, c.id, a.ID)
				require.Equal(t, protocol.CodeMessageTooLarge, a.Error.Code)
				c.ask(orders{}).continues(p.name)
			}
			c.done()
			c = p.caller(t)
			endless := []byte(`{"jsonrpc":"2.0","id":1,"method":"hook.before_tool","params":{"tool":"` + strings.Repeat("x", wardLimit))
			go func() {
				for err := error(nil); err == nil; _, err = c.conn.Write(endless) {
				}
			}()
			require.Equal(t, protocol.CodeMessageTooLarge, c.read().Error.Code)
			c.closed(t)
			p.recovered(t, 0)
		}},
		{name: "agent-sends-a-byte-a-second", waits: true, play: func(t *testing.T, p *patient) {
			c, idle := p.caller(t), p.caller(t)
			begin := time.Now()
			tick := time.NewTicker(time.Second)
			defer tick.Stop()
			for _, b := range []byte(`{"jsonrpc":"2.0","id":1,"method":"hook.before_tool"`) {
				if _, err := c.conn.Write([]byte{b}); err != nil {
					break
				}
				<-tick.C
			}
			c.closed(t)
			require.GreaterOrEqual(t, time.Since(begin), 10*time.Second)
			require.Less(t, time.Since(begin), patience)
			idle.ask(orders{}).continues(p.name) // who says nothing at all may stay
			idle.done()
			p.recovered(t, 0)
		}},
		{name: "agent-does-not-read", waits: true, entry: map[string]any{"max_in_flight": 16, "may_respond": true}, play: func(t *testing.T, p *patient) {
			large := says(`{"action":"respond","result":{"content":"$PAD"}}`)
			large.Pad = 200 << 10
			for name, calls := range map[string]int{"a little is waited for": 4, "much is not": 32} {
				c := p.caller(t)
				c.greet(name)
				for range calls {
					c.begin(large)
				}
				until(t, "the agent is sent away", func() bool {
					return !slices.ContainsFunc(p.d.status(t).Agents, func(a daemon.AgentStatus) bool { return a.Name == name })
				})
				n, err := io.Copy(io.Discard, c.r)
				require.True(t, err == nil || n > 0, "%v", err) // what it was sent it may still read
				require.Less(t, n, int64(calls*large.Pad))
			}
			p.recovered(t, 0)
		}},
		{name: "observer-hangs-in-a-storm", entry: map[string]any{"observe": []string{"x_storm"}, "max_in_flight": 4}, play: func(t *testing.T, p *patient) {
			c := p.caller(t)
			c.begin(orders{Deaf: p.file})
			p.says(t, "deaf")
			event := fmt.Sprintf(`{"jsonrpc":"2.0","method":"hook.event","params":{"kind":"x_storm","payload":{"pad":%q}}}`, strings.Repeat("x", 1<<10))
			const storm = 10_000
			storming := p.caller(t)
			for range storm / 100 {
				storming.send(strings.TrimSuffix(strings.Repeat(event+"\n", 100), "\n"))
			}
			require.Contains(t, storming.agent.ask("hook.nothing", `{}`), "error") // all has arrived
			require.Greater(t, p.status(t).Missed, int64(storm/2), "what does not fit is dropped and counted")
			p.mark(t)
			require.Contains(t, []protocol.Outcome{protocol.OutcomeContinue, protocol.OutcomeCrash}, c.answer().outcome(p.name))
			until(t, "events come again", func() bool {
				storming.send(event)
				v := p.caller(t).ask(says(`{"warnings":["$EVENTS"]}`))
				return v.outcome(p.name) == protocol.OutcomeContinue && v.Warnings[0] != p.name+": 0"
			})
			c.done()
			storming.done()
			until(t, "it is well", func() bool { return p.status(t).State == "ready" })
		}},
	}
}

// says waits until the hook says this on stderr.
func (p *patient) says(t testing.TB, what string) {
	t.Helper()
	until(t, "the hook says: "+what, func() bool { return strings.Contains(strings.Join(p.status(t).Stderr, "\n"), what) })
}

// greet gives the agent a name.
func (c *caller) greet(name string) {
	c.t.Helper()
	require.Contains(c.t, c.agent.ask("hook.hello", fmt.Sprintf(`{"name":%q,"version":1}`, name)), `"ok":true`)
}

// closed waits until hookd closes the connection, without another word.
func (c *caller) closed(t testing.TB) {
	t.Helper()
	require.NoError(t, c.conn.SetReadDeadline(time.Now().Add(patience)))
	text, err := io.ReadAll(c.r)
	if ne, ok := err.(net.Error); ok {
		require.False(t, ne.Timeout(), "it is still open")
	}
	require.Empty(t, text)
}

// An agent that does not wait for answers has 64 calls under way. The others are
// refused at once, and a cancel behind them gets through.
func TestTenThousandCalls(t *testing.T) {
	const calls, most = 10_000, 64
	release := filepath.Join(shortDir(t), "release")
	d := startDaemon(t, processes(t, map[string]any{"gate": hookEntry(t, "", map[string]any{"max_in_flight": most})}))
	before := measured(t)
	c := d.caller(t, "any", "gate")
	var lines strings.Builder
	for range calls {
		c.asked()
		fmt.Fprintf(&lines, `{"jsonrpc":"2.0","id":%d,"method":"hook.before_tool","params":%s}`+"\n", c.id, c.params(orders{After: release}, 0))
	}
	lines.WriteString(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}` + "\n")
	go func() { _, _ = c.conn.Write([]byte(lines.String())) }() // ends when all is read
	codes := map[int]int{}
	for range calls - most + 1 {
		a := c.read()
		c.answered(a)
		require.NotNil(t, a.Error)
		codes[a.Error.Code]++
	}
	require.Equal(t, map[int]int{protocol.CodeOverloaded: calls - most, protocol.CodeCancelled: 1}, codes)
	require.NoError(t, os.WriteFile(release, nil, 0o600))
	for range most - 1 {
		c.answer().continues("gate")
	}
	c.done()
	rested(t, before)
}

// Many agents that ask three hooks at once are all answered, by all three.
func TestManyAgents(t *testing.T) {
	const agents, calls = 256, 4
	names := []string{"a", "b", "c"}
	entries := map[string]any{}
	for _, name := range names {
		entries[name] = hookEntry(t, "", map[string]any{"max_in_flight": 64})
	}
	d := startDaemon(t, processes(t, entries))
	before := measured(t)
	callers := make([]*caller, agents)
	for i := range callers {
		callers[i] = d.caller(t, "any", names...)
	}
	var took invariant.Latencies
	for range calls {
		begin := time.Now()
		for _, c := range callers {
			c.begin(orders{})
		}
		for _, c := range callers {
			v := c.answer()
			took.Add(time.Since(begin))
			for _, name := range names {
				v.continues(name)
			}
		}
	}
	t.Logf("%d agents at once: p50 %s, p99 %s from the first line to the answer", agents, took.P(0.5), took.P(0.99))
	for _, c := range callers {
		c.conn.Close()
	}
	for _, name := range names {
		s := d.hook(t, name)
		require.EqualValues(t, agents*calls, s.Calls)
		require.Zero(t, s.Failures)
	}
	rested(t, before)
}

// All agents together may have so many bytes under way. Who has more to say is
// told so, and nothing grows.
func TestBytesInFlight(t *testing.T) {
	const agents, size, limit = 64, 1 << 20, 8 << 20
	release := filepath.Join(shortDir(t), "release")
	d := startDaemon(t, configOf(t, map[string]any{
		"limits": map[string]any{"max_message_bytes": 2 * size, "max_bytes_in_flight": limit},
		"hooks":  map[string]any{"processes": map[string]any{"gate": hookEntry(t, "", map[string]any{"max_in_flight": agents})}},
	}))
	before := measured(t)
	callers := make([]*caller, agents)
	for i := range callers {
		callers[i] = d.caller(t, "any", "gate")
	}
	used := memory()
	refused, under := 0, 0
	for _, c := range callers {
		c.beginLarge(orders{After: release}, size)
		// It is with the hook, or refused.
		until(t, "hookd has it", func() bool {
			if d.hook(t, "gate").InFlight > under {
				under++
				return true
			}
			require.NoError(t, c.conn.SetReadDeadline(time.Now().Add(time.Millisecond)))
			_, err := c.r.Peek(1)
			if err == nil {
				a := c.read()
				c.answered(a)
				require.Equal(t, protocol.CodeOverloaded, a.Error.Code)
				refused++
			}
			return err == nil
		})
	}
	require.Less(t, under, limit/size+1)
	require.Positive(t, under)
	require.Equal(t, agents-under, refused)
	require.Less(t, memory()-used, int64(4*limit))
	require.NoError(t, os.WriteFile(release, nil, 0o600))
	for _, c := range callers {
		if len(c.calls.Open(c)) > 0 {
			c.answer().continues("gate")
		}
		c.ask(orders{}).continues("gate")
		c.done()
	}
	rested(t, before)
}

// Whoever is neither hookd's user nor root nor named in the config is sent away
// before a word is read.
func TestStrangersAreTurnedAway(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can be another user")
	}
	const stranger, friend = 12345, 12346
	dir := shortDir(t)
	require.NoError(t, os.Chmod(dir, 0o755))
	agentProgram := filepath.Join(dir, "faultagent") // where others may run it
	text, err := os.ReadFile(program(t, "internal/faultagent"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(agentProgram, text, 0o755))
	d := startDaemonWith(t, daemon.Options{
		ConfigPath: writeConfig(t, fmt.Sprintf(`{"socket": {"mode": "0666", "allow_uids": [%d]}}`, friend)),
		Socket:     filepath.Join(dir, "a.sock"), ControlSocket: filepath.Join(dir, "c.sock"),
	})
	as := func(uid uint32, script ...string) (string, error) {
		cmd := exec.Command(agentProgram, append([]string{"-socket", d.sockets.Agents}, script...)...)
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	call := `send={"jsonrpc":"2.0","id":1,"method":"hook.before_tool","params":` + lsCall + `}`
	out, err := as(stranger, "read", call, "rest")
	require.NoError(t, err, out)
	require.Contains(t, out, `"error":{"code":-32004,"message":"user 12345 may not connect here"}`)
	require.True(t, strings.HasSuffix(out, "closed\n"), out)
	require.EqualValues(t, 1, d.status(t).Counters.ConnectionsDenied)
	out, err = as(friend, call, "read", "close")
	require.NoError(t, err, out)
	require.Contains(t, out, `"action":"continue"`)
	// The control socket is the owner's alone.
	cmd := exec.Command(agentProgram, "-socket", d.sockets.Control, call)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: friend, Gid: friend}}
	refused, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(refused), "permission denied")
}

// A thousand agents that only sit there cost little, and hurt nobody.
func TestIdleAgents(t *testing.T) {
	const agents = 1000
	d := startDaemon(t, one(t, "continue", ""))
	before := measured(t)
	used := memory()
	end := d.visit(t, "gate", &visits{})
	conns := make([]net.Conn, agents)
	for i := range conns {
		conn, err := net.Dial("unix", d.sockets.Agents)
		require.NoError(t, err)
		conns[i] = conn
	}
	until(t, "all are there", func() bool { return len(d.status(t).Agents) >= agents })
	require.Less(t, memory()-used, int64(2*16<<20))
	end()
	for _, conn := range conns {
		require.NoError(t, conn.Close())
	}
	rested(t, before)
}

// memory is how many bytes of heap and stacks are in use.
func memory() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}
