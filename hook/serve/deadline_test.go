package serve

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/rpc"
)

// A hook may ask its context in any way and as late as it likes.
func TestWaysToNoticeTheDeadline(t *testing.T) {
	const limit = 5 * time.Second
	for name, notice := range map[string]func(ctx context.Context) error{
		"waiting": func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		},
		"asking now and then": func(ctx context.Context) error {
			for ctx.Err() == nil {
				time.Sleep(300 * time.Millisecond)
			}
			return ctx.Err()
		},
		"waiting for a context of its own": func(ctx context.Context) error {
			own, cancel := context.WithCancel(ctx)
			defer cancel()
			<-own.Done()
			return own.Err()
		},
		"asking too late": func(ctx context.Context) error {
			time.Sleep(limit)
			return ctx.Err()
		},
		"knowing it": func(ctx context.Context) error {
			at, ok := ctx.Deadline()
			require.True(t, ok)
			time.Sleep(time.Until(at) + time.Millisecond)
			return ctx.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				causes := make(chan error, 1)
				p := start(t, intercept(func(ctx context.Context, _ *protocol.Request) (protocol.Decision, error) {
					err := notice(ctx)
					causes <- context.Cause(ctx)
					return hook.Continue(), err
				}), Options{})
				begin := time.Now()
				e := refused(t, p, beforeTool, `{"tool":"bash","arguments":{},"deadline_ms":5000}`)
				require.Equal(t, &protocol.Error{Code: protocol.CodeCancelled, Message: errDeadline.Error()}, e)
				require.InDelta(t, limit+grace, time.Since(begin), float64(300*time.Millisecond))
				require.ErrorIs(t, <-causes, errDeadline)
			})
		})
	}
}

// What a hook leaves behind must not go on: the context of a call ends with it,
// whether the hook has looked at it or not.
func TestTheContextEndsWithTheCall(t *testing.T) {
	for _, looked := range []bool{true, false} {
		var kept context.Context
		p := start(t, intercept(func(ctx context.Context, _ *protocol.Request) (protocol.Decision, error) {
			kept = ctx
			if looked {
				require.NoError(t, ctx.Err())
			}
			return hook.Continue(), nil
		}), Options{})
		ask(t, p, beforeTool, `{"tool":"bash","arguments":{},"deadline_ms":60000}`)
		<-kept.Done()
		require.ErrorIs(t, kept.Err(), context.Canceled)
	}
}

func TestCancelBeforeTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaiter()
		p := start(t, w, Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := p.Call(ctx, beforeTool, []byte(`{"tool":"bash","arguments":{},"deadline_ms":5000}`))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, <-w.causes, rpc.ErrCancelled)
	})
}
