package approval

import (
	"slices"
	"sync"
	"time"
)

// Journal keeps what must be known later: who was asked what, who has answered,
// and the rules that hold. Its methods may be called from several goroutines at
// once, never with a lock of the desk held, and may wait for a disk.
type Journal interface {
	// Opened is told of a ticket before anybody can see it. An error makes the
	// call a no, and nobody is asked.
	Opened(t *Ticket) error
	// Resolved is told how a ticket has ended, before the agent is. An error
	// turns a yes into a no.
	Resolved(t *Ticket, r *Resolution) error
	// Refused is told of an answer that did not count.
	Refused(t *Ticket, r *Refusal) error
	// RuleMade is told of a rule before it holds. An error means that it does
	// not.
	RuleMade(r *Rule) error
	// RuleEnded is told that a rule holds no more.
	RuleEnded(number int, e *RuleEnd) error
	// Load returns what an earlier hookd has left.
	Load() (*Saved, error)
}

// Saved is what an earlier hookd has left.
type Saved struct {
	// Open are the tickets without a resolution.
	Open []Ticket
	// Rules are those that hold.
	Rules []Rule
	// LastRule is the highest number that a rule ever had, so that no number
	// means two rules.
	LastRule int
}

// Refusal is an answer that did not count.
type Refusal struct {
	By      Ruler
	Approve bool
	// Why it was refused, and the reason that came with it.
	Why, Reason string
	At          time.Time
}

// RuleEnd says why a rule holds no more.
type RuleEnd struct {
	// By is who has revoked it; "" when it ended by itself.
	By, Reason string
	At         time.Time
}

// memoryEntries is how many ended tickets and refusals a [Memory] remembers.
const memoryEntries = 1000

// Memory is a [Journal] without a disk: what it holds ends with the process.
// The zero value works.
type Memory struct {
	mu       sync.Mutex
	open     []Ticket
	ended    []Entry
	rules    []Rule
	lastRule int
}

// Entry is one line of a [Memory]: a ticket with either its end or an answer
// that did not count.
type Entry struct {
	Ticket     Ticket
	Resolution *Resolution
	Refusal    *Refusal
}

// Opened implements [Journal].
func (m *Memory) Opened(t *Ticket) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open = append(m.open, *t)
	return nil
}

// Resolved implements [Journal].
func (m *Memory) Resolved(t *Ticket, r *Resolution) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open = slices.DeleteFunc(m.open, func(o Ticket) bool { return o.ID == t.ID })
	m.add(Entry{Ticket: *t, Resolution: new(*r)})
	return nil
}

// Refused implements [Journal].
func (m *Memory) Refused(t *Ticket, r *Refusal) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.add(Entry{Ticket: *t, Refusal: new(*r)})
	return nil
}

func (m *Memory) add(e Entry) {
	e.Ticket.Arguments = nil // they may be large
	if len(m.ended) >= memoryEntries {
		m.ended = slices.Delete(m.ended, 0, len(m.ended)-memoryEntries+1)
	}
	m.ended = append(m.ended, e)
}

// RuleMade implements [Journal].
func (m *Memory) RuleMade(r *Rule) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rules = append(m.rules, *r)
	m.lastRule = max(m.lastRule, r.Number)
	return nil
}

// RuleEnded implements [Journal].
func (m *Memory) RuleEnded(number int, _ *RuleEnd) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rules = slices.DeleteFunc(m.rules, func(r Rule) bool { return r.Number == number })
	return nil
}

// Load implements [Journal].
func (m *Memory) Load() (*Saved, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &Saved{Open: slices.Clone(m.open), Rules: slices.Clone(m.rules), LastRule: m.lastRule}, nil
}

// Entries returns the newest ends and refusals, oldest first, without the
// arguments.
func (m *Memory) Entries() []Entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.ended)
}
