package record

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/hookd/hookd/protocol"
)

// What a gap record tells about.
const (
	gapMissed   = "missed"   // records that could not be written
	gapUnclean  = "unclean"  // hookd was not closed
	gapDeleted  = "deleted"  // the file was
	gapReplaced = "replaced" // the file was, by another
	gapDamaged  = "damaged"  // the file was moved aside
	gapLost     = "lost"     // records that had been written are not there
	gapForeign  = "foreign"  // somebody else has written
	gapBroken   = "broken"   // the chain does not fit
)

// start opens the file for the first time, and records what there is to say:
// that hookd was not closed, what became of the file meanwhile, and which
// approvals were open.
func (w *writer) start(last *mark) error {
	clean := last != nil && last.State == markClosed
	f, err := w.openFile(!clean, false)
	if err != nil {
		return err
	}
	w.notes, w.odd = nil, ""
	w.use(f)
	var was head
	if last != nil {
		was = last.head()
	}
	switch {
	case f.movedAside != "":
		w.noteMoved(f, was)
	case f.fresh && was.seq > 0:
		w.continueFrom(was, gapDeleted, "the file was not there at the start; the records up to %d went with it", was.seq)
	case f.lostLog:
		w.gap(gapDamaged, nil, "nothing in SQLite's log could be used; what was in it is not known")
	case !f.fresh || last != nil && !clean:
		w.noteStart(f, last, was, clean)
	}
	err = w.checkRules()
	if err == nil {
		err = w.endRules()
	}
	if err == nil {
		err = w.abandonApprovals()
	}
	if err == nil {
		err = w.write()
	}
	if err != nil && w.conn != nil {
		_ = w.conn.close()
		w.conn = nil
	}
	return err
}

// use makes f the file that is written.
func (w *writer) use(f *found) {
	w.file = &file{conn: f.conn, info: f.file, wal: f.log, shm: f.shared, head: f.head, headRow: f.headRow, first: f.first}
	if f.repaired != "" {
		w.log.Warn("record: indexes were repaired", zap.String("path", w.opts.Path), zap.String("problem", f.repaired))
		w.gap(gapDamaged, nil, "SQLite found, and repaired by building the indexes anew: %s", f.repaired)
	}
	for _, o := range f.odd {
		w.log.Error("record: the file was changed", zap.String("path", w.opts.Path), zap.String("what", o.String()))
	}
	if len(f.odd) > 0 {
		w.gap(gapBroken, nil, "%s; it was set right", f.odd[0].String())
	}
	if b := f.broken; b != nil {
		w.log.Error("record: the chain is broken", zap.String("path", w.opts.Path), zap.Uint64("seq", b.Seq), zap.String("table", b.Table), zap.String("what", b.What))
		w.gap(gapBroken, nil, "at record %d (%s): %s", b.Seq, b.Table, b.What)
	}
}

// noteStart compares a file with what hookd knew when it ended.
func (w *writer) noteStart(f *found, last *mark, was head, clean bool) {
	if was.seq > f.head.seq {
		w.gap(gapLost, &gapCount{from: f.last, to: last.Time}, "the records %d to %d had been written and are not in the file", f.head.seq+1, was.seq)
	}
	switch {
	case last == nil && f.head.seq > 0:
		w.gap(gapUnclean, &gapCount{from: f.last, to: w.opts.Now()}, "its lock file was not there: how hookd ended is not known")
		w.odd = "its lock file was not there"
	case last == nil || clean:
		if clean && f.head.seq > was.seq {
			w.gap(gapForeign, nil, "the file ends at record %d, and hookd had closed it at %d", f.head.seq, was.seq)
		} else if clean && f.head.seq == was.seq && f.head != was {
			w.gap(gapReplaced, nil, "another file with as many records is there")
		}
	default:
		if other, err := w.isOther(was); err != nil || other {
			w.gap(gapReplaced, nil, "another file is there: its record %d is not the one that was written", was.seq)
		}
		w.noteUnclean(f, last)
	}
}

// isOther reports whether the file holds another record than the one of which
// the lock file knows.
func (w *writer) isOther(was head) (bool, error) {
	if was.seq == 0 || was.seq < w.first || was.seq > w.head.seq {
		return false, nil
	}
	row, err := w.hashAndTime(was.seq)
	if err != nil {
		return false, err
	}
	is := head{seq: was.seq}
	return row == nil || !is.setHash(row[0]) || is != was, nil
}

