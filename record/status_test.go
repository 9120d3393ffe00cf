package record

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The status tells that the file was deleted or replaced.
func TestStatusTellsOfAReplacedFile(t *testing.T) {
	path := written(t, 3)
	s := openStore(t, Options{Path: path}, faults{})
	require.Zero(t, s.Status().Replaced)
	require.NoError(t, os.Remove(path))
	eventually(t, func() bool { return !s.Status().Replaced.IsZero() }, "that it was deleted")
	require.WithinDuration(t, time.Now(), s.Status().Replaced, 10*time.Second)
	other := written(t, 2)
	first := s.Status().Replaced
	require.NoError(t, os.Rename(other, path))
	eventually(t, func() bool { return s.Status().Replaced.After(first) }, "that it was replaced")
	closeStore(t, s)

	require.NoError(t, os.Remove(path))
	s = openStore(t, Options{Path: path}, faults{})
	require.NotZero(t, s.Status().Replaced, "also at a start")
	closeStore(t, s)
}
