package install_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/install"
)

// What can't be read or is not what is expected is refused with its place, and
// nothing is touched.
func TestRefused(t *testing.T) {
	tests := []struct{ name, agent, file, text, want string }{
		{"broken", "claude", ".claude/settings.json", "{\n  \"a\": 1,\n  oops\n}", ".claude/settings.json:3:3: not JSON"},
		{"root is a list", "claude", ".claude/settings.json", "[]", "settings.json:1:1: an object is expected here"},
		{"hooks is a list", "claude", ".claude/settings.json", "{\n \"hooks\": []}", "settings.json:2:11: an object with events is expected here"},
		{"event is an object", "claude", ".claude/settings.json", `{"hooks":{"Stop":{}}}`, "settings.json:1:18: an array with hooks is expected here"},
		{"hooks twice", "claude", ".claude/settings.json", `{"hooks":{},"hooks":{}}`, `settings.json:1:13: "hooks" stands here a second time`},
		{"event twice", "cursor", ".cursor/hooks.json", `{"hooks":{"stop":[],"stop":[]}}`, `hooks.json:1:21: "stop" stands here a second time`},
		{"a handler with a name twice", "claude", ".claude/settings.json", `{"hooks":{"Stop":[{"hooks":[{"command":"a","command":"b"}]}]}}`, "settings.json:1:19: duplicate name"},
		{"no UTF-8", "gemini", ".gemini/settings.json", "{\"a\":\"\xff\"}", "settings.json:1:7: a text that is no Unicode"},
		{"hooks of another type", "antigravity", ".gemini/config/hooks.json", `{"hookd":true}`, "hooks.json:1:10: an object with events is expected here"},
		{"broken TOML", "kimi", ".kimi/config.toml", "a = 1\nb = \n", ".kimi/config.toml:2:5: not TOML"},
		{"TOML hooks of another kind", "kimi", ".kimi/config.toml", "hooks = 1\n", "config.toml"},
		{"TOML with a list of hooks", "kimi", ".kimi/config.toml", "hooks = []\n", "config.toml: hooks can't be added at its end"},
		{"a block without an end", "kimi", ".kimi/config.toml", "\n# >>> hookd: what is between these lines is written and removed by hookd\n", "config.toml:2:1: hookd's block begins here and has no end"},
		{"an end without a block", "kimi", ".kimi/config.toml", "# <<< hookd\n", "config.toml:1:1: hookd's block ends here and has no beginning"},
		{"a block twice", "kimi", ".kimi/config.toml", strings.Repeat("# >>> hookd: what is between these lines is written and removed by hookd\n# <<< hookd\n", 2), "config.toml:3:1: hookd's block begins here a second time"},
		{"broken YAML", "hermes", ".hermes/config.yaml", "a: 1\nb: [\n", "config.yaml:2:1: not YAML"},
		{"YAML with a name twice", "hermes", ".hermes/config.yaml", "a: 1\na: 2\n", "config.yaml:2:1: not YAML"},
		{"two YAML documents", "hermes", ".hermes/config.yaml", "a: 1\n---\nb: 1\n", "config.yaml:2:1: a second document begins here"},
		{"YAML in one line", "hermes", ".hermes/config.yaml", "{a: 1}\n", "config.yaml:1:1: names with values are expected here, a line each"},
		{"YAML hooks in one line", "hermes", ".hermes/config.yaml", "hooks: {pre_tool_call: []}\n", "config.yaml:1:8: hooks is no block with events"},
		{"YAML hooks as a list", "hermes", ".hermes/config.yaml", "hooks:\n- a\n", "config.yaml:2:1: hooks is no block with events"},
		{"YAML event in one line", "hermes", ".hermes/config.yaml", "hooks:\n  pre_tool_call: []\n", "config.yaml:2:18: the hooks of pre_tool_call are no block with a list"},
		{"YAML list with a dash alone", "hermes", ".hermes/config.yaml", "hooks:\n  pre_tool_call:\n  -\n    command: x\n", "config.yaml:3:3: the hooks of pre_tool_call are written in a way that can't be added to"},
		{"YAML with our mark", "hermes", ".hermes/config.yaml", "# <<< hookd\n", "config.yaml:1:1: hookd's block ends here and has no beginning"},
		{"somebody's script", "cline", "Documents/Cline/Hooks/PreToolUse", "#!/bin/sh\n", "PreToolUse: is there already and is none of hookd's"},
		{"somebody's plug-in", "opencode", ".config/opencode/plugins/hookd.js", "export {}\n", "hookd.js: is there already and is none of hookd's"},
		{"somebody's manifest", "goose", ".agents/plugins/hookd/plugin.json", "{}\n", "plugin.json: is there already and is none of hookd's"},
		{"one broken agent of several", "kiro", ".kiro/agents/b.json", "{", "b.json:2:1: not JSON"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := newMachine(t)
			m.write(tt.file, tt.text)
			before := m.files()
			_, err := install.Install(m.place, options(tt.agent))
			require.ErrorContains(t, err, tt.want)
			require.IsType(t, &install.FileError{}, err)
			require.Equal(t, before, m.files())
		})
	}
}

