// Package cancel holds the built-in hook that stops sessions, and the table of
// sessions that it keeps: who is at work, since when, how it fares, and whom an
// operator has stopped.
package cancel

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"go.uber.org/zap"

	"github.com/hookd/hookd/protocol"
)

const (
	// maxSessions is how many sessions the table holds. When it is full, those
	// that were heard of longest ago make room, cancelled ones never.
	maxSessions = 4096
	// makeRoom is how many go at once then.
	makeRoom = 256
	// maxCancelled is how many of them may be cancelled at once.
	maxCancelled = 1024
	// idleAfter is when a session is no longer listed that nothing was heard of,
	// and cancelledIdle when one that was cancelled is forgotten.
	idleAfter     = time.Hour
	cancelledIdle = 24 * time.Hour
	// maxIDBytes is how long an id may be; a longer one is cut and hashed.
	maxIDBytes = 128
	// recentEvents is how many of the newest a session remembers.
	recentEvents = 20
)

// State is what a session does.
type State string

// The states.
const (
	Running         State = "running"
	WaitingApproval State = "waiting_approval"
	Cancelled       State = "cancelled"
)

// Session is one agent's work as far as hookd sees it.
type Session struct {
	// ID names it: the agent's session_id. An agent that gives none is known by
	// its name, as @NAME.
	ID string
	// Agent is the name that was heard last.
	Agent string
	// State says waiting_approval when Waiting is not zero.
	State State
	// Waiting is how many of its calls wait for a person.
	Waiting int
	Since   time.Time
	// LastEvent is the stage or event that was heard of last, LastAt when.
	LastEvent string
	LastAt    time.Time
	// Calls counts what was asked, by stage; a call that is judged twice, because
	// a later hook changed it, counts twice. Aborted are those that were stopped
	// because the session is cancelled.
	Calls   map[protocol.Stage]int64
	Aborted int64
	// Tokens are what its models have used; TokensKnown is false when no answer
	// of a model said so.
	Tokens      int64
	TokensKnown bool
	// Errors counts tool calls that failed, and errors and timeouts of agents.
	Errors int64
	// Recent are the newest stages and events, oldest first.
	Recent []Moment
	// Cancellation says who has cancelled it; nil when nobody has.
	Cancellation *Cancellation
}

// Moment is something that was heard of a session.
type Moment struct {
	What string
	At   time.Time
}

// Total is how many calls there were. Approvals are not among them, because
// each belongs to a call at before_tool.
func (s *Session) Total() (n int64) {
	for stage, c := range s.Calls {
		if stage != protocol.StageApproveTool {
			n += c
		}
	}
	return n
}

// Cancellation says that a session was cancelled.
type Cancellation struct {
	ID     string
	Reason string
	// By is who has done it.
	By string
	At time.Time
}

// Text is what the agent is told.
func (c *Cancellation) Text() string {
	text := "the session was cancelled by " + c.By
	if c.Reason != "" {
		text += ": " + c.Reason
	}
	return text
}

// Store keeps cancellations beyond the end of hookd, so that a restart resumes
// nothing. Its methods may wait for a disk.
type Store interface {
	Keep(c *Cancellation) error
	Drop(id string) error
	Load() ([]Cancellation, error)
}

// Options configure a [Table]. The zero value works.
type Options struct {
	// Store keeps cancellations; nil = they end with hookd.
	Store Store
	// Waiting, when set, returns how many calls of a session wait for a person.
	// It is called without a lock of the table.
	Waiting func() map[string]int
	// Log gets what the store could not take; nil = none.
	Log *zap.Logger
}

// Table holds the sessions. Make one with [NewTable]; it is safe for concurrent
// use and runs nothing of its own.
type Table struct {
	o     Options
	order sync.Mutex // orders cancel and resume, also while the store writes

	mu        sync.Mutex
	sessions  map[string]*session
	cancelled int
}

type session struct {
	Session
	// Told twice, once as a stage and once as an event, counts once: the larger
	// of the two sums holds.
	tokensAtStage, tokensInEvents int64
	errorsAtStage, errorsInEvents int64
	agentErrors                   int64
	recent                        [recentEvents]Moment
	heard                         int // how many moments there were
}

// NewTable returns a table in which the cancellations of an earlier hookd hold.
// When the store can't be read, the table is empty and the error says so.
func NewTable(o Options) (*Table, error) {
	t := &Table{o: o, sessions: map[string]*session{}}
	if t.o.Log == nil {
		t.o.Log = zap.NewNop()
	}
	if o.Store == nil {
		return t, nil
	}
	list, err := o.Store.Load()
	if err != nil {
		return t, fmt.Errorf("read which sessions are cancelled: %w", err)
	}
	for _, c := range list {
		s := t.enter(c.ID, time.Now())
		s.Cancellation = new(c)
		t.cancelled++
	}
	return t, nil
}

