package client

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/protocol"
)

const (
	// answerMargin is how much longer than it told hookd the client waits.
	answerMargin = time.Second
	// leastDeadline is the shortest that hookd accepts. With less time left
	// nothing is said, and the call ends with its context.
	leastDeadline = 300 * time.Millisecond
)

// Meta says where in the agent's work a step or an event belongs. All is
// optional; empty fields are not sent.
type Meta struct {
	AgentID      string `json:"agent_id,omitzero"`
	SessionID    string `json:"session_id,omitzero"`
	TurnID       string `json:"turn_id,omitzero"`
	ParentTurnID string `json:"parent_turn_id,omitzero"`
	TaskID       string `json:"task_id,omitzero"`
	UserID       string `json:"user_id,omitzero"`
	NodeID       string `json:"node_id,omitzero"`
	Iteration    int    `json:"iteration,omitzero"`
	Model        string `json:"model,omitzero"`
	CWD          string `json:"cwd,omitzero"`
	TraceID      string `json:"trace_id,omitzero"`
	// Native is the agent's own view, of any form.
	Native any `json:"native,omitzero"`
}

// Call is what can be said at every step besides its subject. All is optional.
//
// In it and in the structs that embed it, a field of type any takes whatever
// marshals to JSON by the rules of encoding/json/v2: own types, maps, and raw
// JSON as a json.RawMessage or jsontext.Value, whose digits are kept.
type Call struct {
	Meta Meta
	// Context is an object for hooks to read.
	Context any
	// CallID joins the steps of one tool call or one model call.
	CallID string
	// State is handed to hooks: usually [Answer.State] of an earlier step.
	State map[string]jsontext.Value
	// DryRun asks hooks to judge without side effects, to see what they would
	// say. Nothing may be done on such a verdict.
	DryRun bool
	// Trail asks for [Answer.Trail].
	Trail bool
}

// query is one question to hookd.
type query struct {
	stage   *protocol.StageInfo
	subject params
	rest    params
	approve bool          // the answer must hold an approval
	limit   time.Duration // how long hookd may take, as it was told; 0 = not told
}

func (c *Client) query(stage protocol.Stage, call Call) *query {
	q := &query{stage: c.stages.Stage(stage)}
	switch decision, approval := max(c.o.Deadline, 0), max(c.o.ApprovalDeadline, 0); {
	case stage == protocol.StageApproveTool:
		q.limit = approval
	case stage != protocol.StageBeforeTool:
		q.limit = decision
	case decision > 0 && approval > 0: // hookd may have to ask for approval
		q.limit = decision + approval
	}
	q.rest.addMeta(call.Meta)
	q.rest.add("context", call.Context)
	if call.CallID != "" {
		q.rest.add("call_id", call.CallID)
	}
	if call.State != nil {
		q.rest.add("state", call.State)
	}
	if call.DryRun {
		q.rest.add("dry_run", true)
	}
	if call.Trail {
		q.rest.add("trail", true)
	}
	return q
}

// ask returns a reply in any case; with an error, one that is a no.
func (c *Client) ask(ctx context.Context, q *query) (*reply, error) {
	raw, err := c.call(ctx, q)
	if err != nil {
		return noVerdict(err), fmt.Errorf("ask hookd: %s: %w", q.stage.Name, err)
	}
	r, err := q.read(raw)
	if err != nil {
		err = fmt.Errorf("its answer can't be acted on: %w", err)
		return noVerdict(err), fmt.Errorf("ask hookd: %s: %w", q.stage.Name, err)
	}
	return r, nil
}

