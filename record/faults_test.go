package record

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/protocol"
)

// codedError is an error as SQLite makes it.
type codedError int

func (c codedError) Error() string { return fmt.Sprintf("disk I/O error (%d)", int(c)) }
func (c codedError) Code() int     { return int(c) }

// blocked makes writing fail while it is on.
type blocked struct {
	on    atomic.Bool
	begin func(c *conn, on bool) error
}

func (b *blocked) faults() faults {
	return faults{begin: func(c *conn) error { return b.begin(c, b.on.Load()) }}
}

// ways are those in which a disk fails that need no rights.
func ways() map[string]func(c *conn, on bool) error {
	pragma := func(on, off string) func(c *conn, set bool) error {
		return func(c *conn, set bool) error {
			if set {
				return c.script("PRAGMA " + on)
			}
			return c.script("PRAGMA " + off)
		}
	}
	return map[string]func(c *conn, on bool) error{
		"full":      pragma("max_page_count=1", "max_page_count=1000000"), // less than there are means: no more
		"read-only": pragma("query_only=ON", "query_only=OFF"),
		"broken": func(_ *conn, on bool) error {
			if on {
				return codedError(10 | 3<<8)
			}
			return nil
		},
	}
}

// While the disk fails, decisions follow OnFailure, status says so at once, and
// afterwards all is as it was, with one gap record that counts what is missing.
func TestDiskFails(t *testing.T) {
	for name, begin := range ways() {
		t.Run(name+"/continue", func(t *testing.T) {
			t.Parallel()
			path := recordPath(t)
			b := &blocked{begin: begin}
			s := openStore(t, Options{Path: path}, b.faults())
			s.queue.rows = 40
			require.NoError(t, s.Record(t.Context(), toolCall(t, 0)))
			onDisk(t, s)
			b.on.Store(true)
			n := failUntil(t, s, StateFailing)
			for s.Status().MissedTotal < 25 {
				require.NoError(t, s.Record(t.Context(), toolCall(t, n)), "decisions go on")
				n++
			}
			require.NoError(t, s.ToolRun(&ToolRun{Tool: "bash", Status: "ok"}))
			st := s.Status()
			require.Equal(t, StateFailing, st.State)
			require.NotEmpty(t, st.Error)
			require.EqualValues(t, 26, st.MissedTotal)
			require.Equal(t, 40, st.Queued, "what waits is bounded")
			b.on.Store(false)
			eventually(t, func() bool { return s.Status().State == StateOK && s.Status().Queued == 0 }, "recovery is automatic")
			require.NoError(t, s.Record(t.Context(), toolCall(t, n)))
			closeStore(t, s)

			requireWhole(t, path)
			list := gaps(t, path)
			require.Len(t, list, 1)
			require.Equal(t, gapMissed, list[0].What)
			require.Equal(t, map[string]uint64{"decisions": 25, "tool_runs": 1}, list[0].Missed)
			require.EqualValues(t, 26, list[0].Total)
			require.Len(t, decisions(t, openReader(t, path), Filter{}), n+1-25, "what fitted into the queue was caught up with")
		})
		t.Run(name+"/strict", func(t *testing.T) {
			t.Parallel()
			path := recordPath(t)
			b := &blocked{begin: begin}
			s := openStore(t, Options{Path: path, Mode: ModeStrict}, b.faults())
			require.NoError(t, s.Record(t.Context(), toolCall(t, 0)))
			b.on.Store(true)
			denied := 0
			for n := 1; n < 30; n++ {
				if err := s.Record(t.Context(), toolCall(t, n)); err != nil {
					require.ErrorIs(t, err, ErrFailing)
					denied++
				}
			}
			require.Positive(t, denied)
			require.Equal(t, StateFailing, s.Status().State)
			require.EqualValues(t, denied, s.Status().Refused)
			b.on.Store(false)
			eventually(t, func() bool { return s.Status().State == StateOK && s.Status().Queued == 0 }, "recovery is automatic")
			require.NoError(t, s.Record(t.Context(), toolCall(t, 30)))
			closeStore(t, s)

			requireWhole(t, path)
			noes := 0
			for _, d := range decisions(t, openReader(t, path), Filter{}) {
				if d.Unrecorded {
					require.Equal(t, protocol.ActionDeny, d.Action)
					require.Contains(t, d.Error, "would have been allow")
					noes++
				}
			}
			require.Equal(t, denied, noes, "the record says no where the agent got a no")
			require.Empty(t, gaps(t, path), "nothing is missing")
		})
	}
}

