package record

import (
	"context"
	"crypto/sha256"
	"database/sql/driver"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/protocol"
)

// The tables of the code are those of the file.
func TestTables(t *testing.T) {
	path := written(t, 1)
	c, err := connect(path, "")
	require.NoError(t, err)
	defer c.close()
	for _, table := range newTables().all() {
		var columns []string
		err := c.query(t.Context(), func(_ []string, row []driver.Value) error {
			columns = append(columns, row[1].(string))
			return nil
		}, "PRAGMA table_info("+table.name+")")
		require.NoError(t, err)
		require.Equal(t, append([]string{"seq", "time", "hash"}, table.columns...), columns, table.name)
	}
}

// The chain is what the package's documentation says, so that others can check
// it with other means.
func TestChainAsDocumented(t *testing.T) {
	path := recordPath(t)
	s := openStore(t, Options{Path: path}, faults{})
	require.NoError(t, s.ToolRun(&ToolRun{Tool: "bash", Status: "ok", Duration: 300 * time.Millisecond}))
	closeStore(t, s)
	c, err := connect(path, "")
	require.NoError(t, err)
	defer c.close()
	row, err := c.row("SELECT time, hash FROM tool_runs")
	require.NoError(t, err)

	b := make([]byte, 32)
	text := func(s string) { b = append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	number := func(name string, n int64) { text(name); b = binary.BigEndian.AppendUint64(append(b, 'i'), uint64(n)) }
	word := func(name, s string) { text(name); b = append(b, 't'); text(s) }
	text("tool_runs")
	number("seq", 1)
	number("time", row[0].(int64))
	word("tool", "bash")
	word("status", "ok")
	number("duration_ms", 300)
	want := sha256.Sum256(b)
	require.Equal(t, want[:], row[1].([]byte))
}

func TestVerifyFindsTheFirstPlace(t *testing.T) {
	for _, c := range []struct {
		name, sql string
		seq       uint64
		table     string
	}{
		{"a word", "UPDATE decisions SET reason = 'better' WHERE seq = 7", 7, "decisions"},
		{"another type", "UPDATE decisions SET pid = '4711' WHERE seq = 7; UPDATE decisions SET agent = CAST(agent AS BLOB) WHERE seq = 7", 7, "decisions"},
		{"a value more", "UPDATE decisions SET error = '' WHERE seq = 7", 7, "decisions"},
		{"a value less", "UPDATE decisions SET reason = NULL WHERE seq = 7", 7, "decisions"},
		{"from one column to the next", "UPDATE decisions SET decided_by = reason, reason = decided_by WHERE seq = 7", 7, "decisions"},
		{"a time", "UPDATE decisions SET time = time + 1 WHERE seq = 7", 7, "decisions"},
		{"a hash", "UPDATE decisions SET hash = zeroblob(32) WHERE seq = 7", 7, "decisions"},
		{"no hash", "UPDATE decisions SET hash = 'x' WHERE seq = 7", 7, "decisions"},
		{"one deleted", "DELETE FROM decisions WHERE seq = 7", 7, ""},
		{"the first deleted", "DELETE FROM decisions WHERE seq < 4", 4, ""},
		{"the last deleted", "DELETE FROM decisions WHERE seq > 17", 18, ""},
		{"the last deleted, and the head too", "DELETE FROM decisions WHERE seq > 17; DELETE FROM chain_head", 1, ""},
		{"two exchanged", "UPDATE decisions SET seq = 1000 WHERE seq = 7; UPDATE decisions SET seq = 7 WHERE seq = 8; UPDATE decisions SET seq = 8 WHERE seq = 1000", 7, "decisions"},
		{"one added", "INSERT INTO tool_runs (seq, time, hash, tool, status) VALUES (21, 1, zeroblob(32), 'x', 'ok')", 21, "tool_runs"},
		{"two of a number", "INSERT INTO gaps (seq, time, hash, what) VALUES (7, 1, zeroblob(32), 'x')", 7, "gaps"},
		{"a number below one", "INSERT INTO gaps (seq, time, hash, what) VALUES (-3, 1, zeroblob(32), 'x')", 0, ""},
		{"a column added", "ALTER TABLE decisions ADD COLUMN note TEXT; UPDATE decisions SET note = 'x' WHERE seq = 7", 7, "decisions"},
		{"an anchor that is not in the chain", `DELETE FROM decisions WHERE seq < 4;
			INSERT INTO anchors (seq, time, hash, kept_from, prev_hash) SELECT 21, 1, hash, 5, hash FROM decisions WHERE seq = 4; DELETE FROM decisions WHERE seq = 4`, 21, "anchors"},
		{"a view instead of a table", "ALTER TABLE gaps RENAME TO g; CREATE VIEW gaps AS SELECT * FROM g", 0, ""},
		{"no table", "DROP TABLE decisions", 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := written(t, 20)
			sabotage(t, path, c.sql)
			rep, err := Verify(t.Context(), path)
			require.NoError(t, err)
			require.NotNil(t, rep.Broken)
			require.Equal(t, c.seq, rep.Broken.Seq, rep.Broken.String())
			require.Equal(t, c.table, rep.Broken.Table)
			require.NotEmpty(t, rep.Broken.What)
		})
	}
}

