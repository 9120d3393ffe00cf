package hooks_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReadmeLinks: a link to a line leads to the code that it shows.
func TestReadmeLinks(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	links := regexp.MustCompile("\\[(`[^`]+`|[^]`]+)\\]\\(([^)#]+)#L([0-9]+)\\)").FindAllStringSubmatch(string(readme), -1)
	require.Greater(t, len(links), 30)
	for _, link := range links {
		source, err := os.ReadFile(filepath.FromSlash(link[2]))
		require.NoError(t, err)
		n, err := strconv.Atoi(link[3])
		require.NoError(t, err)
		lines := strings.Split(string(source), "\n")
		require.LessOrEqual(t, n, len(lines), link[0])
		if code := strings.Trim(link[1], "`"); code != link[1] {
			require.Contains(t, lines[n-1], code, link[0])
		}
	}
}

// TestReadmeCommands: each command prints what the page says, but for times.
func TestReadmeCommands(t *testing.T) {
	for _, interpreter := range []string{"python3", "node"} {
		if _, err := exec.LookPath(interpreter); err != nil {
			t.Skipf("%s is not installed", interpreter)
		}
	}
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	times := regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:]+Z|"duration_us":\d+`)
	for _, block := range regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(string(readme), -1) {
		for _, step := range strings.Split(block[1], "$ ")[1:] {
			command, want, _ := strings.Cut(step, "\n")
			cmd := exec.Command("sh", "-c", command)
			cmd.Dir = filepath.Join("..", "..")
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, command)
			require.Equal(t, times.ReplaceAllString(want, "…"), times.ReplaceAllString(string(out), "…"), command)
		}
	}
}
