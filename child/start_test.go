package child

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func write(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), mode))
}

func TestStartErrors(t *testing.T) { bothWays(t, quick, startErrors) }

func startErrors(t *testing.T, s *Spawner) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	write(t, at("plain"), "#!/bin/sh\n", 0o644)
	write(t, at("lost"), "#! /no/such/python -u\n", 0o755)
	write(t, at("windows"), "#!/bin/sh\r\n", 0o755)
	write(t, at("bare"), "echo hello\n", 0o755)
	write(t, at("folder-as-interpreter"), "#!/tmp\n", 0o755)
	write(t, at("folder/x"), "", 0o644)

	for name, test := range map[string]struct {
		spec Spec
		err  error
		text string
	}{
		"no command": {
			Spec{Name: "gate"}, nil,
			"start gate: the command is empty; name a program in command",
		},
		"file missing": {
			Spec{Argv: []string{at("none")}}, syscall.ENOENT,
			"run " + at("none") + ": no such file or directory; correct the path in command",
		},
		"directory": {
			Spec{Argv: []string{at("folder")}}, syscall.EISDIR,
			"run " + at("folder") + ": is a directory; name a file in it",
		},
		"not executable": {
			Spec{Argv: []string{at("plain")}}, syscall.EACCES,
			"run " + at("plain") + ": permission denied; make it executable: chmod +x " + at("plain"),
		},
		"bad interpreter": {
			Spec{Argv: []string{at("lost")}}, syscall.ENOENT,
			"run " + at("lost") + `: bad interpreter "/no/such/python": no such file or directory; install it, or correct the #! line`,
		},
		"carriage return": {
			Spec{Argv: []string{at("windows")}}, syscall.ENOENT,
			"run " + at("windows") + `: bad interpreter "/bin/sh\r": no such file or directory; the #! line ends in a carriage return: save the file with Unix line ends`,
		},
		"interpreter not executable": {
			Spec{Argv: []string{at("folder-as-interpreter")}}, syscall.EACCES,
			"run " + at("folder-as-interpreter") + `: permission denied; check the permissions of the file, of its folders and of its interpreter "/tmp"`,
		},
		"no shebang": {
			Spec{Argv: []string{at("bare")}}, syscall.ENOEXEC,
			"run " + at("bare") + ": exec format error; it is neither a program for this machine nor a script with a #! line: add one such as #!/bin/sh",
		},
		"command not found": {
			Spec{Argv: []string{"no-such-command"}}, exec.ErrNotFound,
			"find command no-such-command: executable file not found in $PATH; install it, add its folder to hookd's PATH, or give its full path",
		},
		"folder missing": {
			Spec{Argv: []string{"./x"}, Dir: at("nowhere")}, syscall.ENOENT,
			"enter folder " + at("nowhere") + ": no such file or directory; create it, or correct dir",
		},
		"folder is a file": {
			Spec{Argv: []string{"true"}, Dir: at("plain")}, syscall.ENOTDIR,
			"enter folder " + at("plain") + ": not a directory; create it, or correct dir",
		},
		"bad name in env": {
			Spec{Name: "gate", Argv: []string{"true"}, Env: map[string]string{"A=\x1b": "secret"}}, syscall.EINVAL,
			`start gate: invalid argument; correct this name in env: A=\x1b`,
		},
		"arguments too large": {
			Spec{Argv: []string{"/bin/sh", strings.Repeat("x", 4<<20)}}, syscall.E2BIG,
			"run /bin/sh: argument list too long; arguments and environment are too large together",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := s.Start(t.Context(), test.spec)
			require.Nil(t, p)
			require.EqualError(t, err, test.text)
			_, ok := errors.AsType[*StartError](err)
			require.True(t, ok)
			if test.err != nil {
				require.ErrorIs(t, err, test.err)
			}
		})
	}
}

func TestStartRefusesCommandFromCurrentFolder(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "ls"), "#!/bin/sh\n", 0o755)
	t.Chdir(dir)
	t.Setenv("PATH", ".")
	_, err := Resolve("ls", "")
	require.ErrorIs(t, err, exec.ErrDot)
	require.ErrorContains(t, err, "write ./ls")
}

// busyFile returns a program that is open for writing.
func busyFile(t *testing.T) (path string, file *os.File) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "busy")
	write(t, path, "#!/bin/sh\necho ran\n", 0o755)
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { file.Close() })
	if err := exec.Command(path).Run(); !errors.Is(err, syscall.ETXTBSY) {
		t.Skipf("this system runs files that are open for writing: %v", err)
	}
	return path, file
}

func TestTextBusyIsRetriedThenNamed(t *testing.T) { bothWays(t, quick, textBusyIsRetriedThenNamed) }

func textBusyIsRetriedThenNamed(t *testing.T, s *Spawner) {
	path, _ := busyFile(t)
	began := time.Now()
	_, err := s.Start(t.Context(), Spec{Argv: []string{path}})
	require.ErrorIs(t, err, syscall.ETXTBSY)
	require.EqualError(t, err, "run "+path+": text file busy; the file is still open for writing: wait until it is written, or replace it by a rename")
	require.GreaterOrEqual(t, time.Since(began), textBusyTries*textBusyPause)
}

func TestTextBusyThatPasses(t *testing.T) {
	bothWays(t, quick, func(t *testing.T, s *Spawner) {
		path, file := busyFile(t)
		release := time.AfterFunc(textBusyPause/2, func() { file.Close() })
		defer release.Stop()
		require.Equal(t, "ran\n", readAll(t, start(t, s, Spec{Argv: []string{path}})))
	})
}

