package telemetry

import (
	"container/list"
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/hookd/hookd/protocol"
)

// runs are the open runs of agents. All but open belongs to one goroutine.
type runs struct {
	most      int
	max, idle time.Duration
	provider  *sdktrace.TracerProvider
	tracer    trace.Tracer

	byKey map[runKey]*run
	order *list.List // of *run; the one that said something last stands in front
	wake  time.Time  // when a run's time may be up; zero = none is open
	open  atomic.Int64
}

// run is what an agent does for one task.
type run struct {
	ids
	key     runKey
	place   *list.Element
	ctx     context.Context // with its span
	span    trace.Span
	opened  time.Time // here, for its limits
	started time.Time // of its span
	last    time.Time // it said something
	lastEnd time.Time // of the spans below it

	calls, stopped, degraded int64

	// Once it is over, ended is when and how says by what. Its span stays open a
	// little for what comes late.
	ended       time.Time
	status, how string
}

// linger is how long the end of a run waits for what still belongs to it: its
// output, and what another way has brought later.
const linger = 5 * time.Second

// maxLate is how long an event may be under way.
const maxLate = time.Minute

// What a run's and a call's attribute status says.
const (
	statusOK      = "ok"
	statusError   = "error"
	statusTimeout = "timeout" // its end was not seen
	statusStopped = "stopped" // by a hook
)

// Why a run's end was not seen.
const (
	howMax     = "max_run_minutes"
	howIdle    = "run_idle_minutes"
	howEvicted = "max_runs"
	howClosed  = "shutdown"
)

func newRuns(c *config, to sdktrace.SpanProcessor) *runs {
	r := &runs{
		most: int(*c.MaxRuns), max: minutes(*c.MaxRunMinutes), idle: minutes(*c.RunIdleMinutes),
		provider: newProvider(c, to), byKey: map[runKey]*run{}, order: list.New(),
	}
	r.tracer = r.provider.Tracer(scope)
	return r
}

// take works off one call or event.
func (rs *runs) take(it *item, now time.Time) {
	if it.call != nil {
		rs.takeCall(it.call, now)
	} else {
		rs.takeNote(it.note, now)
	}
}

func (rs *runs) takeCall(c *call, now time.Time) {
	r := rs.byKey[c.key()]
	if r != nil && !r.ended.IsZero() && !late(c.stage) {
		rs.finish(r)
		r = nil
	}
	fresh := r == nil
	if fresh {
		r = rs.start(&c.ids, c.started, now)
	}
	rs.touch(r, &c.ids, now)
	r.add(c)
	rs.writeCall(r, c)
	end := c.started.Add(c.took)
	switch {
	case c.verdict == protocol.ActionAbortTurn || c.verdict == protocol.ActionHardAbort:
		rs.end(r, end, statusStopped, string(c.verdict), now)
	case c.shared():
	case c.verdict == protocol.ActionDeny && endsTurn(c.stage):
		rs.end(r, end, statusStopped, string(c.stage)+" denied", now)
	case c.verdict == protocol.ActionRespond && c.stage == protocol.StageBeforeAgent:
		rs.end(r, end, statusOK, "before_agent answered", now)
	case c.stage == protocol.StageStop && c.verdict != protocol.ActionInject, c.stage == protocol.StageOutput && fresh:
		rs.end(r, end, statusOK, string(c.stage), now)
	}
}

// late reports whether a call at the stage may belong to a run that is over.
func late(s protocol.Stage) bool {
	switch s {
	case protocol.StageOutput, protocol.StageStop, protocol.StageAfterTool, protocol.StageAfterLLM:
		return true
	}
	return false
}

// endsTurn reports whether the agent goes no further after a no at the stage.
func endsTurn(s protocol.Stage) bool {
	switch s {
	case protocol.StageUserMessage, protocol.StageBeforeAgent, protocol.StageBeforeLLM:
		return true
	}
	return false
}

func (rs *runs) takeNote(n *note, now time.Time) {
	if n.kind == protocol.EventSessionEnd {
		rs.endSession(n, now)
		return
	}
	r := rs.byKey[n.key()]
	if r != nil && n.before(r.started) {
		return // of another run, which is over
	}
	begins := n.kind == protocol.EventTurnStart || n.kind == protocol.EventAgentStart
	if r != nil && !r.ended.IsZero() && begins && !n.before(r.lastEnd) {
		rs.finish(r)
		r = nil
	}
	if r == nil {
		if !begins && n.kind != protocol.EventAgentError && n.kind != protocol.EventAgentTimeout {
			return
		}
		r = rs.start(&n.ids, n.when(), now)
	}
	rs.touch(r, &n.ids, now)
	r.span.AddEvent(string(n.kind), trace.WithTimestamp(n.when()))
	r.until(n.when())
	if n.shared() {
		return
	}
	switch n.kind {
	case protocol.EventTurnEnd, protocol.EventAgentEnd:
		rs.end(r, n.when(), statusOK, string(n.kind), now)
	case protocol.EventAgentError:
		rs.end(r, n.when(), statusError, string(n.kind), now)
	case protocol.EventAgentTimeout:
		rs.end(r, n.when(), statusTimeout, string(n.kind), now)
	}
}

