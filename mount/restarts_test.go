package mount

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPausesGrowAndAreReset(t *testing.T) {
	timing := defaultTiming()
	timing.badRuns = 1000
	s := restarts{timing: &timing}
	now := time.Now()
	var pauses []time.Duration
	for range 11 {
		pauses = append(pauses, s.ended(now, false, 0.5).Round(time.Millisecond))
	}
	ms := time.Millisecond
	require.Equal(t, []time.Duration{100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms, 3200 * ms, 6400 * ms, 12800 * ms, 25600 * ms, 30000 * ms, 30000 * ms}, pauses)
	require.Equal(t, 100*ms, s.ended(now, true, 0.5), "a good run")
	require.Equal(t, 160*ms, s.ended(now, false, 0))
	require.Equal(t, 480*ms, s.ended(now, false, 1))
	s.reset()
	require.Equal(t, 80*ms, s.ended(now, false, 0))
}

func TestBreakerOpensOnBadRunsOfOneWindow(t *testing.T) {
	timing := defaultTiming()
	s := restarts{timing: &timing}
	now := time.Now()
	for i := range 8 { // one in 15 s: four in a minute
		s.ended(now.Add(time.Duration(i)*15*time.Second), false, 0)
		require.False(t, s.open)
	}
	now = now.Add(7*15*time.Second + time.Second)
	require.Equal(t, time.Minute, s.ended(now, false, 0))
	require.True(t, s.open)
	require.Equal(t, time.Minute, s.ended(now.Add(time.Hour), false, 0), "it stays open")
	s.ended(now, true, 0)
	require.False(t, s.open)
}

func TestBurst(t *testing.T) {
	b := burst{limit: burstLimit{3, time.Minute}}
	start := time.Now()
	var hits []bool
	for _, second := range []int{0, 30, 61, 90, 91, 200, 201, 260, 261} {
		hits = append(hits, b.hit(start.Add(time.Duration(second)*time.Second)))
	}
	require.Equal(t, []bool{false, false, false, false, true, false, false, false, false}, hits)
	require.True(t, b.hit(start.Add(262*time.Second)))
}