// call sends the question, once, and returns the answer.
func (c *Client) call(ctx context.Context, q *query) ([]byte, error) {
	for _, p := range []*params{&q.subject, &q.rest} {
		if p.err != nil {
			return nil, p.err
		}
	}
	if c.ctx.Err() != nil {
		return nil, context.Cause(c.ctx)
	}
	if q.limit > 0 {
		limit := q.limit + answerMargin
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, fmt.Errorf("hookd did not answer within %s", limit))
		defer cancel()
	}
	conn, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	select {
	case conn.slots <- struct{}{}:
		defer func() { <-conn.slots }()
	case <-conn.peer.Done():
		return nil, conn.peer.Err()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if end, ok := ctx.Deadline(); ok {
		if left := time.Until(end); left >= leastDeadline && (q.limit == 0 || left < q.limit) {
			q.rest.add("deadline_ms", left.Milliseconds())
		}
	}
	list := slices.Concat(q.rest.list, q.subject.list)
	return conn.peer.Call(ctx, q.stage.Method(), list.AppendJSON(nil))
}

// UserMessage is a message of the user, before anything is done with it.
type UserMessage struct {
	Call
	// Role is the message's role; empty means "user".
	Role string
	// Content is a string, or an array of blocks {type, text, …}.
	Content any
}

// UserMessage asks about a message of the user. Allowed: work on Final, an
// object {role, content}; its text is [Verdict.Text]. Not allowed: drop the
// message and tell the user the reason.
func (c *Client) UserMessage(ctx context.Context, p UserMessage) (Verdict, error) {
	q := c.query(protocol.StageUserMessage, p.Call)
	q.subject.add("message", struct {
		Role    string `json:"role"`
		Content any    `json:"content"`
	}{cmp.Or(p.Role, "user"), p.Content})
	r, err := c.ask(ctx, q)
	return r.verdict("message"), err
}

// BeforeAgent is a run of the agent that is about to start.
type BeforeAgent struct {
	Call
	// Request is an object {input, …}.
	Request any
}

// BeforeAgent asks before the agent, or a sub-agent, runs. Allowed: run it
// with [AgentVerdict.Request]. Not allowed: when [AgentVerdict.Response] is set,
// use that in place of the run, else fail the run with the reason.
func (c *Client) BeforeAgent(ctx context.Context, p BeforeAgent) (AgentVerdict, error) {
	q := c.query(protocol.StageBeforeAgent, p.Call)
	q.subject.addObject("request", p.Request)
	r, err := c.ask(ctx, q)
	v := AgentVerdict{Answer: r.Answer, Allowed: r.passes}
	if r.passes {
		v.Request = r.final.Get("request")
	} else {
		v.Response = r.response()
	}
	return v, err
}

// SystemPrompt is a system prompt that has been put together.
type SystemPrompt struct {
	Call
	// Content is a string, or an array of blocks {type, text, …}.
	Content any
}

// SystemPrompt asks about the system prompt. Allowed: use Final, an object
// {content}; its text is [Verdict.Text]. Not allowed: end the turn.
func (c *Client) SystemPrompt(ctx context.Context, p SystemPrompt) (Verdict, error) {
	return c.content(ctx, protocol.StageSystemPrompt, p.Call, "prompt", p.Content)
}

// content asks about a subject that is an object {content}.
func (c *Client) content(ctx context.Context, stage protocol.Stage, call Call, name string, content any) (Verdict, error) {
	q := c.query(stage, call)
	q.subject.add(name, struct {
		Content any `json:"content"`
	}{content})
	r, err := c.ask(ctx, q)
	return r.verdict(name), err
}

// InjectInstructions is a round of the loop that is about to begin.
type InjectInstructions struct {
	Call
	// Request is an object about the round, or nil.
	Request any
}

// InjectInstructions asks for more context at the beginning of a round, before
// the model is called. Allowed: add [Answer.AddContext] to what the model sees.
// Not allowed: end the turn.
func (c *Client) InjectInstructions(ctx context.Context, p InjectInstructions) (Verdict, error) {
	return c.request(ctx, protocol.StageInjectInstructions, p.Call, p.Request)
}

