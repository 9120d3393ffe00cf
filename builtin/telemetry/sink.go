package telemetry

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hookd/hookd/manager"
)

// Sink shows calls to the Telemetry that is at work. It outlives reloads, which
// replace that. Make it with [NewSink]; it needs no closing.
type Sink struct {
	now atomic.Pointer[Telemetry] // the newest of all; nil = there is none

	mu  sync.Mutex
	all []*Telemetry // that are open
}

// NewSink returns a Sink that shows calls to nobody yet.
func NewSink() *Sink { return &Sink{} }

// Take shows a call to the newest Telemetry that is open, if there is one; see
// [Telemetry.Take].
func (s *Sink) Take(rec *manager.Record) {
	if t := s.now.Load(); t != nil {
		t.Take(rec)
	}
}

// Stats returns the counts of the newest Telemetry that is open, and whether
// there is one.
func (s *Sink) Stats() (stats Stats, active bool) {
	t := s.now.Load()
	if t == nil {
		return Stats{}, false
	}
	return t.Stats(), true
}

func (s *Sink) add(t *Telemetry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, t)
	s.now.Store(t)
}

// remove takes t out. When a reload was refused, the one before it goes on.
func (s *Sink) remove(t *Telemetry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = slices.DeleteFunc(s.all, func(other *Telemetry) bool { return other == t })
	var newest *Telemetry
	if n := len(s.all); n > 0 {
		newest = s.all[n-1]
	}
	s.now.Store(newest)
}
