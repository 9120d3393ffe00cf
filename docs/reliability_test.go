package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	faultRow  = regexp.MustCompile(`(?m)^\| ([A-F])(\d+) \|(.*)\|(.*)\|(.*)\|$`)
	namedTest = regexp.MustCompile("`([a-z/]+)/(Test[A-Za-z0-9]+)(/[^`]+)?`")
)

// TestFaultsAreShown wants each fault once, and for each a test that exists or
// the reason why there is none.
func TestFaultsAreShown(t *testing.T) {
	page := pages(t)["docs/reliability.md"]
	next := map[string]int{}
	for _, row := range faultRow.FindAllStringSubmatch(page, -1) {
		next[row[1]]++
		id := row[1] + row[2]
		require.Equal(t, strconv.Itoa(next[row[1]]), row[2], "the rows stand in order, and none is missing before %s", id)
		for _, cell := range row[3:5] {
			require.NotEmpty(t, strings.TrimSpace(cell), id)
		}
		if !namedTest.MatchString(row[5]) {
			require.Regexp(t, `\*[Nn]ot `, row[4]+row[5], "%s names neither a test nor why there is none", id)
		}
	}
	require.Equal(t, map[string]int{"A": 23, "B": 20, "C": 22, "D": 16, "E": 12, "F": 15}, next)

	packages := map[string]*tests{}
	named := namedTest.FindAllStringSubmatch(page, -1)
	require.NotEmpty(t, named)
	for _, name := range named {
		if packages[name[1]] == nil {
			packages[name[1]] = testsOf(t, name[1])
		}
		if err := packages[name[1]].has(name[2], strings.TrimPrefix(name[3], "/")); err != nil {
			t.Errorf("docs/reliability.md names %s: %v", name[0], err)
		}
	}
}

// tests are what a package's tests are called: functions, and texts that may be
// the name of a part.
type tests struct {
	dir       string
	functions map[string]bool
	texts     map[string]bool
}

func testsOf(t *testing.T, dir string) *tests {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	require.NoError(t, err)
	require.NotEmpty(t, files, "%s has no tests", dir)
	found := &tests{dir, map[string]bool{}, map[string]bool{}}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				found.functions[n.Name.Name] = n.Recv == nil
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
					found.texts[text] = true
				}
			}
			return true
		})
	}
	return found
}

// has returns an error when there is no such test, or when no text and no file
// is called as its part.
func (s *tests) has(function, part string) error {
	if !s.functions[function] {
		return fmt.Errorf("%s has no %s", s.dir, function)
	}
	if part == "" || s.texts[part] {
		return nil
	}
	for _, pattern := range []string{"testdata/*/" + part + ".txt", "testdata/*/" + part + ".json"} {
		if files, _ := filepath.Glob(filepath.Join(s.dir, pattern)); len(files) > 0 {
			return nil
		}
	}
	return fmt.Errorf("nothing in the tests of %s is called %q", s.dir, part)
}

// TestMissingTestsShow keeps TestFaultsAreShown from seeing nothing.
func TestMissingTestsShow(t *testing.T) {
	t.Chdir("..")
	s := testsOf(t, "daemon")
	require.NoError(t, s.has("TestFaults", "crash"))
	require.NoError(t, testsOf(t, "manager").has("TestTraces", "deadline_of_the_call"))
	require.ErrorContains(t, s.has("TestFaultz", ""), "daemon has no TestFaultz")
	require.ErrorContains(t, s.has("TestFaults", "a fault that is not there"), "nothing in the tests of daemon")
	require.Equal(t, []string{"`a/TestB/c d`", "a", "TestB", "/c d"}, namedTest.FindStringSubmatch("| `a/TestB/c d` |"))
	_, err := os.Stat("docs/reliability.md")
	require.NoError(t, err)
}
