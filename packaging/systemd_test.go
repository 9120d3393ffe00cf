package packaging_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/hookd/hookd/client"
)

// gate greets once the file $1 is there, writes its environment to $2 and
// allows everything.
const gate = `#!/bin/sh
until [ -e "$1" ]; do sleep 0.02; done
env > "$2"
while read -r line; do
  id=${line#*\"id\":}; echo '{"jsonrpc":"2.0","id":'"${id%%,*}"',"result":{}}'
done
`

// notified is what a service manager reads from NOTIFY_SOCKET.
type notified struct {
	t    *testing.T
	path string
	conn *net.UnixConn
	seen []string
}

func listenForNotices(t *testing.T, dir string) *notified {
	t.Helper()
	n := &notified{t: t, path: filepath.Join(dir, "notify")}
	var err error
	n.conn, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: n.path, Net: "unixgram"})
	require.NoError(t, err)
	t.Cleanup(func() { n.conn.Close() })
	return n
}

// next returns the next message, or "" when none comes in time.
func (n *notified) next(within time.Duration) string {
	n.t.Helper()
	buf := make([]byte, 4096)
	require.NoError(n.t, n.conn.SetReadDeadline(time.Now().Add(within)))
	size, err := n.conn.Read(buf)
	if os.IsTimeout(err) {
		return ""
	}
	require.NoError(n.t, err)
	n.seen = append(n.seen, string(buf[:size]))
	return string(buf[:size])
}

// until reads messages up to one that matches, and returns it.
func (n *notified) until(pattern string) string {
	n.t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		if m := n.next(time.Second); regexp.MustCompile(pattern).MatchString(m) {
			return m
		}
	}
	n.t.Fatalf("%s did not come; what came: %q", pattern, n.seen)
	return ""
}

// hookConfig writes a config with the gate, and returns its path and that of
// the file that lets the gate greet.
func hookConfig(t *testing.T, dir, entry string) (config, greet, env string) {
	t.Helper()
	greet, env = filepath.Join(dir, "greet"), filepath.Join(dir, "env")
	script := writeFile(t, filepath.Join(dir, "gate.sh"), gate)
	config = writeFile(t, filepath.Join(dir, "config.json"), fmt.Sprintf(
		`{"hooks": {"processes": {"gate": {"command": ["sh", %q, %q, %q], "intercept": ["before_tool"], "fail_policy": "deny"%s}}}}`,
		script, greet, env, entry))
	return config, greet, env
}

func monotonic(t *testing.T) int64 {
	t.Helper()
	var now unix.Timespec
	require.NoError(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &now))
	return now.Nano() / 1000
}

func TestServiceManagerIsTold(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	manager := listenForNotices(t, dir)
	config, greet, env := hookConfig(t, dir, `, "required": true`)
	s := serve(t, []string{"NOTIFY_SOCKET=" + manager.path, "WATCHDOG_USEC=60000000", "WATCHDOG_PID=$$"}, nil,
		"--config", config, "--socket", filepath.Join(dir, "h.sock"))

	// Not ready before the required hook has greeted, and it says for whom it waits.
	manager.until(`^STATUS=waiting for required hooks: gate; generation 1, 1 hooks \(gate starting\)$`)
	require.NotContains(t, strings.Join(manager.seen, "\n"), "READY=1")
	out, err := run(t, "", "ping", "--socket", filepath.Join(dir, "h.sock"))
	require.Error(t, err)
	require.Contains(t, out, "not ready: a required hook is not there")
	writeFile(t, greet, "")
	require.Equal(t, "READY=1\nSTATUS=generation 1, 1 hooks", manager.until(`READY=1`))
	out, err = run(t, "", "ping", "--socket", filepath.Join(dir, "h.sock"))
	require.NoError(t, err)
	require.Regexp(t, `^ok: hookd \S+, pid \d+, generation 1, 1 hooks\n$`, out)

	// What the service manager says to hookd is not for hooks.
	variables, err := os.ReadFile(env)
	require.NoError(t, err)
	require.NotRegexp(t, `(?m)^(NOTIFY|LISTEN|WATCHDOG)_`, string(variables))

	// A reload is announced with its time, and over when that is said.
	before := monotonic(t)
	s.signal(syscall.SIGHUP)
	said := manager.until(`^RELOADING=1\nMONOTONIC_USEC=\d+$`)
	at, err := strconv.ParseInt(said[strings.LastIndex(said, "=")+1:], 10, 64)
	require.NoError(t, err)
	require.GreaterOrEqual(t, at, before)
	require.LessOrEqual(t, at, monotonic(t))
	manager.until(`^READY=1$`)

	// Also when the file is refused, and the state tells.
	writeFile(t, config, `{"hooks": {"processes": {}}, "hoks": {}}`)
	manager.until(`^RELOADING=1`)
	manager.until(`^READY=1$`)
	refused := regexp.QuoteMeta(config + `:1:30: hoks: unknown key (did you mean "hooks"?)`)
	require.Eventually(t, func() bool { // it may come before READY
		manager.next(10 * time.Millisecond)
		return regexp.MustCompile(`STATUS=generation \d, 1 hooks; the config file was refused: ` + refused).MatchString(strings.Join(manager.seen, "\n"))
	}, 10*time.Second, time.Millisecond)

	s.signal(syscall.SIGTERM)
	manager.until(`^STOPPING=1\nSTATUS=shutting down$`)
	require.NoError(t, s.wait())
}