// noteUnclean says what may be missing because hookd was not closed.
func (w *writer) noteUnclean(f *found, last *mark) {
	why := "hookd was not closed"
	g := &gapCount{from: f.last, to: w.opts.Now()}
	switch {
	case last.State == markFailing:
		g.missed = last.Missed
		why += "; it could not write the record then: what it last knew to be missing is counted"
	case last.Mode == ModeStrict:
		why += "; no answer was given without its record"
	default:
		g.atMost = 100 * time.Millisecond
		why += "; at most the last 100 ms are missing"
	}
	w.log.Warn("record: "+why, zap.String("path", w.opts.Path), zap.Uint64("seq", f.head.seq))
	w.gap(gapUnclean, g, "%s", why)
}

// noteMoved says that a damaged file was moved aside, and where.
func (w *writer) noteMoved(f *found, was head) {
	w.setMovedAside(f.movedAside)
	w.log.Error("record: the file was damaged and is moved aside", zap.String("path", w.opts.Path), zap.String("moved_to", f.movedAside), zap.Error(f.damage))
	w.continueFrom(was, gapDamaged, "the file could not be used (%v) and is now %s; the records up to %d are in it", f.damage, filepath.Base(f.movedAside), was.seq)
}

// continueFrom begins a fresh file where the chain of another ended.
func (w *writer) continueFrom(was head, what, format string, args ...any) {
	w.head, w.headRow = was, 0
	reason := fmt.Sprintf(format, args...)
	earlier := w.notes
	w.notes = nil
	if was.seq > 0 {
		w.anchor(was, 0, reason)
	}
	w.gap(what, nil, "%s", reason)
	w.notes = append(w.notes, earlier...)
}

func (w *writer) anchor(was head, deleted int64, reason string) {
	w.note(w.tables.anchors, func(w *writer) []driver.Value {
		return []driver.Value{int64(was.seq) + 1, was.hash[:], numberOrNull(deleted), w.text(reason)}
	})
}

// gap adds a gap record to the notes.
func (w *writer) gap(what string, g *gapCount, format string, args ...any) {
	if g == nil {
		g = &gapCount{}
	}
	reason := fmt.Sprintf(format, args...)
	switch what {
	case gapLost, gapForeign, gapReplaced, gapBroken:
		w.odd = reason
	}
	if what == gapDeleted || what == gapReplaced {
		w.setReplaced(w.opts.Now())
	}
	w.note(w.tables.gaps, func(w *writer) []driver.Value { return gapRow(what, g, reason) })
}

// checkRules looks whether the records of the rules that hold, wherever they
// are in the chain, fit those around them.
func (w *writer) checkRules() error {
	v := verifier{c: w.conn, tables: w.tables, chain: w.chain, rows: map[uint64]rowToVerify{}}
	var seqs []uint64
	err := w.conn.query(context.Background(), func(_ []string, row []driver.Value) error {
		if n, ok := row[0].(int64); ok && n > 0 {
			seqs = append(seqs, uint64(n))
		}
		return nil
	}, "SELECT seq FROM "+activeRules+" WHERE scope IS NOT ? ORDER BY seq", ScopeCancelled)
	for _, seq := range seqs {
		if err != nil || w.odd != "" {
			break
		}
		if err = v.read(max(seq, 2)-1, seq+1); err != nil {
			break
		}
		h := &head{}
		if seq > 1 {
			if h, err = v.before(seq); err != nil {
				break
			}
			if row, ok := v.rows[seq-1]; ok {
				h = &head{seq: seq - 1}
				if !h.setHash(row.values[2]) {
					h = nil
				}
			}
		}
		b := &Break{Seq: seq, Table: w.tables.rules.name, What: "what was before it is gone, and no anchor says so"}
		if h != nil {
			b = v.next(h)
		}
		if b == nil && seq < w.head.seq {
			b = v.next(h)
		}
		if b != nil {
			w.log.Error("record: the chain is broken", zap.String("path", w.opts.Path), zap.Uint64("seq", b.Seq), zap.String("table", b.Table), zap.String("what", b.What))
			w.gap(gapBroken, nil, "at record %d (%s): %s", b.Seq, b.Table, b.What)
		}
	}
	return err
}

// endRules revokes all standing rules of a file that is not as hookd left it,
// since any of them may be made up; and not only for now, because later starts
// can't tell any more. Sessions stay cancelled.
func (w *writer) endRules() error {
	why := w.odd
	if why == "" {
		return nil
	}
	count := 0
	err := w.conn.query(context.Background(), func(_ []string, row []driver.Value) error {
		count++
		row = slices.Clone(row)
		w.note(w.tables.rules, func(w *writer) []driver.Value {
			return []driver.Value{row[0], ruleRevoked, row[1], row[2], row[3], row[4], nil, w.opts.Now().UnixMicro(), "hookd", "the record is not as hookd left it"}
		})
		return nil
	}, "SELECT rule, scope, session, digest, tool FROM "+activeRules+" WHERE scope IS NOT ? ORDER BY seq", ScopeCancelled)
	if err != nil {
		return err
	}
	w.odd = ""
	if count == 0 {
		return nil
	}
	w.log.Error("record: the file is not as hookd left it, so that no standing rule of it holds any more",
		zap.String("path", w.opts.Path), zap.Int("rules", count), zap.String("why", why))
	w.gap(gapBroken, nil, "%s; so %d standing rules of it do not hold any more", why, count)
	w.odd = ""
	return nil
}

