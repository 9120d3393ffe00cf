package daemon

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestGiveBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex // guards all of these
		h := heap{held: 10 << 20, allocated: 12 << 20, collections: 3}
		frees, forgotten := 0, 0
		change := func(f func()) {
			mu.Lock()
			defer mu.Unlock()
			f()
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			look := func() (now heap) {
				change(func() { now = h })
				return now
			}
			giveBack(ctx, look, func() {
				change(func() {
					frees++
					h.collections++
					h.held = 6 << 20
				})
			}, func() { change(func() { forgotten++ }) })
		}()
		synctest.Wait()
		after := func(looks, want int, why string) {
			t.Helper()
			time.Sleep(time.Duration(looks) * memoryLook)
			synctest.Wait()
			change(func() { require.Equal(t, want, frees, why) })
		}
		change(func() { h.allocated += memoryIdle })
		after(1, 0, "it is still starting")
		after(1, 1, "what the start has left")
		after(5, 1, "nothing has changed")
		change(func() { h.held += memorySlack - 1 })
		after(3, 1, "not worth it")
		change(func() { h.held += 80 << 20 })
		for range 3 {
			change(func() { h.collections++ })
			after(1, 1, "the collector is at it")
		}
		for range 5 {
			change(func() { h.allocated += memoryIdle })
			after(1, 1, "a steady load, between two collections")
		}
		change(func() { h.allocated += memoryIdle - 1 })
		after(1, 2, "the burst is over")
		after(5, 2, "nothing more")
		require.Equal(t, 1, forgotten, "there is one start")
		cancel()
		<-done
	})
}

// The figures mean what they are taken for.
func TestLookAtHeap(t *testing.T) {
	freeMemory()
	before := lookAtHeap()
	require.Positive(t, before.held)
	burst := make([]byte, 64<<20)
	for i := range burst {
		burst[i] = 1
	}
	during := lookAtHeap()
	require.Greater(t, during.held, before.held+48<<20)
	require.GreaterOrEqual(t, during.allocated, before.allocated+64<<20)
	burst[0] = 2
	freeMemory()
	after := lookAtHeap()
	require.Less(t, after.held, during.held-32<<20)
	require.Greater(t, after.collections, before.collections)
}
