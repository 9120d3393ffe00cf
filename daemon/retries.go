package daemon

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/hookd/hookd/protocol"
)

const (
	// retryWithin is how long an answer is kept for the same call.
	retryWithin = 10 * time.Second
	// retriesKept is how many answers are.
	retriesKept = 1024
)

// retries gives the same call the same answer. Some agents fire one event
// twice: because its hook stands in two files, because another agent reads the
// first one's files, or because they retry. The people who approve should be
// asked once. The zero value is ready.
type retries struct {
	mu    sync.Mutex
	calls map[[sha256.Size]byte]*settled
	order [][sha256.Size]byte
}

// settled is a call that has an answer when done is closed.
type settled struct {
	done   chan struct{}
	result *protocol.Result
	err    error
	at     time.Time
}

// do runs ask, unless the same call is being asked or was answered a moment
// ago. A call that ended without a verdict is asked again. An empty key is never
// the same.
func (r *retries) do(ctx context.Context, key string, ask func() (*protocol.Result, error)) (*protocol.Result, error) {
	if key == "" {
		return ask()
	}
	sum := sha256.Sum256([]byte(key))
	for {
		c, mine := r.claim(sum)
		if mine {
			return settle(c, ask)
		}
		select {
		case <-c.done:
			// Whoever came while people were asked shares what they said.
			if c.err == nil && (lasting(c.result) || c.result.Approval != nil) {
				return c.result, nil
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// lasting reports whether an answer may be given again: a no and a question. A
// yes is for one call, and that nobody objected is found out anew each time.
func lasting(res *protocol.Result) bool {
	return res.Action.Stops() || res.Action == protocol.ActionAsk || res.Approval != nil && !res.Approval.Approved
}

func (r *retries) claim(sum [sha256.Size]byte) (c *settled, mine bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.calls == nil {
		r.calls = map[[sha256.Size]byte]*settled{}
	}
	if c = r.calls[sum]; c != nil {
		select {
		case <-c.done:
			if c.err == nil && time.Since(c.at) <= retryWithin && lasting(c.result) {
				return c, false
			}
		default:
			return c, false
		}
	} else {
		r.order = append(r.order, sum)
	}
	c = &settled{done: make(chan struct{})}
	r.calls[sum] = c
	for len(r.order) > retriesKept {
		delete(r.calls, r.order[0])
		r.order = r.order[1:]
	}
	return c, true
}

func settle(c *settled, ask func() (*protocol.Result, error)) (*protocol.Result, error) {
	finished := false
	defer func() {
		if !finished { // it panicked: those who wait ask themselves
			c.err = context.Canceled
			close(c.done)
		}
	}()
	c.result, c.err = ask()
	c.at = time.Now()
	finished = true
	close(c.done)
	return c.result, c.err
}
