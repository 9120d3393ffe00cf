package gemini

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/agent/native"
	"github.com/hookd/hookd/protocol"
)

// render writes a plan. Nothing to say is an empty object.
func render(c *native.Call, p *native.Plan) native.Answer {
	var out protocol.Object
	if p.Verdict == native.Stop {
		out = protocol.Object{{Name: "continue", Value: jsontext.Value("false")}}
		out = native.Say(out, "stopReason", p.Reason)
	}
	out = native.SayIf(out, "systemMessage", p.Notice)
	out = append(out, decision(c, p)...)
	specific := specifics(c, p)
	if specific = native.SayIf(specific, "additionalContext", p.Context); len(specific) > 0 {
		specific = append(native.Say(nil, "hookEventName", c.Row.Event), specific...)
		out = append(out, protocol.Member{Name: "hookSpecificOutput", Value: specific.AppendJSON(nil)})
	}
	return native.JSON(out)
}

// decision writes the verdict. A result is changed by denying it: the reason is
// what the model gets instead.
func decision(c *native.Call, p *native.Plan) protocol.Object {
	say := func(word, reason string) protocol.Object {
		return native.SayIf(native.Say(nil, "decision", word), "reason", reason)
	}
	switch {
	case p.Verdict == native.Deny, p.Verdict == native.Stop && c.Row.Block:
		return say("deny", p.Reason)
	case p.Verdict == native.Stop:
		return nil
	case p.Verdict == native.Ask:
		return say("ask", p.Reason)
	case p.Verdict == native.Allow:
		return say("allow", p.Reason)
	case p.Message != "":
		return say("deny", p.Message)
	case c.Stage == after && p.Content != nil:
		text := protocol.ContentText(p.Content)
		if text == "" {
			text = "(The result was removed by a hook.)"
		}
		return say("deny", text)
	}
	return nil
}

// specifics writes what is changed.
func specifics(c *native.Call, p *native.Plan) protocol.Object {
	var out protocol.Object
	add := func(name string, v jsontext.Value) {
		if v != nil {
			out = append(out, protocol.Member{Name: name, Value: v})
		}
	}
	if p.Input != nil {
		add("tool_input", p.ChangedInput(c).AppendJSON(nil))
	}
	if p.Respond != nil {
		add("llm_response", respond(p))
	}
	if p.Subject == nil {
		return out
	}
	subject, _ := protocol.ParseObject(p.Subject)
	switch {
	case c.Row.Event == toolSelection:
		add("toolConfig", changedTools(c, p, subject))
	case c.Stage == ask:
		add("llm_request", changedRequest(c, subject))
	case c.Stage == answer:
		add("llm_response", changedResponse(c, p, subject))
	}
	return out
}

// respond writes an answer in place of the model's. One in Gemini's own form
// stays as it is.
func respond(p *native.Plan) jsontext.Value {
	members, _ := protocol.ParseObject(p.Respond)
	if members.Get("candidates") != nil {
		return p.Respond
	}
	if members.Get("tool_calls") != nil {
		p.Warn("gemini takes no tool calls in place of the model's: left out")
	}
	candidate := withText(native.Say(nil, "finishReason", "STOP"), protocol.ContentText(members.Get("content")), nil)
	return protocol.Object{{Name: "candidates", Value: array(candidate.AppendJSON(nil))}}.AppendJSON(nil)
}

// changedRequest gives the members of the request that are others now.
func changedRequest(c *native.Call, subject protocol.Object) jsontext.Value {
	request := c.Sub("llm_request")
	var out protocol.Object
	change := func(name string, v jsontext.Value) {
		if v != nil && !protocol.SameValue(request.Get(name), v) {
			out = append(out, protocol.Member{Name: name, Value: v})
		}
	}
	change("model", subject.Get("model"))
	change("messages", subject.Get("messages"))
	config, tools := splitOptions(subject)
	change("config", config)
	change("toolConfig", tools)
	if out == nil {
		return nil
	}
	return out.AppendJSON(nil)
}

// splitOptions undoes what options does.
func splitOptions(subject protocol.Object) (config, tools jsontext.Value) {
	v := subject.Get("options")
	if v.Kind() != '{' {
		return nil, nil
	}
	members, _ := protocol.ParseObject(v)
	rest := protocol.Object{}
	for _, m := range members {
		if m.Name == "toolConfig" {
			tools = m.Value
		} else {
			rest = append(rest, m)
		}
	}
	return rest.AppendJSON(nil), tools
}

func changedTools(c *native.Call, p *native.Plan, subject protocol.Object) jsontext.Value {
	_, tools := splitOptions(subject)
	if tools == nil || protocol.SameValue(c.Sub("llm_request").Get("toolConfig"), tools) {
		p.Warn("gemini takes a change of options.toolConfig only at ", toolSelection, ": left out")
		return nil
	}
	return tools
}

// changedResponse puts a changed text into the first candidate and takes it out
// of the others.
func changedResponse(c *native.Call, p *native.Plan, subject protocol.Object) jsontext.Value {
	response := c.Sub("llm_response")
	content := subject.Get("content")
	if content == nil || protocol.ContentText(content) == responseText(response) {
		p.Warn("gemini takes a change of response.content only at ", c.Event, ": left out")
		return nil
	}
	text := protocol.ContentText(content)
	var candidate protocol.Object
	var others []jsontext.Value
	if list := objects(response.Get("candidates")); len(list) > 0 {
		candidate = list[0]
		old, _ := protocol.ParseObject(candidate.Get("content"))
		for _, part := range items(old.Get("parts")) {
			if partText(part) == "" && part.Kind() == '{' {
				others = append(others, part)
			}
		}
	}
	changed := response.With("candidates", array(withText(candidate, text, others).AppendJSON(nil)))
	if response.Get("text") != nil {
		changed = changed.With("text", protocol.Quote(text))
	}
	return changed.AppendJSON(nil)
}

// withText gives a candidate this text, before parts that hold none.
func withText(candidate protocol.Object, text string, others []jsontext.Value) protocol.Object {
	content := protocol.Object{
		{Name: "role", Value: protocol.Quote("model")},
		{Name: "parts", Value: array(append([]jsontext.Value{protocol.Quote(text)}, others...)...)},
	}
	return candidate.With("content", content.AppendJSON(nil))
}

func array(values ...jsontext.Value) jsontext.Value {
	b := jsontext.Value{'['}
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, v...)
	}
	return append(b, ']')
}
