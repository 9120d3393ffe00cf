package rpc

import (
	"context"
	"sync"
	"sync/atomic"
)

// maxIdle is how many goroutines wait for the next request.
const maxIdle = 32

// workers are the goroutines that answer requests. A few stay for the next
// request, because a new one has to grow its stack first.
type workers struct {
	jobs chan job // taken by those that wait
	idle atomic.Int32
	wg   sync.WaitGroup
	once sync.Once // jobs is closed
}

// job is a request to be answered.
type job struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	r      *Request
	w      Work
}

func newWorkers() *workers { return &workers{jobs: make(chan job)} }

// do gives a job to one that waits, or to a new one.
func (ws *workers) do(j job) {
	select {
	case ws.jobs <- j:
	default:
		ws.wg.Go(func() { ws.work(j) })
	}
}

func (ws *workers) work(j job) {
	for ok := true; ok; {
		j.do()
		j = job{} // don't keep the request
		if ws.idle.Add(1) <= maxIdle {
			j, ok = <-ws.jobs
		} else {
			ok = false
		}
		ws.idle.Add(-1)
	}
}

// close ends those that wait. No job may come any more.
func (ws *workers) close() {
	ws.once.Do(func() { close(ws.jobs) })
	ws.wg.Wait()
}