func (w *writer) missedGap(g *gapCount) []driver.Value {
	reason := "more was to be recorded than the disk took"
	if g.why != nil {
		reason = g.why.Error()
	}
	return gapRow(gapMissed, g, reason)
}

func gapRow(what string, g *gapCount, reason string) []driver.Value {
	var missed, sum driver.Value
	if g.missed != nil {
		b, _ := protocol.Marshal(g.missed) // a map of numbers can't fail
		missed, sum = string(b), int64(total(g.missed))
	}
	return []driver.Value{what, timeOrNull(g.from), timeOrNull(g.to), missed, sum, numberOrNull(g.atMost.Milliseconds()), clip(reason, maxText)}
}

func total(missed map[string]uint64) (n uint64) {
	for _, m := range missed {
		n += m
	}
	return n
}

// abandonApprovals turns approvals that were open when hookd ended into a no.
func (w *writer) abandonApprovals() error {
	const reason = "hookd ended while it was open"
	return w.conn.query(context.Background(), func(_ []string, row []driver.Value) error {
		row = append([]driver.Value(nil), row...)
		w.note(w.tables.approvals, func(*writer) []driver.Value {
			v := append([]driver.Value{row[0], "answered"}, row[1:]...)
			return append(v, int64(0), OutcomeAbandoned, reason, "hookd", nil, nil, nil)
		})
		return nil
	}, `SELECT ticket, digest, tool, arguments, session, agent, user, task, node, pid, uid, opened, expires, timeout_ms
		FROM approval_tickets WHERE answered IS NULL ORDER BY seq`)
}

// reopen opens the file anew, after a failure or because another is there, and
// notes what became of the old one.
func (w *writer) reopen() error {
	before := w.file
	moved := !w.same()
	w.drop(false)
	f, err := w.openFile(false, before.suspect)
	if err != nil {
		return err
	}
	sameFile := os.SameFile(f.file, before.info)
	if sameFile && f.head == before.attempt && f.head != before.head {
		if err := f.takeBack(w.tables, before.head); err != nil {
			_ = f.conn.close()
			return err
		}
	}
	w.use(f)
	was := before.head
	if !f.fresh && (!sameFile || f.head.seq < was.seq) { // the numbers mean other records
		w.calls = calls{}
	}
	switch {
	case f.movedAside != "":
		w.noteMoved(f, was)
	case f.fresh:
		w.continueFrom(was, gapDeleted, "the file was deleted while it was written; the records %d to %d went with it", before.first, was.seq)
	case !sameFile:
		w.gap(gapReplaced, nil, "the file was replaced by another that ends at record %d; the old one ended at %d", f.head.seq, was.seq)
	case f.head.seq < was.seq:
		w.gap(gapLost, &gapCount{from: f.last, to: w.opts.Now()}, "the records %d to %d had been written and are not in the file", f.head.seq+1, was.seq)
	case f.head != was && f.head != before.expired:
		w.gap(gapForeign, nil, "another process has written to the file: it ends at record %d instead of %d", f.head.seq, was.seq)
	}
	if err := w.endRules(); err != nil {
		return err
	}
	if moved {
		w.log.Warn("record: the file or its log was deleted or replaced, and is opened anew", zap.String("path", w.opts.Path))
	}
	return nil
}

// takeBack removes what a transaction has left that failed and yet took place,
// so that it can be written again.
func (f *found) takeBack(t *tables, to head) error {
	sql := "BEGIN IMMEDIATE;\n"
	for _, t := range t.all() {
		sql += fmt.Sprintf("DELETE FROM %s WHERE seq > %d;\n", t.name, to.seq)
	}
	sql += "DELETE FROM chain_head;\n"
	if to.seq > 0 {
		sql += fmt.Sprintf("INSERT INTO chain_head VALUES (1, %d, x'%s');\n", to.seq, to.hex())
	}
	if err := f.conn.script(sql + "COMMIT"); err != nil {
		return errors.Join(err, f.conn.script("ROLLBACK"))
	}
	f.head, f.headRow = to, int64(to.seq)
	return nil
}
