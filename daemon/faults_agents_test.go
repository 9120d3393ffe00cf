package daemon_test

import (
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/daemon"
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
			require.EqualValues(t, c.id, a.ID)
			require.Equal(t, protocol.CodeCancelled, a.Error.Code)
			delete(c.open, c.id)
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
			c.send(exact)
			c.open[c.id] = true
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
		{name: "agent-sends-a-byte-a-second", play: func(t *testing.T, p *patient) {
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
		{name: "agent-does-not-read", entry: map[string]any{"max_in_flight": 16, "may_respond": true}, play: func(t *testing.T, p *patient) {
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
			require.Contains(t, []string{"continue", "crash"}, c.answer().outcome(p.name))
			until(t, "events come again", func() bool {
				storming.send(event)
				v := p.caller(t).ask(says(`{"warnings":["$EVENTS"]}`))
				return v.outcome(p.name) == "continue" && v.Warnings[0] != p.name+": 0"
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

// A thousand agents that only sit there cost little, and hurt nobody.
func TestIdleAgents(t *testing.T) {
	const agents = 1000
	d := startDaemon(t, one(t, "continue", ""))
	before := measured(t)
	used := memory()
	end := d.visit(t, "gate")
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