// The watchdog is fed only while hookd answers itself on its sockets.
func TestWatchdogIsFedWhileHookdAnswers(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	manager := listenForNotices(t, dir)
	socket := filepath.Join(dir, "h.sock")
	config := writeFile(t, filepath.Join(dir, "config.json"), `{"limits": {"max_connections": 1}}`)
	s := serve(t, []string{"NOTIFY_SOCKET=" + manager.path, "WATCHDOG_USEC=300000", "WATCHDOG_PID=$$"}, nil, "--config", config, "--socket", socket)
	manager.until(`READY=1`)
	for range 5 {
		manager.until(`^WATCHDOG=1$`)
	}
	for _, path := range []string{socket, filepath.Join(dir, "h.control.sock")} {
		require.NoError(t, os.Rename(path, path+".away")) // so that no exchange succeeds
		for manager.next(400*time.Millisecond) != "" {    // was on its way
		}
		require.Empty(t, manager.next(400*time.Millisecond), path)
		require.Contains(t, s.text(), "hookd does not answer itself")
		require.NoError(t, os.Rename(path+".away", path))
		manager.until(`^WATCHDOG=1$`)
	}

	// A hookd that has no place for one more agent is not dead.
	var c *client.Client
	require.Eventually(t, func() bool { // the one place may just be taken by hookd, which asks itself
		var err error
		c, err = client.Dial(t.Context(), client.Options{Name: "only", Socket: socket})
		return err == nil
	}, 10*time.Second, time.Millisecond)
	defer c.Close()
	for manager.next(10*time.Millisecond) != "" { // sent before
	}
	for range 3 {
		manager.until(`^WATCHDOG=1$`)
	}
	out, err := run(t, "", "ping", "--socket", socket)
	require.Error(t, err)
	require.Contains(t, out, "1 connections are open")
	require.NoError(t, c.Close())
	s.stop()
}

// listenAs opens a socket as a service manager does.
func listenAs(t *testing.T, path string) (*net.UnixListener, *os.File) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	l.SetUnlinkOnClose(false)
	file, err := l.File()
	require.NoError(t, err)
	t.Cleanup(func() { file.Close() })
	return l, file
}

func handedOver(names string) []string {
	return []string{"LISTEN_PID=$$", fmt.Sprintf("LISTEN_FDS=%d", strings.Count(names, ":")+1), "LISTEN_FDNAMES=" + names}
}

// Restarted again and again under load: nobody is refused, connections wait for
// the next hookd, and no call is judged without the hook.
func TestRestartsUnderLoad(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	socket, control := filepath.Join(dir, "a.sock"), filepath.Join(dir, "c.sock")
	_, agentsFile := listenAs(t, socket)
	_, controlFile := listenAs(t, control)
	born, err := os.Stat(socket)
	require.NoError(t, err)
	config, greet, _ := hookConfig(t, dir, "")
	writeFile(t, greet, "")
	start := func() *service {
		return serve(t, handedOver("control:agents"), []*os.File{controlFile, agentsFile}, "--config", config)
	}
	s := start()
	var answered, cut atomic.Int64
	var load sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		load.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
				c, err := client.Dial(ctx, client.Options{Name: "load", Socket: socket, Redial: -1})
				for i := 0; err == nil && i < 20; i++ {
					var v client.ToolVerdict
					v, err = c.BeforeTool(ctx, client.BeforeTool{Tool: "bash"})
					if err == nil && v.Reason == "shutting down" {
						err = errors.New(v.Reason)
					}
					if err == nil && !v.Allowed {
						t.Errorf("denied: %+v", v)
					}
					answered.Add(1)
				}
				if err != nil { // it was asked in the moment when it shut down
					cut.Add(1)
					if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist) || ctx.Err() != nil {
						t.Errorf("nothing to wait in: %v", err)
					}
				}
				if c != nil {
					c.Close()
				}
				cancel()
			}
		})
	}
	for range 4 {
		time.Sleep(300 * time.Millisecond) // of load
		s.stop()
		require.FileExists(t, socket)
		time.Sleep(50 * time.Millisecond) // nobody serves
		s = start()
	}
	time.Sleep(300 * time.Millisecond)
	close(stop)
	load.Wait()
	t.Logf("%d calls answered, %d cut off", answered.Load(), cut.Load())
	require.Greater(t, answered.Load(), int64(100))
	// For each caller and restart: a call on an open connection, and a connection
	// that was taken at the last moment.
	require.LessOrEqual(t, cut.Load(), int64(2*4*4))

	out, err := run(t, "", "status", "--socket", socket, "--control-socket", control)
	require.NoError(t, err, out)
	require.Contains(t, out, "socket   "+socket+"\ncontrol  "+control+"\n")
	s.stop()
	now, err := os.Stat(socket)
	require.NoError(t, err)
	require.True(t, os.SameFile(born, now), "the socket was replaced")
}

