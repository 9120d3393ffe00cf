package copilot

import (
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/agent/native"
	"github.com/hookd/hookd/protocol"
)

// formBoth marks a payload of which can't be told whether the command line or
// VS Code wrote it: it is answered so that either understands.
const formBoth = "both"

// eventOf tells the event of a camelCase payload, which does not name it.
func eventOf(event string, payload protocol.Object) string {
	switch {
	case event != "" || payload.Get("toolName") == nil:
		return event
	case payload.Get("toolResult") != nil:
		return "postToolUse"
	case payload.Get("error") != nil:
		return "postToolUseFailure"
	}
	return "preToolUse"
}

func decode(c *native.Call) error {
	if c.Text("hook_event_name") != "" && c.First("session_id", "sessionId") == nil {
		c.Form = formBoth
	}
	c.SetMeta("session_id", "sessionId", "session_id")
	c.SetMeta("cwd", "cwd")
	c.SetMeta("model", "model")
	c.SetMeta("agent_id", "agentId", "agent_id")
	c.SetMeta("agent_type", "agentName", "agent_name", "agentType", "agent_type")
	c.SetCallID("tool_use_id", "toolUseId")
	setEvent(c)
	switch c.Stage {
	case before, approve:
		args := c.First("toolArgs", "tool_input")
		if c.Payload.Get("toolArgs") == nil && c.Payload.Get("tool_input") == nil {
			if args = c.Pick("command").AppendJSON(nil); len(args) == 2 {
				return errors.New("toolArgs is missing")
			}
		}
		return c.SetTool(toolName(c), args)
	case after:
		if err := c.SetTool(toolName(c), c.First("toolArgs", "tool_input")); err != nil {
			return err
		}
		if failure := c.First("error", "toolError"); failure != nil {
			c.SetResult(failure, true)
			return nil
		}
		c.SetResult(c.First("toolResult", "tool_result", "tool_response"), false)
	case prompt:
		return c.SetMessage(c.First("transformedPrompt", "transformed_prompt", "prompt"))
	case stop:
		c.SetRequest(stopRequest(c))
	case compact:
		c.SetRequest(c.Pick("trigger", "custom_instructions=customInstructions", "custom_instructions"))
	case start:
		c.SetRequest(append(protocol.Object{{Name: "event", Value: protocol.Quote(c.Event)}},
			c.Pick("source", "agent_type=agentName", "agent_type=agent_name", "description=agentDescription")...))
	}
	return nil
}

func toolName(c *native.Call) string {
	if name := c.Text("toolName"); name != "" {
		return name
	}
	return c.Text("tool_name")
}

func stopRequest(c *native.Call) protocol.Object {
	reason := c.First("stopReason", "stop_reason", "reason")
	if reason == nil {
		reason = protocol.Quote("end_turn")
	}
	out := protocol.Object{{Name: "reason", Value: reason}}
	return append(out, c.Pick("last_message=response", "last_message=last_assistant_message", "stop_hook_active", "agent_type=agentName", "agent_type=agent_name")...)
}

func setEvent(c *native.Call) {
	switch c.Kind {
	case protocol.EventSessionStart:
		c.SetEvent(c.Pick("source", "message=initialPrompt", "message=initial_prompt"))
	case protocol.EventSessionEnd:
		c.SetEvent(c.Pick("reason"))
	case protocol.EventSubagentStart, protocol.EventSubagentStop:
		c.SetEvent(c.Pick("agent_id=agentId", "agent_type=agentName", "agent_type=agent_name", "description=agentDescription"))
	case protocol.EventNotification:
		c.SetEvent(c.Pick("message", "title", "type=notification_type"))
	case protocol.EventAgentError:
		c.SetEvent(errorEvent(c))
	}
}

// errorEvent gives the error's text as the message and keeps the rest.
func errorEvent(c *native.Call) protocol.Object {
	out := c.Pick("context=errorContext", "context=error_context", "recoverable")
	v := c.First("error")
	if v.Kind() != '{' {
		return append(c.Pick("message=error"), out...)
	}
	members, _ := protocol.ParseObject(v)
	if message := members.Get("message"); message != nil {
		out = append(protocol.Object{{Name: "message", Value: message}}, out...)
	}
	return append(out, protocol.Member{Name: "error", Value: v})
}

