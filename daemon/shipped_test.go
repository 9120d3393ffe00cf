package daemon

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every hook that ships has a row in the docs, at its place in the order.
func TestShippedHooksAreInTheDocs(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/builtins.md")
	require.NoError(t, err)
	rows := regexp.MustCompile("(?m)^\\| \\[?`(\\w+)`(?:\\]\\([^)]*\\))? \\| (\\S+) \\|").FindAllStringSubmatch(string(page), -1)
	var listed, shipping []string
	for _, row := range rows {
		listed = append(listed, row[1]+" "+row[2])
	}
	for _, b := range slices.Concat(shipped(io.Discard, nobody, newTakers()), newPeople().builtins(), newBook().builtins()) {
		priority := "–"
		if len(b.Stages) > 0 || b.Priority != 0 {
			priority = fmt.Sprint(b.Priority)
		}
		shipping = append(shipping, b.Name+" "+priority)
	}
	require.ElementsMatch(t, shipping, listed)
	require.True(t, slices.IsSortedFunc(rows, func(a, b []string) int { return place(a[2]) - place(b[2]) }), "the table is in the order in which they are asked")
}

// place is where a priority stands; those without one are never asked.
func place(priority string) int {
	n := 1 << 20
	_, _ = fmt.Sscan(priority, &n)
	return n
}
