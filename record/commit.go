package record

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
)

// errMoved: the file was deleted or replaced while it was written.
var errMoved = errors.New("the file was deleted or replaced")

// errForeign: the end of the chain is not where we left it.
var errForeign = errors.New("another process has written records")

// write puts the notes, what was missed and what is pending on the disk, in one
// transaction. On an error nothing of it is there, and all of it still waits.
func (w *writer) write() error {
	err := w.attemptWrite()
	if errors.Is(err, errMoved) {
		err = w.attemptWrite()
	}
	if err != nil {
		w.untake()
	}
	return err
}

func (w *writer) attemptWrite() error {
	if w.conn == nil || !w.same() {
		if err := w.reopen(); err != nil {
			return err
		}
	}
	missed := w.queue.gap()
	if len(w.notes)+len(w.pending) == 0 && missed == nil {
		return w.probe()
	}
	var h head
	err := w.transact(func() (err error) {
		h, err = w.insertAll(missed)
		w.attempt = h
		return err
	})
	if err == nil && !w.same() {
		err = errMoved // what was just written went with it
		w.drop(false)
	}
	if err != nil {
		return err
	}
	w.written(h, missed)
	return nil
}

// probe finds out, when there is nothing to write, whether it would be
// possible again.
func (w *writer) probe() error {
	if !w.queue.failing() {
		return nil
	}
	return w.transact(func() error {
		_, err := w.conn.exec("UPDATE sessions_upto SET opened = ?", w.opts.Now().UnixMicro())
		return err
	})
}

// transact runs f in a transaction.
func (w *writer) transact(f func() error) error {
	if w.faults.begin != nil {
		if err := w.faults.begin(w.conn); err != nil {
			return err
		}
	}
	if _, err := w.conn.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := f()
	if err == nil && w.faults.commit != nil {
		err = w.faults.commit(w.conn)
	}
	if err == nil {
		_, err = w.conn.exec("COMMIT")
	}
	if err != nil {
		_, _ = w.conn.exec("ROLLBACK") // it may have been rolled back already
	}
	return err
}

// insertAll puts everything that waits into the transaction, and returns the
// end of the chain then.
func (w *writer) insertAll(missed *gapCount) (head, error) {
	h := w.head
	var err error
	for _, e := range w.notes {
		if h, err = w.insert(h, e.table, e.time, e.build(w, nil)); err != nil {
			return h, err
		}
	}
	if missed != nil {
		if h, err = w.insert(h, w.tables.gaps, w.opts.Now(), w.missedGap(missed)); err != nil {
			return h, err
		}
	}
	for _, e := range w.pending {
		if h, err = w.insertEntry(h, e); err != nil {
			return h, err
		}
	}
	n, err := w.conn.exec(`INSERT INTO chain_head VALUES (1, ?, ?) ON CONFLICT (id) DO UPDATE SET seq = excluded.seq, hash = excluded.hash WHERE seq = ?`,
		int64(h.seq), h.hash[:], w.headRow)
	if err == nil && n != 1 {
		err = errForeign
	}
	return h, err
}

func (w *writer) insertEntry(h head, e *entry) (head, error) {
	e.state.CompareAndSwap(entryOpen, entryTaken)
	no := e.refused()
	e.asNo = no != nil
	d := e.decision
	var row []driver.Value
	if d == nil {
		row = e.build(w, no)
	} else {
		row = w.columns(d, no)
	}
	if row == nil {
		return h, nil
	}
	session, agent := row[0], row[1]
	h, err := w.insert(h, e.table, e.time, row)
	e.seq = h.seq
	if err != nil || d == nil {
		return h, err
	}
	w.calls.written(d.call, e.seq)
	for i := range d.trail {
		step := &d.trail[i]
		if !step.Outcome.Failed() {
			continue
		}
		f := Failure{Hook: step.Hook, Stage: d.stage.Name, Outcome: step.Outcome, Detail: step.Detail}
		row := w.failure(&f, int64(e.seq))
		row[5], row[6] = session, agent
		if h, err = w.insert(h, w.tables.failures, e.time, row); err != nil {
			return h, err
		}
	}
	return h, nil
}

// insert adds one record to the chain that ends at h.
func (w *writer) insert(h head, t *table, at time.Time, row []driver.Value) (head, error) {
	if len(row) != len(t.columns) {
		return h, fmt.Errorf("%s: %d values for %d columns", t.name, len(row), len(t.columns))
	}
	seq, micros := int64(h.seq)+1, at.UnixMicro()
	c := w.chain
	c.start(h.hash, t.name)
	c.number("seq", seq)
	c.number("time", micros)
	for i, name := range t.columns {
		if err := c.add(name, row[i]); err != nil {
			return h, err
		}
	}
	next := head{seq: uint64(seq), hash: c.sum()}
	sql, args := t.insertFor(row, append(w.args[:0], seq, micros, next.hash[:]))
	w.args = args
	if _, err := w.conn.exec(sql, args...); err != nil {
		return h, err
	}
	return next, nil
}

// untake makes what was in a failed transaction wait again.
func (w *writer) untake() {
	for _, e := range w.pending {
		if !e.state.CompareAndSwap(entryTaken, entryOpen) {
			e.state.CompareAndSwap(entryLate, entryRefused)
		}
	}
}

// written settles what is on the disk now.
func (w *writer) written(h head, missed *gapCount) {
	if w.first == 0 {
		w.first = w.head.seq + 1
	}
	w.head, w.headRow = h, int64(h.seq)
	clear(w.notes)
	w.notes = w.notes[:0]
	if missed != nil {
		w.queue.told(missed)
		w.log.Warn("record: some records are missing", zap.Any("missed", missed.missed))
	}
	w.settle()
}

// settle tells those who wait, and amends what the record says of those who
// have waited in vain.
func (w *writer) settle() {
	bytes := 0
	for _, e := range w.pending {
		bytes += e.bytes
		switch {
		case e.state.CompareAndSwap(entryTaken, entrySettled):
			if e.waits {
				e.done <- nil // and it is no longer ours
				continue
			}
		case e.refused() != nil && !e.asNo:
			w.amend(e)
		}
		if !e.waits {
			w.store.recycle(e)
		}
	}
	w.queue.release(len(w.pending), bytes)
	clear(w.pending)
	w.pending = w.pending[:0]
}

// amend takes back what was recorded of a yes that became a no.
func (w *writer) amend(e *entry) {
	cause := e.refused()
	if e.undo != nil {
		undo := e.undo
		w.note(e.table, func(w *writer) []driver.Value { return undo(w, cause) })
	}
	if e.decision == nil {
		return
	}
	seq, stage := int64(e.seq), string(e.decision.stage.Name)
	session, pid := e.decision.session, e.decision.pid
	w.note(w.tables.amendments, func(w *writer) []driver.Value {
		return []driver.Value{seq, "denied", w.text(cause.Error()), id(session), stage, nil, idOrNull(pid)}
	})
}

// note adds a record of hookd's own to what is to be written.
func (w *writer) note(t *table, build func(w *writer) []driver.Value) {
	w.notes = append(w.notes, &entry{
		table: t, time: w.opts.Now(),
		build: func(w *writer, _ error) []driver.Value { return build(w) },
	})
}
