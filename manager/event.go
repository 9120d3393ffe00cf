package manager

import (
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/protocol"
)

// previewBytes is how much of a tool's output an event shows.
const previewBytes = 200

// eventIDs makes ids that are unique for the life of the daemon and, through
// its start time, beyond it.
type eventIDs struct {
	start time.Time
	last  atomic.Uint64
}

func (e *eventIDs) next() string {
	return strconv.FormatInt(e.start.UnixMilli(), 36) + "-" + strconv.FormatUint(e.last.Add(1), 36)
}

// Publish hands an event to every observer that wants it. It never waits.
// caller is the agent that sent it; nil for hookd's own.
func (m *HookManager) Publish(caller *Caller, ev *protocol.Event) {
	g := m.current.Load()
	agent := ""
	if caller != nil {
		agent = caller.agentName(ev.Meta)
		ev.Meta = caller.fillMeta(ev.Meta, g.number)
	}
	g.publish(m, ev, agent)
}

func (g *Generation) publish(m *HookManager, ev *protocol.Event, agent string) {
	stamp := func() { // once, and only when somebody gets it
		if ev.ID == "" {
			ev.ID = m.eventID.next()
			if ev.Time.IsZero() {
				ev.Time = m.now().UTC()
			}
			ev.Freeze()
		}
	}
	for _, mb := range g.observers {
		if mb.Observes(ev.Kind) && g.meant(mb, ev, agent) {
			stamp()
			mb.unit.publish(ev)
		}
	}
	for _, f := range m.openFeeds() {
		if f.wants(ev.Kind) {
			stamp()
			f.push(ev)
		}
	}
}

// meant applies an entry's match to an event. Events that hookd makes about
// itself have no agent, and are not filtered by one.
func (g *Generation) meant(mb *member, ev *protocol.Event, agent string) bool {
	if agent == "" && ev.Kind != protocol.EventDecision && isHookds(ev.Kind) {
		return true
	}
	tool, isTool := "", false
	if mb.Match.HasTools() && ev.Payload != nil {
		if p, err := protocol.ParseObject(ev.Payload); err == nil {
			if v := p.Get("tool"); v != nil && v.Kind() == '"' {
				tool, isTool = protocol.Unquote(v), true
			}
		}
	}
	return mb.Match.Matches(tool, isTool, agent)
}

func isHookds(kind protocol.EventKind) bool { return slices.Contains(protocol.HookdEvents(), kind) }

// wants reports whether anybody gets events of this kind, so that those that
// nobody gets are not made.
func (g *Generation) wants(m *HookManager, kind protocol.EventKind) bool {
	return slices.ContainsFunc(g.observers, func(mb *member) bool { return mb.Observes(kind) }) ||
		slices.ContainsFunc(m.openFeeds(), func(f *Feed) bool { return f.wants(kind) })
}

// publish tells observers what the call implied, what was decided and what
// failed on the way.
func (r *run) publish(took time.Duration) {
	if r.base.DryRun || len(r.gen.observers) == 0 && len(r.m.openFeeds()) == 0 {
		return // of a dry run nothing has happened
	}
	meta := r.meta
	if meta == nil {
		meta = r.caller.fillMeta(r.base.Meta, r.gen.number)
	}
	tell := func(kind protocol.EventKind, payload func() jsontext.Value) {
		if r.gen.wants(r.m, kind) {
			r.gen.publish(r.m, protocol.NewHookdEvent(kind, meta, payload()), r.agent)
		}
	}
	if !r.caller.OwnEvents {
		r.derive(tell)
	}
	for _, f := range r.failures {
		tell(protocol.EventHookFailed, func() jsontext.Value {
			return protocol.Object{
				{Name: "hook", Value: protocol.Quote(f.Hook)},
				{Name: "stage", Value: protocol.Quote(r.stage.Name)},
				{Name: "outcome", Value: protocol.Quote(f.Outcome)},
				{Name: "detail", Value: protocol.Quote(f.Detail)},
			}.AppendJSON(nil)
		})
	}
	tell(protocol.EventDecision, func() jsontext.Value { return r.decisionPayload(took) })
}

// verdict is the answer in one word, also for an approval.
func (r *run) verdict() (action protocol.Action, reason string) {
	if r.stage.Name != protocol.StageApproveTool {
		d := protocol.Decision{Action: r.result.Action}
		return d.Decided(), r.result.Reason
	}
	if r.result.Approval.Approved {
		return protocol.ActionAllow, r.result.Approval.Reason
	}
	return protocol.ActionDeny, r.result.Approval.Reason
}

