package protocol

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// object reads JSON for a test.
func toolArgs(t testing.TB, text string) Object {
	t.Helper()
	o, err := DecodeObject([]byte(text), 0)
	require.NoError(t, err, text)
	return o
}

func TestToolTableIsConsistent(t *testing.T) {
	owner := map[string]string{}
	for _, row := range toolTable {
		require.NotEmpty(t, row.kind, row.name)
		require.Contains(t, ToolKinds(), row.kind, row.name)
		for _, name := range append([]string{row.name}, row.names...) {
			require.Empty(t, owner[name], "%s stands in two rows", name)
			owner[name] = row.name
		}
		for _, shape := range row.shapes {
			require.Len(t, shape, len(row.shapes[0]), "%s: %v", row.name, shape)
		}
	}
	for _, row := range toolTable {
		for _, name := range row.also {
			require.NotEmpty(t, owner[name], "%s: %s has no row of its own", row.name, name)
			require.NotEqual(t, row.name, owner[name], "%s: %s is its own", row.name, name)
		}
	}
}

func TestToolKindOf(t *testing.T) {
	for name, want := range map[string]ToolKind{
		"Bash": ToolShell, "run_command": ToolShell, "run_shell_command": ToolShell, "Shell": ToolShell, "Execute": ToolShell,
		"execute_bash": ToolShell, "execute_command": ToolShell, "developer__shell": ToolShell, "bash": ToolShell, "powershell": ToolShell,
		"run_terminal_command": ToolShell, "write_stdin": ToolShell,
		"Write": ToolFileWrite, "write_to_file": ToolFileWrite, "create_file": ToolFileWrite, "Create": ToolFileWrite, "fs_write": ToolFileWrite,
		"Edit": ToolFileEdit, "edit_file": ToolFileEdit, "replace": ToolFileEdit, "str_replace_editor": ToolFileEdit, "apply_patch": ToolFileEdit,
		"Read": ToolFileRead, "view_file": ToolFileRead, "ReadFile": ToolFileRead, "Grep": ToolFileRead, "list_dir": ToolFileRead,
		"WebFetch": ToolWeb, "FetchUrl": ToolWeb, "google_web_search": ToolWeb,
		"Agent": ToolAgent, "Task": ToolAgent, "spawn_agent": ToolAgent,
		"mcp__github__create_issue": ToolMCP, "mcp_github_create_issue": ToolMCP, "MCP:create_issue": ToolMCP, "@github/create_issue": ToolMCP,
		"call_mcp_tool": ToolMCP, "memory__remember": ToolMCP,
		"TodoWrite": ToolOther, "NobodyKnows": ToolOther, "": ToolOther, "__": ToolOther, "mcp__": ToolOther, "bASH": ToolOther, "a__": ToolOther,
	} {
		require.Equal(t, want, ToolKindOf(name), "%q", name)
	}
}

func TestSameTool(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{"Bash", "Bash", true},
		{"Bash", "run_command", true},
		{"run_shell_command", "developer__shell", true},
		{"Edit", "edit_file", true},
		{"Edit", "apply_patch", true},
		{"Write", "apply_patch", true},
		{"Write", "Edit", false},
		{"Write", "write_to_file", true},
		{"Edit", "write_to_file", false},
		{"Bash", "powershell", true},
		{"Bash", "BASH", false},
		{"Read", "Bash", false},
		{"Agent", "Task", true},
		{"mine", "mine", true},
		{"mine", "yours", false},
		{"mcp__github__list", "mcp_github_list", true},
		{"mcp__github__list", "@github/list", true},
		{"mcp_github_list", "@github/list", true},
		{"mcp__github__list", "mcp__gitlab__list", false},
		{"mcp__github", "mcp_github", false},
		{"MCP:list", "mcp__github__list", false},
	} {
		require.Equal(t, tc.want, SameTool(tc.a, tc.b), "%s = %s", tc.a, tc.b)
		require.Equal(t, tc.want, SameTool(tc.b, tc.a), "%s = %s", tc.b, tc.a)
	}
}

func TestToolAliases(t *testing.T) {
	require.Equal(t, "Bash", ToolAliases("run_command")[0])
	require.Contains(t, ToolAliases("Bash"), "run_shell_command")
	require.NotContains(t, ToolAliases("Bash"), "Bash")
	require.Contains(t, ToolAliases("apply_patch"), "Edit")
	require.Contains(t, ToolAliases("apply_patch"), "Write")
	require.Equal(t, []string{"mcp_db_query", "@db/query"}, ToolAliases("mcp__db__query"))
	require.Nil(t, ToolAliases("mcp_db_query"), "where the server's name ends is not known")
	require.Nil(t, ToolAliases("nobody_knows"))
	for _, row := range toolTable {
		for _, name := range append([]string{row.name}, row.names...) {
			for _, alias := range ToolAliases(name) {
				require.True(t, SameTool(name, alias), "%s = %s", name, alias)
			}
		}
	}
}

