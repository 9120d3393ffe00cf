package daemon

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/hookd/hookd/builtin/cancel"
	"github.com/hookd/hookd/manager"
	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/record"
)

// tally is a session as it goes on, for the row that its end becomes.
type tally struct {
	agent                         string
	since, last                   time.Time
	calls, denied, asked, degrade int
}

// count notes a decision with its session.
func (b *book) count(rec *manager.Record) {
	id := sessionID(rec.Caller, rec.Request.Meta)
	if id == "" || rec.Request.DryRun {
		return
	}
	res := rec.Result
	b.mu.Lock()
	t, fresh := b.enter(id, rec.Caller, rec.Request.Meta)
	t.calls++
	if res.Action.Stops() || res.Approval != nil && !res.Approval.Approved {
		t.denied++
	}
	if res.Action == protocol.ActionAsk || res.Approval != nil {
		t.asked++
	}
	if len(res.Degraded) > 0 {
		t.degrade++
	}
	b.mu.Unlock()
	if fresh {
		b.started(id, rec.Caller, rec.Request.Meta, "first heard of")
	}
}

// event records what an agent's own event says about the life of a session.
func (b *book) event(caller *manager.Caller, ev *protocol.Event) {
	if b.store == nil || ev.Kind != protocol.EventSessionStart && ev.Kind != protocol.EventSessionEnd {
		return
	}
	id := sessionID(caller, ev.Meta)
	if id == "" {
		return
	}
	if ev.Kind == protocol.EventSessionStart {
		b.mu.Lock()
		_, fresh := b.enter(id, caller, ev.Meta)
		b.mu.Unlock()
		if fresh {
			b.started(id, caller, ev.Meta, "")
		}
		return
	}
	payload, _ := protocol.ParseObject(ev.Payload) // of another shape: no reason
	b.stopped(id, caller, ev.Meta, textMember(payload, "reason", "status"))
}

// gone ends the session that an agent has bound to its connection.
func (d *daemon) gone(s *session) {
	if s == nil || s.name.Load() == nil || s.caller.SessionID == "" {
		return
	}
	d.mu.Lock()
	for other := range d.sessions {
		if other != s && other.name.Load() != nil && other.caller.SessionID == s.caller.SessionID {
			d.mu.Unlock()
			return // it has another connection
		}
	}
	d.mu.Unlock()
	d.takers.meter.Gone(cancel.ID(s.caller.SessionID, s.caller.Name))
	d.book.mu.Lock()
	known := d.book.tallies[s.caller.SessionID] != nil
	d.book.mu.Unlock()
	if known { // else it has ended before
		d.book.stopped(s.caller.SessionID, s.caller, nil, "the agent disconnected")
	}
}

// enter finds or makes the tally of a session. It is called with the lock held.
func (b *book) enter(id string, caller *manager.Caller, meta protocol.Object) (t *tally, fresh bool) {
	now := time.Now()
	if t = b.tallies[id]; t != nil {
		t.last = now
		return t, false
	}
	if len(b.tallies) >= maxTallies {
		b.forget()
	}
	t = &tally{agent: agentOf(caller, meta), since: now, last: now}
	b.tallies[id] = t
	return t, true
}

// forget makes room: who was not heard of for longest is no longer counted.
func (b *book) forget() {
	type seen struct {
		id   string
		last time.Time
	}
	list := make([]seen, 0, len(b.tallies))
	for id, t := range b.tallies {
		list = append(list, seen{id, t.last})
	}
	slices.SortFunc(list, func(a, b seen) int { return a.last.Compare(b.last) })
	for _, s := range list[:len(list)/4] {
		delete(b.tallies, s.id)
	}
}

func (b *book) started(id string, caller *manager.Caller, meta protocol.Object, reason string) {
	b.tell(func(s *record.Store) error {
		e := sessionEvent(id, "start", caller, meta)
		e.Reason = reason
		return s.Session(e)
	})
}

func (b *book) stopped(id string, caller *manager.Caller, meta protocol.Object, reason string) {
	b.mu.Lock()
	t := b.tallies[id]
	delete(b.tallies, id)
	b.mu.Unlock()
	b.tell(func(s *record.Store) error {
		e := sessionEvent(id, "stop", caller, meta)
		e.Reason = reason
		if t != nil {
			e.Agent, e.Duration = cmp.Or(e.Agent, t.agent), time.Since(t.since)
			e.Counts = fmt.Appendf(nil, `{"calls":%d,"denied":%d,"asked":%d,"degraded":%d}`, t.calls, t.denied, t.asked, t.degrade)
		}
		return s.Session(e)
	})
}

func sessionEvent(id, what string, caller *manager.Caller, meta protocol.Object) *record.SessionEvent {
	return &record.SessionEvent{
		Session: id, What: what, Agent: agentOf(caller, meta), User: protocol.MetaString(meta, "user_id"),
		Model: protocol.MetaString(meta, "model"), CWD: protocol.MetaString(meta, "cwd"), PID: caller.PID, UID: caller.UID,
	}
}

// sessionID is the session that a call or an event belongs to, as the record
// names it; "" = the agent names none.
func sessionID(caller *manager.Caller, meta protocol.Object) string {
	return cmp.Or(protocol.MetaString(meta, "session_id"), caller.SessionID)
}

func agentOf(caller *manager.Caller, meta protocol.Object) string {
	return cmp.Or(caller.Name, protocol.MetaString(meta, "agent"))
}

// textMember returns the first of these members that is a text.
func textMember(o protocol.Object, names ...string) string {
	for _, name := range names {
		if v := o.Get(name); v != nil && v.Kind() == '"' {
			return protocol.Unquote(v)
		}
	}
	return ""
}
