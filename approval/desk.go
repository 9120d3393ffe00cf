package approval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/zap"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

const (
	// maxOpen is how many tickets may be open when [Options] say nothing.
	maxOpen = 256
	// maxEnded is how many ended tickets are remembered, so that a late answer
	// is told what has become of them.
	maxEnded = 512
	// wakeEvery is how often a ticket looks whether the machine has slept.
	wakeEvery = time.Second
)

// Reasons of a no that nobody has said.
const (
	reasonGone      = "the agent went away"
	reasonAbandoned = "hookd ended before anybody answered"
	reasonDryRun    = "a person would be asked; a dry run asks nobody"
)

// Options configure a [Desk]. The zero value works.
type Options struct {
	// Journal keeps what happens; nil = a [Memory].
	Journal Journal
	// MaxOpen is how many tickets may be open at once; 0 = 256. A call over it
	// is a no.
	MaxOpen int
	// Guard, when set, refuses a person's answer by an error that says why, such
	// as one from within the asking agent's own processes. It may read /proc.
	Guard func(t *Ticket, by Ruler) error
	// Cancelled, when set, says whether the session of a ticket was cancelled,
	// and why. It must not wait.
	Cancelled func(t *Ticket) (reason string, is bool)
	// Publish, when set, is handed the events of approvals. It must not wait.
	Publish func(kind protocol.EventKind, meta protocol.Object, payload jsontext.Value)
	// ShuttingDown is the cause with which contexts end when hookd does.
	ShuttingDown error
	// Slept, when set, returns for how long the machine has been asleep since
	// some fixed moment. Timers stand still meanwhile; tickets must not.
	Slept func() time.Duration
	// Log gets what the journal could not take; nil = none. Never payload.
	Log *zap.Logger
}

// Desk holds the open tickets and the rules. Make one with [NewDesk]; it is
// safe for concurrent use and runs nothing of its own.
type Desk struct {
	o       Options
	journal Journal
	log     *zap.Logger
	ruling  sync.Mutex // orders what makes rules, also while the journal writes

	mu       sync.Mutex
	open     map[string]*pending
	reserved map[string]bool // ids of tickets that are being written down
	ended    map[string]*pending
	order    []string // of ended, oldest first
	rules    []*Rule
	lastRule int
	stats    Stats
}

// Stats count what has happened since hookd started.
type Stats struct {
	// Open is how many tickets wait now.
	Open int
	// Opened counts tickets. Approved, Denied, TimedOut and Gone are how they
	// ended; Gone are those whose agent did not wait.
	Opened, Approved, Denied, TimedOut, Gone int64
	// ByRule counts calls that a rule has answered, Refused answers that did
	// not count, Overloaded calls for which there was no room.
	ByRule, Refused, Overloaded int64
	// Notified counts notifications, NoticesFailed commands that failed, and
	// NoticesDropped tickets that nobody was notified of, because there were too
	// many at once.
	Notified, NoticesFailed, NoticesDropped int64
}

// pending is a ticket until it has ended, and a while longer.
type pending struct {
	ticket Ticket
	meta   protocol.Object
	opened time.Time     // on the monotonic clock
	slept  time.Duration // what Slept said then
	// claimed: somebody resolves it; guarded by the desk's lock.
	claimed bool
	// resolution is set before done is closed.
	resolution Resolution
	done       chan struct{}
	// told is closed when observers know of the ticket, so that they hear of its
	// end later.
	told chan struct{}
}

// NewDesk returns a desk with the rules of an earlier hookd. Tickets that it
// has left open become a no. When the journal can't say what there was, the
// desk starts without rules, which is the safe side, and the error says so.
func NewDesk(o Options) (*Desk, error) {
	d := &Desk{o: o, journal: o.Journal, log: o.Log, open: map[string]*pending{}, reserved: map[string]bool{}, ended: map[string]*pending{}}
	if d.journal == nil {
		d.journal = &Memory{}
	}
	if d.log == nil {
		d.log = zap.NewNop()
	}
	d.o.MaxOpen = cmp.Or(o.MaxOpen, maxOpen)
	saved, err := d.journal.Load()
	if err != nil {
		return d, fmt.Errorf("read the approvals of before: %w", err)
	}
	var errs []error
	now := time.Now()
	for i := range saved.Open {
		errs = append(errs, d.journal.Resolved(&saved.Open[i], &Resolution{How: HowAbandoned, Reason: reasonAbandoned, At: now}))
	}
	d.lastRule = saved.LastRule
	for _, r := range saved.Rules {
		d.lastRule = max(d.lastRule, r.Number)
		if r.Scope == Always {
			r.Used, r.LastUsed = 0, time.Time{}
			d.rules = append(d.rules, new(r))
			continue
		}
		// Whether the session ended meanwhile nobody can tell.
		errs = append(errs, d.journal.RuleEnded(r.Number, &RuleEnd{Reason: "hookd was restarted", At: now}))
	}
	slices.SortFunc(d.rules, func(a, b *Rule) int { return cmp.Compare(a.Number, b.Number) })
	if err := errors.Join(errs...); err != nil {
		return d, fmt.Errorf("end the approvals of before: %w", err)
	}
	return d, nil
}

