package record

import (
	"context"
	"database/sql/driver"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/protocol"
)

// SessionSummary is a session as the decisions tell of it. It is up to date to
// within a few seconds.
type SessionSummary struct {
	Session, Agent, User,
	Model, CWD string
	First, Last time.Time
	// Calls counts decisions; Denied, Asked and Degraded those that stopped
	// something, that asked for approval, and in which a hook was passed over.
	Calls, Denied, Asked, Degraded uint64
}

// Sessions returns the sessions that were seen last, newest first; limit 0 =
// all that are kept.
func (r *Reader) Sessions(ctx context.Context, limit int) ([]SessionSummary, error) {
	return listOf(ctx, r, "sessions", func(s *scan) SessionSummary {
		return SessionSummary{
			Session: s.text(), Agent: s.text(), User: s.text(), Model: s.text(), CWD: s.text(), First: s.time(), Last: s.time(),
			Calls: uint64(s.number()), Denied: uint64(s.number()), Asked: uint64(s.number()), Degraded: uint64(s.number()),
		}
	}, `SELECT session, agent, user, model, cwd, first_seen, last_seen, calls, denied, asked, degraded
		FROM sessions ORDER BY last_seen DESC LIMIT ?`, noLimit(limit))
}

// ApprovalFilter chooses approvals. Zero values choose all.
type ApprovalFilter struct {
	Open    bool // only those without an answer
	Session string
	Ticket  string
	Limit   int // the newest
}

// Approvals returns approvals, newest first.
func (r *Reader) Approvals(ctx context.Context, f ApprovalFilter) ([]Approval, error) {
	return listOf(ctx, r, "approvals", func(s *scan) Approval {
		a := Approval{
			Ticket: s.text(), Digest: s.text(), Tool: s.text(), Arguments: s.json(), Session: s.text(), Agent: s.text(), User: s.text(),
			Task: s.text(), Node: s.text(), PID: s.id(), UID: s.id(), Opened: s.time(), Expires: s.time(),
		}
		a.Timeout = time.Duration(s.number()) * time.Millisecond
		a.Answered, a.Approved, a.Outcome, a.Reason, a.By, a.ByPID, a.ByUID, a.Rule = s.time(), s.flag(), s.text(), s.text(), s.text(), s.id(), s.id(), s.text()
		return a
	}, `SELECT ticket, digest, tool, arguments, session, agent, user, task, node, pid, uid, opened, expires, timeout_ms,
		answered, approved, outcome, reason, answered_by, answered_pid, answered_uid, rule
		FROM approval_tickets WHERE (? = 0 OR answered IS NULL) AND (? = '' OR session = ?) AND (? = '' OR ticket = ?)
		ORDER BY seq DESC LIMIT ?`, flag(f.Open), f.Session, f.Session, f.Ticket, f.Ticket, noLimit(f.Limit))
}

// Rules returns the rules that hold, oldest first.
func (r *Reader) Rules(ctx context.Context) ([]Rule, error) {
	return listOf(ctx, r, "rules", func(s *scan) Rule {
		return Rule{
			ID: s.text(), Scope: s.text(), Session: s.text(), Digest: s.text(), Tool: s.text(), Arguments: s.json(),
			Created: s.time(), By: s.text(), Reason: s.text(),
		}
	}, `SELECT rule, scope, session, digest, tool, arguments, created, created_by, reason FROM `+activeRules+` ORDER BY created, seq`)
}

// Gap says what is not in the record.
type Gap struct {
	ID   uint64
	Time time.Time
	// What is missed, unclean, deleted, replaced, damaged, lost, foreign or
	// broken.
	What     string
	From, To time.Time
	// Missed counts by table; nil when it is not known.
	Missed map[string]uint64
	Total  uint64
	// AtMost is how much time may be missing; 0 = not said.
	AtMost time.Duration
	Reason string
}

