package commands

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	zaplog "go.uber.org/zap/zaptest/observer"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/trust"
)

type projectStage struct {
	t    *testing.T
	dir  string
	hook *hook.Registration
	list *trust.Store
	logs *zaplog.ObservedLogs
}

func newProject(t *testing.T, hooks string) *projectStage {
	core, logs := zaplog.New(zap.WarnLevel)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	s := &projectStage{t: t, dir: dir, list: &trust.Store{Path: filepath.Join(t.TempDir(), "trusted.json")}, logs: logs}
	p := NewProjects(ProjectOptions{Paths: []string{".hookd/hooks.json"}, Trust: s.list, Run: newRunner(t, 0), Log: zap.New(core)})
	s.hook = p.Hook()
	require.NoError(t, s.hook.Check())
	require.NoError(t, os.Mkdir(filepath.Join(dir, ".hookd"), 0o755))
	s.write(".hookd/hooks.json", hooks)
	return s
}

func (s *projectStage) write(name, text string) {
	require.NoError(s.t, os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o644))
}

func (s *projectStage) trust() {
	path, content, err := trust.Open(s.dir, ".hookd/hooks.json")
	require.NoError(s.t, err)
	f, err := Parse(path, content)
	require.NoError(s.t, err)
	_, err = s.list.Trust(path, content, f.Names())
	require.NoError(s.t, err)
}

func (s *projectStage) request(tool string) *protocol.Request {
	return asked(s.t, protocol.StageBeforeTool, `{"tool":"`+tool+`","arguments":{},"meta":{"session_id":"s","cwd":`+string(protocol.Quote(s.dir))+`}}`)
}

func (s *projectStage) ask(tool string) (bool, string, protocol.Decision) {
	req := s.request(tool)
	if !s.hook.If.Holds(req) {
		return false, "", protocol.Decision{}
	}
	d, err := s.hook.Roles.Interceptor.Intercept(s.t.Context(), req)
	return true, said(d, err), d
}

const projectHooks = `{"version":1,"hooks":{"PreToolUse":[
  {"name":"first","matcher":"Bash","hooks":[{"type":"command","command":"sh check.sh"}]},
  {"name":"second","matcher":"Bash","hooks":[{"type":"command","command":"echo '{\"addContext\":\"C\"}'"}]}]}}`

func TestProjectIsAskedWhenTrusted(t *testing.T) {
	s := newProject(t, projectHooks)
	s.write(".hookd/check.sh", "exit 0")
	held, _, _ := s.ask("Bash")
	require.False(t, held, "nobody has trusted it")
	s.ask("Bash")
	require.Len(t, s.logs.FilterMessageSnippet("is not trusted").TakeAll(), 1, "said once")

	s.trust()
	held, text, d := s.ask("Bash")
	require.True(t, held)
	require.Equal(t, "continue +C", text)
	require.Equal(t, []string{"project:PreToolUse/first", "project:PreToolUse/second"}, []string{d.Steps[0].Hook, d.Steps[1].Hook})
	held, _, _ = s.ask("Read")
	require.False(t, held, "none of its rules means that")

	s.write(".hookd/check.sh", "exit 0 # changed")
	held, text, _ = s.ask("Bash")
	require.True(t, held)
	require.Equal(t, "failed untrusted_changed", text)
	held, _, _ = s.ask("Read")
	require.False(t, held, "only what it judges is denied")
	require.Len(t, s.logs.FilterMessageSnippet("has changed since").All(), 1)

	s.trust()
	_, text, _ = s.ask("Bash")
	require.Equal(t, "continue +C", text)
	s.write(".hookd/hooks.json", "{ broken")
	_, text, _ = s.ask("Bash")
	require.Equal(t, "failed untrusted_changed", text)
	require.NoError(t, os.Remove(filepath.Join(s.dir, ".hookd/hooks.json")))
	held, text, _ = s.ask("Bash")
	require.True(t, held, "a file that was trusted does not vanish in silence")
	require.Equal(t, "failed untrusted_changed", text)
	had, err := s.list.Forget(filepath.Join(s.dir, ".hookd/hooks.json"))
	require.NoError(t, err)
	require.True(t, had)
	held, _, _ = s.ask("Bash")
	require.False(t, held)
}