// render writes a plan, flat.
func render(c *native.Call, p *native.Plan) native.Answer {
	if c.Row.Event == "" {
		if p.Verdict >= native.Deny {
			return native.Blocked(p.Reason)
		}
		return native.Answer{}
	}
	var out protocol.Object
	switch c.Stage {
	case before:
		out = callAnswer(c, p)
	case approve:
		out = permissionAnswer(p)
	case prompt:
		if p.Content != nil {
			out = native.Say(out, "modifiedTransformedPrompt", protocol.ContentText(p.Content))
		}
	case after:
		if c.Row.Event == "postToolUseFailure" {
			if p.Context == "" {
				return native.Answer{}
			}
			return native.Blocked(p.Context) // it speaks to the model about the failed call
		}
		if p.Content != nil {
			out = append(out, protocol.Member{Name: "modifiedResult", Value: modifiedResult(c, p.Content)})
		}
	case stop:
		out = stopAnswer(c, p)
	}
	if p.Context != "" {
		out = native.Say(out, "additionalContext", p.Context)
	}
	if len(out) == 0 {
		return native.Answer{}
	}
	return native.Answer{Stdout: out.AppendJSON(nil)}
}

func callAnswer(c *native.Call, p *native.Plan) protocol.Object {
	decision := ""
	switch {
	case p.Verdict == native.Allow, p.Verdict == native.NoOpinion && p.Input != nil && !p.KeepPrompt:
		decision = "allow"
	case p.Verdict == native.Ask:
		decision = "ask"
	case p.Verdict >= native.Deny:
		decision = "deny"
	}
	var out protocol.Object
	if decision != "" {
		out = native.Say(out, "permissionDecision", decision)
		if p.Reason != "" {
			out = native.Say(out, "permissionDecisionReason", p.Reason)
		}
	}
	nested := append(protocol.Object{{Name: "hookEventName", Value: protocol.Quote("PreToolUse")}}, out...)
	if p.Input != nil {
		args := c.NativeArguments(p.Input)
		out = append(out, protocol.Member{Name: "modifiedArgs", Value: args})
		nested = append(nested, protocol.Member{Name: "updatedInput", Value: args})
	}
	return both(c, out, nested)
}

// both adds the nested form where the reader may be VS Code.
func both(c *native.Call, flat, nested protocol.Object) protocol.Object {
	if c.Form != formBoth || len(flat) == 0 {
		return flat
	}
	return append(flat, protocol.Member{Name: "hookSpecificOutput", Value: nested.AppendJSON(nil)})
}

func permissionAnswer(p *native.Plan) protocol.Object {
	switch {
	case p.Verdict == native.Allow:
		return native.Say(nil, "behavior", "allow")
	case p.Verdict >= native.Deny:
		return native.Say(native.Say(nil, "behavior", "deny"), "message", p.Reason)
	}
	return nil
}

func stopAnswer(c *native.Call, p *native.Plan) protocol.Object {
	if p.Message == "" {
		return nil
	}
	out := native.Say(native.Say(nil, "decision", "block"), "reason", p.Message)
	return both(c, out, append(protocol.Object{{Name: "hookEventName", Value: protocol.Quote(c.Event)}}, out...))
}

// modifiedResult gives a changed result in camelCase, also where the payload
// was in snake_case.
func modifiedResult(c *native.Call, content jsontext.Value) jsontext.Value {
	kind := jsontext.Value(protocol.Quote("success"))
	if c.NativeResult.Kind() == '{' {
		members, _ := protocol.ParseObject(c.NativeResult)
		for _, name := range [...]string{"resultType", "result_type"} {
			if v := members.Get(name); v.Kind() == '"' {
				kind = v
			}
		}
	}
	return protocol.Object{
		{Name: "resultType", Value: kind},
		{Name: "textResultForLlm", Value: protocol.Quote(protocol.ContentText(content))},
	}.AppendJSON(nil)
}
