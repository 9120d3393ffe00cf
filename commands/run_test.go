package commands

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// TestPayload: a script sees Claude Code's words, whoever the agent is, and its
// answer goes back in the agent's.
func TestPayload(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		event  string
		stage  protocol.Stage
		params string
		want   string
	}{
		"another agent's tool": {
			"PreToolUse", protocol.StageBeforeTool,
			`{"tool":"run_command","arguments":{"CommandLine":"ls","n":9007199254740993},"call_id":"c","meta":{"session_id":"s","cwd":"/","agent":"windsurf","native":{"agent":"windsurf","event":"pre_run_command","payload":{"x":1}}}}`,
			`{"session_id":"s","transcript_path":"","cwd":"/","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls","n":9007199254740993},"tool_use_id":"c"}`,
		},
		"its own words, with the call as it is now": {
			"PreToolUse", protocol.StageBeforeTool,
			`{"tool":"Bash","arguments":{"command":"changed"},"meta":{"session_id":"s","native":{"agent":"claude","event":"PreToolUse","payload":{"session_id":"s","permission_mode":"plan","tool_name":"Bash","tool_input":{"command":"first"},"more":[1]}}}}`,
			`{"session_id":"s","permission_mode":"plan","tool_name":"Bash","tool_input":{"command":"changed"},"more":[1],"transcript_path":"","cwd":"","hook_event_name":"PreToolUse"}`,
		},
		"a prompt": {
			"UserPromptSubmit", protocol.StageUserMessage, `{"message":{"role":"user","content":[{"type":"text","text":"hi"}]}}`,
			`{"session_id":"","transcript_path":"","cwd":"","hook_event_name":"UserPromptSubmit","prompt":"hi"}`,
		},
		"a result": {
			"PostToolUse", protocol.StageAfterTool, `{"tool":"read_file","arguments":{"path":"/a"},"result":{"content":"x","is_error":false},"duration_ms":7}`,
			`{"session_id":"","transcript_path":"","cwd":"","hook_event_name":"PostToolUse","tool_name":"Read","tool_input":{"file_path":"/a"},"duration_ms":7,"tool_response":{"content":"x","is_error":false}}`,
		},
		"a failure": {
			"PostToolUseFailure", protocol.StageAfterTool, `{"tool":"Bash","arguments":{},"result":{"content":"boom","is_error":true}}`,
			`{"session_id":"","transcript_path":"","cwd":"","hook_event_name":"PostToolUseFailure","tool_name":"Bash","tool_input":{},"error":"boom"}`,
		},
		"the end": {
			"Stop", protocol.StageStop, `{"request":{"reason":"done","last_message":"bye"}}`,
			`{"session_id":"","transcript_path":"","cwd":"","hook_event_name":"Stop","stop_hook_active":false,"last_assistant_message":"bye"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
			reg := only(t, oneCommand(t, c.event, "cat > "+quoted(out)), newRunner(t, 0))
			req := asked(t, c.stage, c.params)
			require.True(t, reg.If.Holds(req))
			_, err := reg.Roles.Interceptor.Intercept(t.Context(), req)
			require.NoError(t, err)
			got, err := os.ReadFile(out)
			require.NoError(t, err)
			require.JSONEq(t, c.want, string(got))
			require.Contains(t, string(got)+c.want, "", "digits are compared below")
			if strings.Contains(c.want, "9007199254740993") {
				require.Contains(t, string(got), "9007199254740993")
			}
		})
	}
}

func TestAnswerGoesBackInTheAgentsWords(t *testing.T) {
	reg := only(t, oneCommand(t, "PreToolUse", `echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"command":"ls -l"}}}'`), newRunner(t, 0))
	d, err := reg.Roles.Interceptor.Intercept(t.Context(), asked(t, protocol.StageBeforeTool, `{"tool":"run_command","arguments":{"CommandLine":"ls","Cwd":"/"}}`))
	require.NoError(t, err)
	change, err := protocol.ParseObject(d.Subject)
	require.NoError(t, err)
	args, err := protocol.ParseObject(change.Get("arguments"))
	require.NoError(t, err)
	require.Equal(t, `"ls -l"`, string(args.Get("CommandLine")))
}