// request asks at a stage where there is nothing to change.
func (c *Client) request(ctx context.Context, stage protocol.Stage, call Call, request any) (Verdict, error) {
	q := c.query(stage, call)
	q.subject.add("request", request)
	r, err := c.ask(ctx, q)
	return Verdict{Answer: r.Answer, Allowed: r.passes}, err
}

// BeforeLLM is a request that is about to be sent to a model.
type BeforeLLM struct {
	Call
	Model string
	// Messages is the array of messages. Required.
	Messages any
	// Tools is the array of tool definitions, or nil.
	Tools any
	// Options is an object of model options, or nil.
	Options any
}

// BeforeLLM asks before the model is called. Allowed: send what the verdict
// holds. Not allowed: when [ModelVerdict.Response] is set, use that in place of
// the model's answer, else end the turn with the reason.
func (c *Client) BeforeLLM(ctx context.Context, p BeforeLLM) (ModelVerdict, error) {
	q := c.query(protocol.StageBeforeLLM, p.Call)
	if p.Model != "" {
		q.subject.add("model", p.Model)
	}
	q.subject.add("messages", p.Messages)
	q.subject.add("tools", p.Tools)
	q.subject.add("options", p.Options)
	r, err := c.ask(ctx, q)
	v := ModelVerdict{Answer: r.Answer, Allowed: r.passes}
	if r.passes {
		if model := r.final.Get("model"); model != nil {
			v.Model = protocol.Unquote(model)
		}
		v.Messages, v.Tools, v.Options = r.final.Get("messages"), r.final.Get("tools"), r.final.Get("options")
	} else {
		v.Response = r.response()
	}
	return v, err
}

// AfterLLM is a model's answer that has just come.
type AfterLLM struct {
	Call
	// Response is an object {content, tool_calls, usage, …}.
	Response any
}

// AfterLLM asks about a model's answer. Allowed: go on with Final, the response
// as hooks have changed it. Not allowed: forget the answer, run none of its tool
// calls, and end the turn.
func (c *Client) AfterLLM(ctx context.Context, p AfterLLM) (Verdict, error) {
	q := c.query(protocol.StageAfterLLM, p.Call)
	q.subject.addObject("response", p.Response)
	r, err := c.ask(ctx, q)
	return r.verdict("response"), err
}

// BeforeTool is a tool call that is about to run.
type BeforeTool struct {
	Call
	Tool string
	// Arguments is an object; nil means {}.
	Arguments any
	// ReadOnly says whether the tool changes anything; nil means not known.
	ReadOnly *bool
	// ApproveLater leaves approval to a call of [Client.ApproveTool], so that the
	// agent can show what it waits for. Otherwise those who have to approve are
	// asked in this call, which then lasts until they have answered.
	ApproveLater bool
}

// BeforeTool asks before a tool runs, also for approval. Allowed: run
// [ToolVerdict.Tool] with [ToolVerdict.Arguments]. Not allowed: don't run it, and
// give [ToolVerdict.Result] to the model in place of its result. Look at
// [Answer.EndsTurn] then.
//
// With ApproveLater nothing is allowed yet: when [ToolVerdict.NeedsApproval] is
// set, ask [Client.ApproveTool] about the tool and arguments of the verdict.
func (c *Client) BeforeTool(ctx context.Context, p BeforeTool) (ToolVerdict, error) {
	q := c.query(protocol.StageBeforeTool, p.Call)
	q.subject.add("tool", p.Tool)
	q.subject.addObject("arguments", p.Arguments)
	if p.ReadOnly != nil {
		q.subject.add("read_only", *p.ReadOnly)
	}
	if q.approve = !p.ApproveLater; q.approve {
		q.rest.add("approve", true)
	}
	r, err := c.ask(ctx, q)
	return r.toolVerdict(p.ApproveLater), err
}

// ApproveTool is a tool call that has passed [Client.BeforeTool] with ApproveLater.
type ApproveTool struct {
	Call
	// Tool and Arguments are those of the verdict.
	Tool      string
	Arguments any
	// Asked says whether a hook asked for approval (its verb was ask). With nil
	// hookd goes by its memory, in which a call is for 5 minutes and on this
	// connection only; a call that it does not know needs approval.
	Asked *bool
}

