package cursor

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/agent/agenttest"
	"github.com/hookd/hookd/agent/native"
	"github.com/hookd/hookd/protocol"
)

var update = flag.Bool("update", false, "write what becomes of the payloads anew")

func TestGolden(t *testing.T) {
	agenttest.Golden(t, New(), "testdata/cursor.txtar", *update)
}

// TestExactAnswers holds the bytes that Cursor is known to read.
func TestExactAnswers(t *testing.T) {
	const call = `{"hook_event_name":"preToolUse","cursor_version":"3.9","conversation_id":"s","tool_name":"Shell","tool_input":{"command":"ls","cwd":"/w"}}`
	const shell = `{"hook_event_name":"beforeShellExecution","cursor_version":"3.9","command":"ls","cwd":"/w"}`
	const mcp = `{"hook_event_name":"beforeMCPExecution","cursor_version":"3.9","tool_name":"create","tool_input":"{}"}`
	const prompt = `{"hook_event_name":"beforeSubmitPrompt","cursor_version":"3.9","prompt":"hi"}`
	const read = `{"hook_event_name":"beforeReadFile","cursor_version":"3.9","file_path":"/w/a","content":""}`
	const spawned = `{"hook_event_name":"subagentStart","cursor_version":"3.9","task":"look","subagent_type":"explore"}`
	const started = `{"hook_event_name":"sessionStart","cursor_version":"3.9"}`
	const result = `{"hook_event_name":"postToolUse","cursor_version":"3.9","tool_name":"MCP:create","tool_input":{},"tool_output":"{\"content\":[{\"type\":\"text\",\"text\":\"x\"}]}"}`
	const ended = `{"hook_event_name":"stop","cursor_version":"3.9","status":"completed","loop_count":0}`
	const subEnded = `{"hook_event_name":"subagentStop","cursor_version":"3.9","status":"completed"}`
	agenttest.Exactly(t, New(),
		agenttest.Exact{Event: "preToolUse", Payload: call, Result: `{"action":"deny_tool","reason":"R"}`, Stdout: `{"continue":true,"permission":"deny","user_message":"R","agent_message":"R"}`},
		agenttest.Exact{Event: "beforeShellExecution", Payload: shell, Result: `{"action":"deny_tool","reason":"R"}`, Stdout: `{"continue":true,"permission":"deny","user_message":"R","agent_message":"R"}`},
		agenttest.Exact{Event: "beforeMCPExecution", Payload: mcp, Result: `{"action":"deny_tool","reason":"R"}`, Stdout: `{"continue":true,"permission":"deny","user_message":"R","agent_message":"R"}`},
		agenttest.Exact{Event: "beforeReadFile", Payload: read, Result: `{"action":"deny_tool","reason":"R"}`, Stdout: `{"continue":true,"permission":"deny","user_message":"R","agent_message":"R"}`},
		agenttest.Exact{Event: "subagentStart", Payload: spawned, Result: `{"action":"deny","reason":"R"}`, Stdout: `{"continue":true,"permission":"deny","user_message":"R","agent_message":"R"}`},
		agenttest.Exact{Event: "beforeSubmitPrompt", Payload: prompt, Result: `{"action":"deny","reason":"R"}`, Stdout: `{"continue":false,"user_message":"R"}`},
		agenttest.Exact{Event: "beforeSubmitPrompt", Payload: prompt, Result: `{"action":"abort_turn","reason":"R"}`, Stdout: `{"continue":false,"user_message":"R"}`},
		agenttest.Exact{Event: "preToolUse", Payload: call, Result: `{"action":"modify","call":{"tool":"Shell","arguments":{"command":"ls -l","cwd":"/w"}}}`, Stdout: `{"permission":"allow","updated_input":{"command":"ls -l","cwd":"/w"}}`},
		agenttest.Exact{Event: "beforeShellExecution", Payload: shell, Result: `{"action":"ask","reason":"R"}`, Stdout: `{"continue":true,"permission":"ask","user_message":"R","agent_message":"R"}`},
		agenttest.Exact{Event: "beforeMCPExecution", Payload: mcp, Result: `{"action":"ask"}`, Stdout: `{"continue":true,"permission":"ask"}`},
		agenttest.Exact{Event: "sessionStart", Payload: started, Result: `{"action":"continue","add_context":["C"]}`, Stdout: `{"additional_context":"C"}`},
		agenttest.Exact{Event: "postToolUse", Payload: result, Result: `{"action":"continue","add_context":["C"]}`, Stdout: `{"additional_context":"C"}`},
		agenttest.Exact{Event: "postToolUse", Payload: result, Result: `{"action":"modify","result":{"content":"y"}}`, Stdout: `{"updated_mcp_tool_output":{"content":[{"type":"text","text":"y"}]}}`},
		agenttest.Exact{Event: "stop", Payload: ended, Result: `{"action":"inject","inject":{"role":"user","content":"M"}}`, Stdout: `{"followup_message":"M"}`},
		agenttest.Exact{Event: "subagentStop", Payload: subEnded, Result: `{"action":"inject","inject":{"role":"user","content":"M"}}`, Stdout: `{"followup_message":"M"}`},
		agenttest.Exact{Event: "preToolUse", Payload: call, Result: `{"action":"continue"}`, Stdout: `{"continue":true,"permission":"allow"}`},
		agenttest.Exact{Event: "beforeShellExecution", Payload: shell, Result: `{"action":"continue"}`, Stdout: `{"continue":true,"permission":"allow"}`},
		agenttest.Exact{Event: "beforeMCPExecution", Payload: mcp, Result: `{"action":"continue"}`, Stdout: `{"continue":true,"permission":"allow"}`},
		agenttest.Exact{Event: "beforeReadFile", Payload: read, Result: `{"action":"continue"}`, Stdout: `{"continue":true,"permission":"allow"}`},
		agenttest.Exact{Event: "subagentStart", Payload: spawned, Result: `{"action":"continue"}`, Stdout: `{"continue":true,"permission":"allow"}`},
		agenttest.Exact{Event: "beforeSubmitPrompt", Payload: prompt, Result: `{"action":"continue"}`, Stdout: `{"continue":true,"permission":"allow"}`},
		agenttest.Exact{Event: "sessionStart", Payload: started, Result: `{"action":"continue"}`, Stdout: `{}`},
		agenttest.Exact{Event: "stop", Payload: ended, Result: `{"action":"continue"}`, Stdout: `{}`},
	)
}