// failUntil records until the store is in this state, and returns how many.
func failUntil(t *testing.T, s *Store, want State) int {
	n := 1
	eventually(t, func() bool {
		if s.Status().State == want {
			return true
		}
		if s.Status().Queued < 10 {
			_ = s.Record(t.Context(), toolCall(t, n))
			n++
		}
		return false
	}, "the failure is noticed")
	return n
}

// A transaction that took place although it was reported as failed is not
// recorded twice.
func TestCommitReportedAsFailed(t *testing.T) {
	path := recordPath(t)
	var lie atomic.Bool
	s := openStore(t, Options{Path: path}, faults{commit: func(c *conn) error {
		if !lie.CompareAndSwap(true, false) {
			return nil
		}
		if _, err := c.exec("COMMIT"); err != nil {
			return err
		}
		return codedError(10 | 4<<8)
	}})
	require.NoError(t, s.Record(t.Context(), toolCall(t, 0)))
	onDisk(t, s)
	lie.Store(true)
	require.NoError(t, s.Record(t.Context(), toolCall(t, 1)))
	require.NoError(t, s.Record(t.Context(), toolCall(t, 2)))
	onDisk(t, s)
	closeStore(t, s)
	require.EqualValues(t, 3, requireWhole(t, path).Records)
	require.Empty(t, gaps(t, path))
}

// When the disk takes longer than an answer may wait, the answer is a no, and
// the record says so too, although it was on its way.
func TestSlowDisk(t *testing.T) {
	path := recordPath(t)
	synctest.Test(t, func(t *testing.T) {
		var slow atomic.Bool
		s := openStore(t, Options{Path: path, Mode: ModeStrict}, faults{commit: func(*conn) error {
			if slow.CompareAndSwap(true, false) {
				time.Sleep(2 * time.Second)
			}
			return nil
		}})
		require.NoError(t, s.Record(t.Context(), toolCall(t, 0)))
		slow.Store(true)
		start := time.Now()
		var wg sync.WaitGroup
		for n := range 3 {
			wg.Go(func() { require.ErrorIs(t, s.Record(t.Context(), toolCall(t, n)), ErrTimeout) })
		}
		wg.Wait()
		require.Equal(t, strictWait, time.Since(start))
		require.NoError(t, s.Close(t.Context()))
	})
	requireWhole(t, path)
	list := decisions(t, openReader(t, path), Filter{})
	require.Len(t, list, 4)
	require.Equal(t, protocol.ActionAllow, list[0].Action)
	for _, d := range list[1:] {
		require.True(t, d.Unrecorded)
		require.Equal(t, protocol.ActionDeny, d.Action)
		require.Contains(t, d.Error, "record_timeout")
	}
}

