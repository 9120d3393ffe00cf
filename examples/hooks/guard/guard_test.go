package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hookd/hookd/hook/hooktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answer is what the program says to one line.
type answer struct {
	ID     int `json:"id"`
	Result struct {
		OK     *bool  `json:"ok"`
		Action string `json:"action"`
		Reason string `json:"reason"`
	} `json:"result"`
}

// build makes the program as a user would.
func build(t *testing.T) string {
	program := filepath.Join(t.TempDir(), "guard")
	out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

// run starts the program, sends it calls of a method after a greeting, and
// returns its answers; that to the greeting is the first.
func run(t *testing.T, program, config, method string, params ...string) []answer {
	t.Helper()
	var in, stderr bytes.Buffer
	line := func(id int, method, params string) {
		fmt.Fprintf(&in, `{"jsonrpc":"2.0","id":%d,"method":"hook.%s","params":%s}`+"\n", id, method, params)
	}
	line(0, "hello", `{"name":"guard","version":1,"stages":["before_tool","after_tool"],"config":`+config+`}`)
	for i, p := range params {
		line(i+1, method, p)
	}
	cmd := exec.Command(program)
	cmd.Stdin, cmd.Stderr = &in, &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s", &stderr)
	require.Empty(t, stderr.String())
	answers := make([]answer, len(params)+1)
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		var a answer
		require.NoError(t, json.Unmarshal(lines.Bytes(), &a), "%s", lines.Bytes())
		answers[a.ID] = a
	}
	return answers
}

// tree makes a working folder "work" with links into and out of it.
func tree(t *testing.T) string {
	top, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for _, dir := range []string{"work/src/deeper", "work/.git", "work/gitdir", "work/moved", "work/.github/workflows", "outside/sub", "allowed"} {
		require.NoError(t, os.MkdirAll(filepath.Join(top, dir), 0o755))
	}
	for _, file := range []string{"work/src/main.go", "outside/secret"} {
		require.NoError(t, os.WriteFile(filepath.Join(top, file), nil, 0o644))
	}
	for link, to := range map[string]string{
		"work/in": "src", "work/out": "../outside", "work/sub": "../outside/sub", "work/nowhere": "../outside/new",
		"work/history": ".git", "work/moved/.git": "../gitdir", "work/deep": "src/deeper", "work/loop": "loop", "also-work": "work",
	} {
		require.NoError(t, os.Symlink(to, filepath.Join(top, link)))
	}
	return top
}

func TestProgram(t *testing.T) {
	program := build(t)
	t.Run("calls", func(t *testing.T) { testCalls(t, program) })
	t.Run("config and results", func(t *testing.T) { testConfigAndResults(t, program) })
}

