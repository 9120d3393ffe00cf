package child

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// systemLookAround prints what only Linux has.
func systemLookAround() {
	// The descriptors 0 to 9 are tried one by one: a list of the folder would
	// hold its own, and what the runtime needs.
	fmt.Print("fds")
	for fd := range 10 {
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			fmt.Print(" ", fd)
		}
	}
	fmt.Println()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		panic(err)
	}
	for line := range bytes.Lines(status) {
		if value, ok := bytes.CutPrefix(line, []byte("NoNewPrivs:\t")); ok {
			fmt.Printf("no_new_privs %s", value)
		}
	}
}

func needsLandlock(t *testing.T, abi int) {
	t.Helper()
	if have := landlockABI(); have < abi {
		t.Skipf("this kernel has Landlock %d (0 is none), and this needs %d", have, abi)
	}
}

// sandboxed runs a script in a sandbox, in a folder of its own, and returns
// what it printed. The script finds the folders of the test in $1.
func sandboxed(t *testing.T, sandbox Sandbox, dir, script string) string {
	t.Helper()
	spec := shell(script, filepath.Dir(dir))
	spec.Dir, spec.Sandbox = dir, &sandbox
	p := start(t, spawnerWith(t, quick, Options{Helper: self}), spec)
	out := readAll(t, p)
	require.Empty(t, p.StderrTail())
	require.Contains(t, p.Confinement().Active, "landlock="+strconv.Itoa(landlockABI()))
	require.Equal(t, gaps(sandbox.Network), append([]string(nil), p.Confinement().Missing...))
	return out
}

// What is not named can't be reached, what is named can, and no more of it.
func TestSandboxFiles(t *testing.T) {
	t.Parallel()
	needsLandlock(t, 1)
	root := t.TempDir()
	dir := filepath.Join(root, "hook")
	for _, file := range []string{"hook/own", "rules/a/rule", "cache/old", "secret/key", "one", "two"} {
		write(t, filepath.Join(root, file), file+"\n", 0o644)
	}
	sandbox := Sandbox{
		Read:  []string{filepath.Join(root, "rules"), filepath.Join(root, "one")},
		Write: []string{filepath.Join(root, "cache"), filepath.Join(root, "two")},
	}
	script := `
try() { if sh -c "$2" _ "$root" >/dev/null 2>&1; then echo "$1 can"; else echo "$1 can't"; fi; }
root=$1
try "read its folder" 'cat own'
try "write its folder" 'echo x >own'
try "read a rule" 'cat "$1/rules/a/rule"'
try "write a rule" 'echo x >"$1/rules/a/rule"'
try "make a rule" 'echo x >"$1/rules/b"'
try "read a secret" 'cat "$1/secret/key"'
try "list secrets" 'ls "$1/secret"'
try "read one file" 'cat "$1/one"'
try "write one file" 'echo x >"$1/one"'
try "write another file" 'echo x >"$1/two"'
try "read the cache" 'cat "$1/cache/old"'
try "write the cache" 'echo x >"$1/cache/new"'
try "make a folder" 'mkdir "$1/cache/dir"'
try "move within the cache" 'mv "$1/cache/new" "$1/cache/dir/new"'
try "remove from the cache" 'rm "$1/cache/old"'
try "move out of the cache" 'mv "$1/cache/dir/new" "$1/new"'
try "list the root" 'ls /'
try "read hookd's environment" 'cat /proc/$PPID/environ'
try "write to nothing" 'echo x >/dev/null'
`
	can := map[bool]string{true: " can\n", false: " can't\n"}
	want := "read its folder can\nwrite its folder can't\nread a rule can\nwrite a rule can't\nmake a rule can't\nread a secret can't\n" +
		"list secrets can't\nread one file can\nwrite one file can't\nwrite another file can\nread the cache can\nwrite the cache can\n" +
		"make a folder can\nmove within the cache" + can[landlockABI() >= 2] + "remove from the cache can\nmove out of the cache can't\n" +
		"list the root can't\nread hookd's environment can't\nwrite to nothing can\n"
	require.Equal(t, want, sandboxed(t, sandbox, dir, script))
}

