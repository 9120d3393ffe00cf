package conform

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// testAgent is an agent that does one thing wrong, or nothing.
func testAgent(flaw string) {
	marker := os.Getenv(MarkerEnv)
	run := func(path string) { _ = os.WriteFile(path, nil, 0o600) }
	switch flaw {
	case "never asks":
		run(marker)
		return
	case "never runs":
		return
	case "dies":
		fmt.Fprintln(os.Stderr, "no model")
		os.Exit(1)
	}
	conn, err := net.Dial("unix", os.Getenv(SocketEnv))
	if err != nil {
		if flaw == "runs without hookd" {
			run(marker)
		}
		return
	}
	lines := bufio.NewReader(conn)
	ask := func(id int, method, params string) (reply struct {
		ID     any
		Result json.RawMessage
		Error  any
	}, err error) {
		if flaw != "patient" {
			_ = conn.SetReadDeadline(time.Now().Add(2 * time.Second))
		}
		fmt.Fprintf(conn, `{"jsonrpc":"2.0","id":%d,"method":"hook.%s","params":%s}`+"\n", id, method, params)
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return reply, err
		}
		return reply, json.Unmarshal(line, &reply)
	}
	if reply, err := ask(1, "hello", `{"name":"tester","version":1,"deadline_ms":2000}`); err != nil || reply.Error != nil {
		return
	}
	if flaw == "garbage" {
		fmt.Fprintln(conn, "hello")
	}
	call := fmt.Sprintf(`{"tool":"touch","arguments":{"path":%q}}`, marker)
	reply, err := ask(2, "before_tool", call)
	// Maps read names exactly, which structs would not.
	var said map[string]any
	_ = json.Unmarshal(reply.Result, &said)
	verb, _ := said["action"].(string)
	if flaw == "any case" {
		verb = strings.ToLower(verb)
	}
	may := err == nil && reply.Error == nil && (reply.ID == 2.0 || flaw == "any id") && (verb == "continue" || verb == "modify")
	switch {
	case flaw == "fails open" && err != nil, flaw == "shrugs off errors" && reply.Error != nil,
		flaw == "denies only" && err == nil && reply.Error == nil && !strings.HasPrefix(verb, "deny"):
		may = true
	}
	if call, ok := said["call"].(map[string]any); ok && flaw != "runs its own" {
		marker = call["arguments"].(map[string]any)["path"].(string)
	}
	if may && flaw != "asks no people" {
		reply, err := ask(3, "approve_tool", fmt.Sprintf(`{"tool":"touch","arguments":{"path":%q}}`, marker))
		var said struct{ Approved any }
		_ = json.Unmarshal(reply.Result, &said)
		may = flaw == "fails open" && err != nil || err == nil && reply.Error == nil && (said.Approved == true || flaw == "truthy" && said.Approved != nil && said.Approved != false)
	}
	if may {
		run(marker)
		_, _ = ask(4, "after_tool", `{"result":{"content":""}}`)
	}
}

func testAgentOptions(flaw string) AgentOptions {
	return AgentOptions{Argv: []string{os.Args[0], "agent", flaw}, Timeout: 20 * time.Second}
}

