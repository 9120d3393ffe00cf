package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/bench"
)

// TestCheckFails: a missed target, whatever the machine, is an error that names
// it, and so exit code 1.
func TestCheckFails(t *testing.T) {
	met, missed := bench.Row{ID: "T0", Work: "one", OK: true}, bench.Row{ID: "T2", Work: "two"}
	require.NoError(t, allMet([]bench.Row{met}))
	err := allMet([]bench.Row{met, missed})
	require.EqualError(t, err, "targets missed: T2 (two)")
	require.Equal(t, exitFailed, newApp(nil).fail(err))
}
