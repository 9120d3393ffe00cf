package telemetry

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/hookd/hookd/manager"
	"github.com/hookd/hookd/protocol"
)

// item is a call or a note.
type item struct {
	call *call
	note *note
}

// call is what is kept of a decision.
type call struct {
	ids
	stage      protocol.Stage
	tool       string
	callID     string
	verdict    protocol.Action
	decidedBy  string
	reason     string // "" unless reasons are wanted
	approved   *bool
	generation uint64
	degraded   int
	undecided  bool // the agent got no decision
	started    time.Time
	took       time.Duration
	steps      []step
	unseen     int // steps beyond the most that are kept
}

// step is what is kept of a hook's turn.
type step struct {
	hook    string
	outcome protocol.Outcome
	action  protocol.Action
	took    time.Duration
	changed bool
	recheck bool
	detail  string // "" unless reasons are wanted
}

// note is what is kept of an event.
type note struct {
	ids
	kind protocol.EventKind
	// sent is when the agent says it happened, at when it came here.
	sent, at time.Time
}

// ids say where in an agent's work something is.
type ids struct {
	agent, agentID, session, task, turn, parentTurn, model string
	traceparent, traceID                                   string
}

const (
	// maxSteps is how many hooks of one call get a span.
	maxSteps = 128
	// maxText bounds ids and names, maxReason reasons, in bytes.
	maxText   = 128
	maxReason = 512
)

// takeCall copies what is needed of a record.
func takeCall(rec *manager.Record, reasons bool) *call {
	res := rec.Result
	c := &call{
		ids: takeIDs(rec.Request.Meta), stage: rec.Request.Stage.Name, callID: bounded(rec.Request.CallID),
		decidedBy: bounded(res.DecidedBy), generation: res.Generation, degraded: len(res.Degraded),
		undecided: rec.Err != nil, started: rec.Started, took: rec.Duration,
	}
	if rec.Caller != nil {
		if rec.Caller.Name != "" {
			c.agent = bounded(rec.Caller.Name)
		}
		if c.session == "" {
			c.session = bounded(rec.Caller.SessionID)
		}
	}
	reason := res.Reason
	switch d := (protocol.Decision{Action: res.Action}); {
	case c.stage != protocol.StageApproveTool:
		c.verdict = d.Decided()
	case res.Approval != nil && res.Approval.Approved:
		c.verdict = protocol.ActionAllow
	default:
		c.verdict = protocol.ActionDeny
	}
	if res.Approval != nil {
		c.approved = new(res.Approval.Approved)
		if c.stage == protocol.StageApproveTool {
			reason = res.Approval.Reason
		}
	}
	if rec.Request.Stage.Tool() {
		c.tool = bounded(toolOf(rec))
	}
	if v := rec.Final.Get("model"); c.stage == protocol.StageBeforeLLM && v != nil && v.Kind() == '"' {
		c.model = bounded(protocol.Unquote(v))
	}
	if reasons {
		c.reason = clip(reason, maxReason)
	}
	c.steps = make([]step, min(len(res.Trail), maxSteps))
	c.unseen = len(res.Trail) - len(c.steps)
	for i := range c.steps {
		from := &res.Trail[i]
		c.steps[i] = step{
			hook: bounded(from.Hook), outcome: from.Outcome, action: from.Action, took: from.Duration,
			changed: len(from.Changed) > 0, recheck: from.Recheck,
		}
		if reasons {
			c.steps[i].detail = clip(from.Detail, maxReason)
		}
	}
	return c
}

// toolOf is the tool's name after all changes.
func toolOf(rec *manager.Record) string {
	if v := rec.Final.Get("tool"); v != nil && v.Kind() == '"' {
		return protocol.Unquote(v)
	}
	return rec.Request.Tool()
}

// takeNote copies what is needed of an event.
func takeNote(ev *protocol.Event) *note {
	return &note{ids: takeIDs(ev.Meta), kind: ev.Kind, sent: ev.Time, at: time.Now()}
}

func takeIDs(meta protocol.Object) (i ids) {
	for _, m := range meta {
		var to *string
		switch m.Name {
		case "agent":
			to = &i.agent
		case "agent_id":
			to = &i.agentID
		case "session_id":
			to = &i.session
		case "task_id":
			to = &i.task
		case "turn_id":
			to = &i.turn
		case "parent_turn_id":
			to = &i.parentTurn
		case "model":
			to = &i.model
		case "traceparent":
			to = &i.traceparent
		case "trace_id":
			to = &i.traceID
		}
		if to != nil && m.Value.Kind() == '"' {
			*to = bounded(protocol.Unquote(m.Value))
		}
	}
	return i
}

// bounded returns an id or a name that is not too long. Long ones that differ
// stay different.
func bounded(s string) string {
	if len(s) <= maxText {
		return strings.ToValidUTF8(s, "�")
	}
	sum := sha256.Sum256([]byte(s))
	return clip(s, maxText/2) + hex.EncodeToString(sum[:8])
}

// clip shortens a text to so many bytes and a sign that it did.
func clip(s string, most int) string {
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…" // a new string: it must not keep the long one
	}
	return strings.ToValidUTF8(s, "�")
}

// runKind says which id a run is known by.
type runKind byte

const (
	byTask    runKind = 't'
	byTurn    runKind = 'u'
	bySession runKind = 's'
)

// runKey tells runs apart.
type runKey struct {
	kind      runKind
	agent, id string
}

// key returns which run something belongs to: that of the task, else of the
// turn, else of the session. Without any id it is the agent's only one.
func (i *ids) key() runKey {
	switch {
	case i.task != "":
		return runKey{byTask, i.agent, i.task}
	case i.turn != "":
		return runKey{byTurn, i.agent, i.turn}
	}
	return runKey{bySession, i.agent, i.session}
}

// parentKey returns which run a sub-agent's run was started from, if it is
// another one.
func (i *ids) parentKey() (runKey, bool) {
	return runKey{byTurn, i.agent, i.parentTurn}, i.parentTurn != "" && i.task == "" && i.parentTurn != i.turn
}

// shared reports whether this speaks of a sub-agent that is part of another
// one's run, so that its end is not the run's.
func (i *ids) shared() bool { return i.parentTurn != "" && (i.task != "" || i.turn == "") }