func TestEnvironmentAndFolder(t *testing.T) {
	t.Setenv("SECRET_TOKEN", "hunter2")
	project := t.TempDir()
	out := filepath.Join(t.TempDir(), "env")
	run := newRunner(t, 0)
	req := asked(t, protocol.StageBeforeTool, `{"tool":"Bash","arguments":{},"meta":{"session_id":"s","cwd":`+string(protocol.Quote(project))+`}}`)
	claude := oneCommand(t, "PreToolUse", "(pwd; env; echo ~) > "+quoted(out))
	_, err := only(t, claude, run).Roles.Interceptor.Intercept(t.Context(), req)
	require.NoError(t, err)
	text := read1(t, out)
	real, err := filepath.EvalSymlinks(project)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(text, real+"\n"), text)
	require.Contains(t, text, "CLAUDE_PROJECT_DIR="+project+"\n")
	require.NotContains(t, text, "hunter2")

	own := ownCommand(t, "PreToolUse", "pwd > "+quoted(out), "")
	_, err = only(t, own, run).Roles.Interceptor.Intercept(t.Context(), req)
	require.NoError(t, err)
	folder, err := filepath.EvalSymlinks(own.Folder())
	require.NoError(t, err)
	require.Equal(t, folder+"\n", read1(t, out))

	exact := parsed(t, `{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"sh","args":["-c","echo $0 > `+out+`","${CLAUDE_PROJECT_DIR}/a b"]}]}]}}`)
	_, err = only(t, exact, run).Roles.Interceptor.Intercept(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, project+"/a b\n", read1(t, out))
}

