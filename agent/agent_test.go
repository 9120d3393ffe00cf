package agent_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/agent"
	"github.com/hookd/hookd/protocol"
)

// TestTables holds what is true of the table of every agent.
func TestTables(t *testing.T) {
	stages := protocol.NewStageTable()
	for _, d := range agent.All() {
		require.NotNil(t, d)
		seen := map[string]bool{}
		for _, r := range d.Rows() {
			about := d.Name() + " " + r.Event
			require.False(t, seen[r.Event], about)
			seen[r.Event] = true
			require.True(t, r.Stage != "" || r.Kind != "", "%s: neither a stage nor an event", about)
			if r.Kind != "" {
				require.Contains(t, protocol.AgentEvents(), r.Kind, about)
			}
			if r.Stage == "" {
				require.Empty(t, agent.Capabilities(r), "%s: nothing is asked, so nothing can be answered", about)
				continue
			}
			info := stages.Stage(r.Stage)
			require.NotNil(t, info, about)
			if r.Kind != "" {
				require.NotEqual(t, info.Event, r.Kind, "%s: hookd derives that event itself", about)
			}
			for verb, can := range map[protocol.Action]bool{protocol.ActionAsk: r.Ask, protocol.ActionInject: r.Inject} {
				require.True(t, !can || info.Allows(verb), "%s: %s is no verb of %s", about, verb, r.Stage)
			}
		}
		rows := d.Rows()
		rows[0].Event = "changed"
		require.NotEqual(t, "changed", d.Rows()[0].Event, "the caller may change the rows")
	}
}

func TestFind(t *testing.T) {
	require.Nil(t, agent.Find("nobody"))
	for _, name := range agent.Names() {
		d := agent.Find(name)
		require.NotNil(t, d, name)
		require.Equal(t, name, d.Name())
		if name != "vscode" {
			c, err := d.Read("somethingNew", []byte(`{}`))
			require.NoError(t, err)
			require.Equal(t, name, c.Agent)
			require.EqualValues(t, "x_"+name+".somethingNew", c.Kind)
		}
	}
}

// TestOtherNames holds that an agent is found by all its names.
func TestOtherNames(t *testing.T) {
	for other, name := range map[string]string{
		"q": "kiro", "amazon-q": "kiro", "kiro-cli": "kiro", "agy": "antigravity", "devin": "windsurf", "cascade": "windsurf",
		"cursor-agent": "cursor", "gemini-cli": "gemini", "claude-code": "claude", "claudecode": "claude", "codex-cli": "codex", "copilot-cli": "copilot",
		"copilot-vscode": "vscode", "vs-code": "vscode", "factory": "droid", "qwen-code": "qwen", "kimi-cli": "kimi", "grok-build": "grok", "amazonq": "kiro", "hermes-agent": "hermes",
	} {
		require.NotContains(t, agent.Names(), other)
		require.Equal(t, name, agent.Canonical(other))
		require.Equal(t, name, agent.Find(other).Name())
	}
	require.Equal(t, "nobody", agent.Canonical("nobody"))
	payload := []byte(`{"toolCall":{"name":"run_command","args":{}},"stepIdx":1}`)
	d, warning, err := agent.Pick("agy", payload, nil)
	require.NoError(t, err)
	require.Equal(t, "antigravity", d.Name())
	require.Empty(t, warning, "it is the same agent")
}