func testCalls(t *testing.T, program string) {
	top := tree(t)
	work := filepath.Join(top, "work")
	const pass, ask, deny = "continue", "ask", "deny_tool"
	cases := []struct {
		name, arguments, want string
		more                  string // params beside tool, arguments and meta.cwd
	}{
		{name: "no path", arguments: `{"command":"cat /etc/passwd"}`, want: pass},
		{name: "a relative path", arguments: `{"path":"src/main.go"}`, want: pass},
		{name: "an absolute path", arguments: `{"file_path":"TOP/work/src/main.go"}`, want: pass},
		{name: "the folder itself", arguments: `{"path":"TOP/work/"}`, want: pass},
		{name: "new files in new folders", arguments: `{"filePath":"new/er/file.txt"}`, want: pass},
		{name: "up and down again", arguments: `{"path":"src/../src/main.go"}`, want: pass},
		{name: "a link that stays inside", arguments: `{"path":"in/main.go"}`, want: pass},
		{name: "a name that looks odd", arguments: `{"path":"..src/...;a\u0020b"}`, want: pass},
		{name: "the folder under another name", arguments: `{"path":"TOP/also-work/src"}`, want: pass},
		{name: "an allowed folder", arguments: `{"path":"TOP/allowed/new.txt"}`, want: pass},
		{name: "text that mentions a path", arguments: `{"path":"a.md","content":"/etc/passwd","edits":[{"new_source":"../x"}]}`, want: pass},

		{name: "an absolute path elsewhere", arguments: `{"path":"/etc/passwd"}`, want: deny},
		{name: "a neighbour with the same beginning", arguments: `{"path":"TOP/work-2/x"}`, want: deny},
		{name: "up", arguments: `{"path":"../outside/secret"}`, want: deny},
		{name: "up behind a new folder", arguments: `{"path":"new/../../outside/secret"}`, want: deny},
		{name: "to the top and on", arguments: `{"path":"../../../../../../../../../../etc/passwd"}`, want: deny},
		{name: "a link out", arguments: `{"path":"out/secret"}`, want: deny},
		{name: "a new file behind a link out", arguments: `{"path":"out/new/file"}`, want: deny},
		{name: "up behind a link", arguments: `{"path":"sub/../secret"}`, want: deny},
		{name: "up behind a link, back as it is written", arguments: `{"path":"sub/../src/main.go"}`, want: deny},
		{name: "up behind a link, out as it is written", arguments: `{"path":"deep/../../secret"}`, want: deny},
		{name: "a link to nowhere", arguments: `{"path":"nowhere"}`, want: deny},
		{name: "a link in a circle", arguments: `{"path":"loop/x"}`, want: deny},
		{name: "home", arguments: `{"path":"~/.ssh/id_rsa"}`, want: deny},
		{name: "somebody's home", arguments: `{"directory":"~root"}`, want: deny},
		{name: "an address", arguments: `{"uri":"file:///etc/passwd"}`, want: deny},
		{name: "an encoded address", arguments: `{"url":"FILE://TOP/work/%2e%2e/x"}`, want: deny},
		{name: "a zero byte", arguments: `{"path":"src\u0000/../../x"}`, want: deny},
		{name: "one of several", arguments: `{"paths":["src","/etc/passwd"]}`, want: deny},
		{name: "deep inside", arguments: `{"edits":[{"old":"a"},{"notebook_path":"/etc/passwd"}]}`, want: deny},
		{name: "source and destination", arguments: `{"source":"src/main.go","destination":"/tmp/x"}`, want: deny},
		{name: "escaped names and values", arguments: `{"p\u0061th":"\u002fetc\u002fpasswd"}`, want: deny},
		{name: "reading elsewhere", arguments: `{"path":"/etc/passwd"}`, more: `,"read_only":true`, want: deny},
		{name: "ask and deny", arguments: `{"path":".git/config","file":"/etc/passwd"}`, want: deny},

		{name: "git's files", arguments: `{"path":".git/hooks/pre-commit"}`, want: ask},
		{name: "git's files by another case", arguments: `{"path":"TOP/work/.GIT"}`, want: ask},
		{name: "git's files through a link", arguments: `{"path":"history/config"}`, want: ask},
		{name: "git's files that lie elsewhere", arguments: `{"path":"moved/.git/config"}`, want: ask},
		{name: "the git folder below", arguments: `{"path":"vendor/x/.git/config"}`, want: ask},
		{name: "CI", arguments: `{"path":".github/workflows/ci.yml"}`, want: ask},
		{name: "other CI", arguments: `{"path":"Jenkinsfile"}`, want: ask},
		{name: "reading git's files", arguments: `{"path":".git/config"}`, more: `,"read_only":true`, want: pass},
		{name: "what only begins like it", arguments: `{"path":".gitignore","file":".github/CODEOWNERS"}`, want: pass},
		{name: "no working folder", arguments: `{"path":"src"}`, more: `,"meta":{}`, want: ask},
		{name: "no working folder and no path", arguments: `{"text":"x"}`, more: `,"meta":{}`, want: pass},
		{name: "a relative working folder", arguments: `{"path":"src"}`, more: `,"meta":{"cwd":"work"}`, want: ask},
	}
	var params []string
	for _, c := range cases {
		if !strings.Contains(c.more, "meta") {
			c.more += fmt.Sprintf(`,"meta":{"cwd":%q}`, work)
		}
		params = append(params, strings.ReplaceAll(`{"tool":"edit","arguments":`+c.arguments+c.more+`}`, "TOP", top))
	}
	answers := run(t, program, fmt.Sprintf(`{"allow":[%q]}`, filepath.Join(top, "allowed")), "before_tool", params...)
	require.True(t, *answers[0].Result.OK)
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := answers[i+1].Result
			require.Equal(t, c.want, got.Action, "%s: %s", params[i], got.Reason)
			require.Equal(t, c.want != pass, got.Reason != "")
		})
	}
}

func testConfigAndResults(t *testing.T, program string) {
	for _, config := range []string{`{"alow":["/tmp"]}`, `{"allow":"/tmp"}`, `[]`} {
		got := run(t, program, config, "before_tool")[0].Result
		require.False(t, *got.OK, config)
		require.NotEmpty(t, got.Reason, config)
	}
	got := run(t, program, "null", "after_tool", `{"tool":"edit","arguments":{"path":"/etc/passwd"},"result":{"content":"x"}}`)
	require.True(t, *got[0].Result.OK)
	require.Equal(t, "continue", got[1].Result.Action)
}

func TestPromises(t *testing.T) { hooktest.Check(t, &guard{}) }
