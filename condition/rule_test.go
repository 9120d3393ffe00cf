package condition

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/protocol"
)

// TestRuleForm tells rules from expressions.
func TestRuleForm(t *testing.T) {
	for text, want := range map[string]bool{
		"Bash": true, " Bash ": true, "Bash(git *)": true, "Bash(echo (a) b)": true, "Unknown": true, "mcp__a__b": true, "mcp__a__*": true, "mcp__a": true,
		"run_command(rm *)": true, "bash": true, "edit_file": true, "write_file(x)": true, "container.exec(rm *)": true,
		"true": false, "shell": false, "find": false, "tool == 'Bash'": false, "tool": false, "comand": false, "Bash == tool": false, "not": false,
		"len(command) > 1": false, "any(shell.commands, true)": false, "any(shell.commands, .name == 'x')": false, "'Bash(git *)'": false, "(Bash)": false,
		"shell.runs('rm')": false, "command contains '('": false, "find(shell.commands, true)": false,
	} {
		assert.Equal(t, want, isRule(text), text)
	}
}

func TestRuleErrors(t *testing.T) {
	for text, want := range map[string]string{
		"Bash()":                     "column 6: nothing stands in the parentheses: leave them out to mean every call of Bash",
		"  Bash( )":                  "column 8: nothing stands in the parentheses",
		"Bash(git *) || Bash(npm *)": "column 11: a rule ends at its closing parenthesis",
		"Ba*(x)":                     "column 1: a tool's name has no *",
		"mcp__a__b(x)":               "column 11: a rule about an MCP server's tool has no parentheses",
		"WebFetch(example.com)":      "column 10: write which host is meant, as in WebFetch(domain:example.com)",
		"WebFetch(domain:)":          "write which host is meant",
		"Edit(src/[a)":               "column 6: the pattern can't be read: a [ is not closed",
		"Bash(git *":                 "column 10: unexpected token",
	} {
		_, err := Compile(text)
		var typed *Error
		require.ErrorAs(t, err, &typed, text)
		assert.ErrorContains(t, err, want, text)
	}
}

func TestShellRules(t *testing.T) {
	for _, c := range []struct {
		rule, line string
		want       bool
	}{
		{"Bash", "ls", true},
		{"Bash(git *)", "git status", true},
		{"Bash(git *)", "git", true},
		{"Bash(git *)", "gitk --all", false},
		{"Bash(git*)", "gitk --all", true},
		{"Bash(git:*)", "git status", true},
		{"Bash(git:*)", "git", true},
		{"Bash(git:*)", "gitk", false},
		{"Bash(git status)", "git status", true},
		{"Bash(git status)", "git status -s", false},
		{"Bash(git status)", "git   status", true},
		{"Bash(npm run test:*)", "npm run test --watch", true},
		{"Bash(npm run test:*)", "npm run test", true},
		{"Bash(npm run test:*)", "npm run build", false},
		{"Bash(* --force)", "git push --force", true},
		{"Bash(git * main)", "git push origin main", true},
		{"Bash(*)", "ls", true},
		{"Bash(rm *)", "ls && rm -rf /", true},
		{"Bash(rm *)", "ls; (cd /x; /bin/rm -rf y)", true},
		{"Bash(rm *)", "FOO=1 rm -rf y", true},
		{"Bash(rm *)", "sudo -u root rm -rf y", true},
		{"Bash(sudo rm *)", "sudo rm -rf y", true},
		{"Bash(/bin/rm *)", "/bin/rm -rf y", true},
		{"Bash(rm *)", "RM -rf y", true},
		{"Bash(rm *)", "r''m -rf y", true},
		{"Bash(rm -rf \"a b\")", "rm -rf \"a b\"", true},
		{"Bash(rm *)", "echo 'rm -rf y'", false},
		{"Bash(rm *)", "grep -rn 'rm -rf' . | head", false},
		{"Bash(curl * | sh)", "curl -s x | sh", true},
		{"Bash(rm *)", "curl -s x | sh", true},
		{"Bash(rm *)", "$X -rf y", true},
		{"Bash(rm *)", "echo 'x", true},
		{"Bash(rm *)", "", false},
	} {
		assert.Equal(t, c.want, compile(t, c.rule).Holds(shellCall(t, c.line)), "%s: %s", c.rule, c.line)
	}
}