func TestDetect(t *testing.T) {
	for _, tc := range []struct {
		payload, env, name string
		sure               bool
	}{
		{`{"hook_event_name":"preToolUse","cursor_version":"3.9"}`, "", "cursor", true},
		{`{"hook_event_name":"stop","conversation_id":"a","generation_id":"b"}`, "", "cursor", true},
		{`{"agent_action_name":"pre_run_command","tool_info":{}}`, "", "windsurf", true},
		{`{"conversationId":"a","workspacePaths":[]}`, "", "antigravity", true},
		{`{"toolCall":{"name":"run_command","args":{}},"stepIdx":1}`, "", "antigravity", true},
		{`{"hookEventName":"PreToolUse","workspaceRoot":"/w","toolName":"x"}`, "", "grok", true},
		{`{"hookName":"PreToolUse","taskId":"1"}`, "", "cline", true},
		{`{"hookEventName":"PreToolUse","sessionId":"s","tool_name":"x"}`, "", "vscode", true},
		{`{"hook_event_name":"PreToolUse","sessionId":"s"}`, "", "vscode", true},
		{`{"timestamp":1,"sessionId":"s","toolName":"bash"}`, "", "copilot", true},
		{`{"event":"PreToolUse","working_dir":"/w","tool_name":"developer__shell"}`, "", "goose", false},
		{`{"event":"PreToolUse","cwd":"/w","tool_name":"bash"}`, "", "crush", false},
		{`{"hook_event_name":"FileChanged","event":"change","cwd":"/w"}`, "", "claude", false},
		{`{"hook_event_name":"BeforeTool","timestamp":"2026-01-01T00:00:00Z","cwd":"/w"}`, "", "gemini", false},
		{`{"hook_event_name":"AfterModel","timestamp":"2026-01-01T00:00:00Z"}`, "", "gemini", false},
		{`{"hook_event_name":"PreCompress","timestamp":"2026-01-01T00:00:00Z"}`, "", "gemini", false},
		{`{"hook_event_name":"PreToolUse","turn_id":"t","model":"m","permission_mode":"default"}`, "", "codex", false},
		{`{"hook_event_name":"PreCompact","turn_id":"t","model":"m"}`, "", "codex", false},
		{`{"hook_event_name":"SessionStart","model":"m","permission_mode":"plan","source":"startup"}`, "", "codex", false},
		{`{"hook_event_name":"SessionStart","model":"m","permission_mode":"plan","timestamp":"2026-01-01T00:00:00Z"}`, "QWEN_PROJECT_DIR", "qwen", false},
		{`{"type":"agent-turn-complete","thread-id":"t"}`, "", "codex", true},
		{`{"hook_event_name":"preToolUse","cwd":"/w"}`, "", "kiro", false},
		{`{"hook_event_name":"agentSpawn","cwd":"/w"}`, "", "kiro", false},
		{`{"hook_event_name":"PreToolUse","permission_mode":"auto-high"}`, "", "droid", false},
		{`{"hook_event_name":"PreToolUse","permission_mode":"spec"}`, "", "droid", false},
		{`{"hook_event_name":"Stop"}`, "DROID_PROJECT_DIR", "droid", false},
		{`{"hook_event_name":"PreToolUse","permission_mode":"yolo"}`, "", "qwen", false},
		{`{"hook_event_name":"PreToolUse","tool_call_id":"c"}`, "", "kimi", false},
		{`{"hook_event_name":"PreToolUse","tool_use_id":"c"}`, "", "claude", false},
		{`{"hook_event_name":"MessageDisplay","turn_id":"t"}`, "", "claude", false},
		{`{"hookEventName":"pre_tool_use","sessionId":"s","toolName":"x"}`, "", "grok", true},
		{`{"event_type":"PreToolUse","session_id":"s","working_dir":"/w"}`, "", "openhands", false},
		{`{"hook_event_name":"tool.execute.before","session_id":"s"}`, "", "opencode", false},
		{`{"hook_event_name":"pre_tool_call","session_id":"s","extra":{}}`, "", "hermes", false},
		{`{"a":1}`, "", "", false},
		{`{"hook_event_name":"PreToolUse"`, "", "", false},
		{``, "", "", false},
	} {
		name, sure := agent.Detect([]byte(tc.payload), func(key string) string {
			if key == tc.env {
				return "/w"
			}
			return ""
		})
		require.Equal(t, tc.name, name, tc.payload)
		require.Equal(t, tc.sure, sure, tc.payload)
	}
	name, _ := agent.Detect([]byte(`{"hook_event_name":"Stop"}`), nil)
	require.Equal(t, "claude", name)
}

