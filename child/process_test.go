package child

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A child that answers and is gone at once loses nothing, whether hookd reads
// meanwhile or afterwards.
func TestAnswerThenExit(t *testing.T) {
	t.Parallel()
	const runs, workers = 1000, 8
	s := spawner(t, defaultTiming)
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() {
			for i := worker; i < runs; i += workers {
				size := []int{10, 5_000, 300_000}[i%3]
				p, err := s.Start(t.Context(), shell(`head -c "$1" /dev/zero; echo end`, strconv.Itoa(size)))
				if err != nil {
					t.Errorf("run %d: %v", i, err)
					return
				}
				// Without the larger pipes of Linux, the child waits for its reader.
				if i%2 == 0 && size < 16<<10 {
					<-p.Done()
				}
				out, err := io.ReadAll(p.Stdout())
				if err != nil || len(out) != size+4 || !strings.HasSuffix(string(out), "\x00end\n") {
					t.Errorf("run %d: read %d bytes of %d, %v", i, len(out), size+4, err)
				}
				<-p.Done()
				if exit := p.Exit(); exit != (Exit{}) {
					t.Errorf("run %d: %v", i, exit)
				}
				p.Stdout().Close()
			}
		})
	}
	group.Wait()
}

func TestExit(t *testing.T) {
	t.Parallel()
	s := spawner(t, quick)
	for script, want := range map[string]struct {
		exit Exit
		text string
	}{
		"exit 0":        {Exit{}, "exit status 0"},
		"exit 3":        {Exit{Code: 3}, "exit status 3"},
		"kill -SEGV $$": {Exit{Code: -1, Signal: "SIGSEGV"}, "killed by SIGSEGV"},
		"kill -KILL $$": {Exit{Code: -1, Signal: "SIGKILL"}, "killed by SIGKILL"},
	} {
		p := start(t, s, shell("read line; "+script))
		require.ErrorIs(t, p.Exit().Err, errRunning)
		require.Equal(t, "still running", p.Exit().String())
		_, err := p.Stdin().WriteString("go\n")
		require.NoError(t, err)
		within(t, 10*time.Second, p.Done())
		require.Equal(t, want.exit, p.Exit())
		require.Equal(t, want.text, p.Exit().String())
		require.Equal(t, want.exit, p.Stop(t.Context()), "Stop after the end")
		p.Kill() // does nothing to whoever has the id now
		_, err = p.Stdin().WriteString("more\n")
		require.ErrorIs(t, err, os.ErrClosed)
	}
}

func TestStopByEndOfStdin(t *testing.T) {
	t.Parallel()
	p := start(t, spawner(t, long), shell(`cat >/dev/null; echo bye; exit 7`))
	require.Equal(t, Exit{Code: 7}, p.Stop(t.Context()))
	require.Equal(t, "bye\n", readAll(t, p))
}

// The steps come in order, each only when the one before did not help.
func TestStopLadder(t *testing.T) {
	t.Parallel()
	steps := timing{eof: 200 * time.Millisecond, term: 2 * time.Second, leftover: quick.leftover, vanish: quick.vanish}
	s := spawner(t, steps)
	p := start(t, s, shell(`trap 'echo TERM >&2' TERM; echo ready; cat >/dev/null; echo EOF >&2; while :; do (trap "" TERM; sleep 0.01); done`))
	require.Equal(t, "ready", firstLine(t, p))
	began := time.Now()
	require.Equal(t, Exit{Code: -1, Signal: "SIGKILL"}, p.Stop(t.Context()))
	require.GreaterOrEqual(t, time.Since(began), steps.eof+steps.term)
	said := slices.DeleteFunc(p.StderrTail(), func(line string) bool { return line == "Terminated" }) // a subshell without its trap yet
	require.Equal(t, []string{"EOF", "TERM"}, said)

	p = start(t, s, shell(`trap 'exit 5' TERM; echo ready; while :; do sleep 0.01; done`))
	require.Equal(t, "ready", firstLine(t, p))
	require.Equal(t, Exit{Code: 5}, p.Stop(t.Context()))
}

