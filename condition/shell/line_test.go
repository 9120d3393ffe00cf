package shell

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFlag(t *testing.T) {
	var reader Reader
	for _, c := range []struct {
		line, flag string
		want       bool
	}{
		{"rm -r x", "r", true},
		{"rm -rf x", "r", true},
		{"rm -fr x", "-r", true},
		{"rm -R x", "r", true},
		{"rm -r x", "R", true},
		{"rm --recursive x", "r", true},
		{"rm --recurs x", "r", true},
		{"rm -r x", "recursive", true},
		{"rm --force x", "f", true},
		{"rm --force=x x", "force", true},
		{"rm --forced x", "force", false},
		{"rm x", "r", false},
		{"rm -f x", "r", false},
		{"rm -- -r", "r", false},
		{"rm x -r", "r", true},
		{"rm ''", "r", false},
		{"rm -r x", "", false},
		{"git push --force-with-lease", "force", false},
		{"git push --force", "force", true},
		{"git clean -fdx", "d", true},
		{"find / -delete", "delete", true},
		{"find / -delete", "d", false},
		{"find / -depth", "delete", false},
		{"go test -race", "race", true},
		{"git commit --all", "a", true},
		{"git add -- x", "a", false},
	} {
		got := reader.Read(c.line)
		require.Len(t, got.Commands, 1, c.line)
		assert.Equal(t, c.want, got.Commands[0].Flag(c.flag), "%s: %s", c.line, c.flag)
		assert.Equal(t, c.want, got.Commands[0].MayFlag(c.flag), "%s: %s", c.line, c.flag)
	}
}

func TestRuns(t *testing.T) {
	var reader Reader
	for _, c := range []struct {
		line, command string
		want          bool
	}{
		{"/bin/rm x", "rm", true},
		{"/bin/rm x", "/usr/bin/rm", true},
		{"RM x", "rm", true},
		{"rmdir x", "rm", false},
		{"echo rm", "rm", false},
		{"git clean -f", "git clean", true},
		{"git -C x --no-pager clean -f", "git clean", true},
		{"git commit -m clean", "git clean", false},
		{"git commit clean", "git clean", false},
		{"npm --silent run build", "npm run build", true},
		{"npm run", "npm run build", false},
		{"ls", "", false},
		{"ls", " ", false},
	} {
		got := reader.Read(c.line)
		assert.Equal(t, c.want, got.Runs(c.command), "%s: %s", c.line, c.command)
		assert.Equal(t, c.want, got.MayRun(c.command), "%s: %s", c.line, c.command)
	}
	got := reader.Read("$X y")
	require.False(t, got.Runs("rm"))
	require.True(t, got.MayRun("rm"))
	require.False(t, (&Line{}).MayRun("rm"))
}

func TestQuotes(t *testing.T) {
	for in, want := range map[string]string{
		`\x72m`: "rm", `\162m`: "rm", `r\u006d`: "rm", `r\U0000006D`: "rm", `a\tb\n`: "a\tb\n", `\'\"\\\?`: `'"\?`, `\cA`: "\x01", `a\x00b`: "a",
		`\q`: `\q`, `a\`: `a\`, `\xZ`: "Z", `\e[`: "\x1b[", `\UFFFFFFFF`: "\ufffd",
	} {
		assert.Equal(t, want, unescapeC(in), in)
	}
	assert.Equal(t, `a"$b\c`, unescapeIn("a\\\"\\$b\\c\\\n", quotedPlain))
	assert.Equal(t, `a\"b`, unescapeIn(`a\"b`, quotedDoc))
	assert.Equal(t, "a b", unescape("a\\ \\\nb"))
}

func BenchmarkRead(b *testing.B) {
	for _, c := range []struct{ name, line string }{
		{"plain", "git status"},
		{"typical", "cd /tmp && env FOO=1 go test ./... 2>&1 | tail -n 20"},
		{"nested", "sudo bash -c 'find . -name \"*.o\" | xargs rm -f'"},
		{"loop", "a=ls; for i in 1 2; do $a \"$i\"; a=pwd; done"},
	} {
		b.Run(c.name, func(b *testing.B) {
			var reader Reader
			b.ReportAllocs()
			for b.Loop() {
				reader.Read(c.line)
			}
		})
	}
}
