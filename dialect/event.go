package dialect

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/protocol"
)

// Event returns the notification that tells a hook what happened: its method
// and params. seq and missed are those of [protocol.Event.AppendJSON].
func (d Dialect) Event(ev *protocol.Event, seq, missed uint64) (method string, params []byte) {
	switch d {
	case Picoclaw:
		return MethodRuntimeEvent, runtimeEvent(ev, seq, missed)
	case PicoclawSite:
		params = ev.AppendJSON(nil, seq, missed)
		params = append(params[:len(params)-1], `,"type":`...)
		params = protocol.AppendString(params, ev.Kind)
		params = append(params, `,"data":`...)
		return protocol.MethodEvent, append(theirPayload(ev).AppendJSON(params), '}')
	}
	return protocol.MethodEvent, ev.AppendJSON(nil, seq, missed)
}

// runtimeEvent writes an event in PicoClaw's envelope.
func runtimeEvent(ev *protocol.Event, seq, missed uint64) []byte {
	meta := func(name string) jsontext.Value { return protocol.Quote(protocol.MetaString(ev.Meta, name)) }
	kind := theirKind(ev.Kind)
	component, _, _ := strings.Cut(kind, ".")
	scope, correlation := object(ev.Extra.Get("scope")), object(ev.Extra.Get("correlation"))
	if scope == nil {
		scope = protocol.Object{{Name: "agent_id", Value: meta("agent_id")}, {Name: "session_key", Value: meta("session_id")}, {Name: "turn_id", Value: meta("turn_id")}}
	}
	if correlation == nil {
		correlation = protocol.Object{{Name: "trace_id", Value: meta("trace_id")}, {Name: "parent_turn_id", Value: meta("parent_turn_id")}}
	}
	out := protocol.Object{
		{Name: "id", Value: protocol.Quote(ev.ID)},
		{Name: "kind", Value: protocol.Quote(kind)},
		{Name: "time", Value: protocol.Quote(ev.Time.Format(time.RFC3339Nano))},
		{Name: "source", Value: protocol.Object{{Name: "component", Value: protocol.Quote(component)}, {Name: "name", Value: meta("agent_id")}}.AppendJSON(nil)},
		{Name: "scope", Value: scope.AppendJSON(nil)},
		{Name: "correlation", Value: correlation.AppendJSON(nil)},
		{Name: "severity", Value: protocol.Quote(ev.Severity)},
		{Name: "payload", Value: theirPayload(ev).AppendJSON(nil)},
		{Name: "seq", Value: strconv.AppendUint(nil, seq, 10)},
		{Name: "missed", Value: strconv.AppendUint(nil, missed, 10)},
	}
	if attrs := ev.Extra.Get("attrs"); attrs != nil {
		out = append(out, protocol.Member{Name: "attrs", Value: attrs})
	}
	return out.AppendJSON(nil)
}

const (
	agentPrefix = "agent."
	ownPrefix   = "hookd." // before kinds that PicoClaw has not
	freePrefix  = "x_"     // before kinds that hookd has not
)

// theirKinds are the kinds of an agent's loop that both sides have.
func theirKinds() []namePair {
	return []namePair{
		{"turn.start", "turn_start"}, {"turn.end", "turn_end"},
		{"llm.request", "llm_request"}, {"llm.delta", "llm_delta"}, {"llm.response", "llm_response"}, {"llm.retry", "llm_retry"},
		{"context.compress", "context_compress"}, {"session.summarize", "session_summarize"},
		{"tool.exec_start", "tool_exec_start"}, {"tool.exec_end", "tool_exec_end"}, {"tool.exec_skipped", "tool_exec_skipped"},
		{"steering.injected", "steering_injected"}, {"follow_up.queued", "follow_up_queued"}, {"interrupt.received", "interrupt_received"},
		{"subturn.spawn", "subturn_spawn"}, {"subturn.end", "subturn_end"},
		{"subturn.result_delivered", "subturn_result_delivered"}, {"subturn.orphan", "subturn_orphan"},
		{"error", "agent_error"},
	}
}

func theirKind(kind protocol.EventKind) string {
	for _, k := range theirKinds() {
		if k.ours == string(kind) {
			return agentPrefix + k.theirs
		}
	}
	if rest, ok := strings.CutPrefix(string(kind), freePrefix); ok && outsideLoop(rest) {
		return rest
	}
	return ownPrefix + string(kind)
}

