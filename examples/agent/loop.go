package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/client"
	"github.com/hookd/hookd/protocol"
)

// maxRounds ends a turn that hooks, or the model, would let go on for ever.
const maxRounds = 20

// agent is one session.
type agent struct {
	hooks *client.Client
	model *model
	tools *tools
	out   transcript

	meta    client.Meta
	history []any                     // messages, without the system prompt
	context []string                  // what hooks said for the model and it has not read yet
	state   map[string]jsontext.Value // what hooks of this turn left for later ones
}

// message is one of the conversation.
type message struct {
	Role       string         `json:"role"`
	Content    jsontext.Value `json:"content,omitzero"` // a string, or blocks {type, text, …}
	ToolCalls  []toolCall     `json:"tool_calls,omitzero"`
	ToolCallID string         `json:"tool_call_id,omitzero"`
	IsError    bool           `json:"is_error,omitzero"`
}

// ended is the error of a turn that may not go on.
type ended struct {
	stage  string
	answer client.Answer
}

func (e *ended) Error() string { return e.stage + ": " + e.answer.Reason }

// heed prints what hookd said, and keeps what it left for the model and for
// later hooks. Unless the turn may go on, it returns why not.
func (a *agent) heed(stage string, mayGoOn bool, answer client.Answer, err error) error {
	a.out.answer(stage, answer, err)
	a.context = append(a.context, answer.AddContext...)
	maps.Copy(a.state, answer.State)
	if mayGoOn {
		return nil
	}
	return &ended{stage, answer}
}

func (a *agent) call() client.Call { return client.Call{Meta: a.meta, State: a.state} }

// turn works on one message of the user. It returns false when the session is
// over.
func (a *agent) turn(ctx context.Context, system string, t turn) bool {
	a.out.line("user", "%s", t.User)
	a.model.answers = t.Answers
	a.state, a.context = map[string]jsontext.Value{}, nil
	a.meta.Iteration = 0
	before := len(a.history)

	err := a.work(ctx, system, t.User)
	if err == nil {
		return true
	}
	a.out.line("turn ended", "%v", err)
	// Hookd sees the end of a turn at stop only, and this one did not get there.
	a.hooks.Event(client.Event{Kind: protocol.EventTurnEnd, Meta: a.meta, Payload: map[string]any{"status": "aborted", "reason": err.Error()}})
	if e, ok := errors.AsType[*ended](err); ok && e.answer.EndsRun() {
		a.out.line("taken back", "%d messages", len(a.history)-before)
		a.history = a.history[:before]
		return false
	}
	return ctx.Err() == nil
}

// work is the order of a run.
func (a *agent) work(ctx context.Context, system, text string) error {
	said, err := a.hooks.UserMessage(ctx, client.UserMessage{Call: a.call(), Content: text})
	if err := a.heed("user_message", said.Allowed, said.Answer, err); err != nil {
		return err
	}
	user, err := decode[message](said.Final)
	if err != nil {
		return err
	}

	may, err := a.hooks.BeforeAgent(ctx, client.BeforeAgent{Call: a.call(), Request: map[string]any{"input": user.Content}})
	instead := may.Response != nil // a hook answers in place of the agent
	if err := a.heed("before_agent", may.Allowed || instead, may.Answer, err); err != nil {
		return err
	}
	if instead {
		r, err := decode[response](may.Response) // {} means to skip the agent
		if err != nil {
			return err
		}
		return a.show(ctx, r.Content)
	}
	request, err := decode[struct {
		Input jsontext.Value `json:"input"`
	}](may.Request)
	if err != nil {
		return err
	}
	a.history = append(a.history, message{Role: user.Role, Content: request.Input})

	prompt, err := a.hooks.SystemPrompt(ctx, client.SystemPrompt{Call: a.call(), Content: system})
	if err := a.heed("system_prompt", prompt.Allowed, prompt.Answer, err); err != nil {
		return err
	}
	first, err := decode[message](prompt.Final)
	if err != nil {
		return err
	}
	first.Role = "system"

	for a.meta.Iteration = 1; a.meta.Iteration <= maxRounds; a.meta.Iteration++ {
		answer, err := a.round(ctx, first)
		if err != nil {
			return err
		}
		if len(answer.ToolCalls) > 0 {
			continue
		}
		stop, err := a.hooks.Stop(ctx, client.Stop{Call: a.call(), Request: map[string]any{"reason": "completed", "last_message": answer.Content}})
		if err := a.heed("stop", !stop.EndsTurn(), stop.Answer, err); err != nil {
			return err
		}
		if !stop.Again {
			return a.show(ctx, answer.Content)
		}
		for _, m := range stop.Inject {
			a.out.line("injected", "%s", m)
			a.history = append(a.history, m)
		}
	}
	return fmt.Errorf("still not done after %d rounds", maxRounds)
}

