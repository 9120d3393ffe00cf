// Package docs_test holds README.md, the pages beside it and those in docs to
// their word: their commands run and print what they show, what can be
// generated is, snippets can be read, and links lead somewhere.
package docs_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write anew what is generated in the docs")

// pages returns the docs by their path from the root of the repository, which
// is the working folder of all tests here.
func pages(t *testing.T) map[string]string {
	t.Chdir("..")
	found := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		paths, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, path := range paths {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			found[path] = string(text)
		}
	}
	require.NotEmpty(t, found)
	return found
}

// block is a fenced block of a page.
type block struct {
	line   int    // of its first line of text
	lang   string // what stands behind the fence
	text   string
	notRun bool // it bears <!-- not run: reason -->
}

var marker = regexp.MustCompile(`^<!-- not run: \S.* -->$`)

// blocks cuts the fenced blocks out of a page.
func blocks(page string) []block {
	var found []block
	var b *block
	above := ""
	for i, line := range strings.Split(page, "\n") {
		switch lang, fence := strings.CutPrefix(line, "```"); {
		case fence && b == nil:
			b = &block{line: i + 2, lang: lang, notRun: marker.MatchString(above)}
		case fence:
			found = append(found, *b)
			b = nil
		case b != nil:
			b.text += line + "\n"
		}
		if strings.TrimSpace(line) != "" {
			above = line
		}
	}
	return found
}

// step is what is run at once.
type step struct {
	line   int
	code   string
	output string // "" is not compared
	strict bool   // every command in it must succeed
}

// steps reads what a page tells to type, as CONTRIBUTING.md explains it.
func steps(page string) []step {
	var found []step
	for _, b := range blocks(page) {
		switch {
		case b.notRun:
		case b.lang == "sh":
			found = append(found, step{line: b.line, code: b.text, strict: true})
		case b.lang == "output" && len(found) > 0:
			found[len(found)-1].output += b.text
		case b.lang == "console":
			found = append(found, terminal(b)...)
		}
	}
	return found
}

// terminal reads a block that shows a terminal.
func terminal(b block) []step {
	var found []step
	for i, line := range strings.SplitAfter(b.text, "\n") {
		command, begins := strings.CutPrefix(line, "$ ")
		more, goesOn := strings.CutPrefix(line, "> ")
		switch last := len(found) - 1; {
		case begins:
			found = append(found, step{line: b.line + i, code: command})
		case last < 0:
		case goesOn && found[last].output == "":
			found[last].code += more
		default:
			found[last].output += line
		}
	}
	for i := range found {
		found[i].strict = found[i].output == ""
	}
	return found
}

// TestCommands runs the commands of each page, in order and in one shell, in a
// folder that looks like a clone.
func TestCommands(t *testing.T) {
	all := pages(t)
	s := newShells(t)
	t.Run("pages", func(t *testing.T) {
		for path, page := range all {
			if list := steps(page); len(list) > 0 {
				t.Run(strings.ReplaceAll(path, "/", "-"), func(t *testing.T) {
					t.Parallel()
					for _, problem := range s.run(t, list) {
						t.Errorf("%s:%s", path, problem)
					}
				})
			}
		}
	})
}

// TestMistakesShow keeps TestCommands from seeing nothing.
func TestMistakesShow(t *testing.T) {
	t.Chdir("..")
	page := func(blocks ...string) string { return "```" + strings.Join(blocks, "```\n```") + "```\n" }
	s := newShells(t)
	for text, want := range map[string][]string{
		page("sh\ncd /\n", "console\n$ pwd\n/\n$ echo \"a  b\" >&2; false\na …\n$ echo $?\n1\n"): nil,
		page("sh\nseq 3\n", "output\n1\n…\n3\n"):                                                 nil,
		page("console\n$ cat <<END\n> x\n> END\nx\n$ hookd version\n"):                           nil,
		"<!-- not run: it can't -->\n" + page("sh\nfalse\n"):                                     nil,
		page("sh\nfalse\ntrue\n"):                                                                {"2: false\ntrue\nfailed: false\n"},
		page("console\n$ echo a\nb\n"):                                                           {"2: echo a\n--- it shows\nb\n--- it printed\na\n"},
		page("console\n$ echo a\nab\n$ true\n"):                                                  {"2: echo a\n--- it shows\nab\n--- it printed\na\n"},
		page("console\n$ false\n"):                                                               {"2: false\nfailed: false\n"},
		page("sh\nexit\n", "console\n$ echo a\n"):                                                {"5: did not run"},
		page("console\n$ go run ./cmd/hookd pong\n"):                                             {"2: go run ./cmd/hookd pong\nfailed: hookd \"$@\"\n"},
	} {
		problems := s.run(t, steps(text))
		require.Len(t, problems, len(want), "%s: %s", text, problems)
		for i := range want {
			require.Contains(t, problems[i], want[i], text)
		}
	}
}

// shells run steps.
type shells struct{ repo, bin string }

// newShells builds hookd. The working folder is the repository.
func newShells(t *testing.T) *shells {
	for _, tool := range []string{"bash", "go", "python3", "node"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the docs use %s, which is not installed here", tool)
		}
	}
	repo, err := os.Getwd()
	require.NoError(t, err)
	s := &shells{repo: repo, bin: t.TempDir()}
	out, err := exec.Command("go", "build", "-o", s.bin, "./cmd/hookd").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return s
}