// TestChangedFileJudgesAsItDid: what is written into a trusted file can't take
// calls out of it.
func TestChangedFileJudgesAsItDid(t *testing.T) {
	const guard = `{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"exit 2"}]}]}}`
	for _, text := range []string{
		`{"hooks":{"Stop":[]}}`,
		strings.Replace(guard, `{"hooks"`, `{"disableAllHooks":true,"hooks"`, 1),
		strings.Replace(guard, "Bash", "Nope", 1),
		strings.Replace(guard, `"type"`, `"async":true,"type"`, 1),
	} {
		s := newProject(t, guard)
		s.trust()
		_, said, _ := s.ask("Bash")
		require.Equal(t, "deny (blocked by a hook)", said)
		s.write(".hookd/hooks.json", text)
		_, said, _ = s.ask("Bash")
		require.Equal(t, "failed untrusted_changed", said, text)
		held, _, _ := s.ask("Read")
		require.False(t, held, "it never meant that")
		// One that starts now does not remember whom it meant.
		p := NewProjects(ProjectOptions{Paths: []string{".hookd/hooks.json"}, Trust: s.list, Run: newRunner(t, 0)})
		s.hook = p.Hook()
		_, said, _ = s.ask("Read")
		require.Equal(t, "failed untrusted_changed", said, text)
	}
}

// TestScriptsThatAProjectRuns: however a command names its script, another
// script is another hook.
func TestScriptsThatAProjectRuns(t *testing.T) {
	for _, command := range []string{
		`"$CLAUDE_PROJECT_DIR"/.hookd/check.sh`, `"$CLAUDE_PROJECT_DIR/.hookd/check.sh"`, `D=.hookd; $D/check.sh`, `. $PWD/.hookd/check.sh`,
		`${CLAUDE_PROJECT_DIR:-.}/.hookd/check.sh`, `sh .hookd/check?sh`, `sh -c 'sh .hookd/check.sh'`, `cd .hookd && ./check.sh`, `true`,
	} {
		s := newProject(t, `{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":`+string(protocol.Quote(command))+`}]}]}}`)
		s.write(".hookd/check.sh", "#!/bin/sh\nexit 0")
		require.NoError(t, os.Chmod(filepath.Join(s.dir, ".hookd/check.sh"), 0o755))
		s.trust()
		_, said, _ := s.ask("Bash")
		require.NotEqual(t, "failed untrusted_changed", said, command)
		s.write(".hookd/check.sh", "#!/bin/sh\nexit 0 # another")
		_, said, _ = s.ask("Bash")
		require.Equal(t, "failed untrusted_changed", said, command)
	}
}

// TestProjectAroundAFolder: a step into a folder is no step out of the project.
func TestProjectAroundAFolder(t *testing.T) {
	s := newProject(t, `{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"exit 2"}]}]}}`)
	s.trust()
	top := s.dir
	s.dir = filepath.Join(top, "a", "b")
	_, said, _ := s.ask("Bash")
	require.Equal(t, "deny (blocked by a hook)", said)
	moved := top + "-moved"
	require.NoError(t, os.Rename(top, moved))
	s.dir = top
	_, said, _ = s.ask("Bash")
	require.Equal(t, "failed untrusted_changed", said)
	require.NoError(t, os.Mkdir(top, 0o755))
	_, said, _ = s.ask("Bash")
	require.Equal(t, "failed untrusted_changed", said, "it was trusted, and is not there")
	require.NoError(t, os.RemoveAll(moved))
}

func TestProjectMaySayLess(t *testing.T) {
	for output, want := range map[string]string{
		`{"permissionDecision":"deny","permissionDecisionReason":"R"}`: "deny (R)",
		`{"permissionDecision":"ask","permissionDecisionReason":"Q"}`:  "ask (Q)",
		`{"addContext":"C"}`:                       "continue +C",
		`{"continue":false,"stopReason":"enough"}`: "abort_turn (enough)",
		`{"permissionDecision":"allow"}`:           `deny (hook "project:PreToolUse/1" gave no verdict, and its answer can't be trusted (bad_answer: allow from a project's hook file: those can deny, ask and add context))`,
		`{"updatedInput":{"command":"x"}}`:         `deny (hook "project:PreToolUse/1" gave no verdict, and its answer can't be trusted (bad_answer: a change from a project's hook file: those can deny, ask and add context))`,
		`{"permissionDecision":"deny","updatedInput":{"command":"x"},"permissionDecisionReason":"R"}`: "deny (R)",
	} {
		s := newProject(t, `{"version":1,"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":`+string(protocol.Quote("echo '"+output+"'"))+`}]}]}}`)
		s.trust()
		_, text, _ := s.ask("Bash")
		require.Equal(t, want, text, output)
	}
}

