package hook

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/protocol"
)

// recorder keeps what the typed helpers hand over.
type recorder struct {
	call     *ToolCall
	done     *ToolResult
	request  *ModelRequest
	response *ModelResponse
}

func (r *recorder) BeforeTool(_ context.Context, c *ToolCall) (protocol.Decision, error) {
	r.call = c
	return Deny("no %s", c.Tool), nil
}

func (r *recorder) AfterTool(_ context.Context, d *ToolResult) (protocol.Decision, error) {
	r.done = d
	return Modify(map[string]any{"content": "***", "a": 1})
}

func (r *recorder) BeforeLLM(_ context.Context, m *ModelRequest) (protocol.Decision, error) {
	r.request = m
	return Respond(map[string]any{"content": "cached"})
}

func (r *recorder) AfterLLM(_ context.Context, m *ModelResponse) (protocol.Decision, error) {
	r.response = m
	return Ask("sure?"), fmt.Errorf("broken")
}

func TestTyped(t *testing.T) {
	hook := &recorder{}
	roles, err := RolesOf(hook)
	require.NoError(t, err)
	intercept := func(stage protocol.Stage, params string) (protocol.Decision, error) {
		return roles.Interceptor.Intercept(t.Context(), request(t, stage, params))
	}

	d, err := intercept(protocol.StageBeforeTool, `{"tool":"b\u0061sh","arguments":{ "n":9007199254740993,"s":"x" },"read_only":true}`)
	require.NoError(t, err)
	require.Equal(t, protocol.Decision{Action: protocol.ActionDeny, Reason: "no bash"}, d)
	require.Equal(t, "bash", hook.call.Tool)
	require.Equal(t, `{ "n":9007199254740993,"s":"x" }`, string(hook.call.Arguments), "byte for byte")
	require.True(t, hook.call.ReadOnly)
	var args struct {
		N int64  `json:"n"`
		S string `json:"S"`
	}
	require.NoError(t, hook.call.Decode(&args))
	require.EqualValues(t, 9007199254740993, args.N)
	require.Empty(t, args.S, "names are matched exactly")
	_, err = intercept(protocol.StageBeforeTool, `{"tool":"t","arguments":{}}`)
	require.NoError(t, err)
	require.False(t, hook.call.ReadOnly)

	d, err = intercept(protocol.StageAfterTool, `{"result":{"content":"secret","is_error":true},"tool":"t","arguments":{"a":1},"duration_ms":1.5}`)
	require.NoError(t, err)
	require.Equal(t, `{"action":"modify","result":{"a":1,"content":"***"}}`, string(d.AppendJSON(nil, hook.done.Request.Stage)))
	require.Equal(t, "t", hook.done.Tool)
	require.Equal(t, `{"a":1}`, string(hook.done.Arguments))
	require.True(t, hook.done.IsError)
	require.Equal(t, 1500*time.Microsecond, hook.done.Duration)
	require.Equal(t, "secret", hook.done.Text())
	for ms, want := range map[string]time.Duration{"0": 0, "null": 0, "-5": 0, "1e300": 9e12 * time.Millisecond} {
		_, err = intercept(protocol.StageAfterTool, `{"result":{},"duration_ms":`+ms+`}`)
		require.NoError(t, err)
		require.Equal(t, want, hook.done.Duration, ms)
		require.Empty(t, hook.done.Tool)
		require.False(t, hook.done.IsError)
		require.Empty(t, hook.done.Text())
	}

	d, err = intercept(protocol.StageBeforeLLM, `{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"text","text":"a"}]},{"role":"tool"}],"tools":[1],"options":{"x":2}}`)
	require.NoError(t, err)
	require.Equal(t, `{"action":"respond","response":{"content":"cached"}}`, string(d.AppendJSON(nil, hook.request.Request.Stage)))
	require.Equal(t, "m", hook.request.Model)
	require.Equal(t, `[1] {"x":2}`, string(hook.request.Tools)+" "+string(hook.request.Options))
	messages, err := hook.request.DecodeMessages()
	require.NoError(t, err)
	require.Len(t, messages, 3)
	require.Equal(t, "user: hi", messages[0].Role+": "+messages[0].Text())
	require.Equal(t, "assistant: a", messages[1].Role+": "+messages[1].Text())
	require.Empty(t, messages[2].Text())
	_, err = intercept(protocol.StageBeforeLLM, `{"messages":[7]}`)
	require.NoError(t, err)
	require.Empty(t, hook.request.Model)
	require.Nil(t, hook.request.Tools)
	_, err = hook.request.DecodeMessages()
	require.Error(t, err)

	_, err = intercept(protocol.StageAfterLLM, `{"response":{"content":"hello"}}`)
	require.EqualError(t, err, "broken")
	require.Equal(t, "hello", hook.response.Text())

	d, err = intercept(protocol.StageStop, `{}`)
	require.NoError(t, err)
	require.Equal(t, Continue(), d, "a stage that the helpers do not have")
}

// A guard that reads the text must see all of it, whatever stands beside it.
func TestText(t *testing.T) {
	for content, want := range map[string]string{
		`"plain"`:    "plain",
		`"\u0061\n"`: "a\n",
		`[]`:         "",
		`null`:       "",
		`[{"type":"text","text":"a"},{"type":"image","data":"…"},{"text":"b"}]`: "ab",
		`[{"type":"text","text":"secret"},{"type":"odd","text":5}]`:             "secret",
		`[{"type":"text","text":"secret"},7,null,"bare",[{"text":"in"}]]`:       "secretbare",
	} {
		require.Equal(t, want, (&ToolResult{Result: []byte(`{"content":` + content + `}`)}).Text(), content)
		require.Equal(t, want, (&ModelResponse{Response: []byte(`{"content":` + content + `}`)}).Text(), content)
		require.Equal(t, want, (&Message{Content: []byte(content)}).Text(), content)
	}
	require.Empty(t, (&Message{}).Text())
}

// A helper that is asked at a stage of the other helper lets it pass.
func TestTypedHalves(t *testing.T) {
	for _, v := range []any{NoTool{}, NoLLM{}} {
		roles, err := RolesOf(v)
		require.NoError(t, err)
		for stage, params := range map[protocol.Stage]string{
			protocol.StageBeforeTool: `{"tool":"t","arguments":{}}`, protocol.StageAfterTool: `{"result":{}}`,
			protocol.StageBeforeLLM: `{"messages":[]}`, protocol.StageAfterLLM: `{"response":{}}`,
		} {
			d, err := roles.Interceptor.Intercept(t.Context(), request(t, stage, params))
			require.NoError(t, err)
			require.Equal(t, Continue(), d)
		}
	}
}

func TestModifyWithWhatIsNoJSON(t *testing.T) {
	_, err := Modify(make(chan int))
	require.Error(t, err)
	_, err = Respond(func() {})
	require.Error(t, err)
}
