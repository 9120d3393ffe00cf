package cline

import (
	"flag"
	"testing"

	"github.com/hookd/hookd/agent/agenttest"
)

var update = flag.Bool("update", false, "write what becomes of the payloads anew")

func TestGolden(t *testing.T) {
	agenttest.Golden(t, New(), "testdata/cline.txtar", *update)
}

// TestExactAnswers holds the bytes that Cline is known to read.
func TestExactAnswers(t *testing.T) {
	const call = `{"clineVersion":"3","hookName":"PreToolUse","taskId":"1","preToolUse":{"toolName":"execute_command","parameters":{"command":"ls"}}}`
	const result = `{"hookName":"PostToolUse","taskId":"1","postToolUse":{"toolName":"x","parameters":{},"result":"y","success":true}}`
	const prompt = `{"hookName":"UserPromptSubmit","taskId":"1","userPromptSubmit":{"prompt":"hi"}}`
	const started = `{"hookName":"TaskStart","taskId":"1"}`
	agenttest.Exactly(t, New(),
		agenttest.Exact{Event: "PreToolUse", Payload: call, Result: `{"action":"deny_tool","reason":"R"}`, Stdout: `{"cancel":true,"contextModification":"","errorMessage":"R"}`},
		agenttest.Exact{Event: "UserPromptSubmit", Payload: prompt, Result: `{"action":"deny","reason":"R"}`, Stdout: `{"cancel":true,"contextModification":"","errorMessage":"R"}`},
		agenttest.Exact{Event: "TaskStart", Payload: started, Result: `{"action":"abort_turn","reason":"R"}`, Stdout: `{"cancel":true,"contextModification":"","errorMessage":"R"}`},
		agenttest.Exact{Event: "PreToolUse", Payload: call, Result: `{"action":"continue","add_context":["C"]}`, Stdout: `{"cancel":false,"contextModification":"C","errorMessage":""}`},
		agenttest.Exact{Event: "PostToolUse", Payload: result, Result: `{"action":"continue","add_context":["C"]}`, Stdout: `{"cancel":false,"contextModification":"C","errorMessage":""}`},
		agenttest.Exact{Event: "UserPromptSubmit", Payload: prompt, Result: `{"action":"continue","add_context":["C"]}`, Stdout: `{"cancel":false,"contextModification":"C","errorMessage":""}`},
		agenttest.Exact{Event: "TaskStart", Payload: started, Result: `{"action":"continue","add_context":["C"]}`, Stdout: `{"cancel":false,"contextModification":"C","errorMessage":""}`},
		agenttest.Exact{Event: "PreToolUse", Payload: call, Result: `{"action":"continue"}`, Stdout: `{"cancel":false,"contextModification":"","errorMessage":""}`},
	)
}

func FuzzCline(f *testing.F) {
	agenttest.Fuzz(f, New(),
		`{"clineVersion":"3","hookName":"PreToolUse","taskId":"1","preToolUse":{"toolName":"execute_command","parameters":{"command":"ls"}}}`,
		`{"hookName":"PostToolUse","postToolUse":{"tool":"x","success":false,"executionTimeMs":1}}`,
		`{"hookName":"TaskStart","taskStart":{"taskMetadata":[]},"model":"x"}`,
	)
}
