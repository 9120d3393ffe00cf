package record

import (
	"context"
	"database/sql/driver"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/protocol"
)

// Decision is a recorded decision.
type Decision struct {
	// ID is its number in the record.
	ID   uint64
	Time time.Time
	// Hash is its place in the chain, in hex.
	Hash string

	Session, Agent, User, Model, CWD string
	PID, UID                         int // -1 = unknown
	Stage                            protocol.Stage
	Tool, CallID                     string
	// Digest is of what was judged last, before anything was masked.
	Digest string
	// Action is what the agent was answered; allow or deny at approve_tool.
	Action     protocol.Action
	Reason     string
	DecidedBy  string
	Permission string
	Approval   *protocol.ApprovalResult // nil = none
	Trail      []protocol.Step
	Degraded   []protocol.Degraded
	Warnings   []string
	// Changed names what hooks changed; Before and After are objects with the
	// values, or nil when they are not kept.
	Changed       []string
	Before, After jsontext.Value
	// Params is what the stage was asked with, masked.
	Params jsontext.Value
	// ParamsBytes is how long they were when something was left out of them.
	ParamsBytes int64
	// Masked: something in them was masked.
	Masked     bool
	Generation uint64
	Duration   time.Duration
	DryRun     bool
	// Undelivered: the agent did not get the answer.
	Undelivered bool
	// Unrecorded: the answer became a no because the record failed.
	Unrecorded bool
	Error      string
}

// Filter chooses decisions. Zero values choose all.
type Filter struct {
	Session, Tool, Agent string
	Stage                protocol.Stage
	Action               protocol.Action
	// Hook is one that was asked.
	Hook         string
	Since, Until time.Time // Until is not included
	// After is the number after which to begin.
	After uint64
	// Limit is how many there are at most: the first ones after After, or the
	// last ones of all when After is 0.
	Limit int
}

// where makes the filter's condition.
func (f *Filter) where() (string, []driver.Value) {
	sql, args := "seq > ?", []driver.Value{int64(f.After)}
	add := func(cond string, arg driver.Value) {
		sql += " AND " + cond
		args = append(args, arg)
	}
	for _, c := range []struct{ column, value string }{
		{"session", f.Session}, {"tool", f.Tool}, {"agent", f.Agent}, {"stage", string(f.Stage)},
	} {
		if c.value != "" {
			add(c.column+" = ?", c.value)
		}
	}
	switch f.Action {
	case "":
	case protocol.WireDenyTool, "block":
		add(shownAction()+" = ?", string(protocol.ActionDeny))
	default:
		add(shownAction()+" = ?", string(f.Action))
	}
	if f.Hook != "" {
		add("json_valid(trail) AND EXISTS (SELECT 1 FROM json_each(trail) WHERE json_extract(value, '$.hook') = ?)", f.Hook)
	}
	if !f.Since.IsZero() {
		add("time >= ?", f.Since.UnixMicro())
	}
	if !f.Until.IsZero() {
		add("time < ?", f.Until.UnixMicro())
	}
	return sql, args
}

// shownAction is the action of a decision in SQL, as [Reader.deny] makes it of
// one that became a no after it was recorded.
func shownAction() string {
	var stops, aborts []string
	for _, a := range []protocol.Action{protocol.ActionDeny, protocol.ActionAbortTurn, protocol.ActionHardAbort} {
		stops = append(stops, "'"+string(a)+"'")
	}
	for _, s := range protocol.Stages() {
		if s.OnFailure != protocol.ActionDeny {
			aborts = append(aborts, "'"+string(s.Name)+"'")
		}
	}
	return `CASE WHEN action NOT IN (` + strings.Join(stops, ", ") + `)
		AND EXISTS (SELECT 1 FROM amendments WHERE decision = decisions.seq AND what = 'denied')
		THEN CASE WHEN stage IN (` + strings.Join(aborts, ", ") + `) THEN '` + string(protocol.ActionAbortTurn) + `' ELSE '` + string(protocol.ActionDeny) + `' END
		ELSE action END`
}

// queryRows is how many rows are read at a time.
const queryRows = 128

// Query returns the decisions that the filter chooses, oldest first. It stops
// after an error.
func (r *Reader) Query(ctx context.Context, f Filter) iter.Seq2[*Decision, error] {
	return func(yield func(*Decision, error) bool) {
		from, err := r.lastOnes(ctx, &f)
		if err == nil {
			f.After = from
			_, err = r.pages(ctx, f, 0, func(d *Decision) bool { return yield(d, nil) })
		}
		if err != nil {
			yield(nil, fmt.Errorf("read record: %w", err))
		}
	}
}

