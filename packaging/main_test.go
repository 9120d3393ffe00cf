// Package packaging_test tries what is shipped beside the code with hookd as it
// is released: as the service of a service manager, as the first process of a
// container, and as the archives and the text that people get.
package packaging_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// asContainer in the environment makes the test binary enter a container and
// become the program in its arguments.
const asContainer = "HOOKD_TEST_CONTAINER"

// hookd is the released binary; TestMain sets it.
var hookd string

func TestMain(m *testing.M) {
	if root := os.Getenv(asContainer); root != "" {
		enterContainer(root)
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("/tmp", "hookd")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		hookd = filepath.Join(dir, "bin", "hookd")
		if out, err := exec.Command("./build.sh", hookd).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build.sh: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// shortDir is a folder whose name leaves room for a socket's.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "hookd")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func writeFile(t *testing.T, path, text string) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

// service is a hookd that was started as a service manager starts it.
type service struct {
	t     *testing.T
	cmd   *exec.Cmd
	log   *os.File
	ended chan error
}

// serve starts hookd in an environment, with files from descriptor 3 on, until
// the test ends. Variables may hold $$, hookd's own process id, as service
// managers put it there.
func serve(t *testing.T, env []string, files []*os.File, args ...string) *service {
	t.Helper()
	log, err := os.CreateTemp(t.TempDir(), "log")
	require.NoError(t, err)
	script := strings.Join(env, " ") + ` exec "$0" serve "$@"`
	s := &service{t: t, log: log, ended: make(chan error, 1)}
	s.cmd = exec.Command("sh", append([]string{"-c", script, hookd}, args...)...)
	s.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	s.cmd.ExtraFiles, s.cmd.Stderr = files, log
	require.NoError(t, s.cmd.Start())
	go func() { s.ended <- s.cmd.Wait() }()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill() // it may have ended as it should
		s.wait()
		if t.Failed() {
			t.Logf("log of hookd:\n%s", s.text())
		}
		log.Close()
	})
	return s
}

func (s *service) text() string {
	text, err := os.ReadFile(s.log.Name())
	require.NoError(s.t, err)
	return string(text)
}

func (s *service) signal(sig syscall.Signal) {
	s.t.Helper()
	require.NoError(s.t, s.cmd.Process.Signal(sig))
}

// wait returns how it ended; a second time too.
func (s *service) wait() error {
	s.t.Helper()
	select {
	case err := <-s.ended:
		s.ended <- err
		return err
	case <-time.After(15 * time.Second):
		s.t.Fatalf("hookd does not end:\n%s", s.text())
		return nil
	}
}

// stop ends it as a service manager does.
func (s *service) stop() {
	s.t.Helper()
	s.signal(syscall.SIGTERM)
	require.NoError(s.t, s.wait())
}

// run runs the released hookd to its end and returns what it printed.
func run(t *testing.T, stdin string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(hookd, args...)
	cmd.Env, cmd.Stdin = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
