package bench

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPercentile(t *testing.T) {
	var samples []time.Duration
	require.Zero(t, percentile(samples, 0.5))
	for i := 100; i > 0; i-- {
		samples = append(samples, time.Duration(i)*time.Microsecond)
	}
	for q, want := range map[float64]float64{0: 1, 0.5: 50, 0.99: 99, 0.999: 100, 1: 100} {
		require.Equal(t, want, percentile(samples, q), q)
	}
	require.Equal(t, 100*time.Microsecond, samples[0], "the samples stay in their order")
}

// TestInTurn: the floors stand before and after each round of the work.
func TestInTurn(t *testing.T) {
	var order []byte
	logged := func(b byte) *series { return newSeries(func() error { order = append(order, b); return nil }) }
	r := &run{ctx: t.Context()}
	work, floor := logged('w'), logged('f')
	require.NoError(t, r.inTurn(rounds, work, floor))
	require.Equal(t, "fffwww", string(order[:6]), "warm up")
	require.Equal(t, "fwfw", string(order[6:10]))
	require.Equal(t, "fwf", string(order[len(order)-3:]))
	require.Len(t, work.took, rounds)
	require.Len(t, floor.took, rounds+1)

	broken := errors.New("broken")
	require.ErrorIs(t, r.inTurn(1, newSeries(func() error { return broken }), floor), broken)
}

func TestBetter(t *testing.T) {
	low, high := Row{Ratio: 1}, Row{Ratio: 2}
	require.True(t, low.better(high))
	low.AtLeast, high.AtLeast = true, true
	require.True(t, high.better(low))
}
