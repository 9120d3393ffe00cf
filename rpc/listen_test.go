package rpc

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func mode(t *testing.T, path string) os.FileMode {
	t.Helper()
	info, err := os.Lstat(path)
	require.NoError(t, err)
	return info.Mode().Perm()
}

func TestListenMakesAPrivateSocket(t *testing.T) {
	path := filepath.Join(filepath.Dir(socketPath(t)), "a", "b", "s")
	l, err := Listen(ListenConfig{Path: path})
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), mode(t, filepath.Dir(path)))
	require.Equal(t, os.FileMode(0o600), mode(t, path))
	require.Equal(t, os.FileMode(0o600), mode(t, path+".lock"))
	pid, err := os.ReadFile(path + ".lock")
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintln(os.Getpid()), string(pid))
	dial(t, path)
	require.NoError(t, l.Close())
	require.NoFileExists(t, path)
	require.NoError(t, l.Close(), "again")
}

func TestListenModeFromBirth(t *testing.T) {
	path := socketPath(t)
	for _, want := range []os.FileMode{0o600, 0o660, 0o666} {
		l, err := bind(path, want)
		require.NoError(t, err)
		require.Equal(t, want&^0o022, mode(t, path)&^0o022, "the umask may take only these away")
		require.NoError(t, l.Close())
		full, err := Listen(ListenConfig{Path: path, Mode: want, Group: strconv.Itoa(os.Getgid())})
		require.NoError(t, err)
		require.Equal(t, want, mode(t, path))
		require.NoError(t, full.Close())
	}
}

func TestListenForAGroup(t *testing.T) {
	dir := filepath.Join(filepath.Dir(socketPath(t)), "run")
	l, err := Listen(ListenConfig{Path: filepath.Join(dir, "s"), Mode: 0o660, Group: strconv.Itoa(os.Getgid())})
	require.NoError(t, err)
	defer l.Close()
	require.Equal(t, os.FileMode(0o750), mode(t, dir), "the group must get through")
	_, err = Listen(ListenConfig{Path: filepath.Join(dir, "t"), Group: "no-such-group"})
	require.ErrorContains(t, err, "no-such-group")
}

func TestListenReplacesADeadSocket(t *testing.T) {
	path := socketPath(t)
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	dead.SetUnlinkOnClose(false)
	require.NoError(t, dead.Close())
	require.FileExists(t, path)
	l, err := Listen(ListenConfig{Path: path})
	require.NoError(t, err)
	dial(t, path)
	require.NoError(t, l.Close())
}

// A service manager holds no lock, but its socket answers.
func TestListenLeavesASocketThatAnswers(t *testing.T) {
	path := socketPath(t)
	held, err := net.Listen("unix", path)
	require.NoError(t, err)
	defer held.Close()
	_, err = Listen(ListenConfig{Path: path})
	require.ErrorIs(t, err, ErrAlreadyRunning)
	require.ErrorContains(t, err, "a socket answers there")
	dial(t, path)
}

func TestListenLeavesOtherThingsAlone(t *testing.T) {
	target := filepath.Join(t.TempDir(), "target")
	for name, create := range map[string]func(path string) error{
		"a file":           func(path string) error { return os.WriteFile(path, []byte("precious"), 0o644) },
		"a folder":         func(path string) error { return os.Mkdir(path, 0o755) },
		"a symbolic link":  func(path string) error { return os.Symlink(target, path) },
		"a device or pipe": func(path string) error { return syscall.Mkfifo(path, 0o600) },
	} {
		path := socketPath(t)
		require.NoError(t, create(path))
		before, err := os.Lstat(path)
		require.NoError(t, err)
		_, err = Listen(ListenConfig{Path: path})
		require.ErrorContains(t, err, "listen on "+path+": there is "+name)
		after, err := os.Lstat(path)
		require.NoError(t, err)
		require.Equal(t, before, after)
		require.NoFileExists(t, target)
	}
}

func TestListenTwice(t *testing.T) {
	path := socketPath(t)
	l, err := Listen(ListenConfig{Path: path})
	require.NoError(t, err)
	_, err = Listen(ListenConfig{Path: path})
	require.ErrorIs(t, err, ErrAlreadyRunning)
	require.EqualError(t, err, fmt.Sprintf("listen on %s: already running as process %d", path, os.Getpid()))
	dial(t, path)
	require.NoError(t, l.Close())
	l, err = Listen(ListenConfig{Path: path})
	require.NoError(t, err)
	require.NoError(t, l.Close())
}