// TestProjectFolder: scripts are told the root of the project, not where in it
// the session works.
func TestProjectFolder(t *testing.T) {
	top := t.TempDir()
	home := filepath.Join(top, "home")
	for _, dir := range []string{"home/.claude", "home/a/.git", "home/a/src/deep", "home/a/sub/.hookd", "home/a/sub/x", "home/plain/x", "home/c/.claude", "home/c/x", ".git", "other/x", "other/.git"} {
		require.NoError(t, os.MkdirAll(filepath.Join(top, dir), 0o700))
	}
	require.NoError(t, os.MkdirAll(filepath.Join(home, "tree", "x"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(home, "tree", ".git"), []byte("gitdir: /elsewhere\n"), 0o600)) // a worktree
	run := NewRunner(RunnerOptions{Getenv: func(name string) string { return map[string]string{"HOME": home}[name] }})
	file := &File{Path: filepath.Join(top, "hooks", "hooks.json")}
	for cwd, want := range map[string]string{
		"home/a/src/deep": "home/a",
		"home/a":          "home/a",
		"home/a/sub/x":    "home/a/sub",
		"home/c/x":        "home/c",
		"home/tree/x":     "home/tree",
		"home/plain/x":    "home/plain/x", // what lies in the home folder is the user's, and above it nothing counts
		"home":            "home",
		"other/x":         "other",
		"home/a/gone":     "home/a",
	} {
		cwd := filepath.Join(top, cwd)
		o := ofRequest(asked(t, protocol.StageBeforeTool, `{"tool":"Bash","arguments":{},"meta":{"cwd":`+string(protocol.Quote(cwd))+`}}`))
		require.Equal(t, filepath.Join(top, want), run.project(file, o), cwd)
		require.Equal(t, filepath.Join(top, want), run.environ(file, o)["CLAUDE_PROJECT_DIR"], cwd)
	}
	for _, cwd := range []string{"", "relative/x"} {
		o := ofRequest(asked(t, protocol.StageBeforeTool, `{"tool":"Bash","arguments":{},"meta":{"cwd":"`+cwd+`"}}`))
		require.Equal(t, cwd, run.project(file, o))
	}

	// The scripts of a project are those that were trusted with its file.
	inside := &File{Path: filepath.Join(home, "a", ".hookd", "hooks.json"), inProject: true}
	o := ofRequest(asked(t, protocol.StageBeforeTool, `{"tool":"Bash","arguments":{},"meta":{"cwd":`+string(protocol.Quote(filepath.Join(home, "a", "sub", "x")))+`}}`))
	require.Equal(t, filepath.Join(home, "a"), run.project(inside, o))
}

func read1(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

func outcome(err error) protocol.Outcome {
	if f, ok := errors.AsType[*hook.Failure](err); ok {
		return f.Outcome
	}
	return ""
}

func TestFailures(t *testing.T) {
	run := newRunner(t, 0)
	intercept := func(f *File) (protocol.Decision, error) {
		return only(t, f, run).Roles.Interceptor.Intercept(t.Context(), asked(t, protocol.StageBeforeTool, bash))
	}
	t.Run("a script that is not there is no verdict", func(t *testing.T) {
		// The interpreter would end with 2.
		_, err := intercept(oneCommand(t, "PreToolUse", "python3 /no/such/script.py"))
		require.Equal(t, protocol.OutcomeSpawnFailed, outcome(err))
		_, err = intercept(ownCommand(t, "PreToolUse", "python3 missing.py", ""))
		require.Equal(t, protocol.OutcomeSpawnFailed, outcome(err))
	})
	t.Run("timeout ends the whole group", func(t *testing.T) {
		mark := filepath.Join(t.TempDir(), "mark")
		f := parsed(t, `{"version":1,"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"(sleep 30; touch `+mark+`) & sleep 30","timeout":0.2}]}]}}`)
		start := time.Now()
		_, err := intercept(f)
		require.Equal(t, protocol.OutcomeTimeout, outcome(err))
		require.Less(t, time.Since(start), enough)
	})
	t.Run("a grandchild that holds the output", func(t *testing.T) {
		d, err := intercept(oneCommand(t, "PreToolUse", `sleep 30 & echo '{"decision":"block","reason":"R"}'`))
		require.NoError(t, err)
		require.Equal(t, protocol.ActionDeny, d.Action)
	})
	t.Run("too much output", func(t *testing.T) {
		_, err := intercept(oneCommand(t, "PreToolUse", "head -c 2000000 /dev/zero | tr '\\0' x"))
		require.Equal(t, protocol.OutcomeOversize, outcome(err))
	})
	t.Run("a payload larger than a pipe that nobody reads", func(t *testing.T) {
		reg := only(t, oneCommand(t, "PreToolUse", `echo no >&2; exit 2`), run)
		d, err := reg.Roles.Interceptor.Intercept(t.Context(), asked(t, protocol.StageBeforeTool, `{"tool":"Bash","arguments":{"command":"`+strings.Repeat("x", 1<<20)+`"}}`))
		require.NoError(t, err)
		require.Equal(t, protocol.ActionDeny, d.Action)
	})
	t.Run("the caller goes away", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		time.AfterFunc(50*time.Millisecond, func() { cancel(gone) })
		_, err := only(t, oneCommand(t, "PreToolUse", "sleep 30"), run).Roles.Interceptor.Intercept(ctx, asked(t, protocol.StageBeforeTool, bash))
		require.ErrorIs(t, err, gone)
	})
	t.Run("a warning for the user", func(t *testing.T) {
		f := parsed(t, `{"version":1,"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"exit 9","on_error":"warn"}]}]}}`)
		_, err := intercept(f)
		failure, ok := errors.AsType[*hook.Failure](err)
		require.True(t, ok)
		require.NotEmpty(t, failure.Warning)
	})
	t.Run("a dry run runs nothing", func(t *testing.T) {
		req := asked(t, protocol.StageBeforeTool, bash)
		req.DryRun = true
		d, err := only(t, oneCommand(t, "PreToolUse", "exit 2"), run).Roles.Interceptor.Intercept(t.Context(), req)
		require.NoError(t, err)
		require.Equal(t, protocol.ActionContinue, d.Decided())
		require.Len(t, d.Warnings, 1)
	})
}

func TestNoFreeSlot(t *testing.T) {
	run := newRunner(t, 1)
	dir := t.TempDir()
	slow := only(t, oneCommand(t, "PreToolUse", "touch "+quoted(dir+"/on")+"; sleep 30"), run)
	ctx, cancel := context.WithCancel(t.Context())
	var busy sync.WaitGroup
	busy.Go(func() { _, _ = slow.Roles.Interceptor.Intercept(ctx, asked(t, protocol.StageBeforeTool, bash)) })
	require.Eventually(t, func() bool { _, err := os.Stat(dir + "/on"); return err == nil }, enough, 5*time.Millisecond)
	quick := only(t, parsed(t, `{"version":1,"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"true","timeout":0.1}]}]}}`), run)
	_, err := quick.Roles.Interceptor.Intercept(t.Context(), asked(t, protocol.StageBeforeTool, bash))
	require.Equal(t, protocol.OutcomeOverloaded, outcome(err))
	cancel()
	busy.Wait()
}

func TestMaxRepeats(t *testing.T) {
	reg := only(t, ownCommand(t, "PreToolUse", `echo '{"addContext":"C"}'`, `,"max_repeats":2`), newRunner(t, 0))
	for i := range 4 {
		d, err := reg.Roles.Interceptor.Intercept(t.Context(), asked(t, protocol.StageBeforeTool, bash))
		require.NoError(t, err)
		if i < 2 {
			require.Equal(t, []string{"C"}, d.AddContext)
			continue
		}
		require.Empty(t, d.AddContext)
		require.Contains(t, d.Warnings[0], "max_repeats")
	}
	other, err := reg.Roles.Interceptor.Intercept(t.Context(), asked(t, protocol.StageBeforeTool, strings.Replace(bash, `"session_id":"s"`, `"session_id":"t"`, 1)))
	require.NoError(t, err)
	require.Equal(t, []string{"C"}, other.AddContext, "another session counts for itself")
}

// TestMaxRepeatsWithoutASession: an agent that names no session is stopped from
// going round for ever, too.
func TestMaxRepeatsWithoutASession(t *testing.T) {
	reg := only(t, ownCommand(t, "Stop", `echo go on >&2; exit 2`, `,"max_repeats":2`), newRunner(t, 0))
	ask := func(agent, cwd string) protocol.Action {
		d, err := reg.Roles.Interceptor.Intercept(t.Context(), asked(t, protocol.StageStop, `{"request":{},"meta":{"agent":"`+agent+`","cwd":"`+cwd+`"}}`))
		require.NoError(t, err)
		return d.Decided()
	}
	for i := range 4 {
		want := protocol.ActionInject
		if i >= 2 {
			want = protocol.ActionContinue
		}
		require.Equal(t, want, ask("a", "/"), i)
	}
	require.Equal(t, protocol.ActionInject, ask("b", "/"), "another agent counts for itself")
	require.Equal(t, protocol.ActionInject, ask("a", "/tmp"), "and another folder")
}

func TestHTTP(t *testing.T) {
	answer, status := `{"decision":"block","reason":"R"}`, 200
	var seen jsontext.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, r.ContentLength)
		_, _ = r.Body.Read(body)
		seen = body
		if r.Header.Get("X-Key") != "k-" {
			status = 500
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(answer))
	}))
	defer server.Close()
	run := newRunner(t, 0)
	defer run.o.HTTP.CloseIdleConnections()
	f := parsed(t, `{"hooks":{"PreToolUse":[{"hooks":[{"type":"http","url":"`+server.URL+`","headers":{"X-Key":"k-$NOT_ALLOWED"}}]}]}}`)
	intercept := func() (protocol.Decision, error) {
		return only(t, f, run).Roles.Interceptor.Intercept(t.Context(), asked(t, protocol.StageBeforeTool, bash))
	}
	d, err := intercept()
	require.NoError(t, err)
	require.Equal(t, protocol.ActionDeny, d.Action)
	require.Contains(t, string(seen), `"tool_name":"Bash"`)
	answer = ""
	d, err = intercept()
	require.NoError(t, err)
	require.Equal(t, protocol.ActionContinue, d.Decided())
	for _, c := range []struct {
		status int
		answer string
	}{{403, `{"decision":"block"}`}, {302, ""}, {200, "text"}, {200, `{"decision":1}`}} {
		answer, status = c.answer, c.status
		_, err = intercept()
		require.Equal(t, protocol.OutcomeHookError, outcome(err), "%v", c)
	}
	server.Close()
	_, err = intercept()
	require.Equal(t, protocol.OutcomeHookError, outcome(err))
}
