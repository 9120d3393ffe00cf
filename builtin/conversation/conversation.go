// Package conversation reads the messages of a request to a model, in the forms
// that agents have for them, and knows which of them can't do without each
// other: a model's call of a tool, and the tool's result.
package conversation

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/builtin/text"
	"github.com/hookd/hookd/protocol"
)

// Message is one message. It does not change.
type Message struct {
	// Raw is the message as it stood on the wire.
	Raw jsontext.Value
	// Role is "" when the message has none.
	Role string

	calls, results []string // ids
	reasons        bool     // it can't do without the message behind it
}

// Read splits a checked array of messages.
func Read(messages jsontext.Value) []Message {
	if messages.Kind() != '[' {
		return nil
	}
	items, _ := protocol.Items(messages)
	list := make([]Message, len(items))
	for i, raw := range items {
		list[i] = read(raw)
	}
	return list
}

// New makes a message of a text.
func New(role, content string) Message {
	raw := protocol.Object{{Name: "role", Value: protocol.Quote(role)}, {Name: "content", Value: protocol.Quote(content)}}.AppendJSON(nil)
	return Message{Raw: raw, Role: role}
}

// Value returns messages as an array.
func Value(list []Message) jsontext.Value {
	b := []byte{'['}
	for i := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, list[i].Raw...)
	}
	return append(b, ']')
}

// System reports whether the message tells the model what it is, rather than
// being a part of the talk.
func (m *Message) System() bool { return m.Role == "system" || m.Role == "developer" }

// User reports whether the message is what a user said, and no tool's result.
func (m *Message) User() bool { return m.Role == "user" && len(m.results) == 0 }

// Content returns the text of the message's content. Blocks that are no text are
// left out.
func (m *Message) Content() string { return protocol.ContentText(object(m.Raw).Get("content")) }

// Texts returns all that can be read in a message, line by line: its content,
// and the arguments and results of tools. Pictures and the like are left out.
func (m *Message) Texts() string {
	var b strings.Builder
	text.Rewrite(m.Raw, skipped, func(p *text.Part) (string, bool) {
		if !p.Media && p.Form != text.Name {
			b.WriteString(p.Text)
			b.WriteByte('\n')
		}
		return "", false
	})
	return strings.TrimSuffix(b.String(), "\n")
}

// skipped is what only programs read.
func skipped(path []string) bool {
	switch len(path) {
	case 1:
		return path[0] == "role" || path[0] == "type" || text.IDs(path)
	case 3:
		return path[1] == "*" && path[2] == "type" || text.IDs(path)
	}
	return false
}

func read(raw jsontext.Value) Message {
	m := Message{Raw: raw}
	o := object(raw)
	m.Role = word(o, "role")
	m.scan(o)
	for _, name := range []string{"content", "parts"} {
		for _, block := range items(o.Get(name)) {
			m.scan(object(block))
		}
	}
	for _, c := range items(o.Get("tool_calls")) {
		m.calls = append(m.calls, word(object(c), "id"))
	}
	if m.Role == "tool" || m.Role == "function" {
		if len(m.results) == 0 {
			m.results = append(m.results, word(o, "name"))
		}
	}
	return m
}

// scan finds the calls and results in a message, or in a block of its content.
func (m *Message) scan(o protocol.Object) {
	kind := word(o, "type")
	switch {
	case kind == "reasoning":
		m.reasons = true
	case strings.HasSuffix(kind, "tool_use"):
		m.calls = append(m.calls, word(o, "id"))
	case strings.HasSuffix(kind, "tool_result"):
		m.results = append(m.results, word(o, "tool_use_id"))
	case kind == "tool-call":
		m.calls = append(m.calls, word(o, "toolCallId"))
	case kind == "tool-result":
		m.results = append(m.results, word(o, "toolCallId"))
	case strings.HasSuffix(kind, "_call_output"):
		m.results = append(m.results, word(o, "call_id"))
	case strings.HasSuffix(kind, "_call"):
		m.calls = append(m.calls, either(word(o, "call_id"), word(o, "id")))
	case o.Get("tool_call_id") != nil:
		m.results = append(m.results, word(o, "tool_call_id"))
	}
	for _, name := range []string{"functionCall", "function_call"} {
		if call := object(o.Get(name)); call != nil {
			m.calls = append(m.calls, either(word(call, "id"), word(call, "name")))
		}
	}
	for _, name := range []string{"functionResponse", "function_response"} {
		if result := object(o.Get(name)); result != nil {
			m.results = append(m.results, either(word(result, "id"), word(result, "name")))
		}
	}
}

func either(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// object returns the members of a checked value, nil when it is no object.
func object(v jsontext.Value) protocol.Object {
	if v.Kind() != '{' {
		return nil
	}
	o, _ := protocol.ParseObject(v)
	return o
}

func items(v jsontext.Value) []jsontext.Value {
	if v.Kind() != '[' {
		return nil
	}
	list, _ := protocol.Items(v)
	return list
}

func word(o protocol.Object, name string) string {
	if v := o.Get(name); v != nil && v.Kind() == '"' {
		return protocol.Unquote(v)
	}
	return ""
}
