package install

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
)

// seeds are the files of the golden tests.
func seeds(f *testing.F) {
	paths, err := filepath.Glob("testdata/golden/*.txtar")
	require.NoError(f, err)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(f, err)
		for _, file := range txtar.Parse(text).Files {
			f.Add(file.Data)
		}
	}
}

func wanted(f form, event string) []entry {
	c := Call{Program: []string{"/opt/it's here/hookd-hook"}, Agent: "fuzz", Event: event, Flags: []string{"--timeout", "59s"}}
	e, err := f.entry(c, gateEvent(event), decideTimeout, true)
	if err != nil {
		panic(err)
	}
	return []entry{e}
}

func gateEvent(name string) event { return event{name: name, role: gate} }

// FuzzJSONFile adds an entry to any file, twice, and takes it out again.
func FuzzJSONFile(f *testing.F) {
	seeds(f)
	edit := claudeHooks()
	want := wanted(form{typed: true, command: "command", timeout: "timeout", unit: 1e9, group: plainGroup}, "PreToolUse")
	f.Fuzz(func(t *testing.T, text []byte) {
		after, err := edit.merge("f.json", text, want)
		if err != nil {
			return
		}
		again, err := edit.merge("f.json", after, want)
		require.NoError(t, err)
		require.Equal(t, string(after), string(again), "%q", text)
		slots, err := edit.scan("f.json", after)
		require.NoError(t, err)
		mine := 0
		for _, s := range slots {
			if s.ours && s.call.Agent == "fuzz" {
				mine++
			}
		}
		require.Equal(t, 1, mine, "%q became %q", text, after)
		rest, ours, err := edit.strip("f.json", "fuzz", after)
		require.NoError(t, err)
		require.Len(t, ours, 1)
		// All that was there and is not ours is there still, but for containers
		// that were empty.
		require.Equal(t, foreign(t, edit, text), foreign(t, edit, rest), "%q became %q", text, rest)
	})
}

func foreign(t *testing.T, edit jsonFile, text []byte) []string {
	slots, err := edit.scan("f.json", text)
	require.NoError(t, err)
	var list []string
	for _, s := range slots {
		if !s.ours || s.call.Agent != "fuzz" {
			list = append(list, s.event+string(s.value.AppendJSON(nil)))
		}
	}
	return list
}

// FuzzTOMLFile does the same with TOML.
func FuzzTOMLFile(f *testing.F) {
	seeds(f)
	f.Add([]byte("[[hooks]]\nevent='x'\ncommand='''a'''\n\n"))
	f.Add([]byte("a = [\n# >>> hookd\n]"))
	edit := tomlFile{}
	want := wanted(form{event: "event", command: "command", timeout: "timeout", unit: 1e9}, "PreToolUse")
	f.Fuzz(func(t *testing.T, text []byte) {
		after, err := edit.merge("f.toml", text, want)
		if err != nil {
			return
		}
		again, err := edit.merge("f.toml", after, want)
		require.NoError(t, err)
		require.Equal(t, string(after), string(again), "%q", text)
		slots, err := edit.scan("f.toml", after)
		require.NoError(t, err)
		require.NotEmpty(t, slots)
		rest, ours, err := edit.strip("f.toml", "fuzz", after)
		require.NoError(t, err)
		require.NotEmpty(t, ours)
		_, err = readTOML("f.toml", rest)
		require.NoError(t, err)
	})
}

// FuzzYAMLFile does the same with YAML.
func FuzzYAMLFile(f *testing.F) {
	seeds(f)
	for _, s := range []string{"hooks:\n", "hooks: {}\n", "hooks: null # x", "'hooks': {}\n", "hooks:\n  PreToolUse:\n  - a: 1\n", "hooks: &a\n  x: *a\n", "a: |\n  # >>> x\n", "\ufeffhooks:\r\n  b: 1\r\n", "%YAML 1.2\n---\na: 1\n...\n"} {
		f.Add([]byte(s))
	}
	edit := yamlFile{}
	want := append(wanted(form{command: "command", timeout: "timeout", unit: 1e9}, "PreToolUse"), wanted(form{command: "command"}, "Stop")...)
	f.Fuzz(func(t *testing.T, text []byte) {
		after, err := edit.merge("f.yaml", text, want)
		if err != nil {
			return
		}
		again, err := edit.merge("f.yaml", after, want)
		require.NoError(t, err, "%q became %q", text, after)
		require.Equal(t, string(after), string(again), "%q", text)
		rest, ours, err := edit.strip("f.yaml", "fuzz", after)
		require.NoError(t, err)
		require.Len(t, ours, 2, "%q became %q", text, after)
		require.NoError(t, checkYAML("f.yaml", text, rest, 0), "%q became %q", text, rest)
	})
}

// FuzzShellLine writes any arguments as a line and reads them back, and reads
// any line without harm.
func FuzzShellLine(f *testing.F) {
	for _, s := range []string{"/usr/bin/hookd-hook", "a b", "it's", "$HOME", "`x`", "", "-", "~", "ü", "a\\b", `"`, "#", "!x", "hookd-hook --agent x; y", "hookd hook --agent $(x)"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if c, ours := readLine(s); ours {
			require.NotEmpty(t, c.Program)
			require.NotEmpty(t, c.Agent)
		}
		call := Call{Program: []string{"/x y/hookd-hook"}, Agent: "a", Event: "e", Flags: []string{"--socket", s}}
		line, err := shellLine(call.Argv())
		if err != nil {
			return // some bytes have no place in a line
		}
		back, ours := readLine(line)
		require.True(t, ours, "%q", line)
		require.Equal(t, call.Argv(), back.Argv(), "%q", line)
	})
}

// A line of ours is read however it is quoted; more than one command is none of
// ours.
func TestReadLine(t *testing.T) {
	for line, want := range map[string]string{
		`/a/hookd-hook --agent x --event Y`:                  "/a/hookd-hook|--agent|x|--event|Y",
		`'/a b/hookd-hook' --event=Y --agent=x`:              "/a b/hookd-hook|--agent|x|--event|Y",
		`exec "/a b/hookd-hook" --agent x --event Y --other`: "/a b/hookd-hook|--agent|x|--event|Y|--other",
		`/a/hookd hook --agent x --event Y`:                  "/a/hookd|hook|--agent|x|--event|Y",
		`/a/hookd serve --agent x`:                           "",
		`/a/hookd-hook --event Y`:                            "",
		`/a/hookd-hook --agent x --event Y | tee /tmp/log`:   "",
		`echo hookd-hook --agent x`:                          "",
	} {
		c, ours := readLine(line)
		got := ""
		if ours {
			for i, a := range c.Argv() {
				if i > 0 {
					got += "|"
				}
				got += a
			}
		}
		require.Equal(t, want, got, line)
	}
}
