package commands

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// draft is a file as a user of the form has it.
const draft = `{"version":1,"disabled":false,"hooks":{"PreToolUse":[{"name":"block-dangerous-rm","matcher":"run_command","if":"command contains 'rm -rf /'","enabled":true,"max_repeats":null,"hooks":[{"type":"command","command":"python3 ~/.astrion/astrion/hooks/block_dangerous.py","timeout":5,"statusMessage":"checking","fail_policy":"continue","on_error":"log"}]}],"Stop":[{"name":"remind","max_repeats":3,"hooks":[{"type":"command","command":"echo"}]}]}}`

func TestDraft(t *testing.T) {
	f := parsed(t, draft)
	require.Equal(t, FormHookd, f.Form)
	require.Empty(t, f.Warnings)
	list := f.Hooks(hook.LayerUser, 0, newRunner(t, 0))
	require.Len(t, list, 2)
	require.Equal(t, "user:PreToolUse/block-dangerous-rm", list[0].Name)
	require.Nil(t, list[0].MaxRepeats)
	require.Equal(t, 3, *list[1].MaxRepeats)
	for command, want := range map[string]bool{"rm -rf /": true, "sudo rm -rf /home": true, "ls": false} {
		for _, tool := range []string{"run_command", "Bash", "run_shell_command"} {
			req := asked(t, protocol.StageBeforeTool, `{"tool":"`+tool+`","arguments":{"command":"`+command+`"}}`)
			require.Equal(t, want, list[0].If.Holds(req), "%s %s", tool, command)
		}
	}
	require.False(t, list[0].If.Holds(asked(t, protocol.StageBeforeTool, `{"tool":"Read","arguments":{"file_path":"rm -rf /"}}`)))
}

func TestClaudeSettings(t *testing.T) {
	f := parsed(t, `{
  "permissions": {"allow": ["Bash(ls)"]}, "model": "opus",
  "hooks": {
    "PreToolUse": [
      {"matcher": "Edit|Write", "hooks": [{"type": "command", "command": "a", "timeout": 10, "once": true}, {"type": "command", "command": "/bin/b", "args": ["x y"]}]},
      {"matcher": "mcp__memory__.*", "hooks": [{"type": "http", "url": "http://127.0.0.1:1/x", "headers": {"A": "b"}}]},
      {"matcher": "Bash", "hooks": [{"type": "command", "command": "c", "if": "Bash(git push *)", "onFailure": "block"}]}
    ],
    "SessionStart": [{"matcher": "resume", "hooks": [{"type": "command", "command": "d"}]}],
    "FileChanged": [{"hooks": [{"type": "command", "command": "e", "async": true}]}]
  }
}`)
	require.Equal(t, FormClaude, f.Form)
	list := f.Hooks(hook.LayerConfig, 0, newRunner(t, 0))
	var names []string
	for _, r := range list {
		require.NoError(t, r.Check(), r.Name)
		names = append(names, r.Name)
	}
	require.Equal(t, []string{
		"config:PreToolUse/1#1", "config:PreToolUse/1#2", "config:SessionStart/1", "config:FileChanged/1", "config:PreToolUse/2", "config:PreToolUse/3",
	}, names)
	means := func(i int, stage protocol.Stage, params string) bool {
		return list[i].If.Holds(asked(t, stage, params))
	}
	tool := func(name, args string) string { return `{"tool":"` + name + `","arguments":` + args + `}` }
	require.True(t, means(0, protocol.StageBeforeTool, tool("edit_file", `{}`)))
	require.True(t, means(0, protocol.StageBeforeTool, tool("Write", `{}`)))
	require.False(t, means(0, protocol.StageBeforeTool, tool("Bash", `{}`)))
	require.True(t, means(4, protocol.StageBeforeTool, tool("mcp__memory__add", `{}`)))
	require.False(t, means(4, protocol.StageBeforeTool, tool("mcp__other__add", `{}`)))
	require.True(t, means(5, protocol.StageBeforeTool, tool("Bash", `{"command":"git push origin"}`)))
	require.False(t, means(5, protocol.StageBeforeTool, tool("Bash", `{"command":"git status"}`)))
	require.Equal(t, hook.FailDeny, list[5].FailPolicy)
	native := func(source string) string {
		return `{"request":{},"meta":{"native":{"agent":"claude","event":"SessionStart","payload":{"source":"` + source + `"}}}}`
	}
	require.True(t, means(2, protocol.StageInjectInstructions, native("resume")))
	require.False(t, means(2, protocol.StageInjectInstructions, native("startup")))
	require.False(t, means(2, protocol.StageInjectInstructions, `{"request":{}}`), "another agent's step is no start of a session")
	require.Equal(t, hook.Async, list[3].Mode)
}

