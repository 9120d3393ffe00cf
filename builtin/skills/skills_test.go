package skills

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// write writes a SKILL.md, named by the folder that it stands in.
func write(t testing.TB, folder, text string) {
	require.NoError(t, os.MkdirAll(folder, 0o700))
	path := filepath.Join(folder, fileName)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	require.NoError(t, os.Chtimes(path, time.Now(), time.Now()))
}

func front(name, description string) string {
	return "---\nname: " + name + "\ndescription: " + description + "\n---\n# Text\n"
}

func start(t testing.TB, config, folder string) (*Skills, *observer.ObservedLogs) {
	core, logs := observer.New(zap.WarnLevel)
	s, err := New(jsontext.Value(config), folder, NewTable(0), zap.New(core))
	require.NoError(t, err)
	return s, logs
}

func ask(t testing.TB, s *Skills, session, more string) protocol.Decision {
	t.Helper()
	obj, err := protocol.DecodeObject([]byte(`{"request":{},"meta":{"session_id":"`+session+`"}`+more+`}`), 0)
	require.NoError(t, err)
	stage := protocol.NewStageTable().Stage(protocol.StageInjectInstructions)
	req, bad := protocol.DecodeRequest(stage, obj)
	require.Nil(t, bad)
	d, err := s.Intercept(context.Background(), req)
	require.NoError(t, err)
	require.NoError(t, d.Check(stage))
	require.Empty(t, d.Action)
	return d
}

func TestSkills(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "skills/pdf"), front("pdf", "Reads PDF files."))
	write(t, filepath.Join(folder, "skills/csv"), "---\r\nname: \"csv\"\r\ndescription: >\r\n  Reads\r\n  tables.\r\nlicense: x\r\n---\r\n")
	write(t, filepath.Join(folder, "skills/manual"), "---\nname: manual\ndescription: d\ndisable-model-invocation: true\n---")
	write(t, filepath.Join(folder, "one"), front("one", "Is a skill itself."))
	require.NoError(t, os.MkdirAll(filepath.Join(folder, "skills/empty"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "skills/README.md"), []byte("x"), 0o600))
	require.NoError(t, os.Symlink("README.md", filepath.Join(folder, "skills/link")))
	s, logs := start(t, `{"folders":["skills","one","skills"]}`, folder)
	want := defaultIntro +
		"\n- csv: Reads tables. (" + filepath.Join(folder, "skills/csv/SKILL.md") + ")" +
		"\n- pdf: Reads PDF files. (" + filepath.Join(folder, "skills/pdf/SKILL.md") + ")" +
		"\n- one: Is a skill itself. (" + filepath.Join(folder, "one/SKILL.md") + ")"
	require.Equal(t, protocol.Decision{AddContext: []string{want}}, ask(t, s, "s", `,"dry_run":true`))
	require.Equal(t, protocol.Decision{AddContext: []string{want}}, ask(t, s, "s", ""))
	require.Equal(t, protocol.Decision{}, ask(t, s, "s", ""), "once per session")
	require.Equal(t, protocol.Decision{}, ask(t, s, "s", `,"dry_run":true`))
	require.Equal(t, protocol.Decision{AddContext: []string{want}}, ask(t, s, "other", ""))
	ev := &protocol.Event{Kind: protocol.EventAfterCompact, Meta: protocol.Object{{Name: "session_id", Value: protocol.Quote("s")}}}
	require.NoError(t, s.Observe(context.Background(), &hook.Event{Event: ev}))
	require.Equal(t, protocol.Decision{AddContext: []string{want}}, ask(t, s, "s", ""))
	require.Zero(t, logs.Len())
}

func TestAlways(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "a"), front("a", "d"))
	s, _ := start(t, `{"folders":["."],"always":true,"intro":"Look:"}`, folder)
	for range 2 {
		require.Equal(t, []string{"Look:\n- a: d (" + filepath.Join(folder, "a/SKILL.md") + ")"}, ask(t, s, "s", "").AddContext)
	}
}

// TestProblems wants every skill that can't be offered to be named, in the log
// and to the user, once.
func TestProblems(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"no front matter": {"# Skill\n", "it has no front matter"},
		"not closed":      {"---\nname: x\n", "its front matter does not end"},
		"no YAML":         {"---\nname: [\n---\n", "its front matter can't be read"},
		"twice":           {"---\nname: a\nname: b\n---\n", "its front matter can't be read"},
		"not an object":   {"---\n- a\n---\n", "its front matter can't be read"},
		"odd type":        {"---\nname: {a: b}\ndescription: d\n---\n", "its front matter can't be read"},
		"no name":         {front(`""`, "d"), "its front matter has no name"},
		"no description":  {"---\nname: x\n---\n", "its front matter has no description"},
		"long name":       {front(strings.Repeat("x", 65), "d"), "its name has more than 64 characters"},
		"long":            {front("x", strings.Repeat("x", 1025)), "its description has more than 1024 characters"},
		"empty":           {"", "it has no front matter"},
		"huge":            {"---\nname: x\ndescription: " + strings.Repeat("x", maxFront) + "\n---\n", "its front matter does not end within 65536 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			write(t, filepath.Join(folder, "bad"), c.text)
			write(t, filepath.Join(folder, "good"), front("good", "d"))
			s, logs := start(t, `{"folders":["."]}`, folder)
			d := ask(t, s, "s", "")
			require.Len(t, d.AddContext, 1, "the others are offered")
			require.Len(t, d.Warnings, 1)
			require.Contains(t, d.Warnings[0], filepath.Join(folder, "bad/SKILL.md")+": "+c.want)
			require.Equal(t, protocol.Decision{}, ask(t, s, "s", ""))
			require.Equal(t, 1, logs.Len())
		})
	}
}