// What people changed in a file of hookd's own is neither lost nor overwritten.
func TestChangedByHand(t *testing.T) {
	for agent, file := range map[string]string{"cline": "Documents/Cline/Hooks/PreToolUse", "opencode": ".config/opencode/plugins/hookd.js"} {
		t.Run(agent, func(t *testing.T) {
			m := newMachine(t)
			m.install(options(agent))
			text := m.read(file) + "\n"
			m.write(file, text)
			o := options(agent)
			o.Timeout = 3 * time.Second
			_, err := install.Install(m.place, o)
			require.ErrorContains(t, err, "changed by hand since")
			_, err = install.Uninstall(m.place, agent, install.User)
			require.ErrorContains(t, err, "changed by hand since")
			require.Equal(t, text, m.read(file))
		})
	}
}

// After changes by others only our entries go, and what else there is stays.
func TestUninstallAfterChanges(t *testing.T) {
	m := newMachine(t)
	m.write(".claude/settings.json", "{\n  \"a\": 1\n}\n")
	m.install(options("claude"))
	text := strings.Replace(m.read(".claude/settings.json"), `"a": 1`, `"a": 2, "b": [3]`, 1)
	m.write(".claude/settings.json", text)
	m.uninstall("claude", install.User)
	require.Equal(t, "{\n  \"a\": 2, \"b\": [3]\n}\n", m.read(".claude/settings.json"))
	require.Equal(t, text, m.read(".claude/settings.json.hookd-backup"))

	m = newMachine(t)
	m.install(options("kimi"))
	m.write(".kimi/config.toml", m.read(".kimi/config.toml")+"[other]\nx = 1\n")
	m.uninstall("kimi", install.User)
	require.Equal(t, "[other]\nx = 1\n", m.read(".kimi/config.toml"))
}

// A member that a person put into one of our entries outlives an update, and a
// second entry of ours does not.
func TestUpdateKeepsMembers(t *testing.T) {
	m := newMachine(t)
	m.write(".claude/settings.json", `{
  "hooks": {
    "PreToolUse": [
      {
        "matcher": "Bash",
        "hooks": [
          {
            "type": "command",
            // by hand
            "command": "'/old place/hookd-hook' --agent claude --event PreToolUse",
            "statusMessage": "asking"
          },
          {"type": "command", "command": "/other/hookd hook --agent=claude --event=PreToolUse"}
        ]
      }
    ]
  }
}
`)
	o := options("claude")
	o.Events = []string{"PreToolUse"}
	m.install(o)
	require.Equal(t, `{
  "hooks": {
    "PreToolUse": [
      {
        "matcher": "Bash",
        "hooks": [
          {
            "type": "command",
            "command": "/opt/hookd/bin/hookd-hook",
            "statusMessage": "asking",
            "args": ["--agent", "claude", "--event", "PreToolUse", "--timeout", "59s"],
            "timeout": 60,
            "onFailure": "block"
          }
        ]
      }
    ]
  }
}
`, m.read(".claude/settings.json"))
	require.Empty(t, m.install(o).Changes)
	m.uninstall("claude", install.User)
	require.Empty(t, m.files(), "there was nothing else in it")
}

// Commands that only look like ours are not touched.
func TestForeignCommands(t *testing.T) {
	for _, command := range []string{
		"hookd-hook.sh --agent claude", "echo hookd-hook --agent claude", "/x/hookd-hook", "hookd serve", "hookd hook",
		"hookd-hook --agent claude; rm -rf /", "$(hookd-hook --agent claude)", "hookd-hook --agent claude || true", "'hookd-hook --agent claude",
	} {
		m := newMachine(t)
		text := `{"hooks":{"Stop":[{"hooks":[{"command":"` + command + `"}]}]}}`
		m.write(".claude/settings.json", text)
		require.Empty(t, m.uninstall("claude", install.User).Changes, command)
		o := options("claude")
		o.Events = []string{"Stop"}
		m.install(o)
		m.uninstall("claude", install.User)
		require.Equal(t, text, m.read(".claude/settings.json"))
	}
}

