package daemon_test

import (
	"os"
	"path/filepath"
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

// childFaults are those of a hook's process.
func childFaults() []fault {
	three, four := new(3), map[string]any{"max_in_flight": 4}
	passes := func(more map[string]any) map[string]any {
		more["fail_policy"] = "continue"
		return more
	}
	return []fault{
		{name: "crash", entry: four, play: func(t *testing.T, p *patient) {
			c := p.caller(t)
			for range 3 { // they are under way, and go down with it
				c.begin(orders{After: p.file})
			}
			until(t, "they are under way", func() bool { return p.status(t).InFlight == 3 })
			begin := time.Now()
			c.begin(orders{Exit: three, Silent: true})
			for range 4 {
				c.answer().denies(p.name, protocol.OutcomeCrash)
			}
			require.Less(t, time.Since(begin), patience, "at once, and not at the end of their time")
			c.done()
			p.named(t, "it ended with exit status 3")
			p.recovered(t, 1)
		}},
		{name: "crash-is-passed-over", entry: passes(map[string]any{}), play: func(t *testing.T, p *patient) {
			c := p.caller(t)
			c.ask(orders{Signal: int(syscall.SIGKILL), Silent: true}).passes(p.name, protocol.OutcomeCrash, "it ")
			c.done()
			p.named(t, "killed by SIGKILL")
			p.recovered(t, 1)
		}},
		{name: "dies-of-a-signal", play: func(t *testing.T, p *patient) {
			c := p.caller(t)
			c.ask(orders{Signal: int(syscall.SIGSEGV), Silent: true}).denies(p.name, protocol.OutcomeCrash)
			c.done()
			p.named(t, "it was killed by SIGSEGV")
			p.recovered(t, 1)
		}},
		{name: "is-stopped", waits: true, entry: map[string]any{"timeout_ms": 500}, play: func(t *testing.T, p *patient) {
			c := p.caller(t)
			c.ask(orders{Signal: int(syscall.SIGSTOP), Silent: true}).denies(p.name, protocol.OutcomeTimeout)
			c.done()
			p.named(t, "held by calls without an answer for 2s")
			p.recovered(t, 1)
		}},
		{name: "never-answers", waits: true, entry: map[string]any{"timeout_ms": 500}, play: func(t *testing.T, p *patient) {
			pid := p.status(t).PID
			c := p.caller(t)
			begin := time.Now()
			c.ask(orders{Silent: true}).denies(p.name, protocol.OutcomeTimeout, "no answer within 500ms")
			require.GreaterOrEqual(t, time.Since(begin), 500*time.Millisecond)
			until(t, "the hook is degraded", func() bool { s := p.status(t); return s.State == "degraded" || s.Restarts > 0 })
			c.done()
			p.named(t, "held by calls without an answer for 2s")
			until(t, "the old process is gone", func() bool { return syscall.Kill(pid, 0) == syscall.ESRCH })
			p.recovered(t, 1)
		}},
		{name: "never-answers-is-passed-over", waits: true, entry: passes(map[string]any{"timeout_ms": 500, "max_in_flight": 4}), play: func(t *testing.T, p *patient) {
			c := p.caller(t)
			for range 3 {
				c.ask(orders{Silent: true}).passes(p.name, protocol.OutcomeTimeout, "no answer within 500ms")
			}
			c.done()
			p.named(t, "3 calls in a row got no answer in time")
			p.recovered(t, 1)
		}},
		{name: "answers-late", entry: map[string]any{"timeout_ms": 500, "max_in_flight": 4}, play: func(t *testing.T, p *patient) {
			c := p.caller(t)
			c.ask(orders{After: p.file}).denies(p.name, protocol.OutcomeTimeout)
			until(t, "it owes an answer", func() bool { return p.status(t).State == "degraded" })
			p.mark(t)
			p.noisy(t, "late_reply", 1)
			c.done() // nothing more came
			p.recovered(t, 0)
		}},
		{name: "ignores-the-end", mode: "ignoreterm -until FILE", waits: true, play: func(t *testing.T, p *patient) {
			pid := p.status(t).PID
			p.mark(t) // the next one will be docile
			begin := time.Now()
			p.d.restart(t, p.name)
			require.NoError(t, syscall.Kill(pid, 0), "the new one does not wait for it")
			until(t, "it is gone", func() bool { return syscall.Kill(pid, 0) == syscall.ESRCH })
			require.GreaterOrEqual(t, time.Since(begin), 4*time.Second, "it had its time")
			p.recovered(t, 0)
		}},
		{name: "leaves-a-process-in-its-group", play: func(t *testing.T, p *patient) {
			c := p.caller(t)
			begin := time.Now()
			c.ask(orders{Leave: "hold", Exit: new(0), Silent: true}).denies(p.name, protocol.OutcomeCrash)
			require.Less(t, time.Since(begin), 10*time.Second, "its pipes are closed by hookd")
			c.done()
			p.named(t, "it ended with exit status 0")
			until(t, "what it left is gone", func() bool { return syscall.Kill(leftBy(t, p.status(t)), 0) == syscall.ESRCH })
			p.recovered(t, 1)
		}},
		// This hookd is a part of another process and adopts nobody, so it can't
		// follow a process that leaves; but it must not suffer.
		{name: "leaves-a-process-outside", play: func(t *testing.T, p *patient) {
			c := p.caller(t)
			begin := time.Now()
			c.ask(orders{Leave: "escape", Exit: new(0), Silent: true}).denies(p.name, protocol.OutcomeCrash)
			require.Less(t, time.Since(begin), 10*time.Second, "its pipes are closed by hookd")
			c.done()
			p.named(t, "it ended with exit status 0")
			require.NoError(t, syscall.Kill(leftBy(t, p.status(t)), syscall.SIGKILL))
			p.recovered(t, 1)
		}},
		{name: "starts-hundreds-of-processes", play: func(t *testing.T, p *patient) {
			const forks = 200
			group := p.status(t).PID
			c := p.caller(t)
			c.begin(orders{Forks: forks, After: p.file})
			until(t, "they run", func() bool { return !invariant.Counts || inGroup(t, group) > forks })
			p.status(t)
			p.mark(t)
			c.answer().continues(p.name)
			p.d.restart(t, p.name)
			until(t, "they are gone", func() bool { return inGroup(t, group) == 0 })
			c.done()
			p.recovered(t, 0)
		}},
		{name: "uses-all-cores-and-much-memory", play: func(t *testing.T, p *patient) {
			c := p.caller(t)
			c.ask(orders{BurnMS: 500, Alloc: 256 << 20}).continues(p.name)
			c.done()
			p.recovered(t, 0)
		}},
		{name: "crash-loop", mode: "crashloop=300ms -while FILE", waits: true, entry: map[string]any{"required": true}, play: func(t *testing.T, p *patient) {
			p.mark(t)
			p.d.restart(t, p.name)
			until(t, "the breaker opens", func() bool { return p.status(t).State == "failed" })
			require.Equal(t, 4, p.status(t).Restarts)
			require.False(t, p.d.status(t).Ready)
			c := p.caller(t)
			begin := time.Now()
			for range 3 {
				c.ask(orders{}).denies(p.name, protocol.OutcomeBreakerOpen, "it is required", "5 times in a minute", "exit status 3")
			}
			require.Less(t, time.Since(begin), patience, "at once, and not at the end of their time")
			c.done()
			p.named(t, "it ended with exit status 3")
			require.NoError(t, os.Remove(p.file))
			p.d.restart(t, p.name)
			p.recovered(t, 0)
		}},
		{name: "does-not-read", waits: true, entry: map[string]any{"timeout_ms": 1500, "max_in_flight": 4}, play: func(t *testing.T, p *patient) {
			c := p.caller(t)
			c.begin(orders{Deaf: p.file})
			p.says(t, "deaf")
			for range 20 {
				c.beginLarge(orders{}, 200<<10)
			}
			for range 21 { // some have a place and some wait for one, and none gets through
				v := c.answer()
				if v.Action == "continue" { // it was sent so late that another process got it
					require.Positive(t, p.status(t).Restarts, v.text)
					continue
				}
				require.Contains(t, []protocol.Outcome{protocol.OutcomeTimeout, protocol.OutcomeOverloaded, protocol.OutcomeCrash, protocol.OutcomeStarting}, v.outcome(p.name), v.text)
				require.Equal(t, "deny_tool", v.Action, v.text)
			}
			c.done()
			p.recovered(t, 1)
		}},
	}
}

// leftBy is the id of the process that a hook has left behind, which it told on
// stderr.
func leftBy(t *testing.T, h daemon.HookStatus) int {
	t.Helper()
	for _, line := range append(strings.Split(h.LastError, " | "), h.Stderr...) {
		if _, id, ok := strings.Cut(line, "left "); ok {
			pid, err := strconv.Atoi(id)
			require.NoError(t, err)
			return pid
		}
	}
	t.Fatalf("nothing is known of it: %+v", h)
	return 0
}

// inGroup counts the processes of a process group, zombies aside.
func inGroup(t testing.TB, group int) (n int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err)
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		f := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(f) > 2 && f[2] == strconv.Itoa(group) && f[0] != "Z" {
			n++
		}
	}
	return n
}