// What people gave too late for the disk does not hold, also after the next
// start: a yes is taken back, and so is a rule.
func TestSlowDiskAndApprovals(t *testing.T) {
	path := recordPath(t)
	synctest.Test(t, func(t *testing.T) {
		var slow atomic.Bool
		s := openStore(t, Options{Path: path, Mode: ModeStrict}, faults{commit: func(*conn) error {
			if slow.CompareAndSwap(true, false) {
				time.Sleep(2 * time.Second)
			}
			return nil
		}})
		a := Approval{Ticket: "t", Tool: "bash"}
		require.NoError(t, s.ApprovalRequested(t.Context(), &a))
		slow.Store(true)
		a.Approved, a.Outcome = true, "answered"
		require.ErrorIs(t, s.ApprovalAnswered(t.Context(), &a), ErrTimeout)
		time.Sleep(5 * time.Second)
		slow.Store(true)
		require.ErrorIs(t, s.AddRule(t.Context(), &Rule{ID: "r", Scope: "always"}), ErrTimeout)
		require.NoError(t, s.Close(t.Context()))
	})
	requireWhole(t, path)
	r := openReader(t, path)
	list, err := r.Approvals(t.Context(), ApprovalFilter{})
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.False(t, list[0].Approved)
	require.Contains(t, list[0].Reason, "record_timeout")
	rules, err := r.Rules(t.Context())
	require.NoError(t, err)
	require.Empty(t, rules)
}

// An agent that goes away while its record is written gets no answer.
func TestCallerGoesAway(t *testing.T) {
	path := recordPath(t)
	synctest.Test(t, func(t *testing.T) {
		var slow atomic.Bool
		s := openStore(t, Options{Path: path, Mode: ModeStrict}, faults{commit: func(*conn) error {
			if slow.Load() {
				time.Sleep(500 * time.Millisecond)
			}
			return nil
		}})
		slow.Store(true)
		err := s.Record(canceled(), toolCall(t, 0))
		require.Error(t, err)
		require.NoError(t, s.Close(t.Context()))
	})
	list := decisions(t, openReader(t, path), Filter{})
	require.Len(t, list, 1)
	require.True(t, list[0].Unrecorded)
}

// A file that another process has locked: in batch decisions go on and what
// waits is written later; in strict they wait a second; with deny the answer is
// a no once the lag is over a second.
func TestLocked(t *testing.T) {
	for _, o := range []Options{{}, {OnFailure: Deny}, {Mode: ModeStrict}} {
		t.Run(string(o.Mode)+string(o.OnFailure), func(t *testing.T) {
			t.Parallel()
			o.Path = recordPath(t)
			s := openStore(t, o, faults{})
			require.NoError(t, s.Record(t.Context(), toolCall(t, 0)))
			onDisk(t, s)
			other, err := connect(o.Path, "")
			require.NoError(t, err)
			require.NoError(t, other.script("PRAGMA busy_timeout=5000; BEGIN IMMEDIATE"))
			switch {
			case o.Mode == ModeStrict:
				require.ErrorIs(t, s.Record(t.Context(), toolCall(t, 1)), ErrTimeout)
			case o.OnFailure == Deny:
				require.NoError(t, s.Record(t.Context(), toolCall(t, 1)), "not yet")
				eventually(t, func() bool { return s.Record(t.Context(), toolCall(t, 2)) != nil }, "a lag of a second is a failure")
			default:
				require.NoError(t, s.Record(t.Context(), toolCall(t, 1)))
				eventually(t, func() bool { return s.Status().Lag > lagLimit }, "the lag is shown")
				require.NoError(t, s.Record(t.Context(), toolCall(t, 2)), "decisions are unaffected")
			}
			st := s.Status()
			require.Equal(t, StateLagging, st.State)
			require.Contains(t, st.Error, "locked")
			require.NoError(t, other.script("ROLLBACK"))
			require.NoError(t, other.close())
			eventually(t, func() bool { return s.Status().State == StateOK && s.Status().Queued == 0 }, "it catches up")
			require.NoError(t, s.Record(t.Context(), toolCall(t, 3)))
			closeStore(t, s)
			requireWhole(t, o.Path)
			require.Empty(t, gaps(t, o.Path))
			require.Zero(t, s.Status().MissedTotal)
		})
	}
}