const patchOfThree = `*** Begin Patch\n*** Add File: docs/a.md\n+one\n+two\n*** Update File: src/b.go\n*** Move to: src/c.go\n@@ func\n keep\n-old\n+new\n*** Delete File: d.txt\n*** End Patch`

func TestReadToolFacts(t *testing.T) {
	for _, tc := range []struct {
		name, args string
		want       ToolFacts
	}{
		{"Bash", `{"command":"ls -l","description":"d"}`, ToolFacts{Kind: ToolShell, Command: "ls -l"}},
		{"run_command", `{"CommandLine":"ls","Cwd":"/w"}`, ToolFacts{Kind: ToolShell, Command: "ls"}},
		{"exec_command", `{"cmd":"ls"}`, ToolFacts{Kind: ToolShell, Command: "ls"}},
		{"shell", `{"command":["bash","-lc","rm -rf x"]}`, ToolFacts{Kind: ToolShell, Command: "rm -rf x"}},
		{"shell", `{"command":["git","commit","-m","it's done"]}`, ToolFacts{Kind: ToolShell, Command: `git commit -m 'it'\''s done'`}},
		{"shell", `{"value":"ls"}`, ToolFacts{Kind: ToolShell, Command: "ls"}},
		{"nobody_knows", `{"value":"ls"}`, ToolFacts{Kind: ToolOther}},
		{"apply_patch", `{"value":"*** Delete File: a"}`, ToolFacts{Kind: ToolFileEdit, Path: "a"}},
		{"shell", `{"command":7}`, ToolFacts{Kind: ToolShell}},
		{"Bash", `{}`, ToolFacts{Kind: ToolShell}},
		{"write_stdin", `{"session_id":3,"chars":"rm x\n"}`, ToolFacts{Kind: ToolShell, Command: "rm x\n"}},
		{"Read", `{"file_path":"/e"}`, ToolFacts{Kind: ToolFileRead, Path: "/e"}},
		{"view_file", `{"AbsolutePath":"/e"}`, ToolFacts{Kind: ToolFileRead, Path: "/e"}},
		{"fs_read", `{"operations":[{"mode":"Line","path":"/one"},{"path":"/two"}]}`, ToolFacts{Kind: ToolFileRead, Path: "/one"}},
		{"read_many_files", `{"paths":["a","b"]}`, ToolFacts{Kind: ToolFileRead, Path: "a"}},
		{"write_to_file", `{"TargetFile":"/w/x","CodeContent":"y"}`, ToolFacts{Kind: ToolFileWrite, Path: "/w/x"}},
		{"NotebookEdit", `{"notebook_path":"n.ipynb"}`, ToolFacts{Kind: ToolFileEdit, Path: "n.ipynb"}},
		{"list_dir", `{"DirectoryPath":"/w"}`, ToolFacts{Kind: ToolFileRead, Path: "/w"}},
		{"str_replace_editor", `{"command":"view","path":"/p"}`, ToolFacts{Kind: ToolFileRead, Path: "/p"}},
		{"str_replace_editor", `{"command":"create","path":"/p"}`, ToolFacts{Kind: ToolFileWrite, Path: "/p"}},
		{"fs_write", `{"command":"str_replace","path":"/p"}`, ToolFacts{Kind: ToolFileEdit, Path: "/p"}},
		{"fs_write", `{"path":"/p"}`, ToolFacts{Kind: ToolFileWrite, Path: "/p"}},
		{"apply_patch", `{"command":"` + patchOfThree + `"}`, ToolFacts{Kind: ToolFileEdit, Path: "docs/a.md"}},
		{"multi_replace_string_in_file", `{"replacements":[{"filePath":"/1"},{"filePath":"/2"}]}`, ToolFacts{Kind: ToolFileEdit, Path: "/1"}},
		{"WebFetch", `{"url":"https://a.test/x","prompt":"p"}`, ToolFacts{Kind: ToolWeb, URL: "https://a.test/x"}},
		{"web_fetch", `{"prompt":"read (https://a.test/x?y=1), then http://b.test"}`, ToolFacts{Kind: ToolWeb, URL: "https://a.test/x?y=1"}},
		{"fetch_webpage", `{"urls":["https://a.test"]}`, ToolFacts{Kind: ToolWeb, URL: "https://a.test"}},
		{"WebSearch", `{"query":"q"}`, ToolFacts{Kind: ToolWeb}},
		{"mcp__plugin_x_db__query", `{"sql":"s"}`, ToolFacts{Kind: ToolMCP, Server: "plugin_x_db"}},
		{"mcp_db_query", `{}`, ToolFacts{Kind: ToolMCP, Server: "db"}},
		{"MCP:query", `{}`, ToolFacts{Kind: ToolMCP}},
		{"@db/query", `{"path":"/p"}`, ToolFacts{Kind: ToolMCP, Server: "db", Path: "/p"}},
		{"call_mcp_tool", `{"ServerName":"db","ToolName":"q","Arguments":{"command":"c"}}`, ToolFacts{Kind: ToolMCP, Server: "db", Command: "c"}},
		{"use_mcp_tool", `{"server_name":"db","tool_name":"q","arguments":"{\"url\":\"u\"}"}`, ToolFacts{Kind: ToolMCP, Server: "db", URL: "u"}},
		{"use_mcp_tool", `{"server_name":"db","arguments":"{not json"}`, ToolFacts{Kind: ToolMCP, Server: "db"}},
		{"nobody_knows", `{"command":"c","path":"p","url":"u"}`, ToolFacts{Kind: ToolOther, Command: "c", Path: "p", URL: "u"}},
		{"Agent", `{"prompt":"p"}`, ToolFacts{Kind: ToolAgent}},
	} {
		require.Equal(t, tc.want, ReadToolFacts(tc.name, toolArgs(t, tc.args)), "%s %s", tc.name, tc.args)
	}
	require.Equal(t, ToolFacts{Kind: ToolShell}, ReadToolFacts("Bash", nil))
}

