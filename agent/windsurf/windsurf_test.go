package windsurf

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/agent/agenttest"
	"github.com/hookd/hookd/protocol"
)

var update = flag.Bool("update", false, "write what becomes of the payloads anew")

func TestGolden(t *testing.T) {
	agenttest.Golden(t, New(), "testdata/windsurf.txtar", *update)
}

// TestExactAnswers holds the bytes that Windsurf is known to read.
func TestExactAnswers(t *testing.T) {
	const command = `{"agent_action_name":"pre_run_command","tool_info":{"command_line":"ls","cwd":"/w"}}`
	const read = `{"agent_action_name":"pre_read_code","tool_info":{"file_path":"/w/a"}}`
	const write = `{"agent_action_name":"pre_write_code","tool_info":{"file_path":"/w/a","edits":[]}}`
	const mcp = `{"agent_action_name":"pre_mcp_tool_use","tool_info":{"mcp_server_name":"s","mcp_tool_name":"t","mcp_tool_arguments":{}}}`
	const prompt = `{"agent_action_name":"pre_user_prompt","tool_info":{"user_prompt":"hi"}}`
	agenttest.Exactly(t, New(),
		agenttest.Exact{Event: "pre_run_command", Payload: command, Result: `{"action":"deny_tool","reason":"R"}`, Stderr: "R", Exit: 2},
		agenttest.Exact{Event: "pre_read_code", Payload: read, Result: `{"action":"deny_tool","reason":"R"}`, Stderr: "R", Exit: 2},
		agenttest.Exact{Event: "pre_write_code", Payload: write, Result: `{"action":"deny_tool","reason":"R"}`, Stderr: "R", Exit: 2},
		agenttest.Exact{Event: "pre_mcp_tool_use", Payload: mcp, Result: `{"action":"deny_tool","reason":"R"}`, Stderr: "R", Exit: 2},
		agenttest.Exact{Event: "pre_user_prompt", Payload: prompt, Result: `{"action":"deny","reason":"R"}`, Stderr: "R", Exit: 2},
		agenttest.Exact{Event: "pre_run_command", Payload: command, Result: `{"action":"continue"}`},
		agenttest.Exact{Event: "pre_user_prompt", Payload: prompt, Result: `{"action":"continue"}`},
		agenttest.Exact{Event: "pre_run_command", Payload: command, Result: `{"action":"continue","warnings":["W"]}`, Stderr: "W"},
	)
}

func FuzzWindsurf(f *testing.F) {
	agenttest.Fuzz(f, New(),
		`{"agent_action_name":"pre_run_command","tool_info":{"command_line":"ls","cwd":"/w"}}`,
		`{"agent_action_name":"pre_write_code","tool_info":{"file_path":"a","edits":[{"old_string":"","new_string":"x"}]}}`,
		`{"agent_action_name":"pre_mcp_tool_use","tool_info":{"mcp_tool_name":"t"}}`,
		`{"agent_action_name":"pre_read_code","tool_info":7}`,
	)
}

// TestFolder: the client says where it was started when the agent does not.
func TestFolder(t *testing.T) {
	for payload, want := range map[string]string{
		`{"agent_action_name":"pre_run_command","tool_info":{"command_line":"ls","cwd":"/w"}}`:            "/w",
		`{"cwd":"/h","agent_action_name":"pre_run_command","tool_info":{"command_line":"ls","cwd":"/w"}}`: "/w",
		`{"cwd":"/h","agent_action_name":"pre_read_code","tool_info":{"file_path":"a"}}`:                  "/h",
		`{"agent_action_name":"pre_read_code","tool_info":{"file_path":"a"}}`:                             "",
	} {
		c, err := New().Read("", []byte(payload))
		require.NoError(t, err)
		meta, err := protocol.ParseObject(c.Params.Get("meta"))
		require.NoError(t, err)
		require.Equal(t, want, protocol.MetaString(meta, "cwd"), payload)
	}
}
