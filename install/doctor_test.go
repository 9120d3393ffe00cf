package install_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/install"
)

// clinic is a machine with a daemon and programs that answer as they are told.
type clinic struct {
	*machine
	x install.Examination
	// answer is what the installed command prints; nil = a good answer.
	answer func(argv []string, stdin string) (install.Output, error)

	mu  sync.Mutex
	ran []string
}

const hookdVersion = "v1.2.3"

func newClinic(t *testing.T) *clinic {
	c := &clinic{machine: newMachine(t)}
	path := c.write("bin/hookd-hook", "")
	require.NoError(t, os.Chmod(path, 0o755))
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c.x = install.Examination{
		Place: c.place, Program: install.Program{Argv: []string{path}}, Version: hookdVersion, Run: c.run,
		Ask: func(context.Context) (install.Daemon, error) {
			return install.Daemon{Version: hookdVersion, Ready: true, Last: map[string]install.Seen{"claude": {Event: "PreToolUse", At: now.Add(-90 * time.Second)}}}, nil
		},
		Now: func() time.Time { return now },
	}
	return c
}

func (c *clinic) run(_ context.Context, argv []string, stdin []byte) (install.Output, error) {
	c.mu.Lock()
	c.ran = append(c.ran, strings.Join(argv, " "))
	c.mu.Unlock()
	if argv[len(argv)-1] == "--version" {
		return install.Output{Stdout: []byte("hookd-hook " + hookdVersion + "\n")}, nil
	}
	if c.answer != nil {
		return c.answer(argv, string(stdin))
	}
	return good(argv), nil
}

// good answers in the dialect of the agent.
func good(argv []string) install.Output {
	switch regexp.MustCompile(`--agent (\w+)`).FindStringSubmatch(strings.Join(argv, " "))[1] {
	case "cursor":
		return install.Output{Stdout: []byte(`{"continue":true,"permission":"allow"}`)}
	case "gemini":
		return install.Output{Stdout: []byte("{}")}
	case "antigravity":
		return install.Output{Stdout: []byte(`{"decision":"allow"}`)}
	case "cline":
		return install.Output{Stdout: []byte(`{"cancel":false,"contextModification":"","errorMessage":""}`)}
	}
	return install.Output{}
}

func (c *clinic) installed(agent string) {
	o := options(agent)
	o.Program = c.x.Program
	c.install(o)
}

// examine returns what was found, a line each, and whether all is well.
func (c *clinic) examine(agents ...string) (lines []string, ok bool) {
	c.x.Agents = agents
	r, err := install.Examine(c.t.Context(), c.x)
	require.NoError(c.t, err)
	list := r.Hookd
	for _, a := range r.Agents {
		list = append(list, a.Findings...)
	}
	for _, f := range list {
		line := fmt.Sprintf("%s: %s", f.Level, f.Text)
		if f.File != "" {
			line += fmt.Sprintf(" [%s:%d]", f.File, f.Line)
		}
		if f.Fix != "" {
			line += " -> " + f.Fix
		}
		lines = append(lines, strings.ReplaceAll(line, c.place.Home, "~"))
	}
	return lines, r.OK
}

// Every agent is well after it was installed, except that Codex and Hermes must
// be told to trust.
func TestDoctorWell(t *testing.T) {
	for _, agent := range install.Agents() {
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			c := newClinic(t)
			c.installed(agent)
			lines, ok := c.examine(agent)
			all := strings.Join(lines, "\n")
			require.Equal(t, agent != "codex" && agent != "hermes", ok, all)
			require.Contains(t, all, "ok: the daemon answers, version v1.2.3")
			require.Regexp(t, `ok: installed at every usual event \(\d+\), in `, all)
			require.Regexp(t, `ok: a round trip of \S+ works`, all)
			require.NotContains(t, all, "warning")
			if agent == "claude" {
				require.Contains(t, all, "ok: it last asked 2m ago: PreToolUse")
			} else {
				require.Contains(t, all, "it has not asked since the daemon was started")
			}
			var probes []string
			for _, r := range c.ran {
				if strings.Contains(r, "--dry-run") {
					probes = append(probes, r)
				}
			}
			require.Len(t, probes, 1)
			require.Contains(t, probes[0], "--agent "+agent+" --event ")
			require.Contains(t, probes[0], "--timeout 5s")
		})
	}
}

