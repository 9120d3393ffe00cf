package protocol

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// MethodEvent is the notification that carries an [Event], both ways.
const MethodEvent = "hook.event"

// EventKind says what happened. Kinds that start with "x_" are free for
// anybody's use.
type EventKind string

// Kinds that agents send, or that hookd derives from stage calls.
const (
	EventSessionStart            EventKind = "session_start"
	EventSessionEnd              EventKind = "session_end"
	EventAgentStart              EventKind = "agent_start"
	EventAgentEnd                EventKind = "agent_end"
	EventAgentError              EventKind = "agent_error"
	EventAgentTimeout            EventKind = "agent_timeout"
	EventTurnStart               EventKind = "turn_start"
	EventTurnEnd                 EventKind = "turn_end"
	EventIterationStart          EventKind = "iteration_start"
	EventIterationEnd            EventKind = "iteration_end"
	EventLLMRequest              EventKind = "llm_request"
	EventLLMResponse             EventKind = "llm_response"
	EventLLMDelta                EventKind = "llm_delta"
	EventLLMRetry                EventKind = "llm_retry"
	EventToolExecStart           EventKind = "tool_exec_start"
	EventToolExecEnd             EventKind = "tool_exec_end"
	EventToolExecSkipped         EventKind = "tool_exec_skipped"
	EventToolError               EventKind = "tool_error"
	EventSteeringInjected        EventKind = "steering_injected"
	EventFollowUpQueued          EventKind = "follow_up_queued"
	EventInterruptReceived       EventKind = "interrupt_received"
	EventSubagentStart           EventKind = "subagent_start"
	EventSubagentStop            EventKind = "subagent_stop"
	EventSubturnSpawn            EventKind = "subturn_spawn"
	EventSubturnEnd              EventKind = "subturn_end"
	EventSubturnResultDelivered  EventKind = "subturn_result_delivered"
	EventSubturnOrphan           EventKind = "subturn_orphan"
	EventBeforeCompact           EventKind = "before_compact"
	EventAfterCompact            EventKind = "after_compact"
	EventContextCompress         EventKind = "context_compress"
	EventSessionSummarize        EventKind = "session_summarize"
	EventNotification            EventKind = "notification"
	EventError                   EventKind = "error"
	freeEventPrefix                        = "x_"
	picoclawAgentPrefix                    = "agent."
	picoclawEverything                     = "all"
	sourceAgent, sourceHookd               = "agent", "hookd"
	severityDefault                        = "info"
	maxEventKindBytes                      = 128
	maxSubscriptionPatternsBytes           = 256
)

// Kinds that only hookd makes. From an agent they are dropped and counted.
const (
	EventDecision          EventKind = "decision"
	EventHookProgress      EventKind = "hook_progress"
	EventHookFailed        EventKind = "hook_failed"
	EventHookState         EventKind = "hook_state"
	EventApprovalRequested EventKind = "approval_requested"
	EventApprovalResolved  EventKind = "approval_resolved"
	EventConfigReloaded    EventKind = "config_reloaded"
)

// AgentEvents returns the kinds that agents send.
func AgentEvents() []EventKind {
	return []EventKind{
		EventSessionStart, EventSessionEnd, EventAgentStart, EventAgentEnd, EventAgentError, EventAgentTimeout,
		EventTurnStart, EventTurnEnd, EventIterationStart, EventIterationEnd,
		EventLLMRequest, EventLLMResponse, EventLLMDelta, EventLLMRetry,
		EventToolExecStart, EventToolExecEnd, EventToolExecSkipped, EventToolError,
		EventSteeringInjected, EventFollowUpQueued, EventInterruptReceived, EventSubagentStart, EventSubagentStop,
		EventSubturnSpawn, EventSubturnEnd, EventSubturnResultDelivered, EventSubturnOrphan,
		EventBeforeCompact, EventAfterCompact, EventContextCompress, EventSessionSummarize, EventNotification, EventError,
	}
}

// HookdEvents returns the kinds that only hookd makes.
func HookdEvents() []EventKind {
	return []EventKind{
		EventDecision, EventHookProgress, EventHookFailed, EventHookState,
		EventApprovalRequested, EventApprovalResolved, EventConfigReloaded,
	}
}