func TestDisabled(t *testing.T) {
	for _, text := range []string{
		`{"version":1,"disabled":true,"hooks":{"Stop":[{"hooks":[{"type":"command","command":"x"}]}]}}`,
		`{"version":1,"hooks":{"Stop":[{"enabled":false,"hooks":[{"type":"command","command":"x"}]}]}}`,
		`{"disableAllHooks":true,"hooks":{"Stop":[{"hooks":[{"type":"command","command":"x"}]}]}}`,
		`{}`,
	} {
		require.Empty(t, parsed(t, text).Hooks(hook.LayerUser, 0, newRunner(t, 0)), text)
	}
}

func TestBadFiles(t *testing.T) {
	one := func(rule string) string { return `{"version":1,"hooks":{"PreToolUse":[` + rule + `]}}` }
	handler := func(h string) string { return one(`{"hooks":[` + h + `]}`) }
	for text, want := range map[string]string{
		`{`:                           `h.json:1:2: `,
		`[]`:                          `h.json: `,
		"\xEF\xBB\xBF{}":              `byte order mark`,
		`{"version":2}`:               `h.json:1:2: version: this hookd reads version 1`,
		`{"version":1,"hook":{}}`:     `h.json:1:14: hook: unknown key (did you mean "hooks"?)`,
		`{"hoks":{}}`:                 `did you mean "hooks"`,
		`{"hooks":{"PreToolUse":{}}}`: `h.json:1:11: hooks.PreToolUse: expected an array`,
		`{"hooks":{"PreTooluse":[]}}`: `unknown event "PreTooluse" (did you mean "PreToolUse"?)`,
		`{"version":1,"hooks":{"Stop":[],"Stop":[]}}`:                    `duplicate name`,
		one(`{"mather":"x","hooks":[]}`):                                 `hooks.PreToolUse.0.mather: unknown key (did you mean "matcher"?)`,
		one(`{"matcher":"("}`):                                           `hooks is missing`,
		one(`{"matcher":"(","hooks":[]}`):                                `hooks.PreToolUse.0.matcher: bad regular expression`,
		one(`{"if":"comand == 'x'","hooks":[]}`):                         `hooks.PreToolUse.0.if: `,
		one(`{"name":"a","hooks":[]},{"name":"a","hooks":[]}`):           `the name "a" stands twice`,
		one(`{"max_repeats":-1,"hooks":[]}`):                             `max_repeats: expected a whole number`,
		handler(`{"command":"x"}`):                                       `type is missing`,
		handler(`{"type":"prompt","prompt":"x"}`):                        `unknown key`,
		handler(`{"type":"prompt"}`):                                     `hookd runs no handlers of type prompt`,
		handler(`{"type":"comand","command":"x"}`):                       `unknown type "comand" (did you mean "command"?)`,
		handler(`{"type":"command"}`):                                    `command: is missing`,
		handler(`{"type":"http","url":"file:///x"}`):                     `expected a URL`,
		handler(`{"type":"command","command":"x","timeout":0}`):          `timeout: expected seconds`,
		handler(`{"type":"command","command":"x","timeout":601}`):        `timeout: expected seconds`,
		handler(`{"type":"command","command":"x","timeout":"5"}`):        `timeout: expected seconds`,
		handler(`{"type":"command","command":"x","fail_policy":"open"}`): `fail_policy: expected "continue" or "block"`,
		handler(`{"type":"command","command":"x","on_error":"ignore"}`):  `on_error: expected "log" or "warn"`,
		handler(`{"type":"command","command":"x","statusmessage":"x"}`):  `did you mean "statusMessage"`,
	} {
		_, err := Parse("h.json", []byte(text))
		require.ErrorContains(t, err, want, text)
		require.True(t, strings.HasPrefix(err.Error(), "h.json:"), err.Error())
	}
	many := `{"version":1,"hooks":{"Stop":[` + strings.Repeat(`{"hooks":[]},`, maxRules+1) + `{"hooks":[]}]}}`
	_, err := Parse("h.json", []byte(many))
	require.Error(t, err)
}

func TestMatchers(t *testing.T) {
	for _, c := range []struct{ matcher, yes, no string }{
		{"", "Bash Read anything", ""},
		{"*", "Bash", ""},
		{"Bash", "Bash run_command bash", "Read BashOutput2"},
		{"Edit|Write", "Edit Write edit_file", "Read"},
		{"Edit, Write", "Edit Write", "Read"},
		{"mcp__server", "mcp__server", "mcp__server__tool"},
		{"mcp__server__.*", "mcp__server__tool", "mcp__other__tool"},
		{"^Ba", "Bash run_command", "Read"},
	} {
		m, err := newMatcher("PreToolUse", c.matcher)
		require.NoError(t, err)
		for _, name := range strings.Fields(c.yes) {
			require.True(t, m.tool(name), "%s means %s", c.matcher, name)
		}
		for _, name := range strings.Fields(c.no) {
			require.False(t, m.tool(name), "%s does not mean %s", c.matcher, name)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(draft)
	f.Add(`{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"x"}]}]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		file, err := Parse("/x/hooks.json", []byte(text))
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		for _, r := range file.Hooks(hook.LayerUser, 0, nil) {
			require.NoError(t, r.Check())
		}
	})
}
