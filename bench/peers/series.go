package main

import (
	"context"
	"slices"
	"sync"
	"time"
)

// rounds is in how many parts a series is measured, so that those that are
// compared see the same machine.
const rounds = 20

// series is one thing that is done again and again.
type series struct {
	do   func() error
	took []time.Duration
}

func (s *series) some(ctx context.Context, n int) error {
	s.took = slices.Grow(s.took, n)
	for range n {
		begin := time.Now()
		if err := s.do(); err != nil {
			return err
		}
		s.took = append(s.took, time.Since(begin))
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// p returns a percentile in microseconds.
func (s *series) p(q float64) float64 {
	sorted := slices.Sorted(slices.Values(s.took))
	at := min(max(int(q*float64(len(sorted))+0.999999)-1, 0), len(sorted)-1)
	return float64(sorted[at].Nanoseconds()) / 1e3
}

// inTurn measures each series n times, in rounds.
func (b *bench) inTurn(all ...*series) error {
	for _, s := range all { // warm up
		if err := s.some(b.ctx, max(b.calls/10, 3)); err != nil {
			return err
		}
		s.took = s.took[:0]
	}
	for range rounds {
		for _, s := range all {
			if err := s.some(b.ctx, max(b.calls/rounds, 1)); err != nil {
				return err
			}
		}
	}
	return nil
}

// crowd does the same on several connections at once.
type crowd []*series

// rate is how many per second all of them do together, each n times.
func (c crowd) rate(ctx context.Context, n int) (float64, error) {
	errs := make([]error, len(c))
	var wg sync.WaitGroup
	begin := time.Now()
	for i, s := range c {
		wg.Go(func() { errs[i] = s.some(ctx, n) })
	}
	wg.Wait()
	took := time.Since(begin)
	for _, err := range errs {
		if err != nil {
			return 0, err
		}
	}
	return float64(n*len(c)) / took.Seconds(), nil
}

// ratesInTurn returns the median rates of both, measured in turn.
func (b *bench) ratesInTurn(ours, theirs crowd) (us, them float64, err error) {
	var our, their []float64
	each := max(b.calls/len(ours)/4, 5)
	for i := range 6 {
		o, err := ours.rate(b.ctx, each)
		if err != nil {
			return 0, 0, err
		}
		t, err := theirs.rate(b.ctx, each)
		if err != nil {
			return 0, 0, err
		}
		if i > 0 { // the first is to warm up
			our, their = append(our, o), append(their, t)
		}
	}
	slices.Sort(our)
	slices.Sort(their)
	return our[len(our)/2], their[len(their)/2], nil
}