// lastOnes returns the number after which the last Limit decisions begin.
func (r *Reader) lastOnes(ctx context.Context, f *Filter) (uint64, error) {
	if f.After > 0 || f.Limit <= 0 {
		return f.After, nil
	}
	where, args := f.where()
	from := uint64(0)
	err := r.query(ctx, func(row []driver.Value) error {
		if n, ok := row[0].(int64); ok && n > 0 {
			from = uint64(n) - 1
		}
		return nil
	}, "SELECT min(seq) FROM (SELECT seq FROM decisions WHERE "+where+" ORDER BY seq DESC LIMIT ?)", append(args, int64(f.Limit))...)
	return from, err
}

// pages hands over what the filter chooses up to a number (0 = all), and
// reports whether more is wanted.
func (r *Reader) pages(ctx context.Context, f Filter, upto uint64, each func(*Decision) bool) (more bool, err error) {
	for left := f.Limit; f.Limit <= 0 || left > 0; {
		n := queryRows
		if f.Limit > 0 {
			n = min(n, left)
		}
		list, err := r.page(ctx, &f, upto, n)
		if err != nil {
			return false, err
		}
		for _, d := range list {
			if !each(d) {
				return false, nil
			}
			f.After = d.ID
		}
		left -= len(list)
		if len(list) < n {
			break
		}
	}
	return true, nil
}

func (r *Reader) page(ctx context.Context, f *Filter, upto uint64, limit int) ([]*Decision, error) {
	where, args := f.where()
	if upto > 0 {
		where += " AND seq <= ?"
		args = append(args, int64(upto))
	}
	var list []*Decision
	err := r.query(ctx, func(row []driver.Value) error {
		list = append(list, readDecision(row))
		return nil
	}, "SELECT seq, time, hash, "+strings.Join(r.tables.decisions.columns, ", ")+" FROM decisions WHERE "+where+" ORDER BY seq LIMIT ?",
		append(args, int64(limit))...)
	if err != nil || len(list) == 0 {
		return list, err
	}
	return list, r.amend(ctx, list)
}

// Get returns one decision. The error is [ErrNotFound] when there is none of
// this number.
func (r *Reader) Get(ctx context.Context, id uint64) (*Decision, error) {
	if id == 0 {
		return nil, fmt.Errorf("decision 0: %w", ErrNotFound)
	}
	list, err := r.page(ctx, &Filter{After: id - 1}, id, 1)
	if err != nil {
		return nil, fmt.Errorf("read decision %d: %w", id, err)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("decision %d: %w", id, ErrNotFound)
	}
	return list[0], nil
}

// readDecision reads a row: seq, time, hash and the columns of the table.
func readDecision(row []driver.Value) *Decision {
	s := &scan{row: row}
	d := &Decision{ID: uint64(s.number()), Time: s.time()}
	var h head
	if h.setHash(s.next()) {
		d.Hash = h.hex()
	}
	d.Session, d.Agent, d.User, d.Model, d.CWD, d.PID, d.UID = s.text(), s.text(), s.text(), s.text(), s.text(), s.id(), s.id()
	d.Stage, d.Tool, d.CallID, d.Digest = protocol.Stage(s.text()), s.text(), s.text(), s.text()
	d.Action, d.Reason, d.DecidedBy, d.Permission = protocol.Action(s.text()), s.text(), s.text(), s.text()
	if s.row[s.at] != nil {
		d.Approval = &protocol.ApprovalResult{Approved: s.flag(), Reason: s.text(), By: s.text(), Digest: d.Digest}
	} else {
		s.at += 3
	}
	d.Trail = readTrail(s.json())
	s.list(&d.Degraded)
	d.Warnings, d.Changed = s.strings(), s.strings()
	d.Before, d.After, d.Params, d.ParamsBytes, d.Masked = s.json(), s.json(), s.json(), s.number(), s.flag()
	d.Generation, d.Duration = uint64(s.number()), time.Duration(s.number())*time.Microsecond
	d.DryRun, d.Undelivered, d.Unrecorded, d.Error = s.flag(), s.flag(), s.flag(), s.text()
	return d
}

// readTrail reads a trail as hookd sends it.
func readTrail(v jsontext.Value) []protocol.Step {
	if v == nil {
		return nil
	}
	var list []struct {
		protocol.Step
		DurationUS int64 `json:"duration_us"`
	}
	if protocol.Unmarshal(v, &list) != nil {
		return nil
	}
	trail := make([]protocol.Step, len(list))
	for i, step := range list {
		trail[i] = step.Step
		trail[i].Duration = time.Duration(step.DurationUS) * time.Microsecond
		if step.Action == protocol.WireDenyTool {
			trail[i].Action = protocol.ActionDeny
		}
	}
	return trail
}

