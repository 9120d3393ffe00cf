package daemon_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/daemon"
	"github.com/hookd/hookd/protocol"
)

// nativeConfig has a hook that answers whatever the environment says.
func nativeConfig(t *testing.T, answer, more string) string {
	self, err := os.Executable()
	require.NoError(t, err)
	return fmt.Sprintf(`{%s "hooks": {"processes": {"gate": {
		"command": [%q], "env": {%q: %q}, "intercept": ["before_tool"], "fail_policy": "deny", "match": {"tools": ["Bash"]}}}}}`, more, self, asHook, answer)
}

const claudeCall = `{"session_id":"s","hook_event_name":"PreToolUse","cwd":"/tmp","tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"%s"}`

func askNative(t *testing.T, d *runningDaemon, params string) string {
	conn, err := net.Dial("unix", d.sockets.Agents)
	require.NoError(t, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, `{"jsonrpc":"2.0","id":1,"method":"hook.native","params":%s}`+"\n", params)
	require.NoError(t, err)
	line, err := bufio.NewReader(conn).ReadString('\n')
	require.NoError(t, err)
	return line
}

func nativeParams(agent, event, payload, more string) string {
	return fmt.Sprintf(`{"agent":%q,"event":%q,"payload":%s%s}`, agent, event, protocol.Quote(payload), more)
}

func TestNativeEvents(t *testing.T) {
	d := startDaemon(t, nativeConfig(t, "deny", ""))
	for _, c := range []struct{ name, params, want string }{
		{"a denial in the agent's words", nativeParams("claude", "PreToolUse", fmt.Sprintf(claudeCall, "1"), ""), `{"stdout":"{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"deny\"`},
		{"found by the payload", nativeParams("auto", "auto", fmt.Sprintf(claudeCall, "2"), ""), `\"permissionDecision\":\"deny\"`},
		{"another tool", nativeParams("claude", "PreToolUse", strings.Replace(fmt.Sprintf(claudeCall, "3"), "Bash", "Read", 1), ""), `{"stdout":"","stderr":"","exit_code":0`},
		{"an event only", nativeParams("claude", "Notification", `{"hook_event_name":"Notification","message":"x"}`, ""), `{"stdout":"","stderr":"","exit_code":0`},
		{"an event that nobody knows", nativeParams("claude", "Brandnew", `{"hook_event_name":"Brandnew"}`, ""), `{"stdout":"","stderr":"","exit_code":0`},
		{"an agent that nobody knows", nativeParams("cluade", "PreToolUse", `{}`, ""), `unknown agent \"cluade\" (did you mean \"claude\"?)`},
		{"a payload that can't be read", nativeParams("claude", "PreToolUse", `{"tool_name":"Bash","tool_name":"Read"}`, ""), `"code":-32602`},
		{"no payload", nativeParams("claude", "PreToolUse", ``, ""), `"code":-32602`},
		{"a param that nobody knows", nativeParams("claude", "PreToolUse", `{}`, `,"aprove":true`), `aprove`},
	} {
		t.Run(c.name, func(t *testing.T) { require.Contains(t, askNative(t, d, c.params), c.want) })
	}
}

// TestNativeRetry: the same call fired twice gets one answer and asks once.
func TestNativeRetry(t *testing.T) {
	d := startDaemon(t, nativeConfig(t, "deny", ""))
	calls := func() int64 {
		for _, h := range d.status(t).Hooks {
			if h.Name == "gate" {
				return h.Calls
			}
		}
		return -1
	}
	before := calls()
	first := askNative(t, d, nativeParams("claude", "PreToolUse", fmt.Sprintf(claudeCall, "same"), ""))
	again := askNative(t, d, nativeParams("claude", "PreToolUse", fmt.Sprintf(claudeCall, "same"), ""))
	require.Equal(t, first, again)
	require.Equal(t, before+1, calls())
	askNative(t, d, nativeParams("claude", "PreToolUse", fmt.Sprintf(claudeCall, "other"), ""))
	require.Equal(t, before+2, calls())
}