func TestFlawsOfAgentsAreFound(t *testing.T) {
	t.Parallel()
	for flaw, want := range map[string][]string{
		"none":               nil,
		"never asks":         {"FAIL continue"},
		"never runs":         {"FAIL continue"},
		"dies":               {"FAIL continue"},
		"runs without hookd": {"FAIL nobody listens"},
		"fails open":         {"FAIL end of file", "FAIL half an answer", "FAIL silence"},
		"shrugs off errors":  {"FAIL error"},
		"any case":           {"FAIL verb in another case"},
		"any id":             {"FAIL another id"},
		"denies only":        {"FAIL unknown verb", "FAIL hard_abort", "FAIL respond"},
		"runs its own":       {"FAIL modify"},
		"truthy":             {"FAIL approval: no boolean"},
		"asks no people":     {"WARN approval: no"},
		"garbage":            {"FAIL continue"},
		"patient":            {"FAIL silence"},
	} {
		t.Run(flaw, func(t *testing.T) {
			t.Parallel()
			// Of all cases those that can tell, and some more.
			cases := slices.DeleteFunc(agentCases(), func(c agentCase) bool {
				named := slices.ContainsFunc(want, func(w string) bool { return strings.HasSuffix(w, " "+c.name) })
				return want != nil && !named && !slices.Contains([]string{"continue", "deny", "error"}, c.name)
			})
			results, err := tryAgent(t.Context(), testAgentOptions(flaw), cases)
			require.NoError(t, err)
			if want == nil {
				require.Empty(t, failed(results), "%+v", results)
				return
			}
			require.Subset(t, failed(results), want, "%+v", results)
			for _, r := range results {
				require.Equal(t, r.Status == Fail || r.Status == Warn, r.Do != "", "%+v", r)
			}
		})
	}
}

func TestAnAgentThatIsNotThere(t *testing.T) {
	results, err := Agent(t.Context(), AgentOptions{Argv: []string{"/nowhere/agent"}})
	require.NoError(t, err)
	require.Equal(t, []string{"FAIL continue"}, failed(results))
}

func TestASocketThatIsTaken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	o := testAgentOptions("none")
	o.Socket = path
	_, err := Agent(t.Context(), o)
	require.ErrorContains(t, err, "listen in place of hookd")
	require.FileExists(t, path)
}

func TestAnEndedContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Agent(ctx, testAgentOptions("none"))
	require.ErrorIs(t, err, context.Canceled)
	_, err = Hook(ctx, HookOptions{Argv: []string{os.Args[0], "hook", "none"}})
	require.ErrorIs(t, err, context.Canceled)
}

// All example agents pass. Their scripts stand for a model that wants the file.
func TestExampleAgents(t *testing.T) {
	t.Parallel()
	wrapper := func(t *testing.T, command string) []string {
		return []string{"sh", "-c", `d=$(dirname "$HOOKD_CONFORM_MARKER"); cat >"$d/script.json" <<END
{"turns": [{"user": "make it", "answers": [
  {"content": "", "tool_calls": [{"id": "c-1", "name": "bash", "arguments": {"command": "touch $HOOKD_CONFORM_MARKER"}}]},
  {"content": "done"}]}]}
END
AGENT_PATIENCE_MS=1000 exec ` + command + ` "$d/script.json"`}
	}
	python, err := filepath.Abs("../examples/agent/agent.py")
	require.NoError(t, err)
	typescript, err := os.ReadFile("../examples/agent/agent.ts")
	require.NoError(t, err)
	// Without its types any node can run it.
	text := regexp.MustCompile(`(?m)^type .*$`).ReplaceAllString(string(typescript), "")
	text = regexp.MustCompile(`(?m)^(const \w+): .*? = `).ReplaceAllString(text, "$1 = ")
	node := filepath.Join(t.TempDir(), "agent.mjs")
	require.NoError(t, os.WriteFile(node, []byte(text), 0o600))
	for tool, command := range map[string]string{
		"python3": "python3 " + python,
		"node":    "node " + node,
		"go":      build(t, "../examples/agent") + " -patience 1s",
	} {
		argv := wrapper(t, command)
		const parts = 3 // at once, since most of the time they wait
		for part := range parts {
			t.Run(fmt.Sprint(tool, part), func(t *testing.T) {
				t.Parallel()
				requireTool(t, tool)
				var cases []agentCase
				for i, c := range agentCases() {
					if i == 0 || i%parts == part {
						cases = append(cases, c)
					}
				}
				results, err := tryAgent(t.Context(), AgentOptions{Argv: argv, Timeout: time.Minute}, cases)
				require.NoError(t, err)
				require.Empty(t, failed(results), "%+v", results)
				require.Len(t, results, len(cases))
			})
		}
	}
}
