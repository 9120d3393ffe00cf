package manager

import (
	"slices"
	"sync"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// feedQueue is how many events wait for one feed at most.
const feedQueue = 1024

// Feed is a live view of events for somebody who looks on, such as a terminal.
// It loses its newest events when it is not read quickly enough, and says so.
type Feed struct {
	m      *HookManager
	subs   []protocol.Subscription
	events chan hook.Event

	mu     sync.Mutex
	closed bool
	seq    uint64
	missed uint64
}

// Subscribe opens a feed of the events that one of subs matches. Close it.
func (m *HookManager) Subscribe(subs []protocol.Subscription) *Feed {
	f := &Feed{m: m, subs: subs, events: make(chan hook.Event, feedQueue)}
	m.feedsMu.Lock()
	defer m.feedsMu.Unlock()
	m.feeds.Store(new(append(slices.Clone(m.openFeeds()), f)))
	return f
}

// Events delivers what happens, until the feed is closed.
func (f *Feed) Events() <-chan hook.Event { return f.events }

// Close ends the feed and closes its channel. It may be called twice.
func (f *Feed) Close() {
	f.m.feedsMu.Lock()
	f.m.feeds.Store(new(slices.DeleteFunc(slices.Clone(f.m.openFeeds()), func(o *Feed) bool { return o == f })))
	f.m.feedsMu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.closed = true
		close(f.events)
	}
}

func (f *Feed) wants(kind protocol.EventKind) bool {
	return slices.ContainsFunc(f.subs, func(s protocol.Subscription) bool { return s.Matches(kind) })
}

func (f *Feed) push(ev *protocol.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	select {
	case f.events <- hook.Event{Event: ev, Seq: f.seq + 1, Missed: f.missed}:
		f.seq++
		f.missed = 0
	default:
		f.missed++
	}
}

// openFeeds is the current list, never changed in place.
func (m *HookManager) openFeeds() []*Feed {
	if list := m.feeds.Load(); list != nil {
		return *list
	}
	return nil
}