// amend lays over decisions what turned out about them later.
func (r *Reader) amend(ctx context.Context, list []*Decision) error {
	byID := make(map[uint64]*Decision, len(list))
	for _, d := range list {
		byID[d.ID] = d
	}
	return r.query(ctx, func(row []driver.Value) error {
		s := &scan{row: row}
		d := byID[uint64(s.number())]
		what, reason := s.text(), s.text()
		switch {
		case d == nil:
		case what == "undelivered":
			d.Undelivered = true
			if d.Error == "" {
				d.Error = reason
			}
		case what == "denied":
			r.deny(d, reason)
		}
		return nil
	}, "SELECT decision, what, reason FROM amendments WHERE decision BETWEEN ? AND ? ORDER BY seq", int64(list[0].ID), int64(list[len(list)-1].ID))
}

// deny makes a decision the no that the agent got.
func (r *Reader) deny(d *Decision, reason string) {
	d.Unrecorded = true
	d.Error = reason + " (would have been " + string(d.Action) + ")"
	if d.Approval != nil {
		d.Approval.Approved, d.Approval.Reason = false, unrecordedReason
	}
	if d.Action.Stops() {
		return
	}
	d.Action, d.Reason, d.DecidedBy = protocol.ActionDeny, unrecordedReason, ""
	if stage := r.stages.Stage(d.Stage); stage != nil && stage.OnFailure != protocol.ActionDeny {
		d.Action = protocol.ActionAbortTurn
	}
}

// followEvery is how often a reader looks for new records.
const followEvery = 200 * time.Millisecond

// Follow returns the decisions that [Reader.Query] returns when the filter has
// a Limit or an After, and then new ones as they come, until ctx ends. It stops
// after an error. It goes on in a file that replaces the old one.
func (r *Reader) Follow(ctx context.Context, f Filter) iter.Seq2[*Decision, error] {
	return func(yield func(*Decision, error) bool) {
		err := r.followPages(ctx, f, func(d *Decision) bool { return yield(d, nil) })
		if err != nil && ctx.Err() == nil {
			yield(nil, fmt.Errorf("follow record: %w", err))
		}
	}
}

func (r *Reader) followPages(ctx context.Context, f Filter, each func(*Decision) bool) error {
	end, err := r.end(ctx)
	if err != nil {
		return err
	}
	if f.After > 0 || f.Limit > 0 {
		first := f
		if first.After, err = r.lastOnes(ctx, &f); err != nil {
			return err
		}
		if more, err := r.pages(ctx, first, end, each); err != nil || !more {
			return err
		}
	}
	f.After, f.Limit = end, 0
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := r.follow(); err != nil {
			return err
		}
		if end, err = r.end(ctx); err != nil {
			return err
		}
		if end < f.After {
			f.After = 0 // another file, with another beginning
		}
		if end == f.After {
			continue
		}
		if more, err := r.pages(ctx, f, end, each); err != nil || !more {
			return err
		}
		f.After = end
	}
}

// end returns the number of the last record.
func (r *Reader) end(ctx context.Context) (uint64, error) {
	n := int64(0)
	err := r.query(ctx, func(row []driver.Value) error {
		n, _ = row[0].(int64)
		return nil
	}, "SELECT seq FROM chain_head")
	return uint64(n), err
}

// Replay is a recorded call that can be asked again.
type Replay struct {
	ID     uint64
	Stage  protocol.Stage
	Params jsontext.Value // an object, as DecodeRequest reads it
	Agent  string
	// Masked: something in the params was masked, so hooks may judge otherwise.
	Masked bool
	// Action is what was decided then.
	Action protocol.Action
	Reason string
}

// Replayable returns a recorded call to be asked again. The error is
// [ErrNotFound], or [ErrCut] when its params were too long to be kept.
func (r *Reader) Replayable(ctx context.Context, id uint64) (*Replay, error) {
	d, err := r.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	return d.Replay()
}

// Replay returns the call to be asked again; [ErrCut] when its params were too
// long to be kept.
func (d *Decision) Replay() (*Replay, error) {
	if d.ParamsBytes > 0 || d.Params == nil || d.Params.Kind() != '{' {
		return nil, fmt.Errorf("decision %d can't be asked again: %w", d.ID, ErrCut)
	}
	return &Replay{ID: d.ID, Stage: d.Stage, Params: d.Params, Agent: d.Agent, Masked: d.Masked, Action: d.Action, Reason: d.Reason}, nil
}