// Free reports whether the kind is outside of hookd's own list on purpose.
func (k EventKind) Free() bool { return strings.HasPrefix(string(k), freeEventPrefix) }

// Event is something that happened. Nothing is answered to it.
type Event struct {
	Kind EventKind
	Meta Object
	// Time is in UTC. Zero means now, filled in by hookd.
	Time time.Time
	// Payload is an object, or nil.
	Payload jsontext.Value
	// Severity is debug, info, warn or error; empty means info.
	Severity string
	// Source is "agent" or "hookd"; hookd sets it.
	Source string
	// ID is unique for the life of the daemon; hookd sets it.
	ID string
	// Extra holds params that hookd does not know, kept and passed on.
	Extra Object

	frozen bool
	shared atomic.Pointer[[]byte] // of a frozen event: what is the same for all observers
}

// Freeze says that the event does not change any more, so that what is the same for
// all observers needs to be encoded once only. It comes before anybody else sees the
// event.
func (e *Event) Freeze() { e.frozen = true }

// DecodeEvent reads the params of [MethodEvent]. What only hookd may set
// (source, id, seq, missed) is ignored; other unknown params are kept.
func DecodeEvent(params Object) (*Event, *Error) {
	ev := &Event{Severity: severityDefault, Source: sourceAgent}
	for _, m := range params {
		if m.Value.Kind() == 'n' && slices.Contains([]string{"kind", "meta", "time", "payload", "severity"}, m.Name) {
			continue
		}
		var err error
		switch m.Name {
		case "kind":
			var kind string
			kind, err = stringValue(m.Name, m.Value)
			ev.Kind = EventKind(kind)
		case "meta":
			ev.Meta, err = decodeMeta(m.Value)
		case "time":
			var text string
			if text, err = stringValue(m.Name, m.Value); err == nil {
				ev.Time, err = parseTime(text)
			}
		case "payload":
			ev.Payload, err = m.Value, wantKind(m.Name, m.Value, '{')
		case "severity":
			if ev.Severity, err = stringValue(m.Name, m.Value); err == nil && !slices.Contains(severities(), ev.Severity) {
				err = fmt.Errorf("severity: unknown %q, one of %s", clip(ev.Severity), strings.Join(severities(), ", "))
			}
		case "source", "id", "seq", "missed": // hookd's to say
		default:
			ev.Extra = append(ev.Extra, m)
		}
		if err != nil {
			return nil, paramError(m.Name, err)
		}
	}
	switch {
	case ev.Kind == "" || len(ev.Kind) > maxEventKindBytes:
		return nil, InvalidParams("kind", "is missing or too long")
	case slices.Contains(HookdEvents(), ev.Kind):
		return nil, InvalidParams("kind", "%q is hookd's own", ev.Kind)
	case !ev.Kind.Free() && !slices.Contains(AgentEvents(), ev.Kind):
		return nil, InvalidParams("kind", "unknown event %q%s; a kind of your own starts with x_", clip(string(ev.Kind)), DidYouMean(string(ev.Kind), eventNames()))
	}
	return ev, nil
}

// parseTime reads RFC 3339; in UTC the year must still have four digits.
func parseTime(text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || t.UTC().Year() < 0 || t.UTC().Year() > 9999 {
		return t, fmt.Errorf("time: expected RFC 3339, such as 2026-01-02T15:04:05Z, got %q", clip(text))
	}
	return t.UTC(), nil
}

// NewHookdEvent makes an event of hookd's own, dated now.
func NewHookdEvent(kind EventKind, meta Object, payload jsontext.Value) *Event {
	return &Event{Kind: kind, Meta: meta, Payload: payload, Time: time.Now().UTC(), Severity: severityDefault, Source: sourceHookd}
}

func severities() []string { return []string{"debug", "info", "warn", "error"} }

// AppendJSON appends the event for one observer: seq counts what this observer
// was sent, missed how many it lost before this one.
func (e *Event) AppendJSON(b []byte, seq, missed uint64) []byte {
	if e.frozen {
		shared := e.shared.Load()
		if shared == nil { // perhaps to several at once, who encode the same
			shared = new(e.appendShared(make([]byte, 0, 256+len(e.Payload))))
			e.shared.Store(shared)
		}
		b = append(slices.Grow(b, len(*shared)+64), *shared...)
	} else {
		b = e.appendShared(b)
	}
	b = append(b, `,"seq":`...)
	b = strconv.AppendUint(b, seq, 10)
	b = append(b, `,"missed":`...)
	b = strconv.AppendUint(b, missed, 10)
	return append(b, '}')
}

