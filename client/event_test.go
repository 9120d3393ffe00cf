package client_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/client"
	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/rpc"
)

func TestEvents(t *testing.T) {
	h := &hookd{}
	c := dial(t, h, client.Options{})
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.FixedZone("x", 3600))
	c.Event(client.Event{Kind: protocol.EventSessionStart, Time: at})
	c.Event(client.Event{
		Kind: "x_mine", Time: at, Meta: client.Meta{TurnID: "t"}, Severity: "warn",
		Payload: map[string]any{"text": "a\xff", "n": 1},
	})
	for i := range 100 {
		c.Event(client.Event{Kind: protocol.EventLLMDelta, Payload: map[string]int{"i": i}})
	}
	require.NoError(t, c.Close(), "sends what is queued")
	require.Eventually(t, func() bool { return len(h.seen(protocol.MethodEvent)) == 102 }, 10*time.Second, time.Millisecond)
	got := h.seen(protocol.MethodEvent)
	require.Equal(t, `{"kind":"session_start","time":"2026-01-02T02:04:05.000006Z"}`, got[0])
	require.Equal(t, `{"kind":"x_mine","meta":{"turn_id":"t"},"time":"2026-01-02T02:04:05.000006Z","payload":{"n":1,"text":"a`+"\uFFFD"+`"},"severity":"warn"}`, got[1])
	for i := range 100 {
		require.Contains(t, got[2+i], fmt.Sprintf(`"payload":{"i":%d}`, i), "in order")
	}
	require.Zero(t, c.EventsLost())

	c.Event(client.Event{Kind: protocol.EventSessionEnd})
	require.Equal(t, uint64(1), c.EventsLost(), "after Close")
}

func TestEventsThatCantBeSent(t *testing.T) {
	var log bytes.Buffer
	h := &hookd{}
	c := dial(t, h, client.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	for _, ev := range []client.Event{
		{},
		{Kind: "turn_strat"},
		{Kind: protocol.EventDecision}, // hookd's own
		{Kind: "x_a", Severity: "fatal"},
		{Kind: "x_a", Payload: "text"},
		{Kind: "x_a", Payload: func() {}},
	} {
		c.Event(ev)
	}
	require.NoError(t, c.Close())
	require.Equal(t, uint64(6), c.EventsLost())
	require.Empty(t, h.seen(protocol.MethodEvent))
	require.Contains(t, log.String(), `did you mean`)
}

// A daemon that does not read delays neither events nor the agent, and what
// waits for it is bounded, in number and in bytes.
func TestEventsWhenHookdDoesNotRead(t *testing.T) {
	for _, tt := range []struct {
		payload, queued, sent int
	}{{10, 1024, 3000}, {1 << 20, 15, 40}} {
		synctest.Test(t, func(t *testing.T) {
			stuck := make(chan struct{})
			c := rude(t, client.Options{}, func(string) string { <-stuck; return "EOF" })
			began := time.Now()
			c.Event(client.Event{Kind: "x_first"})
			synctest.Wait() // it is read, and nothing after it
			c.Event(client.Event{Kind: "x_second"})
			synctest.Wait() // it is being written
			for range tt.sent {
				c.Event(client.Event{Kind: "x_flood", Payload: map[string]string{"p": strings.Repeat("x", tt.payload)}})
			}
			require.Zero(t, time.Since(began))
			require.Equal(t, uint64(tt.sent-tt.queued), c.EventsLost())

			require.NoError(t, c.Close())
			require.LessOrEqual(t, time.Since(began), time.Second, "Close is patient, but not very")
			require.Equal(t, uint64(tt.sent+1), c.EventsLost())
			close(stuck)
		})
	}
}

// Events survive a restart of hookd, without any call.
func TestEventsReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hookd{}
		d := &dialer{h: h}
		c := d.client(t, client.Options{})
		d.down(errors.New("gone"))
		time.AfterFunc(time.Second, func() { d.err.Store(nil) })
		for range 3 {
			c.Event(client.Event{Kind: protocol.EventTurnStart})
		}
		time.Sleep(2 * time.Second)
		require.Len(t, h.seen(protocol.MethodEvent), 3)

		d.down(errors.New("gone for good"))
		for range 3 {
			c.Event(client.Event{Kind: protocol.EventTurnStart})
		}
		time.Sleep(time.Minute)
		require.Equal(t, uint64(3), c.EventsLost())
		require.NoError(t, c.Close())
	})
}

// Close does not wait for a daemon that is gone.
func TestCloseWhileEventsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dialer{h: &hookd{}}
		c := d.client(t, client.Options{})
		d.down(rpc.ErrShutdown)
		for range 10 {
			c.Event(client.Event{Kind: protocol.EventTurnStart})
		}
		began := time.Now()
		require.NoError(t, c.Close())
		require.Zero(t, time.Since(began))
		require.Equal(t, uint64(10), c.EventsLost())
	})
}