// when is the time of the event: what its agent says, unless that can't be.
func (n *note) when() time.Time {
	if n.sent.After(n.at) || n.sent.Before(n.at.Add(-maxLate)) {
		return n.at
	}
	return n.sent
}

// before reports whether the event happened before that time: events and calls
// come by different ways. An agent may round its times to seconds.
func (n *note) before(t time.Time) bool {
	when := n.when()
	if when.Nanosecond() == 0 {
		when = when.Add(time.Second)
	}
	return when.Before(t)
}

// endSession ends all runs of a session.
func (rs *runs) endSession(n *note, now time.Time) {
	for _, r := range rs.byKey {
		if r.agent == n.agent && r.session == n.session && !n.before(r.started) {
			rs.end(r, n.when(), statusOK, string(n.kind), now)
		}
	}
}

// start opens the span of a run. When too many are open, the one that was
// silent for longest ends.
func (rs *runs) start(i *ids, at, now time.Time) *run {
	for len(rs.byKey) >= rs.most {
		r := rs.order.Back().Value.(*run)
		rs.cut(r, r.lastEnd, howEvicted, now)
	}
	r := &run{ids: *i, key: i.key(), opened: now, started: at, last: now, lastEnd: at}
	var parent *run
	if key, ok := i.parentKey(); ok {
		parent = rs.byKey[key]
	}
	r.ctx, r.span = rs.tracer.Start(parentContext(i, parent), nameOf(i), trace.WithTimestamp(at))
	rs.byKey[r.key] = r
	r.place = rs.order.PushFront(r)
	rs.open.Store(int64(len(rs.byKey)))
	rs.wakeAt(rs.deadline(r))
	return r
}

// touch notes that a run has said something, and what it lets know of itself.
func (rs *runs) touch(r *run, i *ids, now time.Time) {
	r.last = now
	rs.order.MoveToFront(r.place)
	for _, f := range []struct{ have, more *string }{
		{&r.agentID, &i.agentID}, {&r.session, &i.session}, {&r.turn, &i.turn}, {&r.model, &i.model},
	} {
		if *f.more != "" && (*f.have == "" || f.have == &r.model) {
			*f.have = *f.more
		}
	}
}

func (r *run) add(c *call) {
	r.calls++
	if c.verdict == protocol.ActionDeny || c.verdict == protocol.ActionAbortTurn || c.verdict == protocol.ActionHardAbort {
		r.stopped++
	}
	r.degraded += int64(c.degraded)
	r.until(c.started.Add(c.took))
}

// until makes the span of a run last until at least then.
func (r *run) until(t time.Time) {
	if t.After(r.lastEnd) {
		r.lastEnd = t
	}
}

// end says that a run is over. The first who says so is right, unless he saw
// nothing wrong and another one did.
func (rs *runs) end(r *run, at time.Time, status, how string, now time.Time) {
	if !r.ended.IsZero() && (r.status != statusOK || status == statusOK) {
		return
	}
	r.status, r.how = status, how
	r.until(at)
	if r.ended.IsZero() {
		r.ended = now
		rs.wakeAt(rs.deadline(r))
	}
}

// cut finishes a run whose end was not seen, unless it was.
func (rs *runs) cut(r *run, at time.Time, how string, now time.Time) {
	if r.ended.IsZero() {
		rs.end(r, at, statusTimeout, how, now)
	}
	rs.finish(r)
}

// finish ends the span of a run that is over and forgets it.
func (rs *runs) finish(r *run) {
	r.span.SetAttributes(runAttributes(r)...)
	if r.status != statusOK {
		r.span.SetStatus(codes.Error, r.how)
	}
	r.span.End(trace.WithTimestamp(r.lastEnd))
	delete(rs.byKey, r.key)
	rs.order.Remove(r.place)
	rs.open.Store(int64(len(rs.byKey)))
}

// deadline is when a run's time is up.
func (rs *runs) deadline(r *run) time.Time {
	if !r.ended.IsZero() {
		return r.ended.Add(linger)
	}
	if idle := r.last.Add(rs.idle); idle.Before(r.opened.Add(rs.max)) {
		return idle
	}
	return r.opened.Add(rs.max)
}

func (rs *runs) wakeAt(t time.Time) {
	if rs.wake.IsZero() || t.Before(rs.wake) {
		rs.wake = t
	}
}

// untilNext is how long no run's time can be up.
func (rs *runs) untilNext(now time.Time) time.Duration {
	if rs.wake.IsZero() {
		return time.Hour
	}
	return max(rs.wake.Sub(now), 0)
}

// expire ends the runs whose time is up.
func (rs *runs) expire(now time.Time) {
	rs.wake = time.Time{}
	for _, r := range rs.byKey {
		if at := rs.deadline(r); at.After(now) {
			rs.wakeAt(at)
			continue
		}
		if r.opened.Add(rs.max).After(now) {
			rs.cut(r, r.lastEnd, howIdle, now)
		} else {
			rs.cut(r, now, howMax, now)
		}
	}
}

// close ends all runs.
func (rs *runs) close(now time.Time) {
	for _, r := range rs.byKey {
		rs.cut(r, now, howClosed, now)
	}
}