func TestCloseRemovesOnlyItsOwnSocket(t *testing.T) {
	path := socketPath(t)
	l, err := Listen(ListenConfig{Path: path})
	require.NoError(t, err)
	require.NoError(t, os.Remove(path))
	other, err := net.Listen("unix", path)
	require.NoError(t, err)
	defer other.Close()
	require.NoError(t, l.Close())
	dial(t, path)
}

func TestListenPathLength(t *testing.T) {
	dir := filepath.Dir(socketPath(t))
	longest := dir + "/" + strings.Repeat("x", len(syscall.RawSockaddrUnix{}.Path)-1-len(dir)-1)
	l, err := Listen(ListenConfig{Path: longest})
	require.NoError(t, err)
	dial(t, longest)
	require.NoError(t, l.Close())
	_, err = Listen(ListenConfig{Path: longest + "x"})
	require.ErrorContains(t, err, fmt.Sprintf("the path is %d bytes long and the system allows %d", len(longest)+1, len(longest)))
	for _, path := range []string{"", "@abstract"} {
		_, err = Listen(ListenConfig{Path: path})
		require.ErrorContains(t, err, "the path of a file is needed")
	}
}

func TestListenRefusesAnOpenFolder(t *testing.T) {
	path := socketPath(t)
	dir := filepath.Dir(path)
	for _, m := range []os.FileMode{0o777, 0o720, 0o1777} {
		require.NoError(t, syscall.Chmod(dir, uint32(m)))
		_, err := Listen(ListenConfig{Path: path})
		require.ErrorContains(t, err, "chmod go-w "+dir)
		require.NoFileExists(t, path+".lock")
	}
	require.NoError(t, os.WriteFile(dir+"/file", nil, 0o600))
	_, err := Listen(ListenConfig{Path: dir + "/file/s"})
	require.ErrorContains(t, err, "not a folder")
	if os.Getuid() == 0 { // only root can give a folder away
		require.NoError(t, os.Chmod(dir, 0o700))
		require.NoError(t, os.Chown(dir, 12345, -1))
		_, err := Listen(ListenConfig{Path: path})
		require.ErrorContains(t, err, "belongs to uid 12345: choose another one or run: chown 0 "+dir)
	}
}

// racerEnv makes the test binary a daemon that races for the socket it names.
const racerEnv = "RPC_TEST_RACER"

// racer tries to get the socket at each byte of its stdin, says how that went,
// and gives it back at the next byte.
func racer(path string) {
	next := make([]byte, 1)
	for {
		if _, err := os.Stdin.Read(next); err != nil {
			return
		}
		l, err := Listen(ListenConfig{Path: path})
		if err != nil {
			fmt.Println("lost:", err)
			continue
		}
		fmt.Println("won")
		_, _ = os.Stdin.Read(next)
		_ = l.Close()
		fmt.Println("closed")
	}
}

func TestTwoDaemonsRace(t *testing.T) {
	path := socketPath(t)
	type racer struct {
		in  *os.File
		out *bufio.Scanner
	}
	var racers [2]racer
	for i := range racers {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), racerEnv+"="+path)
		in, err := cmd.StdinPipe()
		require.NoError(t, err)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		t.Cleanup(func() {
			in.Close()
			_ = cmd.Wait()
		})
		racers[i] = racer{in.(*os.File), bufio.NewScanner(out)}
	}
	for range 100 {
		for _, r := range racers {
			_, err := r.in.Write([]byte{'x'})
			require.NoError(t, err)
		}
		var said [2]string
		for i, r := range racers {
			require.True(t, r.out.Scan())
			said[i] = r.out.Text()
		}
		winner := 0
		if said[1] == "won" {
			winner = 1
		}
		require.Equal(t, "won", said[winner])
		require.Contains(t, said[1-winner], "lost: listen on "+path+": already running")
		c, err := net.DialTimeout("unix", path, time.Second)
		require.NoError(t, err, "the loser has left the socket alone")
		c.Close()
		_, err = racers[winner].in.Write([]byte{'x'})
		require.NoError(t, err)
		require.True(t, racers[winner].out.Scan())
		require.Equal(t, "closed", racers[winner].out.Text())
		require.NoFileExists(t, path)
	}
}