// More than the disk takes is counted, and nobody waits long.
func TestOverload(t *testing.T) {
	path := recordPath(t)
	gate := make(chan struct{})
	var once sync.Once
	s := openStore(t, Options{Path: path, OnFailure: Deny}, faults{commit: func(*conn) error { <-gate; return nil }})
	defer once.Do(func() { close(gate) })
	s.queue.rows = 3
	for n := range 3 {
		require.NoError(t, s.Record(t.Context(), toolCall(t, n)))
	}
	require.ErrorIs(t, s.Record(t.Context(), toolCall(t, 3)), ErrOverloaded)
	require.ErrorIs(t, s.Record(t.Context(), toolCall(t, 4)), ErrOverloaded)
	once.Do(func() { close(gate) })
	eventually(t, func() bool { return s.Status().Queued == 0 && len(s.Status().Missed) == 0 }, "the gap is told")
	closeStore(t, s)
	requireWhole(t, path)
	list := gaps(t, path)
	require.Len(t, list, 1)
	require.EqualValues(t, 2, list[0].Total)
	require.Contains(t, list[0].Reason, "more was to be recorded")
}

// A long text does not fill the queue's memory.
func TestQueueIsBoundedInBytes(t *testing.T) {
	path := recordPath(t)
	gate := make(chan struct{})
	s := openStore(t, Options{Path: path}, faults{commit: func(*conn) error { <-gate; return nil }})
	s.queue.bytesMax = 1 << 20
	big := call(t, protocol.StageUserMessage, `{"message":{"role":"user","content":"`+strings.Repeat("x", 400<<10)+`"}}`, protocol.Result{})
	for range 4 {
		require.NoError(t, s.Record(t.Context(), big))
	}
	require.LessOrEqual(t, s.Status().QueuedBytes, 1<<20)
	require.EqualValues(t, 2, s.Status().MissedTotal)
	close(gate)
	closeStore(t, s)
	requireWhole(t, path)
}

// A file that is deleted or replaced while it is written is noticed within a
// second, also when nothing is recorded; the chain goes on.
func TestFileDeleted(t *testing.T) {
	for _, mode := range []Mode{ModeBatch, ModeStrict} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			path := recordPath(t)
			s := openStore(t, Options{Path: path, Mode: mode}, faults{})
			for n := range 5 {
				require.NoError(t, s.Record(t.Context(), toolCall(t, n)))
			}
			onDisk(t, s)
			for _, suffix := range []string{"", "-wal", "-shm"} {
				require.NoError(t, os.Remove(path+suffix))
			}
			eventually(t, func() bool { return s.Status().Seq > 5 }, "it is noticed although nothing is recorded")
			require.NoError(t, s.Record(t.Context(), toolCall(t, 5)))
			closeStore(t, s)
			rep := requireWhole(t, path)
			require.EqualValues(t, 6, rep.First, "the chain goes on where the other file ended")
			list := gaps(t, path)
			require.Len(t, list, 1)
			require.Equal(t, gapDeleted, list[0].What)
			require.Contains(t, list[0].Reason, "the records 1 to 5 went with it")
			require.Len(t, decisions(t, openReader(t, path), Filter{}), 1)
		})
	}
}

// Only SQLite's log is deleted: nothing is lost.
func TestLogDeleted(t *testing.T) {
	path := recordPath(t)
	s := openStore(t, Options{Path: path}, faults{})
	require.NoError(t, s.Record(t.Context(), toolCall(t, 0)))
	onDisk(t, s)
	require.NoError(t, os.Remove(path+"-wal"))
	require.NoError(t, s.Record(t.Context(), toolCall(t, 1)))
	onDisk(t, s)
	_, err := os.Stat(path + "-wal")
	require.NoError(t, err)
	closeStore(t, s)
	require.EqualValues(t, 2, requireWhole(t, path).Records)
	require.Empty(t, gaps(t, path))
}

