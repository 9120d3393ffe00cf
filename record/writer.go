package record

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"time"

	"go.uber.org/zap"
)

// faults lets tests make things go wrong. The zero value does nothing.
type faults struct {
	// begin runs before, commit at the end of every transaction, on the writer's
	// goroutine; an error is one of the transaction.
	begin, commit func(*conn) error
	// elapsed is the running time since the start; nil = the monotonic clock.
	elapsed func() time.Duration
}

// writer writes the file. It belongs to one goroutine, except for what is
// marked.
type writer struct {
	opts   *Options
	log    *zap.Logger
	tables *tables
	queue  *queue
	store  *Store
	faults faults
	lock   *lockFile
	giveUp chan struct{} // closed when what waits is not to be waited for any more

	*file
	chain   *chain
	calls   calls
	pending []*entry // taken from the queue, not on the disk yet
	notes   []*entry // hookd's own, to be written before those
	values  []driver.Value
	args    []driver.Value
	timer   *time.Timer

	pause    time.Duration // before the next attempt after a failure
	retryAt  time.Time
	lastTick time.Time
	lastFold time.Time
	retained time.Time // when retention last looked and found nothing to do
	marked   mark
	odd      string // why the file is not as hookd left it, until the rules in it are ended; "" = it is
	clock    clock
	closeErr error // for Close, after run has returned

	published published
}

// file is the file that is written, as far as it is known.
type file struct {
	conn    *conn // nil when it must be opened anew
	info    os.FileInfo
	wal     os.FileInfo // of SQLite's log, and of
	shm     os.FileInfo // the memory it shares with readers
	head    head        // what is on the disk
	headRow int64       // what its row chain_head says
	first   uint64
	folded  uint64 // up to where the summary of sessions is made
	suspect bool   // it may be damaged
	attempt head   // the end of the chain, if the last commit that failed took place after all
	expired head   // the same, of retention: what it took out can't be put back
}

// newWriter opens the file and records what there is to say about that.
func newWriter(s *Store, f faults) (*writer, error) {
	w := &writer{
		opts: &s.opts, log: s.opts.Log, tables: s.tables, queue: s.queue, store: s, faults: f,
		giveUp: make(chan struct{}), chain: newChain(), timer: time.NewTimer(time.Hour),
	}
	w.clock = newClock(s.opts.Now, f.elapsed)
	if err := ensureFolder(w.opts.Path); err != nil {
		return nil, err
	}
	var last *mark
	var err error
	if w.lock, last, err = lock(w.opts.Path); err != nil {
		return nil, err
	}
	for until := time.Now().Add(openWait); ; {
		err = w.start(last)
		if err == nil {
			break
		}
		if troubleOf(err) != troubleBusy || time.Now().After(until) {
			return nil, errors.Join(err, w.lock.close())
		}
	}
	w.publish()
	w.mark(markOpen)
	return w, nil
}

// run writes until the queue is closed and empty, or giveUp.
func (w *writer) run() {
	defer w.timer.Stop()
	for {
		due, closing := w.wait()
		if due {
			w.step()
		}
		if now := time.Now(); now.Sub(w.lastTick) >= watchEvery {
			w.lastTick = now
			w.tick()
		}
		if closing && (w.idle() && (w.pause > 0 || len(w.notes) == 0 && w.queue.gap() == nil) || w.gaveUp()) {
			w.finish()
			return
		}
	}
}

// idle reports whether nobody's records wait.
func (w *writer) idle() bool { return len(w.pending) == 0 && w.queue.empty() }

func (w *writer) gaveUp() bool {
	select {
	case <-w.giveUp:
		return true
	default:
		return false
	}
}

// wait returns when it is time to write, to tick or to close.
func (w *writer) wait() (due, closing bool) {
	for {
		at, urgent, closed := w.queue.due()
		if len(w.pending) > 0 {
			at, urgent = w.lastTick, true
		}
		if closed && w.gaveUp() {
			return false, true
		}
		if !at.IsZero() && !urgent && !closed {
			at = at.Add(batchDelay)
		}
		if at.IsZero() && (len(w.notes) > 0 || w.queue.gap() != nil) {
			at = w.lastTick
		}
		if closed && (at.IsZero() || w.pause > 0 && w.idle()) {
			return false, true
		}
		if w.pause > 0 && (at.IsZero() || at.Before(w.retryAt)) {
			at = w.retryAt
		}
		now := time.Now()
		if !at.IsZero() && !at.After(now) {
			return true, closed
		}
		next := w.lastTick.Add(watchEvery)
		if !next.After(now) {
			return false, closed
		}
		if !at.IsZero() && at.Before(next) {
			next = at
		}
		w.timer.Reset(next.Sub(now))
		select {
		case <-w.queue.wake:
		case <-w.timer.C:
		case <-w.giveUp:
		}
	}
}