func TestProjectFailures(t *testing.T) {
	s := newProject(t, `{"version":1,"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"exit 7"}]}]}}`)
	s.trust()
	_, text, d := s.ask("Bash")
	require.Contains(t, text, "continue !project:PreToolUse/1: exit status 7")
	require.Equal(t, protocol.OutcomeHookError, d.Steps[0].Outcome)
	s.write(".hookd/hooks.json", `{"version":1,"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"exit 7","fail_policy":"deny"}]}]}}`)
	s.trust()
	_, text, _ = s.ask("Bash")
	require.Equal(t, `deny (hook "project:PreToolUse/1" gave no verdict, and its fail_policy is deny (hook_error: exit status 7))`, text)
}

func TestLayers(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	rule := func(name string) string {
		return `{"version":1,"hooks":{"PreToolUse":[{"name":"` + name + `","hooks":[{"type":"command","command":"true"}]}]}}`
	}
	a, b := file("a.json", rule("x")), file("b.json", rule("x"))
	files, err := Load(Layered{hook.LayerConfig, []string{a, filepath.Join(dir, "missing.json")}}, Layered{hook.LayerUser, []string{a, b}})
	require.NoError(t, err)
	require.Len(t, files, 3)
	var names []string
	for _, r := range Registrations(files, newRunner(t, 0)) {
		names = append(names, r.Name)
	}
	require.Equal(t, []string{"config:PreToolUse/x", "user:PreToolUse/x", "user:PreToolUse/x@2"}, names)

	require.NoError(t, os.Chmod(b, 0o666))
	_, err = Load(Layered{hook.LayerUser, []string{b}})
	require.ErrorContains(t, err, "can be changed by others: chmod go-w b.json")
	if os.Geteuid() != 0 {
		_, err = Load(Layered{hook.LayerOrganisation, []string{a}})
		require.ErrorContains(t, err, "must belong to root")
	}
	_, err = Load(Layered{hook.LayerUser, []string{file("bad.json", "{")}}, Layered{hook.LayerUser, []string{file("worse.json", "[")}})
	require.ErrorContains(t, err, "bad.json:1:")
	require.ErrorContains(t, err, "worse.json:", "all that is wrong is said at once")
}

// TestNobodySwitchesAProjectOff: what lies in a folder of a project adds to its
// rules, trusted or not, and takes none away.
func TestNobodySwitchesAProjectOff(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"an untrusted file": func(path string) error { return os.WriteFile(path, []byte("{}"), 0o644) },
		"a broken file":     func(path string) error { return os.WriteFile(path, []byte("{"), 0o644) },
		"a link":            func(path string) error { return os.Symlink("/nowhere", path) },
		"a folder":          func(path string) error { return os.Mkdir(path, 0o755) },
	} {
		s := newProject(t, `{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"exit 2"}]}]}}`)
		s.trust()
		inner := filepath.Join(s.dir, "sub", ".hookd")
		require.NoError(t, os.MkdirAll(inner, 0o755))
		require.NoError(t, put(filepath.Join(inner, "hooks.json")), name)
		s.dir = filepath.Join(s.dir, "sub", "deeper")
		_, said, _ := s.ask("Bash")
		require.Equal(t, "deny (blocked by a hook)", said, name)
		require.Len(t, s.logs.FilterMessageSnippet("is not run").FilterField(zap.String("path", filepath.Join(inner, "hooks.json"))).All(), 1, name)
	}
}

// TestProjectInAProject: the outer one is asked first, and both are.
func TestProjectInAProject(t *testing.T) {
	context := func(text string) string {
		return `{"version":1,"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":` + string(protocol.Quote(`echo '{"addContext":"`+text+`"}'`)) + `}]}]}}`
	}
	s := newProject(t, context("outer"))
	s.trust()
	top := s.dir
	s.dir = filepath.Join(top, "sub")
	require.NoError(t, os.MkdirAll(filepath.Join(s.dir, ".hookd"), 0o755))
	s.write(".hookd/hooks.json", context("inner"))
	s.trust()
	_, said, _ := s.ask("Bash")
	require.Equal(t, "continue +outer|inner", said)
	s.write(".hookd/hooks.json", context("other"))
	req := s.request("Bash")
	_, err := s.hook.Roles.Interceptor.Intercept(t.Context(), req)
	require.ErrorContains(t, err, "hookd trust "+s.dir, "the folder that has to be trusted")

	// By a link into it, and from a folder that has no name on this system.
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Mkdir(filepath.Join(top, "plain"), 0o755))
	require.NoError(t, os.Symlink(filepath.Join(top, "plain"), link))
	s.dir = link
	_, said, _ = s.ask("Bash")
	require.Equal(t, "continue +outer", said)
	s.dir = top + strings.Repeat("/a", 5000)
	_, said, _ = s.ask("Bash")
	require.Equal(t, "continue +outer", said)
}