// ID is the name under which the table knows a session of an agent.
func ID(sessionID, agent string) string {
	id := sessionID
	if id == "" {
		id = "@" + agent
	}
	if len(id) <= maxIDBytes {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	cut := maxIDBytes / 2
	for !utf8.RuneStart(id[cut]) {
		cut--
	}
	return id[:cut] + "…" + hex.EncodeToString(sum[:8])
}

func idOf(meta protocol.Object) (id, agent string) {
	agent = protocol.MetaString(meta, "agent")
	return ID(protocol.MetaString(meta, "session_id"), agent), agent
}

// enter finds or makes a session. It is called with the lock held.
func (t *Table) enter(id string, now time.Time) *session {
	if s := t.sessions[id]; s != nil {
		return s
	}
	if len(t.sessions) >= maxSessions {
		t.evict()
	}
	s := &session{Session: Session{ID: strings.Clone(id), State: Running, Since: now, LastAt: now, Calls: map[protocol.Stage]int64{}}}
	t.sessions[s.ID] = s
	return s
}

// evict makes room.
func (t *Table) evict() {
	var list []*session
	for _, s := range t.sessions {
		if s.Cancellation == nil {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b *session) int { return a.LastAt.Compare(b.LastAt) })
	for _, s := range list[:min(makeRoom, len(list))] {
		delete(t.sessions, s.ID)
	}
}

// forgetIdle takes out what was not heard of for long, and returns those of
// them that were cancelled.
func (t *Table) forgetIdle(now time.Time, waiting map[string]int) (cancelled []string) {
	maps.DeleteFunc(t.sessions, func(id string, s *session) bool {
		idle := now.Sub(s.LastAt)
		switch {
		case waiting[id] > 0:
			return false
		case s.Cancellation == nil:
			return idle > idleAfter
		case idle > cancelledIdle:
			t.cancelled--
			cancelled = append(cancelled, id)
			return true
		}
		return false
	})
	return cancelled
}

func (s *session) note(what, agent string, now time.Time) {
	s.LastEvent, s.LastAt = what, now
	s.recent[s.heard%recentEvents] = Moment{what, now}
	s.heard++
	if agent != "" && s.Agent != agent {
		s.Agent = strings.Clone(agent)
	}
}

func (s *session) view(waiting int) Session {
	v := s.Session
	v.Calls = maps.Clone(s.Calls)
	v.Tokens = max(s.tokensAtStage, s.tokensInEvents)
	v.Errors = max(s.errorsAtStage, s.errorsInEvents) + s.agentErrors
	v.Waiting = waiting
	first := max(0, s.heard-recentEvents)
	for i := first; i < s.heard; i++ {
		v.Recent = append(v.Recent, s.recent[i%recentEvents])
	}
	switch {
	case s.Cancellation != nil:
		v.State, v.Cancellation = Cancelled, new(*s.Cancellation)
	case waiting > 0:
		v.State = WaitingApproval
	}
	return v
}

// List returns the sessions, those first that were heard of last.
func (t *Table) List() []Session {
	waiting := t.waiting()
	t.mu.Lock()
	forgotten := t.forgetIdle(time.Now(), waiting)
	list := make([]Session, 0, len(t.sessions))
	for id, s := range t.sessions {
		list = append(list, s.view(waiting[id]))
	}
	t.mu.Unlock()
	for _, id := range forgotten {
		t.drop(id)
	}
	slices.SortFunc(list, func(a, b Session) int { return cmp.Or(b.LastAt.Compare(a.LastAt), cmp.Compare(a.ID, b.ID)) })
	return list
}

func (t *Table) waiting() map[string]int {
	if t.o.Waiting == nil {
		return nil
	}
	return t.o.Waiting()
}

// Get returns one session. The error says that there is none.
func (t *Table) Get(id string) (Session, error) {
	waiting := t.waiting()
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.sessions[id]
	if s == nil {
		return Session{}, t.unknown(id)
	}
	return s.view(waiting[id]), nil
}

func (t *Table) unknown(id string) error {
	return fmt.Errorf("there is no session %q%s", id, protocol.DidYouMean(id, slices.Sorted(maps.Keys(t.sessions))))
}

// Cancel stops a session until it is resumed. The error says that there is no
// such session, or no room. warning says that it could not be written down, so
// that it ends with hookd.
func (t *Table) Cancel(id, reason, by string) (warning string, err error) {
	t.order.Lock()
	defer t.order.Unlock()
	c := &Cancellation{ID: id, Reason: reason, By: by, At: time.Now()}
	t.mu.Lock()
	s := t.sessions[id]
	switch {
	case s == nil:
		err = t.unknown(id)
	case s.Cancellation == nil && t.cancelled >= maxCancelled:
		err = fmt.Errorf("%d sessions are cancelled already: resume some", maxCancelled)
	default:
		if s.Cancellation == nil {
			t.cancelled++
		}
		s.Cancellation = c
	}
	t.mu.Unlock()
	if err != nil || t.o.Store == nil {
		return "", err
	}
	if err := t.o.Store.Keep(c); err != nil {
		t.o.Log.Error("a cancelled session was not written down", zap.String("session", id), zap.Error(err))
		return "the session is cancelled, but that could not be written down: it ends when hookd does (" + err.Error() + ")", nil
	}
	return "", nil
}

// Resume lets a cancelled session go on. The error says that there is none.
func (t *Table) Resume(id string) (warning string, err error) {
	t.order.Lock()
	defer t.order.Unlock()
	t.mu.Lock()
	s := t.sessions[id]
	switch {
	case s == nil:
		err = t.unknown(id)
	case s.Cancellation == nil:
		err = fmt.Errorf("the session %q is not cancelled", id)
	default:
		s.Cancellation = nil
		t.cancelled--
	}
	t.mu.Unlock()
	if err != nil {
		return "", err
	}
	return t.drop(id), nil
}

// drop takes a cancellation out of the store.
func (t *Table) drop(id string) (warning string) {
	if t.o.Store == nil {
		return ""
	}
	if err := t.o.Store.Drop(id); err != nil {
		t.o.Log.Error("that a session is no longer cancelled was not written down", zap.String("session", id), zap.Error(err))
		return "that could not be written down: when hookd starts anew, the session is cancelled again (" + err.Error() + ")"
	}
	return ""
}

// Cancelled returns why a session was cancelled, or nil.
func (t *Table) Cancelled(id string) *Cancellation {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.sessions[id]; s != nil && s.Cancellation != nil {
		return new(*s.Cancellation)
	}
	return nil
}
