package budget

import (
	"hash/maphash"
	"strings"
	"sync"
	"time"
	"weak"

	"github.com/hookd/hookd/builtin/sessions"
	"github.com/hookd/hookd/protocol"
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
	seed     maphash.Seed // of the sums of calls

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
	return &Ledger{accounts: sessions.New[account](most), seed: maphash.MakeSeed(), saved: map[string]uint64{}}
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
	calls             []call // the last ones that were counted
}

type bill struct {
	tokens int64
	cost   float64
}

const (
	// maxGap is how much of a time without a sign of life counts at most.
	maxGap = 30 * time.Minute
	// keepCalls is how many calls are remembered.
	keepCalls = 16
	// maxCallID is how long their ids may be.
	maxCallID = 256
	// sameCall is how long a call with the id and the arguments of another one can
	// be that one, asked about once more. Agents that begin to number anew in each
	// turn use an id again, but not so soon.
	sameCall = 3 * time.Second
)

// call is a call that is asked about.
type call struct {
	id    string // "" = none, or too long to keep
	sum   uint64 // of the stage and what it judges
	at    time.Time
	again bool // it was asked about once more
	// run is the same in all that one request asks; the request is not kept.
	run weak.Pointer[protocol.Member]
}

// callOf says which call a request asks about.
func (l *Ledger) callOf(req *protocol.Request, now time.Time) call {
	c := call{at: now}
	if len(req.Meta) > 0 {
		c.run = weak.Make(&req.Meta[0])
	}
	if req.CallID == "" || len(req.CallID) > maxCallID {
		return c
	}
	c.id = strings.Clone(req.CallID)
	var h maphash.Hash
	h.SetSeed(l.seed)
	part := func(b []byte) {
		_, _ = h.Write(b)
		_ = h.WriteByte(0)
	}
	part([]byte(req.Stage.Name))
	for _, m := range req.Subject {
		part([]byte(m.Name))
		part(m.Value)
	}
	c.sum = h.Sum64()
	return c
}

// repeated finds the counted call that c is about, or returns nil.
func (a *account) repeated(c *call) *call {
	for i := range a.calls {
		was := &a.calls[i]
		if c.run != (weak.Pointer[protocol.Member]{}) && c.run == was.run {
			return was // a later hook has changed it
		}
	}
	for i := range a.calls {
		was := &a.calls[i]
		if c.id != "" && c.id == was.id && c.sum == was.sum && !was.again && c.at.Sub(was.at) < sameCall {
			return was
		}
	}
	return nil
}

// repeats is repeated, and remembers it.
func (a *account) repeats(c *call) bool {
	was := a.repeated(c)
	if was == nil {
		return false
	}
	if c.run != was.run {
		was.run, was.again = c.run, true
	}
	return true
}

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

// call counts a call that goes on, unless it was counted meanwhile.
func (l *Ledger) call(key string, c *call, more Used) {
	l.accounts.Do(key, func(a *account) {
		if a.repeats(c) {
			return
		}
		if len(a.calls) >= keepCalls {
			a.calls = append(a.calls[:0], a.calls[1:]...)
		}
		a.calls = append(a.calls, *c)
		a.used.add(more)
		l.addToday(c.at, more)
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

// counted reports whether a call was counted already and is asked about once
// more. A dry run leaves no trace.
func (l *Ledger) counted(key string, c *call, dry bool) (yes bool) {
	l.accounts.Look(key, func(a *account) {
		if dry {
			yes = a.repeated(c) != nil
		} else {
			yes = a.repeats(c)
		}
	})
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
