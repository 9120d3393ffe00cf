package cli_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// picoclaw is a host of hooks that behaves as PicoClaw does where it matters to
// a hook: it greets with modes, its meta is in Pascal case, its ids are
// integers, and it reads answers as a lenient Go program. A change replaces
// what there was, whole; a word that it does not know, an error and a timeout
// mean that it goes on; only an approval needs a yes.
type picoclaw struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.WriteCloser
	ended chan struct{} // nothing more comes
	log   *strings.Builder

	mu      sync.Mutex
	id      int
	waiting map[int]chan picoAnswer
	answers map[int]int // how many came, by id
}

type picoAnswer struct {
	result json.RawMessage
	err    error
}

// What it sends and reads. Its own types have no room for anything else.
type (
	picoMeta struct {
		AgentID, TurnID, ParentTurnID, SessionKey string
		Iteration                                 int
		TracePath, Source                         string
	}
	picoCall struct {
		Meta       picoMeta       `json:"meta"`
		Context    any            `json:"context,omitempty"`
		Tool       string         `json:"tool"`
		Arguments  map[string]any `json:"arguments"`
		HookResult *picoResult    `json:"hook_result,omitempty"`
	}
	picoResult struct {
		ForLLM  string `json:"for_llm"`
		ForUser string `json:"for_user"`
		IsError bool   `json:"is_error"`
	}
	picoDone struct {
		Meta      picoMeta       `json:"meta"`
		Tool      string         `json:"tool"`
		Arguments map[string]any `json:"arguments"`
		Result    *picoResult    `json:"result"`
		Duration  time.Duration  `json:"duration"`
	}
	picoMessage struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	picoRequest struct {
		Meta             picoMeta       `json:"meta"`
		Model            string         `json:"model"`
		Messages         []picoMessage  `json:"messages"`
		Tools            []any          `json:"tools"`
		Options          map[string]any `json:"options"`
		GracefulTerminal bool           `json:"graceful_terminal"`
	}
	picoResponse struct {
		Meta     picoMeta `json:"meta"`
		Model    string   `json:"model"`
		Response *struct {
			Content      string `json:"content"`
			FinishReason string `json:"finish_reason"`
		} `json:"response"`
	}
	picoDecision struct {
		Action   string          `json:"action"`
		Reason   string          `json:"reason"`
		Call     *picoCall       `json:"call"`
		Request  *picoRequest    `json:"request"`
		Response *picoResponse   `json:"response"`
		Result   json.RawMessage `json:"result"` // at before_tool of another type than at after_tool
	}
)

// mountHook starts a hook process and greets it.
func mountHook(t *testing.T, env []string, modes []string, command ...string) *picoclaw {
	t.Helper()
	p := &picoclaw{t: t, cmd: exec.Command(command[0], command[1:]...), ended: make(chan struct{}), log: &strings.Builder{}, waiting: map[int]chan picoAnswer{}, answers: map[int]int{}}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stderr = p.log
	var err error
	p.stdin, err = p.cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	go p.read(stdout)
	t.Cleanup(func() {
		p.stdin.Close()
		_ = p.cmd.Process.Kill() // if the test has not ended it
		<-p.ended
		_ = p.cmd.Wait()
		if t.Failed() {
			t.Logf("stderr of %v:\n%s", command, p.log)
		}
	})
	result, err := p.call("hook.hello", map[string]any{"name": "hookd", "version": 1, "modes": modes}, 5*time.Second)
	require.NoError(t, err, "the hook can't be mounted")
	require.JSONEq(t, `{"ok":true,"name":"hookd"}`, string(result))
	return p
}

// unmount closes the hook's stdin and returns how it exited.
func (p *picoclaw) unmount() error {
	require.NoError(p.t, p.stdin.Close())
	<-p.ended
	return p.cmd.Wait()
}

func (p *picoclaw) read(stdout io.Reader) {
	defer close(p.ended)
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 1<<20) // a longer line is the last it reads
	for lines.Scan() {
		var m struct {
			ID     int
			Method string
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		if json.Unmarshal(lines.Bytes(), &m) != nil {
			continue
		}
		a := picoAnswer{result: m.Result}
		if m.Error != nil {
			a.err = errors.New(m.Error.Message)
		}
		p.mu.Lock()
		p.answers[m.ID]++
		if w := p.waiting[m.ID]; w != nil {
			w <- a
			delete(p.waiting, m.ID)
		}
		p.mu.Unlock()
	}
}

// send writes a request and returns where its answer will be.
func (p *picoclaw) send(method string, params any) chan picoAnswer {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.id++
	answer := make(chan picoAnswer, 1)
	p.waiting[p.id] = answer
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": p.id, "method": method, "params": params})
	require.NoError(p.t, err)
	_, err = p.stdin.Write(append(line, '\n'))
	require.NoError(p.t, err)
	return answer
}

