package thin

import (
	"bytes"
	"flag"
	"fmt"
	"go/format"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/agent"
	"github.com/hookd/hookd/protocol"
)

var update = flag.Bool("update", false, "write answers.go anew")

var wants = []agent.OnUnavailable{agent.UnavailableDefault, agent.UnavailableContinue, agent.UnavailableDeny, agent.UnavailableAsk}

// TestAnswersAreFresh holds the table of answers.go to what package agent says.
func TestAnswersAreFresh(t *testing.T) {
	code := generate(t)
	if *update {
		require.NoError(t, os.WriteFile("answers.go", code, 0o644))
		return
	}
	have, err := os.ReadFile("answers.go")
	require.NoError(t, err)
	require.Equal(t, string(code), string(have), "go test ./thin -update")
}

// generate writes the table: equal answers stand in it once.
func generate(t *testing.T) []byte {
	var b bytes.Buffer
	b.WriteString(`package thin

// Made by "go test ./thin -update" of what package agent says. A switch costs
// nothing at the start; a map would.

// answerFor finds the answer to an event. known is false for agents and events
// that are not in the table.
func answerFor(agent, event, want string) (stdout, stderr string, exit int, known bool) {
	switch agent {
`)
	for _, d := range agent.All() {
		names := []string{fmt.Sprintf("%q", d.Name())}
		for _, alias := range agent.Aliases() {
			require.NotNil(t, agent.Find(alias), alias)
			if agent.Canonical(alias) == d.Name() {
				names = append(names, fmt.Sprintf("%q", alias))
			}
		}
		fmt.Fprintf(&b, "case %s:\nswitch event + \" \" + want {\n", strings.Join(names, ", "))
		keys := map[string][]string{}
		var order []string
		for _, row := range d.Rows() {
			for _, want := range wants {
				a := d.Unavailable(row.Event, want, reasonMark, nil)
				require.NotEqual(t, 1, a.ExitCode)
				text := fmt.Sprintf("return %q, %q, %d, true\n", a.Stdout, a.Stderr, a.ExitCode)
				if keys[text] == nil {
					order = append(order, text)
				}
				keys[text] = append(keys[text], fmt.Sprintf("%q", row.Event+" "+string(want)))
			}
		}
		for _, text := range order {
			fmt.Fprintf(&b, "case %s:\n%s", strings.Join(keys[text], ",\n"), text)
		}
		b.WriteString("}\n")
	}
	b.WriteString("}\nreturn \"\", \"\", 0, false\n}\n")
	code, err := format.Source(b.Bytes())
	require.NoError(t, err)
	return code
}

func TestUnavailableIsWhatTheAgentReads(t *testing.T) {
	reason := "no \"daemon\"\n\xff line"
	clean := strings.ToValidUTF8(reason, "\uFFFD")
	for _, d := range agent.All() {
		for _, row := range d.Rows() {
			for _, want := range wants {
				got := Unavailable(d.Name(), row.Event, string(want), reason, nil)
				wanted := d.Unavailable(row.Event, want, clean, nil)
				name := d.Name() + " " + row.Event + " " + string(want)
				require.Equal(t, wanted.ExitCode, got.Exit, name)
				require.Equal(t, strings.TrimSpace(string(wanted.Stderr)), strings.TrimSpace(strings.ToValidUTF8(string(got.Stderr), "\uFFFD")), name)
				if len(wanted.Stdout) == 0 || !strings.HasPrefix(string(wanted.Stdout), "{") {
					require.Equal(t, string(wanted.Stdout), string(got.Stdout), name)
					continue
				}
				require.NoError(t, protocol.CheckValue(got.Stdout, 0), name)
				require.True(t, protocol.SameValue(wanted.Stdout, got.Stdout), "%s: %s and %s", name, wanted.Stdout, got.Stdout)
			}
		}
	}
}

// TestUnavailableToWhomRunsTheHook: some agents run the hooks of others, and
// what says no to one may say yes to them.
func TestUnavailableToWhomRunsTheHook(t *testing.T) {
	cursor := Unavailable("claude", "PreToolUse", "deny", "gone", []byte(`{"cursor_version":"3.7","hook_event_name":"preToolUse"}`))
	require.Contains(t, string(cursor.Stdout), `"permission":"deny"`)
	grok := Unavailable("claude", "PreToolUse", "deny", "gone", []byte(`{"hookEventName":"PreToolUse","workspaceRoot":"/"}`))
	require.Equal(t, 2, grok.Exit)
	require.Contains(t, string(grok.Stdout), `"decision":"deny"`)
	require.Equal(t, Unavailable("windsurf", "pre_run_command", "", "gone", nil), Unavailable("devin", "pre_run_command", "", "gone", nil))
}

// TestNothingInsideAPayloadOpensAGate: the arguments of a tool are the model's
// to choose, and so is whatever makes the daemon refuse the payload.
func TestNothingInsideAPayloadOpensAGate(t *testing.T) {
	inside := `{"command":"x","cursor_version":"1","agent_action_name":"post_x","hookEventName":"stop","workspaceRoot":"/","hook_event_name":"Stop","event":"stop"}`
	for _, d := range agent.All() {
		for _, row := range d.Rows() {
			if !row.Gate() {
				continue
			}
			want := Unavailable(d.Name(), row.Event, "", "gone", []byte(`{}`))
			for _, payload := range []string{
				`{"tool_input":` + inside + `,"hook_event_name":"` + row.Event + `"}`,
				`{"hook_event_name":"` + row.Event + `","tool_input":` + inside + `}`,
				`{"toolArgs":` + string(protocol.Quote(inside)) + `}`,
				`[` + inside + `]`,
			} {
				require.Equal(t, want, Unavailable(d.Name(), row.Event, "", "gone", []byte(payload)), "%s %s %s", d.Name(), row.Event, payload)
			}
		}
	}
	// A mark that is really there, beside an event that is no gate.
	got := Unavailable("claude", "PreToolUse", "", "gone", []byte(`{"cursor_version":"1","hook_event_name":"stop"}`))
	require.Contains(t, string(got.Stdout), `"permissionDecision":"deny"`)
}

func TestUnavailableOfTheUnknown(t *testing.T) {
	require.Equal(t, Answer{Stderr: []byte("gone\n"), Exit: 2}, Unavailable("nobody", "x", "", "gone", nil))
	require.Equal(t, Answer{Stderr: []byte("gone\n")}, Unavailable("nobody", "x", "continue", "gone", nil))
	auto := Unavailable("auto", "", "deny", "gone", []byte(`{"session_id":"s", "hook_event_name" : "PreToolUse"}`))
	require.Contains(t, string(auto.Stdout), `"permissionDecision":"deny"`)
	require.True(t, slices.Contains([]int{0}, auto.Exit))
}
