package record

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// Errors of a [Store]. A decision that gets one must not become a yes.
var (
	// ErrTimeout: the record was not on the disk in time.
	ErrTimeout = errors.New("record_timeout: the record was not on the disk within " + strictWait.String())
	// ErrFailing: the file can't be written.
	ErrFailing = errors.New("record_failing")
	// ErrOverloaded: more was recorded than the disk takes.
	ErrOverloaded = errors.New("record_overloaded: too much waits to be written")
	// ErrClosed: the store is closed.
	ErrClosed = errors.New("the record is closed")
)

// The states of an entry. Who waits for it and who writes it agree through
// them what the record says: an answer that was refused is never recorded as a
// yes.
const (
	entryOpen    int32 = iota // not yet written
	entryTaken                // in the transaction that runs
	entryRefused              // the answer is a no, and is to be written as one
	entryLate                 // taken, and the answer has become a no meanwhile
	entrySettled              // on the disk
)

// entry is a record on its way to the disk.
type entry struct {
	table    *table
	time     time.Time
	decision *decision // for decisions
	// build makes the columns of the others, when the writer gets to it. It
	// returns nil when there is nothing to write. refused says that who waits
	// for the record has been told that it failed.
	build func(w *writer, refused error) []driver.Value
	// undo makes the columns of another record of the same table, which takes
	// this one back when it turns out, after it was written, that who waited has
	// been told that it failed; nil when there is nothing to take back.
	undo func(w *writer, refused error) []driver.Value

	bytes  int
	queued time.Time
	seq    uint64 // once it is written
	state  atomic.Int32
	waits  bool
	asNo   bool       // it was written as a no
	done   chan error // for those who wait; holds one

	refusal    error // why it was refused: set by who pushes it, or by the writer
	withdrawal error // why it was withdrawn: set by who waits
}

// withdraw is for who waits no longer: the answer becomes a no. It returns
// false when the record is on the disk after all.
func (e *entry) withdraw(cause error) bool {
	e.withdrawal = cause
	return e.state.CompareAndSwap(entryOpen, entryRefused) || e.state.CompareAndSwap(entryTaken, entryLate) || e.state.Load() == entryRefused
}

// refused says why an entry is to be written as a no; nil when it is not.
func (e *entry) refused() error {
	if s := e.state.Load(); s != entryRefused && s != entryLate {
		return nil
	}
	if e.refusal != nil {
		return e.refusal
	}
	return e.withdrawal
}

// queue holds what is to be written, and how the writing goes. Its lock is held
// for a few instructions only.
type queue struct {
	denies, strict bool
	rows           int
	bytesMax       int

	wake chan struct{} // holds one: the writer should look

	mu      sync.Mutex
	entries []*entry
	bytes   int       // of entries and of what the writer has taken
	taken   int       // entries that the writer has taken and not yet written
	oldest  time.Time // when the first of those was queued
	urgent  bool      // somebody waits, or there is enough
	closed  bool
	room    chan struct{} // closed when there is room again

	missed       map[string]uint64 // by table, since the last gap record
	missedFrom   time.Time
	missedTo     time.Time
	missedTotal  uint64
	refusedTotal uint64
	since        time.Time // of the failure or the lag
	failure      error     // why writing does not work
	busy         bool      // another process has locked the file
	lastError    string
}

func newQueue(denies, strict bool) *queue {
	return &queue{
		denies: denies, strict: strict, rows: queueRows, bytesMax: queueBytes,
		wake: make(chan struct{}, 1), room: make(chan struct{}), missed: map[string]uint64{},
	}
}

// refusal says why an answer can't be a yes now; nil when it may be one.
func (q *queue) refusal() error {
	if !q.denies {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.failure == nil:
		return nil
	case !q.busy:
		return fmt.Errorf("%w: %w", ErrFailing, q.failure)
	case !q.strict && time.Since(q.since) > lagLimit: // in strict, who waits finds out
		return fmt.Errorf("%w: %w", ErrFailing, q.failure)
	}
	return nil
}

// add puts an entry into the queue. When there is no room, and it pays to wait
// for some, it returns a channel that is closed when there may be.
func (q *queue) add(e *entry) (ok bool, room <-chan struct{}, err error) {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return false, nil, ErrClosed
	}
	if len(q.entries)+q.taken >= q.rows || q.bytes+e.bytes > q.bytesMax && q.bytes > 0 {
		if q.failure == nil {
			room = q.room
		}
		q.mu.Unlock()
		return false, room, nil
	}
	e.queued = time.Now()
	q.entries = append(q.entries, e)
	q.bytes += e.bytes
	wake := len(q.entries) == 1 && q.taken == 0
	if !q.urgent && (e.waits || len(q.entries) >= batchEarly || q.bytes >= earlyBytes) {
		q.urgent, wake = true, true
	}
	q.mu.Unlock()
	if wake {
		q.signal()
	}
	return true, nil, nil
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// push adds an entry, and counts it as missed when that can't be done.
func (q *queue) push(e *entry) error {
	ok, room, err := q.add(e)
	if !ok && room != nil {
		timer := time.NewTimer(queueWait)
		defer timer.Stop()
		for waiting := true; !ok && room != nil && waiting; {
			select {
			case <-room:
				ok, room, err = q.add(e)
			case <-timer.C:
				waiting = false
			}
		}
	}
	if ok {
		return nil
	}
	if err == nil {
		err = ErrOverloaded
	}
	q.miss(e.table.name, e.time)
	return err
}