// What is wrong is found, and what to do is said.
func TestDoctorProblems(t *testing.T) {
	tests := []struct {
		name, agent string
		set         func(c *clinic)
		want        string
		well        bool // it is no problem, but worth a word
	}{
		{"not installed", "claude", func(*clinic) {}, "problem: hookd is not installed for Claude Code -> hookd install claude", false},
		{"unreadable", "claude", func(c *clinic) { c.write(".claude/settings.json", "{\n,}") },
			"problem: not JSON: invalid character ',' at start of value (column 1) [~/.claude/settings.json:2] -> Claude Code can't read it either: correct it", false},
		{"daemon away", "claude", func(c *clinic) {
			c.installed("claude")
			c.x.Ask = func(context.Context) (install.Daemon, error) { return install.Daemon{}, errors.New("no such file") }
		}, "problem: the daemon does not answer: no such file -> start it with: hookd serve", false},
		{"daemon not ready", "claude", func(c *clinic) {
			c.x.Ask = func(context.Context) (install.Daemon, error) { return install.Daemon{Version: hookdVersion}, nil }
		}, "problem: the daemon runs, but a required hook is missing -> see which and why with: hookd status", false},
		{"daemon of another version", "claude", func(c *clinic) {
			c.installed("claude")
			c.x.Ask = func(context.Context) (install.Daemon, error) { return install.Daemon{Version: "v0", Ready: true}, nil }
		}, "warning: the daemon is version v0, and this program v1.2.3 -> restart the daemon", true},
		{"program is gone", "cursor", func(c *clinic) {
			c.installed("cursor")
			require.NoError(c.t, os.Remove(c.path("bin/hookd-hook")))
		}, "problem: ~/bin/hookd-hook can't be run: stat ~/bin/hookd-hook: no such file or directory [~/.cursor/hooks.json:5] -> hookd install cursor", false},
		{"program is not executable", "cursor", func(c *clinic) {
			c.installed("cursor")
			require.NoError(c.t, os.Chmod(c.path("bin/hookd-hook"), 0o644))
		}, "problem: ~/bin/hookd-hook can't be run: it is not executable [~/.cursor/hooks.json:5]", false},
		{"another program", "crush", func(c *clinic) {
			c.installed("crush")
			c.x.Program.Argv = []string{"/usr/bin/hookd-hook"}
		}, "warning: ~/bin/hookd-hook is run, and this hookd would use /usr/bin/hookd-hook [~/.config/crush/crush.json:4] -> hookd install crush", true},
		{"program by name", "crush", func(c *clinic) {
			c.write(".config/crush/crush.json", `{"hooks":{"PreToolUse":[{"command":"hookd-hook --agent crush --event PreToolUse"}]}}`)
		}, "warning: hookd-hook is run by its name, so the PATH of Crush decides which one it is", true},
		{"version", "crush", func(c *clinic) { c.installed("crush"); c.x.Version = "v2" },
			"warning: ~/bin/hookd-hook is hookd-hook v1.2.3, and this hookd is v2", true},
		{"no gate", "windsurf", func(c *clinic) {
			o := options("windsurf")
			o.Program, o.Events = c.x.Program, []string{"pre_user_prompt", "pre_read_code", "pre_write_code", "pre_run_command"}
			c.install(o)
		}, "problem: hookd is not asked before what these events stand for: pre_mcp_tool_use -> hookd install windsurf", false},
		{"less than usual", "windsurf", func(c *clinic) {
			o := options("windsurf")
			o.Program, o.Events = c.x.Program, []string{"pre_read_code", "pre_write_code", "pre_run_command", "pre_mcp_tool_use"}
			c.install(o)
		}, "note: not installed: pre_user_prompt, post_read_code", true},
		{"twice", "claude", func(c *clinic) {
			c.installed("claude")
			c.write("project/.claude/settings.json", c.read(".claude/settings.json"))
		}, "warning: hookd is asked twice at PreToolUse: also by ~/.claude/settings.json:", true},
		{"of another agent", "claude", func(c *clinic) {
			c.installed("claude")
			c.write(".claude/settings.json", strings.ReplaceAll(c.read(".claude/settings.json"), `"claude"`, `"codex"`))
		}, "warning: an entry here says --agent codex, and this file is read by Claude Code", false},
		{"narrowed", "claude", func(c *clinic) {
			c.installed("claude")
			c.write(".claude/settings.json", strings.Replace(c.read(".claude/settings.json"), `"PreToolUse": [
      {`, `"PreToolUse": [
      {
        "matcher": "Bash",`, 1))
		}, `warning: at PreToolUse hookd is asked about "Bash" only`, true},
		{"others", "claude", func(c *clinic) {
			c.write(".claude/settings.json", `{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"guard.sh"}]}]}}`)
			c.installed("claude")
		}, "note: other hooks run at PreToolUse too: guard.sh (~/.claude/settings.json:1, before hookd)", true},
		{"two agents", "cursor", func(c *clinic) { c.installed("cursor"); c.installed("claude") },
			"warning: Cursor also runs what is installed for Claude Code, so hookd is asked twice about each event", true},
		{"disabled", "claude", func(c *clinic) { c.write(".claude/settings.json", `{"disableAllHooks":true}`); c.installed("claude") },
			"problem: disableAllHooks is true, so no hook of yours runs [~/.claude/settings.json:1]", false},
		{"disabled in the project", "claude", func(c *clinic) {
			c.installed("claude")
			c.write("project/.claude/settings.local.json", `{"disableAllHooks":true}`)
		}, "problem: disableAllHooks is true, so no hook of yours runs [", false},
		{"managed", "claude", func(c *clinic) {
			c.installed("claude")
			c.write("../system/etc/claude-code/managed-settings.json", `{"allowManagedHooksOnly":true}`)
		}, "problem: allowManagedHooksOnly is true, so no hook of yours runs", false},
		{"gemini off", "gemini", func(c *clinic) {
			c.write(".gemini/settings.json", `{"hooksConfig":{"enabled":false,"disabled":["hookd"]}}`)
			c.installed("gemini")
		}, "problem: hooksConfig.enabled is false, so no hook of yours runs", false},
		{"gemini names it", "gemini", func(c *clinic) {
			c.write(".gemini/settings.json", `{"hooksConfig":{"disabled":["hookd"]}}`)
			c.installed("gemini")
		}, "problem: hooksConfig.disabled names hookd", false},
		{"gemini does not trust", "gemini", func(c *clinic) {
			c.write(".gemini/settings.json", `{"security":{"folderTrust":{"enabled":true}}}`)
			c.write(".gemini/trustedFolders.json", `{"`+c.place.Project+`":"DO_NOT_TRUST","/elsewhere":"TRUST_FOLDER"}`)
			o := options("gemini")
			o.Program, o.Scope = c.x.Program, install.Project
			c.install(o)
		}, "problem: the project is not trusted, so Gemini blocks its hooks", false},
		{"gemini trusts", "gemini", func(c *clinic) {
			c.write(".gemini/settings.json", `{"security":{"folderTrust":{"enabled":true}}}`)
			c.write(".gemini/trustedFolders.json", `{"`+c.place.Project+`/sub":"TRUST_PARENT"}`)
			o := options("gemini")
			o.Program, o.Scope = c.x.Program, install.Project
			c.install(o)
		}, "ok: a round trip of BeforeTool works", true},
		{"an old version", "goose", func(c *clinic) {
			c.installed("goose")
			require.NoError(c.t, os.Chmod(c.write("path/goose", ""), 0o755))
			c.env["PATH"] = c.path("path")
		}, "warning: its hooks work with hookd from version 1.38.0 on -> upgrade goose", true},
		{"qwen off", "qwen", func(c *clinic) { c.write(".qwen/settings.json", `{"disableAllHooks": true}`); c.installed("qwen") },
			"problem: disableAllHooks is true", false},
		{"copilot off", "copilot", func(c *clinic) { c.write(".copilot/config.json", `{"disableAllHooks": true}`); c.installed("copilot") },
			"problem: disableAllHooks is true, so no hook of yours runs [~/.copilot/config.json:1]", false},
		{"droid off", "droid", func(c *clinic) { c.write(".factory/settings.json", `{"hooksDisabled": true}`); c.installed("droid") },
			"problem: hooksDisabled is true", false},
		{"droid's two places", "droid", func(c *clinic) {
			c.installed("droid")
			c.write(".factory/settings.json", `{"hooks":{"Stop":[{"hooks":[]}]}}`)
		}, "warning: there are hooks in settings.json too, which Droid does not run at events that stand here", true},
		{"droid's unknown event", "droid", func(c *clinic) {
			c.write(".factory/hooks.json", `{"PreTool":[{"hooks":[{"type":"command","command":"x"}]}]}`)
			c.installed("droid")
		}, `warning: "PreTool" is no event that hookd knows of; when Factory Droid does not know it either, it drops the whole file [~/.factory/hooks.json:1]`, true},
		{"cursor's unknown event", "cursor", func(c *clinic) {
			c.write(".cursor/hooks.json", `{"version":1,"hooks":{"onStop":[{"command":"x"}]}}`)
			c.installed("cursor")
		}, `warning: "onStop" is no event that hookd knows of; when Cursor does not know it either, it refuses the whole file`, true},
		{"cursor's version", "cursor", func(c *clinic) { c.write(".cursor/hooks.json", `{"version":2}`); c.installed("cursor") },
			"problem: version is not 1, so Cursor refuses the file", false},
		{"agy off", "antigravity", func(c *clinic) {
			c.write(".gemini/config/hooks.json", "{\n\"hookd\":{\"enabled\":false}}")
			c.installed("antigravity")
		}, "problem: the hook named hookd is switched off [~/.gemini/config/hooks.json:2]", false},
		{"agy in two files", "antigravity", func(c *clinic) {
			c.installed("antigravity")
			c.write(".gemini/hooks.json", c.read(".gemini/config/hooks.json"))
		}, "warning: hookd is asked twice at PreToolUse: also by ~/.gemini/config/hooks.json", true},
		{"kiro's byte order mark", "kiro", func(c *clinic) { c.write(".kiro/agents/a.json", "\xef\xbb\xbf{}"); c.installed("kiro") },
			"problem: the file starts with a byte order mark, which Kiro refuses", false},
		{"hermes was not told", "hermes", func(c *clinic) {
			c.installed("hermes")
			c.write(".hermes/shell-hooks-allowlist.json", `{"approvals":[{"event":"pre_tool_call","command":"`+c.path("bin/hookd-hook")+` --agent hermes --event pre_tool_call --timeout 59s"},7]}`)
		}, "problem: not approved yet, so Hermes passes them over: on_session_start, pre_llm_call, post_tool_call,", false},
		{"hermes takes all", "hermes", func(c *clinic) {
			c.write(".hermes/config.yaml", "hooks_auto_accept: true\n")
			c.installed("hermes")
		}, "ok: a round trip of pre_tool_call works", true},
		{"unreadable YAML", "hermes", func(c *clinic) { c.write(".hermes/config.yaml", "a: [\n") },
			"[~/.hermes/config.yaml:", false},
		{"changed script", "cline", func(c *clinic) {
			c.installed("cline")
			c.write("Documents/Cline/Hooks/TaskStart", c.read("Documents/Cline/Hooks/TaskStart")+"\n")
		}, "warning: ~/Documents/Cline/Hooks/TaskStart: was made by hookd and changed by hand since", true},
		{"no answer", "claude", func(c *clinic) {
			c.installed("claude")
			c.answer = func([]string, string) (install.Output, error) {
				return install.Output{Stdout: []byte("hello")}, nil
			}
		}, "problem: the round trip of PreToolUse failed: what was printed is no object", false},
		{"exit 1", "claude", func(c *clinic) {
			c.installed("claude")
			c.answer = func([]string, string) (install.Output, error) {
				return install.Output{Exit: 1, Stderr: []byte("oh \x1b[31mno")}, nil
			}
		}, "problem: the round trip of PreToolUse failed: exit status 1, which is no answer; it said: oh [31mno", false},
		{"a denial in the daemon's place", "windsurf", func(c *clinic) {
			c.installed("windsurf")
			c.answer = func([]string, string) (install.Output, error) {
				return install.Output{Exit: 2, Stderr: []byte("hookd: connect: no such file")}, nil
			}
		}, "problem: the round trip of pre_run_command failed: hookd-hook answered in place of the daemon: denied; it said: hookd: connect", false},
		{"the same as JSON", "claude", func(c *clinic) {
			c.installed("claude")
			c.answer = func([]string, string) (install.Output, error) {
				return install.Output{Stdout: []byte(`{"decision":"block","reason":"hookd: away"}`)}, nil
			}
		}, "problem: the round trip of PreToolUse failed: hookd-hook answered in place of the daemon", false},
		{"it can't be started", "claude", func(c *clinic) {
			c.installed("claude")
			c.answer = func([]string, string) (install.Output, error) {
				return install.Output{}, errors.New("exec format error")
			}
		}, "problem: the round trip of PreToolUse failed: exec format error", false},
		{"a warning on the way", "codex", func(c *clinic) {
			c.installed("codex")
			c.answer = func([]string, string) (install.Output, error) { return install.Output{Stderr: []byte("hm")}, nil }
		}, "warning: the round trip of PreToolUse worked, and said: hm", false},
		{"the words of another agent", "cursor", func(c *clinic) {
			c.installed("cursor")
			c.answer = func([]string, string) (install.Output, error) {
				return install.Output{Stdout: []byte(`{"decision":"allow"}`)}, nil
			}
		}, `problem: the round trip of beforeShellExecution failed: the agent does not know "decision" in an answer`, false},
		{"nothing where something is needed", "antigravity", func(c *clinic) {
			c.installed("antigravity")
			c.answer = func([]string, string) (install.Output, error) { return install.Output{Stdout: []byte("{}")}, nil }
		}, `problem: the round trip of PreToolUse failed: decision is "", and one of allow, deny`, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := newClinic(t)
			tt.set(c)
			lines, ok := c.examine(tt.agent)
			require.Contains(t, strings.Join(lines, "\n"), tt.want)
			require.Equal(t, tt.well, ok, strings.Join(lines, "\n"))
		})
	}
}