// A script in a sandbox runs with an interpreter that lies outside of it.
func TestSandboxKnowsTheInterpreter(t *testing.T) {
	t.Parallel()
	needsLandlock(t, 1)
	root := t.TempDir()
	sh, err := os.ReadFile("/bin/sh")
	require.NoError(t, err)
	write(t, filepath.Join(root, "bin/mysh"), string(sh), 0o755)
	write(t, filepath.Join(root, "hook/run"), "#!"+root+"/bin/mysh\necho ran\n", 0o755)
	p := start(t, spawnerWith(t, quick, Options{Helper: self}), Spec{Argv: []string{root + "/hook/run"}, Dir: root, Sandbox: &Sandbox{}})
	require.Equal(t, "ran\n", readAll(t, p), "stderr: %q", p.StderrTail())
}

func TestSandboxStartErrors(t *testing.T) {
	t.Parallel()
	s := spawnerWith(t, quick, Options{Helper: self})
	_, err := s.Start(t.Context(), Spec{Argv: []string{"true"}, Sandbox: &Sandbox{Write: []string{"/no/such/folder"}}})
	require.EqualError(t, err, "open to the hook /no/such/folder: no such file or directory; create it, or correct sandbox.write")
	require.ErrorIs(t, err, syscall.ENOENT)

	odd := filepath.Join(t.TempDir(), "odd")
	write(t, odd, "#!/tmp\n", 0o755)
	_, err = s.Start(t.Context(), Spec{Argv: []string{odd}, Sandbox: &Sandbox{}})
	require.ErrorIs(t, err, syscall.EACCES)
	require.ErrorContains(t, err, "add the folders of the program and of what runs it to sandbox.read")
}

// dial connects to its arguments, "network address", and prints what came of
// it.
func dial() {
	for _, arg := range os.Args[1:] {
		network, address, _ := strings.Cut(arg, " ")
		conn, err := net.DialTimeout(network, address, 5*time.Second)
		switch {
		case err == nil:
			conn.Close()
			fmt.Println(network, "can")
		case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
			fmt.Println(network, "can't")
		default:
			fmt.Println(err)
		}
	}
	fmt.Println("signal", unix.Kill(os.Getppid(), 0))
}

func TestSandboxNetwork(t *testing.T) {
	t.Parallel()
	needsLandlock(t, 4)
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer tcp.Close()
	abstract, err := net.Listen("unix", "@hookd-test-"+strconv.Itoa(os.Getpid()))
	require.NoError(t, err)
	defer abstract.Close()

	for network, want := range map[bool]string{true: "tcp can\nunix can\n", false: "tcp can't\nunix can't\n"} {
		spec := helper("dial", "tcp "+tcp.Addr().String(), "unix "+abstract.Addr().String())
		spec.Sandbox = &Sandbox{Network: network}
		p := start(t, spawnerWith(t, quick, Options{Helper: self}), spec)
		if landlockABI() < 6 {
			want = strings.Replace(want, "unix can't", "unix can", 1) + "signal <nil>\n"
		} else {
			want += "signal operation not permitted\n" // network or not
		}
		require.Equal(t, want, readAll(t, p), "stderr: %q", p.StderrTail())
	}
}

func TestGaps(t *testing.T) {
	t.Parallel()
	require.Nil(t, Gaps(nil))
	require.Len(t, gapsOf(0, true), 1)
	require.Empty(t, gapsOf(6, true))
	require.Equal(t, []string{
		"sandbox: ioctl on devices (needs Landlock 5, this kernel has 4)", "sandbox: signals to other processes (needs Landlock 6, this kernel has 4)",
	}, gapsOf(4, true))
	seven := strings.Join(gapsOf(7, false), "\n")
	require.Contains(t, seven, "UDP (needs Landlock 10, this kernel has 7)")
	require.NotContains(t, seven, "TCP (")
	require.Len(t, gapsOf(11, false), 1, "no kernel keeps every protocol in")
}