func TestToolPaths(t *testing.T) {
	require.Equal(t, []string{"docs/a.md", "src/b.go", "src/c.go", "d.txt"}, ToolPaths("apply_patch", toolArgs(t, `{"command":"`+patchOfThree+`"}`)))
	require.Equal(t, []string{"/1", "/2"}, ToolPaths("multi_replace_string_in_file", toolArgs(t, `{"replacements":[{"filePath":"/1"},{"filePath":"/2"},{"filePath":"/1"}]}`)))
	require.Nil(t, ToolPaths("Bash", toolArgs(t, `{"path":"x"}`)))
	require.Equal(t, []string{"a"}, ToolPaths("apply_patch", toolArgs(t, `{"input":"  *** Update File: a  \r\n-x\r\n"}`)), "a patch that its agent would refuse")
}

// TestToolsThatRunText: of what is run by other ways than a shell's line, the
// command is known, or the facts say that it is not.
func TestToolsThatRunText(t *testing.T) {
	shell := func(command string, opaque bool) ToolFacts {
		return ToolFacts{Kind: ToolShell, Command: command, Opaque: opaque}
	}
	mcp := func(server, command string, opaque bool) ToolFacts {
		return ToolFacts{Kind: ToolMCP, Server: server, Command: command, Opaque: opaque}
	}
	for _, tc := range []struct {
		name, args string
		want       ToolFacts
	}{
		// What is typed is known when it is whole lines, and nothing but text.
		{"write_stdin", `{"session_id":3,"chars":"rm x\n"}`, shell("rm x\n", false)},
		{"write_stdin", `{"session_id":3,"chars":"rm x"}`, shell("rm x", true)},
		{"write_stdin", `{"session_id":3,"chars":""}`, shell("", false)},
		{"write_stdin", `{"session_id":3,"chars":"\u0003"}`, shell("", false)},
		{"write_stdin", `{"session_id":3,"chars":"ls\u0015rm x\n"}`, shell("ls\x15rm x\n", true)},
		{"write_stdin", `{"session_id":3}`, shell("", false)},
		{"write_stdin", `{"session_id":3,"keys":"rm x"}`, shell("", true)},
		{"write_bash", `{"sessionId":"a","input":"rm x{enter}","delay":5}`, shell("rm x\n", false)},
		{"write_bash", `{"sessionId":"a","input":"{up}{enter}","delay":5}`, shell("{up}\n", true)},
		{"send_command_input", `{"CommandId":"a","Input":"rm x\n"}`, shell("rm x\n", false)},
		{"send_command_input", `{"CommandId":"a","Terminate":true}`, shell("", false)},
		{"send_to_terminal", `{"id":"a","command":"rm x"}`, shell("rm x", true)},
		{"write_to_terminal", `{"text":"rm x\r"}`, shell("rm x\r", false)},
		{"mcp__dc__interact_with_process", `{"pid":1,"input":"rm x\n"}`, mcp("dc", "rm x\n", false)},
		{"mcp__dc__interact_with_process", `{"pid":1,"input":"rm"}`, mcp("dc", "rm", true)},
		// Code in a shell's language is a command, all other code is not known.
		{"execute_code", `{"code":"import os"}`, shell("", true)},
		{"execute_code", `{"language":"bash","code":"rm x"}`, shell("rm x", false)},
		{"execute_code", `{"language":"Python","code":"rm x"}`, shell("", true)},
		{"run_code", `{"lang":"sh","script":"rm x"}`, shell("rm x", false)},
		{"run_code", `{"command":"rm x"}`, shell("", true)},
		{"python", `{"code":"x"}`, shell("", true)},
		{"notebook_execute", `{"cell":"x"}`, shell("", true)},
		{"run_notebook_cell", `{"filePath":"a","cellId":"b"}`, shell("", true)},
		{"execute_code", `{}`, shell("", false)},
		{"computercontroller__automation_script", `{"language":"shell","script":"rm x"}`, mcp("computercontroller", "rm x", false)},
		{"computercontroller__automation_script", `{"language":"ruby","script":"rm x"}`, mcp("computercontroller", "", true)},
		{"automation_script", `{"language":"shell","script":"rm x"}`, shell("rm x", false)},
		{"code_execution__execute_code", `{"code":"x"}`, mcp("code_execution", "", true)},
		{"mcp__ide__executeCode", `{"code":"x"}`, mcp("ide", "", true)},
		{"mcp_my_box_run_code", `{"code":"x"}`, mcp("my", "", true)},
		{"MCP:run_code", `{"code":"x"}`, mcp("", "", true)},
		{"@box/python", `{"code":"x"}`, mcp("box", "", true)},
		{"call_mcp_tool", `{"ServerName":"box","ToolName":"run_code","Arguments":{"code":"x"}}`, mcp("box", "", true)},
		{"use_mcp_tool", `{"server_name":"box","tool_name":"execute_command","arguments":"{\"cmd\":\"rm x\"}"}`, mcp("box", "rm x", false)},
		{"mcp__box__shell", `{"value":"rm x"}`, mcp("box", "rm x", false)},
		{"mcp__box__shell", `{"line":"rm x"}`, mcp("box", "", true)},
		{"mcp__box__list", `{"line":"rm x"}`, mcp("box", "", false)},
	} {
		require.Equal(t, tc.want, ReadToolFacts(tc.name, toolArgs(t, tc.args)), "%s %s", tc.name, tc.args)
	}
}