// Codex passes over what it does not trust; what it trusts stands in its config.
func TestDoctorCodexTrust(t *testing.T) {
	c := newClinic(t)
	o := options("codex")
	o.Program, o.Events = c.x.Program, []string{"PreToolUse", "Stop"}
	c.install(o)
	hash := func(event string, timeout int) string {
		identity := fmt.Sprintf(`{"event_name":%q,"hooks":[{"async":false,"command":%q,"timeout":%d,"type":"command"}]}`, event,
			c.path("bin/hookd-hook")+" --agent codex --event "+map[string]string{"pre_tool_use": "PreToolUse", "stop": "Stop"}[event]+" --timeout 59s", timeout)
		sum := sha256.Sum256([]byte(identity))
		return "sha256:" + hex.EncodeToString(sum[:])
	}
	state := func(event, text string) string {
		return fmt.Sprintf("[hooks.state.\"%s:%s:0:0\"]\n%s\n", c.path(".codex/hooks.json"), event, text)
	}
	trusted := func(event string) string { return state(event, "trusted_hash = \""+hash(event, 60)+"\"") }
	tests := []struct{ name, config, want string }{
		{"nothing", "", "problem: not trusted yet, so Codex passes them over without a word: PreToolUse, Stop"},
		{"trusted", trusted("pre_tool_use") + trusted("stop"), "ok: Codex trusts all 2 hooks"},
		{"one of two", trusted("pre_tool_use"), "problem: not trusted yet, so Codex passes them over without a word: Stop"},
		{"modified", trusted("stop") + state("pre_tool_use", "trusted_hash = \""+hash("pre_tool_use", 30)+"\""), "problem: changed since they were trusted, so Codex passes them over without a word: PreToolUse"},
		{"disabled", trusted("stop") + trusted("pre_tool_use") + "enabled = false\n", "problem: switched off in Codex: PreToolUse"},
		{"feature off", "[features]\nhooks = false\n", "problem: features.hooks is false, so Codex runs no hooks"},
		{"old name", "[features]\ncodex_hooks = false\n", "problem: features.codex_hooks is false"},
		{"both forms", "[[hooks.Stop]]\n", "warning: hooks stand here and in hooks.json; Codex takes both and warns of it"},
		{"broken", "= 1\n", "[~/.codex/config.toml:1] -> correct it: what Codex trusts stands there"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c.t = t
			c.write(".codex/config.toml", tt.config)
			lines, _ := c.examine("codex")
			require.Contains(t, strings.Join(lines, "\n"), tt.want)
		})
	}
	c.t = t
	c.write(".codex/config.toml", "")
	c.write(".codex/hooks.json", strings.Replace(c.read(".codex/hooks.json"), "{", "{ // mine\n\"$schema\":\"x\",", 1))
	lines, _ := c.examine("codex")
	all := strings.Join(lines, "\n")
	require.Contains(t, all, `problem: Codex refuses a file with "$schema" at its root`)
	require.Contains(t, all, "problem: Codex refuses a file with comments or trailing commas")

	c.write("../system/etc/codex/requirements.toml", "allow_managed_hooks_only = true\n[features]\nhooks = false\n")
	lines, _ = c.examine("codex")
	all = strings.Join(lines, "\n")
	require.Contains(t, all, "problem: allow_managed_hooks_only is true")
	require.Contains(t, all, "requirements.toml:0] -> ask whoever manages this machine")

	o.Scope = install.Project
	c.install(o)
	lines, _ = c.examine("codex")
	require.Contains(t, strings.Join(lines, "\n"), "problem: the project is not trusted, so Codex does not read its hooks")
}

