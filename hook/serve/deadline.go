package serve

import (
	"context"
	"sync"
	"time"
)

// limited is a context that ends at a deadline with [errDeadline]. It comes to
// life when it is first looked at. Most hooks answer without that, and a timer
// per call is much of what a call costs.
type limited struct {
	caller context.Context
	at     time.Time

	mu       sync.Mutex
	ctx      context.Context // nil until it is needed
	cancel   context.CancelFunc
	released bool
}

// Deadline implements [context.Context].
func (l *limited) Deadline() (time.Time, bool) { return l.context().Deadline() }

// Done implements [context.Context].
func (l *limited) Done() <-chan struct{} { return l.context().Done() }

// Err implements [context.Context].
func (l *limited) Err() error { return l.context().Err() }

// Value implements [context.Context].
func (l *limited) Value(key any) any { return l.context().Value(key) }

func (l *limited) context() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx == nil {
		l.ctx, l.cancel = context.WithDeadlineCause(l.caller, l.at, errDeadline)
		if l.released {
			l.cancel()
		}
	}
	return l.ctx
}

// release ends the context, also for those who look at it only afterwards.
func (l *limited) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.released = true
	if l.cancel != nil {
		l.cancel()
	}
}
