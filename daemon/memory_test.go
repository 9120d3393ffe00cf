package daemon

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestGiveBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var bytes, collections uint64 = 10 << 20, 3
		frees, forgotten := 0, 0
		done := make(chan struct{})
		go func() {
			defer close(done)
			giveBack(ctx, func() (uint64, uint64) { return bytes, collections }, func() {
				frees++
				collections++
				bytes = 6 << 20
			}, func() { forgotten++ })
		}()
		after := func(looks, want int, why string) {
			t.Helper()
			time.Sleep(time.Duration(looks) * memoryLook)
			synctest.Wait()
			require.Equal(t, want, frees, why)
		}
		after(1, 0, "the first look only counts collections")
		after(1, 1, "what the start has left")
		after(5, 1, "nothing has changed")
		bytes += memorySlack - 1
		after(3, 1, "not worth it")
		bytes += 80 << 20
		for range 3 {
			collections++
			after(1, 1, "the collector is at it")
		}
		after(1, 2, "the burst is over")
		after(5, 2, "nothing more")
		require.Equal(t, 1, forgotten, "there is one start")
		cancel()
		<-done
	})
}

// The figures mean what they are taken for.
func TestHeapHeld(t *testing.T) {
	freeMemory()
	before, collections := heapHeld()
	require.Positive(t, before)
	burst := make([]byte, 64<<20)
	for i := range burst {
		burst[i] = 1
	}
	during, _ := heapHeld()
	require.Greater(t, during, before+48<<20, "of a heap of %d", before)
	burst[0] = 2
	freeMemory()
	after, later := heapHeld()
	require.Less(t, after, during-32<<20)
	require.Greater(t, later, collections)
}