func TestPick(t *testing.T) {
	claudes := []byte(`{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{}}`)
	code := []byte(`{"hookEventName":"PreToolUse","sessionId":"s","tool_name":"x","tool_input":{}}`)

	d, warning, err := agent.Pick(agent.Auto, claudes, nil)
	require.NoError(t, err)
	require.Equal(t, "claude", d.Name())
	require.Empty(t, warning)

	d, warning, err = agent.Pick("codex", claudes, nil)
	require.NoError(t, err)
	require.Equal(t, "codex", d.Name(), "a guess does not count more than a name")
	require.Empty(t, warning)

	d, warning, err = agent.Pick("claude", code, nil)
	require.NoError(t, err)
	require.Equal(t, "vscode", d.Name(), "VS Code runs the hooks in Claude's files")
	require.Equal(t, "this hook was registered for claude, and vscode runs it: answered as vscode reads it", warning)

	d, warning, err = agent.Pick("copilot", code, nil)
	require.NoError(t, err)
	require.Equal(t, "copilot", d.Name(), "it speaks for both")
	require.Empty(t, warning)

	d, _, err = agent.Pick("claude", []byte("noise"), nil)
	require.NoError(t, err)
	require.Equal(t, "claude", d.Name())

	_, _, err = agent.Pick("cluade", claudes, nil)
	require.ErrorContains(t, err, `unknown agent "cluade" (did you mean "claude"?)`)
	_, _, err = agent.Pick(agent.Auto, []byte(`{}`), nil)
	require.ErrorContains(t, err, "name it with --agent")
}

func TestTableForPeople(t *testing.T) {
	md := agent.Markdown()
	require.Contains(t, md, "### `codex`\n\n| event |")
	require.Contains(t, md, "| `PreToolUse` | `before_tool` | deny, ask, allow, modify, add_context, abort_turn, warnings | not for files named with @ in a prompt |")
	require.Contains(t, md, "| `SessionEnd` | `session_end` (observed) | – |  |")
	require.Contains(t, md, "| `before_tool` | ask | deny |")
	for _, line := range strings.Split(md, "\n") {
		if strings.HasPrefix(line, "|") {
			require.Equal(t, 5, strings.Count(line, "|"), line)
		}
	}
	text := agent.Text(agent.Find("kimi"))
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	require.Len(t, lines, 1+len(agent.Find("kimi").Rows()))
	require.True(t, strings.HasPrefix(lines[0], "AGENT  EVENT"))
	require.NotContains(t, text, "codex")
}

// TestLinksNothingHeavy holds what makes a program that is started for every
// event quick: the packages of this room import little.
func TestLinksNothingHeavy(t *testing.T) {
	allowed := []string{
		"bytes", "errors", "fmt", "strconv", "strings", "unicode/utf8", "slices", "cmp", "path",
		"github.com/go-json-experiment/json/jsontext",
	}
	err := filepath.WalkDir(".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "agenttest") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, spec := range file.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			ours := strings.HasPrefix(name, "github.com/hookd/hookd/agent/") || name == "github.com/hookd/hookd/protocol"
			require.True(t, ours || slices.Contains(allowed, name), "%s imports %s", path, name)
		}
		return nil
	})
	require.NoError(t, err)
}

func FuzzDetect(f *testing.F) {
	f.Add("claude", []byte(`{"hook_event_name":"PreToolUse"}`))
	f.Add("auto", []byte(`{"hook_event_name":""}`))
	f.Add("auto", []byte(`{"hookEventName":7,"sessionId":[]}`))
	f.Fuzz(func(t *testing.T, name string, payload []byte) {
		d, _, err := agent.Pick(name, payload, nil)
		require.Equal(t, err == nil, d != nil)
	})
}
