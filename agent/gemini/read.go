package gemini

import (
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/agent/native"
	"github.com/hookd/hookd/protocol"
)

func decode(c *native.Call) error {
	c.SetMeta("session_id", "session_id")
	c.SetMeta("cwd", "cwd")
	request := c.Sub("llm_request")
	c.SetMetaText("model", protocol.MetaString(request, "model"))
	setEvent(c)
	switch c.Stage {
	case before, after:
		return decodeTool(c)
	case prompt:
		return c.SetMessage(c.Payload.Get("prompt"))
	case start:
		c.SetRequest(append(protocol.Object{{Name: "event", Value: protocol.Quote(c.Event)}}, c.Pick("source")...))
	case ask:
		return decodeRequest(c, request)
	case answer:
		response := c.Sub("llm_response")
		if response == nil {
			return errors.New("llm_response is missing")
		}
		c.SetSubject("response", responseSubject(response).AppendJSON(nil))
	case stop:
		c.SetRequest(append(protocol.Object{{Name: "reason", Value: protocol.Quote("end_turn")}}, c.Pick("last_message=prompt_response", "input=prompt", "stop_hook_active")...))
	}
	return nil
}

func setEvent(c *native.Call) {
	switch c.Kind {
	case protocol.EventSessionStart:
		c.SetEvent(c.Pick("source"))
	case protocol.EventSessionEnd:
		c.SetEvent(c.Pick("reason"))
	case protocol.EventBeforeCompact:
		c.SetEvent(c.Pick("trigger"))
	case protocol.EventNotification:
		c.SetEvent(c.Pick("message", "type=notification_type", "details"))
	}
}

func decodeTool(c *native.Call) error {
	if c.Stage == before && c.First("tool_input") == nil {
		return errors.New("tool_input is missing")
	}
	if err := c.SetTool(c.Text("tool_name"), c.Payload.Get("tool_input")); err != nil {
		return err
	}
	if mcp := c.Sub("mcp_context"); mcp != nil {
		// The name of the tool leaves open where the server's name ends.
		facts := c.Facts()
		facts.Kind, facts.Server = protocol.ToolMCP, protocol.MetaString(mcp, "server_name")
		c.SetFacts(facts, nil)
	}
	if c.Stage == after {
		c.SetResult(c.First("tool_response"), false)
	}
	return nil
}

// decodeRequest sets the request to the model. The choice of tools goes among
// the options, where a hook looks for what is not a message.
func decodeRequest(c *native.Call, request protocol.Object) error {
	if request.Get("messages").Kind() != '[' {
		return errors.New("llm_request.messages is missing")
	}
	if v := request.Get("model"); v.Kind() == '"' {
		c.SetSubject("model", v)
	}
	c.SetSubject("messages", request.Get("messages"))
	if options := options(request); options != nil {
		c.SetSubject("options", options.AppendJSON(nil))
	}
	return nil
}

// options joins the config of a request and its toolConfig.
func options(request protocol.Object) protocol.Object {
	var out protocol.Object
	if v := request.Get("config"); v.Kind() == '{' {
		out, _ = protocol.ParseObject(v)
	}
	if v := request.Get("toolConfig"); v != nil {
		out = out.With("toolConfig", v)
	}
	return out
}

// responseSubject gives the text of all candidates as the content.
func responseSubject(response protocol.Object) protocol.Object {
	out := native.Say(nil, "content", responseText(response))
	return append(out, native.Pick(response, "usage=usageMetadata")...)
}

func responseText(response protocol.Object) string {
	text := ""
	for _, candidate := range objects(response.Get("candidates")) {
		content, _ := protocol.ParseObject(candidate.Get("content"))
		for _, part := range items(content.Get("parts")) {
			text += partText(part)
		}
	}
	if text == "" {
		return protocol.MetaString(response, "text")
	}
	return text
}

// partText returns the text of a part, which is one or holds one.
func partText(part jsontext.Value) string {
	if part.Kind() == '"' {
		return protocol.Unquote(part)
	}
	if part.Kind() == '{' {
		members, _ := protocol.ParseObject(part)
		return protocol.MetaString(members, "text")
	}
	return ""
}

func items(v jsontext.Value) []jsontext.Value {
	if v.Kind() != '[' {
		return nil
	}
	list, _ := protocol.Items(v)
	return list
}

// objects returns the items of an array that are objects with an object as
// their content.
func objects(v jsontext.Value) []protocol.Object {
	var list []protocol.Object
	for _, it := range items(v) {
		if it.Kind() != '{' {
			continue
		}
		if o, _ := protocol.ParseObject(it); o.Get("content").Kind() == '{' {
			list = append(list, o)
		}
	}
	return list
}
