package hermes

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/agent/agenttest"
	"github.com/hookd/hookd/agent/native"
)

var update = flag.Bool("update", false, "write what becomes of the payloads anew")

func TestGolden(t *testing.T) {
	agenttest.Golden(t, New(), "testdata/hermes.txtar", *update)
}

// TestExactAnswers holds the bytes that Hermes is known to read.
func TestExactAnswers(t *testing.T) {
	const call = `{"hook_event_name":"pre_tool_call","session_id":"s","cwd":"/w","tool_name":"terminal","tool_input":{"command":"ls"},"extra":{"tool_call_id":"c"}}`
	const prompt = `{"hook_event_name":"pre_llm_call","extra":{"user_message":"hi"}}`
	agenttest.Exactly(t, New(),
		agenttest.Exact{Event: "pre_tool_call", Payload: call, Result: `{"action":"deny_tool","reason":"R"}`, Stdout: `{"action":"block","message":"R"}`},
		agenttest.Exact{Event: "pre_llm_call", Payload: prompt, Result: `{"action":"continue","add_context":["C"]}`, Stdout: `{"context":"C"}`},
		agenttest.Exact{Event: "pre_tool_call", Payload: call, Result: `{"action":"continue"}`},
	)
}

// TestExitCodeIsZero holds that a denial is said in words, which every version
// reads.
func TestExitCodeIsZero(t *testing.T) {
	agenttest.EachAnswer(t, New(), "testdata/hermes.txtar", func(event, name string, a native.Answer) {
		require.Zero(t, a.ExitCode, "%s: %s", event, name)
	})
	a := New().Unavailable("", native.UnavailableDefault, "gone", []byte("noise"))
	require.Equal(t, `{"action":"block","message":"hookd gave no verdict: gone"}`, string(a.Stdout))
}

func FuzzHermes(f *testing.F) {
	agenttest.Fuzz(f, New(),
		`{"hook_event_name":"pre_tool_call","session_id":"s","cwd":"/w","tool_name":"terminal","tool_input":{"command":"ls"},"extra":{"tool_call_id":"c"}}`,
		`{"hook_event_name":"post_tool_call","tool_name":"t","extra":{"result":"[1]","duration_ms":"x"}}`,
		`{"hook_event_name":"pre_llm_call","extra":[]}`,
	)
}
