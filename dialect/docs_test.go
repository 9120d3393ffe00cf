package dialect

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The page about PicoClaw names the tests that show what it says. They exist.
func TestPageNamesTests(t *testing.T) {
	page, err := os.ReadFile("../docs/picoclaw.md")
	require.NoError(t, err)
	var all strings.Builder
	require.NoError(t, filepath.WalkDir("..", func(path string, e fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		all.Write(text)
		return err
	}))
	named := regexp.MustCompile("`(Test[A-Za-z]+)`").FindAllStringSubmatch(string(page), -1)
	require.NotEmpty(t, named)
	for _, n := range named {
		require.Contains(t, all.String(), "func "+n[1]+"(t *testing.T)")
	}
}