// TestRuleTools shows that a rule means a tool under all its names.
func TestRuleTools(t *testing.T) {
	for _, c := range []struct {
		rule, tool, arguments string
		want                  bool
	}{
		{"Bash(rm *)", "run_command", `{"command":"rm x"}`, true},
		{"Bash(rm *)", "run_command", `{"CommandLine":"rm x"}`, true},
		{"Bash(rm *)", "shell", `{"command":["bash","-lc","rm x"]}`, true},
		{"Bash(rm *)", "shell", `{"command":["ls"]}`, false},
		{"run_shell_command(rm *)", "Bash", `{"command":"rm x"}`, true},
		{"Bash(rm *)", "PowerShell", `{"command":"Get-Item x"}`, true},
		{"Bash(rm *)", "Bash", `{"cmdline":"rm x"}`, true}, // the command is not found
		{"Bash(rm *)", "Bash", `{"command":""}`, false},
		{"Bash(rm *)", "Bash", `{}`, false},
		{"Bash(rm *)", "Read", `{"file_path":"rm x"}`, false},
		{"Bash", "Read", `{}`, false},
		{"Edit", "edit_file", `{}`, true},
		{"Edit", "Write", `{}`, true}, // as in Claude Code: all that changes files
		{"Edit", "apply_patch", `{}`, true},
		{"Write", "Edit", `{}`, false},
		{"Edit", "Read", `{}`, false},
		{"Read", "Grep", `{}`, true},
		{"Read", "list_dir", `{}`, true},
		{"Custom", "Custom", `{}`, true},
		{"Custom(a*)", "Custom", `{"x":1,"y":"abc"}`, true},
		{"Custom(a*)", "Custom", `{"y":"bc"}`, false},
		{"Agent(Explore)", "Task", `{"subagent_type":"Explore","prompt":"x"}`, true},
		{"Agent(Explore)", "Task", `{"subagent_type":"Plan","prompt":"x"}`, false},
		{"mcp__gh", "mcp__gh__delete_repo", `{}`, true},
		{"mcp__gh", "mcp__ghx__delete_repo", `{}`, false},
		{"mcp__gh__*", "mcp__gh__delete_repo", `{}`, true},
		{"mcp__gh__delete_*", "mcp__gh__delete_repo", `{}`, true},
		{"mcp__gh__delete_*", "mcp__gh__get_repo", `{}`, false},
		{"mcp__gh__delete_repo", "mcp_gh_delete_repo", `{}`, true},
		{"mcp__gh__delete_repo", "@gh/delete_repo", `{}`, true},
		{"mcp__gh__delete_repo", "MCP:delete_repo", `{}`, true}, // the server is not said
		{"mcp__gh__delete_repo", "MCP:get_repo", `{}`, false},
		{"mcp__gh__delete_repo", "use_mcp_tool", `{"server_name":"gh","tool_name":"delete_repo","arguments":{}}`, true},
		{"mcp__gh__delete_repo", "use_mcp_tool", `{"server_name":"gh","tool_name":"get_repo","arguments":{}}`, false},
		{"mcp__gh", "use_mcp_tool", `{"server_name":"gl","tool_name":"get_repo","arguments":{}}`, false},
		{"mcp__gh", "Bash", `{"command":"x"}`, false},
	} {
		assert.Equal(t, c.want, compile(t, c.rule).Holds(toolCall(t, c.tool, c.arguments)), "%s: %s %s", c.rule, c.tool, c.arguments)
	}
	message := request(t, protocol.StageUserMessage, `{"message":{"role":"user","content":"rm x"}}`)
	require.False(t, compile(t, "Bash(rm *)").Holds(message), "this is no call of a tool")
}

