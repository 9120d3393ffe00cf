package child

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// lookAround prints what a child finds itself in.
func lookAround() {
	for _, l := range []struct {
		name     string
		resource int
	}{{"core", unix.RLIMIT_CORE}, {"nofile", unix.RLIMIT_NOFILE}, {"fsize", unix.RLIMIT_FSIZE}} {
		var limit unix.Rlimit
		if err := unix.Getrlimit(l.resource, &limit); err != nil {
			panic(err)
		}
		fmt.Println(l.name, limit.Max)
	}
	fmt.Printf("umask %03o\nargs %q\n", unix.Umask(0), os.Args)
	systemLookAround()
}

// Every limit is in force in a real child, and is said to be.
func TestConfinement(t *testing.T) {
	t.Parallel()
	// A file that hookd inherited, and that a child must not inherit.
	stray, err := os.Open(t.TempDir())
	require.NoError(t, err)
	defer stray.Close()
	fd, err := unix.Dup(int(stray.Fd())) // without close-on-exec
	require.NoError(t, err)
	defer unix.Close(fd)

	spec := helper("look", "a", "", "-b")
	p := start(t, spawnerWith(t, quick, Options{Helper: self}), spec)
	want := fmt.Sprintf("core 0\nnofile 1024\nfsize 1073741824\numask 077\nargs %q\n", spec.Argv)
	active := []string{"close_fds", "umask=077", "core=0", "nofile=1024", "fsize=1GiB"}
	missing := []string{"no_new_privs: not on this system", "oom_score_adj: not on this system", "dies_with_hookd: not on this system"}
	if runtime.GOOS == "linux" {
		want += "fds 0 1 2\nno_new_privs 1\n"
		active, missing = append(active, "no_new_privs", "oom_score_adj=500", "dies_with_hookd"), []string{}
	}
	require.Equal(t, want, readAll(t, p), "stderr: %q", p.StderrTail())
	require.Equal(t, Confinement{Active: active, Missing: missing}, p.Confinement())
}

// Without the helper that is said too.
func TestUnconfined(t *testing.T) {
	t.Parallel()
	p := start(t, spawner(t, quick), Spec{Argv: []string{"true"}, Sandbox: &Sandbox{}})
	require.Empty(t, p.Confinement().Active)
	require.Len(t, p.Confinement().Missing, 2)
	require.Contains(t, p.Confinement().Missing[1], "sandbox: nothing")
}

// Limits that are lower already are not raised.
func TestLowerNeverRaises(t *testing.T) {
	t.Parallel()
	script := `ulimit -n 100; ulimit -f 10; exec "$@"`
	look := helper("nested-look")
	p := start(t, spawner(t, quick), Spec{Argv: append([]string{"sh", "-c", script, "sh"}, look.Argv...), Env: look.Env})
	out := readAll(t, p)
	require.Contains(t, out, "nofile 100\n", "stderr: %q", p.StderrTail())
	require.Contains(t, out, "fsize 5120\n")
}

// nestedLook starts, through the helper, a child that looks around.
func nestedLook() {
	p, err := New(Options{Helper: self}).Start(context.Background(), helper("look"))
	if err == nil {
		_, err = io.Copy(os.Stdout, p.Stdout())
	}
	if err != nil {
		panic(err)
	}
}

// A helper that hangs before it is the program does not hold up its caller.
func TestHelperThatHangs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	hang := filepath.Join(dir, "hang")
	write(t, hang, "#!/bin/sh\nexec sleep 1000\n", 0o755)
	s := spawnerWith(t, quick, Options{Helper: &Helper{hang}})
	impatient := errors.New("it takes too long")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, impatient)
	defer cancel()
	_, err := s.Start(ctx, Spec{Argv: []string{"true"}})
	require.ErrorIs(t, err, impatient)
	require.NoError(t, s.Close()) // and is gone
}

// A program in the helper's place is no child that was started.
func TestHelperThatIsNone(t *testing.T) {
	t.Parallel()
	for _, script := range []string{"exit 0", "exit 2", "echo '{' >&3", "echo hello >&3", "kill -9 $$"} {
		other := filepath.Join(t.TempDir(), "other")
		write(t, other, "#!/bin/sh\n"+script+"\n", 0o755)
		s := spawnerWith(t, quick, Options{Helper: &Helper{other}})
		p, err := s.Start(t.Context(), Spec{Argv: []string{"true"}})
		require.Nil(t, p)
		_, ok := errors.AsType[*StartError](err)
		require.True(t, ok, "%s: %v", script, err)
		require.ErrorContains(t, err, "the helper ended before")
	}
}
