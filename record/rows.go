package record

import (
	"context"
	"database/sql/driver"
	"errors"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/protocol"
)

// ErrOff: nothing is kept in mode off.
var ErrOff = errors.New("the record is off")

// Approval is a question to people, with its answer once there is one.
type Approval struct {
	// Ticket is the request's id.
	Ticket string
	// Digest binds it to one call.
	Digest    string
	Tool      string
	Arguments jsontext.Value
	Session, Agent, User,
	Task, Node string
	// PID and UID are who asks; -1 = unknown. A PID of 0 leaves both out, here
	// and in the other rows.
	PID, UID        int
	Opened, Expires time.Time
	Timeout         time.Duration

	// Answered is when it was; zero while it is open.
	Answered time.Time
	Approved bool
	// Outcome says how it ended: answered, timeout, agent_gone, shutdown, rule,
	// abandoned.
	Outcome string
	Reason  string
	// By is who answered, with the ids of the process that did.
	By           string
	ByPID, ByUID int
	// Rule is the rule that answered; "" = a person or nobody.
	Rule string
}

// OutcomeAbandoned is the outcome of approvals that were open when hookd ended.
const OutcomeAbandoned = "abandoned"

// SessionEvent is a turn in a session's life.
type SessionEvent struct {
	Session string
	// What is start, stop, cancel or resume. A stop becomes the row SESSION_STOP
	// of agent_audit_log.
	What string
	Agent, User, Model,
	CWD string
	PID, UID int
	// Duration is how long the session has been; 0 = not said.
	Duration time.Duration
	// Counts is an object of figures, or nil.
	Counts jsontext.Value
	Reason string
	// By is who caused it; "" = the agent.
	By string
}

// Failure is a hook's failure outside of a call. Those within calls are
// recorded with the decision.
type Failure struct {
	Hook           string
	Stage          protocol.Stage // "" = none
	Outcome        protocol.Outcome
	Detail         string
	Session, Agent string
}

// ConfigChange is a reload, an override, or an attempt at one.
type ConfigChange struct {
	Generation uint64
	Path       string
	// SHA256 and OldSHA256 are of the file now and before.
	SHA256, OldSHA256 string
	// What changed, in words; Warnings what of it is dangerous.
	What     string
	Warnings []string
	// By is who caused it; "" = the file changed.
	By string
	// Error says why it was refused; "" = it was not.
	Error string
}

// SecurityEvent is something that a person who looks for trouble wants to see:
// a user's message, an agent's error, a peer that was turned away.
type SecurityEvent struct {
	What                 string
	Severity             string
	Session, Agent, User string
	PID, UID             int
	Tool                 string
	Message              string
	Detail               jsontext.Value
}

// ToolRun is a run of a tool of which an agent has told in an event. Runs that
// went through after_tool are in the record without it; a row with the same
// session and call id is not shown twice in agent_audit_log.
type ToolRun struct {
	Session, Agent, Tool, CallID string
	// Status is ok, error or skipped.
	Status   string
	Duration time.Duration
	// Preview is the start of its output.
	Preview string
}

// Undelivered names a decision whose answer did not reach the agent.
type Undelivered struct {
	// Call is [manager.Record.Call] of the decision, so that one store can serve one
	// manager. When it was not recorded, or too long ago (see callsKept), the row
	// stands without it.
	Call    uint64
	Session string
	Stage   protocol.Stage
	CallID  string
	PID     int
	Reason  string
}

// Rule is a standing answer that a person gave with an approval.
type Rule struct {
	ID string
	// Scope is session (the rest of one session), always, or [ScopeCancelled].
	Scope   string
	Session string
	Digest  string
	Tool    string
	// Arguments are those of the call it was given for, masked.
	Arguments jsontext.Value
	Created   time.Time
	By        string
	Reason    string
}

// ApprovalRequested records a question. Like a decision it waits for the disk
// in mode strict.
func (s *Store) ApprovalRequested(ctx context.Context, a *Approval) error {
	return s.approval(ctx, a, "requested")
}

// ApprovalAnswered records the answer to a question, or how else it ended. In
// mode strict an error means that the answer must be a no.
func (s *Store) ApprovalAnswered(ctx context.Context, a *Approval) error {
	return s.approval(ctx, a, "answered")
}

func (s *Store) approval(ctx context.Context, a *Approval, what string) error {
	c := *a
	c.Arguments = c.Arguments.Clone()
	e := &entry{
		table: s.tables.approvals, bytes: len(c.Arguments) + len(c.Reason),
		build: func(w *writer, refused error) []driver.Value { return w.approval(&c, what, refused) },
	}
	if what == "answered" {
		e.undo = e.build // the last answer counts
	}
	return s.put(ctx, e, s.strict())
}

func (w *writer) approval(a *Approval, what string, refused error) []driver.Value {
	if refused != nil && what == "answered" {
		a.Approved, a.Reason = false, unrecordedReason+": "+refused.Error()
	}
	pid, uid := peer(a.PID, a.UID)
	v := []driver.Value{
		a.Ticket, what, textOrNull(a.Digest), id(a.Tool), w.json(a.Arguments), id(a.Session), id(a.Agent), w.text(a.User),
		id(a.Task), id(a.Node), pid, uid, timeOrNull(a.Opened), timeOrNull(a.Expires), numberOrNull(a.Timeout.Milliseconds()),
	}
	if what == "requested" {
		return append(v, nil, nil, nil, nil, nil, nil, nil)
	}
	pid, uid = peer(a.ByPID, a.ByUID)
	return append(v, flag(a.Approved), textOrNull(a.Outcome), w.text(a.Reason), w.text(a.By), pid, uid, textOrNull(a.Rule))
}

