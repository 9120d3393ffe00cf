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

// giveBack gives memory that a burst has left behind back to the system, until
// ctx ends. The collector would do so at the next collection, which in a daemon
// that nobody asks comes two minutes later, or when as much is needed again. The
// first burst is the start, after which forget is called once too.
func giveBack(ctx context.Context, held func() (bytes, collections uint64), free, forget func()) {
	tick := time.NewTicker(memoryLook)
	defer tick.Stop()
	var kept, last uint64 // what was held after the last time; collections at the last look
	for first := true; ; first = false {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		bytes, collections := held()
		idle := !first && collections == last // else the collector is at it
		last = collections
		if !idle || bytes < kept+memorySlack && kept > 0 {
			continue
		}
		free()
		if kept == 0 {
			forget()
		}
		kept, last = held()
	}
}

// heapHeld returns how many bytes the heap holds of the system's memory, and how
// often it was collected.
func heapHeld() (bytes, collections uint64) {
	samples := []metrics.Sample{
		{Name: "/gc/cycles/total:gc-cycles"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/stacks:bytes"},
	}
	metrics.Read(samples)
	for _, s := range samples[1:] {
		bytes += s.Value.Uint64()
	}
	return bytes, samples[0].Value.Uint64()
}

// freeMemory collects, and gives back all that is free then.
func freeMemory() { debug.FreeOSMemory() }
