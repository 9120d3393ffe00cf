package record

import (
	"context"
	"database/sql/driver"
	"fmt"
	"os"
	"time"

	"github.com/hookd/hookd/protocol"
)

// fold brings the summary of sessions up to the end of the chain.
func (w *writer) fold() error {
	if w.folded == 0 {
		upto, err := w.conn.number("SELECT seq FROM sessions_upto")
		if err != nil {
			return err
		}
		w.folded = uint64(upto)
	}
	if w.folded < w.head.seq {
		err := w.transact(func() error {
			if _, err := w.conn.exec(foldSessions, int64(w.folded)); err != nil {
				return err
			}
			_, err := w.conn.exec("UPDATE sessions_upto SET seq = ?", int64(w.head.seq))
			return err
		})
		if err != nil {
			return err
		}
	}
	w.folded, w.lastFold = w.head.seq, time.Now()
	return nil
}

const foldSessions = `INSERT INTO sessions
	SELECT session, agent, user, model, cwd, min(time), max(time), count(*),
	       sum(action IN ('deny', 'abort_turn', 'hard_abort')), sum(action = 'ask' OR approved IS NOT NULL AND NOT (stage = 'approve_tool' AND EXISTS (
	         SELECT 1 FROM decisions AS asked WHERE asked.session = d.session AND asked.digest = d.digest AND asked.action = 'ask' AND asked.seq < d.seq))),
	       sum(degraded IS NOT NULL)
	  FROM decisions AS d NOT INDEXED WHERE seq > ? AND session IS NOT NULL AND dry_run IS NULL GROUP BY session
	ON CONFLICT (session) DO UPDATE SET
	  agent = coalesce(excluded.agent, agent), user = coalesce(excluded.user, user),
	  model = coalesce(excluded.model, model), cwd = coalesce(excluded.cwd, cwd),
	  last_seen = max(last_seen, excluded.last_seen), calls = calls + excluded.calls,
	  denied = denied + excluded.denied, asked = asked + excluded.asked, degraded = degraded + excluded.degraded`

// retain takes out the oldest records when their time is up or the file is too
// large, for a moment at a time.
func (w *writer) retain() error {
	if w.opts.KeepDays == 0 && w.opts.MaxBytes == 0 || time.Since(w.retained) < retainEvery {
		return nil
	}
	for until := time.Now().Add(retainFor); time.Now().Before(until); {
		more, err := w.retainSome()
		if err != nil {
			return err
		}
		if !more {
			w.retained = time.Now()
			return nil
		}
	}
	return nil
}

// retainSome takes out some records, and leaves an anchor for the chain. It
// reports whether there may be more to take out. The newest record always
// stays: the chain goes on from it.
func (w *writer) retainSome() (more bool, err error) {
	if w.first == 0 || w.first >= w.head.seq {
		return false, nil
	}
	upto := min(w.first+retainRows, w.head.seq) - 1
	cutoff := w.opts.Now().AddDate(0, 0, -w.opts.KeepDays)
	old, err := w.allOlder(upto, cutoff)
	if err != nil {
		return false, err
	}
	if old {
		return true, w.expire(upto, fmt.Sprintf("older than %d days", w.opts.KeepDays))
	}
	if w.opts.MaxBytes == 0 || w.head.seq-w.first < 2*retainRows {
		return false, nil // of the newest some are kept, whatever room they take
	}
	large, err := w.tooLarge()
	if err != nil || !large {
		return false, err
	}
	return true, w.expire(upto, fmt.Sprintf("the file was larger than %d bytes", w.opts.MaxBytes))
}

// allOlder reports whether all records up to this number were made before.
func (w *writer) allOlder(upto uint64, cutoff time.Time) (bool, error) {
	if w.opts.KeepDays == 0 {
		return false, nil
	}
	for _, t := range w.tables.all() {
		newest, err := w.conn.number("SELECT max(time) FROM "+t.name+" WHERE seq BETWEEN ? AND ?", int64(w.first), int64(upto))
		if err != nil {
			return false, err
		}
		if newest >= cutoff.UnixMicro() {
			return false, nil
		}
	}
	return true, nil
}

func (w *writer) tooLarge() (bool, error) {
	var n [3]int64
	for i, pragma := range []string{"page_count", "freelist_count", "page_size"} {
		var err error
		if n[i], err = w.conn.number("PRAGMA " + pragma); err != nil {
			return false, err
		}
	}
	return (n[0]-n[1])*n[2] > w.opts.MaxBytes, nil
}