// TestGooseEdit: its arguments have names of their own.
func TestGooseEdit(t *testing.T) {
	native := toolArgs(t, `{"path":"/f","before":"a","after":"b"}`)
	require.Equal(t, ToolFacts{Kind: ToolFileEdit, Path: "/f"}, ReadToolFacts("developer__edit", native))
	name, args := ClaudeToolCall("developer__edit", native)
	require.Equal(t, "Edit", name)
	require.JSONEq(t, `{"file_path":"/f","old_string":"a","new_string":"b"}`, string(args.AppendJSON(nil)))
	back := NativeArguments("developer__edit", native, toolArgs(t, `{"file_path":"/f","old_string":"a","new_string":"c"}`))
	require.JSONEq(t, `{"path":"/f","before":"a","after":"c"}`, string(back.AppendJSON(nil)))
}

// TestClaudeToolCall translates there, and a change back.
func TestClaudeToolCall(t *testing.T) {
	for _, tc := range []struct {
		about                string
		name, args           string
		claudeName, claude   string
		changed, nativeAgain string // "" = only there
	}{
		{
			"Claude's own stays", "Bash", `{"command":"ls","timeout":5}`, "Bash", `{"command":"ls","timeout":5}`,
			`{"command":"ls -l","timeout":5}`, `{"command":"ls -l","timeout":5}`,
		},
		{
			"other name, other argument", "run_command", `{"CommandLine":"ls","Cwd":"/w"}`, "Bash", `{"command":"ls","Cwd":"/w"}`,
			`{"command":"ls -l","Cwd":"/w"}`, `{"CommandLine":"ls -l","Cwd":"/w"}`,
		},
		{
			"a script that gives the whole input anew", "run_command", `{"CommandLine":"ls","Cwd":"/w"}`, "Bash", `{"command":"ls","Cwd":"/w"}`,
			`{"command":"pwd"}`, `{"CommandLine":"pwd"}`,
		},
		{
			"an argument vector with a shell", "shell", `{"command":["bash","-lc","ls"]}`, "Bash", `{"command":"ls"}`,
			`{"command":"ls -l"}`, `{"command":["bash","-lc","ls -l"]}`,
		},
		{
			"an argument vector without", "shell", `{"command":["ls"]}`, "Bash", `{"command":"ls"}`,
			`{"command":"ls | wc"}`, `{"command":["bash","-c","ls | wc"]}`,
		},
		{
			"write", "write_to_file", `{"TargetFile":"/f","CodeContent":"x","Overwrite":true}`, "Write", `{"file_path":"/f","content":"x","Overwrite":true}`,
			`{"file_path":"/f","content":"y","Overwrite":true}`, `{"TargetFile":"/f","CodeContent":"y","Overwrite":true}`,
		},
		{
			"a new argument takes the agent's spelling", "edit_file", `{"filePath":"/f","oldString":"a","newString":"b"}`, "Edit", `{"file_path":"/f","old_string":"a","new_string":"b"}`,
			`{"file_path":"/f","old_string":"a","new_string":"b","replace_all":true}`, `{"filePath":"/f","oldString":"a","newString":"b","replaceAll":true}`,
		},
		{
			"Claude's name, another's arguments", "Edit", `{"file_path":"/f","old_str":"a","new_str":"b","change_all":true}`, "Edit", `{"file_path":"/f","old_string":"a","new_string":"b","replace_all":true}`,
			`{"file_path":"/f","old_string":"a","new_string":"b","replace_all":false}`, `{"file_path":"/f","old_str":"a","new_str":"b","change_all":false}`,
		},
		{
			"nested", "StrReplaceFile", `{"path":"/f","edit":{"old":"a","new":"b"}}`, "Edit", `{"file_path":"/f","old_string":"a","new_string":"b"}`,
			`{"file_path":"/f","old_string":"a","new_string":"c"}`, `{"path":"/f","edit":{"old":"a","new":"c"}}`,
		},
		{
			"several edits", "multi_replace_file_content", `{"TargetFile":"/f","ReplacementChunks":[{"TargetContent":"a","ReplacementContent":"b","StartLine":1}]}`,
			"MultiEdit", `{"file_path":"/f","edits":[{"old_string":"a","new_string":"b","StartLine":1}]}`,
			`{"file_path":"/f","edits":[{"old_string":"a","new_string":"c","StartLine":1}]}`, `{"TargetFile":"/f","ReplacementChunks":[{"TargetContent":"a","ReplacementContent":"c","StartLine":1}]}`,
		},
		{
			"several files", "multi_replace_string_in_file", `{"replacements":[{"filePath":"/f","oldString":"a","newString":"b"}]}`,
			"MultiEdit", `{"file_path":"/f","edits":[{"file_path":"/f","old_string":"a","new_string":"b"}]}`, "", "",
		},
		{
			"an editor that views", "str_replace_editor", `{"command":"view","path":"/f"}`, "Read", `{"command":"view","file_path":"/f"}`,
			`{"command":"view","file_path":"/g"}`, `{"command":"view","path":"/g"}`,
		},
		{
			"an editor that creates", "fs_write", `{"command":"create","path":"/f","file_text":"x"}`, "Write", `{"command":"create","file_path":"/f","content":"x"}`,
			`{"command":"create","file_path":"/f","content":"y"}`, `{"command":"create","path":"/f","file_text":"y"}`,
		},
		{
			"a patch that adds a file", "apply_patch", `{"command":"*** Begin Patch\n*** Add File: a.txt\n+one\n+two\n*** End Patch"}`, "Write", `{"file_path":"a.txt","content":"one\ntwo\n"}`,
			`{"file_path":"a.txt","content":"three\n"}`, `{"command":"*** Begin Patch\n*** Add File: a.txt\n+three\n*** End Patch"}`,
		},
		{
			"a patch of one file", "apply_patch", `{"input":"*** Begin Patch\n*** Update File: a.txt\n@@\n keep\n-old\n+new\n*** End Patch","explanation":"e"}`,
			"Edit", `{"file_path":"a.txt","old_string":"keep\nold","new_string":"keep\nnew","explanation":"e"}`,
			`{"file_path":"a.txt","old_string":"keep\nold","new_string":"keep\nnewer","explanation":"e"}`,
			`{"input":"*** Begin Patch\n*** Update File: a.txt\n@@\n-keep\n-old\n+keep\n+newer\n*** End Patch","explanation":"e"}`,
		},
		{
			"a patch of several files shows the patch", "apply_patch", `{"command":"` + patchOfThree + `"}`, "Edit", `{"file_path":"docs/a.md","command":"` + patchOfThree + `"}`,
			"", "",
		},
		{"a patch that is none", "apply_patch", `{"command":"hello"}`, "apply_patch", `{"command":"hello"}`, `{"command":"bye"}`, `{"command":"bye"}`},
		{
			"a patch tool that replaces", "patch", `{"mode":"replace","path":"/f","old_string":"a","new_string":"b"}`, "Edit", `{"mode":"replace","file_path":"/f","old_string":"a","new_string":"b"}`,
			`{"mode":"replace","file_path":"/f","old_string":"a","new_string":"c"}`, `{"mode":"replace","path":"/f","old_string":"a","new_string":"c"}`,
		},
		{"MCP by name", "@db/query", `{"q":1}`, "mcp__db__query", `{"q":1}`, `{"q":2}`, `{"q":2}`},
		{"MCP where the server is a guess", "mcp_db_query", `{"q":1}`, "mcp_db_query", `{"q":1}`, `{"q":2}`, `{"q":2}`},
		{
			"MCP by argument", "call_mcp_tool", `{"ServerName":"db","ToolName":"query","Arguments":{"q":1}}`, "mcp__db__query", `{"q":1}`,
			`{"q":2}`, `{"ServerName":"db","ToolName":"query","Arguments":{"q":2}}`,
		},
		{
			"MCP with JSON in a string", "use_mcp_tool", `{"server_name":"db","tool_name":"query","arguments":"{\"q\":1}"}`, "mcp__db__query", `{"q":1}`,
			`{"q":2}`, `{"server_name":"db","tool_name":"query","arguments":"{\"q\":2}"}`,
		},
		{"Claude's older name", "Task", `{"prompt":"p","subagent_type":"x"}`, "Task", `{"prompt":"p","subagent_type":"x"}`, "", ""},
		{"a subagent", "spawn_agent", `{"message":"p","agent_type":"x"}`, "Agent", `{"prompt":"p","subagent_type":"x"}`, `{"prompt":"q","subagent_type":"x"}`, `{"message":"q","agent_type":"x"}`},
		{"unknown", "nobody_knows", `{"a":1.50}`, "nobody_knows", `{"a":1.50}`, `{"a":2}`, `{"a":2}`},
		{"no counterpart", "write_stdin", `{"chars":"x"}`, "write_stdin", `{"chars":"x"}`, `{"chars":"y"}`, `{"chars":"y"}`},
		{
			"both spellings, which differ", "run_command", `{"CommandLine":"a","command":"b","Cwd":"/"}`, "Bash", `{"CommandLine":"b\na","command":"b\na","Cwd":"/"}`,
			`{"CommandLine":"b\na","command":"c","Cwd":"/"}`, `{"CommandLine":"c","command":"c","Cwd":"/"}`,
		},
		{
			"both spellings, and another change", "run_command", `{"CommandLine":"a","command":"b","Cwd":"/"}`, "Bash", `{"CommandLine":"b\na","command":"b\na","Cwd":"/"}`,
			`{"CommandLine":"b\na","command":"b\na","Cwd":"/w"}`, `{"CommandLine":"a","command":"b","Cwd":"/w"}`,
		},
		{
			"the same in another case", "bash", `{"command":"ls","Command":"rm x"}`, "Bash", `{"command":"ls\nrm x","Command":"ls\nrm x"}`,
			`{"command":"pwd"}`, `{"command":"pwd","Command":"pwd"}`,
		},
		{
			"an empty decoy", "bash", `{"command":"","cmd":"rm x"}`, "Bash", `{"command":"rm x","cmd":"rm x"}`, "", "",
		},
		{
			"a decoy of a file", "write_to_file", `{"file_path":"/ok","TargetFile":"/p","content":"a","CodeContent":"b"}`, "Write",
			`{"file_path":"/ok\n/p","TargetFile":"/ok\n/p","content":"a\nb","CodeContent":"a\nb"}`,
			`{"file_path":"/ok\n/p","TargetFile":"/ok\n/p","content":"c","CodeContent":"a\nb"}`, `{"file_path":"/ok","TargetFile":"/p","content":"c","CodeContent":"c"}`,
		},
		{
			"a decoy for an MCP server's shell", "mcp__box__shell", `{"command":"ls","Command":"rm x","n":1}`, "mcp__box__shell", `{"command":"ls\nrm x","Command":"ls\nrm x","n":1}`,
			`{"command":"ls\nrm x","Command":"ls\nrm x","n":2}`, `{"command":"ls","Command":"rm x","n":2}`,
		},
		{
			"a decoy for an MCP server's shell that is called", "call_mcp_tool", `{"ServerName":"db","ToolName":"shell","Arguments":{"command":"ls","Command":"rm"}}`,
			"mcp__db__shell", `{"command":"ls\nrm","Command":"ls\nrm"}`,
			`{"command":"pwd","Command":"ls\nrm"}`, `{"ServerName":"db","ToolName":"shell","Arguments":{"command":"pwd","Command":"pwd"}}`,
		},
		{
			"a decoy of a tool's name", "call_mcp_tool", `{"ServerName":"db","tool_name":"a","ToolName":"b","Arguments":{"q":1}}`,
			"call_mcp_tool", `{"ServerName":"db","tool_name":"a","ToolName":"b","Arguments":{"q":1}}`, "", "",
		},
		{"an MCP server's tool with names of its own", "mcp__a__b", `{"Path":"/x"}`, "mcp__a__b", `{"Path":"/x"}`, `{"Path":"/y"}`, `{"Path":"/y"}`},
		{"empty", "run_command", `{}`, "Bash", `{}`, `{"command":"x"}`, `{"command":"x"}`},
	} {
		t.Run(tc.about, func(t *testing.T) {
			native := toolArgs(t, tc.args)
			name, claude := ClaudeToolCall(tc.name, native)
			require.Equal(t, tc.claudeName, name)
			require.Equal(t, string(toolArgs(t, tc.claude).AppendJSON(nil)), string(claude.AppendJSON(nil)))
			require.Equal(t, string(native.AppendJSON(nil)), string(NativeArguments(tc.name, native, claude).AppendJSON(nil)), "nothing changed")
			require.Equal(t, tc.args, string(native.AppendJSON(nil)), "what was given stays as it was")
			if tc.changed != "" {
				back := NativeArguments(tc.name, native, toolArgs(t, tc.changed))
				require.Equal(t, string(toolArgs(t, tc.nativeAgain).AppendJSON(nil)), string(back.AppendJSON(nil)))
			}
		})
	}
}