// Started by the first call: it waits in the socket until the hook has greeted.
func TestFirstCallStartsHookd(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	socket := filepath.Join(dir, "a.sock")
	_, file := listenAs(t, socket)
	type answer struct {
		out string
		err error
	}
	answers := make(chan answer)
	go func() {
		out, err := run(t, `{"tool":"bash","arguments":{}}`, "call", "before_tool", "--socket", socket)
		answers <- answer{out, err}
	}()
	config, greet, _ := hookConfig(t, dir, `, "required": true`)
	s := serve(t, handedOver("agents"), []*os.File{file}, "--config", config)
	select {
	case a := <-answers:
		t.Fatalf("judged before the hook was there: %+v", a)
	case <-time.After(300 * time.Millisecond):
	}
	writeFile(t, greet, "")
	require.Equal(t, answer{"{\"action\":\"continue\",\"generation\":1}\n", nil}, <-answers)

	// Another one by hand does not take the socket away, also when none serves.
	byHand := func() {
		out, err := run(t, "", "serve", "--socket", socket, "--control-socket", filepath.Join(dir, "other.sock"))
		require.Error(t, err)
		require.Contains(t, out, "listen on "+socket+": already running: a socket answers there")
	}
	byHand()
	s.stop()
	byHand()
	require.FileExists(t, socket)
}

// What can't be used refuses the start: an agent may be waiting there.
func TestSocketsThatCantBeUsed(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	_, unixFile := listenAs(t, filepath.Join(dir, "a.sock"))
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer tcp.Close()
	tcpFile, err := tcp.(*net.TCPListener).File()
	require.NoError(t, err)
	defer tcpFile.Close()
	plain, err := os.Open(writeFile(t, filepath.Join(dir, "plain"), ""))
	require.NoError(t, err)
	defer plain.Close()
	for _, c := range []struct {
		names string
		files []*os.File
		want  string
	}{
		{"hookd.socket", []*os.File{unixFile}, `"hookd.socket" has no meaning here: name it with FileDescriptorName=agents or control`},
		{"agents:agents", []*os.File{unixFile, unixFile}, `"agents" comes twice: a socket unit may name one path only`},
		{"agents", []*os.File{tcpFile}, `"agents" is not a listening Unix stream socket`},
		{"control", []*os.File{plain}, `"control" is not a listening Unix stream socket`},
	} {
		s := serve(t, handedOver(c.names), c.files, "--socket", filepath.Join(dir, "own.sock"))
		require.Error(t, s.wait(), c.names)
		require.Contains(t, s.text(), "the service manager's socket "+c.want)
	}
}

// What systemd itself says of the units, where it is installed.
func TestUnitsAreValid(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	for folder, mode := range map[string]string{"systemd": "--system", "systemd/user": "--user"} {
		dir := t.TempDir()
		units, err := filepath.Glob(folder + "/hookd*")
		require.NoError(t, err)
		require.Len(t, units, 3)
		var copies []string
		for _, unit := range units {
			text, err := os.ReadFile(unit)
			require.NoError(t, err)
			// systemd looks for the program.
			here := regexp.MustCompile(`(?m)^(Exec\w+=)hookd`).ReplaceAllString(string(text), "${1}"+hookd)
			copies = append(copies, writeFile(t, filepath.Join(dir, filepath.Base(unit)), here))
		}
		cmd := exec.Command(analyze, append([]string{"verify", mode, "--man=no", "--recursive-errors=no"}, copies...)...)
		cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Empty(t, string(out))
		if mode == "--system" {
			// 0 is a service that can do nothing, 10 one that can do all.
			out, err := exec.Command(analyze, "security", "--offline=yes", "--threshold=20", filepath.Join(dir, "hookd.service")).CombinedOutput()
			require.NoError(t, err, "%s", out)
		}
	}
}
