package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/client"
)

var update = flag.Bool("update", false, "rewrite the golden transcripts")

const patience = 30 * time.Second // of agents whose hookd answers

// golden compares a transcript with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "if the change is wanted: go test ./examples/agent -update")
}

// toolLines are the lines of a transcript that all agents print.
func toolLines(transcript string) []string {
	var list []string
	for line := range strings.Lines(transcript) {
		for _, label := range []string{"call", "not run", "ran", "result"} {
			if rest, ok := strings.CutPrefix(line, label+" "); ok {
				list = append(list, label+" "+strings.TrimSpace(rest))
			}
		}
	}
	return list
}

// TestSession runs all agents through the same script, with the example hooks
// and one that turns rm into a move: the same decisions come out in each.
func TestSession(t *testing.T) {
	for _, interpreter := range []string{"python3", "node"} {
		if _, err := exec.LookPath(interpreter); err != nil {
			t.Skipf("the example hooks need %s, which is not installed", interpreter)
		}
	}
	hooks, err := filepath.Abs("../hooks")
	require.NoError(t, err)
	d := startDaemon(t, map[string]any{
		"review-gate": map[string]any{
			"command": []string{"python3", filepath.Join(hooks, "review_gate.py")}, "priority": 50,
			"intercept": []string{"before_tool", "approve_tool"}, "fail_policy": "deny", "timeout_ms": 30000,
		},
		"redact": map[string]any{
			"command": []string{"node", filepath.Join(hooks, "redact.mjs")}, "priority": 100,
			"intercept": []string{"before_llm", "after_tool"}, "fail_policy": "deny", "timeout_ms": 30000,
		},
		"trash": scriptedHook(t, 110, []rule{{
			"before_tool", []string{`"rm notes.txt"`},
			json.RawMessage(`{"action":"modify","call":{"arguments":{"command":"mkdir .trash && mv notes.txt .trash"}}}`),
		}}),
	})
	for _, agent := range examples(t) {
		t.Run(agent.name, func(t *testing.T) {
			folder := t.TempDir()
			out, err := agent.run(t, options{script: "script.json", folder: folder, socket: d.socket, patience: patience})
			require.NoError(t, err, out)
			if agent.name == "agent.go" {
				golden(t, "session.golden", out)
			}
			want, err := os.ReadFile("testdata/session.golden")
			require.NoError(t, err)
			require.Equal(t, toolLines(string(want)), toolLines(out))

			require.NoFileExists(t, filepath.Join(folder, ".env"), "what was denied")
			require.NoFileExists(t, filepath.Join(folder, "notes.txt"))
			kept, err := os.ReadFile(filepath.Join(folder, ".trash", "notes.txt"))
			require.NoError(t, err, "what rm was changed into")
			require.Equal(t, "key AKIAIOSFODNN7EXAMPLE\n", string(kept))

			name := agent.name
			if name == "agent.go" {
				name = "example-agent"
			}
			require.Eventually(t, func() bool {
				events, err := os.ReadFile(d.events)
				return err == nil && strings.Contains(string(events), `"kind":"session_start"`) && strings.Contains(string(events), `"agent":"`+name+`"`)
			}, patience, 10*time.Millisecond, "observers are told")
		})
	}
}

