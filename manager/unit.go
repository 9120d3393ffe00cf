package manager

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// unit is a running hook with what belongs to it and not to the rules of its
// entry: counters, the queue and the worker of an observer, the worker of a
// hook in mode async. A reload that leaves the hook as it is keeps the unit.
type unit struct {
	name  string
	value any
	stats *hookStats

	// abandoned counts calls that go on after their context ended.
	abandoned atomic.Int64

	mu     sync.Mutex
	closed bool
	events *observer
	async  chan func()
	wg     sync.WaitGroup
}

// adopt starts the workers that a registration needs, or hands the new rules
// to those that run. The manager owns the goroutines; [unit.close] ends them
// and [unit.wait] waits for them.
func (u *unit) adopt(m *HookManager, r *hook.Registration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(r.Events) > 0 {
		if u.events == nil {
			u.events = newObserver(m, u.stats)
			u.wg.Go(u.events.run)
		}
		u.events.reg.Store(r)
	}
	if r.Mode == hook.Async && u.async == nil {
		queue := make(chan func(), asyncQueue)
		u.async = queue
		u.wg.Go(func() {
			for job := range queue {
				job()
			}
		})
	}
}

// close lets the workers end when they have worked off their queues.
func (u *unit) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return
	}
	u.closed = true
	if u.events != nil {
		close(u.events.queue)
	}
	if u.async != nil {
		close(u.async)
	}
}

func (u *unit) wait(ctx context.Context) error {
	u.mu.Lock()
	closed := u.closed
	u.mu.Unlock()
	if !closed {
		return nil // a later generation holds it
	}
	done := make(chan struct{})
	go func() { // ends with the workers; a hook that ignores its context keeps it
		u.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("hook %q: its worker is still busy: %w", u.name, context.Cause(ctx))
	}
}

// publish queues an event for the observer and never waits. What does not fit
// is counted, and the next event says how many are missing.
func (u *unit) publish(ev *protocol.Event) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.events == nil:
	case u.closed:
		u.stats.missed.Add(1)
	default:
		u.events.push(ev)
	}
}

// later queues a job for the async worker; false = no room.
func (u *unit) later(job func()) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed || u.async == nil {
		return false
	}
	select {
	case u.async <- job:
		return true
	default:
		return false
	}
}

// observer feeds one hook its events from a queue of its own, so that a slow
// hook loses its own events and nobody else's.
type observer struct {
	reg   atomic.Pointer[hook.Registration]
	queue chan queuedEvent
	stats *hookStats
	log   *zap.Logger
	now   func() time.Time

	// missed counts what was dropped since the last event that fitted; guarded
	// by the unit's lock.
	missed uint64
	// Of the worker: how many events the hook got, and how many were lost since.
	seq, lost uint64
	// bytes are those of the payloads that wait or are being handed over.
	bytes atomic.Int64
}

type queuedEvent struct {
	*protocol.Event
	missed uint64
}

func newObserver(m *HookManager, stats *hookStats) *observer {
	return &observer{queue: make(chan queuedEvent, observerQueue), stats: stats, log: m.log, now: m.now}
}

func (o *observer) push(ev *protocol.Event) {
	size := int64(len(ev.Payload))
	if o.bytes.Add(size) <= observerBytes || len(o.queue) == 0 {
		select {
		case o.queue <- queuedEvent{ev, o.missed}:
			o.missed = 0
			o.stats.queued.Add(1)
			return
		default:
		}
	}
	o.bytes.Add(-size)
	o.missed++
	o.stats.missed.Add(1)
}

func (o *observer) run() {
	var (
		batch []queuedEvent
		last  time.Time // when a batch was delivered
	)
	for ev := range o.queue {
		batch = append(batch[:0], ev)
		r := o.reg.Load()
		if _, ok := r.Roles.Observer.(hook.Batcher); ok {
			time.Sleep(observerPace - o.now().Sub(last))
			batch = o.waiting(batch)
			last = o.now()
		}
		o.deliver(r, batch)
		clear(batch)
	}
}

// waiting adds the events that wait to a batch.
func (o *observer) waiting(batch []queuedEvent) []queuedEvent {
	for size := len(batch[0].Payload); len(batch) < observerBatch && size < observerBatchBytes; {
		select {
		case ev, ok := <-o.queue:
			if !ok {
				return batch
			}
			batch = append(batch, ev)
			size += len(ev.Payload)
		default:
			return batch
		}
	}
	return batch
}

// deliver hands events to the hook. What could not be handed over the next one
// that can tells.
func (o *observer) deliver(r *hook.Registration, batch []queuedEvent) {
	events := make([]*hook.Event, 0, len(batch))
	made := make([]hook.Event, len(batch))
	bytes := int64(0)
	for _, ev := range batch {
		o.stats.queued.Add(-1)
		bytes += int64(len(ev.Payload))
		o.lost += ev.missed
		if r.If == nil || meansEvent(r, ev.Event) {
			next := &made[len(events)]
			*next = hook.Event{Event: ev.Event, Seq: o.seq + uint64(len(events)) + 1, Missed: o.lost}
			events = append(events, next)
			o.lost = 0
		}
	}
	defer o.bytes.Add(-bytes)
	n := int64(len(events))
	if n == 0 {
		return
	}
	o.stats.events.Add(n)
	err := o.observe(r, events)
	if err != nil {
		kind := string(events[0].Kind)
		o.stats.failed("observe "+kind+": "+err.Error(), o.now())
		o.log.Debug("observer failed", zap.String("hook", r.Name), zap.String("event", kind), zap.Error(err))
	}
	if err == nil || !r.Roles.Remote { // an in-process hook has had it all the same
		o.seq += uint64(n)
		return
	}
	for _, ev := range events {
		o.lost += ev.Missed + 1
	}
	o.stats.missed.Add(n)
	o.stats.events.Add(-n)
}