// Gaps returns what is not in the record, oldest first.
func (r *Reader) Gaps(ctx context.Context) ([]Gap, error) {
	return listOf(ctx, r, "gaps", func(s *scan) Gap {
		g := Gap{ID: uint64(s.number()), Time: s.time(), What: s.text(), From: s.time(), To: s.time()}
		s.list(&g.Missed)
		g.Total, g.AtMost, g.Reason = uint64(s.number()), time.Duration(s.number())*time.Millisecond, s.text()
		return g
	}, `SELECT seq, time, what, from_time, to_time, missed, total, at_most_ms, reason FROM gaps ORDER BY seq`)
}

// AuditRow is a row of the view agent_audit_log: a tool's run, or SESSION_STOP.
type AuditRow struct {
	ID             uint64
	Time           string // RFC 3339, UTC, milliseconds
	Session, Agent string
	Tool, Status   string
	Duration       time.Duration
	Preview        string
}

// AuditLog returns the last rows of agent_audit_log, newest first, of one
// session or ("") of all.
func (r *Reader) AuditLog(ctx context.Context, session string, limit int) ([]AuditRow, error) {
	return listOf(ctx, r, "audit log", func(s *scan) AuditRow {
		return AuditRow{
			ID: uint64(s.number()), Time: s.text(), Session: s.text(), Agent: s.text(), Tool: s.text(), Status: s.text(),
			Duration: time.Duration(s.number()) * time.Millisecond, Preview: s.text(),
		}
	}, `SELECT seq, time, session, agent, tool, status, duration_ms, output_preview FROM agent_audit_log
		WHERE ? = '' OR session = ? ORDER BY seq DESC LIMIT ?`, session, session, noLimit(limit))
}

func noLimit(limit int) int64 {
	if limit <= 0 {
		return -1
	}
	return int64(limit)
}

func listOf[T any](ctx context.Context, r *Reader, what string, read func(*scan) T, sql string, args ...driver.Value) ([]T, error) {
	var list []T
	err := r.query(ctx, func(row []driver.Value) error {
		list = append(list, read(&scan{row: row}))
		return nil
	}, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	return list, nil
}

// Record is one record of any table, as [Reader.Records] returns it.
type Record struct {
	Seq   uint64
	Table string
	Time  time.Time
	Hash  string
	// Columns are the rest; absent values are left out.
	Columns protocol.Object
}

// AppendJSON appends the record as one line of JSON, without an end of line.
func (r *Record) AppendJSON(b []byte) []byte {
	head := protocol.Object{
		{Name: "seq", Value: fmt.Appendf(nil, "%d", r.Seq)},
		{Name: "table", Value: protocol.Quote(r.Table)},
		{Name: "time", Value: protocol.Quote(r.Time.Format(time.RFC3339Nano))},
	}
	return append(append(head, r.Columns...), protocol.Member{Name: "hash", Value: protocol.Quote(r.Hash)}).AppendJSON(b)
}

// column makes a JSON value of a column.
func column(name string, v driver.Value) jsontext.Value {
	switch v := v.(type) {
	case int64:
		switch name {
		case "opened", "expires", "created", "from_time", "to_time":
			return protocol.Quote(time.UnixMicro(v).UTC().Format(time.RFC3339Nano))
		case "approved", "masked", "dry_run", "undelivered", "unrecorded":
			return fmt.Appendf(nil, "%t", v == 1)
		}
		return fmt.Appendf(nil, "%d", v)
	case string:
		switch name {
		case "trail", "degraded", "warnings", "changed", "value_before", "value_after", "params", "arguments", "counts", "detail", "missed":
			if raw := jsontext.Value(v); raw.IsValid() {
				return protocol.Compact(raw)
			}
		}
		return protocol.Quote(v)
	case []byte:
		return protocol.Quote(fmt.Sprintf("%x", v))
	}
	return protocol.Quote(fmt.Sprint(v))
}