func TestClaudeToolCalls(t *testing.T) {
	calls := ClaudeToolCalls("apply_patch", toolArgs(t, `{"command":"`+patchOfThree+`"}`))
	var got []string
	for _, c := range calls {
		got = append(got, c.Name+string(c.Arguments.AppendJSON(nil)))
	}
	require.Equal(t, []string{
		`Write{"file_path":"docs/a.md","content":"one\ntwo\n"}`,
		`Edit{"file_path":"src/b.go","old_string":"keep\nold","new_string":"keep\nnew","move_path":"src/c.go"}`,
		`Edit{"file_path":"d.txt","old_string":"","new_string":""}`,
	}, got)
	require.Len(t, ClaudeToolCalls("Bash", toolArgs(t, `{"command":"ls"}`)), 1)
	require.Len(t, ClaudeToolCalls("apply_patch", nil), 1)
}

// FuzzToolCall holds that nothing panics, that what comes out is JSON with every
// name once, and that a call translated there and back is the same call.
func FuzzToolCall(f *testing.F) {
	for _, row := range toolTable {
		f.Add(row.name, `{"command":["sh","-c","x"],"path":"p","edit":{"old":"a","new":"b"},"edits":[{"oldString":"a"},3]}`)
	}
	f.Add("apply_patch", `{"command":"`+patchOfThree+`"}`)
	f.Add("apply_patch", `{"command":"*** Add File: a\n+x","file_path":"b","content":1,"move_path":2}`)
	f.Add("apply_patch", `{"command":"`+patchOfThree+`","file_path":"b","content":1,"move_path":2}`)
	f.Add("run_command", `{"command":"ls","Command":"rm","CommandLine":["sh","-c","x"],"COMMAND":7}`)
	f.Add("mcp__a__b", `{"PATH":"x","Path":"y","url":"z"}`)
	f.Add("use_mcp_tool", `{"tool_name":"t","Tool":"u","arguments":"{\"command\":1,\"Command\":\"x\"}","ARGUMENTS":{}}`)
	f.Add("use_mcp_tool", `{"server_name":"s","tool_name":"t","arguments":"{\"a\":1}"}`)
	f.Fuzz(func(t *testing.T, name, text string) {
		args, err := DecodeObject([]byte(text), 0)
		if err != nil {
			return
		}
		ReadToolFacts(name, args)
		ToolPaths(name, args)
		readings, _ := ToolReadings(name, args)
		require.LessOrEqual(t, len(readings), maxReadings)
		for _, o := range readings {
			requireObject(t, o)
		}
		for _, c := range ClaudeToolCalls(name, args) {
			requireObject(t, c.Arguments)
		}
		_, claude := ClaudeToolCall(name, args)
		requireObject(t, claude)
		require.Equal(t, string(args.AppendJSON(nil)), string(NativeArguments(name, args, claude).AppendJSON(nil)))
		if strings.HasPrefix(text, "{}") {
			return
		}
		requireObject(t, NativeArguments(name, args, claude.With("file_path", Quote("x"))))
		requireObject(t, NativeArguments(name, args, nil))
	})
}

