package child

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// modeVar makes the test binary behave as one of the children below.
const modeVar = "CHILD_TEST_MODE"

// self starts children through the test binary.
var self *Helper

func TestMain(m *testing.M) {
	self = Main()
	switch mode := os.Getenv(modeVar); mode {
	case "":
		goleak.VerifyTestMain(m)
	case "wrapper":
		wrapper()
	case "escape":
		escape()
	case "leave-group":
		leaveGroup()
	case "daemon":
		daemon()
	case "init":
		asInit()
	case "confined-daemon":
		confinedDaemon()
	case "look":
		lookAround()
	case "nested-look":
		nestedLook()
	case "dial":
		dial()
	case "adopt":
		asParent()
	default:
		panic("unknown mode " + mode)
	}
}

// wrapper runs its arguments with its own pipes and waits for them, as npx does.
func wrapper() {
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		os.Exit(1)
	}
}

// escape starts its arguments in a session of their own, with its own pipes,
// prints their process id and leaves.
func escape() {
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	fmt.Println(cmd.Process.Pid)
}

// leaveGroup joins the group of its parent and never ends.
func leaveGroup() {
	group, err := unix.Getpgid(os.Getppid())
	if err == nil {
		err = unix.Setpgid(0, group)
	}
	fmt.Println(err)
	time.Sleep(time.Hour)
}

// daemon starts a child that ignores the end of its stdin, prints its process
// id and never ends.
func daemon() { daemonWith(NewSpawner()) }

// confinedDaemon does the same through the helper.
func confinedDaemon() { daemonWith(New(Options{Helper: self})) }

func daemonWith(s *Spawner) {
	p, err := s.Start(context.Background(), Spec{Argv: []string{"sleep", "1000"}})
	if err != nil {
		panic(err)
	}
	fmt.Println(p.PID())
	<-p.Done()
}

// helper returns the spec of the test binary in a mode.
func helper(mode string, args ...string) Spec {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return Spec{Name: mode, Argv: append([]string{self}, args...), Env: map[string]string{modeVar: mode, "GORACE": "atexit_sleep_ms=0"}}
}

// shell returns the spec of a script for sh, whose arguments start at $1.
func shell(script string, args ...string) Spec {
	return Spec{Name: "sh", Argv: append([]string{"sh", "-c", script, "sh"}, args...)}
}

// spawner returns a Spawner with the given timing that is closed after the test.
func spawner(t *testing.T, timing timing) *Spawner { return spawnerWith(t, timing, Options{}) }

func spawnerWith(t *testing.T, timing timing, o Options) *Spawner {
	s := New(o)
	s.timing = timing
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// bothWays runs a test with children that are started directly, and with ones
// that are started through the helper.
func bothWays(t *testing.T, timing timing, test func(t *testing.T, s *Spawner)) {
	t.Run("directly", func(t *testing.T) { test(t, spawner(t, timing)) })
	t.Run("through the helper", func(t *testing.T) { test(t, spawnerWith(t, timing, Options{Helper: self})) })
}

// quick is for tests that are not about time; long for those that must not
// reach the end of a step.
var (
	quick = timing{eof: 50 * time.Millisecond, term: 50 * time.Millisecond, leftover: 50 * time.Millisecond, vanish: 10 * time.Second}
	long  = timing{eof: time.Hour, term: time.Hour, leftover: time.Hour, vanish: 10 * time.Second}
)

func start(t *testing.T, s *Spawner, spec Spec) *Process {
	t.Helper()
	p, err := s.Start(t.Context(), spec)
	require.NoError(t, err)
	t.Cleanup(func() { p.Stdout().Close() })
	return p
}

// firstLine reads a line of standard output without its end.
func firstLine(t *testing.T, p *Process) string {
	t.Helper()
	line, err := bufio.NewReader(p.Stdout()).ReadString('\n')
	require.NoError(t, err, "stderr: %q", p.StderrTail())
	return strings.TrimSuffix(line, "\n")
}

func firstNumber(t *testing.T, p *Process) int {
	t.Helper()
	n, err := strconv.Atoi(firstLine(t, p))
	require.NoError(t, err)
	return n
}

// runs reports whether a process runs; a zombie doesn't.
func runs(pid int) bool {
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
		_, after, _ := bytes.Cut(stat, []byte(") "))
		return len(after) > 0 && after[0] != 'Z' && after[0] != 'X'
	}
	return unix.Kill(pid, 0) == nil
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, 10*time.Second, 2*time.Millisecond, what)
}

// within fails the test if the channel is not closed in time.
func within(t *testing.T, d time.Duration, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(d):
		require.FailNow(t, "not done in time", "%v", d)
	}
}

// readAll reads a child's standard output to its end.
func readAll(t *testing.T, p *Process) string {
	t.Helper()
	all, err := io.ReadAll(p.Stdout())
	require.NoError(t, err)
	return string(all)
}
