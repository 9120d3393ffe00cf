package claude

import (
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/agent/native"
	"github.com/hookd/hookd/protocol"
)

// decode fills a call from a payload of the family.
func decode(c *native.Call) error {
	c.SetMeta("session_id", "session_id", "thread-id")
	c.SetMeta("turn_id", "turn_id", "prompt_id", "turn-id")
	c.SetMeta("cwd", "cwd")
	c.SetMeta("model", "model")
	c.SetMeta("agent_id", "agent_id")
	c.SetMeta("agent_type", "agent_type", "agent_name")
	c.SetCallID("tool_use_id", "tool_call_id")
	setEvent(c)
	switch c.Stage {
	case before, approve:
		if c.Payload.Get("tool_input") == nil {
			return errors.New("tool_input is missing")
		}
		return c.SetTool(c.Text("tool_name"), c.Payload.Get("tool_input"))
	case after:
		return decodeResult(c)
	case prompt:
		if err := c.SetMessage(c.Payload.Get("prompt")); err != nil {
			return err
		}
	case protocol.StageOutput:
		c.SetSubject("output", append(protocol.Object{{Name: "content", Value: text(c.First("delta"))}}, c.Pick("final", "index", "message_id")...).AppendJSON(nil))
	case stop:
		c.SetRequest(stopRequest(c))
	case compact:
		c.SetRequest(c.Pick("trigger", "custom_instructions", "tokens=token_count"))
	case start:
		c.SetRequest(append(protocol.Object{{Name: "event", Value: protocol.Quote(c.Event)}}, c.Pick("source", "trigger", "agent_type")...))
	}
	return nil
}

// text gives a value that should be a string, and "" where it is none.
func text(v jsontext.Value) jsontext.Value {
	if v.Kind() == '"' {
		return v
	}
	return protocol.Quote("")
}

func decodeResult(c *native.Call) error {
	if err := c.SetTool(c.Text("tool_name"), c.Payload.Get("tool_input")); err != nil {
		return err
	}
	if failure := c.First("error"); failure != nil && c.Payload.Get("tool_response") == nil {
		c.SetResult(failure, true)
		return nil
	}
	c.SetResult(c.First("tool_response", "tool_output"), false)
	return nil
}

// stopRequest says why the agent wants to stop and what it said last.
func stopRequest(c *native.Call) protocol.Object {
	reason := c.First("stop_reason", "stopReason")
	if reason == nil {
		reason = protocol.Quote("end_turn")
	}
	out := protocol.Object{{Name: "reason", Value: reason}}
	out = append(out, c.Pick("last_message=last_assistant_message", "last_message=response", "stop_hook_active", "background_tasks")...)
	if c.Kind == protocol.EventSubagentStop {
		out = append(out, c.Pick("agent_type", "agent_type=agent_name", "agent_transcript_path")...)
	}
	return out
}

// setEvent fills what observers are told.
func setEvent(c *native.Call) {
	switch c.Kind {
	case protocol.EventSessionStart:
		c.SetEvent(c.Pick("source", "source=trigger", "previous_session_id"))
	case protocol.EventSessionEnd:
		c.SetEvent(c.Pick("reason"))
	case protocol.EventToolExecSkipped:
		c.SetEvent(c.Pick("tool=tool_name", "arguments=tool_input", "reason"))
	case protocol.EventIterationEnd:
		c.SetEvent(c.Pick("tool_calls"))
	case protocol.EventSubagentStart, protocol.EventSubagentStop:
		c.SetEvent(c.Pick("agent_id", "agent_type", "agent_type=agent_name", "prompt"))
	case protocol.EventAgentError:
		c.SetEvent(c.Pick("message=error", "message=error_message", "error_type", "details=error_details"))
	case protocol.EventAfterCompact:
		c.SetEvent(c.Pick("trigger", "summary=compact_summary", "tokens=estimated_token_count"))
	case protocol.EventNotification:
		c.SetEvent(c.Pick("message", "message=body", "title", "type=notification_type", "severity"))
	case protocol.EventTurnEnd:
		c.SetEvent(c.Pick("status=type", "last_message=last-assistant-message"))
	}
}

// codexEvent names the event of the older notify program, whose payload says it
// in other words.
func codexEvent(event string, payload protocol.Object) string {
	if event == "" && protocol.MetaString(payload, "type") != "" {
		return "notify"
	}
	return event
}

// decodeVSCode reads payloads that write some names in camelCase.
func decodeVSCode(c *native.Call) error {
	if c.Payload.Get("tool_input") == nil && (c.Stage == before || c.Stage == after) {
		if args := c.Pick("command"); args != nil {
			c.Payload = c.Payload.With("tool_input", args.AppendJSON(nil))
		}
	}
	c.SetMeta("session_id", "sessionId", "session_id")
	return decode(c)
}