// TestVerbs goes through everything that hooks can say, a turn each.
func TestVerbs(t *testing.T) {
	type answers = map[string]string // of the hook, by stage
	var turns []turn
	var rules []rule
	add := func(user string, hook answers, model ...response) {
		turns = append(turns, turn{user, model})
		for stage, answer := range hook {
			stage, round, once := strings.Cut(stage, " ")
			has := []string{fmt.Sprintf(`"turn_id":"turn-%d"`, len(turns))}
			if once {
				has = append(has, `"iteration":`+round)
			}
			rules = append(rules, rule{stage, has, json.RawMessage(answer)})
		}
	}
	done := says("Done.")

	add("deny this message", answers{"user_message": `{"action":"deny","reason":"no small talk"}`}, done)
	add("rewrite this message", answers{
		"user_message": `{"action":"modify","message":{"content":"the better message"},"add_context":"be brief","warnings":["it was too long"]}`,
	}, done)
	add("answer for the agent", answers{"before_agent": `{"action":"respond","response":{"content":"We are closed."}}`}, done)
	add("skip the agent", answers{"before_agent": `{"action":"respond","response":{}}`}, done)
	add("deny the run", answers{"before_agent": `{"action":"deny","reason":"it is night"}`}, done)
	add("change the run", answers{"before_agent": `{"action":"modify","request":{"input":[{"type":"text","text":"the other input","n":9007199254740993}]}}`}, done)
	add("change the system prompt", answers{"system_prompt": `{"action":"modify","prompt":{"content":"You are careful."}}`}, done)
	add("abort at the system prompt", answers{"system_prompt": `{"action":"abort_turn","reason":"no prompt, no turn"}`}, done)
	add("inject instructions", answers{"inject_instructions": `{"add_context":["think first","then act"]}`}, done)
	add("another model", answers{"before_llm": `{"action":"modify","request":{"model":"small-1"},"add_context":"for this call"}`}, done)
	add("answer for the model", answers{"before_llm": `{"action":"respond","response":{"content":"From the cache."}}`}, done)
	add("deny the model", answers{"before_llm": `{"action":"deny","reason":"the budget is used up"}`}, done)
	add("take the tool call out", answers{"after_llm": `{"action":"modify","response":{"tool_calls":[]}}`}, says("I try it.", bash("echo no >tool")), done)
	add("abort after the model", answers{"after_llm": `{"action":"abort_turn","reason":"such words"}`}, says("I try it.", bash("echo no >tool")), done)
	add("change the tool call", answers{
		"before_tool": `{"action":"modify","call":{"tool":"write_file","arguments":{"path":"changed","content":"x"}},"jump_to":"review"}`,
	}, says("I try it.", bash("echo no >tool")), done)
	add("answer for the tool", answers{"before_tool": `{"action":"respond","result":{"content":"as if","is_error":false}}`},
		says("I try it.", bash("echo no >tool")), done)
	add("deny the tool call", answers{"before_tool": `{"action":"deny","reason":"not this one"}`}, says("I try it.", bash("echo no >tool")), done)
	add("ask where nobody is", answers{"before_tool": `{"action":"ask","reason":"a person should see it"}`}, says("I try it.", bash("echo no >tool")), done)
	add("abort between two tool calls", answers{"before_tool": `{"action":"abort_turn","reason":"enough"}`},
		says("I try both.", bash("echo no >tool"), bash("echo no >tool")), done)
	add("change the result", answers{"after_tool": `{"action":"modify","result":{"content":"short"}}`}, says("I try it.", bash("echo a long result")), done)
	add("withhold the result", answers{"after_tool": `{"action":"abort_turn","reason":"it is secret"}`}, says("I try it.", bash("echo secret")), done)
	add("another round", answers{"stop 1": `{"action":"inject","inject":{"role":"user","content":"Are you sure?"}}`}, says("Done?"), says("Yes."))
	add("abort at the stop", answers{"stop": `{"action":"abort_turn","reason":"not like this"}`}, done)
	add("change the output", answers{"output": `{"action":"modify","output":{"content":"Done, Sir."}}`}, done)
	add("deny the output", answers{"output": `{"action":"deny","reason":"not for you"}`}, done)
	add("end it all", answers{"before_tool": `{"action":"hard_abort","reason":"stop everything"}`}, says("I try it.", bash("echo no >tool")), done)
	add("this is not reached", nil, done)

	folder := t.TempDir()
	d := startDaemon(t, map[string]any{"verbs": scriptedHook(t, 0, rules)})
	var transcript bytes.Buffer
	require.NoError(t, run(t.Context(), options{script: writeScript(t, turns...), folder: folder, socket: d.socket, patience: patience}, &transcript))
	out := transcript.String()
	golden(t, "verbs.golden", out)
	require.NoFileExists(t, filepath.Join(folder, "tool"))
	require.FileExists(t, filepath.Join(folder, "changed"))
	require.NotContains(t, out, "not reached")
	require.NotContains(t, out, `secret\n`)
	events := func() string {
		text, err := os.ReadFile(d.events)
		require.NoError(t, err)
		return string(text)
	}
	require.Eventually(t, func() bool { return strings.Contains(events(), `"kind":"session_end"`) }, patience, 10*time.Millisecond)
	require.Contains(t, events(), `"payload":{"reason":"user_message: no small talk","status":"aborted"}`)
}

// TestAbort: the short agents know the verbs that end a turn or the session.
func TestAbort(t *testing.T) {
	d := startDaemon(t, map[string]any{"verbs": scriptedHook(t, 0, []rule{
		{"before_tool", []string{"touch first"}, json.RawMessage(`{"action":"abort_turn","reason":"enough"}`)},
		{"before_tool", []string{"touch third"}, json.RawMessage(`{"action":"respond","result":{"content":"as if","is_error":false},"add_context":"it was not run"}`)},
		{"after_tool", []string{"touch fourth"}, json.RawMessage(`{"action":"hard_abort","reason":"stop everything"}`)},
	})})
	file := writeScript(t,
		turn{"one", []response{says("I try both.", bash("touch first"), bash("touch second"))}},
		turn{"two", []response{says("I try three.", bash("touch third"), bash("touch fourth"), bash("touch fifth"))}},
		turn{"three", []response{says("And more.", bash("touch sixth"))}},
	)
	for _, agent := range examples(t) {
		t.Run(agent.name, func(t *testing.T) {
			folder := t.TempDir()
			out, err := agent.run(t, options{script: file, folder: folder, socket: d.socket, patience: patience})
			require.NoError(t, err, out)
			require.Equal(t, []string{
				`call bash {"command":"touch first"}`, `not run bash`, `result {"content":"enough","is_error":true}`,
				`call bash {"command":"touch third"}`, `not run bash`, `result {"content":"as if","is_error":false}`,
				`call bash {"command":"touch fourth"}`, `ran bash {"command":"touch fourth"}`, `result {"content":"stop everything","is_error":true}`,
			}, toolLines(out))
			require.Contains(t, out, "it was not run")
			files, err := os.ReadDir(folder)
			require.NoError(t, err)
			require.Len(t, files, 1)
		})
	}
}