func TestTextBusyHonoursContext(t *testing.T) {
	path, _ := busyFile(t)
	ctx, cancel := context.WithTimeout(t.Context(), textBusyPause/5)
	defer cancel()
	_, err := spawner(t, quick).Start(ctx, Spec{Argv: []string{path}})
	require.Error(t, err)
	require.Error(t, ctx.Err())
}

func TestResolve(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	write(t, filepath.Join(dir, "hooks/run"), "#!/bin/sh\n", 0o755)
	t.Chdir(dir)
	sh, err := exec.LookPath("sh")
	require.NoError(t, err)
	for name, test := range map[string]struct{ argv0, dir, want string }{
		"in PATH":                          {"sh", "", sh},
		"in PATH whatever dir":             {"sh", "hooks", sh},
		"absolute":                         {dir + "/hooks/run", "/", dir + "/hooks/run"},
		"relative to the current folder":   {"hooks/run", "", dir + "/hooks/run"},
		"relative to dir":                  {"./run", dir + "/hooks", dir + "/hooks/run"},
		"relative to dir that is relative": {"./run", "hooks", dir + "/hooks/run"},
		"through the parent of dir":        {"../hooks/run", "hooks", dir + "/hooks/run"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Resolve(test.argv0, test.dir)
			require.NoError(t, err)
			require.Equal(t, test.want, got)
		})
	}
}

// A relative program in a relative folder runs, and runs there.
func TestStartInFolder(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	write(t, filepath.Join(dir, "hooks/run"), "#!/bin/sh\npwd -P\necho \"$0 $1\"\n", 0o755)
	t.Chdir(dir)
	bothWays(t, quick, func(t *testing.T, s *Spawner) {
		p := start(t, s, Spec{Argv: []string{"./run", "a  b"}, Dir: "hooks"})
		require.Equal(t, dir+"/hooks\n"+dir+"/hooks/run a  b\n", readAll(t, p))
	})
}

func TestStartHonoursContext(t *testing.T) {
	t.Parallel()
	s := spawner(t, quick)
	cause := errors.New("the hook was removed")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	_, err := s.Start(ctx, Spec{Argv: []string{"true"}})
	require.ErrorIs(t, err, cause)

	// The thread hands over to a caller that does not take.
	slow, leave := context.WithCancel(t.Context())
	read, told, err := os.Pipe()
	require.NoError(t, err)
	defer read.Close()
	spec := Spec{Argv: []string{"sh", "-c", "echo $$ >&2; exec sleep 1000"}, Stderr: func(line []byte, _ int64) {
		_, _ = told.Write(line)
		told.Close()
	}}
	s.requests <- request{slow, order{Spec: spec, path: "/bin/sh"}, make(chan started)}
	ctx2, cancel2 := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, cause)
	defer cancel2()
	_, err = s.Start(ctx2, Spec{Argv: []string{"true"}})
	require.ErrorIs(t, err, cause)

	// And kills what that caller does not want any more.
	pid, err := io.ReadAll(read)
	require.NoError(t, err)
	require.NotEmpty(t, pid)
	leave()
	p := start(t, s, shell("kill -0 $1 2>/dev/null; while kill -0 $1 2>/dev/null; do sleep 0.01; done; echo gone", string(pid)))
	require.Equal(t, "gone\n", readAll(t, p))
}

func TestContextOfStartDoesNotEndTheChild(t *testing.T) {
	t.Parallel()
	bothWays(t, long, contextOfStartDoesNotEndTheChild)
}

func contextOfStartDoesNotEndTheChild(t *testing.T, s *Spawner) {
	ctx, cancel := context.WithCancel(t.Context())
	p, err := s.Start(ctx, Spec{Argv: []string{"cat"}})
	require.NoError(t, err)
	defer p.Stdout().Close()
	cancel()
	_, err = p.Stdin().WriteString("still here\n")
	require.NoError(t, err)
	require.Equal(t, "still here", firstLine(t, p))
	require.Equal(t, Exit{}, p.Stop(t.Context()))
}

func TestCloseEndsChildrenAndRefusesMore(t *testing.T) {
	t.Parallel()
	s := NewSpawner()
	s.timing = long
	p := start(t, s, shell(`trap "" TERM; echo ready; sleep 1000 & wait`))
	require.Equal(t, "ready", firstLine(t, p))
	require.NoError(t, s.Close())
	require.Equal(t, Exit{Code: -1, Signal: "SIGKILL"}, p.Exit())
	require.NoError(t, s.Close())
	_, err := s.Start(t.Context(), Spec{Argv: []string{"true"}})
	require.ErrorIs(t, err, ErrClosed)
}

func FuzzInterpreter(f *testing.F) {
	for _, head := range []string{"", "#!", "#!/bin/sh", "#! /usr/bin/env python3\nimport os", "#!/bin/sh\r\n", "#!\t \n", "\x7fELF", "#!/a\x00b"} {
		f.Add([]byte(head))
	}
	f.Fuzz(func(t *testing.T, head []byte) {
		interpreter, script := interpreterOf(head)
		require.Equal(t, script, interpreter != "")
		require.NotContains(t, interpreter, "\n")
		require.NotContains(t, interpreter, " ")
		if script {
			require.True(t, strings.HasPrefix(string(head), "#!"))
		}
	})
}
