// Package lazycontext has a context with a deadline that starts no timer before
// somebody waits for it. Most hooks answer without a look at their context, and
// a timer per call is much of what a call costs.
package lazycontext

import (
	"context"
	"sync"
	"time"
)

// Context ends with its parent, at its deadline, or when it is released. Make it
// with [WithDeadline] and call [Context.Release] when the call is over.
type Context struct {
	parent context.Context
	at     time.Time
	cause  error

	mu       sync.Mutex
	ctx      context.Context // nil until it is needed
	cancel   context.CancelFunc
	released bool
}

// WithDeadline returns a context that ends at this time with this cause.
func WithDeadline(parent context.Context, at time.Time, cause error) *Context {
	return &Context{parent: parent, at: at, cause: cause}
}

// Deadline implements [context.Context].
func (c *Context) Deadline() (time.Time, bool) {
	if at, ok := c.parent.Deadline(); ok && at.Before(c.at) {
		return at, true
	}
	return c.at, true
}

// Done implements [context.Context].
func (c *Context) Done() <-chan struct{} { return c.begun(true).Done() }

// Err implements [context.Context].
func (c *Context) Err() error { return c.begun(false).Err() }

// Value implements [context.Context]. What [context.Cause] asks for is a value too.
func (c *Context) Value(key any) any { return c.begun(false).Value(key) }

// begun returns the context that the answer stands in: the one with the timer if
// it is there, needed, or over already, or else the parent, which says the same.
func (c *Context) begun(needed bool) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx == nil {
		if !needed && !c.released && time.Now().Before(c.at) {
			return c.parent
		}
		c.ctx, c.cancel = context.WithDeadlineCause(c.parent, c.at, c.cause)
		if c.released {
			c.cancel()
		}
	}
	return c.ctx
}

// Release ends the context, also for those who look at it only afterwards.
func (c *Context) Release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.released = true
	if c.cancel != nil {
		c.cancel()
	}
}