// ApproveTool asks those who have to approve a tool call. Allowed: run
// [ToolVerdict.Tool] with [ToolVerdict.Arguments], once. Not allowed: don't run
// it, and give [ToolVerdict.Result] to the model in place of its result.
func (c *Client) ApproveTool(ctx context.Context, p ApproveTool) (ToolVerdict, error) {
	q := c.query(protocol.StageApproveTool, p.Call)
	q.subject.add("tool", p.Tool)
	q.subject.addObject("arguments", p.Arguments)
	if p.Asked != nil {
		q.rest.add("asked", *p.Asked)
	}
	q.approve = true
	r, err := c.ask(ctx, q)
	return r.toolVerdict(false), err
}

// AfterTool is a tool call that has run.
type AfterTool struct {
	Call
	// Tool and Arguments are what was run.
	Tool      string
	Arguments any
	// Result is an object {content, is_error, …}: a [Result] or a type of one's own.
	Result any
	// Duration is how long the tool ran; 0 means not known.
	Duration time.Duration
}

// AfterTool asks about a tool's result. In any case, give
// [ResultVerdict.Result] to the model; when it is not allowed, that is an error
// in place of the result, which nobody may see. Look at [Answer.EndsTurn] then.
func (c *Client) AfterTool(ctx context.Context, p AfterTool) (ResultVerdict, error) {
	q := c.query(protocol.StageAfterTool, p.Call)
	q.subject.addObject("result", p.Result)
	q.rest.add("tool", p.Tool)
	q.rest.addObject("arguments", p.Arguments)
	if p.Duration > 0 {
		q.rest.add("duration_ms", p.Duration.Milliseconds())
	}
	r, err := c.ask(ctx, q)
	v := ResultVerdict{Answer: r.Answer, Allowed: r.passes}
	if r.passes {
		v.Result = r.final.Get("result")
	} else {
		v.Result = r.refusal()
	}
	return v, err
}

// BeforeCompact is a conversation that is about to be made shorter.
type BeforeCompact struct {
	Call
	// Request is an object {trigger, tokens, …}, or nil.
	Request any
}

// BeforeCompact asks before a conversation, also a sub-agent's, is made
// shorter. Allowed: do it, with [Answer.AddContext] for the model that
// summarizes. Not allowed: leave the conversation as it is.
func (c *Client) BeforeCompact(ctx context.Context, p BeforeCompact) (Verdict, error) {
	return c.request(ctx, protocol.StageBeforeCompact, p.Call, p.Request)
}

// Stop is an agent that wants to end its loop.
type Stop struct {
	Call
	// Request is an object {reason, last_message, …}, or nil.
	Request any
}

// Stop asks when the agent is about to end its loop. Again: add
// [StopVerdict.Inject] to the messages and go on for another round. Otherwise
// stop, also when there is an error.
func (c *Client) Stop(ctx context.Context, p Stop) (StopVerdict, error) {
	q := c.query(protocol.StageStop, p.Call)
	q.subject.add("request", p.Request)
	r, err := c.ask(ctx, q)
	v := StopVerdict{Answer: r.Answer, Again: r.Action == protocol.ActionInject}
	if v.Again {
		v.Inject = r.res.Inject
	}
	return v, err
}

// Output is the agent's answer to the user.
type Output struct {
	Call
	// Content is a string, or an array of blocks {type, text, …}.
	Content any
}

// Output asks before the user sees the agent's answer. Allowed: show Final, an
// object {content}; its text is [Verdict.Text]. Not allowed: show the reason in
// its place.
func (c *Client) Output(ctx context.Context, p Output) (Verdict, error) {
	return c.content(ctx, protocol.StageOutput, p.Call, "output", p.Content)
}
