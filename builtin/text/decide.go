package text

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/protocol"
)

// Member returns the param of a stage that holds texts of people, models and
// tools; "" where there is none.
func Member(stage protocol.Stage) string {
	switch stage {
	case protocol.StageUserMessage:
		return "message"
	case protocol.StageBeforeLLM:
		return "messages"
	case protocol.StageAfterLLM:
		return "response"
	case protocol.StageBeforeTool:
		return "arguments"
	case protocol.StageAfterTool:
		return "result"
	case protocol.StageOutput:
		return "output"
	}
	return ""
}

// Noun names what a stage is about, for reasons.
func Noun(stage protocol.Stage) string {
	switch stage {
	case protocol.StageUserMessage:
		return "the message"
	case protocol.StageBeforeLLM:
		return "the conversation"
	case protocol.StageAfterLLM:
		return "the model's answer"
	case protocol.StageBeforeTool:
		return "the tool's arguments"
	case protocol.StageAfterTool:
		return "the tool's result"
	}
	return "the output"
}

// IDs is a [Keep] for messages: it keeps what joins calls with results, and what
// only a model's maker can read. Both must come back as they were.
func IDs(path []string) bool {
	if len(path) > 0 && path[0] == "*" {
		path = path[1:]
	}
	switch {
	case len(path) == 3 && (path[0] == "content" || path[0] == "tool_calls") && path[1] == "*":
		path = path[2:]
	case len(path) != 1:
		return false
	}
	switch path[0] {
	case "id", "call_id", "tool_call_id", "tool_use_id", "signature", "encrypted_content":
		return true
	}
	return false
}

// Replaced begins the reason of a decision that replaces.
const Replaced = "replaced: "

// Judge scrubs the texts of a request and decides: continue when nothing was
// found, deny when something may not pass, else modify. Where a stage knows no
// deny, what may not pass is replaced by its label, with a warning. Reasons name
// kinds, never values. A stage without texts continues.
func (s *Scrubber) Judge(ctx context.Context, req *protocol.Request) (protocol.Decision, error) {
	stage := req.Stage
	v := req.Subject.Get(Member(stage.Name))
	if v == nil {
		return protocol.Decision{}, nil
	}
	var keep Keep
	switch stage.Name {
	case protocol.StageUserMessage, protocol.StageBeforeLLM, protocol.StageAfterLLM:
		keep = IDs
	}
	var r Report
	out, err := s.Value(ctx, v, keep, &r)
	switch {
	case err != nil:
		return protocol.Decision{}, err
	case r.Empty():
		return protocol.Decision{}, nil
	}
	blocked := strings.Join(r.Blocked, ", ")
	if blocked != "" && stage.Allows(protocol.ActionDeny) {
		return protocol.Decision{
			Action: protocol.ActionDeny,
			Reason: fmt.Sprintf("found in %s: %s, which may not pass. Take it out and try again.", Noun(stage.Name), blocked),
		}, nil
	}
	d := Change(stage, v, out)
	d.Reason = Replaced + r.Kinds()
	if blocked != "" {
		d.Warnings = []string{fmt.Sprintf("found in %s: %s, which is blocked; there is no deny at %s, so it was replaced", Noun(stage.Name), blocked, stage.Name)}
	}
	return d, nil
}

// Change returns the decision that puts a new value in the place of the member
// that [Member] names.
func Change(stage *protocol.StageInfo, old, value jsontext.Value) protocol.Decision {
	d := protocol.Decision{Action: protocol.ActionModify}
	switch {
	case !stage.Wrapped():
		d.Subject = protocol.Object{{Name: Member(stage.Name), Value: value}}.AppendJSON(nil)
	case losesNames(old, value):
		// Merging members would leave the old names beside the new ones.
		d.Patch = append(append([]byte(`[{"op":"replace","path":"","value":`), value...), "}]"...)
	default:
		d.Subject = value
	}
	return d
}

// losesNames reports whether an object has members that value has not.
func losesNames(old, value jsontext.Value) bool {
	before, errOld := protocol.ParseObject(old)
	after, err := protocol.ParseObject(value)
	if errOld != nil || err != nil {
		return false
	}
	for _, m := range before {
		if after.Get(m.Name) == nil {
			return true
		}
	}
	return false
}
