package daemon

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// running starts a process that waits, under the name that it is given.
func running(t *testing.T, argv ...string) int {
	t.Helper()
	path, err := exec.LookPath("sleep")
	require.NoError(t, err)
	cmd := &exec.Cmd{Path: path, Args: argv}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd.Process.Pid
}

func TestDescends(t *testing.T) {
	child := running(t, "sleep", "60")
	for _, c := range []struct {
		pid, from int
		want      bool
	}{
		{child, child, true},
		{child, os.Getpid(), true},
		{child, os.Getppid(), true},
		{os.Getpid(), child, false},
		{os.Getppid(), os.Getpid(), false},
	} {
		got, err := descends(c.pid, c.from)
		require.NoError(t, err)
		require.Equal(t, c.want, got, c)
	}
	_, err := descends(0, os.Getpid())
	require.ErrorContains(t, err, "does not say which process")

	// One that has left its family is not found: no more than accidents are
	// guarded against.
	out, err := exec.Command("sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $$ $!").Output()
	require.NoError(t, err)
	parent, orphan, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	from, err := strconv.Atoi(parent)
	require.NoError(t, err)
	pid, err := strconv.Atoi(orphan)
	require.NoError(t, err)
	defer func() { _ = syscall.Kill(pid, syscall.SIGKILL) }()
	within, err := descends(pid, from)
	require.NoError(t, err)
	require.False(t, within)

	gone, err := exec.Command("sh", "-c", "echo $$").Output()
	require.NoError(t, err)
	pid, err = strconv.Atoi(strings.TrimSpace(string(gone)))
	require.NoError(t, err)
	_, err = descends(pid, os.Getpid())
	require.ErrorContains(t, err, "can't be looked at")
}

// An agent that asks through a relay is the process that has started it.
func TestAgentBehindARelay(t *testing.T) {
	plain := running(t, "sleep", "60")
	require.Equal(t, plain, agentProcess(plain))
	relay := running(t, "/opt/hookd-hook", "60")
	require.Equal(t, os.Getpid(), agentProcess(relay))
}

func TestRelays(t *testing.T) {
	for command, want := range map[string]bool{
		"hookd-hook": true, "/usr/bin/hookd-hook --agent x": true, "hookd connect": true, "/bin/hookd hook": true,
		"hookd mcp -- npx server": true, "/bin/hookd --config /etc/x.json hook --agent x": true, "hookd --config=x.json mcp": true,
		"hookd --on=1 connect": true, "hookd -x 1 connect": true, "hookd --config hook": false, "hookd --": false, "hookd -- hook": false,
		"hookd --config hook call before_tool": false, "hookd call --socket hook": false, "hookd-mcp": false, "other mcp": false,
		"hookd": false, "hookd call before_tool": false, "hookd serve": false, "python3 connect": false, "": false,
	} {
		require.Equal(t, want, isRelay(strings.Fields(command)), command)
	}
	require.True(t, isRelay([]string{"sh", "-c", "exec hookd-hook 2>/dev/null"}))
	require.True(t, isRelay([]string{"/bin/bash", "-c", "hookd hook --agent claude"}))
	require.True(t, isRelay([]string{"sh", "-c", "exec /usr/bin/hookd mcp -- npx server"}))
	require.True(t, isRelay([]string{"sh", "-c", "hookd --config 'my x.json' hook"}))
	require.True(t, isRelay([]string{"sh", "-c", `cd /repo && "$HOME/my bin/hookd" connect 2>/dev/null`}))
	require.False(t, isRelay([]string{"sh", "-c", "hookd call before_tool"}))
	require.False(t, isRelay([]string{"sh", "-c", "hookd status; hook connect mcp"}))
	require.False(t, isRelay([]string{"sh", "-c", "hookd 'x hook"}))
}

func TestAsleep(t *testing.T) {
	require.GreaterOrEqual(t, slept(), time.Duration(0))
}
