package gemini

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/agent/agenttest"
	"github.com/hookd/hookd/agent/native"
)

var update = flag.Bool("update", false, "write what becomes of the payloads anew")

func TestGolden(t *testing.T) {
	agenttest.Golden(t, New(), "testdata/gemini.txtar", *update)
}

// TestExactAnswers holds the bytes that the Gemini CLI is known to read.
func TestExactAnswers(t *testing.T) {
	const call = `{"hook_event_name":"BeforeTool","timestamp":"t","tool_name":"run_shell_command","tool_input":{"command":"ls","description":"d"}}`
	const prompt = `{"hook_event_name":"BeforeAgent","prompt":"hi"}`
	const result = `{"hook_event_name":"AfterTool","tool_name":"read_file","tool_input":{},"tool_response":{"llmContent":"x"}}`
	const model = `{"hook_event_name":"BeforeModel","llm_request":{"model":"m","messages":[{"role":"user","content":"hi"}],"config":{"temperature":0.70},"toolConfig":{"mode":"AUTO"}}}`
	const response = `{"hook_event_name":"AfterModel","llm_response":{"candidates":[{"content":{"role":"model","parts":["a",{"x":1}]},"finishReason":"STOP"}],"usageMetadata":{"n":1.0}}}`
	const started = `{"hook_event_name":"SessionStart","source":"startup"}`
	const ended = `{"hook_event_name":"AfterAgent","prompt":"hi","prompt_response":"x"}`
	const chosen = `{"hook_event_name":"BeforeToolSelection","llm_request":{"messages":[],"toolConfig":{"mode":"AUTO"}}}`
	agenttest.Exactly(t, New(),
		agenttest.Exact{Event: "BeforeTool", Payload: call, Result: `{"action":"deny_tool","reason":"R"}`, Stdout: `{"decision":"deny","reason":"R"}`},
		agenttest.Exact{Event: "BeforeAgent", Payload: prompt, Result: `{"action":"deny","reason":"R"}`, Stdout: `{"decision":"deny","reason":"R"}`},
		agenttest.Exact{Event: "BeforeTool", Payload: call, Result: `{"action":"modify","call":{"tool":"run_shell_command","arguments":{"command":"ls -l","description":"d"}}}`, Stdout: `{"hookSpecificOutput":{"hookEventName":"BeforeTool","tool_input":{"command":"ls -l"}}}`},
		agenttest.Exact{Event: "BeforeTool", Payload: call, Result: `{"action":"ask","reason":"R"}`, Stdout: `{"decision":"ask","reason":"R"}`},
		agenttest.Exact{Event: "BeforeTool", Payload: call, Result: `{"action":"allow"}`, Stdout: `{"decision":"allow"}`},
		agenttest.Exact{Event: "BeforeTool", Payload: call, Result: `{"action":"abort_turn","reason":"R"}`, Stdout: `{"continue":false,"stopReason":"R","decision":"deny","reason":"R"}`},
		agenttest.Exact{Event: "BeforeAgent", Payload: prompt, Result: `{"action":"continue","add_context":["C"]}`, Stdout: `{"hookSpecificOutput":{"hookEventName":"BeforeAgent","additionalContext":"C"}}`},
		agenttest.Exact{Event: "AfterTool", Payload: result, Result: `{"action":"continue","add_context":["C"]}`, Stdout: `{"hookSpecificOutput":{"hookEventName":"AfterTool","additionalContext":"C"}}`},
		agenttest.Exact{Event: "SessionStart", Payload: started, Result: `{"action":"continue","add_context":["C"]}`, Stdout: `{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"C"}}`},
		agenttest.Exact{Event: "AfterTool", Payload: result, Result: `{"action":"modify","result":{"content":"y"}}`, Stdout: `{"decision":"deny","reason":"y"}`},
		agenttest.Exact{Event: "AfterAgent", Payload: ended, Result: `{"action":"inject","inject":{"role":"user","content":"M"}}`, Stdout: `{"decision":"deny","reason":"M"}`},
		agenttest.Exact{Event: "AfterAgent", Payload: ended, Result: `{"action":"continue","warnings":["W"]}`, Stdout: `{"systemMessage":"W"}`},
		agenttest.Exact{Event: "BeforeModel", Payload: model, Result: `{"action":"modify","request":{"model":"m","messages":[{"role":"user","content":"ho"}],"options":{"temperature":0.70,"toolConfig":{"mode":"NONE"}}}}`, Stdout: `{"hookSpecificOutput":{"hookEventName":"BeforeModel","llm_request":{"messages":[{"role":"user","content":"ho"}],"toolConfig":{"mode":"NONE"}}}}`},
		agenttest.Exact{Event: "BeforeModel", Payload: model, Result: `{"action":"modify","request":{"model":"n","messages":[{"role":"user","content":"hi"}],"options":{"temperature":0.10,"toolConfig":{"mode":"AUTO"}}}}`, Stdout: `{"hookSpecificOutput":{"hookEventName":"BeforeModel","llm_request":{"model":"n","config":{"temperature":0.10}}}}`},
		agenttest.Exact{Event: "BeforeModel", Payload: model, Result: `{"action":"respond","response":{"content":"A"}}`, Stdout: `{"hookSpecificOutput":{"hookEventName":"BeforeModel","llm_response":{"candidates":[{"finishReason":"STOP","content":{"role":"model","parts":["A"]}}]}}}`},
		agenttest.Exact{Event: "BeforeModel", Payload: model, Result: `{"action":"respond","response":{"candidates":[]}}`, Stdout: `{"hookSpecificOutput":{"hookEventName":"BeforeModel","llm_response":{"candidates":[]}}}`},
		agenttest.Exact{Event: "AfterModel", Payload: response, Result: `{"action":"modify","response":{"content":"b","usage":{"n":1.0}}}`, Stdout: `{"hookSpecificOutput":{"hookEventName":"AfterModel","llm_response":{"candidates":[{"content":{"role":"model","parts":["b",{"x":1}]},"finishReason":"STOP"}],"usageMetadata":{"n":1.0}}}}`},
		agenttest.Exact{Event: "BeforeToolSelection", Payload: chosen, Result: `{"action":"modify","request":{"messages":[],"options":{"toolConfig":{"mode":"ANY","allowedFunctionNames":["ls"]}}}}`, Stdout: `{"hookSpecificOutput":{"hookEventName":"BeforeToolSelection","toolConfig":{"mode":"ANY","allowedFunctionNames":["ls"]}}}`},
		agenttest.Exact{Event: "BeforeTool", Payload: call, Result: `{"action":"continue"}`, Stdout: `{}`},
		agenttest.Exact{Event: "AfterAgent", Payload: ended, Result: `{"action":"continue"}`, Stdout: `{}`},
	)
}

