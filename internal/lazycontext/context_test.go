package lazycontext

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

type key struct{}

var errLate = errors.New("too late")

// It is what context.WithDeadlineCause makes, whoever looks at it and when.
func TestContext(t *testing.T) {
	gone := errors.New("the caller went away")
	for name, test := range map[string]struct {
		before func(c *Context, cancel context.CancelCauseFunc) // while it is open
		looks  bool                                             // somebody waits from the start
		err    error
		cause  error
	}{
		"open":                    {func(*Context, context.CancelCauseFunc) {}, false, nil, nil},
		"deadline, nobody waits":  {func(*Context, context.CancelCauseFunc) { time.Sleep(5 * time.Second) }, false, context.DeadlineExceeded, errLate},
		"deadline, somebody does": {func(*Context, context.CancelCauseFunc) { time.Sleep(5 * time.Second) }, true, context.DeadlineExceeded, errLate},
		"parent, nobody waits":    {func(_ *Context, cancel context.CancelCauseFunc) { cancel(gone) }, false, context.Canceled, gone},
		"parent, somebody does":   {func(_ *Context, cancel context.CancelCauseFunc) { cancel(gone) }, true, context.Canceled, gone},
		"released, nobody waits":  {func(c *Context, _ context.CancelCauseFunc) { c.Release() }, false, context.Canceled, context.Canceled},
		"released, somebody does": {func(c *Context, _ context.CancelCauseFunc) { c.Release() }, true, context.Canceled, context.Canceled},
		"released twice, then the deadline": {func(c *Context, _ context.CancelCauseFunc) {
			c.Release()
			c.Release()
			time.Sleep(5 * time.Second)
		}, true, context.Canceled, context.Canceled},
	} {
		// Whatever is asked first must not change what is asked next.
		for order, ask := range map[string]func(t *testing.T, c *Context){
			"err, cause": func(t *testing.T, c *Context) {
				require.ErrorIs(t, c.Err(), test.err)
				require.Equal(t, test.cause, context.Cause(c))
			},
			"cause, err": func(t *testing.T, c *Context) {
				require.Equal(t, test.cause, context.Cause(c))
				require.ErrorIs(t, c.Err(), test.err)
			},
			"done, cause": func(t *testing.T, c *Context) {
				if test.err != nil {
					<-c.Done()
				}
				require.Equal(t, test.cause, context.Cause(c))
			},
			"a child": func(t *testing.T, c *Context) {
				ctx, cancel := context.WithCancel(c)
				defer cancel()
				if test.err != nil {
					<-ctx.Done()
				}
				require.Equal(t, test.cause, context.Cause(ctx))
			},
		} {
			t.Run(name+"/"+order, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					parent, cancel := context.WithCancelCause(context.WithValue(t.Context(), key{}, "v"))
					defer cancel(nil)
					at := time.Now().Add(5 * time.Second)
					c := WithDeadline(parent, at, errLate)
					defer c.Release()
					if test.looks {
						select {
						case <-c.Done():
							t.Error("over at once")
						default:
						}
					}
					got, ok := c.Deadline()
					require.True(t, ok)
					require.Equal(t, at, got)
					test.before(c, cancel)
					synctest.Wait()
					ask(t, c)
					require.Equal(t, "v", c.Value(key{}))
				})
			})
		}
	}
}

func TestDeadlineOfTheParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := time.Now().Add(time.Second)
		parent, cancel := context.WithDeadline(t.Context(), at)
		defer cancel()
		c := WithDeadline(parent, at.Add(time.Second), errLate)
		defer c.Release()
		got, _ := c.Deadline()
		require.Equal(t, at, got)
		<-c.Done()
		require.Equal(t, at, time.Now())
		require.Equal(t, context.DeadlineExceeded, context.Cause(c))
	})
}
