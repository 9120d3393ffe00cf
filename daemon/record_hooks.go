package daemon

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/mount"
	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/record"
)

const (
	// firstEvents is before the hooks that deny or change what a user says.
	firstEvents = 15
	// messageChars is how much of a user's message is kept.
	messageChars = 200
	// messageWindow is how many bytes of it are looked at, so that a secret which
	// the cut would go through is seen whole.
	messageWindow = 4 << 10
	// sourceAgent is the source of an event that an agent has sent.
	sourceAgent = "agent"
)

// builtins are the hooks that tell the record more than decisions. Without a
// record they do nothing.
func (b *book) builtins() []mount.Builtin {
	config := func(raw jsontext.Value) error { return nil }
	return []mount.Builtin{
		{
			Name: "security_events", Priority: firstEvents,
			New: func(c mount.BuiltinContext) (any, error) {
				b.warnWithout(c)
				return &securityEvents{b}, nil
			},
			Stages: []protocol.Stage{protocol.StageUserMessage},
			Events: []string{string(protocol.EventAgentError), string(protocol.EventAgentTimeout), string(protocol.EventError)},
		},
		{
			// Its config, of whatever shape, is for other programs of this name.
			Name: "audit", Validate: config,
			New: func(c mount.BuiltinContext) (any, error) {
				b.warnWithout(c)
				return &audit{b}, nil
			},
			Events: []string{string(protocol.EventToolExecEnd), string(protocol.EventToolExecSkipped)},
		},
	}
}

func (b *book) warnWithout(c mount.BuiltinContext) {
	if b.store == nil && c.Log != nil {
		c.Log.Warn("nothing is kept: record.mode is off")
	}
}

// securityEvents records what users say, and errors and time-outs of agents. It
// never judges.
type securityEvents struct{ book *book }

// Stages implements [hook.Stager].
func (*securityEvents) Stages() []protocol.Stage { return []protocol.Stage{protocol.StageUserMessage} }

// Intercept records the beginning of a user's message.
func (e *securityEvents) Intercept(_ context.Context, req *protocol.Request) (protocol.Decision, error) {
	if !req.DryRun {
		e.book.tell(func(s *record.Store) error {
			return s.Security(&record.SecurityEvent{
				What: string(protocol.StageUserMessage), Severity: "info", Session: req.MetaString("session_id"), Agent: req.MetaString("agent"),
				User: req.MetaString("user_id"), Message: e.book.beginning(messageText(req.Subject.Get("message"))),
			})
		})
	}
	return protocol.Decision{}, nil
}

// Observe records what went wrong in an agent.
func (e *securityEvents) Observe(_ context.Context, ev *hook.Event) error {
	b := e.book
	if b.store == nil {
		return nil
	}
	if ev.Missed > 0 {
		b.tell(func(s *record.Store) error {
			return s.Security(&record.SecurityEvent{What: "events_missed", Severity: "warn", Message: fmt.Sprintf("%d events before this one came too fast and are not here", ev.Missed)})
		})
	}
	payload, _ := protocol.ParseObject(ev.Payload) // of another shape: it has no message
	severity := ev.Severity
	if severity == "" || severity == "info" {
		severity = "error"
	}
	return b.store.Security(&record.SecurityEvent{
		What: string(ev.Kind), Severity: severity, Session: protocol.MetaString(ev.Meta, "session_id"), Agent: protocol.MetaString(ev.Meta, "agent"),
		User: protocol.MetaString(ev.Meta, "user_id"), Tool: textMember(payload, "tool"),
		Message: textMember(payload, "message", "error", "reason"), Detail: ev.Payload,
	})
}

// messageText is what a user says, in whatever shape an agent sends it.
func messageText(v jsontext.Value) string {
	if v.Kind() == '{' {
		o, err := protocol.ParseObject(v)
		if err != nil {
			return ""
		}
		if text := protocol.ContentText(o.Get("content")); text != "" {
			return text
		}
		return textMember(o, "text", "prompt")
	}
	return protocol.ContentText(v)
}

// beginning is the start of a text without what may not be kept.
func (b *book) beginning(text string) string {
	if len(text) > messageWindow {
		cut := messageWindow
		for !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut]
	}
	v := record.MaskSecrets(protocol.Quote(text))
	if b.mask != nil {
		v = b.mask(v)
	}
	if v.Kind() != '"' {
		return ""
	}
	text = protocol.Unquote(v)
	if n := utf8.RuneCountInString(text); n <= messageChars {
		return text
	}
	return strings.TrimSpace(string([]rune(text)[:messageChars])) + "…"
}

// audit records runs of tools of which agents tell in events only. Those that
// pass after_tool are in the record without it.
type audit struct{ book *book }

// Observe implements [hook.Observer].
func (a *audit) Observe(_ context.Context, ev *hook.Event) error {
	if a.book.store == nil || ev.Source != sourceAgent {
		return nil
	}
	p, err := protocol.ParseObject(ev.Payload)
	if err != nil {
		return fmt.Errorf("the payload of %s: %w", ev.Kind, err)
	}
	run := &record.ToolRun{
		Session: protocol.MetaString(ev.Meta, "session_id"), Agent: protocol.MetaString(ev.Meta, "agent"),
		Tool: textMember(p, "tool", "tool_name", "name"), CallID: textMember(p, "call_id", "tool_call_id", "tool_use_id"), Status: "ok",
		Preview: textMember(p, "preview", "output", "reason"),
	}
	if run.Tool == "" {
		run.Tool = "unknown"
	}
	if run.CallID == "" {
		run.CallID = textMember(ev.Extra, "call_id")
	}
	result, _ := protocol.ParseObject(p.Get("result")) // none, or a text
	if run.Preview == "" {
		run.Preview = protocol.ContentText(result.Get("content"))
	}
	switch {
	case ev.Kind == protocol.EventToolExecSkipped:
		run.Status = "skipped"
	case string(p.Get("is_error")) == "true" || string(result.Get("is_error")) == "true" || textMember(p, "error") != "":
		run.Status = "error"
	}
	if ms, err := strconv.ParseFloat(string(p.Get("duration_ms")), 64); err == nil && ms > 0 && ms < 1e12 {
		run.Duration = time.Duration(ms * float64(time.Millisecond))
	}
	return a.book.store.ToolRun(run)
}