// TestHookdDies kills hookd while a tool runs: nothing runs any more, and
// nobody sees the result of what ran last.
func TestHookdDies(t *testing.T) {
	for _, agent := range examples(t) {
		t.Run(agent.name, func(t *testing.T) {
			t.Parallel()
			d := startDaemon(t, map[string]any{})
			folder := t.TempDir()
			kill := fmt.Sprintf("echo the last words; kill -9 %d; while kill -0 %[1]d 2>/dev/null; do sleep 0.05; done", d.pid)
			file := writeScript(t,
				turn{"one", []response{says("I begin.", writeFile("before", "x"), bash(kill), writeFile("after", "x")), says("I go on.", bash("touch later"))}},
				turn{"two", []response{says("I try again.", bash("touch later"))}},
			)
			out, err := agent.run(t, options{script: file, folder: folder, socket: d.socket, patience: patience, redial: -1})
			require.NoError(t, err, out)
			files, err := os.ReadDir(folder)
			require.NoError(t, err)
			require.Len(t, files, 1, out)
			require.Equal(t, "before", files[0].Name())
			lines := toolLines(out)
			require.Equal(t, "not run write_file", lines[7], out)
			require.NotContains(t, strings.Join(lines, "\n"), "the last words\\n")
			require.Contains(t, lines[5], "hookd gave no verdict")
		})
	}
}

// TestNoVerdict: whatever is not a readable yes is a no for the short agents.
// (For package client it is tested there.)
func TestNoVerdict(t *testing.T) {
	bad := []func(id string) string{
		failure,
		func(string) string { return failure("null") },
		func(string) string { return "yes\n" },
		func(string) string { return "\n" },
		func(id string) string { return strings.TrimSpace(result(id, goOn))[:20] + "\n" },
		func(string) string { return result("4711", goOn) },
		func(id string) string { return result(id, `null`) },
		func(id string) string { return result(id, `"continue"`) },
		func(id string) string { return result(id, `{"approval":{"approved":true}}`) },
		func(id string) string { return result(id, `{"action":"Continue","approval":{"approved":true}}`) },
		func(id string) string { return result(id, `{"action":"ask","approval":{"approved":true}}`) },
	}
	noApproval := []func(id string) string{
		func(id string) string { return result(id, `{"action":"continue"}`) },
		func(id string) string { return result(id, `{"action":"continue","approval":{"approved":false}}`) },
		func(id string) string { return result(id, `{"action":"allow","approval":{"approved":"true"}}`) },
		func(id string) string { return result(id, `{"action":"continue","approval":"true"}`) },
		func(id string) string { return result(id, `{"action":"continue","approval":null}`) },
	}
	for stage, answers := range map[string][]func(string) string{"before_tool": slices.Concat(bad, noApproval), "after_tool": bad} {
		var calls []toolCall
		for i := range answers {
			calls = append(calls, bash(fmt.Sprintf("echo secret; touch ran-%d", i)))
		}
		file := writeScript(t, turn{"one", []response{says("I try it.", calls...)}})
		asked := regexp.MustCompile(`ran-(\d+)`)
		socket := fakeHookd(t, func(method, id, params string) string {
			if method != "hook."+stage {
				return result(id, goOn)
			}
			i, _ := strconv.Atoi(asked.FindStringSubmatch(params)[1])
			return answers[i](id)
		})
		for _, agent := range examples(t)[1:] {
			t.Run(stage+"/"+agent.name, func(t *testing.T) {
				folder := t.TempDir()
				out, err := agent.run(t, options{script: file, folder: folder, socket: socket, patience: patience})
				require.NoError(t, err)
				ran, err := os.ReadDir(folder)
				require.NoError(t, err)
				if stage == "before_tool" {
					require.Empty(t, ran)
				} else {
					require.Len(t, ran, len(answers))
				}
				require.NotContains(t, out, `secret\n`)
				require.Equal(t, len(answers), strings.Count(out, `"is_error":true`), out)
			})
		}
	}
}