func TestVerifyCannotRead(t *testing.T) {
	_, err := Verify(t.Context(), filepath.Join(t.TempDir(), "none.db"))
	require.ErrorIs(t, err, os.ErrNotExist)
	text := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(text, []byte(strings.Repeat("text ", 1000)), 0o600))
	_, err = Verify(t.Context(), text)
	require.Error(t, err)
	other := filepath.Join(t.TempDir(), "other.db")
	sabotage(t, other, "CREATE TABLE x (y)")
	_, err = Verify(t.Context(), other)
	require.ErrorContains(t, err, "is not hookd's record")
	_, err = Verify(canceled(), written(t, 3))
	require.ErrorIs(t, err, context.Canceled)
}

// While it is written, readers read and the chain verifies.
func TestVerifyWhileWriting(t *testing.T) {
	path := recordPath(t)
	s := openStore(t, Options{Path: path}, faults{})
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
				_ = s.Record(context.Background(), toolCall(t, n))
			}
		}
	}()
	for range 10 {
		requireWhole(t, path)
	}
	close(stop)
	<-stopped
	closeStore(t, s)
	requireWhole(t, path)
}

// Retention keeps the chain verifiable, and rules that hold.
func TestRetention(t *testing.T) {
	for name, o := range map[string]Options{"age": {KeepDays: 30}, "size": {MaxBytes: 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o.Path = recordPath(t)
			now := time.Now()
			clock := now.AddDate(0, 0, -40)
			o.Now = func() time.Time { return clock }
			s := openStore(t, o, faults{elapsed: func() time.Duration { return 0 }})
			for n, rule := range []Rule{{ID: "kept", Scope: "always", Digest: "ab"}, {ID: "gone", Scope: "always"}} {
				rule.Created = clock.Add(time.Duration(n) * time.Second)
				require.NoError(t, s.AddRule(t.Context(), &rule))
			}
			require.NoError(t, s.RevokeRule(t.Context(), &Rule{ID: "gone"}))
			for n := range 5000 {
				rec := toolCall(t, n)
				rec.Started = clock
				if n >= 3000 {
					rec.Started = now
				}
				require.NoError(t, s.Record(t.Context(), rec))
				if n%500 == 0 {
					onDisk(t, s)
				}
			}
			closeStore(t, s)
			before := size(o.Path)

			clock = now
			s = openStore(t, o, faults{elapsed: func() time.Duration { return 0 }})
			eventually(t, func() bool { return s.Status().First > 2000 }, "the old ones go")
			require.NoError(t, s.Record(t.Context(), toolCall(t, 5000)))
			closeStore(t, s)
			rep := requireWhole(t, o.Path)
			require.Less(t, rep.First, uint64(4500), "the new ones stay")
			require.Less(t, size(o.Path), before, "the file shrinks")
			r := openReader(t, o.Path)
			rules, err := r.Rules(t.Context())
			require.NoError(t, err)
			require.Len(t, rules, 1)
			require.Equal(t, "ab", rules[0].Digest)
			sessions, err := r.Sessions(t.Context(), 0)
			require.NoError(t, err)
			require.Len(t, sessions, 4, "what is known of the sessions stays")

			// It can be cut off at the kept part's beginning nowhere else.
			sabotage(t, o.Path, "DELETE FROM decisions WHERE seq = (SELECT min(seq) FROM decisions)")
			again, err := Verify(t.Context(), o.Path)
			require.NoError(t, err)
			require.NotNil(t, again.Broken)
		})
	}
}

