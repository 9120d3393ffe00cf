package daemon

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// hookd hides its memory and finds its way through /proc all the same.
func TestHideMemory(t *testing.T) {
	defer func() { require.NoError(t, hideMemory(false)) }()
	for _, hide := range []bool{true, false, true} {
		require.NoError(t, hideMemory(hide))
		dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
		require.NoError(t, err)
		require.Equal(t, hide, dumpable == 0)
		require.Equal(t, os.Getppid(), parentOf(os.Getpid()))
		require.NotZero(t, parentOf(os.Getppid()))
		_, err = os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
	}
}
