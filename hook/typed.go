package hook

import (
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/protocol"
)

// ToolInterceptor judges tool calls and their results, decoded. Embed [NoTool]
// to implement only one of the methods.
type ToolInterceptor interface {
	BeforeTool(ctx context.Context, call *ToolCall) (protocol.Decision, error)
	AfterTool(ctx context.Context, done *ToolResult) (protocol.Decision, error)
}

// LLMInterceptor judges model requests and responses, decoded. Embed [NoLLM]
// to implement only one of the methods.
type LLMInterceptor interface {
	BeforeLLM(ctx context.Context, req *ModelRequest) (protocol.Decision, error)
	AfterLLM(ctx context.Context, resp *ModelResponse) (protocol.Decision, error)
}

// NoTool is a [ToolInterceptor] that lets everything pass, to be embedded.
type NoTool struct{}

// BeforeTool continues.
func (NoTool) BeforeTool(context.Context, *ToolCall) (protocol.Decision, error) {
	return Continue(), nil
}

// AfterTool continues.
func (NoTool) AfterTool(context.Context, *ToolResult) (protocol.Decision, error) {
	return Continue(), nil
}

// NoLLM is an [LLMInterceptor] that lets everything pass, to be embedded.
type NoLLM struct{}

// BeforeLLM continues.
func (NoLLM) BeforeLLM(context.Context, *ModelRequest) (protocol.Decision, error) {
	return Continue(), nil
}

// AfterLLM continues.
func (NoLLM) AfterLLM(context.Context, *ModelResponse) (protocol.Decision, error) {
	return Continue(), nil
}

// ToolCall is a tool call about to run.
type ToolCall struct {
	// Request is what the call was decoded from.
	Request *protocol.Request
	Tool    string
	// Arguments as they stood on the wire; see [ToolCall.Decode].
	Arguments jsontext.Value
	ReadOnly  bool
}

// Decode reads the arguments into v, a pointer.
func (c *ToolCall) Decode(v any) error { return protocol.Unmarshal(c.Arguments, v) }

// ToolResult is a tool call that has run.
type ToolResult struct {
	Request   *protocol.Request
	Tool      string
	Arguments jsontext.Value
	// Result is the object {content, is_error, …} as it stood on the wire.
	Result  jsontext.Value
	IsError bool
	// Duration is how long the tool ran; 0 when the agent did not say.
	Duration time.Duration
}

// Text returns the result's content as one text; blocks that are not text are
// left out.
func (r *ToolResult) Text() string {
	return textOf(r.Result)
}

// ModelRequest is a request about to be sent to a model. All values stand as
// they stood on the wire.
type ModelRequest struct {
	Request  *protocol.Request
	Model    string
	Messages jsontext.Value
	Tools    jsontext.Value
	Options  jsontext.Value
}

// Message is one message of a model request.
type Message struct {
	Role    string         `json:"role"`
	Content jsontext.Value `json:"content"`
}

// Text returns the message's content as one text; blocks that are not text
// are left out.
func (m *Message) Text() string { return protocol.ContentText(m.Content) }

// DecodeMessages reads role and content of every message.
func (r *ModelRequest) DecodeMessages() ([]Message, error) {
	var list []Message
	err := protocol.Unmarshal(r.Messages, &list)
	return list, err
}

// ModelResponse is a model's answer.
type ModelResponse struct {
	Request *protocol.Request
	// Response is the object {content, tool_calls, usage, …} as it stood on
	// the wire.
	Response jsontext.Value
}

// Text returns the response's content as one text.
func (r *ModelResponse) Text() string {
	return textOf(r.Response)
}

// textOf returns the text of an object's content.
func textOf(v jsontext.Value) string {
	members, err := protocol.ParseObject(v)
	if err != nil {
		return ""
	}
	return protocol.ContentText(members.Get("content"))
}

// Continue lets the step pass.
func Continue() protocol.Decision { return protocol.Decision{} }

// Deny stops the step; the agent gives the reason to the model.
func Deny(format string, args ...any) protocol.Decision {
	return protocol.Decision{Action: protocol.ActionDeny, Reason: fmt.Sprintf(format, args...)}
}

// Ask makes the step need approval.
func Ask(format string, args ...any) protocol.Decision {
	return protocol.Decision{Action: protocol.ActionAsk, Reason: fmt.Sprintf(format, args...)}
}

// Modify changes the subject: change is marshalled to an object whose members
// are laid over it.
func Modify(change any) (protocol.Decision, error) {
	v, err := protocol.Marshal(change)
	return protocol.Decision{Action: protocol.ActionModify, Subject: v}, err
}

// Respond answers in place of the tool, the model or the agent.
func Respond(with any) (protocol.Decision, error) {
	v, err := protocol.Marshal(with)
	return protocol.Decision{Action: protocol.ActionRespond, Respond: v}, err
}

// typed turns the helpers' methods into an [Interceptor]; neither is nil.
type typed struct {
	tool ToolInterceptor
	llm  LLMInterceptor
}

func typedInterceptor(v any) (Interceptor, []protocol.Stage) {
	t := typed{NoTool{}, NoLLM{}}
	var stages []protocol.Stage
	if llm, ok := v.(LLMInterceptor); ok {
		t.llm, stages = llm, append(stages, protocol.StageBeforeLLM, protocol.StageAfterLLM)
	}
	if tool, ok := v.(ToolInterceptor); ok {
		t.tool, stages = tool, append(stages, protocol.StageBeforeTool, protocol.StageAfterTool)
	}
	if stages == nil {
		return nil, nil
	}
	return t, stages
}

func (t typed) Intercept(ctx context.Context, req *protocol.Request) (protocol.Decision, error) {
	switch req.Stage.Name {
	case protocol.StageBeforeTool:
		ro := req.Subject.Get("read_only")
		return t.tool.BeforeTool(ctx, &ToolCall{
			Request: req, Tool: req.Tool(), Arguments: req.Subject.Get("arguments"), ReadOnly: string(ro) == "true",
		})
	case protocol.StageAfterTool:
		return t.tool.AfterTool(ctx, newToolResult(req))
	case protocol.StageBeforeLLM:
		m := &ModelRequest{
			Request: req, Messages: req.Subject.Get("messages"), Tools: req.Subject.Get("tools"), Options: req.Subject.Get("options"),
		}
		if model := req.Subject.Get("model"); model != nil {
			m.Model = protocol.Unquote(model)
		}
		return t.llm.BeforeLLM(ctx, m)
	case protocol.StageAfterLLM:
		return t.llm.AfterLLM(ctx, &ModelResponse{Request: req, Response: req.Subject.Get("response")})
	}
	return Continue(), nil
}

// maxMillis is a time that any [time.Duration] can hold: 292 years.
const maxMillis = 9e12

func newToolResult(req *protocol.Request) *ToolResult {
	r := &ToolResult{Request: req, Tool: req.Tool(), Arguments: req.Fixed.Get("arguments"), Result: req.Subject.Get("result")}
	var res struct {
		IsError bool `json:"is_error"`
	}
	if protocol.Unmarshal(r.Result, &res) == nil {
		r.IsError = res.IsError
	}
	var ms float64
	if v := req.Fixed.Get("duration_ms"); v != nil && protocol.Unmarshal(v, &ms) == nil {
		r.Duration = time.Duration(min(max(ms, 0), maxMillis) * float64(time.Millisecond))
	}
	return r
}
