package daemon_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
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
	"github.com/hookd/hookd/rpc"
)

// Of daemons that start at the same time on the same sockets one serves. The
// others say so, start no hook, and touch nothing.
func TestDaemonsThatRace(t *testing.T) {
	before := measured(t)
	dir := shortDir(t)
	script := filepath.Join(dir, "yes.sh")
	require.NoError(t, os.WriteFile(script, []byte(yesScript), 0o700))
	config := writeConfig(t, processes(t, map[string]any{"yes": map[string]any{"command": []string{script}, "intercept": []string{"before_tool"}}}))
	for range 10 {
		const racers = 3
		serving, ended := make(chan daemon.Sockets, racers), make(chan error, racers)
		ctx, cancel := context.WithCancel(t.Context())
		for range racers {
			go func() {
				ended <- daemon.Run(ctx, daemon.Options{
					ConfigPath: config, Socket: filepath.Join(dir, "a.sock"), ControlSocket: filepath.Join(dir, "c.sock"),
					Stderr: &logBuffer{}, Getenv: noEnv, Serving: func(s daemon.Sockets) { serving <- s },
				})
			}()
		}
		for range racers - 1 {
			require.ErrorIs(t, <-ended, rpc.ErrAlreadyRunning)
		}
		d := &runningDaemon{sockets: <-serving}
		a := d.dial(t)
		require.Contains(t, a.ask("hook.before_tool", lsCall), `"action":`)
		a.conn.Close()
		until(t, "one hook runs", func() bool { return !invariant.Counts || inUse(t).Children == before.Children+1 })
		cancel()
		require.NoError(t, <-ended)
		require.NoFileExists(t, d.sockets.Agents)
		require.Empty(t, serving)
	}
	rested(t, before)
}

// An old daemon that ends when a new one serves at the same place leaves the
// new one's sockets alone.
func oldDaemonAndNewOne(t *testing.T) {
	config := writeConfig(t, `{"record": {"mode": "off"}}`) // both would write the same one
	old := startDaemonWith(t, daemon.Options{ConfigPath: config})
	for _, path := range []string{old.sockets.Agents, old.sockets.Control} {
		require.NoError(t, os.Remove(path))
		require.NoError(t, os.Remove(path+".lock")) // as one who cleans up does
	}
	o := daemon.Options{ConfigPath: config, Socket: old.sockets.Agents, ControlSocket: old.sockets.Control}
	d := startDaemonWith(t, o)
	require.NoError(t, old.stop())
	require.FileExists(t, d.sockets.Agents)
	require.FileExists(t, d.sockets.Control)
	require.Contains(t, d.dial(t).ask("hook.before_tool", lsCall), `"action":"continue"`)
	d.status(t)
	o.Stderr = &logBuffer{}
	require.ErrorIs(t, daemon.Run(t.Context(), o), rpc.ErrAlreadyRunning, "and its lock holds")
}

// asDaemon names the config of a daemon that runs as a process of its own, with
// its sockets beside it.
const asDaemon = "HOOKD_TEST_CONFIG"

// daemonProcess is that daemon. It ends with SIGTERM.
func daemonProcess() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	config := os.Getenv(asDaemon)
	err := daemon.Run(ctx, daemon.Options{
		ConfigPath: config, Socket: beside(config).Agents, ControlSocket: beside(config).Control,
		Serving: func(daemon.Sockets) { fmt.Println("serving") }, Getenv: noEnv,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func beside(config string) daemon.Sockets {
	dir := filepath.Dir(config)
	return daemon.Sockets{Agents: filepath.Join(dir, "a.sock"), Control: filepath.Join(dir, "c.sock")}
}

// When descriptors run out, connections wait, hooks can't be started, and who
// is connected is served. All is well again when there are some.
func descriptorsRunOut(t *testing.T) {
	const limit = 64
	config := writeConfig(t, processes(t, map[string]any{
		"gate": hookEntry(t, "", nil), "other": hookEntry(t, "", map[string]any{"fail_policy": "continue"}),
	}))
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command("sh", "-c", fmt.Sprintf(`ulimit -n %d; exec "$0"`, limit), self)
	cmd.Env = append(homeAt(filepath.Dir(config)), asHook+"=daemon", asDaemon+"="+config, "GORACE=atexit_sleep_ms=0")
	log := &logBuffer{}
	cmd.Stderr = log
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	ended := false
	defer func() {
		if !ended {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		if t.Failed() {
			t.Logf("log of the daemon:\n%s", log)
		}
	}()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "serving\n", line)

	d := &runningDaemon{sockets: beside(config), config: config, log: log}
	until(t, "it is settled", func() bool { return d.status(t).Settled() })
	c := d.caller(t, "any", "gate", "other")
	c.ask(orders{}).continues("gate")
	conn, err := net.Dial("unix", d.sockets.Control)
	require.NoError(t, err)
	control := rpc.NewPeer(t.Context(), conn, rpc.Options{})
	defer control.Close()
	_, err = control.Call(t.Context(), daemon.MethodStatus, nil)
	require.NoError(t, err)

	var many []net.Conn
	begin := time.Now()
	for range limit {
		conn, err := net.Dial("unix", d.sockets.Agents)
		require.NoError(t, err)
		many = append(many, conn)
	}
	failures := func() int { return strings.Count(log.String(), `"accept failed"`) }
	until(t, "accepting fails", func() bool { return failures() > 0 })
	c.ask(orders{Exit: new(1), Silent: true}).denies("gate", protocol.OutcomeCrash)
	until(t, "the hook can't be started", func() bool {
		v := c.ask(orders{})
		return v.Action == "deny_tool" && (slices.Contains([]protocol.Outcome{protocol.OutcomeSpawnFailed, protocol.OutcomeBreakerOpen}, v.outcome("gate")))
	})
	answer, err := control.Call(t.Context(), daemon.MethodStatus, nil)
	require.NoError(t, err)
	require.Contains(t, string(answer), "raise the limit of open files")
	require.Less(t, failures(), 20+int(time.Since(begin)/time.Second), "it waits longer and longer")

	for _, conn := range many {
		require.NoError(t, conn.Close())
	}
	until(t, "the hook is back", func() bool { return d.control(t, daemon.MethodRestart, daemon.HookParams{Name: "gate"}, nil) == nil })
	c.ask(orders{}).continues("gate")
	d.caller(t, "any", "gate", "other").ask(orders{}).continues("gate")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	ended = true
	require.NoError(t, cmd.Wait())
	_, err = net.Dial("unix", d.sockets.Agents)
	require.True(t, errors.Is(err, os.ErrNotExist), "%v", err)
}
