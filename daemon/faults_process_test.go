package daemon_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/daemon"
	"github.com/hookd/hookd/internal/invariant"
	"github.com/hookd/hookd/protocol"
)

// What follows happens to hookd as a process, and is about "hookd serve".

// service is hookd in a process of its own. Stop it with a signal and wait.
type service struct {
	*runningDaemon
	cmd    *exec.Cmd
	stderr *os.File // to be read; what comes there is in the log while nobody closes it
	ended  chan error
}

// startService starts hookd with a config, its sockets beside that, and waits until its
// hooks are settled.
func startService(t *testing.T, config string) *service {
	t.Helper()
	s := &service{runningDaemon: &runningDaemon{sockets: beside(config), config: config, log: &logBuffer{}}, ended: make(chan error, 1)}
	s.cmd = exec.Command(program(t, "cmd/hookd"), "serve", "--config", config, "--socket", s.sockets.Agents, "--control-socket", s.sockets.Control)
	s.cmd.Env = append(os.Environ(), "STATE_DIRECTORY=", "XDG_STATE_HOME="+filepath.Dir(config))
	s.cmd.Env = homeAt(filepath.Dir(config))
	read, write, err := os.Pipe()
	require.NoError(t, err)
	s.cmd.Stderr, s.stderr = write, read
	require.NoError(t, s.cmd.Start())
	write.Close()
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		_, _ = io.Copy(s.log, read) // ends with hookd, or when the test closes it
	}()
	go func() { s.ended <- s.cmd.Wait() }() // the same
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		<-s.ended
		read.Close()
		<-copied
		if t.Failed() {
			t.Logf("log of the daemon:\n%s", s.log)
		}
	})
	until(t, "hookd serves", func() bool {
		conn, err := net.Dial("unix", s.sockets.Control)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	until(t, "its hooks are settled", func() bool { return s.status(t).Settled() })
	return s
}

// homeAt is the environment of a hookd that keeps all it has in a folder.
func homeAt(dir string) []string {
	env := slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "XDG_") })
	return append(env, "HOME="+dir)
}

func (s *service) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	require.NoError(t, s.cmd.Process.Signal(sig))
}

// wait waits for its end.
func (s *service) wait(t *testing.T) error {
	t.Helper()
	select {
	case err := <-s.ended:
		s.ended <- err
		return err
	case <-time.After(patience):
		t.Fatal("it does not end")
		return nil
	}
}

// hookd is killed while approvals are open: the agents see the end of their
// connection, which is a no, nothing of it runs on, and the next hookd takes
// its place at once.
func TestKilled(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	config := filepath.Join(dir, "config.json")
	require.NoError(t, os.WriteFile(config, []byte(processes(t, map[string]any{
		"gate":     hookEntry(t, "", nil),
		"stubborn": hookEntry(t, "ignoreterm", map[string]any{"intercept": []string{"stop"}}),
		"human":    hookEntry(t, "", map[string]any{"intercept": []string{"approve_tool"}, "max_in_flight": 4}),
	})), 0o600))
	s := startService(t, config)
	hooks := pids(s.status(t))
	gate := s.caller(t, "any", "gate")
	gate.ask(orders{Leave: "hold"}).continues("gate")
	until(t, "the gate has left a process behind", func() bool { return strings.Contains(strings.Join(s.hook(t, "gate").Stderr, "\n"), "left ") })
	left := leftBy(t, s.hook(t, "gate"))
	agents := make([]*caller, 3)
	for i := range agents {
		agents[i] = s.caller(t, "any")
		agents[i].stage = "approve_tool"
		agents[i].begin(orders{After: filepath.Join(dir, "never")})
	}
	until(t, "three approvals are open", func() bool { return s.hook(t, "human").InFlight == 3 })

	s.signal(t, syscall.SIGKILL)
	require.Error(t, s.wait(t))
	for _, a := range append(agents, gate) {
		a.closed(t)
	}
	if invariant.Counts { // the system ends children with their parent
		for name, pid := range hooks {
			if pid == 0 {
				continue // it needs no process
			}
			until(t, name+" is gone", func() bool { return gone(pid) })
		}
	}
	// What a hook has started is the hook's; it sees the end of its pipes.
	require.NoError(t, syscall.Kill(left, syscall.SIGKILL))
	require.FileExists(t, s.sockets.Agents, "it had no time to tidy up")

	next := startService(t, config)
	require.Equal(t, "continue", next.caller(t, "any", "gate").ask(orders{}).Action)
	require.True(t, next.status(t).Ready)
	next.signal(t, syscall.SIGTERM)
	require.NoError(t, next.wait(t))
	require.NoFileExists(t, next.sockets.Agents)
}

