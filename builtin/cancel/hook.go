package cancel

import (
	"context"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// Hook is what agents' calls and events pass: it notes them in the table, and
// stops those of cancelled sessions. At approve_tool that is a no, everywhere
// else it ends the turn.
type Hook struct{ table *Table }

// New returns the hook of a table. Several may share one.
func New(t *Table) *Hook { return &Hook{t} }

// Events are what the hook wants to be told: what a stage does not tell.
func Events() []string {
	return []string{
		"session_start", "session_end", "agent_start", "agent_end", "agent_error", "agent_timeout", "turn_start", "turn_end",
		"llm_response", "tool_error", "error",
	}
}

// Quick implements [hook.Quick].
func (*Hook) Quick() {}

// Abstains says that a session that goes on is no business of this hook.
func (*Hook) Abstains() {}

// Intercept notes the call, and ends the turn of a cancelled session.
func (h *Hook) Intercept(_ context.Context, req *protocol.Request) (protocol.Decision, error) {
	if c := h.table.call(req); c != nil {
		return protocol.Decision{Action: protocol.ActionAbortTurn, Reason: c.Text()}, nil
	}
	return protocol.Decision{}, nil
}

// Approve refuses the call of a cancelled session. About others it has no
// opinion, so that its yes is not taken for that of somebody who has looked.
func (h *Hook) Approve(_ context.Context, req *protocol.Request) (protocol.Approval, error) {
	if c := h.table.call(req); c != nil {
		return protocol.Approval{Reason: c.Text(), By: c.By}, nil
	}
	return protocol.Approval{Abstained: true}, nil
}

// Observe notes what no stage tells, and forgets sessions that are over.
func (h *Hook) Observe(_ context.Context, ev *hook.Event) error {
	h.table.event(ev.Event)
	return nil
}

// call notes a call and returns why it must not go on, or nil.
func (t *Table) call(req *protocol.Request) *Cancellation {
	id, agent := idOf(req.Meta)
	now := time.Now()
	tokens, failed := int64(-1), false
	switch req.Stage.Name {
	case protocol.StageAfterLLM:
		tokens = usage(req.Subject.Get("response"))
	case protocol.StageAfterTool:
		if result, err := protocol.ParseObject(req.Subject.Get("result")); err == nil {
			failed = string(result.Get("is_error")) == "true"
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if req.DryRun { // nothing happens in it
		if s := t.sessions[id]; s != nil {
			return s.Cancellation
		}
		return nil
	}
	s := t.enter(id, now)
	s.note(string(req.Stage.Name), agent, now)
	s.Calls[req.Stage.Name]++
	if tokens >= 0 {
		s.tokensAtStage += tokens
		s.TokensKnown = true
	}
	if failed {
		s.errorsAtStage++
	}
	if s.Cancellation != nil {
		s.Aborted++
	}
	return s.Cancellation // replaced as a whole, never changed
}

// event notes an event of an agent.
func (t *Table) event(ev *protocol.Event) {
	id, agent := idOf(ev.Meta)
	if ev.Kind == protocol.EventSessionEnd {
		t.end(id)
		return
	}
	if ev.Source != sourceAgent && !own(ev.Kind) {
		return // made of a stage that was noted already
	}
	now := time.Now()
	tokens := int64(-1)
	if ev.Kind == protocol.EventLLMResponse {
		tokens = usage(ev.Payload)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.enter(id, now)
	s.note(string(ev.Kind), agent, now)
	if tokens >= 0 {
		s.tokensInEvents += tokens
		s.TokensKnown = true
	}
	switch ev.Kind {
	case protocol.EventToolError:
		s.errorsInEvents++
	case protocol.EventAgentError, protocol.EventAgentTimeout, protocol.EventError:
		s.agentErrors++
	}
}

const sourceAgent = "agent"

// own reports whether an event is never made of a stage, so that it counts
// whoever has made it.
func own(kind protocol.EventKind) bool {
	switch kind {
	case protocol.EventAgentError, protocol.EventAgentTimeout, protocol.EventError, protocol.EventSessionStart:
		return true
	}
	return false
}

// end forgets a session that is over.
func (t *Table) end(id string) {
	t.order.Lock()
	defer t.order.Unlock()
	t.mu.Lock()
	s := t.sessions[id]
	delete(t.sessions, id)
	cancelled := s != nil && s.Cancellation != nil
	if cancelled {
		t.cancelled--
	}
	t.mu.Unlock()
	if cancelled {
		t.drop(id)
	}
}

// usage returns the tokens that an object's "usage" tells, or -1.
func usage(holder jsontext.Value) int64 {
	o, err := protocol.ParseObject(holder)
	if err != nil {
		return -1
	}
	u, err := protocol.ParseObject(o.Get("usage"))
	if err != nil {
		return -1
	}
	if n := count(u, "total_tokens"); n >= 0 {
		return n
	}
	sum, known := int64(0), false
	for _, names := range [][]string{{"input_tokens", "prompt_tokens"}, {"output_tokens", "completion_tokens"}} {
		for _, name := range names {
			if n := count(u, name); n >= 0 {
				sum += n
				known = true
				break
			}
		}
	}
	if !known {
		return -1
	}
	return sum
}

// maxTokens is more than any model uses for an answer, so that sums can't run
// over.
const maxTokens = 1 << 40

func count(u protocol.Object, name string) int64 {
	n, err := strconv.ParseInt(string(u.Get(name)), 10, 64)
	if err != nil || n < 0 || n > maxTokens {
		return -1
	}
	return n
}