// exported returns all records of a file, a line each.
func exported(t testing.TB, path string) []string {
	r, err := OpenReader(path)
	if err != nil {
		return nil // its version is not ours: no reader takes it
	}
	defer r.Close()
	var lines []string
	for rec, err := range r.Records(context.Background(), 0) {
		require.NoError(t, err)
		lines = append(lines, string(rec.AppendJSON(nil)))
	}
	return lines
}

// FuzzVerify changes bytes of a file and of its log. Whatever comes out, nothing
// crashes, and either Verify finds it or what there is was recorded so.
func FuzzVerify(f *testing.F) {
	path := killed(f, 12, ModeBatch)
	file, err := os.ReadFile(path)
	require.NoError(f, err)
	log, err := os.ReadFile(path + "-wal")
	require.NoError(f, err)
	path = written(f, 12)
	closed, err := os.ReadFile(path)
	require.NoError(f, err)
	lines := exported(f, path)
	f.Add(uint32(100), []byte("x"), true)
	f.Add(uint32(5000), []byte("\x00\x00\x00\x01"), false)
	f.Add(uint32(60000), []byte("\xff\xff\xff\xff\xff"), true)
	f.Add(uint32(24), []byte{0}, false)
	f.Add(uint32(60), []byte("0"), false) // the version
	f.Fuzz(func(t *testing.T, at uint32, change []byte, inLog bool) {
		dir := t.TempDir()
		require.NoError(t, os.Chmod(dir, 0o700))
		path := filepath.Join(dir, "record.db")
		main, wal := file, log
		if !inLog {
			main, wal = closed, nil
		}
		if inLog {
			wal = changed(wal, at, change)
		} else {
			main = changed(main, at, change)
		}
		require.NoError(t, os.WriteFile(path, main, 0o600))
		if wal != nil {
			require.NoError(t, os.WriteFile(path+"-wal", wal, 0o600))
		}
		rep, err := Verify(t.Context(), path)
		if err == nil && rep.Broken == nil && !inLog {
			if now := exported(t, path); now != nil {
				require.Equal(t, lines, now)
			}
		}

		// A start copes with it, too: it goes on, or says why not.
		s, err := Open(Options{Path: path})
		if err != nil {
			return
		}
		require.NoError(t, s.Record(t.Context(), toolCall(t, 1)))
		if err := s.Close(t.Context()); err != nil {
			return
		}
		r, err := OpenReader(path)
		require.NoError(t, err)
		defer r.Close()
		list, err := r.Gaps(t.Context())
		require.NoError(t, err)
		require.NotEmpty(t, list, "its lock file is not there: that is said")
	})
}

func changed(b []byte, at uint32, change []byte) []byte {
	out := append([]byte(nil), b...)
	if len(out) > 0 {
		copy(out[int(at)%len(out):], change)
	}
	return out
}

func TestExportLooksTheSame(t *testing.T) {
	path := written(t, 3)
	r := openReader(t, path)
	for rec, err := range r.Records(t.Context(), 0) {
		require.NoError(t, err)
		require.NoError(t, protocol.CheckValue(rec.AppendJSON(nil), 0))
	}
}