func (p *picoclaw) call(method string, params any, limit time.Duration) (json.RawMessage, error) {
	select {
	case a := <-p.send(method, params):
		return a.result, a.err
	case <-time.After(limit):
		return nil, errors.New("timeout")
	}
}

func (p *picoclaw) event(kind string, payload any) {
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "method": "hook.runtime_event", "params": map[string]any{
		"id": "evt-1", "kind": kind, "time": time.Now(), "source": map[string]any{"component": "agent", "name": "main"},
		"scope": map[string]any{"agent_id": "main", "session_key": "s-1", "turn_id": "t-1"}, "severity": "info", "payload": payload,
	}})
	require.NoError(p.t, err)
	_, err = p.stdin.Write(append(line, '\n'))
	require.NoError(p.t, err)
}

func meta(path string) picoMeta {
	return picoMeta{AgentID: "main", TurnID: "t-1", SessionKey: "s-1", Iteration: 1, TracePath: path, Source: "runTurn"}
}

// decide asks an interceptor. When there is no readable answer it goes on.
func (p *picoclaw) decide(method string, params any) picoDecision {
	result, err := p.call(method, params, 5*time.Second)
	var d picoDecision
	if err != nil || json.Unmarshal(result, &d) != nil {
		return picoDecision{}
	}
	return d
}

// tool takes a tool call through the hook and says what became of it.
func (p *picoclaw) tool(tool string, arguments map[string]any, run func(string, map[string]any) picoResult) string {
	call := picoCall{Meta: meta("turn.tool.before"), Context: map[string]any{"inbound": map[string]any{"channel": "cli", "chat_id": "c-1"}}, Tool: tool, Arguments: maps.Clone(arguments)}
	d := p.decide("hook.before_tool", call)
	switch d.Action {
	case "", "continue", "modify":
		if d.Call != nil {
			call = *d.Call
		}
	case "respond":
		var result picoResult
		if json.Unmarshal(d.Result, &result) == nil {
			return "responded: " + result.ForLLM
		}
	case "deny_tool":
		return "denied by hook: " + d.Reason
	case "abort_turn", "hard_abort":
		return d.Action
	}
	call.Meta = meta("turn.tool.approve")
	result, err := p.call("hook.approve_tool", call, 60*time.Second)
	var approval struct {
		Approved bool
		Reason   string
	}
	if err != nil || json.Unmarshal(result, &approval) != nil || !approval.Approved {
		return "denied by approval hook: " + approval.Reason
	}
	p.event("agent.tool.exec_start", map[string]any{"Tool": call.Tool, "Arguments": call.Arguments})
	said := run(call.Tool, call.Arguments)
	done := picoDone{Meta: meta("turn.tool.after"), Tool: call.Tool, Arguments: call.Arguments, Result: &said, Duration: 15 * time.Millisecond}
	d = p.decide("hook.after_tool", done)
	switch d.Action {
	case "", "continue", "modify":
		if d.Result != nil {
			var changed picoDone
			if json.Unmarshal(d.Result, &changed) != nil || changed.Result == nil {
				return "lost its result"
			}
			done = changed
		}
	case "abort_turn", "hard_abort":
		return d.Action
	}
	return fmt.Sprintf("%s said %q to the model and %q to the user", done.Tool, done.Result.ForLLM, done.Result.ForUser)
}

// model takes a model call through the hook and says what the model was asked
// and what it answered.
func (p *picoclaw) model(prompt, reply string) string {
	req := picoRequest{Meta: meta("turn.llm.request"), Model: "m", Messages: []picoMessage{{"user", prompt}}, Options: map[string]any{"max_tokens": 4096}}
	d := p.decide("hook.before_llm", req)
	switch d.Action {
	case "abort_turn", "hard_abort":
		return d.Action
	}
	if d.Request != nil {
		req = *d.Request
	}
	resp := picoResponse{Meta: meta("turn.llm.response"), Model: req.Model}
	require.NoError(p.t, json.Unmarshal(fmt.Appendf(nil, `{"content":%q,"finish_reason":"stop"}`, reply), &resp.Response))
	d = p.decide("hook.after_llm", resp)
	switch d.Action {
	case "abort_turn", "hard_abort":
		return d.Action
	}
	if d.Response != nil {
		resp = *d.Response
	}
	asked := ""
	for _, m := range req.Messages {
		asked += m.Content
	}
	if resp.Response == nil {
		return "lost its response"
	}
	return fmt.Sprintf("%s(max_tokens %v, session %s) was asked %q and said %q", req.Model, req.Options["max_tokens"], req.Meta.SessionKey, asked, resp.Response.Content)
}