func requireObject(t *testing.T, o Object) {
	t.Helper()
	_, err := DecodeObject(o.AppendJSON(nil), 0)
	require.NoError(t, err)
}

// TestToolDecoys: where arguments that mean the same differ, the facts hold all
// that is said, and say that they are not sure.
func TestToolDecoys(t *testing.T) {
	for _, tc := range []struct {
		name, args string
		want       ToolFacts
		readings   int
	}{
		{"run_command", `{"command":"ls","CommandLine":"rm x"}`, ToolFacts{Kind: ToolShell, Command: "ls\nrm x", Opaque: true}, 2},
		{"exec_command", `{"cmd":"rm x","command":"ls"}`, ToolFacts{Kind: ToolShell, Command: "ls\nrm x", Opaque: true}, 2},
		{"bash", `{"command":"ls","Command":"rm x"}`, ToolFacts{Kind: ToolShell, Command: "ls\nrm x", Opaque: true}, 2},
		{"bash", `{"command":"ls","\u212aommand":"x"}`, ToolFacts{Kind: ToolShell, Command: "ls"}, 0},
		{"shell", `{"script":"ls","\u017fcript":"rm x"}`, ToolFacts{Kind: ToolShell, Command: "ls\nrm x", Opaque: true}, 2},
		{"shell", `{"":"ls"}`, ToolFacts{Kind: ToolShell}, 0},
		{"bash", `{"COMMAND":"rm x"}`, ToolFacts{Kind: ToolShell, Command: "rm x"}, 0},
		{"bash", `{"command":"ls","Command":"ls"}`, ToolFacts{Kind: ToolShell, Command: "ls"}, 0},
		{"shell", `{"command":["rm","x"],"cmd":"rm x"}`, ToolFacts{Kind: ToolShell, Command: "rm x"}, 0},
		{"shell", `{"command":["ls"],"cmd":"rm x"}`, ToolFacts{Kind: ToolShell, Command: "ls\nrm x", Opaque: true}, 2},
		{"bash", `{"command":"","cmd":"rm x"}`, ToolFacts{Kind: ToolShell, Command: "rm x"}, 0},
		{"mcp__box__shell", `{"command":"ls","Command":"rm x"}`, ToolFacts{Kind: ToolMCP, Server: "box", Command: "ls\nrm x", Opaque: true}, 2},
		{"write_stdin", `{"chars":"ls\n","input":"rm x\n"}`, ToolFacts{Kind: ToolShell, Command: "ls\n\nrm x\n", Opaque: true}, 2},
		{"write_to_file", `{"file_path":"/tmp/ok","TargetFile":"/etc/passwd"}`, ToolFacts{Kind: ToolFileWrite, Path: "/tmp/ok\n/etc/passwd", Opaque: true}, 2},
		{"create", `{"path":"/etc/passwd","file_path":"/tmp/ok"}`, ToolFacts{Kind: ToolFileWrite, Path: "/tmp/ok\n/etc/passwd", Opaque: true}, 2},
		{"fetch", `{"url":"https://a","URL":"https://b"}`, ToolFacts{Kind: ToolWeb, URL: "https://a\nhttps://b", Opaque: true}, 2},
		{"str_replace_editor", `{"command":"view","Command":"create","path":"/p"}`, ToolFacts{Kind: ToolFileWrite, Path: "/p", Opaque: true}, 2},
		{"call_mcp_tool", `{"ServerName":"db","tool_name":"q","arguments":{"command":"ls","Command":"rm x"}}`, ToolFacts{Kind: ToolMCP, Server: "db", Command: "ls\nrm x", Opaque: true}, 2},
		{"call_mcp_tool", `{"ServerName":"db","tool_name":"q","arguments":{"command":"ls"},"Arguments":{"command":"rm x"}}`, ToolFacts{Kind: ToolMCP, Server: "db", Command: "ls", Opaque: true}, 2},
		{"apply_patch", `{"input":"*** Delete File: a","patch":"*** Delete File: b"}`, ToolFacts{Kind: ToolFileEdit, Path: "a", Opaque: true}, 2},
	} {
		args := toolArgs(t, tc.args)
		require.Equal(t, tc.want, ReadToolFacts(tc.name, args), "%s %s", tc.name, tc.args)
		readings, all := ToolReadings(tc.name, args)
		require.True(t, all)
		require.Len(t, readings, tc.readings, "%s %s", tc.name, tc.args)
	}
	require.Equal(t, []string{"/ok", "/p"}, ToolPaths("write_to_file", toolArgs(t, `{"file_path":"/ok","TargetFile":"/p"}`)))
	require.Equal(t, []string{"/ok", "/p"}, ToolPaths("Read", toolArgs(t, `{"paths":["/ok"],"Paths":["/p"]}`)))
	require.Equal(t, []string{"a", "b"}, ToolPaths("apply_patch", toolArgs(t, `{"input":"*** Delete File: a","patch":"*** Delete File: b"}`)))
	_, all := ToolReadings("Edit", toolArgs(t, `{"path":"1","file_path":"2","filePath":"3","file":"4","content":"1","contents":"2","file_text":"3","new_string":"1","new_str":"2"}`))
	require.False(t, all)
}
