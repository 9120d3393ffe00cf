package bench

import (
	"context"
	"runtime"
	"slices"
	"time"
)

// rounds is in how many parts a series is measured, so that series that are
// compared see the same machine.
const rounds = 20

// series is one thing that is done again and again.
type series struct {
	do   func() error
	took []time.Duration
}

func newSeries(do func() error) *series { return &series{do: do} }

// some does it n times. The samples have their room already, so that nothing is
// allocated between two.
func (s *series) some(ctx context.Context, n int) error {
	s.took = slices.Grow(s.took, n)
	for range n {
		start := time.Now()
		if err := s.do(); err != nil {
			return err
		}
		s.took = append(s.took, time.Since(start))
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// p returns the percentile q (0.5 is the median) in microseconds.
func (s *series) p(q float64) float64 { return percentile(s.took, q) }

// percentile returns the smallest sample that is not below the part q of all.
func percentile(samples []time.Duration, q float64) float64 {
	if len(samples) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(samples))
	at := min(max(int(q*float64(len(sorted))+0.999999)-1, 0), len(sorted)-1)
	return float64(sorted[at].Nanoseconds()) / 1e3
}

// inTurn measures work n times, and each floor as often, in rounds: the floors,
// the work, the floors again.
func (r *run) inTurn(n int, work *series, floors ...*series) error {
	all := append(slices.Clone(floors), work)
	for _, s := range all { // warm up
		if err := s.some(r.ctx, max(n/10, 3)); err != nil {
			return err
		}
		s.took = s.took[:0]
	}
	runtime.GC()
	each := max(n/rounds, 1)
	for range rounds {
		for _, s := range all {
			if err := s.some(r.ctx, each); err != nil {
				return err
			}
		}
	}
	for _, s := range floors {
		if err := s.some(r.ctx, each); err != nil {
			return err
		}
	}
	return nil
}

// overFloor is the row of work whose median is held against a floor.
func overFloor(work *series, floor, target float64) Row {
	return Row{Floor: round(floor, 1), P50: round(work.p(0.5), 1), P99: round(work.p(0.99), 1),
		Ratio: round(work.p(0.5)/floor, 2), Unit: "× floor", Target: target}
}
