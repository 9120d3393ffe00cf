package budget

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hookd/hookd/builtin/sessions"
)

// Used is what was used so far.
type Used struct {
	Calls      int64   `json:"calls"`       // tool calls
	ModelCalls int64   `json:"model_calls"` // requests to models
	Tokens     int64   `json:"tokens"`
	Cost       float64 `json:"cost"`
	Millis     int64   `json:"ms"` // time at work, in milliseconds
}

func (u *Used) add(more Used) {
	u.Calls += more.Calls
	u.ModelCalls += more.ModelCalls
	u.Tokens += more.Tokens
	u.Cost += more.Cost
	u.Millis += more.Millis
}

// Ledger holds what was used, by session and day. Budgets that share one go on
// where the one before them stopped. Make it with [NewLedger].
type Ledger struct {
	accounts *sessions.Table[account]

	mu      sync.Mutex // for what follows; may be taken while accounts is in use
	day     string
	today   Used
	changes uint64 // counts, for those who save

	files  sync.Mutex // one reads or writes files at a time
	loaded []string
	saved  map[string]uint64 // changes when last saved, by file
}

// NewLedger returns an empty ledger for at most this many sessions; 0 means
// [sessions.Most].
func NewLedger(most int) *Ledger {
	return &Ledger{accounts: sessions.New[account](most), saved: map[string]uint64{}}
}

// account is what is known of a session.
type account struct {
	used Used
	// An agent may tell what a model used at a stage, in an event, or both ways.
	// The greater sum is the right one.
	atStage, inEvents bill
	model             string // of the last request
	unpriced          string // a model without a price
	last              time.Time
	calls             []string // ids of the last calls, each counted once
}

type bill struct {
	tokens int64
	cost   float64
}

const (
	// maxGap is how much of a time without a sign of life counts at most.
	maxGap = 30 * time.Minute
	// keepCalls is how many ids of calls are remembered.
	keepCalls = 16
	// maxCallID is how long they may be.
	maxCallID = 256
)

// entry is one line to be written into the ledger.
type entry struct {
	key string
	now time.Time
	// idle: a person has had the time since the last sign of life.
	idle bool
	// model is that of a request that begins; "" says nothing.
	model string
	// usage is what the model has used; event says which way that was told.
	usage *sessions.Usage
	event bool
	price func(model string) (price, bool) // nil: nothing has a price
}

// write writes a line, and returns what then was used by the session and today.
func (l *Ledger) write(e *entry) (session, day Used, unpriced string) {
	l.accounts.Do(e.key, func(a *account) {
		before := a.used
		if gap := e.now.Sub(a.last); !a.last.IsZero() && !e.idle && gap > 0 {
			a.used.Millis += min(gap, maxGap).Milliseconds()
		}
		a.last = e.now
		if e.model != "" {
			a.model = strings.Clone(e.model)
		}
		if e.usage != nil {
			a.charge(e)
		}
		session, unpriced = a.used, a.unpriced
		day = l.addToday(e.now, Used{
			Tokens: a.used.Tokens - before.Tokens, Cost: a.used.Cost - before.Cost, Millis: a.used.Millis - before.Millis,
		})
	})
	return session, day, unpriced
}

// charge adds what a model has used.
func (a *account) charge(e *entry) {
	bill, charged := &a.atStage, 0.0
	if e.event {
		bill = &a.inEvents
	}
	if e.price != nil {
		if p, ok := e.price(a.model); ok {
			charged = cost(e.usage, p)
		} else if a.unpriced = a.model; a.unpriced == "" {
			a.unpriced = "?"
		}
	}
	bill.tokens += e.usage.Tokens()
	bill.cost += charged
	a.used.Tokens = max(a.used.Tokens, bill.tokens)
	a.used.Cost = max(a.used.Cost, bill.cost)
}

// call counts a call that goes on. One with an id counts once, however often it
// is asked about.
func (l *Ledger) call(key, id string, now time.Time, more Used) {
	l.accounts.Do(key, func(a *account) {
		if id != "" && len(id) <= maxCallID {
			if slices.Contains(a.calls, id) {
				return
			}
			if len(a.calls) >= keepCalls {
				a.calls = slices.Delete(a.calls, 0, 1)
			}
			a.calls = append(a.calls, strings.Clone(id))
		}
		a.used.add(more)
		l.addToday(now, more)
	})
}

// addToday adds to the figures of the day, which may just have begun.
func (l *Ledger) addToday(now time.Time, more Used) Used {
	l.mu.Lock()
	defer l.mu.Unlock()
	if day := now.Format(time.DateOnly); day != l.day {
		l.day, l.today = day, Used{}
	}
	l.today.add(more)
	l.changes++
	return l.today
}

// counted reports whether a call was counted already.
func (l *Ledger) counted(key, id string) (yes bool) {
	if id == "" {
		return false
	}
	l.accounts.Look(key, func(a *account) { yes = slices.Contains(a.calls, id) })
	return yes
}

// look returns what was used by a session and today, and leaves no trace.
func (l *Ledger) look(key string, now time.Time) (session, day Used, unpriced string) {
	l.accounts.Look(key, func(a *account) { session, unpriced = a.used, a.unpriced })
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.day == now.Format(time.DateOnly) {
		day = l.today
	}
	return session, day, unpriced
}
