package mcp

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/protocol"
)

// message is one line, as far as it matters here.
type message struct {
	all     protocol.Object
	batch   bool
	id      jsontext.Value // nil: none
	method  string
	params  protocol.Object
	result  protocol.Object
	failure jsontext.Value // the member error
}

// readMessage reads a line strictly. With an error, the id is there when it
// could be found.
func readMessage(line []byte) (message, error) {
	var m message
	text := strings.TrimSpace(string(line))
	if strings.HasPrefix(text, "[") {
		m.batch = true
		return m, protocol.CheckValue([]byte(text), maxDepth)
	}
	var err error
	if m.all, err = protocol.DecodeObject([]byte(text), maxDepth); err != nil {
		return m, err
	}
	for _, member := range m.all {
		switch member.Name {
		case "id":
			if k := member.Value.Kind(); k == '"' || k == '0' {
				m.id = member.Value
			}
		case "method":
			if member.Value.Kind() != '"' {
				return m, errors.New("method is no text")
			}
			m.method = protocol.Unquote(member.Value)
		case "params":
			if m.params, err = object(member); err != nil {
				return m, err
			}
		case "result":
			if member.Value.Kind() == '{' {
				if m.result, err = object(member); err != nil {
					return m, err
				}
			}
		case "error":
			if member.Value.Kind() != 'n' {
				m.failure = member.Value
			}
		}
	}
	return m, folded(m.all, "id", "method", "params", "result", "error")
}

func object(m protocol.Member) (protocol.Object, error) {
	if m.Value.Kind() == 'n' {
		return nil, nil
	}
	obj, err := protocol.ParseObject(m.Value)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Name, err)
	}
	return obj, nil
}

// folded refuses a member that is a known one in other letters: some readers
// do not tell upper from lower case.
func folded(obj protocol.Object, known ...string) error {
	for _, m := range obj {
		for _, name := range known {
			if m.Name != name && strings.EqualFold(m.Name, name) {
				return fmt.Errorf("the member %q is %q in other letters", m.Name, name)
			}
		}
	}
	return nil
}

// idKey makes an id comparable.
func idKey(id jsontext.Value) string {
	if id == nil {
		return ""
	}
	if id.Kind() == '"' {
		return `"` + protocol.Unquote(id)
	}
	return string(id)
}

// toolCall reads the params of a tools/call.
func (m *message) toolCall() (name string, arguments jsontext.Value, err error) {
	if err := folded(m.params, "name", "arguments"); err != nil {
		return "", nil, fmt.Errorf("params: %w", err)
	}
	v := m.params.Get("name")
	if v == nil || v.Kind() != '"' || protocol.Unquote(v) == "" {
		return "", nil, errors.New("params.name: is missing or no text")
	}
	arguments = m.params.Get("arguments")
	if arguments == nil || arguments.Kind() == 'n' {
		arguments = jsontext.Value("{}")
	}
	if arguments.Kind() != '{' {
		return "", nil, errors.New("params.arguments: must be an object")
	}
	return protocol.Unquote(v), arguments, nil
}

// withCall is the line with another call in it.
func (m *message) withCall(name string, arguments jsontext.Value) []byte {
	params := m.params.With("name", protocol.Quote(name)).With("arguments", arguments)
	return m.all.With("params", params.AppendJSON(nil)).AppendJSON(nil)
}

func (m *message) errorText() string {
	if obj, err := protocol.ParseObject(m.failure); err == nil {
		if text := obj.Get("message"); text != nil && text.Kind() == '"' {
			return protocol.Unquote(text)
		}
	}
	return "the call failed"
}

// neutral is a result as hooks know it: is_error beside what the server said.
func neutral(result protocol.Object, isError bool) jsontext.Value {
	out := make(protocol.Object, 0, len(result)+1)
	for _, m := range result {
		if m.Name != "isError" && m.Name != "is_error" {
			out = append(out, m)
		}
	}
	if out.Get("content") == nil {
		out = append(out, protocol.Member{Name: "content", Value: jsontext.Value("[]")})
	}
	return append(out, protocol.Member{Name: "is_error", Value: boolean(isError)}).AppendJSON(nil)
}

func boolean(b bool) jsontext.Value {
	if b {
		return jsontext.Value("true")
	}
	return jsontext.Value("false")
}

// resultOf is a result of hookd as MCP knows it: content is a list of blocks.
func resultOf(result jsontext.Value) protocol.Object {
	in, err := protocol.ParseObject(result)
	if err != nil {
		return protocol.Object{{Name: "content", Value: blocks(protocol.Quote(string(result)))}}
	}
	var out protocol.Object
	for _, m := range in {
		switch m.Name {
		case "content":
			m.Value = blocks(m.Value)
		case "is_error":
			m.Name = "isError"
		}
		out = append(out, m)
	}
	if out.Get("content") == nil {
		out = append(protocol.Object{{Name: "content", Value: jsontext.Value("[]")}}, out...)
	}
	return out
}

// merged keeps what the server said beside the parts that hooks know. What
// stands in structured form too would tell what was taken out of the text.
func merged(server, changed protocol.Object) protocol.Object {
	out := make(protocol.Object, 0, len(changed)+1)
	for _, m := range changed {
		if m.Name == "structuredContent" && protocol.SameValue(m.Value, server.Get("structuredContent")) &&
			!protocol.SameValue(changed.Get("content"), server.Get("content")) {
			continue
		}
		out = append(out, m)
	}
	return out
}

func blocks(content jsontext.Value) jsontext.Value {
	if content.Kind() == '[' {
		return content
	}
	text := content
	if content.Kind() != '"' {
		text = protocol.Quote(string(content))
	}
	return jsontext.Value(`[{"type":"text","text":` + string(text) + `}]`)
}

// withContext adds texts to a result's content, where the model reads them.
func withContext(result protocol.Object, context []string) protocol.Object {
	if len(context) == 0 {
		return result
	}
	items, err := protocol.Items(blocks(result.Get("content")))
	if err != nil {
		items = nil
	}
	out := []byte{'['}
	for i, item := range items {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, item...)
	}
	for i, text := range context {
		if i > 0 || len(items) > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, `{"type":"text","text":`...), protocol.Quote(text)...), '}')
	}
	return result.With("content", append(out, ']'))
}

// failed is a tool's result that says why the tool did not run.
func failed(reason string, context []string) protocol.Object {
	if reason == "" {
		reason = "hookd did not allow the call"
	}
	return withContext(protocol.Object{
		{Name: "content", Value: blocks(protocol.Quote(reason))},
		{Name: "isError", Value: boolean(true)},
	}, context)
}

func response(id jsontext.Value, result protocol.Object) []byte {
	return protocol.Object{
		{Name: "jsonrpc", Value: protocol.Quote("2.0")}, {Name: "id", Value: id}, {Name: "result", Value: result.AppendJSON(nil)},
	}.AppendJSON(nil)
}

func refusal(id jsontext.Value, code int64, message string) []byte {
	if id == nil {
		id = jsontext.Value("null")
	}
	return protocol.Object{
		{Name: "jsonrpc", Value: protocol.Quote("2.0")}, {Name: "id", Value: id},
		{Name: "error", Value: fmt.Appendf(nil, `{"code":%d,"message":%s}`, code, protocol.Quote(message))},
	}.AppendJSON(nil)
}

func cutPrefix(s, prefix string) (string, bool) {
	rest, ok := strings.CutPrefix(s, prefix)
	return rest, ok && rest != ""
}
