package hook

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		patterns string // separated by spaces
		yes, no  string
	}{
		{"bash", "bash Bash run_command execute_bash", "BASH bash2 mybash"}, // one tool under the names of many agents
		{"run_shell_command", "Bash bash", "Read"},
		{"Edit|Write", "Edit Write edit_file write_to_file", "Edit|Write EditWrite Read"},
		{"guard_me", "guard_me", "Guard_me Bash"}, // nobody else has it
		{"?ash", "bash Bash", "run_command"},      // a glob means what it says
		{"bash Edit|Write mcp__*", "bash Write mcp__ mcp__fs__read", "mcp_ xmcp__"},
		{"*", "bash a/b", ""},
		{"read_?", "read_a read_é", "read_ read_ab"},
		{"*__read|list*", "fs__read list listing", "fs__reader alist"},
		{"a*b*c", "abc axbxc aabbcc", "ab acb abcd"},
		{"github/*", "github/get github/a/b", "github"},
		{"a[bc].+", "a[bc].+", "ab ac"}, // only * and ? are special
		{"/^mcp__.*(write|delete)/", "mcp__fs__write mcp__delete_all", "write amcp__write"},
		{"/sh/", "bash sh push", "bas"},
		{"/a|b/", "a b cab", "c"}, // one pattern, not two alternatives
		{"/(?i)bash/", "BASH", "sh"},
		{"/", "/", "a"},
		{"/usr/*", "/usr/bin", "usr"},
	} {
		m, err := NewMatch(strings.Fields(c.patterns), nil)
		require.NoError(t, err, c.patterns)
		require.True(t, m.HasTools())
		for _, tool := range strings.Fields(c.yes) {
			require.True(t, m.Matches(tool, true, ""), "%s matches %s", c.patterns, tool)
		}
		for _, tool := range strings.Fields(c.no) {
			require.False(t, m.Matches(tool, true, ""), "%s does not match %s", c.patterns, tool)
		}
	}
}

func TestMatchLists(t *testing.T) {
	m, err := NewMatch([]string{" Edit | Write "}, []string{"claude*", "/^ci-/"})
	require.NoError(t, err)
	require.True(t, m.Matches("Edit", true, "claude-code"), "spaces around an alternative do not count")
	require.False(t, m.Matches("Read", true, "claude-code"))
	require.False(t, m.Matches("Edit", true, "codex"))
	require.True(t, m.Matches("", false, "ci-7"), "where there is no tool, tools are ignored")
	require.False(t, m.Matches("", false, "x-ci-7"))
	require.True(t, m.Matches("", true, "ci-7"), "also at a tool stage whose agent does not name it")

	require.False(t, Match{}.HasTools())
	require.True(t, Match{}.Matches("any", true, "any"), "the zero value matches everything")
	all, err := NewMatch(nil, []string{"*"})
	require.NoError(t, err)
	require.True(t, all.Matches("any", true, ""), "an agent without a name, too")
}

func TestNewMatchErrors(t *testing.T) {
	for _, c := range []struct {
		tools, agents []string
		path, text    string
	}{
		{[]string{"a", "/(/"}, nil, "tools/1", "bad regular expression"},
		{nil, []string{"/[z-a]/"}, "agents/0", "bad regular expression"},
		{[]string{""}, nil, "tools/0", "empty alternative"},
		{[]string{"a|"}, nil, "tools/0", "empty alternative"},
		{[]string{"a", "b", " | b"}, nil, "tools/2", "empty alternative"},
		{[]string{"//"}, nil, "tools/0", "empty"},
	} {
		m, err := NewMatch(c.tools, c.agents)
		var bad *MatchError
		require.ErrorAs(t, err, &bad)
		require.Equal(t, c.path, bad.Path)
		require.ErrorContains(t, err, c.path+": ")
		require.ErrorContains(t, bad.Unwrap(), c.text)
		require.Equal(t, Match{}, m)
	}
}

// A pattern means what the same pattern means as a regular expression.
func FuzzNewMatch(f *testing.F) {
	for _, pattern := range []string{"bash", "Edit|Write", "mcp__*", "a?c", "**a*", "/^a/", "/(/", "", "|", "/", "//", "é*", "a.b", `\*`, " a "} {
		f.Add(pattern, "mcp__fs__read")
	}
	f.Fuzz(func(t *testing.T, pattern, tool string) {
		m, err := NewMatch([]string{pattern}, nil)
		if err != nil {
			var bad *MatchError
			require.ErrorAs(t, err, &bad)
			require.Equal(t, "tools/0", bad.Path)
			return
		}
		require.True(t, m.Matches(tool, false, ""))
		if !utf8.ValidString(pattern) || !utf8.ValidString(tool) {
			return
		}
		if tool == "" { // no tool is named, so tools are ignored
			require.True(t, m.Matches(tool, true, ""))
			return
		}
		if inner, ok := strings.CutPrefix(pattern, "/"); ok && strings.HasSuffix(inner, "/") {
			return
		}
		want := false
		for alt := range strings.SplitSeq(pattern, "|") {
			re := regexp.QuoteMeta(strings.TrimSpace(alt))
			re = strings.ReplaceAll(strings.ReplaceAll(re, `\*`, ".*"), `\?`, ".")
			want = want || regexp.MustCompile("(?s)^(?:"+re+")$").MatchString(tool)
		}
		require.Equal(t, want, m.Matches(tool, true, ""), "%q and %q", pattern, tool)
	})
}
