package serve

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/rpc"
)

func notify(t *testing.T, p *rpc.Peer, params string) {
	t.Helper()
	require.NoError(t, p.Notify(t.Context(), protocol.MethodEvent, []byte(params)))
}

func TestEventsComeWholeAndInOrder(t *testing.T) {
	got := make(chan *hook.Event, 16)
	l := &recorder{}
	p := start(t, observe(func(_ context.Context, ev *hook.Event) error {
		got <- ev
		switch ev.Kind {
		case "x_fail":
			return errors.New("disk full")
		case "x_panic":
			panic("boom")
		}
		return nil
	}), Options{Log: l})
	notify(t, p, `{"kind":"decision","meta":{"agent":"a","iteration":3},"time":"2026-01-02T15:04:05.678Z","payload":{"n":1.0},"severity":"warn","source":"hookd","id":"e1","seq":7,"missed":2,"x":[1]}`)
	notify(t, p, `{"kind":"x_fail"}`)
	notify(t, p, `{"kind":"x_panic","meta":null}`)
	notify(t, p, `{"kind":7}`)
	notify(t, p, `{"kind":"turn_end","meta":[1]}`)
	notify(t, p, `{"kind":"turn_end"}`)

	ev := <-got
	require.Equal(t, protocol.EventDecision, ev.Kind)
	require.Equal(t, time.Date(2026, 1, 2, 15, 4, 5, 678_000_000, time.UTC), ev.Time)
	require.Equal(t, `{"agent":"a","iteration":3}`, string(ev.Meta.AppendJSON(nil)))
	require.Equal(t, `{"n":1.0}`, string(ev.Payload))
	require.Equal(t, []string{"warn", "hookd", "e1"}, []string{ev.Severity, ev.Source, ev.ID})
	require.Equal(t, `{"x":[1]}`, string(ev.Extra.AppendJSON(nil)))
	require.Equal(t, []uint64{7, 2}, []uint64{ev.Seq, ev.Missed})
	for _, kind := range []protocol.EventKind{"x_fail", "x_panic", "turn_end"} {
		require.Equal(t, kind, (<-got).Kind)
	}
	require.Contains(t, l.String(), "observe x_fail: disk full\n")
	require.Contains(t, l.String(), "panic in Observe(x_panic): boom\n")
	require.Contains(t, l.String(), "an event can't be read: kind: ")
	require.Contains(t, l.String(), "an event can't be read: meta: ")
}

// A slow observer loses its newest events, is told how many, and holds up no
// call.
func TestASlowObserverLosesItsNewestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		var got []string
		p := start(t, struct {
			observe
			intercept
		}{
			func(_ context.Context, ev *hook.Event) error {
				<-goOn
				got = append(got, fmt.Sprintf("%d/%d", ev.Seq, ev.Missed))
				return nil
			},
			func(context.Context, *protocol.Request) (protocol.Decision, error) { return hook.Continue(), nil },
		}, Options{})
		send := func(seq, missed int) {
			notify(t, p, fmt.Sprintf(`{"kind":"turn_end","seq":%d,"missed":%d}`, seq, missed))
			synctest.Wait()
		}
		for seq := range observerQueue + 1 { // one is being observed
			send(seq, 0)
		}
		send(5000, 0)
		send(5001, 3)
		require.Equal(t, `{"action":"continue"}`, ask(t, p, beforeTool, bash))
		goOn <- struct{}{}
		synctest.Wait()
		send(5002, 0)
		close(goOn)
		synctest.Wait()
		require.Len(t, got, observerQueue+2)
		require.Equal(t, fmt.Sprintf("%d/0", observerQueue), got[observerQueue])
		require.Equal(t, "5002/5", got[observerQueue+1], "two lost here and three before")
	})
}

func TestObserverTimeout(t *testing.T) {
	for want, o := range map[time.Duration]Options{
		500 * time.Millisecond: {},
		time.Minute:            {ObserverTimeout: time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			o.Log = &recorder{}
			took := make(chan time.Duration)
			p := start(t, observe(func(ctx context.Context, _ *hook.Event) error {
				begin := time.Now()
				<-ctx.Done()
				took <- time.Since(begin)
				return ctx.Err()
			}), o)
			notify(t, p, `{"kind":"turn_end"}`)
			require.Equal(t, want, <-took)
		})
	}
}

// The last events of a session are the ones that an observer waits for.
func TestQueuedEventsAreObservedAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := 0
		t.Cleanup(func() { require.Equal(t, 3, seen) }) // runs when Serve has returned
		p := start(t, observe(func(context.Context, *hook.Event) error {
			time.Sleep(100 * time.Millisecond)
			seen++
			return nil
		}), Options{})
		for range 3 {
			notify(t, p, `{"kind":"session_end"}`)
		}
	})
}
