package cursor

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/agent/native"
	"github.com/hookd/hookd/protocol"
)

// render writes a plan. There is always an object: where a hook is registered
// to fail closed, Cursor takes silence for a failure and blocks everything.
func render(c *native.Call, p *native.Plan) native.Answer {
	switch {
	case c.Row.Event == "" && c.Event != "":
		return native.JSON(nil)
	case c.Row.Event == "":
		// It may be a tool's gate or a prompt's.
		return native.JSON(gate(p.Verdict < native.Deny, p))
	case c.Stage == prompt && p.Verdict >= native.Deny:
		return native.JSON(native.Say(yesNo(nil, "continue", false), "user_message", p.Reason))
	case c.Row.Block && p.Input != nil && p.Verdict < native.Deny:
		return native.JSON(append(native.Say(nil, "permission", "allow"), protocol.Member{Name: "updated_input", Value: c.NativeArguments(p.Input)}))
	case c.Row.Block:
		return native.JSON(gate(true, p))
	}
	return native.JSON(other(c, p))
}

// gate writes a permission. goOn is what a prompt's gate reads.
func gate(goOn bool, p *native.Plan) protocol.Object {
	permission := "allow"
	switch {
	case p.Verdict == native.Ask:
		permission = "ask"
	case p.Verdict >= native.Deny:
		permission = "deny"
	}
	out := native.Say(yesNo(nil, "continue", goOn), "permission", permission)
	if p.Verdict < native.Ask {
		return out
	}
	return native.SayIf(native.SayIf(out, "user_message", p.Reason), "agent_message", p.Reason)
}

// other writes what there is beside permissions.
func other(c *native.Call, p *native.Plan) protocol.Object {
	var out protocol.Object
	if p.Content != nil {
		out = changedResult(c, p)
	}
	out = native.SayIf(out, "additional_context", p.Context)
	out = native.SayIf(out, "followup_message", p.Message)
	return native.SayIf(out, "user_message", p.Notice)
}

// changedResult changes what an MCP tool gave; to the model's view of other
// tools only words can be added.
func changedResult(c *native.Call, p *native.Plan) protocol.Object {
	if c.Facts().Kind == protocol.ToolMCP {
		if changed, ok := native.WriteResult(c.NativeResult, p.Content); ok {
			return protocol.Object{{Name: "updated_mcp_tool_output", Value: changed}}
		}
	}
	p.AddContext("A hook changed the result of this tool. Read this in its place:\n" + protocol.ContentText(p.Content))
	p.Warn("cursor can't change the result of ", c.ToolName, ": told to the model instead")
	return nil
}

func yesNo(o protocol.Object, name string, b bool) protocol.Object {
	v := jsontext.Value("false")
	if b {
		v = jsontext.Value("true")
	}
	return append(o, protocol.Member{Name: name, Value: v})
}
