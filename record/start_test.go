package record

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// written returns the path of a closed record with so many decisions.
func written(t testing.TB, n int) string {
	path := recordPath(t)
	s := openStore(t, Options{Path: path}, faults{})
	for i := range n {
		require.NoError(t, s.Record(t.Context(), toolCall(t, i)))
	}
	closeStore(t, s)
	return path
}

// killed returns the path of a record as a kill -9 leaves it: the last records
// are in SQLite's log only.
func killed(t testing.TB, n int, mode Mode) string {
	from := recordPath(t)
	s := openStore(t, Options{Path: from, Mode: mode}, faults{})
	for i := range n {
		require.NoError(t, s.Record(t.Context(), toolCall(t, i)))
	}
	onDisk(t, s)
	path := recordPath(t)
	require.NoError(t, os.Mkdir(filepath.Dir(path), 0o700))
	for _, suffix := range []string{"", "-wal", ".lock"} {
		b, err := os.ReadFile(from + suffix)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path+suffix, b, 0o600))
	}
	closeStore(t, s)
	return path
}

func edit(t testing.TB, path string, change func(b []byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, change(b), 0o600))
}

// What is wrong with the file at the start is repaired, or moved aside and
// named; the record goes on and says so.
func TestStartWithADamagedFile(t *testing.T) {
	scribble := func(from, to int) func([]byte) []byte {
		return func(b []byte) []byte {
			for i := from; i < min(to, len(b)); i++ {
				b[i] ^= 0x5a
			}
			return b
		}
	}
	for _, c := range []struct {
		name    string
		damage  func(t *testing.T, path string)
		what    string // of the gap records, in order
		aside   bool
		records int // decisions that are still there
	}{
		{"header", func(t *testing.T, path string) { edit(t, path, scribble(0, 100)) }, gapDamaged, true, 0},
		{"pages", func(t *testing.T, path string) {
			require.NoError(t, os.Remove(path+".lock")) // as if hookd was not closed
			edit(t, path, scribble(4096, 1<<30))
		}, gapDamaged, true, 0},
		{"cut in half", func(t *testing.T, path string) {
			require.NoError(t, os.Remove(path+".lock"))
			edit(t, path, func(b []byte) []byte { return b[:len(b)/2/4096*4096] })
		}, gapDamaged, true, 0},
		{"text", func(t *testing.T, path string) {
			edit(t, path, func([]byte) []byte { return []byte(strings.Repeat("this is no database ", 500)) })
		}, gapDamaged, true, 0},
		{"a table is missing", func(t *testing.T, path string) { sabotage(t, path, "DROP TABLE gaps") }, gapDamaged, true, 0},
		{"empty", func(t *testing.T, path string) { edit(t, path, func([]byte) []byte { return nil }) }, gapDeleted, false, 0},
		{"not there", func(t *testing.T, path string) { require.NoError(t, os.Remove(path)) }, gapDeleted, false, 0},
		{"an index", func(t *testing.T, path string) {
			require.NoError(t, os.Remove(path+".lock"))
			define := func(column string) string {
				return "PRAGMA writable_schema=ON; UPDATE sqlite_schema SET sql='CREATE INDEX decisions_time ON decisions (" + column +
					")' WHERE name='decisions_time'; PRAGMA writable_schema=RESET;"
			}
			sabotage(t, path, define("pid")+"REINDEX decisions_time;"+define("time"))
		}, gapDamaged, false, 20},
		{"records cut off at the end", func(t *testing.T, path string) { sabotage(t, path, "DELETE FROM decisions WHERE seq > 15") }, gapBroken, false, 15},
		{"an older copy", func(t *testing.T, path string) {
			edit(t, path, func([]byte) []byte { b, _ := os.ReadFile(written(t, 7)); return b })
		}, gapLost, false, 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := written(t, 20)
			c.damage(t, path)
			s := openStore(t, Options{Path: path}, faults{})
			require.NoError(t, s.Record(t.Context(), toolCall(t, 20)))
			closeStore(t, s)
			var what []string
			for _, g := range gaps(t, path) {
				what = append(what, g.What)
			}
			require.Contains(t, strings.Join(what, " "), c.what)
			require.Len(t, decisions(t, openReader(t, path), Filter{}), c.records+1)
			if !c.aside {
				require.Empty(t, s.Status().MovedAside)
				return
			}
			aside := s.Status().MovedAside
			require.FileExists(t, aside)
			require.Contains(t, gaps(t, path)[0].Reason, filepath.Base(aside))
			requireWhole(t, path)
			// The next start finds nothing to say.
			n := len(what)
			closeStore(t, openStore(t, Options{Path: path}, faults{}))
			require.Len(t, gaps(t, path), n)
		})
	}
}

func TestStartAfterAFileWasLost(t *testing.T) {
	path := written(t, 20)
	require.NoError(t, os.Remove(path))
	closeStore(t, openStore(t, Options{Path: path}, faults{}))
	rep := requireWhole(t, path)
	require.EqualValues(t, 21, rep.First, "the chain goes on")
	require.Contains(t, gaps(t, path)[0].Reason, "up to 20")
}

// SQLite's log is torn, as after a power cut: what is whole in it stays, the
// chain verifies, and what is missing is said.
func TestTornLog(t *testing.T) {
	for _, keep := range []float64{0, 0.1, 0.5, 0.9, 1} {
		for _, scribbled := range []bool{false, true} {
			path := killed(t, 40, ModeStrict)
			edit(t, path+"-wal", func(b []byte) []byte {
				at := int(float64(len(b)) * keep)
				if !scribbled {
					return b[:at]
				}
				for i := at; i < len(b); i++ {
					b[i] ^= 0x77
				}
				return b
			})
			s := openStore(t, Options{Path: path}, faults{})
			require.NoError(t, s.Record(t.Context(), toolCall(t, 99)))
			closeStore(t, s)
			requireWhole(t, path)
			list := gaps(t, path)
			require.NotEmpty(t, list, "keep %v", keep)
			left := len(decisions(t, openReader(t, path), Filter{}))
			if keep == 1 {
				require.Equal(t, 41, left)
			}
			t.Logf("kept %v of the log: %d of 40 decisions, %v", keep, left-1, list[0].What)
		}
	}
}

// After a kill the next start says what may be missing.
func TestUncleanStart(t *testing.T) {
	for mode, want := range map[Mode]string{ModeBatch: "at most the last 100 ms are missing", ModeStrict: "no answer was given without its record"} {
		path := killed(t, 5, mode)
		closeStore(t, openStore(t, Options{Path: path}, faults{}))
		list := gaps(t, path)
		require.Len(t, list, 1)
		require.Equal(t, gapUnclean, list[0].What)
		require.Contains(t, list[0].Reason, want)
		require.Equal(t, mode == ModeBatch, list[0].AtMost == 100*time.Millisecond)
		require.False(t, list[0].From.IsZero())
		requireWhole(t, path)
	}
}

// Another's lock on the file at the start is waited for.
func TestStartWhileLocked(t *testing.T) {
	path := written(t, 1)
	other, err := connect(path, "")
	require.NoError(t, err)
	require.NoError(t, other.script("BEGIN IMMEDIATE"))
	done := make(chan error)
	go func() {
		time.Sleep(300 * time.Millisecond)
		done <- other.script("ROLLBACK")
	}()
	s := openStore(t, Options{Path: path}, faults{})
	require.NoError(t, <-done)
	require.NoError(t, other.close())
	closeStore(t, s)
}
