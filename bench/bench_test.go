package bench_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/bench"
)

// options are those of a run that is over soon. Its processes can be told by
// the path of their program, and its files stand in a folder of the test.
func options(t *testing.T) bench.Options {
	self, err := os.Executable()
	require.NoError(t, err)
	folder, err := os.MkdirTemp("/tmp", "bench") // short enough for the path of a socket
	require.NoError(t, err)
	program := filepath.Join(folder, "program")
	require.NoError(t, os.Symlink(self, program))
	temp := filepath.Join(folder, "temp")
	require.NoError(t, os.Mkdir(temp, 0o700))
	t.Setenv("TMPDIR", temp)
	t.Setenv("GORACE", "atexit_sleep_ms=0") // or each process takes a second to end
	t.Cleanup(func() {
		left, err := os.ReadDir(temp)
		require.NoError(t, err)
		require.Empty(t, left)
		require.Eventually(t, func() bool { return len(running(t, program)) == 0 }, 10*time.Second, 10*time.Millisecond)
		require.NoError(t, os.RemoveAll(folder))
	})
	return bench.Options{Program: []string{program, asPart}, Calls: 40}
}

// running lists the processes of a program, where there is a /proc to see them.
func running(t *testing.T, program string) []string {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	return slices.DeleteFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		return err != nil || !bytes.HasPrefix(text, []byte(program+"\x00"))
	})
}

// TestRunMeasuresEachTarget looks at everything but the figures, which are the
// machine's.
func TestRunMeasuresEachTarget(t *testing.T) {
	var told []string
	o := options(t)
	o.Against = []string{"sh"}
	o.Progress = func(id, _ string) { told = append(told, id) }
	rows, err := bench.Run(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, bench.IDs(), told)

	var ids []string
	for _, r := range rows {
		ids = append(ids, r.ID)
		require.NotEmpty(t, r.Work)
		require.NotEmpty(t, r.Unit)
		if r.P50 > 0 {
			require.GreaterOrEqual(t, r.P99, r.P50, r.Work)
		}
		if r.AtLeast {
			require.Equal(t, r.Ratio >= r.Target, r.OK, r.Work)
		} else {
			require.Equal(t, r.Ratio <= r.Target, r.OK, r.Work)
		}
	}
	want := bench.IDs()
	if runtime.GOOS != "linux" { // memory is read from /proc
		want = slices.DeleteFunc(want, func(id string) bool { return id == "T7" })
	}
	require.Equal(t, want, slices.Compact(ids))

	var table bytes.Buffer
	require.NoError(t, bench.Print(&table, rows, func(_ bool, text string) string { return text }))
	require.Equal(t, len(rows)+1, strings.Count(table.String(), "\n"))
	require.Contains(t, table.String(), "three Go children, 200 B")
}

func TestOnly(t *testing.T) {
	o := options(t)
	o.Only = []string{"T11", "T0"}
	rows, err := bench.Run(t.Context(), o)
	require.NoError(t, err)
	require.Len(t, rows, 3)
	require.Equal(t, "T0", rows[0].ID)
}

// TestTries: the best of three counts, and the first that is met ends it.
func TestTries(t *testing.T) {
	o := options(t)
	o.Only, o.Tries = []string{"T0"}, 3
	tries := 0
	o.Progress = func(string, string) { tries++ }
	rows, err := bench.Run(t.Context(), o)
	require.NoError(t, err)
	require.Len(t, rows, 1)
	if rows[0].OK {
		require.LessOrEqual(t, tries, 3)
	} else {
		require.Equal(t, 3, tries)
	}
}

// TestInterrupted stops a bench in each target, while it works.
func TestInterrupted(t *testing.T) {
	stopped := errors.New("stopped")
	for _, id := range bench.IDs() {
		t.Run(id, func(t *testing.T) {
			o := options(t)
			o.Only, o.Calls = []string{id}, 1_000_000
			ctx, cancel := context.WithCancelCause(t.Context())
			o.Progress = func(string, string) { time.AfterFunc(200*time.Millisecond, func() { cancel(stopped) }) }
			_, err := bench.Run(ctx, o)
			require.ErrorIs(t, err, stopped)
		})
	}
}

// TestProfile writes profiles that the tools can read.
func TestProfile(t *testing.T) {
	o := options(t)
	folder := filepath.Join(t.TempDir(), "new")
	paths, err := bench.Profile(t.Context(), o, folder)
	require.NoError(t, err)
	var names []string
	for _, path := range paths {
		require.Equal(t, folder, filepath.Dir(path))
		names = append(names, filepath.Base(path))
		file, err := os.Open(path)
		require.NoError(t, err)
		defer file.Close()
		unpacked, err := gzip.NewReader(file)
		require.NoError(t, err, path)
		text, err := io.ReadAll(unpacked)
		require.NoError(t, err)
		require.NotEmpty(t, text)
	}
	require.Equal(t, []string{"inprocess-cpu.prof", "inprocess-allocs.prof", "child-cpu.prof", "child-allocs.prof"}, names)

	stopped := errors.New("stopped")
	o.Calls = 1_000_000
	ctx, cancel := context.WithCancelCause(t.Context())
	o.Progress = func(string, string) { time.AfterFunc(200*time.Millisecond, func() { cancel(stopped) }) }
	_, err = bench.Profile(ctx, o, folder)
	require.ErrorIs(t, err, stopped)
	_, err = bench.Profile(t.Context(), o, paths[0])
	require.ErrorContains(t, err, "make a folder")
}

func TestRunSaysWhatFailed(t *testing.T) {
	o := options(t)
	o.Only, o.Program = []string{"T0"}, []string{"no-such-program"}
	_, err := bench.Run(t.Context(), o)
	require.ErrorContains(t, err, "T0, no hook matches")
	require.ErrorContains(t, err, "no-such-program")
}

func TestPlayKnowsItsParts(t *testing.T) {
	require.ErrorContains(t, bench.Play(t.Context(), []string{"juggle"}), `no such part: ["juggle"]`)
}