// TestTakingOut holds that a call is not run with an argument that a hook took
// out: changed arguments are laid over the old ones.
func TestTakingOut(t *testing.T) {
	a := agenttest.Answer(t, New(), "BeforeTool", `{"tool_name":"run_shell_command","tool_input":{"command":"ls","background":true}}`,
		`{"action":"modify","call":{"tool":"run_shell_command","arguments":{"command":"ls"}}}`, native.Policy{})
	require.Contains(t, string(a.Stdout), `"decision":"deny"`)
	require.Len(t, a.Warnings, 1)
}

// TestPartsThatAreLost holds that what Gemini can't take is said.
func TestPartsThatAreLost(t *testing.T) {
	for event, tc := range map[string][2]string{
		"AfterModel":          {`{"llm_response":{"candidates":[]}}`, `{"action":"modify","response":{"content":"","usage":{"n":2}}}`},
		"BeforeToolSelection": {`{"llm_request":{"messages":[]}}`, `{"action":"modify","request":{"messages":[{"role":"user","content":"x"}]}}`},
		"BeforeModel":         {`{"llm_request":{"messages":[]}}`, `{"action":"respond","response":{"content":"A","tool_calls":[]}}`},
	} {
		a := agenttest.Answer(t, New(), event, tc[0], tc[1], native.Policy{})
		require.Len(t, a.Warnings, 1, event)
	}
}

func TestServerOfMCP(t *testing.T) {
	c, err := New().Read("BeforeTool", []byte(`{"tool_name":"mcp_a_b_c","tool_input":{},"mcp_context":{"server_name":"a_b"}}`))
	require.NoError(t, err)
	require.Equal(t, "a_b", c.Facts().Server, "and not the a that the name suggests")
}

func FuzzGemini(f *testing.F) {
	agenttest.Fuzz(f, New(),
		`{"hook_event_name":"BeforeTool","timestamp":"t","tool_name":"run_shell_command","tool_input":{"command":"ls","description":"d"}}`,
		`{"hook_event_name":"BeforeAgent","prompt":"hi"}`,
		`{"hook_event_name":"AfterTool","tool_name":"read_file","tool_input":{},"tool_response":{"llmContent":"x"}}`,
		`{"hook_event_name":"BeforeModel","llm_request":{"model":"m","messages":[{"role":"user","content":"hi"}],"config":{"temperature":0.70},"toolConfig":{"mode":"AUTO"}}}`,
		`{"hook_event_name":"AfterModel","llm_response":{"candidates":[{"content":{"role":"model","parts":["a",{"x":1}]},"finishReason":"STOP"}],"usageMetadata":{"n":1.0}}}`,
		`{"hook_event_name":"AfterModel","llm_response":{"candidates":[{"content":{"parts":"x"}},7,{"content":null}]}}`,
		`{"hook_event_name":"BeforeModel","llm_request":{"messages":[],"config":{"toolConfig":1},"toolConfig":null}}`,
	)
}
