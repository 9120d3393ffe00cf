package manager

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// witness is an observer that notes what it gets. It stays in its first event
// until its gate is opened.
type witness struct {
	goHook
	gate chan struct{}

	mu   sync.Mutex
	seen []hook.Event
}

func newWitness() *witness {
	w := &witness{gate: make(chan struct{})}
	w.observe = func(_ context.Context, ev *hook.Event) error {
		w.mu.Lock()
		w.seen = append(w.seen, *ev)
		w.mu.Unlock()
		<-w.gate
		return nil
	}
	return w
}

func (w *witness) events() []hook.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]hook.Event(nil), w.seen...)
}

func (w *witness) open() *witness { close(w.gate); return w }

func publish(m *HookManager, kinds ...string) {
	for _, k := range kinds {
		m.Publish(&Caller{Name: "bot"}, &protocol.Event{Kind: protocol.EventKind(k), Source: "agent"})
	}
}

func numbered(from, to int) (kinds []string) {
	for i := from; i <= to; i++ {
		kinds = append(kinds, fmt.Sprintf("x_%d", i))
	}
	return kinds
}

func TestObserverQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWitness()
		m := mounted(t, w.registration("w"))
		publish(m, numbered(1, 1)...)
		synctest.Wait() // the worker holds the first
		publish(m, numbered(2, observerQueue+8)...)
		st := m.Stats()["w"]
		require.EqualValues(t, 7, st.Missed, "what does not fit is dropped and counted")
		require.EqualValues(t, observerQueue, st.Queued)
		require.EqualValues(t, 1, st.Events)

		w.open()
		synctest.Wait()
		publish(m, "x_after", "x_last")
		synctest.Wait()
		seen := w.events()
		require.Len(t, seen, observerQueue+3)
		for i, ev := range seen[:observerQueue+1] {
			require.Equal(t, fmt.Sprintf("x_%d", i+1), string(ev.Kind), "the newest go, in order stay")
			require.EqualValues(t, i+1, ev.Seq)
			require.Zero(t, ev.Missed)
		}
		require.EqualValues(t, 7, seen[observerQueue+1].Missed, "the next event tells how many are missing")
		require.EqualValues(t, "x_after", seen[observerQueue+1].Kind)
		require.EqualValues(t, observerQueue+3, seen[observerQueue+2].Seq)
		require.Zero(t, seen[observerQueue+2].Missed)
		require.Zero(t, m.Stats()["w"].Queued)
	})
}

// A queue of few large events is full, too.
func TestObserverQueueIsBoundInBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWitness()
		m := mounted(t, w.registration("w"))
		large := protocol.Quote(strings.Repeat("x", observerBytes/4))
		for range 8 {
			m.Publish(&Caller{Name: "bot"}, &protocol.Event{Kind: "x_large", Payload: large})
			synctest.Wait()
		}
		require.Less(t, m.Stats()["w"].Queued, int64(4))
		require.Greater(t, m.Stats()["w"].Missed, int64(3))
		close(w.gate)
		synctest.Wait()
		publish(m, "x_after")
		synctest.Wait()
		seen := w.events()
		require.EqualValues(t, m.Stats()["w"].Missed, seen[len(seen)-1].Missed)
	})
}

// What a process could not be handed is missing in what it is handed next.
func TestLostOnTheWayIsMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []hook.Event
		h := &goHook{observe: func(_ context.Context, ev *hook.Event) error {
			if ev.Kind == "x_1" || ev.Kind == "x_2" {
				return &hook.Failure{Outcome: protocol.OutcomeStarting}
			}
			seen = append(seen, *ev)
			return nil
		}}
		r := h.registration("h")
		r.Roles.Remote = true
		m := mounted(t, r)
		publish(m, "x_1", "x_2", "x_3", "x_4")
		synctest.Wait()
		require.Len(t, seen, 2)
		require.EqualValues(t, 1, seen[0].Seq)
		require.EqualValues(t, 2, seen[0].Missed)
		require.EqualValues(t, 2, seen[1].Seq)
		require.Zero(t, seen[1].Missed)
	})
}

// batcher is an observer in another process, which takes several events at once.
type batcher struct {
	goHook
	fail    bool
	batches [][]hook.Event
	at      []time.Duration
	began   time.Time
}

func (b *batcher) ObserveAll(_ context.Context, events []*hook.Event) error {
	if b.fail {
		return &hook.Failure{Outcome: protocol.OutcomeStarting}
	}
	var batch []hook.Event
	for _, ev := range events {
		batch = append(batch, *ev)
	}
	b.batches, b.at = append(b.batches, batch), append(b.at, time.Since(b.began))
	return nil
}

// The first event goes at once, those that come soon after it together: a busy
// agent does not wake a process for each of its events.
func TestEventsGoTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &batcher{goHook: goHook{observe: func(context.Context, *hook.Event) error { panic("one by one") }}, began: time.Now()}
		r := b.registration("b")
		r.Roles.Observer, r.Roles.Remote = b, true
		m := mounted(t, r)
		publish(m, "x_1")
		synctest.Wait()
		require.Equal(t, []time.Duration{0}, b.at, "nobody waits for a second event")
		for i := range 300 {
			publish(m, fmt.Sprintf("x_%d", i+2))
			time.Sleep(100 * time.Microsecond)
		}
		time.Sleep(observerPace)
		synctest.Wait()
		require.InDelta(t, 16, len(b.batches), 1, "30 ms in steps of 2")
		n := 0
		for i, batch := range b.batches {
			if i > 0 {
				require.GreaterOrEqual(t, b.at[i]-b.at[i-1], observerPace)
			}
			for _, ev := range batch {
				n++
				require.Equal(t, fmt.Sprintf("x_%d", n), string(ev.Kind))
				require.EqualValues(t, n, ev.Seq)
				require.Zero(t, ev.Missed)
			}
		}
		require.Equal(t, 301, n)

		b.fail = true
		publish(m, numbered(1, observerBatch+10)...)
		time.Sleep(time.Second)
		synctest.Wait()
		require.EqualValues(t, observerBatch+10, m.Stats()["b"].Missed)
		require.EqualValues(t, 301, m.Stats()["b"].Events)
		b.fail = false
		publish(m, "x_last")
		synctest.Wait()
		last := b.batches[len(b.batches)-1]
		require.Len(t, last, 1)
		require.EqualValues(t, 302, last[0].Seq)
		require.EqualValues(t, observerBatch+10, last[0].Missed, "what was lost on the way is missed")
	})
}

func TestStuckObserverHurtsNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := newWitness()
		hooks := []*hook.Registration{stuck.registration("stuck")}
		var healthy []*witness
		for i := range 9 {
			w := newWitness().open()
			healthy = append(healthy, w)
			hooks = append(hooks, w.registration(fmt.Sprintf("w%d", i)))
		}
		m := mounted(t, hooks...)
		const rounds, burst = 10, 500
		start := time.Now()
		for range rounds {
			publish(m, numbered(1, burst)...)
			call(t, m) // a decision waits for none of them
			synctest.Wait()
		}
		require.Zero(t, time.Since(start))
		for _, w := range healthy {
			seen := w.events()
			require.Len(t, seen, rounds*(burst+2)) // tool_exec_start and decision
			for _, ev := range seen {
				require.Zero(t, ev.Missed)
			}
		}
		require.EqualValues(t, rounds*(burst+2)-observerQueue-1, m.Stats()["stuck"].Missed)
		stuck.open()
	})
}

// An observer's timeout is a request: who pays no heed to it holds up its own
// queue only, also when the manager is closed.
func TestCloseNamesABusyObserver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWitness()
		m := New(Options{})
		swap(t, m, w.registration("deaf"))
		publish(m, "x_1")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := m.Close(ctx)
		require.ErrorContains(t, err, `"deaf"`)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		w.open()
	})
}

func TestCloseLetsObserversFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWitness()
		m := New(Options{})
		swap(t, m, w.registration("w"))
		publish(m, numbered(1, 100)...)
		time.AfterFunc(time.Second, func() { w.open() })
		require.NoError(t, m.Close(t.Context()))
		require.Len(t, w.events(), 100)
		publish(m, "x_late") // nobody is there, nothing happens
	})
}

func TestEventsAreStamped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWitness().open()
		m := mounted(t, w.registration("w"))
		said := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
		m.Publish(&Caller{Name: "bot"}, &protocol.Event{Kind: "x_1", Time: said})
		publish(m, "x_2")
		call(t, m)
		synctest.Wait()
		ids := map[string]bool{}
		for _, ev := range w.events() {
			require.NotEmpty(t, ev.ID)
			require.False(t, ids[ev.ID], "%s twice", ev.ID)
			ids[ev.ID] = true
			require.Equal(t, "bot", protocol.MetaString(ev.Meta, "agent"))
		}
		require.Len(t, ids, 4)
		require.Equal(t, said, w.events()[0].Time, "the agent's clock")
		require.Equal(t, time.Now().UTC(), w.events()[1].Time)
	})
}

func TestFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := mounted(t)
		sub, err := protocol.ParseSubscription("x_*")
		require.NoError(t, err)
		f, idle := m.Subscribe([]protocol.Subscription{sub}), m.Subscribe([]protocol.Subscription{sub})
		publish(m, numbered(1, feedQueue+3)...)
		publish(m, "turn_start")
		ev := <-f.Events()
		require.EqualValues(t, "x_1", ev.Kind)
		require.EqualValues(t, 1, ev.Seq)
		publish(m, "x_next")
		for range feedQueue - 1 {
			<-f.Events()
		}
		ev = <-f.Events()
		require.EqualValues(t, "x_next", ev.Kind)
		require.EqualValues(t, 3, ev.Missed)
		require.EqualValues(t, feedQueue+1, ev.Seq)

		f.Close()
		f.Close()
		publish(m, "x_late")
		_, open := <-f.Events()
		require.False(t, open)
		idle.Close()
	})
}

// Events are made only when somebody wants them, and a feed is somebody.
func TestFeedSeesDecisionsWithoutObservers(t *testing.T) {
	m := mounted(t)
	sub, err := protocol.ParseSubscription("decision")
	require.NoError(t, err)
	f := m.Subscribe([]protocol.Subscription{sub})
	defer f.Close()
	call(t, m)
	ev := <-f.Events()
	require.Equal(t, protocol.EventDecision, ev.Kind)
}

func TestPreview(t *testing.T) {
	for _, c := range []struct{ content, want string }{
		{`"short"`, "short"},
		{`[{"type":"text","text":"a"},{"type":"image"},7,{"text":1},{"type":"text","text":"b"}]`, "ab"},
		{`null`, ""}, {`7`, ""}, {`[]`, ""},
	} {
		require.Equal(t, c.want, preview([]byte(c.content)), c.content)
	}
	for shift := range 3 { // "€" has three bytes, so one of the cuts falls into each
		text := strings.Repeat("x", shift) + strings.Repeat("€", previewBytes)
		cut, ok := strings.CutSuffix(preview(protocol.Quote(text)), "…")
		require.True(t, ok)
		require.True(t, strings.HasPrefix(text, cut))
		require.True(t, utf8.ValidString(cut))
		require.Greater(t, len(cut), previewBytes-utf8.UTFMax)
		require.LessOrEqual(t, len(cut), previewBytes)
	}
}
