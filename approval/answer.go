package approval

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/hookd/hookd/protocol"
)

// Answer is what a person says to a ticket.
type Answer struct {
	Approve bool
	// Reason is for the agent and the record; it may be empty.
	Reason string
	// Scope makes a rule of the answer, unless it is [Once].
	Scope Scope
	// Digest, when set, is that of the call that the person has seen; the answer
	// does not count for another one.
	Digest string
	By     Ruler
}

// Answered is what an answer has done.
type Answered struct {
	Ticket     Ticket
	Resolution Resolution
	// Rule is the rule that was made; nil = none.
	Rule *Rule
	// Also are other tickets that the rule has answered.
	Also []string
	// Warning says what could not be done beside the answer; "" = nothing.
	Warning string
}

// LateError refuses an answer to a ticket that has ended.
type LateError struct {
	Ticket     Ticket
	Resolution Resolution
}

// Error says what has become of the ticket.
func (e *LateError) Error() string {
	return fmt.Sprintf("too late: %s (at %s)", e.Resolution.String(), e.Resolution.At.Format("15:04:05"))
}

// Answer resolves a ticket by a person's word. The error is a [LateError] when
// the ticket has ended, and else says why the answer does not count; the ticket
// stays open then.
func (d *Desk) Answer(id string, a Answer) (*Answered, error) {
	p, err := d.find(id)
	if err != nil {
		return nil, err
	}
	switch {
	case a.Digest != "" && a.Digest != p.ticket.Digest:
		return nil, d.refuse(p, &a, "the call is another than the one that you were shown")
	case a.Scope == ForSession && p.ticket.Session == "":
		return nil, fmt.Errorf("the agent names no session, so an answer can't be for one: answer this call only, or always")
	case a.Scope != Once && a.Scope != ForSession && a.Scope != Always:
		return nil, fmt.Errorf("unknown scope %q: session, always, or none", a.Scope)
	}
	if d.o.Guard != nil {
		if err := d.o.Guard(&p.ticket, a.By); err != nil {
			return nil, d.refuse(p, &a, err.Error())
		}
	}
	if d.expired(p) {
		d.resolve(p, d.timeout(p))
	}
	if !d.claim(p) {
		return nil, d.late(p)
	}
	d.settle(p, Resolution{Approved: a.Approve, How: HowAnswered, Reason: a.Reason, By: a.By.String(), Person: a.By})
	done := &Answered{Ticket: p.ticket, Resolution: p.resolution}
	if done.Resolution.How == HowUnrecorded {
		return done, fmt.Errorf("%s, so the call was denied", done.Resolution.Reason)
	}
	if a.Scope == Once {
		return done, nil
	}
	rule, err := d.addRule(ruleOf(&p.ticket, &a, time.Now()))
	if err != nil {
		done.Warning = "this call is answered, but no rule was made: " + err.Error()
		return done, nil
	}
	done.Rule = &rule
	done.Also = d.answerOthers(rule.Number)
	return done, nil
}

// find returns an open ticket.
func (d *Desk) find(id string) (*pending, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.open[id]; p != nil {
		return p, nil
	}
	if p := d.ended[id]; p != nil {
		return nil, &LateError{p.ticket, p.resolution}
	}
	hint := protocol.DidYouMean(id, slices.Sorted(maps.Keys(d.open)))
	return nil, fmt.Errorf("there is no open approval %q%s", id, hint)
}

// late says how a ticket ends that somebody else resolves.
func (d *Desk) late(p *pending) error {
	<-p.done // the one who resolves it is at the journal at most
	return &LateError{p.ticket, p.resolution}
}

// refuse writes down an answer that does not count.
func (d *Desk) refuse(p *pending, a *Answer, why string) error {
	d.mu.Lock()
	d.stats.Refused++
	d.mu.Unlock()
	r := &Refusal{By: a.By, Approve: a.Approve, Why: why, Reason: a.Reason, At: time.Now()}
	if err := d.journal.Refused(&p.ticket, r); err != nil {
		d.log.Error("a refused answer was not recorded", zap.String("ticket", p.ticket.ID), zap.Error(err))
	}
	d.log.Warn("an answer was refused", zap.String("ticket", p.ticket.ID), zap.String("why", why),
		zap.Int("uid", a.By.UID), zap.Int("pid", a.By.PID), zap.Bool("approve", a.Approve))
	return fmt.Errorf("refused: %s", why)
}

// answerOthers answers the open tickets that a new rule is for.
func (d *Desk) answerOthers(number int) (ids []string) {
	return d.resolveWhere(func(t *Ticket, now time.Time) (Resolution, bool) {
		r := d.ruleFor(t, now)
		if r == nil || r.Number != number {
			return Resolution{}, false
		}
		return d.use(r, now), true
	})
}

// DenyWhere makes a no of every open ticket that match picks, and returns how
// many there were. match is called with the desk locked and must not use it.
func (d *Desk) DenyWhere(match func(*Ticket) bool, reason string, by Ruler) int {
	no := Resolution{How: HowCancelled, Reason: reason, By: by.String(), Person: by}
	return len(d.resolveWhere(func(t *Ticket, _ time.Time) (Resolution, bool) { return no, match(t) }))
}

// resolveWhere resolves every open ticket that pick has a resolution for. pick
// is called with the lock held.
func (d *Desk) resolveWhere(pick func(t *Ticket, now time.Time) (Resolution, bool)) (ids []string) {
	now := time.Now()
	picked := map[*pending]Resolution{}
	d.mu.Lock()
	for _, p := range d.open {
		if p.claimed {
			continue
		}
		if r, ok := pick(&p.ticket, now); ok {
			p.claimed = true
			picked[p] = r
		}
	}
	d.mu.Unlock()
	for p, r := range picked {
		d.settle(p, r)
		ids = append(ids, p.ticket.ID)
	}
	slices.Sort(ids)
	return ids
}