// A process that left its hook's group, and so its end, is ended by hookd too,
// and counted.
func TestProcessThatLeft(t *testing.T) {
	t.Parallel()
	if !invariant.Counts {
		t.Skip("hookd adopts what hooks leave behind only where the system lets it")
	}
	config := filepath.Join(shortDir(t), "config.json")
	require.NoError(t, os.WriteFile(config, []byte(processes(t, map[string]any{"gate": hookEntry(t, "", nil)})), 0o600))
	s := startService(t, config)
	c := s.caller(t, "any", "gate")
	c.ask(orders{Leave: "escape"}).continues("gate")
	until(t, "the hook has told", func() bool { return len(s.hook(t, "gate").Stderr) > 0 })
	left := leftBy(t, s.hook(t, "gate"))
	require.False(t, gone(left), "its hook lives, and may need it")
	c.ask(orders{Exit: new(0), Silent: true}).denies("gate", protocol.OutcomeCrash)
	until(t, "it is ended", func() bool { return gone(left) })
	until(t, "it is counted", func() bool { return s.hook(t, "gate").Escaped == 1 })
	c.done()
	s.signal(t, syscall.SIGTERM)
	require.NoError(t, s.wait(t))
}

// gone reports whether a process has ended; whoever adopted it may not have
// waited for it yet.
func gone(pid int) bool {
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
		return strings.HasPrefix(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " Z")
	}
	return syscall.Kill(pid, 0) == syscall.ESRCH
}

// Whoever read what hookd says has gone: it goes on, also when there is much to
// say.
func TestNobodyReadsTheLog(t *testing.T) {
	t.Parallel()
	config := filepath.Join(shortDir(t), "config.json")
	require.NoError(t, os.WriteFile(config, []byte(processes(t, map[string]any{"gate": hookEntry(t, "", nil)})), 0o600))
	s := startService(t, config)
	require.NoError(t, s.stderr.Close())
	c := s.caller(t, "any", "gate")
	for range 3 {
		c.ask(orders{Stderr: 10_000, Exit: new(3), Silent: true}).denies("gate", protocol.OutcomeCrash)
		until(t, "it is back", func() bool { return s.hook(t, "gate").State == "ready" })
		c.ask(orders{}).continues("gate")
	}
	c.done()
	s.signal(t, syscall.SIGTERM)
	require.NoError(t, s.wait(t))
}

// The first signal lets calls finish, the second does not.
func TestTwoSignals(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	config := filepath.Join(dir, "config.json")
	require.NoError(t, os.WriteFile(config, []byte(processes(t, map[string]any{"gate": hookEntry(t, "ignoreterm", nil)})), 0o600))
	s := startService(t, config)
	pid := s.hook(t, "gate").PID
	c := s.caller(t, "any", "gate")
	c.begin(orders{After: filepath.Join(dir, "never")})
	until(t, "the hook has the call", func() bool { return s.hook(t, "gate").InFlight == 1 })
	s.signal(t, syscall.SIGTERM)
	until(t, "it is shutting down", func() bool { return strings.Contains(s.log.String(), "shutting down") })
	begin := time.Now()
	s.signal(t, syscall.SIGTERM)
	require.NoError(t, s.wait(t))
	t.Logf("it ended %s after the second signal", time.Since(begin).Round(time.Millisecond))
	require.NotContains(t, s.log.String(), "panic")
	until(t, "the hook is gone", func() bool { return gone(pid) })
	require.NoFileExists(t, s.sockets.Agents)
}