// Ask puts a call on the desk and waits until it is resolved, at most for
// req.Timeout. It returns at once when ctx ends. opened, when not nil, is told
// the ticket as soon as it can be answered, and must not wait. The error is a
// [hook.Failure], or the cause of ctx; it is a no in either case.
func (d *Desk) Ask(ctx context.Context, req *protocol.Request, opened func(*Ticket)) (protocol.Approval, error) {
	if req.DryRun {
		return protocol.Approval{Reason: reasonDryRun}, nil
	}
	p := &pending{ticket: newTicket(ctx, req, time.Now()), meta: req.Meta, done: make(chan struct{}), told: make(chan struct{})}
	p.opened, p.slept = p.ticket.Opened, d.slept()
	if r, ok := d.cancelled(p); ok {
		return r.approval(), nil
	}
	if r, ok := d.byRule(&p.ticket); ok {
		return r.approval(), nil
	}
	if ctx.Err() != nil {
		return protocol.Approval{}, context.Cause(ctx)
	}
	if err := d.put(p); err != nil {
		return protocol.Approval{}, err
	}
	d.publish(protocol.EventApprovalRequested, p, protocol.Object{
		{Name: "ticket", Value: protocol.Quote(p.ticket.ID)},
		{Name: "tool", Value: protocol.Quote(p.ticket.Tool)},
		{Name: "arguments", Value: p.ticket.Arguments},
		{Name: "message", Value: protocol.Quote(p.ticket.Message)},
	})
	close(p.told)
	if opened != nil {
		opened(&p.ticket)
	}
	// What was said between the first look and now has not reached the ticket.
	if r, ok := d.cancelled(p); ok {
		d.resolve(p, r)
	} else if r, ok := d.byRule(&p.ticket); ok {
		d.resolve(p, r)
	}
	d.wait(ctx, p)
	switch r := &p.resolution; r.How {
	case HowTimeout:
		if ctx.Err() == nil {
			return protocol.Approval{}, &hook.Failure{Outcome: protocol.OutcomeTimeout, Detail: fmt.Sprintf("nobody answered within %s", seconds(p.ticket.Limit()))}
		}
		return protocol.Approval{}, context.Cause(ctx)
	case HowAgentGone, HowShutdown:
		return protocol.Approval{}, context.Cause(ctx)
	default:
		return r.approval(), nil
	}
}

func (r *Resolution) approval() protocol.Approval {
	return protocol.Approval{Approved: r.Approved, Reason: r.Reason, By: r.By}
}

// put opens a ticket, when there is room and it could be written down.
func (d *Desk) put(p *pending) error {
	if err := d.reserve(p); err != nil {
		return err
	}
	err := d.journal.Opened(&p.ticket)
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.reserved, p.ticket.ID)
	if err != nil {
		d.log.Error("an approval was not recorded, so nobody is asked", zap.String("ticket", p.ticket.ID), zap.Error(err))
		return &hook.Failure{Outcome: protocol.OutcomeHookError, Detail: "the approval could not be recorded", Err: err}
	}
	d.open[p.ticket.ID] = p
	d.stats.Opened++
	return nil
}

// reserve takes a place on the desk and an id.
func (d *Desk) reserve(p *pending) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.open)+len(d.reserved) >= d.o.MaxOpen {
		d.stats.Overloaded++
		return &hook.Failure{Outcome: protocol.OutcomeOverloaded, Detail: fmt.Sprintf("%d approvals are open already", d.o.MaxOpen)}
	}
	for id := newName(); p.ticket.ID == ""; id = newName() {
		if d.open[id] == nil && !d.reserved[id] && d.ended[id] == nil {
			p.ticket.ID = id
		}
	}
	d.reserved[p.ticket.ID] = true
	return nil
}

// wait returns when the ticket is resolved, and resolves it when its time is
// over or nobody waits for it any more.
func (d *Desk) wait(ctx context.Context, p *pending) {
	var end, wake <-chan time.Time
	// Where the context's deadline is the ticket's end, it says so itself, and
	// the reason is its cause.
	if deadline, ok := ctx.Deadline(); !ok || deadline.After(p.ticket.Expires) {
		t := time.NewTimer(time.Until(p.ticket.Expires))
		defer t.Stop()
		end = t.C
	}
	if d.o.Slept != nil {
		t := time.NewTicker(wakeEvery)
		defer t.Stop()
		wake = t.C
	}
	for {
		select {
		case <-p.done:
			return
		case <-ctx.Done():
			d.resolve(p, d.ending(ctx, p))
		case <-end:
			d.resolve(p, d.timeout(p))
		case <-wake:
			if !d.expired(p) {
				continue
			}
			d.resolve(p, d.timeout(p))
		}
		<-p.done // another may have been quicker
		return
	}
}

