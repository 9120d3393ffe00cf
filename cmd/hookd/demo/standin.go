package demo

import (
	"context"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/mount"
	"github.com/hookd/hookd/protocol"
)

// standIns are hooks inside hookd that know as much of the examples' craft as
// the story needs. They run when an interpreter is missing.
func standIns() []mount.Builtin {
	return []mount.Builtin{
		{Name: "review-gate", New: func(mount.BuiltinContext) (any, error) { return reviewer{}, nil }},
		{Name: "redact", New: func(mount.BuiltinContext) (any, error) { return redactor{}, nil }},
	}
}

// reviewer stands in for review_gate.py.
type reviewer struct{ hook.NoTool }

// BeforeTool implements [hook.ToolInterceptor].
func (reviewer) BeforeTool(_ context.Context, call *hook.ToolCall) (protocol.Decision, error) {
	var args struct {
		Command string `json:"command"`
	}
	if err := call.Decode(&args); err != nil {
		return protocol.Decision{}, err
	}
	switch {
	case strings.HasPrefix(args.Command, "rm -rf ~"):
		return hook.Deny("deletes a system or home folder; name what you mean inside it"), nil
	case strings.HasPrefix(args.Command, "git push"):
		return hook.Ask("publishes commits or a package"), nil
	}
	return hook.Continue(), nil
}

// redactor stands in for redact.mjs.
type redactor struct {
	hook.NoLLM
	hook.NoTool
}

// keyID is found, and replaced, in JSON as it stands: no letter of it can be
// escaped by halves.
var keyID = regexp.MustCompile(`\bAKIA[0-9A-Z]{16}\b`)

func redact(v jsontext.Value) (clean jsontext.Value, changed bool) {
	return keyID.ReplaceAll(v, []byte("[redacted AWS key id]")), keyID.Match(v)
}

// BeforeLLM implements [hook.LLMInterceptor].
func (redactor) BeforeLLM(_ context.Context, req *hook.ModelRequest) (protocol.Decision, error) {
	if messages, changed := redact(req.Messages); changed {
		return hook.Modify(map[string]any{"messages": messages})
	}
	return hook.Continue(), nil
}

// AfterTool implements [hook.ToolInterceptor].
func (redactor) AfterTool(_ context.Context, done *hook.ToolResult) (protocol.Decision, error) {
	if result, changed := redact(done.Result); changed {
		return hook.Modify(result)
	}
	return hook.Continue(), nil
}
