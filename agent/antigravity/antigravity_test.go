package antigravity

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/agent/agenttest"
	"github.com/hookd/hookd/agent/native"
)

var update = flag.Bool("update", false, "write what becomes of the payloads anew")

func TestGolden(t *testing.T) {
	agenttest.Golden(t, New(), "testdata/antigravity.txtar", *update)
}

// TestExactAnswers holds the bytes that the Antigravity CLI is known to read.
func TestExactAnswers(t *testing.T) {
	const call = `{"conversationId":"c","workspacePaths":["/w"],"stepIdx":3,"toolCall":{"name":"run_command","args":{"CommandLine":"ls","Cwd":"/w"}}}`
	const invocation = `{"conversationId":"c","workspacePaths":[],"invocationNum":0}`
	const ended = `{"conversationId":"c","workspacePaths":[],"terminationReason":"NO_TOOL_CALL","fullyIdle":true}`
	const ran = `{"conversationId":"c","stepIdx":3,"toolCall":{"name":"run_command","args":{"CommandLine":"ls"}},"error":""}`
	agenttest.Exactly(t, New(),
		agenttest.Exact{Event: "PreToolUse", Payload: call, Result: `{"action":"deny_tool","reason":"R"}`, Stdout: `{"decision":"deny","reason":"R"}`},
		agenttest.Exact{Event: "PreToolUse", Payload: call, Result: `{"action":"modify","call":{"tool":"run_command","arguments":{"CommandLine":"ls -l","Cwd":"/w"}}}`, Stdout: `{"decision":"allow","overwrite":{"CommandLine":"ls -l"}}`},
		agenttest.Exact{Event: "PreInvocation", Payload: invocation, Result: `{"action":"continue","add_context":["C"]}`, Stdout: `{"injectSteps":[{"ephemeralMessage":"C"}]}`},
		agenttest.Exact{Event: "PostInvocation", Payload: invocation, Result: `{"action":"continue","add_context":["C"]}`, Stdout: `{"injectSteps":[{"ephemeralMessage":"C"}]}`},
		agenttest.Exact{Event: "Stop", Payload: ended, Result: `{"action":"inject","inject":{"role":"user","content":"M"}}`, Stdout: `{"decision":"continue","reason":"M"}`},
		agenttest.Exact{Event: "PreToolUse", Payload: call, Result: `{"action":"continue"}`, Stdout: `{"decision":"allow"}`},
		agenttest.Exact{Event: "PreInvocation", Payload: invocation, Result: `{"action":"continue"}`, Stdout: `{}`},
		agenttest.Exact{Event: "PostInvocation", Payload: invocation, Result: `{"action":"continue"}`, Stdout: `{}`},
		agenttest.Exact{Event: "Stop", Payload: ended, Result: `{"action":"continue"}`, Stdout: `{}`},
		agenttest.Exact{Event: "PostToolUse", Payload: ran, Result: `{"action":"continue"}`, Stdout: `{}`},
	)
}

// TestAsk holds what becomes of an ask: force_ask, because agy answers ask by
// what its user has once allowed for always, and a denial where there is no
// verdict: agy may run the call instead.
func TestAsk(t *testing.T) {
	const call = `{"toolCall":{"name":"run_command","args":{"CommandLine":"ls"}},"stepIdx":1}`
	a := agenttest.Answer(t, New(), "PreToolUse", call, `{"action":"ask","reason":"R"}`, native.Policy{})
	require.Equal(t, `{"decision":"force_ask","reason":"R"}`, string(a.Stdout))
	require.Len(t, a.Warnings, 1, "nobody knows here whether agy's prompts are switched off")
	a = New().Unavailable("PreToolUse", native.UnavailableAsk, "gone", []byte(call))
	require.Equal(t, `{"decision":"deny","reason":"hookd gave no verdict: gone"}`, string(a.Stdout))
	a = agenttest.Answer(t, New(), "PreToolUse", call, `{"action":"ask","reason":"R","call":{"tool":"run_command","arguments":{"CommandLine":"pwd"}}}`, native.Policy{})
	require.Equal(t, `{"decision":"force_ask","reason":"R","overwrite":{"CommandLine":"pwd"}}`, string(a.Stdout))
}

// TestGateAlwaysDecides holds that a gate is never answered without a decision,
// which would shut it.
func TestGateAlwaysDecides(t *testing.T) {
	agenttest.EachAnswer(t, New(), "testdata/antigravity.txtar", func(event, name string, a native.Answer) {
		require.NotEmpty(t, a.Stdout)
		require.Zero(t, a.ExitCode)
		if event == "PreToolUse" {
			require.Contains(t, string(a.Stdout), `{"decision":"`, "%s", name)
		}
	})
	for _, event := range []string{"PreToolUse", ""} {
		require.Equal(t, `{"decision":"allow"}`, string(New().Unavailable(event, native.UnavailableContinue, "gone", nil).Stdout))
		require.Equal(t, `{"decision":"deny","reason":"hookd gave no verdict: gone"}`, string(New().Unavailable(event, native.UnavailableDefault, "gone", nil).Stdout))
	}
}

// TestEventFromShape holds which event a payload is about where the command line
// does not say it, or says one that there is not.
func TestEventFromShape(t *testing.T) {
	for payload, want := range map[string]string{
		`{"toolCall":{"name":"x","args":{}}}`:            "PreToolUse",
		`{"toolCall":{"name":"x","args":{}},"error":""}`: "PostToolUse",
		`{"terminationReason":"x"}`:                      "Stop",
		`{"fullyIdle":false}`:                            "Stop",
	} {
		for _, event := range []string{"", "PreTool"} {
			c, err := New().Read(event, []byte(payload))
			require.NoError(t, err)
			require.Equal(t, want, c.Event)
		}
		c, err := New().Read("post_invocation", []byte(payload))
		require.NoError(t, err)
		require.Equal(t, "PostInvocation", c.Row.Event, "what is registered counts")
	}
	_, err := New().Read("", []byte(`{"invocationNum":0}`))
	require.ErrorContains(t, err, "names the event")
}

func FuzzAntigravity(f *testing.F) {
	agenttest.Fuzz(f, New(),
		`{"conversationId":"c","workspacePaths":["/w"],"stepIdx":3,"toolCall":{"name":"run_command","args":{"CommandLine":"ls","Cwd":"/w"}}}`,
		`{"conversationId":"c","workspacePaths":[],"invocationNum":0}`,
		`{"conversationId":"c","workspacePaths":[],"terminationReason":"NO_TOOL_CALL","fullyIdle":true}`,
		`{"toolCall":null,"error":"x","stepIdx":1}`,
		`{"toolCall":{"name":1,"args":[]}}`,
	)
}