// ending says what the end of the context means.
func (d *Desk) ending(ctx context.Context, p *pending) Resolution {
	switch cause := context.Cause(ctx); {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return d.timeout(p)
	case d.o.ShuttingDown != nil && errors.Is(cause, d.o.ShuttingDown):
		return Resolution{How: HowShutdown, Reason: cause.Error()}
	}
	return Resolution{How: HowAgentGone, Reason: reasonGone}
}

func (d *Desk) timeout(p *pending) Resolution {
	return Resolution{How: HowTimeout, Reason: fmt.Sprintf("approval timed out (%s)", seconds(p.ticket.Limit()))}
}

// expired reports whether the ticket's time is over, that in which the machine
// slept included. A step of the wall clock does not matter.
func (d *Desk) expired(p *pending) bool {
	return time.Since(p.opened)+d.slept()-p.slept >= p.ticket.Limit()
}

func (d *Desk) slept() time.Duration {
	if d.o.Slept == nil {
		return 0
	}
	return d.o.Slept()
}

func (d *Desk) cancelled(p *pending) (Resolution, bool) {
	if d.o.Cancelled == nil {
		return Resolution{}, false
	}
	reason, is := d.o.Cancelled(&p.ticket)
	return Resolution{How: HowCancelled, Reason: reason}, is
}

// resolve ends a ticket, unless somebody else does, and reports whether it did.
func (d *Desk) resolve(p *pending, r Resolution) bool {
	if !d.claim(p) {
		return false
	}
	d.settle(p, r)
	return true
}

// claim takes the right to resolve a ticket. One caller gets it, and calls
// settle.
func (d *Desk) claim(p *pending) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p.claimed {
		return false
	}
	p.claimed = true
	return true
}

// settle writes the end of a claimed ticket down and tells everybody.
func (d *Desk) settle(p *pending, r Resolution) {
	r.At = time.Now()
	if err := d.journal.Resolved(&p.ticket, &r); err != nil {
		d.log.Error("the end of an approval was not recorded", zap.String("ticket", p.ticket.ID), zap.Bool("approved", r.Approved), zap.Error(err))
		if r.Approved {
			r.Approved, r.How, r.Reason = false, HowUnrecorded, "the answer could not be recorded"
		}
	}
	d.mu.Lock()
	p.resolution = r
	d.remember(p)
	d.count(&r)
	d.mu.Unlock()
	close(p.done)
	<-p.told
	said := []byte("false")
	if r.Approved {
		said = []byte("true")
	}
	d.publish(protocol.EventApprovalResolved, p, protocol.Object{
		{Name: "ticket", Value: protocol.Quote(p.ticket.ID)},
		{Name: "approved", Value: said},
		{Name: "by", Value: protocol.Quote(r.By)},
		{Name: "reason", Value: protocol.Quote(r.Reason)},
	})
}

// remember moves a ticket from the open ones to those that have ended. The
// ticket itself stays as it is for those who still look at it.
func (d *Desk) remember(p *pending) {
	short := &pending{ticket: p.ticket, resolution: p.resolution}
	short.ticket.Arguments = nil
	delete(d.open, p.ticket.ID)
	d.ended[p.ticket.ID] = short
	d.order = append(d.order, p.ticket.ID)
	if len(d.order) > maxEnded {
		delete(d.ended, d.order[0])
		d.order = slices.Delete(d.order, 0, 1)
	}
}

func (d *Desk) count(r *Resolution) {
	switch {
	case r.Approved:
		d.stats.Approved++
	case r.How == HowTimeout:
		d.stats.TimedOut++
	case r.How == HowAgentGone || r.How == HowShutdown:
		d.stats.Gone++
	default:
		d.stats.Denied++
	}
}

func (d *Desk) publish(kind protocol.EventKind, p *pending, payload protocol.Object) {
	if d.o.Publish != nil {
		d.o.Publish(kind, p.meta, payload.AppendJSON(nil))
	}
}

// Open returns the tickets that wait, those first that end first.
func (d *Desk) Open() []Ticket {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []Ticket
	for _, p := range d.open {
		if !p.claimed {
			list = append(list, p.ticket)
		}
	}
	slices.SortFunc(list, func(a, b Ticket) int {
		return cmp.Or(a.Expires.Compare(b.Expires), a.Opened.Compare(b.Opened), cmp.Compare(a.ID, b.ID))
	})
	return list
}

// Stats returns the counters.
func (d *Desk) Stats() Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.stats
	s.Open = len(d.open)
	return s
}
