package native

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/protocol"
)

// contentPlaces are the members under which agents keep the text of a tool's
// result, in the order in which they are looked for. A dot leads into an
// object.
var contentPlaces = [...]string{
	"stdout", "content", "file.content", "textResultForLlm", "text_result_for_llm", "llmContent", "result", "output", "text", "message",
}

// ReadResult finds the text in the result of a tool, whatever shape its agent
// gives it: a string, an array of blocks, or an object that holds one of them.
// content is a string, or an array of blocks; where no text is found it is the
// JSON of the result as a string, so that a guard sees everything.
func ReadResult(result jsontext.Value) (content jsontext.Value, isError bool) {
	switch result.Kind() {
	case '"':
		return result, false
	case '[':
		if isBlocks(result) {
			return result, false
		}
	case '{':
		members, _ := protocol.ParseObject(result)
		return objectContent(result, members), saysError(members)
	case 'n', 0:
		return jsontext.Value(`""`), false
	}
	return protocol.Quote(string(result)), false
}

func objectContent(result jsontext.Value, members protocol.Object) jsontext.Value {
	_, content := findContent(members)
	if content == nil {
		return protocol.Quote(string(result))
	}
	if stderr := protocol.MetaString(members, "stderr"); stderr != "" && content.Kind() == '"' {
		if out := protocol.Unquote(content); out != "" {
			return protocol.Quote(strings.TrimSuffix(out, "\n") + "\n" + stderr)
		}
		return protocol.Quote(stderr)
	}
	return content
}

// findContent returns the place and the value of the text in a result.
func findContent(members protocol.Object) (place string, content jsontext.Value) {
	for _, place := range contentPlaces {
		outer, inner, nested := strings.Cut(place, ".")
		v := members.Get(outer)
		if nested {
			if v.Kind() != '{' {
				continue
			}
			object, _ := protocol.ParseObject(v)
			v = object.Get(inner)
		}
		if v.Kind() == '"' || v.Kind() == '[' && isBlocks(v) {
			return place, v
		}
	}
	return "", nil
}

// Unwrap gives the object or array that a string holds as JSON, as some agents
// write results, and else what it was given.
func Unwrap(v jsontext.Value) jsontext.Value {
	if v.Kind() != '"' {
		return v
	}
	text := jsontext.Value(strings.TrimSpace(protocol.Unquote(v)))
	if k := text.Kind(); k != '{' && k != '[' || protocol.CheckValue(text, maxDepth) != nil {
		return v
	}
	return protocol.Compact(text)
}

// isBlocks reports whether an array holds blocks with a type, as content does.
func isBlocks(v jsontext.Value) bool {
	items, _ := protocol.Items(v)
	for _, it := range items {
		if it.Kind() != '{' {
			return false
		}
		block, _ := protocol.ParseObject(it)
		if block.Get("type").Kind() != '"' {
			return false
		}
	}
	return len(items) > 0
}

// saysError reports whether a result calls itself a failure.
func saysError(members protocol.Object) bool {
	for _, m := range members {
		switch m.Name {
		case "is_error", "isError":
			if m.Value.Kind() == 't' {
				return true
			}
		case "success":
			if m.Value.Kind() == 'f' {
				return true
			}
		case "error":
			switch m.Value.Kind() {
			case '{':
				return true
			case '"':
				return len(m.Value) > 2
			}
		case "resultType", "result_type":
			if m.Value.Kind() == '"' && protocol.Unquote(m.Value) != "success" {
				return true
			}
		}
	}
	return false
}

// WriteResult puts a changed content into the place where [ReadResult] found
// the old one, so that the result keeps the shape that its agent expects. ok is
// false where the shape has no place for it.
func WriteResult(result, content jsontext.Value) (changed jsontext.Value, ok bool) {
	switch result.Kind() {
	case '"', 'n', 0:
		return asText(content), true
	case '[':
		if isBlocks(result) {
			return asBlocks(content), true
		}
		return sameKind(result, content)
	case '{':
	default:
		return sameKind(result, content)
	}
	members, _ := protocol.ParseObject(result)
	place, old := findContent(members)
	if old == nil {
		return sameKind(result, content)
	}
	value := asText(content)
	if old.Kind() == '[' {
		value = asBlocks(content)
	}
	outer, inner, nested := strings.Cut(place, ".")
	if nested {
		object, _ := protocol.ParseObject(members.Get(outer))
		value = object.With(inner, value).AppendJSON(nil)
	}
	members = members.With(outer, value)
	for _, twin := range [...]string{"stderr", "returnDisplay"} {
		if members.Get(twin).Kind() == '"' && twin != place {
			members = members.With(twin, jsontext.Value(`""`)) // the old text must not stay beside the new one
		}
	}
	return members.AppendJSON(nil), true
}

// sameKind takes a content that is JSON of the kind of the result itself.
func sameKind(result, content jsontext.Value) (jsontext.Value, bool) {
	if content.Kind() != '"' {
		return nil, false
	}
	text := jsontext.Value(protocol.Unquote(content))
	if text.Kind() != result.Kind() || protocol.CheckValue(text, maxDepth) != nil {
		return nil, false
	}
	return protocol.Compact(text), true
}

func asText(content jsontext.Value) jsontext.Value {
	if content.Kind() == '"' {
		return content
	}
	return protocol.Quote(protocol.ContentText(content))
}

func asBlocks(content jsontext.Value) jsontext.Value {
	if content.Kind() == '[' {
		return content
	}
	return append(append(jsontext.Value(`[{"type":"text","text":`), asText(content)...), `}]`...)
}