// TestNeverSilent holds that there always is an object: a hook that fails closed
// blocks everything without one.
func TestNeverSilent(t *testing.T) {
	agenttest.EachAnswer(t, New(), "testdata/cursor.txtar", func(event, name string, a native.Answer) {
		require.NotEmpty(t, a.Stdout, "%s: %s", event, name)
		require.Empty(t, a.Stderr)
		require.Zero(t, a.ExitCode)
	})
	for _, event := range []string{"preToolUse", "beforeShellExecution", "beforeSubmitPrompt", "", "unheardOf"} {
		for _, want := range []native.OnUnavailable{native.UnavailableDefault, native.UnavailableContinue} {
			require.NotEmpty(t, New().Unavailable(event, want, "gone", []byte("\xef\xbb\xbf{")).Stdout)
		}
	}
	a := New().Unavailable("", native.UnavailableDefault, "gone", nil)
	require.Equal(t, `{"continue":false,"permission":"deny","user_message":"hookd gave no verdict: gone","agent_message":"hookd gave no verdict: gone"}`, string(a.Stdout), "of whatever gate it is")
	a = New().Unavailable("", native.UnavailableContinue, "gone", nil)
	require.Equal(t, `{"continue":true,"permission":"allow"}`, string(a.Stdout), "the off-switch still answers")
}

// TestAskWhereItCounts holds that an ask is never put where it is read as a yes.
func TestAskWhereItCounts(t *testing.T) {
	agenttest.EachAnswer(t, New(), "testdata/cursor.txtar", func(event, name string, a native.Answer) {
		if event != "beforeShellExecution" && event != "beforeMCPExecution" {
			require.NotContains(t, string(a.Stdout), `"permission":"ask"`, "%s: %s", event, name)
		}
	})
	for _, event := range []string{"Write", "MCP:create"} {
		a := agenttest.Answer(t, New(), "preToolUse", `{"tool_name":"`+event+`","tool_input":{}}`, `{"action":"ask","reason":"R"}`, native.Policy{})
		require.Contains(t, string(a.Stdout), `"permission":"deny"`)
	}
}