func TestFileReplaced(t *testing.T) {
	other := recordPath(t)
	s := openStore(t, Options{Path: other}, faults{})
	for n := range 3 {
		require.NoError(t, s.Record(t.Context(), toolCall(t, n)))
	}
	closeStore(t, s)

	path := recordPath(t)
	s = openStore(t, Options{Path: path, Mode: ModeStrict}, faults{})
	record := func(n int) {
		rec := toolCall(t, n)
		rec.Call = uint64(n + 1)
		require.NoError(t, s.Record(t.Context(), rec))
	}
	for n := range 8 {
		record(n)
	}
	require.NoError(t, os.Rename(other, path))
	record(8)
	// Its number is that of another record now.
	require.NoError(t, s.Undelivered(&Undelivered{Call: 5, Session: "s0"}))
	closeStore(t, s)
	rep := requireWhole(t, path)
	require.EqualValues(t, 6, rep.Last, "three of the other, the gap, the new one, an answer that was lost")
	for _, d := range decisions(t, openReader(t, path), Filter{}) {
		require.False(t, d.Undelivered, d.CallID)
	}
	list := gaps(t, path)
	require.Len(t, list, 1)
	require.Equal(t, gapReplaced, list[0].What)
	require.Contains(t, list[0].Reason, "ends at record 3; the old one ended at 8")
}

// Garbage in the place of the file, while it is written.
func TestFileReplacedByGarbage(t *testing.T) {
	path := recordPath(t)
	s := openStore(t, Options{Path: path}, faults{})
	require.NoError(t, s.Record(t.Context(), toolCall(t, 0)))
	onDisk(t, s)
	require.NoError(t, os.WriteFile(path+".new", []byte(strings.Repeat("garbage ", 4096)), 0o600))
	require.NoError(t, os.Rename(path+".new", path))
	eventually(t, func() bool { return s.Status().MovedAside != "" }, "the garbage is moved aside")
	require.NoError(t, s.Record(t.Context(), toolCall(t, 1)))
	closeStore(t, s)
	requireWhole(t, path)
	require.Equal(t, gapDamaged, gaps(t, path)[0].What)
	b, err := os.ReadFile(s.Status().MovedAside)
	require.NoError(t, err)
	require.Contains(t, string(b), "garbage")
}

func TestClockStep(t *testing.T) {
	path := recordPath(t)
	var elapsed atomic.Int64
	clock := atomic.Pointer[time.Time]{}
	start := time.Now()
	clock.Store(&start)
	s := openStore(t, Options{Path: path, Now: func() time.Time { return *clock.Load() }}, faults{
		elapsed: func() time.Duration { return time.Duration(elapsed.Load()) },
	})
	require.NoError(t, s.Record(t.Context(), toolCall(t, 0)))
	onDisk(t, s)
	back := start.Add(-time.Hour)
	clock.Store(&back)
	eventually(t, func() bool { return s.Status().Seq == 2 }, "the step is recorded")
	closeStore(t, s)
	r := openReader(t, path)
	for rec, err := range r.Records(t.Context(), 1) {
		require.NoError(t, err)
		require.Equal(t, "security_events", rec.Table)
		require.Equal(t, `"clock_step"`, string(rec.Columns.Get("what")))
		require.Equal(t, `{"by_ms":-3600000}`, string(rec.Columns.Get("detail")))
	}
}

// Close gives up when it is told to, and the next start says what is missing.
func TestCloseWhileFailing(t *testing.T) {
	path := recordPath(t)
	b := &blocked{begin: ways()["read-only"]}
	s := openStore(t, Options{Path: path}, b.faults())
	require.NoError(t, s.Record(t.Context(), toolCall(t, 0)))
	onDisk(t, s)
	b.on.Store(true)
	require.NoError(t, s.Record(t.Context(), toolCall(t, 1)))
	eventually(t, func() bool { return s.Status().State == StateFailing }, "the failure is noticed")
	require.ErrorContains(t, s.Close(canceled()), "1 records are not written")
	require.ErrorIs(t, s.Close(t.Context()), ErrClosed)
	closeStore(t, openStore(t, Options{Path: path}, faults{}))
	requireWhole(t, path)
	list := gaps(t, path)
	require.Len(t, list, 1)
	require.Equal(t, map[string]uint64{"decisions": 1}, list[0].Missed)
}
