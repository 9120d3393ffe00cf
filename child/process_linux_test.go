package child

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// hookd is killed with -9: its child dies although it ignores its stdin.
func TestChildDiesWithHookd(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"daemon", "confined-daemon"} {
		p := start(t, spawner(t, quick), helper(mode))
		grandchild := firstNumber(t, p)
		require.True(t, runs(grandchild))
		require.NoError(t, unix.Kill(p.PID(), syscall.SIGKILL)) // only it, not the group of its child
		eventually(t, "the child lives on", func() bool { return !runs(grandchild) })
		within(t, 10*time.Second, p.Done())
	}
}

// The threads of those who ask for a child come and go; the child stays.
func TestChildOutlivesTheThreadThatAsked(t *testing.T) {
	t.Parallel()
	bothWays(t, long, childrenOutliveThreads)
}

func childrenOutliveThreads(t *testing.T, s *Spawner) {
	children := make([]*Process, 10)
	threads := make([]int, len(children))
	var asking sync.WaitGroup
	for i := range children {
		asking.Go(func() {
			runtime.LockOSThread() // not unlocked: the thread ends with the goroutine
			threads[i] = unix.Gettid()
			children[i], _ = s.Start(t.Context(), Spec{Argv: []string{"cat"}})
		})
	}
	asking.Wait()
	for i, p := range children {
		require.NotNil(t, p)
		defer p.Stdout().Close()
		eventually(t, "the thread lives", func() bool {
			_, err := os.Stat(fmt.Sprintf("/proc/self/task/%d", threads[i]))
			// The main thread never ends, it only stops running goroutines.
			return err != nil || threads[i] == os.Getpid()
		})
		_, err := p.Stdin().WriteString("still here\n")
		require.NoError(t, err)
		require.Equal(t, "still here", firstLine(t, p))
	}
	for _, p := range children {
		require.Equal(t, Exit{}, p.Stop(t.Context()))
	}
}

func TestPipesAreLarge(t *testing.T) {
	t.Parallel()
	p := start(t, spawner(t, quick), shell(`head -c 1048576 /dev/zero; echo written >&2; sleep 1000`))
	raw, err := p.Stdout().SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) {
		size, err := unix.FcntlInt(fd, unix.F_GETPIPE_SZ, 0)
		require.NoError(t, err)
		require.Equal(t, pipeSize, size)
	}))
	eventually(t, "the child is stuck", func() bool { return len(p.StderrTail()) == 1 })
	n, err := p.Stdin().Write(make([]byte, pipeSize)) // nobody reads
	require.NoError(t, err)
	require.Equal(t, pipeSize, n)
	p.Kill()
	within(t, 10*time.Second, p.Done())
	require.Len(t, readAll(t, p), pipeSize)
}

func TestNoDescriptorIsLeft(t *testing.T) { bothWays(t, long, noDescriptorIsLeft) }

func noDescriptorIsLeft(t *testing.T, s *Spawner) {
	open := func() int {
		files, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		return len(files)
	}
	bare := filepath.Join(t.TempDir(), "bare")
	write(t, bare, "", 0o755)
	before := 0
	for i := range 20 {
		p := start(t, s, Spec{Argv: []string{"cat"}})
		require.Equal(t, Exit{}, p.Stop(t.Context()))
		require.NoError(t, p.Stdout().Close())
		_, err := s.Start(t.Context(), Spec{Argv: []string{bare}})
		require.ErrorIs(t, err, syscall.ENOEXEC)
		if i == 0 {
			before = open() // with what the runtime opens for itself
		}
	}
	require.LessOrEqual(t, open(), before) // the runtime may have closed one of its own
}

// Whoever is waited for does not wait for those who are not.
func TestBackgroundChildHasALowerPriority(t *testing.T) {
	t.Parallel()
	s := spawnerWith(t, quick, Options{Helper: self})
	for _, background := range []bool{false, true} {
		p := start(t, s, Spec{Argv: []string{"cat"}, Background: background})
		own, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
		require.NoError(t, err)
		got, err := unix.Getpriority(unix.PRIO_PROCESS, p.PID())
		require.NoError(t, err)
		want := own // the system call counts the other way round
		if background {
			want = 20 - nice
			require.Contains(t, p.Confinement().Active, "nice=10")
		}
		require.Equal(t, want, got)
		p.Stop(t.Context())
	}
}

func TestChildIsFirstToGoWhenMemoryRunsOut(t *testing.T) {
	t.Parallel()
	bothWays(t, quick, func(t *testing.T, s *Spawner) {
		p := start(t, s, Spec{Argv: []string{"cat"}})
		score, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", p.PID()))
		require.NoError(t, err)
		require.Equal(t, "500", strings.TrimSpace(string(score)))
		p.Stop(t.Context())
	})
}
