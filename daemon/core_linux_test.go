package daemon_test

import (
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// onOneCore keeps this process and its children on one core until the benchmark
// ends. On several, the kernel's choice which core to wake decides the figures
// of the floors and of hookd, each in its own way.
func onOneCore(b *testing.B) {
	var all, one unix.CPUSet
	require.NoError(b, unix.SchedGetaffinity(0, &all))
	for core := range len(all) * strconv.IntSize {
		if all.IsSet(core) {
			one.Zero()
			one.Set(core)
		}
	}
	place := func(set *unix.CPUSet) {
		threads, err := os.ReadDir("/proc/self/task")
		require.NoError(b, err)
		for _, t := range threads {
			id, err := strconv.Atoi(t.Name())
			require.NoError(b, err)
			_ = unix.SchedSetaffinity(id, set) // it may have ended
		}
	}
	place(&one)
	place(&one) // a thread that was not seen may have started one
	b.Cleanup(func() { place(&all) })
}