func (r *run) decisionPayload(took time.Duration) jsontext.Value {
	action, reason := r.verdict()
	b := append([]byte(`{"stage":`), protocol.Quote(r.stage.Name)...)
	member := func(name, text string) {
		if text != "" {
			b = append(append(append(b, ',', '"'), name...), '"', ':')
			b = protocol.AppendString(b, text)
		}
	}
	if r.stage.Tool() {
		req := r.finalRequest()
		member("tool", req.Tool())
		member("digest", req.Digest())
	}
	member("call_id", r.base.CallID)
	member("action", string(action))
	member("reason", reason)
	member("decided_by", r.result.DecidedBy)
	b = protocol.AppendDegraded(b, r.result.Degraded)
	b = append(b, `,"duration_us":`...)
	return append(strconv.AppendInt(b, took.Microseconds(), 10), '}')
}

// derive makes the event that the stage's row names. At the tool stages and at
// stop the kind depends on what was decided.
func (r *run) derive(tell func(protocol.EventKind, func() jsontext.Value)) {
	action, reason := r.verdict()
	req := r.finalRequest()
	skipped := func() jsontext.Value {
		return protocol.Object{{Name: "tool", Value: protocol.Quote(req.Tool())}, {Name: "reason", Value: protocol.Quote(reason)}}.AppendJSON(nil)
	}
	started := func() jsontext.Value {
		return approvalSubject(req.Subject, &protocol.StageInfo{Subject: []string{"tool", "arguments"}}).AppendJSON(nil)
	}
	switch r.stage.Name {
	case protocol.StageBeforeTool:
		switch {
		case action.Stops():
			tell(protocol.EventToolExecSkipped, skipped)
		case action != protocol.ActionAsk: // else approve_tool tells
			tell(protocol.EventToolExecStart, started)
		}
	case protocol.StageApproveTool:
		switch {
		case action.Stops():
			tell(protocol.EventToolExecSkipped, skipped)
		case r.asked:
			tell(protocol.EventToolExecStart, started)
		}
	case protocol.StageAfterTool:
		tell(protocol.EventToolExecEnd, func() jsontext.Value { return toolEnd(req) })
		if isError(req) {
			tell(protocol.EventToolError, func() jsontext.Value { return toolEnd(req) })
		}
	case protocol.StageStop:
		if action != protocol.ActionInject { // else another round begins
			tell(protocol.EventTurnEnd, func() jsontext.Value { return stagePayload(req) })
		}
	default:
		if r.stage.Event != "" {
			tell(r.stage.Event, func() jsontext.Value { return stagePayload(req) })
		}
	}
}

func isError(req *protocol.Request) bool {
	res, err := protocol.ParseObject(req.Subject.Get("result"))
	return err == nil && string(res.Get("is_error")) == "true"
}

func toolEnd(req *protocol.Request) jsontext.Value {
	out := protocol.Object{{Name: "tool", Value: protocol.Quote(req.Tool())}}
	if d := req.Fixed.Get("duration_ms"); d != nil {
		out = append(out, protocol.Member{Name: "duration_ms", Value: d})
	}
	failed := jsontext.Value("false")
	if isError(req) {
		failed = jsontext.Value("true")
	}
	out = append(out, protocol.Member{Name: "is_error", Value: failed})
	if res, err := protocol.ParseObject(req.Subject.Get("result")); err == nil {
		if text := preview(res.Get("content")); text != "" {
			out = append(out, protocol.Member{Name: "preview", Value: protocol.Quote(text)})
		}
	}
	return out.AppendJSON(nil)
}

// preview is the start of a text content.
func preview(content jsontext.Value) string {
	text := protocol.ContentText(content)
	if len(text) <= previewBytes {
		return text
	}
	cut := previewBytes
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return strings.TrimSpace(text[:cut]) + "…"
}

// stagePayload is what the derived event of a stage other than the tool stages
// carries: small facts, not the conversation.
func stagePayload(req *protocol.Request) jsontext.Value {
	switch req.Stage.Name {
	case protocol.StageUserMessage, protocol.StageStop, protocol.StageBeforeCompact:
		return req.Subject.AppendJSON(nil)
	case protocol.StageBeforeLLM:
		if m := req.Subject.Get("model"); m != nil {
			return protocol.Object{{Name: "model", Value: m}}.AppendJSON(nil)
		}
	case protocol.StageAfterLLM:
		if resp, err := protocol.ParseObject(req.Subject.Get("response")); err == nil {
			if u := resp.Get("usage"); u != nil {
				return protocol.Object{{Name: "usage", Value: u}}.AppendJSON(nil)
			}
		}
	}
	return jsontext.Value("{}")
}