func TestStopTakesAtMostFourAndAHalfSeconds(t *testing.T) {
	t.Parallel()
	p := start(t, spawner(t, defaultTiming), shell(`trap "" TERM; echo ready; (while :; do sleep 1; done) & wait`))
	require.Equal(t, "ready", firstLine(t, p))
	began := time.Now()
	require.Equal(t, Exit{Code: -1, Signal: "SIGKILL"}, p.Stop(t.Context()))
	require.Less(t, time.Since(began), 4500*time.Millisecond)
	require.False(t, groupRuns(p.PID()))
}

func TestStopIsCutShortByAnyContext(t *testing.T) {
	t.Parallel()
	p := start(t, spawner(t, long), shell(`trap "" TERM; echo ready; sleep 1000 & wait`))
	require.Equal(t, "ready", firstLine(t, p))
	exits := make(chan Exit)
	for range 3 {
		go func() { exits <- p.Stop(context.Background()) }()
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	killed := Exit{Code: -1, Signal: "SIGKILL"}
	require.Equal(t, killed, p.Stop(over))
	for range 3 {
		require.Equal(t, killed, <-exits)
	}
	require.False(t, groupRuns(p.PID()))
}

func TestKillStoppedChild(t *testing.T) {
	t.Parallel()
	p := start(t, spawner(t, long), shell(`kill -STOP $$`))
	p.Kill()
	within(t, 10*time.Second, p.Done())
	require.Equal(t, Exit{Code: -1, Signal: "SIGKILL"}, p.Exit())
}

// SIGTERM reaches the real hook behind a wrapper, and nothing is left.
func TestStopWrapped(t *testing.T) {
	t.Parallel()
	s := spawner(t, timing{eof: 20 * time.Millisecond, term: time.Hour, leftover: time.Hour, vanish: 10 * time.Second})
	hook := `trap 'echo clean >&2; exit' TERM; echo $$; while :; do sleep 0.01; done`
	for name, spec := range map[string]Spec{
		"sh that waits":        shell(`sh -c "$1" & wait`, hook),
		"sh that never waits":  shell(`sh -c "$1"; exit 0`, hook),
		"npx":                  helper("wrapper", "sh", "-c", hook),
		"npx in sh":            shell(`"$@" & wait`, helper("wrapper", "sh", "-c", hook).Argv...),
		"without a wrapper":    shell(hook),
		"wrapped sleep":        shell(`sleep 1000 & echo $!; wait`),
		"two hooks in a group": shell(`sleep 1000 & sh -c "$1" & wait`, hook),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "npx in sh" {
				spec.Env = map[string]string{modeVar: "wrapper"}
			}
			p := start(t, s, spec)
			real := firstNumber(t, p)
			require.True(t, runs(real))
			p.Stop(t.Context())
			require.False(t, runs(real), "the real hook lives")
			require.False(t, groupRuns(p.PID()), "the group lives")
			if name != "wrapped sleep" {
				require.Contains(t, p.StderrTail(), "clean")
			}
		})
	}
}

// What a child leaves behind in its group gets the end of its stdin and a
// little time, then it is killed.
func TestLeftoverOfChildThatExits(t *testing.T) {
	t.Parallel()
	s := spawner(t, defaultTiming)
	began := time.Now()
	p := start(t, s, shell(`sleep 1000 & echo $!`))
	left := firstNumber(t, p)
	require.Empty(t, readAll(t, p))
	require.Less(t, time.Since(began), 1500*time.Millisecond)
	within(t, 10*time.Second, p.Done())
	require.Equal(t, Exit{}, p.Exit())
	require.False(t, runs(left))

	p = start(t, spawner(t, long), shell(`exec 3<&0; (cat <&3; echo late) & exit 4`))
	require.Equal(t, "late\n", readAll(t, p), "it had time to finish")
	within(t, 10*time.Second, p.Done())
	require.Equal(t, Exit{Code: 4}, p.Exit())
}