// A prompt that an agent is about to show stays the agent's: a yes is only what an
// approver has said.
func TestNativePromptWithoutApprover(t *testing.T) {
	const call = `{"session_id":"p","hook_event_name":"PermissionRequest","cwd":"/tmp","tool_name":"Bash","tool_input":{"command":"mkfs /dev/sda"},"tool_use_id":"%s"}`
	for name, hooks := range map[string]string{
		"no hooks":         ``,
		"a person, unused": `"hooks": {"builtins": {"policy": {}, "human": {}}}`,
		"only an observer": `"hooks": {"builtins": {"cancel": {}}}`,
		"disabled":         `"hooks": {"enabled": false, "builtins": {"policy": {}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			d := startDaemon(t, "{"+hooks+"}")
			for _, dialect := range []string{"claude", "codex", "copilot"} {
				answer := askNative(t, d, nativeParams(dialect, "PermissionRequest", fmt.Sprintf(call, dialect), ""))
				require.NotContains(t, answer, "allow", dialect)
				require.NotContains(t, answer, "behavior", dialect)
			}
		})
	}
}

// A person's yes is for one call, also when the agent sends the same again.
func TestNativeYesIsForOneCall(t *testing.T) {
	d := startDaemon(t, `{"approval": {"not_same_process_tree": false}, "hooks": {"builtins": {"policy": {}, "human": {}, "cancel": {}}}}`)
	params := nativeParams("claude", "PreToolUse", fmt.Sprintf(claudeCall, "once"), `,"approve":true`)
	answers := make(chan string, 1)
	for range 2 {
		go func() { answers <- askNative(t, d, params) }()
		_, err := d.approve(t, daemon.ApprovalAnswerParams{ID: d.tickets(t, 1)[0].ID})
		require.NoError(t, err)
		require.Contains(t, <-answers, `\"permissionDecision\":\"allow\"`)
	}
	require.NoError(t, d.control(t, daemon.MethodSessionsCancel, daemon.SessionParams{Session: "s", Reason: "enough"}, nil))
	require.NotContains(t, askNative(t, d, params), "allow")
}

func freePort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