// appendShared appends what is the same for all observers, and leaves the object
// open.
func (e *Event) appendShared(b []byte) []byte {
	b = append(b, `{"kind":`...)
	b = AppendString(b, e.Kind)
	if e.Meta != nil {
		b = append(b, `,"meta":`...)
		b = e.Meta.AppendJSON(b)
	}
	b = append(b, `,"time":"`...)
	b = e.Time.AppendFormat(b, time.RFC3339Nano)
	b = append(b, '"')
	b = appendValueMember(b, "payload", e.Payload)
	b = appendStringMember(b, "severity", e.Severity)
	b = appendStringMember(b, "source", e.Source)
	b = appendStringMember(b, "id", e.ID)
	for _, m := range e.Extra {
		b = appendValueMember(b, m.Name, m.Value)
	}
	return b
}

// Subscription is a checked pattern for event kinds: an exact name, a glob
// such as "tool_*", or "*". The zero value matches nothing.
type Subscription struct{ pattern string }

// ParseSubscription reads a pattern. The names of PicoClaw are understood too:
// "all" and "" for everything, and dotted kinds such as "agent.turn.end".
func ParseSubscription(text string) (Subscription, error) {
	if text == "" || text == picoclawEverything || text == "*" {
		return Subscription{"*"}, nil
	}
	if len(text) > maxSubscriptionPatternsBytes {
		return Subscription{}, fmt.Errorf("event pattern of %d bytes is too long", len(text))
	}
	name := text
	if strings.Contains(text, ".") && !EventKind(text).Free() {
		if name = fromPicoclaw(text); name == "" {
			return Subscription{}, fmt.Errorf("unknown event %q%s", clip(text), DidYouMean(text, eventNames()))
		}
	}
	if strings.ContainsAny(name, "*?") {
		if !EventKind(name).Free() && !matchesAny(name) {
			return Subscription{}, fmt.Errorf("event pattern %q matches no event", clip(text))
		}
		return Subscription{name}, nil
	}
	if !EventKind(name).Free() && !slices.Contains(eventNames(), name) && !picoclawOnly(text) {
		return Subscription{}, fmt.Errorf("unknown event %q%s", clip(text), DidYouMean(text, eventNames()))
	}
	return Subscription{name}, nil
}

// Matches reports whether an event of this kind is wanted.
func (s Subscription) Matches(kind EventKind) bool {
	if s.pattern == "*" || s.pattern == string(kind) {
		return true
	}
	return strings.ContainsAny(s.pattern, "*?") && Glob(s.pattern, string(kind))
}

// String returns the pattern in hookd's own words.
func (s Subscription) String() string { return s.pattern }

func eventNames() []string {
	var names []string
	for _, k := range append(AgentEvents(), HookdEvents()...) {
		names = append(names, string(k))
	}
	return names
}

func matchesAny(pattern string) bool {
	return slices.ContainsFunc(eventNames(), func(n string) bool { return Glob(pattern, n) })
}

// fromPicoclaw turns a dotted kind of PicoClaw into ours, or into a name that
// no event has when it speaks of things that are not in an agent's loop.
func fromPicoclaw(dotted string) string {
	if dotted == "agent.error" {
		return string(EventAgentError)
	}
	if rest, ok := strings.CutPrefix(dotted, picoclawAgentPrefix); ok {
		name := strings.ReplaceAll(rest, ".", "_")
		if strings.ContainsAny(name, "*?") || slices.Contains(eventNames(), name) {
			return name
		}
		return ""
	}
	if picoclawOnly(dotted) {
		return strings.ReplaceAll(dotted, ".", "_")
	}
	return ""
}

// picoclawOnly reports whether a dotted kind belongs to PicoClaw's transport,
// gateway and MCP plumbing. A pasted config may name it; hookd never sends it.
func picoclawOnly(dotted string) bool {
	switch first, _, _ := strings.Cut(dotted, "."); first {
	case "channel", "bus", "gateway", "mcp":
		return strings.Contains(dotted, ".")
	}
	return false
}
