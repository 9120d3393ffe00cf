package hooktest

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/protocol"
)

// sampleParam returns a value of the type that a stage's param has. Digits,
// escapes and letters in it are such as get lost when a payload is decoded and
// encoded again.
func sampleParam(name string) jsontext.Value {
	text := ""
	switch name {
	case "tool":
		text = `"bash"`
	case "arguments":
		text = `{"command":"echo \u00e9 <&> é","n":9007199254740993,"f":1.0}`
	case "read_only":
		text = `true`
	case "duration_ms":
		text = `12.5`
	case "model":
		text = `"some-model"`
	case "messages":
		text = `[{"role":"user","content":"hello"},{"role":"assistant","content":[{"type":"text","text":"hi"}]}]`
	case "tools":
		text = `[{"name":"bash","description":"runs a command"}]`
	case "options":
		text = `{"temperature":0.10}`
	case "request":
		text = `{"input":"hello","reason":"done","trigger":"auto","tokens":100000}`
	case "response":
		text = `{"content":"hi","tool_calls":[],"usage":{"output_tokens":3}}`
	default: // message, prompt, output, result
		text = `{"role":"user","content":"hello"}`
	}
	return jsontext.Value(text)
}

// sample returns a request to a stage with all that one may hold.
func sample(stage *protocol.StageInfo) *protocol.Request {
	members := func(names []string) (o protocol.Object) {
		for _, name := range names {
			o = append(o, protocol.Member{Name: name, Value: sampleParam(name)})
		}
		return o
	}
	return &protocol.Request{
		Stage:   stage,
		CallID:  "call-1",
		Meta:    protocol.Object{{Name: "agent", Value: protocol.Quote("hooktest")}, {Name: "cwd", Value: protocol.Quote("/repo")}, {Name: "iteration", Value: jsontext.Value("3")}},
		Context: jsontext.Value(`{}`),
		State:   protocol.Object{{Name: "confidence_score", Value: jsontext.Value("0.90")}},
		Subject: members(stage.Subject),
		Fixed:   members(stage.Fixed),
		Extra:   protocol.Object{{Name: "x_unknown", Value: jsontext.Value(`{"a":[1,"two",null]}`)}},
		DryRun:  true,
	}
}

// strange returns requests that are legal and not what a hook hopes for.
func strange(stage *protocol.StageInfo) []*protocol.Request {
	bare := &protocol.Request{Stage: stage, DryRun: true}
	empty := sample(stage)
	empty.Meta, empty.Context = protocol.Object{}, nil
	odd := sample(stage)
	for i, name := range stage.Subject {
		var none, other jsontext.Value
		switch sampleParam(name).Kind() {
		case '{':
			none, other = jsontext.Value(`{}`), jsontext.Value(`{"path":7,"command":{"a":[]},"content":null,"file_path":["",null]}`)
		case '[':
			none, other = jsontext.Value(`[]`), jsontext.Value(`[null,5,{"role":7}]`)
		case '"':
			none, other = jsontext.Value(`"x"`), jsontext.Value(`"mcp__\u0000__é"`)
		default:
			continue
		}
		empty.Subject[i].Value, odd.Subject[i].Value = none, other
		if slices.Contains(stage.Required, name) {
			bare.Subject = append(bare.Subject, protocol.Member{Name: name, Value: none})
		}
	}
	return []*protocol.Request{bare, empty, odd}
}
