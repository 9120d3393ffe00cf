package client_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/client"
	"github.com/hookd/hookd/protocol"
)

// Each row asks once: what hookd is sent, what it answers, and what the agent
// is given.
func TestStages(t *testing.T) {
	all := client.Call{
		Meta:    client.Meta{SessionID: "s", TurnID: "t", Iteration: 2, Native: map[string]any{"x": 1}},
		Context: json.RawMessage(`{ "big": 9007199254740993 }`), CallID: "c",
		State: map[string]jsontext.Value{"k": jsontext.Value(`[1]`)}, DryRun: true, Trail: true,
	}
	const everything = `"meta":{"session_id":"s","turn_id":"t","iteration":2,"native":{"x":1}},"context":{"big":9007199254740993},"call_id":"c","state":{"k":[1]},"dry_run":true,"trail":true`
	raw := func(s string) jsontext.Value { return jsontext.Value(s) }
	type got = any
	tests := []struct {
		name   string
		ask    func(context.Context, *client.Client) (got, error)
		stage  protocol.Stage
		params string
		answer string
		want   got
	}{
		{
			"user message", func(ctx context.Context, c *client.Client) (got, error) {
				return c.UserMessage(ctx, client.UserMessage{Call: all, Content: "hi"})
			},
			protocol.StageUserMessage, `{` + everything + `,"message":{"role":"user","content":"hi"}}`,
			`{"action":"continue","generation":3,"warnings":["w"],"add_context":"more","state":{"k":[1,2]},"jump_to":"plan",
			  "degraded":[{"hook":"h","outcome":"timeout","detail":"5 s"}],"trail":[{"hook":"g","outcome":"continue","action":"continue","duration_us":1500}]}`,
			client.Verdict{Allowed: true, Final: raw(`{"role":"user","content":"hi"}`), Answer: client.Answer{
				Action: "continue", Generation: 3, Warnings: []string{"w"}, AddContext: []string{"more"},
				State: map[string]jsontext.Value{"k": raw(`[1,2]`)}, JumpTo: "plan",
				Degraded: []protocol.Degraded{{Hook: "h", Outcome: "timeout", Detail: "5 s"}},
				Trail:    []protocol.Step{{Hook: "g", Outcome: "continue", Action: "continue", Duration: 1500 * time.Microsecond}},
			}},
		},
		{
			"user message denied", func(ctx context.Context, c *client.Client) (got, error) {
				return c.UserMessage(ctx, client.UserMessage{Role: "customer", Content: []map[string]string{{"type": "text", "text": "a"}}})
			},
			protocol.StageUserMessage, `{"message":{"role":"customer","content":[{"text":"a","type":"text"}]}}`,
			`{"action":"deny","reason":"no","decided_by":"guard"}`,
			client.Verdict{Answer: client.Answer{Action: "deny", Reason: "no", DecidedBy: "guard"}},
		},
		{
			"before agent", func(ctx context.Context, c *client.Client) (got, error) {
				return c.BeforeAgent(ctx, client.BeforeAgent{Request: struct {
					Input string `json:"input"`
				}{"x"}})
			},
			protocol.StageBeforeAgent, `{"request":{"input":"x"}}`, `{"action":"modify","request":{"input":"y","z":1.50}}`,
			client.AgentVerdict{Allowed: true, Request: raw(`{"input":"y","z":1.50}`), Answer: client.Answer{Action: "modify"}},
		},
		{
			"before agent answered", func(ctx context.Context, c *client.Client) (got, error) {
				return c.BeforeAgent(ctx, client.BeforeAgent{})
			},
			protocol.StageBeforeAgent, `{"request":{}}`, `{"action":"respond","response":{}}`,
			client.AgentVerdict{Response: raw(`{}`), Answer: client.Answer{Action: "respond"}},
		},
		{
			"system prompt", func(ctx context.Context, c *client.Client) (got, error) {
				return c.SystemPrompt(ctx, client.SystemPrompt{Content: "a <b> & c"})
			},
			protocol.StageSystemPrompt, `{"prompt":{"content":"a <b> & c"}}`, `{"action":"modify","prompt":{"content":"d"}}`,
			client.Verdict{Allowed: true, Final: raw(`{"content":"d"}`), Answer: client.Answer{Action: "modify"}},
		},
		{
			"inject instructions", func(ctx context.Context, c *client.Client) (got, error) {
				return c.InjectInstructions(ctx, client.InjectInstructions{})
			},
			protocol.StageInjectInstructions, `{}`, `{"action":"continue","add_context":["a","b"]}`,
			client.Verdict{Allowed: true, Answer: client.Answer{Action: "continue", AddContext: []string{"a", "b"}}},
		},
		{
			"inject instructions aborted", func(ctx context.Context, c *client.Client) (got, error) {
				return c.InjectInstructions(ctx, client.InjectInstructions{Request: map[string]any{"round": 3}})
			},
			protocol.StageInjectInstructions, `{"request":{"round":3}}`, `{"action":"abort_turn","reason":"enough"}`,
			client.Verdict{Answer: client.Answer{Action: "abort_turn", Reason: "enough"}},
		},
		{
			"before llm", func(ctx context.Context, c *client.Client) (got, error) {
				return c.BeforeLLM(ctx, client.BeforeLLM{Model: "m", Messages: raw(`[{"role":"user"}]`), Tools: []int{}, Options: map[string]any{"t": 0.5}})
			},
			protocol.StageBeforeLLM, `{"model":"m","messages":[{"role":"user"}],"tools":[],"options":{"t":0.5}}`, `{"action":"continue"}`,
			client.ModelVerdict{
				Allowed: true, Model: "m", Messages: raw(`[{"role":"user"}]`), Tools: raw(`[]`), Options: raw(`{"t":0.5}`),
				Answer: client.Answer{Action: "continue"},
			},
		},
		{
			"before llm, tools taken away", func(ctx context.Context, c *client.Client) (got, error) {
				return c.BeforeLLM(ctx, client.BeforeLLM{Messages: []string{}, Tools: []int{1}})
			},
			protocol.StageBeforeLLM, `{"messages":[],"tools":[1]}`, `{"action":"modify","request":{"messages":[1],"model":"n"}}`,
			client.ModelVerdict{Allowed: true, Model: "n", Messages: raw(`[1]`), Answer: client.Answer{Action: "modify"}},
		},
		{
			"before llm answered", func(ctx context.Context, c *client.Client) (got, error) {
				return c.BeforeLLM(ctx, client.BeforeLLM{Messages: []string{}})
			},
			protocol.StageBeforeLLM, `{"messages":[]}`, `{"action":"respond","response":{"content":"cached"},"request":{"messages":[1]}}`,
			client.ModelVerdict{Response: raw(`{"content":"cached"}`), Answer: client.Answer{Action: "respond"}},
		},
		{
			"after llm", func(ctx context.Context, c *client.Client) (got, error) {
				return c.AfterLLM(ctx, client.AfterLLM{Response: map[string]any{"content": "x"}})
			},
			protocol.StageAfterLLM, `{"response":{"content":"x"}}`, `{"action":"continue"}`,
			client.Verdict{Allowed: true, Final: raw(`{"content":"x"}`), Answer: client.Answer{Action: "continue"}},
		},
		{
			"after llm withheld", func(ctx context.Context, c *client.Client) (got, error) {
				return c.AfterLLM(ctx, client.AfterLLM{Response: map[string]any{"content": "x"}})
			},
			protocol.StageAfterLLM, `{"response":{"content":"x"}}`, `{"action":"hard_abort","reason":"canary"}`,
			client.Verdict{Answer: client.Answer{Action: "hard_abort", Reason: "canary"}},
		},
		{
			"before tool, allow", func(ctx context.Context, c *client.Client) (got, error) {
				return c.BeforeTool(ctx, client.BeforeTool{Call: client.Call{CallID: "1"}, Tool: "ls", ReadOnly: new(true)})
			},
			protocol.StageBeforeTool, `{"call_id":"1","approve":true,"tool":"ls","arguments":{},"read_only":true}`,
			`{"action":"allow","approval":{"approved":true,"by":"rule","digest":"DIGEST"}}`,
			client.ToolVerdict{
				Allowed: true, Tool: "ls", Arguments: raw(`{}`), Answer: client.Answer{Action: "allow"},
				Approval: &protocol.ApprovalResult{Approved: true, By: "rule", Digest: "509479f87f09a0449d318ac70f6b80a36596581b0f2462f5e9fe8a637c06bec6"},
			},
		},
		{
			"before tool, refused by a person", func(ctx context.Context, c *client.Client) (got, error) {
				return c.BeforeTool(ctx, client.BeforeTool{Tool: "rm", Arguments: map[string]string{"path": "/"}})
			},
			protocol.StageBeforeTool, `{"approve":true,"tool":"rm","arguments":{"path":"/"}}`,
			`{"action":"deny_tool","reason":"denied by human: no","decided_by":"human","approval":{"approved":false,"reason":"denied by human: no","by":"ann","digest":"x"}}`,
			client.ToolVerdict{
				Answer:   client.Answer{Action: "deny", Reason: "denied by human: no", DecidedBy: "human"},
				Result:   raw(`{"content":"denied by human: no","is_error":true}`),
				Approval: &protocol.ApprovalResult{Reason: "denied by human: no", By: "ann", Digest: "x"},
			},
		},
		{
			"before tool, no reason given", func(ctx context.Context, c *client.Client) (got, error) {
				return c.BeforeTool(ctx, client.BeforeTool{Tool: "rm"})
			},
			protocol.StageBeforeTool, `{"approve":true,"tool":"rm","arguments":{}}`, `{"action":"deny_tool","decided_by":"guard"}`,
			client.ToolVerdict{
				Answer: client.Answer{Action: "deny", DecidedBy: "guard"},
				Result: raw(`{"content":"denied by guard","is_error":true}`),
			},
		},
		{
			"before tool answered", func(ctx context.Context, c *client.Client) (got, error) {
				return c.BeforeTool(ctx, client.BeforeTool{Tool: "ls", ApproveLater: true})
			},
			protocol.StageBeforeTool, `{"tool":"ls","arguments":{}}`, `{"action":"respond","result":{"content":"cached"}}`,
			client.ToolVerdict{Answer: client.Answer{Action: "respond"}, Result: raw(`{"content":"cached"}`)},
		},
		{
			"before tool, approval left for later", func(ctx context.Context, c *client.Client) (got, error) {
				return c.BeforeTool(ctx, client.BeforeTool{Tool: "ls", ApproveLater: true})
			},
			protocol.StageBeforeTool, `{"tool":"ls","arguments":{}}`, `{"action":"modify","call":{"tool":"cat","arguments":{"n":1e2}}}`,
			client.ToolVerdict{NeedsApproval: true, Tool: "cat", Arguments: raw(`{"n":1e2}`), Answer: client.Answer{Action: "modify"}},
		},
		{
			"before tool, asked for", func(ctx context.Context, c *client.Client) (got, error) {
				return c.BeforeTool(ctx, client.BeforeTool{Tool: "ls", ApproveLater: true})
			},
			protocol.StageBeforeTool, `{"tool":"ls","arguments":{}}`, `{"action":"ask","permission":"disk","reason":"big"}`,
			client.ToolVerdict{
				NeedsApproval: true, Permission: "disk", Tool: "ls", Arguments: raw(`{}`),
				Answer: client.Answer{Action: "ask", Reason: "big"},
			},
		},
		{
			"approve tool", func(ctx context.Context, c *client.Client) (got, error) {
				return c.ApproveTool(ctx, client.ApproveTool{Tool: "ls", Asked: new(false)})
			},
			protocol.StageApproveTool, `{"asked":false,"tool":"ls","arguments":{}}`, `{"approved":true,"reason":"fine","by":"ann","digest":"DIGEST","generation":2}`,
			client.ToolVerdict{
				Allowed: true, Tool: "ls", Arguments: raw(`{}`), Answer: client.Answer{Action: "allow", Reason: "fine", Generation: 2},
				Approval: &protocol.ApprovalResult{Approved: true, Reason: "fine", By: "ann", Digest: "509479f87f09a0449d318ac70f6b80a36596581b0f2462f5e9fe8a637c06bec6"},
			},
		},
		{
			"approve tool refused", func(ctx context.Context, c *client.Client) (got, error) {
				return c.ApproveTool(ctx, client.ApproveTool{Tool: "ls"})
			},
			protocol.StageApproveTool, `{"tool":"ls","arguments":{}}`, `{"approved":false,"reason":"nobody can be asked"}`,
			client.ToolVerdict{
				Answer:   client.Answer{Action: "deny", Reason: "nobody can be asked"},
				Result:   raw(`{"content":"nobody can be asked","is_error":true}`),
				Approval: &protocol.ApprovalResult{Reason: "nobody can be asked"},
			},
		},
		{
			"after tool", func(ctx context.Context, c *client.Client) (got, error) {
				return c.AfterTool(ctx, client.AfterTool{Tool: "ls", Arguments: raw(`{"a":1}`), Duration: 1500 * time.Microsecond, Result: client.Result{Content: "key=1"}})
			},
			protocol.StageAfterTool, `{"tool":"ls","arguments":{"a":1},"duration_ms":1,"result":{"content":"key=1","is_error":false}}`,
			`{"action":"modify","result":{"content":"key=***"}}`,
			client.ResultVerdict{Allowed: true, Result: raw(`{"content":"key=***"}`), Answer: client.Answer{Action: "modify"}},
		},
		{
			"after tool withheld", func(ctx context.Context, c *client.Client) (got, error) {
				return c.AfterTool(ctx, client.AfterTool{Tool: "ls", Result: client.Result{Content: "key=1"}})
			},
			protocol.StageAfterTool, `{"tool":"ls","arguments":{},"result":{"content":"key=1","is_error":false}}`, `{"action":"abort_turn","reason":"a key"}`,
			client.ResultVerdict{Result: raw(`{"content":"a key","is_error":true}`), Answer: client.Answer{Action: "abort_turn", Reason: "a key"}},
		},
		{
			"before compact denied", func(ctx context.Context, c *client.Client) (got, error) {
				return c.BeforeCompact(ctx, client.BeforeCompact{Request: map[string]any{"trigger": "auto"}})
			},
			protocol.StageBeforeCompact, `{"request":{"trigger":"auto"}}`, `{"action":"deny","reason":"not now"}`,
			client.Verdict{Answer: client.Answer{Action: "deny", Reason: "not now"}},
		},
		{
			"stop", func(ctx context.Context, c *client.Client) (got, error) {
				return c.Stop(ctx, client.Stop{Request: map[string]any{"reason": "done"}})
			},
			protocol.StageStop, `{"request":{"reason":"done"}}`, `{"action":"continue"}`,
			client.StopVerdict{Answer: client.Answer{Action: "continue"}},
		},
		{
			"stop, once more", func(ctx context.Context, c *client.Client) (got, error) {
				return c.Stop(ctx, client.Stop{})
			},
			protocol.StageStop, `{}`, `{"action":"inject","inject":{"role":"user","content":"run the tests"}}`,
			client.StopVerdict{
				Again: true, Inject: []jsontext.Value{raw(`{"role":"user","content":"run the tests"}`)}, Answer: client.Answer{Action: "inject"},
			},
		},
		{
			"stop, aborted with a message", func(ctx context.Context, c *client.Client) (got, error) {
				return c.Stop(ctx, client.Stop{})
			},
			protocol.StageStop, `{}`, `{"action":"abort_turn","inject":{"role":"user","content":"x"}}`,
			client.StopVerdict{Answer: client.Answer{Action: "abort_turn"}},
		},
		{
			"output", func(ctx context.Context, c *client.Client) (got, error) {
				return c.Output(ctx, client.Output{Content: "bye"})
			},
			protocol.StageOutput, `{"output":{"content":"bye"}}`, `{"action":"continue","from_a_newer_hookd":1}`,
			client.Verdict{Allowed: true, Final: raw(`{"content":"bye"}`), Answer: client.Answer{Action: "continue"}},
		},
	}
	stages := map[protocol.Stage]bool{}
	for _, tt := range tests {
		stages[tt.stage] = true
		t.Run(tt.name, func(t *testing.T) {
			h := &hookd{answer: always(tt.answer)}
			c := dial(t, h, client.Options{})
			got, err := tt.ask(t.Context(), c)
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
			require.Equal(t, []string{tt.params}, h.seen("hook."+string(tt.stage)))
		})
	}
	require.Len(t, stages, len(protocol.Stages()), "every stage has a row")
}

