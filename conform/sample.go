package conform

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/protocol"
)

// Values that get lost when a payload is decoded and encoded carelessly, or
// lines are cut at more than "\n". They bear names by which they are found again.
const (
	oddNumberName = "x_number"
	oddNumber     = "9007199254740993" // no floating point number
	oddTextName   = "x_text"
	oddText       = "é 😀 \u2028\u2029\u0085 <&> \\ \" \x00 \x7f end"
)

// oddMembers stand in the subject of a request.
func oddMembers() string {
	return fmt.Sprintf(`"%s":%s,"%s":%s`, oddNumberName, oddNumber, oddTextName, protocol.Quote(oddText))
}

// sampleParam returns an ordinary value of a stage's param. more stands in the
// objects, for members that nobody knows.
func sampleParam(name, more string) jsontext.Value {
	text := ""
	switch name {
	case "tool":
		return jsontext.Value(`"bash"`)
	case "read_only":
		return jsontext.Value(`false`)
	case "duration_ms":
		return jsontext.Value(`12.5`)
	case "model":
		return jsontext.Value(`"some-model"`)
	case "messages":
		return jsontext.Value(`[{"role":"user","content":"hello"` + more + `},{"role":"assistant","content":[{"type":"text","text":"hi"}]}]`)
	case "tools":
		return jsontext.Value(`[{"name":"bash","description":"runs a command"}]`)
	case "arguments":
		text = `{"command":"ls"`
	case "options":
		text = `{"temperature":0.10`
	case "request":
		text = `{"input":"hello","reason":"completed","trigger":"auto","tokens":100000`
	case "response":
		text = `{"content":"hi","tool_calls":[],"usage":{"output_tokens":3}`
	default: // message, prompt, output, result
		text = `{"role":"user","content":"hello"`
	}
	return jsontext.Value(text + more + "}")
}

// request returns a request to a stage with all that one may hold. All requests
// are dry runs: a kit must not make a hook act.
func request(stage *protocol.StageInfo, more string) *protocol.Request {
	if more != "" {
		more = "," + more
	}
	members := func(names []string) (o protocol.Object) {
		for _, name := range names {
			o = append(o, protocol.Member{Name: name, Value: sampleParam(name, more)})
		}
		return o
	}
	return &protocol.Request{
		Stage: stage, CallID: "call-1", DryRun: true,
		Meta: protocol.Object{
			{Name: "agent", Value: protocol.Quote("conform")}, {Name: "session_id", Value: protocol.Quote("s-1")},
			{Name: "cwd", Value: protocol.Quote("/repo")}, {Name: "iteration", Value: jsontext.Value("3")},
		},
		Context: jsontext.Value(`{}`),
		State:   protocol.Object{{Name: "confidence_score", Value: jsontext.Value("0.90")}},
		Subject: members(stage.Subject), Fixed: members(stage.Fixed),
	}
}

// odd returns a request with params and members that nobody knows.
func odd(stage *protocol.StageInfo) *protocol.Request {
	r := request(stage, oddMembers())
	r.Meta = r.Meta.With("x_unknown", jsontext.Value(`[1.0,null,{"a":[]}]`))
	r.Extra = protocol.Object{{Name: "x_unknown", Value: jsontext.Value(`{"action":"deny","id":7, "n":[1,"two",null,1e5]}`)}}
	return r
}

// strange returns requests that are legal and not what a hook hopes for.
func strange(stage *protocol.StageInfo) []*protocol.Request {
	bare := &protocol.Request{Stage: stage, DryRun: true}
	other := request(stage, "")
	for i, name := range stage.Subject {
		var least, wrong string
		switch sampleParam(name, "").Kind() {
		case '{':
			least, wrong = `{}`, `{"path":7,"command":{"a":[]},"content":null,"file_path":["",null]}`
		case '[':
			least, wrong = `[]`, `[null,5,{"role":7}]`
		case '"':
			least, wrong = `"x"`, `"mcp__\u0000__é"`
		default:
			continue
		}
		other.Subject[i].Value = jsontext.Value(wrong)
		if slices.Contains(stage.Required, name) {
			bare.Subject = append(bare.Subject, protocol.Member{Name: name, Value: jsontext.Value(least)})
		}
	}
	return []*protocol.Request{bare, other}
}

// huge returns a request of a little more than size bytes.
func huge(stage *protocol.StageInfo, size int) *protocol.Request {
	r := request(stage, "")
	r.Context = jsontext.Value(`{"x_padding":"` + strings.Repeat("x", size) + `"}`)
	return r
}

// altered says which of the [oddMembers] an answer gives back in another form.
func altered(answer []byte) string {
	dec := jsontext.NewDecoder(bytes.NewReader(answer))
	for {
		token, err := dec.ReadToken()
		if err != nil {
			return ""
		}
		if token.Kind() != '"' {
			continue
		}
		name := token.String()
		if kind, _ := dec.StackIndex(dec.StackDepth()); kind != '{' || name != oddNumberName && name != oddTextName {
			continue
		}
		value, err := dec.ReadValue()
		switch {
		case err != nil:
			return ""
		case name == oddNumberName && string(value) != oddNumber:
			return fmt.Sprintf("the number %s came back as %s", oddNumber, clip(string(value)))
		case name == oddTextName && (value.Kind() != '"' || protocol.Unquote(value) != oddText):
			return fmt.Sprintf("the text %s came back as %s", protocol.Quote(oddText), clip(string(value)))
		}
	}
}