// TestWhatWasTrustedIsWhatRuns: a script that is named by its way from the
// project is that one, wherever the session is.
func TestWhatWasTrustedIsWhatRuns(t *testing.T) {
	for command, args := range map[string]string{"./check.sh": "", "sh check.sh": "", "sh $PWD/check.sh": "", "sh": `,"args":["check.sh"]`} {
		s := newProject(t, `{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":`+string(protocol.Quote(command))+args+`}]}]}}`)
		evil := filepath.Join("node_modules", "evil")
		require.NoError(t, os.MkdirAll(filepath.Join(s.dir, evil), 0o755))
		for _, f := range []struct{ path, text string }{
			{"check.sh", "#!/bin/sh\necho \"trusted in $CLAUDE_PROJECT_DIR, $PWD\" >&2; exit 2"}, {filepath.Join(evil, "check.sh"), "#!/bin/sh\nexit 0"},
		} {
			s.write(f.path, f.text)
			require.NoError(t, os.Chmod(filepath.Join(s.dir, f.path), 0o755))
		}
		s.trust()
		top := s.dir
		s.dir = filepath.Join(top, evil)
		_, said, _ := s.ask("Bash")
		require.Equal(t, "deny (trusted in "+top+", "+top+")", said, command)
	}
	// In hookd's form $PWD is the folder of the file.
	s := newProject(t, `{"version":1,"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":". $PWD/check.sh"}]}]}}`)
	s.write("check.sh", "exit 0")
	s.write(".hookd/check.sh", "exit 2")
	s.trust()
	s.write(".hookd/check.sh", "exit 0")
	_, said, _ := s.ask("Bash")
	require.Equal(t, "failed untrusted_changed", said)
}

// TestTrustedScriptThatCannotRun: taking away the right to run it takes away no
// rule.
func TestTrustedScriptThatCannotRun(t *testing.T) {
	for _, form := range []string{"", `"version":1,`} {
		for _, handler := range []string{`"command":"./x.sh"`, `"command":"./x.sh","args":[]`, `"command":"'./x.sh' now"`} {
			s := newProject(t, `{`+form+`"hooks":{"PreToolUse":[{"hooks":[{"type":"command",`+handler+`}]}]}}`)
			at := "x.sh"
			if form != "" {
				at = ".hookd/x.sh"
			}
			s.write(at, "#!/bin/sh\nexit 2")
			require.NoError(t, os.Chmod(filepath.Join(s.dir, at), 0o755))
			s.trust()
			_, said, _ := s.ask("Bash")
			require.Equal(t, "deny (blocked by a hook)", said, handler)
			require.NoError(t, os.Chmod(filepath.Join(s.dir, at), 0o644))
			_, said, _ = s.ask("Bash")
			require.Contains(t, said, "deny (", handler)
			require.Contains(t, said, "(untrusted_changed: ", handler)
		}
	}
	// A program of the system that is not there is a failure like another.
	s := newProject(t, `{"version":1,"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"no-such-program-here"}]}]}}`)
	s.trust()
	_, said, _ := s.ask("Bash")
	require.Contains(t, said, "continue !project:PreToolUse/1: exit status 127")
}

// TestStopIsStop: at Stop a script that ends it wins over one that goes on.
func TestStopIsStop(t *testing.T) {
	s := newProject(t, `{"version":1,"hooks":{"Stop":[
		{"hooks":[{"type":"command","command":"echo more >&2; exit 2"}]},
		{"hooks":[{"type":"command","command":"echo '{\"continue\":false,\"stopReason\":\"enough\"}'"}]}]}}`)
	s.trust()
	req := asked(t, protocol.StageStop, `{"request":{},"meta":{"session_id":"s","cwd":`+string(protocol.Quote(s.dir))+`}}`)
	require.Equal(t, "abort_turn (enough)", said(s.hook.Roles.Interceptor.Intercept(t.Context(), req)))
}
