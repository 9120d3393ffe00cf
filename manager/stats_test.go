package manager

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Buckets follow one another without a gap, and each holds the value that is
// called its top.
func TestBuckets(t *testing.T) {
	last := -1
	for us := range 1 << 16 {
		b := bucketOf(time.Duration(us) * time.Microsecond)
		require.Contains(t, []int{last, last + 1}, b, "%d µs", us)
		require.LessOrEqual(t, time.Duration(us)*time.Microsecond, bucketTop(b))
		if b > last && b > 0 {
			require.Equal(t, time.Duration(us-1)*time.Microsecond, bucketTop(last))
		}
		last = b
	}
	require.Zero(t, bucketOf(-time.Second))
	var h histogram
	h.add(1 << 62) // longer than any bucket
	h.add(-1)
	require.Greater(t, h.quantile(1), 9*time.Hour)
}

// A quantile is at most a quarter above the true one, and never below it.
func TestQuantiles(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 3, 10, 99, 100, 1000} {
		var h histogram
		var all []time.Duration
		for range n {
			d := time.Duration(r.Int64N(1<<uint(10+r.IntN(25)))) * time.Microsecond
			all = append(all, d)
			h.add(d)
		}
		slices.Sort(all)
		for _, q := range []float64{0, 0.5, 0.9, 0.99, 1} {
			want, got := all[int(q*float64(n-1))], h.quantile(q)
			require.GreaterOrEqual(t, got, want, "%g of %d", q, n)
			require.LessOrEqual(t, got, want+want/4+time.Microsecond, "%g of %d", q, n)
		}
	}
	require.Zero(t, new(histogram).quantile(0.5))
}