// step makes one attempt to write.
func (w *writer) step() {
	w.pending = w.queue.take(w.pending)
	if err := w.write(); err != nil {
		w.failed(err)
		return
	}
	w.pause, w.retryAt = 0, time.Time{}
	if lasted, was := w.queue.recovered(); was != nil {
		w.log.Warn("record: writing works again", zap.Duration("after", lasted), zap.String("was", was.Error()), zap.String("path", w.opts.Path))
		w.mark(markOpen)
	}
	if w.marked.head() != w.head {
		w.mark(markOpen) // so that the next start knows what there was
	}
	w.publish()
}

// tick does what is to be done from time to time.
func (w *writer) tick() {
	if step := w.clock.step(); step != 0 {
		w.noteClock(step)
	}
	if w.pause > 0 && w.retryAt.After(time.Now()) {
		w.mark(markFailing)
		return
	}
	if w.conn == nil || !w.same() {
		w.step() // opens it anew
		return
	}
	if w.pause > 0 {
		return
	}
	if err := w.upkeep(); err != nil {
		w.failed(err)
		return
	}
	w.publish()
}

// upkeep keeps the summary of sessions up to date and the file within its
// limits.
func (w *writer) upkeep() error {
	if w.folded < w.head.seq && time.Since(w.lastFold) >= foldEvery {
		if err := w.fold(); err != nil {
			return err
		}
	}
	return w.retain()
}

// same reports whether the file that is open, and its log, are still those at
// their path.
func (w *writer) same() bool { return isFile(w.opts.Path, w.info) && isFile(w.opts.Path+"-wal", w.wal) }

// failed deals with an attempt that came to nothing.
func (w *writer) failed(err error) {
	kind := troubleOf(err)
	busy := kind == troubleBusy
	if first := w.queue.fail(err, busy); first {
		w.log.Error("record: can't be written", zap.String("path", w.opts.Path), zap.Error(err), zap.String("decisions", string(w.opts.OnFailure)))
	}
	switch {
	case busy:
		w.pause = retryFirst / 2
	default:
		w.pause = min(max(2*w.pause, retryFirst), retryMax)
		w.refuseAll(fmt.Errorf("%w: %w", ErrFailing, err))
	}
	if !busy && kind != troubleFull {
		w.drop(kind == troubleCorrupt)
	}
	w.retryAt = time.Now().Add(w.pause)
	w.publish()
	w.mark(markFailing)
}

// drop closes the file, which is to be opened anew.
func (w *writer) drop(suspect bool) {
	if w.conn != nil {
		if !w.same() {
			w.rescue()
		}
		_ = w.conn.close() // whatever it says: it is not used any more
		w.conn = nil
	}
	w.suspect = w.suspect || suspect
}

// rescue is for a file that is no longer the one at its path, or whose log is
// not.
func (w *writer) rescue() {
	if isFile(w.opts.Path, w.info) {
		// Only the log is gone: what was in it goes into the file.
		_, _ = w.conn.row("PRAGMA wal_checkpoint(TRUNCATE)")
	}
	w.conn.keepLog()
	if isFile(w.opts.Path, w.info) {
		return
	}
	// The log that the old file has left must not be taken for one of the new.
	for suffix, ours := range map[string]os.FileInfo{"-wal": w.wal, "-shm": w.shm} {
		if isFile(w.opts.Path+suffix, ours) {
			_ = os.Remove(w.opts.Path + suffix)
		}
	}
}

// isFile reports whether the file at path is this one.
func isFile(path string, info os.FileInfo) bool {
	now, err := os.Stat(path)
	return err == nil && info != nil && os.SameFile(now, info)
}

// refuseAll tells all who wait that it is a no. What they wait for is recorded
// as one when that is possible.
func (w *writer) refuseAll(err error) {
	for _, e := range append(w.queue.waiting(), w.pending...) {
		if e.waits && e.state.CompareAndSwap(entryOpen, entryRefused) {
			e.refusal = err
			e.done <- err
		}
	}
}

// finish leaves the file complete and durable.
func (w *writer) finish() {
	w.refuseAll(ErrClosed)
	missed := w.queue.abandon(w.pending)
	var err error
	if len(missed) > 0 {
		err = fmt.Errorf("%d records are not written", total(missed))
	}
	if w.conn != nil {
		if w.folded < w.head.seq {
			_ = w.fold() // the next start does it otherwise
		}
		if _, ckErr := w.conn.row("PRAGMA wal_checkpoint(TRUNCATE)"); ckErr != nil && troubleOf(ckErr) != troubleBusy {
			err = errors.Join(err, ckErr)
		}
		err = errors.Join(err, w.conn.close())
	}
	state := markClosed
	if err != nil {
		state = markFailing
	}
	w.mark(state)
	w.closeErr = errors.Join(err, w.lock.close())
	w.publish()
}
