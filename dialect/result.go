package dialect

import (
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/protocol"
)

// What a tool has said to the model is "content" in hookd's results and
// "for_llm", always a text, in PicoClaw's. A result never holds both: a hook
// that cleans one of them must not leave the other behind.

// toTheirs names the content of a tool's result as PicoClaw does. whole is
// false when the content holds more than text.
func toTheirs(result protocol.Object) (out protocol.Object, whole bool) {
	content := result.Get("content")
	if content == nil || result.Get("for_llm") != nil {
		return result, true
	}
	said, whole := text(content)
	return rename(result, "content", "for_llm", protocol.Quote(said)), whole
}

// toOurs names the content of a tool's result as hookd does.
func toOurs(result protocol.Object) protocol.Object {
	said := result.Get("for_llm")
	if said == nil || result.Get("content") != nil {
		return result
	}
	return rename(result, "for_llm", "content", said)
}

// rename gives a member another name and value, at its old place.
func rename(o protocol.Object, from, to string, v jsontext.Value) protocol.Object {
	out := make(protocol.Object, 0, len(o))
	for _, m := range o {
		if m.Name == from {
			m = protocol.Member{Name: to, Value: v}
		}
		out = append(out, m)
	}
	return out
}

// shownResult is the tool's result as a PicoClaw hook is shown it. Blocks that
// are no text are not shown.
func shownResult(req *protocol.Request) protocol.Object {
	shown, _ := toTheirs(inside(req.Subject, "result"))
	return shown
}

// changedResult reads the tool's result that a hook gives back, whole or in
// part. A text that the hook has not touched changes nothing, so that blocks
// stay blocks.
func changedResult(req *protocol.Request, given protocol.Object) (protocol.Object, error) {
	said := given.Get("for_llm")
	if said == nil || inside(req.Subject, "result").Get("for_llm") != nil {
		return given, nil
	}
	switch {
	case given.Get("content") != nil:
		return nil, errors.New("result.result: content and for_llm are the same: give one of them")
	case said.Kind() != '"':
		return nil, errors.New("result.result.for_llm: expected a string")
	case protocol.SameValue(said, shownResult(req).Get("for_llm")):
		return without(given, "for_llm"), nil
	}
	return toOurs(given), nil
}