// Settings that are a link are changed where they are, and stay a link.
func TestLinks(t *testing.T) {
	m := newMachine(t)
	real := m.write("dotfiles/claude.json", "{\n  \"a\": 1\n}\n")
	require.NoError(t, os.Chmod(real, 0o640))
	require.NoError(t, os.MkdirAll(m.path(".claude"), 0o755))
	require.NoError(t, os.Symlink(real, m.path(".claude/settings.json")))
	plan := m.install(options("claude"))
	require.Equal(t, real, plan.Changes[0].Real)
	require.Contains(t, strings.Join(plan.Warnings, "\n"), "is a link: "+real+" is what changes")
	target, err := os.Readlink(m.path(".claude/settings.json"))
	require.NoError(t, err)
	require.Equal(t, real, target)
	info, err := os.Stat(real)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o640), info.Mode())
	require.Contains(t, m.read("dotfiles/claude.json"), "hookd-hook")
	require.Equal(t, "{\n  \"a\": 1\n}\n", m.read("dotfiles/claude.json.hookd-backup"))
	m.uninstall("claude", install.User)
	require.Equal(t, map[string]string{"dotfiles/claude.json": "{\n  \"a\": 1\n}\n", ".claude/settings.json": "{\n  \"a\": 1\n}\n"}, m.files())

	// A link to a file with nothing of anybody's else in it stays one.
	require.NoError(t, os.WriteFile(real, nil, 0o600))
	m.install(options("claude"))
	m.uninstall("claude", install.User)
	require.Equal(t, map[string]string{"dotfiles/claude.json": "", ".claude/settings.json": ""}, m.files())

	require.NoError(t, os.Remove(real))
	_, err = install.Install(m.place, options("claude"))
	require.ErrorContains(t, err, "is a link that leads nowhere")
}

// A file keeps its mode; a copy of it is no more open than it is.
func TestModes(t *testing.T) {
	m := newMachine(t)
	path := m.write(".codex/hooks.json", "{}")
	require.NoError(t, os.Chmod(path, 0o600))
	m.install(options("codex"))
	for _, p := range []string{path, path + ".hookd-backup"} {
		info, err := os.Stat(p)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode(), p)
	}
	// Also when the old copy was.
	m.write(".codex/hooks.json", `{"description":"x"}`)
	require.NoError(t, os.Chmod(path+".hookd-backup", 0o644))
	m.install(options("codex"))
	info, err := os.Stat(path + ".hookd-backup")
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	require.Equal(t, `{"description":"x"}`, m.read(".codex/hooks.json.hookd-backup"))
	m.install(options("cline"))
	info, err = os.Stat(m.path("Documents/Cline/Hooks/PreToolUse"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o111), info.Mode()&0o111)
}

// A folder in which nothing can be written is an error that names the file, and
// leaves no half-written one.
func TestReadOnly(t *testing.T) {
	if os.Geteuid() == 0 {
		// root may write anywhere; a file in the way of a folder stops it too.
		m := newMachine(t)
		m.write(".claude", "")
		_, err := install.Install(m.place, options("claude"))
		require.ErrorContains(t, err, "a part of its path is a file and no folder")
		return
	}
	m := newMachine(t)
	path := m.write(".claude/settings.json", "{}")
	require.NoError(t, os.Chmod(filepath.Dir(path), 0o555))
	t.Cleanup(func() { _ = os.Chmod(filepath.Dir(path), 0o755) })
	plan, err := install.Install(m.place, options("claude"))
	require.NoError(t, err)
	err = plan.Apply()
	require.ErrorContains(t, err, path)
	require.ErrorIs(t, err, os.ErrPermission)
	require.Equal(t, map[string]string{".claude/settings.json": "{}"}, m.files())
}

// A file that somebody changes between the plan and its writing is left alone.
func TestChangedMeanwhile(t *testing.T) {
	m := newMachine(t)
	m.write(".claude/settings.json", "{}")
	plan, err := install.Install(m.place, options("claude"))
	require.NoError(t, err)
	m.write(".claude/settings.json", `{"new":1}`)
	require.ErrorContains(t, plan.Apply(), "was changed by somebody else just now")
	require.Equal(t, map[string]string{".claude/settings.json": `{"new":1}`}, m.files())
}

