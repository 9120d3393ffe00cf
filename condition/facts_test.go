package condition

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/protocol"
)

func TestFields(t *testing.T) {
	for _, c := range []struct {
		stage        protocol.Stage
		params, text string
	}{
		{protocol.StageBeforeTool, `{"tool":"Edit","arguments":{"file_path":"/a"}}`, `kind == 'file_edit' && path == '/a' && paths == ['/a'] && command == ''`},
		{protocol.StageBeforeTool, `{"tool":"WebFetch","arguments":{"url":"https://x"}}`, `kind == 'web' && url == 'https://x'`},
		{protocol.StageBeforeTool, `{"tool":"mcp__gh__x","arguments":{"path":"/p","command":"rm x"}}`, `kind == 'mcp' && server == 'gh' && path == '/p' && paths == ['/p'] && shell.runs('rm')`},
		{protocol.StageBeforeTool, `{"tool":"write_stdin","arguments":{"chars":"rm x\n"}}`, `kind == 'shell' && shell.runs('rm') && !shell.unresolved`},
		{protocol.StageBeforeTool, `{"tool":"write_stdin","arguments":{"chars":"r"}}`, `shell.mayRun('rm') && shell.unresolved && shell.runs('r')`},
		{protocol.StageBeforeTool, `{"tool":"write_stdin","arguments":{"session_id":1,"chars":""}}`, `!shell.unresolved && len(shell.commands) == 0`},
		{protocol.StageBeforeTool, `{"tool":"execute_code","arguments":{"code":"import os"}}`, `kind == 'shell' && shell.unresolved && command == ''`},
		{protocol.StageBeforeTool, `{"tool":"mcp__ide__executeCode","arguments":{"code":"import os"}}`, `kind == 'mcp' && shell.unresolved`},
		{protocol.StageBeforeTool, `{"tool":"computercontroller__automation_script","arguments":{"language":"ruby","script":"ls"}}`, `shell.unresolved && !shell.runs('ls')`},
		{protocol.StageBeforeTool, `{"tool":"computercontroller__automation_script","arguments":{"language":"shell","script":"ls"}}`, `!shell.unresolved && shell.runs('ls')`},
		{protocol.StageBeforeTool, `{"tool":"Custom","arguments":{}}`, `kind == 'other' && !shell.unresolved`},
		{protocol.StageApproveTool, `{"tool":"Bash","arguments":{"command":"rm x"}}`, `stage == 'approve_tool' && shell.runs('rm')`},
		{protocol.StageAfterTool, `{"tool":"Bash","arguments":{"command":"rm x"},"result":{"content":"y"}}`, `tool == 'Bash' && shell.runs('rm') && message == ''`},
		{protocol.StageUserMessage, `{"message":{"role":"user","content":"hello"}}`, `message == 'hello' && tool == '' && kind == '' && len(args) == 0`},
		{protocol.StageUserMessage, `{"message":{"content":[{"type":"text","text":"hel"},{"type":"text","text":"lo"}]}}`, `message == 'hello'`},
		{protocol.StageUserMessage, `{"message":{"role":"user"}}`, `message == ''`},
		{protocol.StageBeforeAgent, `{"request":{"input":"hello"}}`, `message == 'hello'`},
		{protocol.StageSystemPrompt, `{"prompt":{"content":"hello"}}`, `message == 'hello'`},
		{protocol.StageBeforeLLM, `{"model":"m2","messages":[{"content":"a"},{"content":"hello"}],"meta":{"model":"m1"}}`, `message == 'hello' && model == 'm2'`},
		{protocol.StageBeforeLLM, `{"messages":[],"meta":{"model":"m1"}}`, `message == '' && model == 'm1'`},
		{protocol.StageAfterLLM, `{"response":{"content":null}}`, `message == ''`},
		{protocol.StageAfterLLM, `{"response":{"content":"hello"}}`, `message == 'hello'`},
		{protocol.StageStop, `{"request":{"last_message":"hello"}}`, `message == 'hello'`},
		{protocol.StageStop, `{"request":{"last_message":{"role":"assistant","content":"hello"}}}`, `message == 'hello'`},
		{protocol.StageStop, `{}`, `message == '' && stage == 'stop'`},
		{protocol.StageOutput, `{"output":{"content":"hello"}}`, `message == 'hello'`},
		{protocol.StageBeforeTool, `{"tool":"Bash","arguments":{"command":"ls"},"context":{"command":"rm x","tool":"Edit"},"extra":{"command":"rm"}}`, `!shell.mayRun('rm') && tool == 'Bash'`},
	} {
		e := compile(t, c.text).Explain(request(t, c.stage, c.params))
		assert.NoError(t, e.Err, "%s %s", c.params, c.text)
		assert.True(t, e.Holds, "%s %s", c.params, c.text)
	}
}

// TestCurrentSubject shows that a call is judged as earlier hooks left it.
func TestCurrentSubject(t *testing.T) {
	req := shellCall(t, "ls")
	c := compile(t, "shell.runs('rm')")
	require.False(t, c.Holds(req))
	changed := *req
	changed.Subject, _, _ = req.Stage.Apply(req.Subject, []byte(`{"arguments":{"command":"rm x"}}`))
	require.True(t, c.Holds(&changed))
	require.False(t, c.Holds(req))
}

