package record

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCalls(t *testing.T) {
	var c calls
	require.Nil(t, c.decision(1))
	c.written(1, 10)
	c.written(2, 12)
	require.EqualValues(t, 10, c.decision(1))
	require.EqualValues(t, 12, c.decision(2))
	require.Nil(t, c.decision(3))
	require.Nil(t, c.decision(0), "the number of a call that has none")
	c.written(2, 13) // at the second attempt
	require.EqualValues(t, 13, c.decision(2))
	c.written(1+callsKept, 70_000)
	require.Nil(t, c.decision(1), "too long ago")
	require.EqualValues(t, 70_000, c.decision(1+callsKept))
}

// Of calls that are alike in all that they say, the one whose answer was lost is
// told from the others, also when it had to be written twice.
func TestUndeliveredMeansOneCall(t *testing.T) {
	path, fails := recordPath(t), 1
	s := openStore(t, Options{Path: path}, faults{commit: func(*conn) error {
		if fails--; fails == 0 {
			return errors.New("once")
		}
		return nil
	}})
	for n := range uint64(5) {
		rec := toolCall(t, 1)
		rec.Call = n + 1
		require.NoError(t, s.Record(t.Context(), rec))
	}
	require.NoError(t, s.Undelivered(&Undelivered{Call: 3, Session: "s1", Reason: "it has gone"}))
	closeStore(t, s)
	requireWhole(t, path)
	var lost []bool
	for _, d := range decisions(t, openReader(t, path), Filter{}) {
		lost = append(lost, d.Undelivered)
	}
	require.Equal(t, []bool{false, false, true, false, false}, lost)
}

// A request whose message is long is not kept beside its copy, and one that is kept
// counts.
func TestWhatWaitsIsCounted(t *testing.T) {
	for size, kept := range map[int]bool{0: false, 300: true, keptAsked: true, keptAsked + 1: false, 16 << 20: false} {
		rec := toolCall(t, 1)
		rec.Request.Size = size
		d := &decision{}
		d.copyOf(rec, false)
		require.Equal(t, kept, d.asked != nil, "a message of %d bytes", size)
		if kept {
			require.GreaterOrEqual(t, d.size(), size+len(d.buf))
		}
		d.clear()
		require.Nil(t, d.asked)
	}
}

func TestColumnsFitTheirSet(t *testing.T) {
	for _, table := range newTables().all() {
		require.LessOrEqual(t, len(table.columns), 64, table.name)
	}
}
