// Package opencode speaks with the plug-in for OpenCode that hookd ships.
// OpenCode has no hooks that are programs, so the plug-in runs one for each of
// its events and does what the answer says.
//
// # The contract
//
// The plug-in writes one object:
//
//	{"hook_event_name", "session_id", "cwd", …}
//	  tool.execute.before   "call_id", "tool_name", "tool_input"
//	  tool.execute.after    the same, and "tool_response": {"title", "output", "metadata"} or {"error"}
//	  chat.message          "prompt", "model"
//	  session.…             "properties"; registered as "event"
//
// and reads nothing, which means go on, or one object at an exit code of 0:
//
//	{"decision": "deny", "reason"}   throw the reason: the tool does not run, the prompt is not sent
//	{"args": {…}}                    call the tool with these, and no other, arguments
//	{"output": "…"}                  give the model this as the tool's result
//	{"context": "…"}                 add it to the result or to the prompt
//
// What it can't read, another exit code and a program that does not run are a
// denial to it.
package opencode

import (
	"errors"

	"github.com/hookd/hookd/agent/native"
	"github.com/hookd/hookd/protocol"
)

const (
	before = protocol.StageBeforeTool
	after  = protocol.StageAfterTool
	prompt = protocol.StageUserMessage
)

// New returns the dialect.
func New() *native.Format {
	return &native.Format{
		Agent: "opencode", Table: rows(),
		EventKeys: []string{"hook_event_name"},
		Decode:    decode,
		Render:    render,
	}
}

func rows() []native.Row {
	return []native.Row{
		{Event: "tool.execute.before", Stage: before, Block: true, Modify: true},
		{Event: "tool.execute.after", Stage: after, Modify: true, Context: true, Note: "from version 2 on it is observed only"},
		{Event: "chat.message", Stage: prompt, Block: true, Context: true, Note: "not from version 2 on"},
		{Event: "event", Kind: protocol.EventNotification, Note: "what the events of sessions are registered as"},
		{Event: "session.created", Kind: protocol.EventSessionStart},
		{Event: "session.idle", Kind: protocol.EventTurnEnd},
		{Event: "session.compacted", Kind: protocol.EventAfterCompact},
		{Event: "session.error", Kind: protocol.EventAgentError},
		{Event: "session.deleted", Kind: protocol.EventSessionEnd},
	}
}

func decode(c *native.Call) error {
	c.SetMeta("session_id", "session_id")
	c.SetMeta("cwd", "cwd")
	c.SetMeta("model", "model")
	c.SetCallID("call_id")
	switch c.Stage {
	case before:
		if c.First("tool_input") == nil {
			return errors.New("tool_input is missing")
		}
		return c.SetTool(c.Text("tool_name"), c.Payload.Get("tool_input"))
	case after:
		if err := c.SetTool(c.Text("tool_name"), c.Payload.Get("tool_input")); err != nil {
			return err
		}
		response := c.Sub("tool_response")
		if failure := response.Get("error"); failure != nil {
			c.SetResult(failure, true)
		} else {
			c.SetResult(c.First("tool_response"), false)
		}
	case prompt:
		return c.SetMessage(c.Payload.Get("prompt"))
	case "":
		c.SetEvent(sessionEvent(c))
	}
	return nil
}

// sessionEvent tells what an error was about, and else all.
func sessionEvent(c *native.Call) protocol.Object {
	about := c.Sub("properties")
	if c.Kind != protocol.EventAgentError || about.Get("error").Kind() != '{' {
		return about
	}
	failure, _ := protocol.ParseObject(about.Get("error"))
	message := failure.Get("message")
	if data := failure.Get("data"); message == nil && data.Kind() == '{' {
		inner, _ := protocol.ParseObject(data)
		message = inner.Get("message")
	}
	if message.Kind() != '"' || about.Get("message") != nil {
		return about
	}
	return append(protocol.Object{{Name: "message", Value: message}}, about...)
}

func render(_ *native.Call, p *native.Plan) native.Answer {
	if p.Verdict >= native.Deny {
		return native.JSON(native.Say(native.Say(nil, "decision", "deny"), "reason", p.Reason))
	}
	var out protocol.Object
	if p.Input != nil {
		out = append(out, protocol.Member{Name: "args", Value: p.Input.AppendJSON(nil)})
	}
	if p.Content != nil {
		out = native.Say(out, "output", protocol.ContentText(p.Content))
	}
	if out = native.SayIf(out, "context", p.Context); out == nil {
		return native.Answer{}
	}
	return native.JSON(out)
}