// An event goes to the daemon as the agent itself would run the command.
func TestDoctorRunsAsTheAgent(t *testing.T) {
	for agent, want := range map[string]string{
		"claude":   "^/",                  // program and arguments
		"gemini":   "^sh -c /",            // a line for the shell
		"codex":    "^/bin/myshell -lc /", // the user's shell, with its profile
		"cline":    "^/",                  // a script
		"opencode": "^/",
	} {
		c := newClinic(t)
		c.env["SHELL"] = "/bin/myshell"
		c.installed(agent)
		c.examine(agent)
		require.Regexp(t, want+".*/bin/hookd-hook --agent "+agent+" .* --dry-run", c.ran[len(c.ran)-1])
	}
	c := newClinic(t)
	c.env["SHELL"] = "/bin/myshell"
	c.installed("codex")
	c.answer = func([]string, string) (install.Output, error) {
		return install.Output{Stdout: []byte("welcome\n")}, nil
	}
	lines, _ := c.examine("codex")
	require.Contains(t, strings.Join(lines, "\n"), "-> try it by hand: /bin/myshell -lc \"~/bin/hookd-hook --agent codex --event PreToolUse --dry-run --timeout 5s\"; your shell's profile must print nothing")
}

// Without names all agents of the machine are looked at, and no others.
func TestDoctorFinds(t *testing.T) {
	c := newClinic(t)
	lines, ok := c.examine()
	require.True(t, ok)
	require.Contains(t, lines[len(lines)-1], "note: no coding agent was found on this machine")

	c.write(".codex/config.toml", "")
	agent := c.write("path/goose", "")
	require.NoError(t, os.Chmod(agent, 0o755))
	c.env["PATH"] = c.path("path")
	c.installed("crush")
	c.x.Agents = nil
	r, err := install.Examine(t.Context(), c.x)
	require.NoError(t, err)
	require.True(t, r.OK, "an agent without hookd is no problem when nobody asked about it")
	var names []string
	for _, a := range r.Agents {
		names = append(names, fmt.Sprintf("%s %v %s %s", a.Name, a.Installed, strings.TrimPrefix(a.Program, c.place.Home), a.Version))
	}
	require.Equal(t, []string{"codex false  ", "goose false /path/goose hookd-hook v1.2.3", "crush true  "}, names)

	_, err = install.Examine(t.Context(), install.Examination{Place: c.place, Agents: []string{"x"}})
	require.IsType(t, &install.UnknownAgentError{}, err)
}

// An examination that is called off says so.
func TestDoctorCalledOff(t *testing.T) {
	c := newClinic(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	off := errors.New("off")
	cancel(off)
	_, err := install.Examine(ctx, c.x)
	require.ErrorIs(t, err, off)
}

// A program of which nobody has set the version is not of another one.
func TestDoctorVersionUnset(t *testing.T) {
	c := newClinic(t)
	c.installed("crush")
	run := c.x.Run
	c.x.Run = func(ctx context.Context, argv []string, stdin []byte) (install.Output, error) {
		if argv[len(argv)-1] == "--version" {
			return install.Output{Stdout: []byte("hookd-hook (devel)\n")}, nil
		}
		return run(ctx, argv, stdin)
	}
	lines, ok := c.examine("crush")
	require.True(t, ok)
	require.NotContains(t, strings.Join(lines, "\n"), "bring both to one version")
	require.NotContains(t, strings.Join(lines, "\n"), "(devel)")
}