func TestEvents(t *testing.T) {
	for payload, text := range map[string]string{
		`{"tool":"Bash","arguments":{"command":"rm x"}}`: `shell.runs('rm') && stage == '' && agent == 'claude'`,
		`{"tool":"Bash"}`:                       `tool == 'Bash' && kind == 'shell' && command == '' && !shell.unresolved && len(args) == 0`,
		`{"tool":5,"arguments":[],"message":1}`: `tool == '' && kind == '' && len(args) == 0 && message == ''`,
		`{"message":"hello"}`:                   `message == 'hello'`,
		`{"message":{"content":"hello"}}`:       `message == 'hello'`,
		`{"messages":[1],"request":[]}`:         `message == ''`,
		``:                                      `tool == '' && message == '' && len(shell.commands) == 0`,
	} {
		ev := &protocol.Event{Kind: protocol.EventNotification}
		ev.Meta = protocol.Object{{Name: "agent", Value: protocol.Quote("claude")}, {Name: "cwd", Value: []byte("5")}}
		if payload != "" {
			ev.Payload = []byte(payload)
		}
		e := compile(t, text).Explain(EventRequest(ev))
		assert.NoError(t, e.Err, payload)
		assert.True(t, e.Holds, payload)
		compile(t, "Bash(rm *)").Holds(EventRequest(ev))
	}
	require.True(t, compile(t, "tool == ''").Holds(&protocol.Request{}))
}

func TestNumbers(t *testing.T) {
	for digits, want := range map[string]any{
		"0": 0, "-0": 0, "42": 42, "-7": -7, "9223372036854775807": 9223372036854775807, "9223372036854775808": "9223372036854775808",
		"1.5": 1.5, "1e2": 100.0, "1E2": 100.0, "0.000000000000000000001": 1e-21, "100000000000000000000": 1e20,
		"123456789012345.6": "123456789012345.6", "0.1000000000000000055": "0.1000000000000000055", "1e400": "1e400", "-1.25": -1.25,
	} {
		assert.Equal(t, want, numberOf(digits), digits)
	}
}

// TestDecoys: a condition bites on each value of what a call says twice, and is
// never sure then.
func TestDecoys(t *testing.T) {
	for _, c := range []struct {
		tool, args, text string
		holds            bool
	}{
		{"run_command", `{"command":"ls","CommandLine":"rm -rf /"}`, `shell.runs('rm')`, true},
		{"run_command", `{"command":"cat <<E","CommandLine":"rm -rf /"}`, `shell.runs('rm')`, true},
		{"run_command", `{"command":"ls","CommandLine":"rm -rf /"}`, `Bash(rm *)`, true},
		{"run_command", `{"command":"ls","CommandLine":"rm -rf /"}`, `command == 'rm -rf /'`, true},
		{"run_command", `{"command":"ls","CommandLine":"rm -rf /"}`, `command contains 'rm -rf'`, true},
		{"bash", `{"command":"ls","Command":"rm x"}`, `args.command startsWith 'rm'`, true},
		{"run_command", `{"command":"ls","CommandLine":"rm -rf /"}`, `command == 'ls'`, true},
		{"run_command", `{"command":"ls","CommandLine":"rm -rf /"}`, `agent == 'other' && command contains 'rm'`, false},
		{"write_to_file", `{"file_path":"/tmp/ok","TargetFile":"/etc/passwd"}`, `path == '/etc/passwd'`, true},
		{"write_to_file", `{"file_path":"/tmp/ok","TargetFile":"/etc/passwd"}`, `Write(//etc/**)`, true},
		{"write_to_file", `{"file_path":"/tmp/ok","TargetFile":"/etc/passwd"}`, `all(paths, # startsWith '/tmp/')`, true},
		{"fetch", `{"url":"https://a.test/","Url":"https://b.test/"}`, `WebFetch(domain:b.test)`, true},
		{"call_mcp_tool", `{"ServerName":"a","server_name":"b","ToolName":"q"}`, `mcp__b__q`, true},
		{"call_mcp_tool", `{"ServerName":"a","ToolName":"q","arguments":{"command":"ls"},"Arguments":{"command":"rm x"}}`, `shell.runs('rm')`, true},
		{"Edit", `{"path":"1","file_path":"2","filePath":"3","file":"4","content":"1","contents":"2","file_text":"3","new_string":"1","new_str":"2"}`, `path == '5'`, true},
	} {
		e := compile(t, c.text).Explain(toolCall(t, c.tool, c.args))
		assert.Equal(t, c.holds, e.Holds, "%s %s", c.args, c.text)
		assert.Equal(t, c.holds, e.Err != nil, "%s %s", c.args, c.text)
	}
	require.NoError(t, compile(t, "command == 'ls'").Explain(toolCall(t, "bash", `{"command":"ls","Command":"ls"}`)).Err)
}