func TestEnds(t *testing.T) {
	for action, want := range map[protocol.Action][2]bool{
		"": {false, false}, "deny": {false, false}, "continue": {false, false}, "abort_turn": {true, false}, "hard_abort": {true, true},
	} {
		a := client.Answer{Action: action}
		require.Equal(t, want, [2]bool{a.EndsTurn(), a.EndsRun()}, "%s", action)
	}
}

func TestText(t *testing.T) {
	for final, want := range map[string]string{
		`{"role":"user","content":"hi"}`: "hi",
		`{"content":[{"type":"text","text":"a"},{"type":"image","data":"x"},{"type":"text","text":"b"}]}`: "ab",
		`{"content":7}`: "",
		``:              "",
	} {
		v := client.Verdict{Final: jsontext.Value(final)}
		require.Equal(t, want, v.Text(), final)
	}
}

// What hookd could not read is not sent as it is, and the agent goes on with
// what was judged.
func TestBadTextIsReplaced(t *testing.T) {
	h := &hookd{}
	c := dial(t, h, client.Options{})
	for _, args := range []any{
		map[string]any{"cmd": "a\xffb"},
		json.RawMessage(`{"cmd":"a\udead` + `b"}`),
		jsontext.Value("{\"cmd\":\"a\xffb\"}"),
	} {
		v, err := c.BeforeTool(t.Context(), client.BeforeTool{Tool: "bash", Arguments: args})
		require.NoError(t, err)
		require.True(t, v.Allowed)
		require.Equal(t, `{"cmd":"a`+"\uFFFD"+`b"}`, string(v.Arguments))
	}
	sent := h.seen("hook.before_tool")
	require.Len(t, slices.Compact(sent), 1)
	require.Contains(t, sent[0], "a\uFFFDb")
}