// expire deletes the records up to this number, in one transaction with the
// anchor and with fresh records of rules that still hold.
func (w *writer) expire(upto uint64, reason string) error {
	row, err := w.hashAndTime(upto)
	if err != nil {
		return err
	}
	was := head{seq: upto}
	if row == nil || !was.setHash(row[0]) {
		return fmt.Errorf("record %d is missing or has no hash, so that nothing before it can be taken out", upto)
	}
	if err := w.fold(); err != nil { // what is deleted must have been counted
		return err
	}
	h := w.head
	err = w.transact(func() error {
		deleted := int64(0)
		rules, err := w.rulesUpto(upto)
		if err != nil {
			return err
		}
		for _, t := range w.tables.all() {
			n, err := w.conn.exec("DELETE FROM "+t.name+" WHERE seq BETWEEN ? AND ?", int64(w.first), int64(upto))
			if err != nil {
				return err
			}
			deleted += n
		}
		for _, rule := range rules {
			if h, err = w.insert(h, w.tables.rules, w.opts.Now(), rule); err != nil {
				return err
			}
		}
		if h, err = w.insert(h, w.tables.anchors, w.opts.Now(), []driver.Value{int64(upto) + 1, was.hash[:], deleted, reason}); err != nil {
			return err
		}
		if _, err := w.conn.exec("DELETE FROM sessions WHERE last_seen < ?", row[1]); err != nil {
			return err
		}
		w.expired = h
		_, err = w.conn.exec("UPDATE chain_head SET seq = ?, hash = ?", int64(h.seq), h.hash[:])
		return err
	})
	if err != nil {
		return err
	}
	w.head, w.headRow, w.first = h, int64(h.seq), upto+1
	_, err = w.conn.exec("PRAGMA incremental_vacuum(1024)")
	return err
}

// hashAndTime returns these of one record; nil when there is none.
func (w *writer) hashAndTime(seq uint64) ([]driver.Value, error) {
	for _, t := range w.tables.all() {
		row, err := w.conn.row("SELECT hash, time FROM "+t.name+" WHERE seq = ?", int64(seq))
		if err != nil || row != nil {
			return row, err
		}
	}
	return nil, nil
}

// rulesUpto returns the rows of rules that hold and whose record is about to
// go, as they are to be written again.
func (w *writer) rulesUpto(upto uint64) ([][]driver.Value, error) {
	var list [][]driver.Value
	err := w.conn.query(context.Background(), func(_ []string, row []driver.Value) error {
		rule := append([]driver.Value(nil), row...)
		rule[1] = ruleKept
		list = append(list, rule)
		return nil
	}, `SELECT rule, what, scope, session, digest, tool, arguments, created, created_by, reason
		FROM `+activeRules+` WHERE seq <= ? ORDER BY seq`, int64(upto))
	return list, err
}

// clock notices when the wall clock jumps: when it was set, or the machine
// slept.
type clock struct {
	wall    func() time.Time
	elapsed func() time.Duration
	start   time.Time
	drift   time.Duration
}

func newClock(wall func() time.Time, elapsed func() time.Duration) clock {
	if elapsed == nil {
		begin := time.Now()
		elapsed = func() time.Duration { return time.Since(begin) }
	}
	return clock{wall: wall, elapsed: elapsed, start: wall().Add(-elapsed())}
}

// step returns by how much the wall clock has jumped since the last look; 0
// when it has not.
func (c *clock) step() time.Duration {
	drift := c.wall().Round(0).Sub(c.start.Round(0)) - c.elapsed()
	step := drift - c.drift
	if step.Abs() < 2*time.Second {
		return 0
	}
	c.drift = drift
	return step
}

// ClockStep is the kind of security event that says that the wall clock
// jumped. Records are ordered by their number, not by time.
const ClockStep = "clock_step"

func (w *writer) noteClock(step time.Duration) {
	e := &SecurityEvent{
		What: ClockStep, Severity: "warn",
		Message: fmt.Sprintf("the clock jumped by %v: it was set, or the machine slept", step.Round(time.Millisecond)),
		Detail:  protocol.Object{{Name: "by_ms", Value: fmt.Appendf(nil, "%d", step.Milliseconds())}}.AppendJSON(nil),
	}
	w.note(w.tables.security, func(w *writer) []driver.Value { return w.security(e) })
}

// mark leaves word for the next start. It may fail, such as on a disk that
// can't be written; the next start then knows less.
func (w *writer) mark(state string) {
	m := mark{State: state, PID: os.Getpid(), Mode: w.opts.Mode, Seq: w.head.seq, Hash: w.head.hex(), Time: w.opts.Now().UTC()}
	if state == markFailing {
		m.Missed = w.queue.unwritten()
	}
	if w.lock.write(&m) == nil {
		w.marked = m
	}
}