// later records something that nobody waits for.
func (s *Store) later(t *table, bytes int, build func(w *writer) []driver.Value) error {
	return s.put(context.Background(), &entry{
		table: t, bytes: bytes,
		build: func(w *writer, _ error) []driver.Value { return build(w) },
	}, false)
}

// Session records a turn in a session's life. It does not wait for the disk.
func (s *Store) Session(e *SessionEvent) error {
	c := *e
	c.Counts = c.Counts.Clone()
	return s.later(s.tables.sessions, len(c.Counts), func(w *writer) []driver.Value {
		pid, uid := peer(c.PID, c.UID)
		return []driver.Value{
			id(c.Session), c.What, id(c.Agent), w.text(c.User), id(c.Model), id(c.CWD), pid, uid,
			numberOrNull(c.Duration.Microseconds()), w.json(c.Counts), w.text(c.Reason), w.text(c.By),
		}
	})
}

// Failure records a hook's failure. It does not wait for the disk.
func (s *Store) Failure(f *Failure) error {
	c := *f
	return s.later(s.tables.failures, len(c.Detail), func(w *writer) []driver.Value { return w.failure(&c, nil) })
}

func (w *writer) failure(f *Failure, decision driver.Value) []driver.Value {
	return []driver.Value{f.Hook, textOrNull(string(f.Stage)), string(f.Outcome), w.text(f.Detail), decision, id(f.Session), id(f.Agent)}
}

// ConfigChange records a change of the config. It does not wait for the disk.
func (s *Store) ConfigChange(c *ConfigChange) error {
	k := *c
	k.Warnings = append([]string(nil), k.Warnings...)
	return s.later(s.tables.config, len(k.What), func(w *writer) []driver.Value {
		return []driver.Value{
			numberOrNull(k.Generation), textOrNull(k.Path), textOrNull(k.SHA256), textOrNull(k.OldSHA256),
			w.text(k.What), w.strings(k.Warnings), w.text(k.By), w.text(k.Error),
		}
	})
}

// Security records an event for those who look for trouble. It does not wait
// for the disk.
func (s *Store) Security(e *SecurityEvent) error {
	c := *e
	c.Message, c.Detail = clip(c.Message, 3*maxText), c.Detail.Clone()
	return s.later(s.tables.security, len(c.Message)+len(c.Detail), func(w *writer) []driver.Value { return w.security(&c) })
}

func (w *writer) security(e *SecurityEvent) []driver.Value {
	pid, uid := peer(e.PID, e.UID)
	return []driver.Value{
		e.What, textOrNull(e.Severity), id(e.Session), id(e.Agent), w.text(e.User), pid, uid,
		id(e.Tool), w.text(e.Message), w.json(e.Detail),
	}
}

// ToolRun records a tool's run. It does not wait for the disk.
func (s *Store) ToolRun(r *ToolRun) error {
	c := *r
	c.Preview = clip(c.Preview, 2*previewWindow)
	return s.later(s.tables.toolRuns, len(c.Preview), func(w *writer) []driver.Value {
		return []driver.Value{
			id(c.Session), id(c.Agent), id(c.Tool), id(c.CallID), c.Status, numberOrNull(c.Duration.Milliseconds()), w.beginning(c.Preview, previewChars),
		}
	})
}

// Undelivered records that an answer did not reach the agent. It does not wait
// for the disk.
func (s *Store) Undelivered(u *Undelivered) error {
	c := *u
	return s.later(s.tables.amendments, len(c.Reason), func(w *writer) []driver.Value {
		return []driver.Value{
			w.calls.decision(c.Call), "undelivered", w.text(c.Reason), id(c.Session), textOrNull(string(c.Stage)), id(c.CallID), idOrNull(c.PID),
		}
	})
}

// AddRule records a rule, and returns when it is on the disk, in every mode.
// After an error the rule is not to be used. [ErrOff] in mode off.
func (s *Store) AddRule(ctx context.Context, r *Rule) error { return s.rule(ctx, r, ruleCreated) }

// RevokeRule records that a rule no longer holds, and returns when that is on
// the disk, in every mode. After an error the rule is not to be used either.
// [ErrOff] in mode off.
func (s *Store) RevokeRule(ctx context.Context, r *Rule) error { return s.rule(ctx, r, ruleRevoked) }

// ScopeCancelled is the scope of a rule that says that a session is cancelled.
// Such a rule is a no, so it holds also when the record does not verify.
const ScopeCancelled = "cancelled"

// What became of a rule.
const ruleCreated, ruleKept, ruleRevoked = "created", "kept", "revoked"

func (s *Store) rule(ctx context.Context, r *Rule, what string) error {
	if s.opts.Mode == ModeOff {
		return ErrOff
	}
	c := *r
	c.Arguments = c.Arguments.Clone()
	row := func(w *writer, what string) []driver.Value {
		return []driver.Value{
			c.ID, what, c.Scope, id(c.Session), textOrNull(c.Digest), id(c.Tool), w.json(c.Arguments),
			timeOrNull(c.Created), w.text(c.By), w.text(c.Reason),
		}
	}
	e := &entry{table: s.tables.rules, bytes: len(c.Arguments)}
	e.build = func(w *writer, refused error) []driver.Value {
		if refused != nil && what == ruleCreated {
			return nil // who gave it was told that it does not hold
		}
		return row(w, what)
	}
	if what == ruleCreated {
		e.undo = func(w *writer, _ error) []driver.Value { return row(w, ruleRevoked) }
	}
	return s.put(ctx, e, true)
}