func TestWhatCantBeSentIsNotAllowed(t *testing.T) {
	h := &hookd{}
	c := dial(t, h, client.Options{})
	for name, args := range map[string]any{
		"a name twice":              json.RawMessage(`{"a":1,"a":2}`),
		"a name twice, when mended": map[string]int{"\xff": 1, "\xfe": 2},
		"no JSON":                   json.RawMessage(`{"a":`),
		"no JSON type":              map[string]any{"f": func() {}},
	} {
		v, err := c.BeforeTool(t.Context(), client.BeforeTool{Tool: "bash", Arguments: args})
		require.ErrorContains(t, err, "ask hookd: before_tool: arguments: ", name)
		require.False(t, v.Allowed, name)
		require.Contains(t, string(v.Result), "is_error", name)
	}
	require.Empty(t, h.seen("hook.before_tool"))
}

// The two steps of an approval that the agent shows meanwhile.
func TestApproveLater(t *testing.T) {
	h := &hookd{}
	c := dial(t, h, client.Options{})
	v, err := c.BeforeTool(t.Context(), client.BeforeTool{Tool: "bash", Arguments: map[string]any{"n": 1}, ApproveLater: true})
	require.NoError(t, err)
	require.False(t, v.Allowed)
	require.True(t, v.NeedsApproval)
	v, err = c.ApproveTool(t.Context(), client.ApproveTool{Tool: v.Tool, Arguments: v.Arguments})
	require.NoError(t, err)
	require.True(t, v.Allowed)
	require.Equal(t, `{"n":1}`, string(v.Arguments))
}