func TestPathRules(t *testing.T) {
	for _, c := range []struct {
		pattern, path, cwd string
		want               bool
	}{
		{"src/**", "src/a/b.go", "/repo", true},
		{"src/**", "/repo/src/a/b.go", "/repo", true},
		{"src/**", "./src/../src/a", "/repo", true},
		{"src/**", "lib/a.go", "/repo", false},
		{"src/**", "/other/src/a.go", "/repo", false},
		{"src/**", "src/../../etc/passwd", "/repo", false},
		{"//etc/**", "src/../../etc/passwd", "/repo", true},
		{"/src/**", "src/a", "/repo", true},
		{"./src/**", "/repo/src/a", "/repo/", true},
		{"src/*.go", "src/a.go", "/repo", true},
		{"src/*.go", "src/a/b.go", "/repo", false},
		{"src/**/*.go", "src/a/b/c.go", "/repo", true},
		{"src/**/*.go", "src/c.go", "/repo", true},
		{"src/", "src/a/b", "/repo", true},
		{"src", "src/a/b", "/repo", true},
		{"src", "lib/src/a", "/repo", true},
		{"*.env", "a/b/prod.env", "/repo", true},
		{".env", "/other/.env", "/repo", true},
		{".env", ".env.local", "/repo", false},
		{"**/secrets/**", "a/secrets/b", "/repo", true},
		{"**", "anything", "/repo", true},
		{"*", "anything", "/repo", true},
		{"/", "/repo/a", "/repo", true},
		{"/", "/a", "/repo", false},
		{"//**", "/a", "/repo", true},
		{"//etc/passwd", "/etc/passwd", "", true},
		{"//etc/passwd", "/etc/../etc//passwd", "", true},
		{"//etc/passwd", "/etc/passwd2", "", false},
		{"//etc/passwd", "etc/passwd", "/", true},
		{"//etc/passwd", "etc/passwd", "", false},
		{"~/.ssh/**", "/home/bob/.ssh/id_rsa", "/repo", true},
		{"~/.ssh/**", "/root/.ssh/id_rsa", "/repo", true},
		{"~/.ssh/**", "/Users/bob/.SSH/id_rsa", "/repo", true},
		{"~/.ssh/**", "~/.ssh/id_rsa", "/repo", true},
		{"~/.ssh/**", "~bob/.ssh/id_rsa", "/repo", true},
		{"~/.ssh/**", "$HOME/.ssh/id_rsa", "/repo", true},
		{"~/.ssh/**", "../.ssh/id_rsa", "/home/bob/x", true},
		{"~/.ssh/**", `C:\Users\bob\.ssh\id_rsa`, "", true},
		{"~/.ssh/**", "/repo/.ssh/id_rsa", "/repo", false},
		{"~", "/home/bob/x", "/repo", true},
		{"src/**", "~/repo/src/a", "/home/bob/repo", true}, // where home is, is not known
		{"src/**", "/repo/src/a", "", true},                // nor is the session's folder
		{"src/**", "src/a", "", true},
		{"src/**", "../src/a", "", true},
		{"src/**", "lib/a", "", false},
		{"src/[ab].go", "src/a.go", "/repo", true},
	} {
		p, err := newPathPattern(c.pattern)
		require.NoError(t, err)
		assert.Equal(t, c.want, p.matches(c.path, c.cwd), "%s: %s in %s", c.pattern, c.path, c.cwd)
	}

	rule := compile(t, "Edit(src/**)")
	require.True(t, rule.Holds(toolCall(t, "Edit", `{"file_path":"/repo/src/a.go"}`)))
	require.False(t, rule.Holds(toolCall(t, "Edit", `{"file_path":"/repo/lib/a.go"}`)))
	require.True(t, rule.Holds(toolCall(t, "Edit", `{"where":"/repo/lib/a.go"}`)), "which file it means is not known")
	patch := `{"input":"*** Begin Patch\n*** Update File: lib/a.go\n@@\n-a\n+b\n*** Update File: src/b.go\n@@\n-a\n+b\n*** End Patch\n"}`
	require.True(t, rule.Holds(toolCall(t, "apply_patch", patch)), "the second file of a patch counts, too")
}

func TestHostRules(t *testing.T) {
	for _, c := range []struct {
		host, address string
		want          bool
	}{
		{"example.com", "https://example.com/a?b", true},
		{"example.com", "https://EXAMPLE.com:8443/", true},
		{"example.com", "https://example.com./", true},
		{"example.com", "example.com/a", true},
		{"example.com", "https://user:pass@example.com/", true},
		{"example.com", "https://example.com@evil.org/", false},
		{"example.com", "https://www.example.com/", false},
		{"example.com", "https://evil.org/example.com", false},
		{"*.example.com", "https://www.example.com/", true},
		{"*.example.com", "https://example.com/", false},
		{"example.com", `https://evil.org\@example.com/`, true},
		{"example.com", "https://exa\nmple.com/", true},
		{"example.com", "", true},
	} {
		call := toolCall(t, "WebFetch", `{"url":`+string(protocol.Quote(c.address))+`}`)
		assert.Equal(t, c.want, compile(t, "WebFetch(domain:"+c.host+")").Holds(call), "%s: %s", c.host, c.address)
	}
	require.True(t, compile(t, "WebFetch(domain:example.com)").Holds(toolCall(t, "web_fetch", `{"prompt":"read https://example.com/x, please"}`)))
	require.True(t, compile(t, "WebSearch(*password*)").Holds(toolCall(t, "web_search", `{"query":"a password b"}`)))
}
