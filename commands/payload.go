package commands

import (
	"crypto/sha256"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/protocol"
)

// occasion is a call or an event as Claude Code would tell a hook of it.
type occasion struct {
	req   *protocol.Request // nil for an event
	event *protocol.Event   // nil for a call
	meta  protocol.Object

	native  protocol.Object // the agent's own payload, where it speaks Claude Code's dialect
	claude  bool            // it does
	name    string          // the event's name in that dialect, or any agent's
	tool    string          // as the agent calls it
	args    protocol.Object // as they are now
	subject protocol.Object // the stage's subject, or the event's payload
}

func ofRequest(req *protocol.Request) *occasion {
	o := &occasion{req: req, meta: req.Meta, subject: req.Subject, tool: req.Tool()}
	args := req.Subject.Get("arguments")
	if args == nil {
		args = req.Fixed.Get("arguments")
	}
	o.args = members(args)
	o.readNative()
	return o
}

func ofEvent(ev *protocol.Event) *occasion {
	o := &occasion{event: ev, meta: ev.Meta, subject: members(ev.Payload)}
	o.tool = protocol.MetaString(o.subject, "tool")
	o.args = members(o.subject.Get("arguments"))
	o.readNative()
	return o
}

func members(v jsontext.Value) protocol.Object {
	if v.Kind() != '{' {
		return nil
	}
	obj, err := protocol.ParseObject(v)
	if err != nil {
		return nil // it was read as an object before
	}
	return obj
}

// readNative finds what the agent itself sent.
func (o *occasion) readNative() {
	native := members(o.meta.Get("native"))
	o.name = protocol.MetaString(native, "event")
	switch protocol.MetaString(native, "agent") {
	case "claude", "codex", "qwen", "droid", "kimi", "vscode":
		o.native, o.claude = members(native.Get("payload")), true
	}
}

// is reports whether the occasion is an event of Claude Code's. Where stages
// stand for several, what the agent calls it, or the result, tells them apart.
func (o *occasion) is(r eventRow) bool {
	if o.req == nil {
		return true // its kind was matched
	}
	switch r.name {
	case "PostToolUse":
		return !o.failed()
	case "PostToolUseFailure":
		return o.failed()
	case "Stop":
		return !o.subagent()
	case "SubagentStop":
		return o.subagent()
	case "UserPromptSubmit":
		return o.name != "UserPromptExpansion"
	case "UserPromptExpansion", "Setup", "SubagentStart", "PostToolBatch":
		return strings.EqualFold(o.name, r.name)
	case "SessionStart":
		return strings.EqualFold(o.name, r.name)
	}
	return true
}

func (o *occasion) failed() bool {
	return string(members(o.subject.Get("result")).Get("is_error")) == "true"
}

func (o *occasion) subagent() bool {
	return strings.Contains(strings.ToLower(o.name), "subagent") || o.name == "" && protocol.MetaString(o.meta, "parent_turn_id") != ""
}

// about is what a matcher is compared with.
func (o *occasion) about(r eventRow) string {
	for _, from := range []protocol.Object{o.native, members(o.subject.Get("request")), o.subject} {
		if text := protocol.MetaString(from, r.subject); text != "" {
			return text
		}
	}
	return ""
}

func (o *occasion) session() string { return protocol.MetaString(o.meta, "session_id") }
func (o *occasion) cwd() string     { return protocol.MetaString(o.meta, "cwd") }

// payload writes what a script reads. What the agent sent stays, with the tool
// call as it is now; for an agent of another dialect it is made.
func (o *occasion) payload(event string, active bool) []byte {
	p := protocol.Object{}
	if o.claude && strings.EqualFold(o.name, event) {
		p = append(p, o.native...)
	}
	text := func(name, value string) {
		if p.Get(name) == nil && value != "" {
			p = append(p, protocol.Member{Name: name, Value: protocol.Quote(value)})
		}
	}
	value := func(name string, v jsontext.Value) {
		if p.Get(name) == nil && v != nil {
			p = append(p, protocol.Member{Name: name, Value: v})
		}
	}
	text("session_id", o.session())
	if p.Get("session_id") == nil {
		value("session_id", jsontext.Value(`""`))
	}
	value("transcript_path", jsontext.Value(`""`))
	value("cwd", protocol.Quote(o.cwd()))
	p = p.With("hook_event_name", protocol.Quote(event))
	text("model", protocol.MetaString(o.meta, "model"))
	text("agent_id", protocol.MetaString(o.meta, "agent_id"))
	if isToolEvent(event) {
		name, input := protocol.ClaudeToolCall(o.tool, o.args)
		p = p.With("tool_name", protocol.Quote(name)).With("tool_input", input.AppendJSON(nil))
		if o.req != nil {
			text("tool_use_id", o.req.CallID)
			value("duration_ms", o.req.Fixed.Get("duration_ms"))
		}
	}
	switch event {
	case "PostToolUse":
		p = p.With("tool_response", o.response())
	case "PostToolUseFailure":
		p = p.With("error", protocol.Quote(protocol.ContentText(members(o.subject.Get("result")).Get("content"))))
	case "UserPromptSubmit", "UserPromptExpansion":
		p = p.With("prompt", protocol.Quote(protocol.ContentText(members(o.subject.Get("message")).Get("content"))))
	case "Stop", "SubagentStop":
		request := members(o.subject.Get("request"))
		value("stop_hook_active", boolean(active))
		value("last_assistant_message", request.Get("last_message"))
	case "PreCompact":
		request := members(o.subject.Get("request"))
		value("trigger", request.Get("trigger"))
		value("custom_instructions", jsontext.Value(`""`))
	case "SessionStart":
		value("source", o.subject.Get("source"))
	case "SessionEnd":
		value("reason", o.subject.Get("reason"))
	}
	if o.event != nil {
		for _, m := range o.subject {
			value(m.Name, m.Value)
		}
	}
	return p.AppendJSON(nil)
}

// response is the tool's result: as the agent gave it while nobody changed it,
// else the text as it is now.
func (o *occasion) response() jsontext.Value {
	result := o.subject.Get("result")
	if native := o.native.Get("tool_response"); native != nil && o.claude {
		return native
	}
	if result == nil {
		return jsontext.Value("{}")
	}
	return result
}

func boolean(b bool) jsontext.Value {
	if b {
		return jsontext.Value("true")
	}
	return jsontext.Value("false")
}

// who is the session, or the agent and its folder when it names none.
func (o *occasion) who() string {
	if session := o.session(); session != "" {
		return session
	}
	sum := sha256.Sum256([]byte(protocol.MetaString(o.meta, "agent") + "\x00" + o.cwd()))
	return "\x00" + string(sum[:]) // short, and no session's name
}