// meansEvent asks a condition about an event as if it were a call. What hookd
// tells of itself has no agent and nothing to judge.
func meansEvent(r *hook.Registration, ev *protocol.Event) bool {
	if ev.Kind != protocol.EventDecision && ev.Meta == nil && isHookds(ev.Kind) {
		return true
	}
	subject, _ := protocol.ParseObject(ev.Payload) // none is empty
	return condition(r.If, &protocol.Request{Stage: &protocol.StageInfo{}, Meta: ev.Meta, Subject: subject})
}

func (o *observer) observe(r *hook.Registration, events []*hook.Event) (err error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), r.ObserverTimeout, errHookTimeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = panicFailure(p)
		}
	}()
	if b, ok := r.Roles.Observer.(hook.Batcher); ok {
		return b.ObserveAll(ctx, events)
	}
	return r.Roles.Observer.Observe(ctx, events[0])
}

// answer is what a hook said, in one of the two forms.
type answer struct {
	decision protocol.Decision
	approval protocol.Approval
}

// invoke calls the hook once for this request, with recover around it. A
// remote or quick hook is called directly; another one gets a goroutine, so
// that its timeout holds although it ignores its context.
func (mb *member) invoke(ctx context.Context, req *protocol.Request) (answer, error) {
	if mb.Roles.Remote || mb.Roles.Quick {
		return mb.invokeHere(ctx, req)
	}
	if mb.unit.abandoned.Load() >= abandonedCalls {
		return answer{}, &hook.Failure{
			Outcome: protocol.OutcomeBreakerOpen,
			Detail:  fmt.Sprintf("%d earlier calls ignored their deadline and still run", abandonedCalls),
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, req.Timeout, errHookTimeout)
	defer cancel()
	type reply struct {
		answer
		err error
	}
	done := make(chan reply, 1)
	var settled atomic.Bool // by whoever is second: the return, or giving up
	go func() {
		a, err := mb.invokeHere(ctx, req)
		done <- reply{a, err}
		if !settled.CompareAndSwap(false, true) {
			mb.unit.abandoned.Add(-1)
		}
	}()
	select {
	case r := <-done:
		return r.answer, causeOf(ctx, r.err)
	case <-ctx.Done():
	}
	select { // an answer that came at the last moment counts
	case r := <-done:
		return r.answer, causeOf(ctx, r.err)
	default:
	}
	mb.unit.abandoned.Add(1)
	if !settled.CompareAndSwap(false, true) {
		mb.unit.abandoned.Add(-1) // it returned just now
	}
	return answer{}, context.Cause(ctx)
}

func (mb *member) invokeHere(ctx context.Context, req *protocol.Request) (a answer, err error) {
	defer func() {
		if p := recover(); p != nil {
			a, err = answer{}, panicFailure(p)
		}
	}()
	if req.Stage.Name == protocol.StageApproveTool {
		a.approval, err = mb.Roles.Approver.Approve(ctx, req)
		return a, err
	}
	a.decision, err = mb.Roles.Interceptor.Intercept(ctx, req)
	if err == nil && !mb.Roles.Remote { // what came over a wire has been checked
		err = checkDecision(req.Stage, &a.decision)
	}
	return a, err
}

// checkDecision judges a decision made in Go by the rules for one that comes
// over a wire. The plain verbs cost nothing.
func checkDecision(stage *protocol.StageInfo, d *protocol.Decision) error {
	err := error(nil)
	switch verb := d.Decided(); {
	case verb != protocol.ActionContinue && verb.Rank() == 0:
		err = fmt.Errorf("action: unknown verb %q", verb)
	case d.Subject != nil || d.Patch != nil || d.Respond != nil || d.Inject != nil || d.State != nil,
		verb == protocol.ActionRespond, verb == protocol.ActionInject:
		err = d.Check(stage)
	}
	if err != nil {
		return &hook.Failure{Outcome: protocol.OutcomeBadAnswer, Detail: err.Error(), Err: err}
	}
	return nil
}

// panicFailure keeps the stack for the log; the agent sees the panic's text.
func panicFailure(p any) error {
	return &hook.Failure{Outcome: protocol.OutcomePanic, Detail: fmt.Sprint(p), Err: &panicError{value: p, stack: debug.Stack()}}
}

type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprint(e.value) }

// causeOf says why ctx ended when that is what err is about.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && (errors.Is(err, cause) || errors.Is(err, ctx.Err())) {
		return cause
	}
	return err
}

// outcomeOf names what went wrong in a hook's turn. A failure never gets the
// name of a verdict.
func outcomeOf(ctx context.Context, err error, timeout time.Duration) (protocol.Outcome, string) {
	cause := causeOf(ctx, err)
	switch {
	case errors.Is(cause, errHookTimeout):
		return protocol.OutcomeTimeout, fmt.Sprintf("no answer within %s", timeout)
	case errors.Is(cause, errChainDeadline), errors.Is(cause, errAgentDeadline):
		return protocol.OutcomeChainDeadline, cause.Error()
	case ctx.Err() != nil && cause == context.Cause(ctx):
		return protocol.OutcomeCancelled, cause.Error()
	}
	if f, ok := errors.AsType[*hook.Failure](err); ok && f.Outcome.Failed() {
		return f.Outcome, f.Detail
	}
	return protocol.OutcomeHookError, err.Error()
}
