package daemon

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// memoryLook is how often is looked whether there is memory to give back.
	memoryLook = 2 * time.Second
	// memorySlack is how many bytes more than after the last time must be held:
	// less is not worth a collection.
	memorySlack = 4 << 20
	// memoryIdle is how many bytes are allocated between two looks at most by a
	// daemon that nobody asks much.
	memoryIdle = 1 << 20
)

// ballastSize is of the part of the heap that is never used.
const ballastSize = 24 << 20

// ballast is for as long as hookd runs. The heap may double between two
// collections, and hookd's is so small that it would be collected ten times and
// more a second when a lot is asked. With the ballast it may grow by as much and
// what lives, however much that is. It is never touched, so the system has no memory
// of it. (A soft limit in its place would make the collector run all the time when
// more than that lives.)
func ballast() []byte { return make([]byte, ballastSize) }

// heap is what the runtime says of its heap.
type heap struct {
	held        uint64 // bytes of the system's memory
	allocated   uint64 // bytes since the start
	collections uint64
}

// giveBack gives memory that a burst has left behind back to the system, until
// ctx ends. The collector would do so at the next collection, which in a daemon
// that nobody asks comes two minutes later, or when as much is needed again. While
// much is allocated nothing is given back: it would be needed at once. The first
// burst is the start, after which forget is called once too.
func giveBack(ctx context.Context, look func() heap, free, forget func()) {
	tick := time.NewTicker(memoryLook)
	defer tick.Stop()
	var kept uint64 // what was held after the last time
	for last := look(); ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		now := look()
		idle := now.collections == last.collections && now.allocated-last.allocated < memoryIdle
		last = now
		if !idle || now.held < kept+memorySlack && kept > 0 {
			continue
		}
		free()
		if kept == 0 {
			forget()
		}
		last = look()
		kept = last.held
	}
}

// lookAtHeap asks the runtime.
func lookAtHeap() (h heap) {
	samples := []metrics.Sample{
		{Name: "/gc/cycles/total:gc-cycles"}, {Name: "/gc/heap/allocs:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/stacks:bytes"},
	}
	metrics.Read(samples)
	h.collections, h.allocated = samples[0].Value.Uint64(), samples[1].Value.Uint64()
	for _, s := range samples[2:] {
		h.held += s.Value.Uint64()
	}
	return h
}

// freeMemory collects, and gives back all that is free then.
func freeMemory() { debug.FreeOSMemory() }
