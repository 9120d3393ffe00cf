package packaging_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// user is the one that the image runs as.
const user = 65532

// enterContainer makes this process, which is the first of its process
// namespace, what an image's entry point is: alone with the image's files,
// without rights, and then the program in its arguments.
func enterContainer(root string) {
	must := func(what string, err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, what+":", err)
			os.Exit(1)
		}
	}
	must("make mounts private", unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	must("mount proc", unix.Mount("proc", filepath.Join(root, "proc"), "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""))
	must("enter root", unix.Chroot(root))
	must("enter folder", unix.Chdir("/var/lib/hookd"))
	must("no new rights", unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
	must("drop groups", syscall.Setgroups(nil))
	must("set group", syscall.Setgid(user))
	must("set user", syscall.Setuid(user))
	must("run", unix.Exec(os.Args[1], os.Args[1:], []string{
		"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/var/lib/hookd", "HOOKD_SOCKET=/run/hookd/hookd.sock",
	}))
}

// inContainer is a program in a container of the image's files.
func inContainer(root string, flags uintptr, args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = []string{asContainer + "=" + root}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | flags}
	return cmd
}

// The image has no shell and no other file than hookd, and runs it as process 1
// of an unprivileged user. Its health check, its stop signal and a hook that is
// a static binary do what they should.
func TestImage(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root may make a container here")
	}
	root := shortDir(t)
	for _, folder := range []string{"proc", "tmp", "etc/hookd", "run/hookd", "var/lib/hookd", "usr/local/bin"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, folder), 0o755))
	}
	require.NoError(t, os.Chmod(root, 0o755))
	for _, folder := range []string{"run/hookd", "var/lib/hookd"} { // COPY --chown
		require.NoError(t, os.Chown(filepath.Join(root, folder), user, user))
	}
	program, err := os.ReadFile(hookd)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(root, "usr/local/bin/hookd"), program, 0o755))
	build := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(root, "usr/local/bin/guard"), "../examples/hooks/guard")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	writeFile(t, filepath.Join(root, "etc/hookd/config.json"),
		`{"hooks": {"processes": {"guard": {"command": ["guard"], "intercept": ["before_tool"], "fail_policy": "deny", "required": true}}}}`)

	const entry = "/usr/local/bin/hookd"
	healthy := func() (string, error) {
		out, err := inContainer(root, 0, entry, "ping").CombinedOutput()
		return string(out), err
	}
	text, err := healthy()
	require.Error(t, err)
	require.Contains(t, text, "no hookd answers")

	serve := inContainer(root, syscall.CLONE_NEWPID, entry, "serve")
	log, err := serve.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, serve.Start())
	t.Cleanup(func() { _ = serve.Process.Kill() }) // it has ended, unless the test failed
	lines := make(chan string, 100)
	go func() {
		for s := bufio.NewScanner(log); s.Scan(); {
			lines <- s.Text()
		}
		close(lines)
	}()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if text, err = healthy(); err == nil {
			break
		}
		require.True(t, time.Now().Before(end), "not healthy: %s", text)
	}
	require.Contains(t, text, "pid 1, generation 1, 1 hooks")
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", serve.Process.Pid))
	require.NoError(t, err)
	require.Contains(t, string(status), "Uid:\t65532\t65532\t65532\t65532")
	require.Contains(t, string(status), "CapEff:\t0000000000000000")

	call := inContainer(root, 0, entry, "call", "before_tool")
	call.Stdin = strings.NewReader(`{"tool":"read_file","arguments":{"path":"/etc/passwd"},"meta":{"cwd":"/repo"}}`)
	out, err = call.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), `"action":"deny_tool"`)

	require.NoError(t, serve.Process.Signal(syscall.SIGTERM))
	var last string
	for line := range lines {
		last = line
	}
	require.NoError(t, serve.Wait())
	require.Contains(t, last, "stopped")
}