// Options that make no sense are named.
func TestOptions(t *testing.T) {
	tests := []struct {
		name string
		set  func(m *machine, o *install.Options)
		want string
	}{
		{"agent", func(_ *machine, o *install.Options) { o.Agent = "cluade" }, `no agent is called "cluade" (did you mean "claude"?); there are claude, codex`},
		{"policy", func(_ *machine, o *install.Options) { o.OnUnavailable = "allow all" }, `--on-unavailable is continue, deny or ask, not "allow all"`},
		{"event", func(_ *machine, o *install.Options) { o.Events = []string{"PreTolUse"} }, `Claude Code has no event "PreTolUse" (did you mean "PreToolUse"?)`},
		{"timeout", func(_ *machine, o *install.Options) { o.Timeout = time.Millisecond }, "--timeout 1ms is not between 1s and 24h0m0s"},
		{"socket", func(_ *machine, o *install.Options) { o.Socket = "x.sock" }, "is no absolute path"},
		{"program", func(_ *machine, o *install.Options) { o.Program = install.Program{} }, install.ErrNoProgram.Error()},
		{"program by name", func(_ *machine, o *install.Options) { o.Program.Argv = []string{"hookd-hook"} }, install.ErrNoProgram.Error()},
		{"a program that no shell line can hold", func(_ *machine, o *install.Options) {
			o.Agent, o.Program.Argv = "codex", []string{"/a\nb/hookd-hook"}
		}, "can't stand in a shell line"},
		{"no project", func(m *machine, o *install.Options) { m.place.Project, o.Scope = "", install.Project }, "which project is meant is not known"},
		{"project is not there", func(m *machine, o *install.Options) { m.place.Project += "x"; o.Scope = install.Project }, "is no folder"},
		{"no home", func(m *machine, _ *install.Options) { m.place.Home = "" }, "set HOME"},
		{"rules in a file", func(m *machine, o *install.Options) {
			m.write("project/.clinerules", "be nice")
			o.Agent, o.Scope = "cline", install.Project
		}, ".clinerules is a file: make it a folder"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := newMachine(t)
			o := options("claude")
			tt.set(m, &o)
			_, err := install.Install(m.place, o)
			require.ErrorContains(t, err, tt.want)
		})
	}
	_, err := install.Uninstall(newMachine(t).place, "nobody", install.User)
	require.IsType(t, &install.UnknownAgentError{}, err)
}

// Some agents are told in the environment where their files are.
func TestEnvironment(t *testing.T) {
	for variable, want := range map[string][2]string{
		"CLAUDE_CONFIG_DIR":   {"claude", "settings.json"},
		"CODEX_HOME":          {"codex", "hooks.json"},
		"COPILOT_HOME":        {"copilot", "hooks/hookd.json"},
		"KIMI_SHARE_DIR":      {"kimi", "config.toml"},
		"CRUSH_GLOBAL_CONFIG": {"crush", "crush.json"},
		"XDG_CONFIG_HOME":     {"opencode", "opencode/plugins/hookd.js"},
		"OPENCODE_CONFIG_DIR": {"opencode", "plugins/hookd.js"},
	} {
		m := newMachine(t)
		m.env[variable] = m.path("else where")
		m.install(options(want[0]))
		require.Contains(t, m.files(), "else where/"+want[1], variable)
		require.Len(t, m.files(), 1)
		m.uninstall(want[0], install.User)
		require.Empty(t, m.files())
	}
}

// Where one agent runs the files of another, hookd would be asked twice.
func TestDoubles(t *testing.T) {
	m := newMachine(t)
	require.Empty(t, m.install(options("claude")).Warnings)
	warnings := strings.Join(m.install(options("cursor")).Warnings, "\n")
	require.Contains(t, warnings, "Cursor also runs what is installed for Claude Code, so hookd is asked twice")
	warnings = strings.Join(m.install(options("grok")).Warnings, "\n")
	require.Contains(t, warnings, "Grok Build also runs what is installed for Claude Code")
	warnings = strings.Join(m.install(options("claude")).Warnings, "\n")
	require.Contains(t, warnings, "Cursor also runs what is installed for Claude Code, so hookd is asked twice about its events")
	require.Contains(t, warnings, "Grok Build also runs what is installed for Claude Code")
}

// The program is the small one where it can be found.
func TestFindProgram(t *testing.T) {
	m := newMachine(t)
	none := func(string) string { return "" }
	self := m.write("bin/hookd", "")
	_, err := install.FindProgram(self, none)
	require.ErrorIs(t, err, install.ErrNoProgram)
	require.NoError(t, os.Chmod(self, 0o755))
	p, err := install.FindProgram(self, none)
	require.NoError(t, err)
	require.Equal(t, []string{self, "hook"}, p.Argv)
	require.Contains(t, p.Note, "slower")

	inPath := m.write("path/hookd-hook", "")
	require.NoError(t, os.Chmod(inPath, 0o755))
	p, err = install.FindProgram(self, func(string) string { return "relative:" + m.path("path") })
	require.NoError(t, err)
	require.Equal(t, install.Program{Argv: []string{inPath}}, p)

	beside := m.write("bin/hookd-hook", "")
	require.NoError(t, os.Chmod(beside, 0o755))
	p, err = install.FindProgram(self, func(string) string { return m.path("path") })
	require.NoError(t, err)
	require.Equal(t, []string{beside}, p.Argv)
}