func TestHTTPDoor(t *testing.T) {
	address := freePort(t)
	d := startDaemon(t, nativeConfig(t, "deny", fmt.Sprintf(`"http": {"listen": %q},`, address)))
	path := filepath.Join(filepath.Dir(d.sockets.Agents), "http-token")
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	token, err := os.ReadFile(path)
	require.NoError(t, err)

	do := func(method, path, body string, change func(*http.Request)) (int, string, http.Header) {
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+address+path, strings.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
		if change != nil {
			change(req)
		}
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(text), resp.Header
	}
	defer http.DefaultClient.CloseIdleConnections()

	const event = "/v1/agents/claude/PreToolUse"
	status, body, header := do("POST", event, fmt.Sprintf(claudeCall, "1"), nil)
	require.Equal(t, 200, status)
	require.Contains(t, body, `"permissionDecision":"deny"`)
	require.Equal(t, "0", header.Get("Hookd-Exit-Code"))
	require.NoError(t, protocol.CheckValue(jsontext.Value(body), 0))

	t.Run("what can't be judged is a no with status 200", func(t *testing.T) {
		for _, payload := range []string{"", "{", `{"tool_name":1}`} {
			status, body, _ := do("POST", event, payload, nil)
			require.Equal(t, 200, status)
			require.Contains(t, body, `"permissionDecision":"deny"`, "%q", payload)
		}
		_, body, _ := do("POST", event+"?on_unavailable=ask", "{", nil)
		require.Contains(t, body, `"permissionDecision":"ask"`)
	})
	t.Run("nothing in a payload that can't be read renames the event", func(t *testing.T) {
		deep := strings.Repeat("[", 200) + strings.Repeat("]", 200)
		_, body, _ := do("POST", event, `{"tool_input":{"command":"x","hook_event_name":"Notification","x":`+deep+`},"hook_event_name":"PreToolUse","tool_name":"Bash"}`, nil)
		require.Contains(t, body, `"permissionDecision":"deny"`)
		_, body, _ = do("POST", event, `{"hook_event_name":"Notification","tool_input":`+deep+`}`, nil)
		require.Contains(t, body, `"permissionDecision":"deny"`)
	})
	t.Run("a choice that nobody knows is a no", func(t *testing.T) {
		_, body, _ := do("POST", event+"?on_unavailable=perhaps", fmt.Sprintf(claudeCall, "choice"), nil)
		require.Contains(t, body, `"permissionDecision":"deny"`)
		require.Contains(t, body, `unknown choice \"perhaps\"`)
	})
	t.Run("live views take no room from events", func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		defer end()
		full := false
		for range 200 {
			req, err := http.NewRequestWithContext(ctx, "GET", "http://"+address+"/v1/events", nil)
			require.NoError(t, err)
			req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
			resp, err := http.DefaultClient.Do(req)
			require.NoError(t, err)
			defer resp.Body.Close()
			full = full || resp.StatusCode == http.StatusServiceUnavailable
		}
		require.True(t, full)
		status, body, _ := do("POST", event, fmt.Sprintf(claudeCall, "beside"), nil)
		require.Equal(t, 200, status)
		require.Contains(t, body, `"permissionDecision":"deny"`)
		end()
		until(t, "their room is free again", func() bool {
			status, _, _ := do("GET", "/v1/events?kind=no_such", "", nil)
			return status != http.StatusServiceUnavailable
		})
	})
	for name, c := range map[string]struct {
		method, path string
		change       func(*http.Request)
		want         int
	}{
		"no token":          {"POST", event, func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		"wrong token":       {"POST", event, func(r *http.Request) { r.Header.Set("Authorization", "Bearer x") }, 401},
		"another scheme":    {"POST", event, func(r *http.Request) { r.Header.Set("Authorization", "Basic "+strings.TrimSpace(string(token))) }, 401},
		"a web page":        {"POST", event, func(r *http.Request) { r.Header.Set("Origin", "http://"+address) }, 403},
		"a rebound name":    {"POST", event, func(r *http.Request) { r.Host = "evil.example:7465" }, 403},
		"a wrong method":    {"GET", event, nil, 405},
		"an unknown agent":  {"POST", "/v1/agents/nobody/PreToolUse", nil, 404},
		"an unknown path":   {"POST", "/v2", nil, 404},
		"no metrics":        {"GET", "/metrics", nil, 404},
		"a choice unheard":  {"POST", event + "?on_unavailable=perhaps", nil, 200},
		"a kind of nothing": {"GET", "/v1/events?kind=no_such", nil, 400},
	} {
		t.Run(name, func(t *testing.T) {
			status, _, _ := do(c.method, c.path, "{}", c.change)
			require.Equal(t, c.want, status)
		})
	}

	t.Run("a wrong path is answered in JSON, with what to do", func(t *testing.T) {
		for path, want := range map[string]int{
			"/": 404, "/v2": 404, "/v1/agents/claude": 404, event + "/": 404, "/v1/agents//claude/PreToolUse": 404, "/v1/agents/claude/../claude/PreToolUse": 404, event + "%2F": 404, "/v1/agents/claude%2F..%2Fclaude/PreToolUse": 404,
			"/v1/agents/nobody/PreToolUse": 404, "/v1/events": 405, "//evil.example/x": 404,
		} {
			status, body, header := do("POST", path, fmt.Sprintf(claudeCall, "path"), nil)
			require.Equal(t, want, status, path)
			require.Equal(t, "application/json", header.Get("Content-Type"), path)
			require.Empty(t, header.Get("Location"), path)
			said, err := protocol.DecodeObject([]byte(body), 0)
			require.NoError(t, err, "%s: %s", path, body)
			require.NotEmpty(t, protocol.MetaString(said, "error"), path)
			require.NotEmpty(t, protocol.MetaString(said, "next"), path)
		}
	})
	t.Run("the URL says which agent and event it is", func(t *testing.T) {
		for name, c := range map[string]struct{ path, body, want string }{
			"another event":                   {event, strings.Replace(fmt.Sprintf(claudeCall, "e"), "PreToolUse", "PostToolUse", 1), `"permissionDecision":"deny"`},
			"another event, whoever it is":    {event, strings.Replace(fmt.Sprintf(claudeCall, "e"), "PreToolUse", "Brandnew", 1), `"permissionDecision":"deny"`},
			"another event, going on":         {event + "?on_unavailable=continue", strings.Replace(fmt.Sprintf(claudeCall, "e"), "PreToolUse", "PostToolUse", 1), ``},
			"another agent":                   {event, `{"conversation_id":"c","generation_id":"g","hook_event_name":"beforeShellExecution","cursor_version":"1","workspace_roots":["/"],"command":"ls","cwd":"/"}`, `"permissionDecision":"deny"`},
			"another spelling":                {"/v1/agents/claude/pre_tool_use", strings.Replace(fmt.Sprintf(claudeCall, "s"), "Bash", "Read", 1), ``},
			"no event":                        {event, `{"session_id":"s","cwd":"/tmp","tool_name":"Read","tool_input":{"file_path":"x"}}`, ``},
			"the body may tell, where it may": {"/v1/agents/auto/auto", fmt.Sprintf(claudeCall, "auto"), `"permissionDecision":"deny"`},
		} {
			status, body, _ := do("POST", c.path, c.body, nil)
			require.Equal(t, 200, status, name)
			if c.want == "" {
				require.Empty(t, body, name)
				continue
			}
			require.Contains(t, body, c.want, name)
		}
		_, body, _ := do("POST", event, strings.Replace(fmt.Sprintf(claudeCall, "e"), "PreToolUse", "PostToolUse", 1), nil)
		require.Contains(t, body, "PostToolUse", "the reason says what the body named")
	})

	t.Run("events as they happen", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, "GET", "http://"+address+"/v1/events?kind=decision", nil)
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		lines := bufio.NewReader(resp.Body)
		_, err = lines.ReadString('\n') // the view is open
		require.NoError(t, err)
		do("POST", event, fmt.Sprintf(claudeCall, "seen"), nil)
		for {
			line, err := lines.ReadString('\n')
			require.NoError(t, err)
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				require.Contains(t, data, `"kind":"decision"`)
				require.Contains(t, data, `"agent":"claude"`)
				return
			}
		}
	})
}
