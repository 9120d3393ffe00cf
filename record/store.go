package record

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hookd/hookd/manager"
)

// Store writes the record. Make one with [Open] and close it last, when nobody
// records any more. It is safe for concurrent use.
type Store struct {
	opts   Options
	tables *tables
	queue  *queue
	writer *writer // nil in mode off
	done   chan struct{}
	pool   sync.Pool // of *entry with a decision
}

var _ manager.Recorder = (*Store)(nil)

// Open opens the record at o.Path for writing, and makes it, with mode 0600 in
// a folder with mode 0700, when it is not there. A file that SQLite can't read
// is moved aside and a fresh one begun; see [Status]. Approvals that were open
// when hookd ended become a no. The error says what to do when the record can't
// be written or another hookd writes it: hookd is then not to start.
func Open(o Options) (*Store, error) {
	if err := o.complete(); err != nil {
		return nil, fmt.Errorf("open record: %w", err)
	}
	return open(o, faults{})
}

func open(o Options, f faults) (*Store, error) {
	s := &Store{opts: o, tables: newTables(), done: make(chan struct{})}
	s.queue = newQueue(o.OnFailure == Deny, o.Mode == ModeStrict)
	s.pool.New = func() any { return &entry{table: s.tables.decisions, decision: &decision{}} }
	if o.Mode == ModeOff {
		close(s.done)
		return s, nil
	}
	w, err := newWriter(s, f)
	if err != nil {
		return nil, fmt.Errorf("open record %s: %w", o.Path, err)
	}
	s.writer = w
	go func() {
		defer close(s.done)
		w.run()
	}()
	return s, nil
}

func (s *Store) strict() bool { return s.opts.Mode == ModeStrict }

// Waits reports whether [Store.Record] waits for the disk, so that a call must
// not be decided on a goroutine that others wait for.
func (s *Store) Waits() bool { return s.strict() }

// Record implements [manager.Recorder]. In mode batch it takes a few
// microseconds. In mode strict it returns when the record is on the disk, or
// after a second with [ErrTimeout]. An error means that the answer becomes a
// no; it is recorded as one, now or when the disk takes it.
func (s *Store) Record(ctx context.Context, rec *manager.Record) error {
	if s.opts.Mode == ModeOff {
		return nil
	}
	e := s.pool.Get().(*entry)
	e.state.Store(entryOpen)
	e.time, e.seq, e.refusal, e.withdrawal = rec.Started.Add(rec.Duration), 0, nil, nil
	e.decision.copyOf(rec, s.opts.BeforeAfter)
	e.bytes = e.decision.size()
	return s.put(ctx, e, s.strict())
}

// put hands an entry to the writer and, when wait, waits until it is written.
// The entry is the writer's afterwards.
func (s *Store) put(ctx context.Context, e *entry, wait bool) error {
	if s.opts.Mode == ModeOff {
		return nil
	}
	if e.time.IsZero() {
		e.time = s.opts.Now()
	}
	refusal := s.queue.refusal()
	if refusal != nil {
		e.refusal, wait = refusal, false
		e.state.Store(entryRefused)
	}
	e.waits = wait
	if wait && e.done == nil {
		e.done = make(chan error, 1)
	}
	if err := s.queue.push(e); err != nil {
		if s.queue.denies || wait {
			return s.queue.refuse(err)
		}
		return nil
	}
	if refusal != nil {
		return s.queue.refuse(refusal)
	}
	if !wait {
		return nil
	}
	return s.await(ctx, e)
}

func (s *Store) await(ctx context.Context, e *entry) error {
	timer := time.NewTimer(strictWait)
	defer timer.Stop()
	var cause error
	select {
	case err := <-e.done:
		return s.answered(e, err)
	case <-timer.C:
		cause = ErrTimeout
	case <-ctx.Done():
		cause = context.Cause(ctx)
	}
	if e.withdraw(cause) {
		return s.queue.refuse(cause)
	}
	return s.answered(e, <-e.done)
}

// answered takes the writer's word to who waited.
func (s *Store) answered(e *entry, err error) error {
	if err != nil {
		return s.queue.refuse(err) // the entry is still the writer's
	}
	s.recycle(e)
	return nil
}

func (s *Store) recycle(e *entry) {
	if e.decision != nil {
		e.decision.clear()
		s.pool.Put(e)
	}
}

// Close writes what waits, until ctx ends, makes it durable and gives the file
// free. Close it after everything that may still record. The error says how
// much could not be written; the next start records that.
func (s *Store) Close(ctx context.Context) error {
	if s.opts.Mode == ModeOff {
		return nil
	}
	if !s.queue.close() {
		return ErrClosed
	}
	stop := context.AfterFunc(ctx, func() { close(s.writer.giveUp) })
	<-s.done
	stop()
	if err := s.writer.closeErr; err != nil {
		return fmt.Errorf("close record: %w", errors.Join(context.Cause(ctx), err))
	}
	return nil
}