// A hundred SIGHUPs while agents ask are a few reloads, and no call fails.
func TestManyHangups(t *testing.T) {
	t.Parallel()
	config := filepath.Join(shortDir(t), "config.json")
	edit := func(priority int) {
		text := processes(t, map[string]any{
			"gate": hookEntry(t, "", map[string]any{"max_in_flight": 16}), "other": hookEntry(t, "", map[string]any{"priority": priority}),
		})
		require.NoError(t, os.WriteFile(config+".new", []byte(text), 0o600))
		require.NoError(t, os.Rename(config+".new", config))
	}
	edit(1)
	s := startService(t, config)
	was := pids(s.status(t))
	stop := s.load(t, 2)
	for i := range 100 {
		if i%20 == 0 {
			edit(2 + i)
		}
		s.signal(t, syscall.SIGHUP)
		time.Sleep(time.Millisecond)
	}
	edit(1000)
	s.signal(t, syscall.SIGHUP)
	until(t, "the last one counts", func() bool { return s.hook(t, "other").Priority == 1000 })
	calls, failed := stop()
	require.Empty(t, failed)
	require.Positive(t, calls)
	require.Equal(t, was, pids(s.status(t)), "who is the same keeps its process")
	require.LessOrEqual(t, s.status(t).Generation, uint64(1+100/20+1), "nothing new is no new generation")
	s.signal(t, syscall.SIGTERM)
	require.NoError(t, s.wait(t))
}

// While everything hangs, those who rule hookd are heard: they can switch the
// hook off that all wait for.
func TestControlWhileEverythingHangs(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, processes(t, map[string]any{
		"hung": hookEntry(t, "never", map[string]any{"max_in_flight": 4}),
		"loop": hookEntry(t, "crashloop=1ms", map[string]any{"required": true, "match": map[string]any{"tools": []string{"loop"}}}),
	}))
	c := d.caller(t, "any", "hung")
	for range 64 { // as many as one agent may have under way
		c.begin(orders{})
	}
	until(t, "no place is free", func() bool { return d.hook(t, "hung").InFlight >= 4 })
	require.False(t, d.status(t).Ready)
	require.NoError(t, d.control(t, daemon.MethodDisable, daemon.HookParams{Name: "hung"}, nil))
	require.Equal(t, "disabled", d.hook(t, "hung").Override)
	require.Equal(t, "continue", d.caller(t, "any").ask(orders{}).Action)
	v := d.caller(t, "loop", "loop").ask(orders{})
	require.Equal(t, "deny_tool", v.Action)
	require.Contains(t, []protocol.Outcome{protocol.OutcomeBreakerOpen, protocol.OutcomeStarting, protocol.OutcomeCrash}, v.outcome("loop"))
	require.NoError(t, d.control(t, daemon.MethodDisable, daemon.HookParams{Name: "loop"}, nil))
	c.conn.Close()
}

// A file that is edited all the time is loaded a few times a second, and in the
// end what it says holds. Processes that need not change stay.
func TestConfigEditedAllTheTime(t *testing.T) {
	t.Parallel()
	config := func(n int) string {
		return processes(t, map[string]any{
			"same":    hookEntry(t, "", nil),
			"changes": hookEntry(t, "", map[string]any{"config": map[string]any{"n": n}}),
		})
	}
	d := startDaemon(t, config(0))
	before := pids(d.status(t))
	begin := time.Now()
	const edits = 200
	for i := range edits {
		d.write(t, config(1+i))
		time.Sleep(10 * time.Millisecond)
	}
	until(t, "the last one holds", func() bool {
		s := d.status(t)
		text, err := os.ReadFile(d.config)
		require.NoError(t, err)
		return s.Config.Error == "" && s.Config.SHA256 == fmt.Sprintf("%x", sha256.Sum256(text))
	})
	reloads := d.status(t).Generation - 1
	require.LessOrEqual(t, float64(reloads), 4*time.Since(begin).Seconds()+2)
	after := pids(d.status(t))
	require.Equal(t, before["same"], after["same"])
	require.NotEqual(t, before["changes"], after["changes"])
	until(t, "the old ones are gone", func() bool { return gone(before["changes"]) })
	require.NoError(t, d.stop())
}