// TestResultsOfOtherTools holds that what can't be changed is told.
func TestResultsOfOtherTools(t *testing.T) {
	a := agenttest.Answer(t, New(), "postToolUse", `{"tool_name":"Read","tool_input":{},"tool_output":"x"}`, `{"action":"modify","result":{"content":"y"}}`, native.Policy{})
	require.Equal(t, `{"additional_context":"A hook changed the result of this tool. Read this in its place:\ny"}`, string(a.Stdout))
	require.Len(t, a.Warnings, 1)
}

// TestImportedFiles holds that a hook in one of Claude Code's files is asked, and
// answered as Cursor reads it.
func TestImportedFiles(t *testing.T) {
	for event, payload := range map[string]string{
		"PreToolUse":       `{"hook_event_name":"preToolUse","tool_name":"Shell","tool_input":{"command":"ls"}}`,
		"UserPromptSubmit": `{"hook_event_name":"beforeSubmitPrompt","prompt":"p"}`,
	} {
		c, err := New().Read(event, []byte(payload))
		require.NoError(t, err)
		require.NotEmpty(t, c.Stage)
		a := New().Unavailable(event, native.UnavailableDeny, "gone", []byte("{"))
		require.Contains(t, string(a.Stdout), "gone", event)
	}
}

func FuzzCursor(f *testing.F) {
	agenttest.Fuzz(f, New(),
		`{"hook_event_name":"preToolUse","cursor_version":"3.9","conversation_id":"s","tool_name":"Shell","tool_input":{"command":"ls","cwd":"/w"}}`,
		`{"hook_event_name":"beforeShellExecution","cursor_version":"3.9","command":"ls","cwd":"/w"}`,
		`{"hook_event_name":"beforeMCPExecution","cursor_version":"3.9","tool_name":"create","tool_input":"{}"}`,
		`{"hook_event_name":"beforeSubmitPrompt","cursor_version":"3.9","prompt":"hi"}`,
		`{"hook_event_name":"postToolUse","cursor_version":"3.9","tool_name":"MCP:create","tool_input":{},"tool_output":"{\"content\":[{\"type\":\"text\",\"text\":\"x\"}]}"}`,
		`{"hook_event_name":"afterFileEdit","file_path":"a","edits":[],"workspace_roots":[1]}`,
		`{"hook_event_name":"postToolUse","tool_name":"Read","tool_output":"[1","duration":1e3}`,
	)
}

// TestFolder: a call belongs to the workspace, wherever its command runs.
func TestFolder(t *testing.T) {
	for folders, want := range map[string]string{
		`"cwd":"/w"`:                                   "/w",
		`"cwd":"","workspace_roots":["/p","/q"]`:       "/p",
		`"workspace_roots":["/p"]`:                     "/p",
		`"cwd":"/tmp","workspace_roots":["/p"]`:        "/p",
		`"cwd":"/p2","workspace_roots":["/p"]`:         "/p",
		`"cwd":"/p/../tmp","workspace_roots":["/p"]`:   "/p",
		`"cwd":"sub","workspace_roots":["/p"]`:         "/p",
		`"cwd":"/p/sub","workspace_roots":["/p"]`:      "/p/sub", // in the project
		`"cwd":"/p","workspace_roots":["/p/"]`:         "/p",
		`"cwd":"/q/sub","workspace_roots":["/p","/q"]`: "/p",
		`"cwd":"/tmp","workspace_roots":["/"]`:         "/tmp",
		`"cwd":"/w","workspace_roots":[]`:              "/w",
	} {
		c, err := New().Read("beforeShellExecution", []byte(`{"hook_event_name":"beforeShellExecution","command":"ls",`+folders+`}`))
		require.NoError(t, err)
		meta, err := protocol.ParseObject(c.Params.Get("meta"))
		require.NoError(t, err)
		require.Equal(t, want, protocol.MetaString(meta, "cwd"), folders)
	}
}
