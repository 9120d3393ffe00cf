// Package openhands speaks the hook format of OpenHands: events in snake_case in
// its settings and in Claude Code's spelling in its payloads, a flat decision
// and an exit code.
package openhands

import (
	"errors"

	"github.com/hookd/hookd/agent/native"
	"github.com/hookd/hookd/protocol"
)

const (
	before = protocol.StageBeforeTool
	after  = protocol.StageAfterTool
	prompt = protocol.StageUserMessage
	stop   = protocol.StageStop
)

// New returns the dialect.
func New() *native.Format {
	return &native.Format{
		Agent: "openhands", Table: rows(),
		EventKeys: []string{"event_type", "hook_event_name"},
		Decode:    decode,
		Render:    render,
	}
}

func rows() []native.Row {
	return []native.Row{
		{Event: "session_start", Kind: protocol.EventSessionStart},
		{Event: "session_end", Kind: protocol.EventSessionEnd},
		{Event: "user_prompt_submit", Stage: prompt, Block: true, Context: true},
		{Event: "pre_tool_use", Stage: before, Block: true, Note: "not with async"},
		{Event: "post_tool_use", Stage: after},
		{Event: "stop", Stage: stop, Inject: true},
	}
}

func decode(c *native.Call) error {
	c.SetMeta("session_id", "session_id")
	c.SetMeta("cwd", "working_dir", "cwd")
	c.SetCallID("tool_call_id", "tool_use_id")
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
		c.SetResult(c.First("tool_response", "tool_output"), false)
	case prompt:
		return c.SetMessage(c.First("message", "prompt"))
	case stop:
		about := c.Sub("metadata")
		reason := about.Get("reason")
		if reason == nil {
			reason = protocol.Quote("end_turn")
		}
		c.SetRequest(append(protocol.Object{{Name: "reason", Value: reason}}, c.Pick("last_message=message")...))
	}
	switch c.Kind {
	case protocol.EventSessionStart:
		c.SetEvent(c.Pick("source"))
	case protocol.EventSessionEnd:
		c.SetEvent(c.Pick("reason"))
	}
	return nil
}

// render writes a plan: a no is said in both ways that OpenHands reads, and a no
// to stopping makes it go on.
func render(_ *native.Call, p *native.Plan) native.Answer {
	reason := p.Message
	if p.Verdict >= native.Deny {
		reason = p.Reason
	}
	if reason == "" {
		if p.Context == "" {
			return native.Answer{}
		}
		return native.JSON(native.Say(nil, "additionalContext", p.Context))
	}
	out := native.Say(native.Say(nil, "decision", "deny"), "reason", reason)
	a := native.JSON(native.SayIf(out, "additionalContext", p.Context))
	a.ExitCode = native.ExitBlock
	return a
}
