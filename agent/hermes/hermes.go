// Package hermes speaks the format of Hermes' shell hooks: payloads with the
// event's own data in "extra", and flat answers. A denial is said in words, because
// not every version reads an exit code.
package hermes

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
		Agent: "hermes", Table: rows(),
		EventKeys: []string{"hook_event_name"},
		Decode:    decode,
		Render:    render,
	}
}

func rows() []native.Row {
	return []native.Row{
		{Event: "on_session_start", Kind: protocol.EventSessionStart},
		{Event: "on_session_end", Kind: protocol.EventSessionEnd},
		{Event: "pre_llm_call", Stage: prompt, Context: true, Note: "once per message of the user"},
		{Event: "post_llm_call", Kind: protocol.EventLLMResponse, Note: "once per message of the user, at its end"},
		{Event: "pre_tool_call", Stage: before, Block: true},
		{Event: "post_tool_call", Stage: after},
		{Event: "subagent_stop", Kind: protocol.EventSubagentStop},
	}
}

func decode(c *native.Call) error {
	extra := c.Sub("extra")
	c.SetMeta("session_id", "session_id")
	c.SetMeta("cwd", "cwd")
	c.SetMetaText("model", protocol.MetaString(extra, "model"))
	c.SetMetaText("turn_id", protocol.MetaString(extra, "turn_id"))
	c.SetCallIDText(protocol.MetaString(extra, "tool_call_id"))
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
		c.SetResult(native.Unwrap(extra.Get("result")), protocol.MetaString(extra, "status") == "error")
		if v := extra.Get("duration_ms"); v.Kind() == '0' {
			c.SetSubject("duration_ms", v)
		}
	case prompt:
		return c.SetMessage(extra.Get("user_message"))
	}
	switch c.Kind {
	case protocol.EventSessionStart:
		c.SetEvent(native.Pick(extra, "source=platform", "model"))
	case protocol.EventSessionEnd:
		c.SetEvent(native.Pick(extra, "reason", "completed", "interrupted"))
	case protocol.EventLLMResponse:
		c.SetEvent(native.Pick(extra, "content=assistant_response", "model"))
	case protocol.EventSubagentStop:
		c.SetEvent(native.Pick(extra, "agent_type=child_role", "summary=child_summary", "status=child_status", "duration_ms"))
	}
	return nil
}

func render(_ *native.Call, p *native.Plan) native.Answer {
	var out protocol.Object
	if p.Verdict >= native.Deny {
		out = native.Say(native.Say(nil, "action", "block"), "message", p.Reason)
	}
	if out = native.SayIf(out, "context", p.Context); out == nil {
		return native.Answer{}
	}
	return native.JSON(out)
}