// A process that left the group may keep the pipes: the answer is read, then
// reading ends and so does the wait.
func TestEscapedProcessHoldsPipes(t *testing.T) {
	t.Parallel()
	p := start(t, spawner(t, defaultTiming), helper("escape", "sleep", "1000"))
	began := time.Now()
	within(t, 10*time.Second, p.Done())
	require.Less(t, time.Since(began), 2*time.Second)
	escaped, err := strconv.Atoi(strings.TrimSpace(readAll(t, p)))
	require.NoError(t, err)
	require.True(t, runs(escaped))
	require.NoError(t, unix.Kill(escaped, syscall.SIGKILL))
}

func TestEscapedProcessFloodsPipes(t *testing.T) {
	t.Parallel()
	p := start(t, spawner(t, quick), helper("escape", "sh", "-c", `echo $$; (yes >&2) & yes 2>/dev/null`))
	escaped := firstNumber(t, p)
	defer func() { _ = unix.Kill(-escaped, syscall.SIGKILL) }() // ends at the broken pipe anyway
	_, err := io.Copy(io.Discard, p.Stdout())
	require.NoError(t, err)
	within(t, 10*time.Second, p.Done())
}

// Stdout ends soon after the child, although its group is given more time.
func TestReadingEndsBeforeTheLadder(t *testing.T) {
	t.Parallel()
	s := spawner(t, timing{eof: time.Millisecond, term: time.Hour, leftover: 50 * time.Millisecond, vanish: 10 * time.Second})
	p := start(t, s, shell(`(trap "" TERM; echo ready; sleep 1000) & wait`))
	require.Equal(t, "ready", firstLine(t, p))
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan Exit)
	go func() { stopped <- p.Stop(ctx) }()
	require.Empty(t, readAll(t, p))
	select {
	case <-p.Done():
		require.Fail(t, "the group was not given its time")
	default:
	}
	require.True(t, groupRuns(p.PID()))
	cancel()
	require.Equal(t, Exit{Code: -1, Signal: "SIGTERM"}, <-stopped)
	require.False(t, groupRuns(p.PID()))
}

func TestChildThatLeftItsGroup(t *testing.T) {
	t.Parallel()
	p := start(t, spawner(t, quick), helper("leave-group"))
	require.Equal(t, "<nil>", firstLine(t, p))
	require.Equal(t, Exit{Code: -1, Signal: "SIGKILL"}, p.Stop(t.Context()))
}

func TestDeadlinesOfPipes(t *testing.T) {
	t.Parallel()
	p := start(t, spawner(t, quick), Spec{Argv: []string{"sleep", "1000"}})
	require.NoError(t, p.Stdin().SetWriteDeadline(time.Now().Add(50*time.Millisecond)))
	_, err := p.Stdin().Write(make([]byte, 2*pipeSize))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)

	require.NoError(t, p.Stdout().SetReadDeadline(time.Now().Add(20*time.Millisecond)))
	_, err = p.Stdout().Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)

	// A writer and a reader that are stuck are woken by the end.
	require.NoError(t, p.Stdin().SetWriteDeadline(time.Time{}))
	require.NoError(t, p.Stdout().SetReadDeadline(time.Time{}))
	wrote := make(chan error)
	go func() { _, err := p.Stdin().Write(make([]byte, 2*pipeSize)); wrote <- err }()
	read := make(chan error)
	go func() { _, err := p.Stdout().Read(make([]byte, 1)); read <- err }()
	p.Stop(t.Context())
	require.Error(t, <-wrote)
	require.ErrorIs(t, <-read, io.EOF)

	// No deadline can make a read after the end block or fail.
	require.NoError(t, p.Stdout().SetReadDeadline(time.Now().Add(time.Hour)))
	_, err = p.Stdout().Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, p.Stdout().Close())
	_, err = p.Stdout().Read(make([]byte, 1))
	require.Error(t, err)
}

func TestChildThatClosesStdin(t *testing.T) {
	t.Parallel()
	p := start(t, spawner(t, quick), shell(`exec <&-; echo closed; exec sleep 1000`))
	require.Equal(t, "closed", firstLine(t, p))
	// Children that other tests fork right now hold the pipe for a moment.
	eventually(t, "writing goes on", func() bool {
		_, err := p.Stdin().WriteString("anyone?\n")
		return errors.Is(err, syscall.EPIPE)
	})
	p.Stop(t.Context())
}