// ourKind returns a kind as hookd names it. What happens outside of an agent's
// loop is passed on as a free kind; anything else keeps its name, which hookd
// then does not know.
func ourKind(kind string) protocol.EventKind {
	for _, k := range theirKinds() {
		if agentPrefix+k.theirs == kind {
			return protocol.EventKind(k.ours)
		}
	}
	if outsideLoop(kind) {
		return protocol.EventKind(freePrefix + kind)
	}
	return protocol.EventKind(kind)
}

// outsideLoop reports whether a kind speaks of PicoClaw's channels, bus,
// gateway or MCP servers.
func outsideLoop(kind string) bool {
	component, _, dotted := strings.Cut(kind, ".")
	return dotted && slices.Contains([]string{"channel", "bus", "gateway", "mcp"}, component)
}

// theirPayload names what an agent's event carries as PicoClaw does: in Pascal
// case, durations in nanoseconds.
func theirPayload(ev *protocol.Event) protocol.Object {
	payload := object(ev.Payload)
	kind := theirKind(ev.Kind)
	if !strings.HasPrefix(kind, agentPrefix) {
		return payload
	}
	var out protocol.Object
	put := func(name string, v jsontext.Value) {
		if out.Get(name) == nil {
			out = append(out, protocol.Member{Name: name, Value: v})
		}
	}
	said := func(v jsontext.Value) jsontext.Value {
		if v.Kind() == '{' {
			v = object(v).Get("content")
		}
		said, _ := text(v)
		return protocol.Quote(said)
	}
	for _, m := range payload {
		name, ms := strings.CutSuffix(m.Name, "_ms")
		switch {
		case ms:
			put(pascal(name), nanoseconds(m.Value))
		case m.Name == "message" && ev.Kind == protocol.EventTurnStart:
			put("UserMessage", said(m.Value))
		case m.Name == "steps":
			put("Iterations", m.Value)
		case m.Name == "request" && ev.Kind == protocol.EventTurnEnd: // derived from stop
			last := said(object(m.Value).Get("last_message"))
			put("FinalContent", last)
			put("FinalContentLen", strconv.AppendInt(nil, int64(len(protocol.Unquote(last))), 10))
		default:
			put(pascal(m.Name), m.Value)
		}
	}
	if ev.Kind == protocol.EventTurnEnd {
		put("Status", protocol.Quote("completed"))
	}
	return out
}

// ourPayload is the way back.
func ourPayload(kind protocol.EventKind, payload protocol.Object) protocol.Object {
	if kind.Free() {
		return payload
	}
	var out protocol.Object
	put := func(name string, v jsontext.Value) {
		if out.Get(name) == nil {
			out = append(out, protocol.Member{Name: name, Value: v})
		}
	}
	for _, m := range payload {
		switch m.Name {
		case "Duration", "Backoff":
			if ms := milliseconds(m.Value); ms != nil {
				put(snake(m.Name)+"_ms", ms)
			}
		case "UserMessage":
			if kind == protocol.EventTurnStart {
				put("message", protocol.Object{{Name: "role", Value: protocol.Quote("user")}, {Name: "content", Value: m.Value}}.AppendJSON(nil))
				continue
			}
			put(snake(m.Name), m.Value)
		case "Iterations":
			put("steps", m.Value)
		default:
			put(snake(m.Name), m.Value)
		}
	}
	return out
}

// pascal turns for_llm_len into ForLLMLen.
func pascal(name string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(name, "_") {
		switch {
		case word == "id" || word == "llm" || word == "url":
			b.WriteString(strings.ToUpper(word))
		case word != "":
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}

// snake turns ForLLMLen into for_llm_len.
func snake(name string) string {
	upper := func(i int) bool { return 'A' <= name[i] && name[i] <= 'Z' }
	var b strings.Builder
	for i := range len(name) {
		if i > 0 && upper(i) && name[i-1] != '_' && (!upper(i-1) || i+1 < len(name) && !upper(i+1)) {
			b.WriteByte('_')
		}
		if upper(i) {
			b.WriteByte(name[i] | 0x20)
		} else {
			b.WriteByte(name[i])
		}
	}
	return b.String()
}