func TestOddFiles(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(folder, "pipe"), 0o700))
	require.NoError(t, syscall.Mkfifo(filepath.Join(folder, "pipe", fileName), 0o600))
	write(t, filepath.Join(folder, "a"), front("same", "one"))
	write(t, filepath.Join(folder, "b"), front("same", "two"))
	s, _ := start(t, `{"folders":[".","none"]}`, folder)
	d := ask(t, s, "s", "")
	require.Contains(t, d.AddContext[0], "same: one")
	require.NotContains(t, d.AddContext[0], "two")
	require.Len(t, d.Warnings, 3)
	require.Contains(t, d.Warnings[0], `b/SKILL.md: a skill has the name "same" already`)
	require.Contains(t, d.Warnings[1], "pipe/SKILL.md: it is not a file")
	require.Contains(t, d.Warnings[2], "a folder of skills can't be read")
}

func TestLimits(t *testing.T) {
	folder := t.TempDir()
	for i := range 20 {
		write(t, filepath.Join(folder, fmt.Sprintf("s%02d", i)), front(fmt.Sprintf("s%02d", i), strings.Repeat("d", 100)))
	}
	s, _ := start(t, `{"folders":["."],"max_skills":3}`, folder)
	d := ask(t, s, "s", "")
	require.Contains(t, d.AddContext[0], "- s02: ")
	require.NotContains(t, d.AddContext[0], "- s03: ")
	require.True(t, strings.HasSuffix(d.AddContext[0], "\n(17 more are not shown)"))
	require.Len(t, d.Warnings, 1)
	s, _ = start(t, `{"folders":["."],"max_bytes":1024}`, folder)
	require.LessOrEqual(t, len(ask(t, s, "s", "").AddContext[0]), 1024)
	for i := range 20 {
		write(t, filepath.Join(folder, fmt.Sprintf("s%02d", i)), "bad")
	}
	s, _ = start(t, `{"folders":["."]}`, folder)
	d = ask(t, s, "s", "")
	require.Empty(t, d.AddContext)
	require.Len(t, d.Warnings, 6)
	require.Equal(t, "15 more problems with skills are in the log", d.Warnings[5])
}

func TestChanges(t *testing.T) {
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, logs := start(t, `{"folders":["skills"]}`, folder)
		require.Empty(t, ask(t, s, "s", "").AddContext)
		write(t, filepath.Join(folder, "skills/a"), front("a", "one"))
		require.Empty(t, ask(t, s, "s", "").AddContext, "not looked yet")
		time.Sleep(lookEvery)
		require.Contains(t, ask(t, s, "s", "").AddContext[0], "a: one")
		time.Sleep(lookEvery)
		require.Empty(t, ask(t, s, "s", "").AddContext)
		write(t, filepath.Join(folder, "skills/a"), front("a", "two"))
		time.Sleep(lookEvery)
		require.Contains(t, ask(t, s, "s", "").AddContext[0], "a: two", "it has changed")
		require.NoError(t, os.RemoveAll(filepath.Join(folder, "skills")))
		time.Sleep(lookEvery)
		require.Empty(t, ask(t, s, "s", "").AddContext)
		require.Equal(t, 2, logs.Len(), "the folder was not there, and is gone again")
	})
}

func TestLine(t *testing.T) {
	for in, want := range map[string]string{
		"a\n\n- b: c": "a - b: c", " x\ty ": "x y", "\x1b[31mred\u202e": "[31mred", "数据 分析": "数据 分析",
	} {
		require.Equal(t, want, line(in))
	}
}

func TestConcurrently(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "a"), front("a", "d"))
	s, _ := start(t, `{"folders":["."]}`, folder)
	var mu sync.Mutex
	given := 0
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			d := ask(t, s, "s", "")
			mu.Lock()
			defer mu.Unlock()
			given += len(d.AddContext)
		})
	}
	wg.Wait()
	require.Equal(t, 1, given)
}

func TestRoles(t *testing.T) {
	s, _ := start(t, `{"folders":["."]}`, t.TempDir())
	roles, err := hook.RolesOf(s)
	require.NoError(t, err)
	require.False(t, roles.Quick, "it looks at files")
	require.Equal(t, []protocol.Stage{protocol.StageInjectInstructions}, roles.Stages)
}

func FuzzFront(f *testing.F) {
	for _, seed := range []string{front("a", "b"), "---\nname: [\n---\n", "---\na: &x [*x]\n---\n", "\uFEFF---\r\nname: a\r\ndescription: |\r\n b\r\n---", "------\n", "---\n---\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := parseFront(data)
		if err != nil {
			return
		}
		require.NotEmpty(t, s.name)
		require.NotContains(t, s.name+s.description, "\n")
	})
}
