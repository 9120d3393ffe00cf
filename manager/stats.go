package manager

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookd/hookd/protocol"
)

// HookStats are the counters of one hook since hookd started.
type HookStats struct {
	// Calls counts turns as interceptor and approver; Events what an observer
	// was handed.
	Calls, Events int64
	// Outcomes counts turns by outcome.
	Outcomes map[protocol.Outcome]int64
	// Failures counts turns without an answer that could be read, and observer
	// errors.
	Failures int64
	InFlight int64
	// Missed counts events that were dropped because the hook was slow.
	Missed int64
	// Queued counts events that wait.
	Queued int64
	// LastError is the latest failure, with LastErrorAt; empty = none yet.
	LastError   string
	LastErrorAt time.Time
	// P50 and P99 are how long turns took.
	P50, P99 time.Duration
}

// hookStats is the live form of [HookStats].
type hookStats struct {
	calls, events, failures, inFlight, missed, queued atomic.Int64
	latency                                           histogram

	mu       sync.Mutex
	outcomes map[protocol.Outcome]int64
	lastErr  string
	lastAt   time.Time
}

func (s *hookStats) turn(step *protocol.Step) {
	if step.Outcome != protocol.OutcomeNotRun {
		s.calls.Add(1)
		s.latency.add(step.Duration)
	}
	s.mu.Lock()
	s.outcomes[step.Outcome]++
	s.mu.Unlock()
}

func (s *hookStats) failed(what string, at time.Time) {
	s.failures.Add(1)
	s.mu.Lock()
	s.lastErr, s.lastAt = what, at
	s.mu.Unlock()
}

func (s *hookStats) snapshot() HookStats {
	out := HookStats{
		Calls: s.calls.Load(), Events: s.events.Load(), Failures: s.failures.Load(),
		InFlight: s.inFlight.Load(), Missed: s.missed.Load(), Queued: s.queued.Load(),
		P50: s.latency.quantile(0.50), P99: s.latency.quantile(0.99),
		Outcomes: map[protocol.Outcome]int64{},
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for o, n := range s.outcomes {
		out.Outcomes[o] = n
	}
	out.LastError, out.LastErrorAt = s.lastErr, s.lastAt
	return out
}

// statsTable keeps counters by name, so that they outlive reloads.
type statsTable struct {
	mu     sync.Mutex
	byName map[string]*hookStats
}

func (t *statsTable) of(name string) *hookStats {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byName == nil {
		t.byName = map[string]*hookStats{}
	}
	s := t.byName[name]
	if s == nil {
		s = &hookStats{outcomes: map[protocol.Outcome]int64{}}
		t.byName[name] = s
	}
	return s
}

func (t *statsTable) snapshot() map[string]HookStats {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make(map[string]HookStats, len(t.byName))
	for name, s := range t.byName {
		out[name] = s.snapshot()
	}
	return out
}

// histogram counts durations in buckets that grow by a quarter of a power of
// two, from 1 µs to more than an hour: close enough for a p99, and no lock.
type histogram struct{ buckets [34 * 4]atomic.Int64 }

func (h *histogram) add(d time.Duration) {
	h.buckets[min(bucketOf(d), len(h.buckets)-1)].Add(1)
}

func bucketOf(d time.Duration) int {
	us := uint64(max(d.Microseconds(), 0))
	if us < 4 {
		return int(us)
	}
	exp := bits.Len64(us) - 1 // ≥ 2
	return (exp-1)*4 + int(us>>(exp-2)&3)
}

// bucketTop is the largest duration that falls into bucket i.
func bucketTop(i int) time.Duration {
	if i < 4 {
		return time.Duration(i) * time.Microsecond
	}
	exp, quarter := i/4+1, i%4
	return time.Duration((uint64(4+quarter+1)<<(exp-2))-1) * time.Microsecond
}

// quantile returns the upper end of the bucket in which the q-th value lies,
// or 0 when there is none.
func (h *histogram) quantile(q float64) time.Duration {
	var counts [len(h.buckets)]int64
	total := int64(0)
	for i := range h.buckets {
		counts[i] = h.buckets[i].Load()
		total += counts[i]
	}
	if total == 0 {
		return 0
	}
	rank := int64(q*float64(total-1)) + 1
	for i, n := range counts {
		if rank -= n; rank <= 0 {
			return bucketTop(i)
		}
	}
	return bucketTop(len(counts) - 1)
}