// TestNoAnswer: after an answer stayed out nothing runs any more.
func TestNoAnswer(t *testing.T) {
	file := writeScript(t, turn{"one", []response{says("I try it.", bash("echo secret; touch first"), bash("touch second"))}})
	for name, answer := range map[string]string{"silence": "", "end of file": hangUp} {
		for _, stage := range []string{"before_tool", "after_tool"} {
			for _, agent := range examples(t)[1:] {
				t.Run(name+"/"+stage+"/"+agent.name, func(t *testing.T) {
					t.Parallel()
					socket := fakeHookd(t, func(method, id, params string) string {
						if method == "hook."+stage && strings.Contains(params, "first") {
							return answer
						}
						return result(id, goOn)
					})
					folder := t.TempDir()
					out, err := agent.run(t, options{script: file, folder: folder, socket: socket, patience: time.Second})
					require.NoError(t, err)
					require.NoFileExists(t, filepath.Join(folder, "second"))
					require.NotContains(t, out, `secret\n`)
					require.Equal(t, 2, strings.Count(out, `"is_error":true`), out)
					if stage == "before_tool" {
						require.NoFileExists(t, filepath.Join(folder, "first"))
					}
				})
			}
		}
	}
}

// TestNoHookd: without hookd there is no agent.
func TestNoHookd(t *testing.T) {
	file := writeScript(t, turn{"one", []response{says("I try it.", bash("touch ran"))}})
	for _, agent := range examples(t) {
		t.Run(agent.name, func(t *testing.T) {
			folder := t.TempDir()
			for name, socket := range map[string]string{
				"nobody listens": filepath.Join(folder, "no-such-socket"),
				"not welcome":    fakeHookd(t, func(_, id, _ string) string { return failure(id) }),
				"hangs up":       fakeHookd(t, func(string, string, string) string { return hangUp }),
			} {
				out, err := agent.run(t, options{script: file, folder: folder, socket: socket, patience: patience})
				require.Error(t, err, name)
				require.Empty(t, out)
			}
			files, err := os.ReadDir(folder)
			require.NoError(t, err)
			require.Empty(t, files)
		})
	}
}

// TestAnotherUsersSocket: the short agents look at whose socket it is. (That
// package client does is tested there.)
func TestAnotherUsersSocket(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a socket to another user")
	}
	socket := fakeHookd(t, func(_, id, _ string) string { return result(id, goOn) })
	require.NoError(t, os.Chown(socket, 12345, -1))
	file := writeScript(t)
	for _, agent := range examples(t)[1:] {
		out, err := agent.run(t, options{script: file, folder: t.TempDir(), socket: socket, patience: patience})
		require.ErrorContains(t, err, "belongs to another user", agent.name)
		require.Empty(t, out)
	}
}

// TestSocketSearch: without a name, all look at the same place.
func TestSocketSearch(t *testing.T) {
	socket := fakeHookd(t, func(_, id, _ string) string {
		return result(id, goOn)
	})
	file := writeScript(t)
	agents := examples(t)
	for _, named := range []string{"XDG_RUNTIME_DIR", "XDG_STATE_HOME", "HOME"} {
		t.Run(named, func(t *testing.T) {
			dir := shortDir(t)
			t.Setenv("XDG_RUNTIME_DIR", filepath.Join(dir, "missing"))
			t.Setenv("XDG_STATE_HOME", "")
			t.Setenv(named, dir)
			place := client.SocketPath("", func(name string) string {
				if name == "HOOKD_SOCKET" {
					return ""
				}
				return os.Getenv(name)
			})
			if !strings.HasPrefix(place, dir) {
				t.Skipf("this machine has a runtime folder, so hookd is at %s", place)
			}
			require.NoError(t, os.MkdirAll(filepath.Dir(place), 0o700))
			require.NoError(t, os.Symlink(socket, place))
			for _, agent := range agents {
				_, err := agent.run(t, options{script: file, folder: t.TempDir(), patience: patience})
				require.NoError(t, err, agent.name)
			}
		})
	}
}

// TestReadme: the lines that ../README.md shows are those that are printed.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	printed, err := os.ReadFile("testdata/session.golden")
	require.NoError(t, err)
	_, shown, _ := strings.Cut(string(readme), "some of its lines:\n\n```\n")
	shown, _, _ = strings.Cut(shown, "```\n")
	require.NotEmpty(t, shown)
	for line := range strings.Lines(shown) {
		require.Contains(t, string(printed), line)
	}
}

func TestTheShortAgentsStayShort(t *testing.T) {
	for _, name := range []string{"agent.py", "agent.ts"} {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Less(t, bytes.Count(text, []byte("\n")), 100, name)
	}
}