// The file that was compared is executed, also when another is in its place by
// now.
func TestPinnedProgramIsTheComparedOne(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tool")
	tool, err := os.ReadFile("/proc/self/exe")
	require.NoError(t, err)
	write(t, path, string(tool), 0o755)
	program, err := verify([]Pin{{path, digestOf(tool)}}, path)
	require.NoError(t, err)
	require.NotNil(t, program)
	defer program.Close()
	require.NoError(t, os.Rename(path, path+".old"))
	write(t, path, "#!/bin/sh\necho replaced\n", 0o755)

	spec := helper("look")
	spec.Argv[0] = path
	s := spawnerWith(t, quick, Options{Helper: self})
	p, err := s.request(t.Context(), order{Spec: spec, path: path, program: program})
	require.NoError(t, err)
	require.NoError(t, p.awaitProgram(t.Context(), path))
	defer p.Stdout().Close()
	require.Contains(t, readAll(t, p), "nofile 1024\n", "stderr: %q", p.StderrTail())
}

// asParent adopts what its children leave behind, and prints what becomes of
// it. The children are called gate.
func asParent() {
	s := newSpawner(Options{Adopt: true, Helper: self}, 5*time.Millisecond, orphanAge)
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	// gate starts a child that stays, with a grandchild that escapes.
	gate := func() (*Process, int) {
		spec := helper("escape", "sleep", "1000")
		spec.Name, spec.Argv = "gate", append([]string{"sh", "-c", `"$@"; unset CHILD_TEST_MODE; exec cat`, "sh"}, spec.Argv...)
		p, err := s.Start(context.Background(), spec)
		must(err)
		line, err := bufio.NewReader(p.Stdout()).ReadString('\n')
		must(err)
		pid, err := strconv.Atoi(strings.TrimSpace(line))
		must(err)
		return p, pid
	}
	until := func(condition func() bool) bool {
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
			if condition() {
				return true
			}
		}
		return false
	}
	first, one := gate()
	fmt.Println("counted:", until(func() bool { return s.Escaped("gate") == 1 && s.Strays()[one] == "gate" }), runs(one))
	time.Sleep(50 * time.Millisecond) // more than the clock of the system counts by
	second, two := gate()
	first.Stop(context.Background())
	// At once, or soon after on a busy machine.
	gone := func(pid int) bool { return until(func() bool { return !exists(pid) }) }
	fmt.Println("the first is gone:", gone(one), "the second not:", runs(two))
	second.Kill()
	<-second.Done()
	fmt.Println("the second too:", gone(two), s.Escaped("gate"), len(s.Strays()))

	// What an in-process hook starts is not touched.
	own := &syscall.ProcAttr{Env: []string{"HOOKD_HOOK=elsewhere"}, Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setsid: true}}
	pid, err := syscall.ForkExec("/bin/sleep", []string{"sleep", "1000"}, own)
	must(err)
	time.Sleep(50 * time.Millisecond)
	third, three := gate()
	third.Stop(context.Background())
	fmt.Println("others stay:", gone(three), runs(pid))
	must(syscall.Kill(pid, syscall.SIGKILL))
	_, err = syscall.Wait4(pid, nil, 0, nil)
	must(err)
	fmt.Println("none is left:", until(func() bool { return len(offspring(false)) == 0 }))
	must(s.Close())
}

func TestWhatEscapesIsKilledWithItsHook(t *testing.T) {
	t.Parallel()
	p := start(t, spawner(t, quick), helper("adopt"))
	want := "counted: true true\nthe first is gone: true the second not: true\nthe second too: true 2 0\nothers stay: true true\nnone is left: true\n"
	require.Equal(t, want, readAll(t, p), "stderr: %q", p.StderrTail())
}

// Dozens of processes in a child's group end with it, and other children are
// started meanwhile.
func TestManyForks(t *testing.T) {
	t.Parallel()
	bothWays(t, quick, func(t *testing.T, s *Spawner) {
		p := start(t, s, shell(`trap "" TERM; i=0; while [ $i -lt 50 ]; do sleep 1000 & i=$((i+1)); done; echo ready; wait; wait`))
		require.Equal(t, "ready", firstLine(t, p))
		require.Equal(t, "1\n", readAll(t, start(t, s, shell("echo 1"))))
		p.Stop(t.Context())
		require.False(t, groupRuns(p.PID()))
	})
}