// prelude stands before the steps. Builds of hookd itself use the binary that
// is there already, and "go test ./..." is what runs just now. Where a page
// names the clone, Go gets the repository, whose packages it has compiled.
const prelude = `
go() {
	case "$*" in
	"run ./cmd/hookd"*) shift 2; hookd "$@" ;;
	"build ./cmd/hookd") cp "$DOCS_BIN/hookd" hookd ;;
	"install ./cmd/hookd" | "test ./...") ;;
	*) command go "${@/#$DOCS_CLONE/$DOCS_REPO}" ;;
	esac
}
set -E
`

// patience is how long the steps of a page may take, also when Go has compiled
// nothing yet.
const patience = 2 * time.Minute

// run runs steps in one shell and returns what went wrong, each with its line.
func (s *shells) run(t *testing.T, list []step) (problems []string) {
	home, err := os.MkdirTemp("/tmp", "hookd") // a socket's path must be short
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(home)) })
	clone, notes := filepath.Join(home, "hookd"), filepath.Join(home, ".steps")
	s.cloneLike(t, clone)
	require.NoError(t, os.Mkdir(notes, 0o700))
	file := func(i int, kind string) string { return fmt.Sprintf("%s/%d.%s", notes, i, kind) }

	script := prelude
	for i, step := range list {
		code := step.code
		if step.strict {
			code = fmt.Sprintf("trap 'echo failed: $BASH_COMMAND >>%s' ERR\n%strap - ERR\n", file(i, "failed"), code)
		}
		require.NoError(t, os.WriteFile(file(i, "sh"), []byte(code), 0o600))
		script += fmt.Sprintf(". %s </dev/null >%s 2>&1\n", file(i, "sh"), file(i, "out"))
	}
	script += "kill $(jobs -p) 2>/dev/null\nwait\n"

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Dir, cmd.Env = clone, s.environment(t, home, clone)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what a page leaves running ends with it
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if out, _ := cmd.CombinedOutput(); len(out) > 0 { // how it ended shows in what is missing
		t.Logf("%s", out)
	}
	for i, step := range list {
		got, err := os.ReadFile(file(i, "out"))
		if err != nil {
			return append(problems, fmt.Sprintf("%d: did not run: the step before it ended the shell, or takes longer than %s", step.line, patience))
		}
		failed, _ := os.ReadFile(file(i, "failed")) // there when a command failed
		problem := fmt.Sprintf("%d: %s%s", step.line, step.code, failed)
		if step.output != "" && !shown(step.output).MatchString(tidy(string(got))) {
			problems = append(problems, problem+"--- it shows\n"+step.output+"--- it printed\n"+string(got))
		} else if len(failed) > 0 {
			problems = append(problems, problem+"--- it printed\n"+string(got))
		}
	}
	return problems
}

// cloneLike makes a folder with all that a clone holds. Configs are copies,
// because where a config really lies is where its paths start.
func (s *shells) cloneLike(t *testing.T, clone string) {
	require.NoError(t, os.Mkdir(clone, 0o700))
	entries, err := os.ReadDir(s.repo)
	require.NoError(t, err)
	for _, e := range entries {
		from, to := filepath.Join(s.repo, e.Name()), filepath.Join(clone, e.Name())
		switch {
		case e.Name() == ".git" || e.Name() == "hookd":
		case filepath.Ext(e.Name()) == ".json":
			text, err := os.ReadFile(from)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(to, text, 0o600))
		default:
			require.NoError(t, os.Symlink(from, to))
		}
	}
}

// environment is that of a user who has nothing set up, but for Go's caches.
func (s *shells) environment(t *testing.T, home, clone string) []string {
	out, err := exec.Command("go", "env", "GOENV", "GOPATH", "GOCACHE", "GOMODCACHE").Output()
	require.NoError(t, err)
	at := strings.Split(string(out), "\n")
	env := []string{
		"PATH=" + s.bin + ":" + os.Getenv("PATH"), "HOME=" + home, "LC_ALL=C.UTF-8", "TMPDIR=" + home,
		"GOENV=" + at[0], "GOPATH=" + at[1], "GOCACHE=" + at[2], "GOMODCACHE=" + at[3],
		"HOOKD_SOCKET=" + home + "/run/hookd.sock", "HOOKD_CONTROL_SOCKET=" + home + "/run/control.sock",
		"DOCS_BIN=" + s.bin, "DOCS_REPO=" + s.repo, "DOCS_CLONE=" + clone,
	}
	for _, name := range []string{"GOFLAGS", "GOPROXY", "GOSUMDB", "GOTOOLCHAIN"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

var (
	blanks = regexp.MustCompile(`[ \t]+`)
	blank  = regexp.MustCompile(`(?m)^\s*\n| $`)
)

// tidy makes texts comparable: how wide a column is, and where a blank line
// stands, does not matter.
func tidy(text string) string { return blank.ReplaceAllString(blanks.ReplaceAllString(text, " "), "") }

// shown turns a shown output into a pattern: … stands for any text in a line,
// and a line that is only … for any lines or none.
func shown(output string) *regexp.Regexp {
	pattern := regexp.QuoteMeta(tidy(output))
	pattern = regexp.MustCompile(`(?m)^…\n`).ReplaceAllString(pattern, `(?:.*\n)*`)
	return regexp.MustCompile(`^` + strings.ReplaceAll(pattern, "…", `.*`) + `\n?$`)
}
