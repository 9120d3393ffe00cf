package shell

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// FuzzShell reads any text. What it finds must be consistent, the same each
// time, and found in time.
func FuzzShell(f *testing.F) {
	for _, line := range tricks() {
		f.Add(line)
	}
	for _, line := range generated(20) {
		f.Add(line)
	}
	for _, line := range []string{
		"sed 's/[/]/x/w f' $(a)", "awk '/[/]/{print | \"x\"}'", "docker run -it --rm a b", "xargs -i -I{} a {}", "git -c a=b config x y", "{a..z..2}{1,2}",
		"case a in (a|b) c;; esac", "a=(b c); a+=(d); ${a[@]}", "su - -c a -- b", "ssh -o 'ProxyCommand a' b c", "env -S'a b' c", "\ue00d\r\n", "0&0\xba",
	} {
		f.Add(line)
	}
	var reader Reader
	f.Fuzz(func(t *testing.T, line string) {
		begin := time.Now()
		got := reader.Read(line)
		require.Less(t, time.Since(begin), 20*time.Second, "a reading must end")
		require.Equal(t, got, reader.Read(line), "the same line, read once more")
		require.Equal(t, got.Unresolved, len(got.Why) > 0)
		require.LessOrEqual(t, len(got.Commands), maxCommands)
		if got.Syntax != "" || len(line) > maxLine {
			require.True(t, got.Unresolved)
		}
		for i := range got.Commands {
			c := &got.Commands[i]
			require.NotEmpty(t, c.Name)
			require.True(t, got.Runs(c.Name) || strings.ContainsAny(c.Name, " /"), "%q", c.Name)
			require.True(t, strings.HasPrefix(c.Text, c.Name))
			c.Flag("r")
		}
		require.False(t, slices.Contains(got.Writes, ""))
	})
}
