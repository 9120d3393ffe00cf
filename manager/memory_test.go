package manager

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAskedMemoryIsBounded(t *testing.T) {
	var a askedMemory
	now := time.Now()
	const many = 3*askedCalls + 7
	for i := range many {
		a.remember(strconv.Itoa(i), i%2 == 0, asking{"sure?", "gate"}, now)
		a.remember(strconv.Itoa(i), i%2 == 0, asking{"sure?", "gate"}, now) // the same call again takes no more room
	}
	require.Len(t, a.calls, askedCalls)
	for i := range many {
		asked, _, known := a.lookup(strconv.Itoa(i), now)
		require.Equal(t, i >= many-askedCalls, known, "the oldest are forgotten: %d", i)
		require.Equal(t, known && i%2 == 0, asked)
	}
}

func TestAskedMemoryForgets(t *testing.T) {
	var a askedMemory
	now := time.Now()
	a.remember("d", true, asking{"sure?", "gate"}, now)
	asked, why, known := a.lookup("d", now.Add(askedFor))
	require.Equal(t, asking{"sure?", "gate"}, why)
	require.True(t, asked && known)
	_, _, known = a.lookup("d", now.Add(askedFor+1))
	require.False(t, known)
	a.remember("d", false, asking{"sure?", "gate"}, now.Add(time.Hour))
	asked, _, known = a.lookup("d", now.Add(time.Hour))
	require.True(t, known)
	require.False(t, asked, "the latest word counts")
}

func TestRepeatsAreBounded(t *testing.T) {
	var r repeats
	one := 1
	for i := range 2*repeatSessions + 3 {
		require.True(t, r.allow(strconv.Itoa(i), "h", &one))
		require.False(t, r.allow(strconv.Itoa(i), "h", &one))
		require.True(t, r.allow(strconv.Itoa(i), "other", &one), "per hook")
		require.True(t, r.allow(strconv.Itoa(i), "h", nil), "null is no limit")
	}
	require.Len(t, r.counts, repeatSessions)
}
