package record

import (
	"maps"
	"sync"
	"time"
)

// State says in a word how the record is.
type State string

// The states.
const (
	StateOff State = "off"
	StateOK  State = "ok"
	// StateLagging: what is recorded waits longer than it should, because the
	// file is locked or the disk is slow. Nothing is lost yet.
	StateLagging State = "lagging"
	// StateFailing: the file can't be written. Decisions follow OnFailure.
	StateFailing State = "failing"
)

// Status is how the record is, at one moment.
type Status struct {
	State     State
	Mode      Mode
	OnFailure OnFailure
	Path      string
	// Seq and Hash are of the last record on the disk.
	Seq  uint64
	Hash string
	// First is the oldest record that is kept.
	First uint64
	// Bytes is the size of the file with its log.
	Bytes int64
	// Queued records, QueuedBytes long, are not on the disk yet; Lag is how long
	// the oldest has waited.
	Queued      int
	QueuedBytes int
	Lag         time.Duration
	// Missed counts, by table, what could not be written and no gap record has
	// told yet; MissedTotal what could not be written since the start.
	Missed      map[string]uint64
	MissedTotal uint64
	// Refused counts answers that became a no because of the record.
	Refused    uint64
	LastCommit time.Time
	// Error says what is wrong now, Since since when; empty when nothing is.
	Error string
	Since time.Time
	// LastError is the last thing that was wrong; it stays.
	LastError string
	// MovedAside is where a damaged file was moved; "" = there was none.
	MovedAside string
	// Replaced is when the file was last found to be deleted or replaced, and was
	// begun anew or gone on with; zero = never since the start.
	Replaced time.Time
}

// Status tells how the record is. It waits for nothing.
func (s *Store) Status() Status {
	st := Status{State: StateOK, Mode: s.opts.Mode, OnFailure: s.opts.OnFailure, Path: s.opts.Path}
	if s.opts.Mode == ModeOff {
		st.State = StateOff
		return st
	}
	s.writer.published.read(&st)
	s.queue.read(&st)
	return st
}

func (q *queue) read(st *Status) {
	q.mu.Lock()
	defer q.mu.Unlock()
	st.Queued, st.QueuedBytes = len(q.entries)+q.taken, q.bytes
	st.Missed, st.MissedTotal, st.Refused = maps.Clone(q.missed), q.missedTotal, q.refusedTotal
	oldest := q.oldest
	if q.taken == 0 && len(q.entries) > 0 {
		oldest = q.entries[0].queued
	}
	if st.Queued > 0 {
		st.Lag = time.Since(oldest)
	}
	switch {
	case q.failure != nil && !q.busy:
		st.State = StateFailing
	case q.failure != nil || st.Lag > lagLimit:
		st.State = StateLagging
	}
	if q.failure != nil {
		st.Error, st.Since = q.failure.Error(), q.since
	}
	st.LastError = q.lastError
}

// published is what the writer lets others see of the file.
type published struct {
	mu         sync.Mutex
	head       head
	first      uint64
	bytes      int64
	sized      time.Time
	lastCommit time.Time
	movedAside string
	replaced   time.Time
}

func (p *published) read(st *Status) {
	p.mu.Lock()
	defer p.mu.Unlock()
	st.Seq, st.First, st.Bytes, st.LastCommit, st.MovedAside, st.Replaced = p.head.seq, p.first, p.bytes, p.lastCommit, p.movedAside, p.replaced
	if p.head.seq > 0 {
		st.Hash = p.head.hex()
	}
}

func (w *writer) publish() {
	p := &w.published
	now := time.Now()
	p.mu.Lock()
	fresh := now.Sub(p.sized) < watchEvery
	p.mu.Unlock()
	var bytes int64
	if !fresh {
		bytes = size(w.opts.Path)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.head != w.head {
		p.lastCommit = w.opts.Now()
	}
	p.head, p.first = w.head, w.first
	if !fresh {
		p.bytes, p.sized = bytes, now
	}
}

func (w *writer) setMovedAside(name string) {
	w.published.mu.Lock()
	defer w.published.mu.Unlock()
	w.published.movedAside = name
}

func (w *writer) setReplaced(at time.Time) {
	w.published.mu.Lock()
	defer w.published.mu.Unlock()
	w.published.replaced = at
}