// miss counts a record that will not be written.
func (q *queue) miss(table string, at time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.missed) == 0 || at.Before(q.missedFrom) {
		q.missedFrom = at
	}
	if at.After(q.missedTo) {
		q.missedTo = at
	}
	q.missed[table]++
	q.missedTotal++
	if len(q.missed) == 1 && q.missed[table] == 1 {
		q.signal() // so that the gap is told although nothing else comes
	}
}

// take moves entries to the writer, as many as one transaction may hold beside
// those it has already.
func (q *queue) take(into []*entry) []*entry {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, bytes := 0, 0
	for n < len(q.entries) && len(into)+n < maxRows && bytes < maxBytes {
		bytes += q.entries[n].bytes
		n++
	}
	if q.taken == 0 && n > 0 {
		q.oldest = q.entries[0].queued
	}
	into = append(into, q.entries[:n]...)
	q.taken += n
	rest := copy(q.entries, q.entries[n:])
	clear(q.entries[rest:])
	q.entries = q.entries[:rest]
	q.urgent = rest >= batchEarly
	for _, e := range q.entries {
		if q.urgent {
			break
		}
		q.urgent = e.waits
	}
	return into
}

// release gives back the room of entries that are written.
func (q *queue) release(entries, bytes int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.taken -= entries
	q.bytes -= bytes
	close(q.room)
	q.room = make(chan struct{})
}

// fail notes that writing does not work, and reports whether that is news.
func (q *queue) fail(err error, busy bool) (news bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	news = q.failure == nil || q.busy != busy
	if news {
		q.since = time.Now()
	}
	q.failure, q.busy, q.lastError = err, busy, err.Error()
	return news
}

func (q *queue) failing() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.failure != nil
}

// due returns when the oldest entry was queued, zero when there is none,
// whether there is reason to hurry, and whether no more come.
func (q *queue) due() (oldest time.Time, urgent, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.entries) > 0 {
		oldest = q.entries[0].queued
	}
	return oldest, q.urgent, q.closed
}

func (q *queue) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.entries) == 0
}

// waiting returns those entries that somebody waits for.
func (q *queue) waiting() []*entry {
	q.mu.Lock()
	defer q.mu.Unlock()
	var list []*entry
	for _, e := range q.entries {
		if e.waits {
			list = append(list, e)
		}
	}
	return list
}

// abandon counts all that is not written as missed, and returns what the next
// gap record would tell.
func (q *queue) abandon(pending []*entry) map[string]uint64 {
	q.mu.Lock()
	rest := append(q.entries, pending...)
	q.entries, q.taken, q.bytes = nil, 0, 0
	q.mu.Unlock()
	for _, e := range rest {
		q.miss(e.table.name, e.time)
	}
	if g := q.gap(); g != nil {
		return g.missed
	}
	return nil
}

// recovered notes that writing works, and returns for how long it has not, and
// whether it has not.
func (q *queue) recovered() (time.Duration, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	was := q.failure
	q.failure, q.busy = nil, false
	if was == nil {
		return 0, nil
	}
	return time.Since(q.since), was
}

// gap returns what was missed so far; nil when nothing was.
func (q *queue) gap() *gapCount {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.missed) == 0 {
		return nil
	}
	return &gapCount{missed: maps.Clone(q.missed), from: q.missedFrom, to: q.missedTo, why: q.failure}
}

// unwritten counts what was missed and what waits.
func (q *queue) unwritten() map[string]uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.missed) == 0 && len(q.entries)+q.taken == 0 {
		return nil
	}
	all := maps.Clone(q.missed)
	for _, e := range q.entries {
		all[e.table.name]++
	}
	if q.taken > 0 {
		all["decisions"] += uint64(q.taken)
	}
	return all
}

// told takes back what a gap record on the disk has told.
func (q *queue) told(g *gapCount) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for name, n := range g.missed {
		if q.missed[name] -= n; q.missed[name] == 0 {
			delete(q.missed, name)
		}
	}
	q.missedFrom = g.to
}

// gapCount is what a gap record tells.
type gapCount struct {
	missed   map[string]uint64
	from, to time.Time
	why      error
	atMost   time.Duration // what may be missing, when that is not known
}

// refuse counts an answer that becomes a no.
func (q *queue) refuse(err error) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.refusedTotal++
	return err
}

// close lets nothing more in, and reports whether it was open.
func (q *queue) close() bool {
	q.mu.Lock()
	was := !q.closed
	q.closed = true
	q.mu.Unlock()
	q.signal()
	return was
}