// round calls the model once, and runs the tools that it asks for.
func (a *agent) round(ctx context.Context, system message) (response, error) {
	v, err := a.hooks.InjectInstructions(ctx, client.InjectInstructions{Call: a.call()})
	if err := a.heed("inject_instructions", v.Allowed, v.Answer, err); err != nil {
		return response{}, err
	}
	if m := a.takeContext(); m != nil {
		a.history = append(a.history, m)
	}
	answer, err := a.ask(ctx, append([]any{system}, a.history...))
	if err != nil {
		return response{}, err
	}
	a.history = append(a.history, message{Role: "assistant", Content: answer.Content, ToolCalls: answer.ToolCalls})
	var end error
	for _, call := range answer.ToolCalls {
		// Models want a result for every call, also when the turn ends before it.
		result := jsontext.Value(`{"content":"not run: the turn has ended","is_error":true}`)
		if end == nil {
			result, end = a.tool(ctx, call)
		}
		r, err := decode[message](result)
		if err != nil {
			return response{}, err
		}
		a.history = append(a.history, message{Role: "tool", ToolCallID: call.ID, Content: r.Content, IsError: r.IsError})
	}
	return answer, end
}

// takeContext makes a message of what hooks said for the model; nil when they
// said nothing. It is not put between a tool call and its result.
func (a *agent) takeContext() any {
	if len(a.context) == 0 {
		return nil
	}
	m := message{Role: "system", Content: protocol.Quote(strings.Join(a.context, "\n"))}
	a.context = nil
	return m
}

// ask returns the model's answer to messages, or a hook's in its place. What
// hooks make of the messages is sent and not kept: every request is judged anew.
func (a *agent) ask(ctx context.Context, messages []any) (response, error) {
	may, err := a.hooks.BeforeLLM(ctx, client.BeforeLLM{Call: a.call(), Model: a.model.name, Messages: messages, Tools: a.tools.definitions()})
	instead := may.Response != nil
	if err := a.heed("before_llm", may.Allowed || instead, may.Answer, err); err != nil {
		return response{}, err
	}
	if instead {
		a.out.line("hook for model", "%s", may.Response)
		return decode[response](may.Response)
	}
	sent, err := decode[[]jsontext.Value](may.Messages)
	if err != nil {
		return response{}, err
	}
	if m := a.takeContext(); m != nil { // from before_llm itself
		raw, err := json.Marshal(m)
		if err != nil {
			return response{}, err
		}
		sent = append(sent, raw)
	}
	a.out.line("asked", "%s, with %d messages, the last: %s", may.Model, len(sent), sent[len(sent)-1])
	answer := a.model.answer(may.Model, sent, may.Tools, may.Options)
	a.out.line("model", "%s", encode(answer))

	done, err := a.hooks.AfterLLM(ctx, client.AfterLLM{Call: a.call(), Response: answer})
	if err := a.heed("after_llm", done.Allowed, done.Answer, err); err != nil {
		return response{}, err
	}
	return decode[response](done.Final)
}

// tool runs a tool call if it may, and returns the result for the model: the
// tool's own, what hooks made of it, or why there is none.
func (a *agent) tool(ctx context.Context, call toolCall) (jsontext.Value, error) {
	a.out.line("call", "%s %s", call.Name, call.Arguments)
	ask := a.call()
	ask.CallID = call.ID // joins the two steps
	may, err := a.hooks.BeforeTool(ctx, client.BeforeTool{
		Call: ask, Tool: call.Name, Arguments: call.Arguments, ReadOnly: a.tools.readOnly(call.Name),
	})
	end := a.heed("before_tool", !may.EndsTurn(), may.Answer, err)
	a.out.approval(may.Approval)
	if !may.Allowed {
		a.out.line("not run", "%s", call.Name)
		a.out.line("result", "%s", may.Result)
		return may.Result, end
	}
	a.out.line("ran", "%s %s", may.Tool, may.Arguments)
	began := time.Now()
	result := a.tools.run(ctx, may.Tool, may.Arguments)
	done, err := a.hooks.AfterTool(ctx, client.AfterTool{
		Call: ask, Tool: may.Tool, Arguments: may.Arguments, Result: result, Duration: time.Since(began),
	})
	end = a.heed("after_tool", !done.EndsTurn(), done.Answer, err)
	a.out.line("result", "%s", done.Result)
	return done.Result, end
}

// show gives the user the agent's answer, if there is one.
func (a *agent) show(ctx context.Context, content jsontext.Value) error {
	if k := content.Kind(); k == 'n' || content == nil {
		return nil
	}
	v, err := a.hooks.Output(ctx, client.Output{Call: a.call(), Content: content})
	if err := a.heed("output", v.Allowed, v.Answer, err); err != nil {
		return err
	}
	a.out.line("agent", "%s", v.Text())
	return nil
}

// decode reads what came from hookd. Hooks may have changed its form.
func decode[T any](raw jsontext.Value) (v T, err error) {
	if err := json.Unmarshal(raw, &v); err != nil {
		return v, fmt.Errorf("hooks made something unreadable: %w", err)
	}
	return v, nil
}
