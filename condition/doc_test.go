package condition

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/condition/shell"
)

func page(t *testing.T) string {
	text, err := os.ReadFile("../docs/conditions.md")
	require.NoError(t, err)
	return string(text)
}

// TestExamples reads every condition that the page shows. Within a block of the
// language expr, a blank line stands between two of them.
func TestExamples(t *testing.T) {
	found := 0
	for _, block := range regexp.MustCompile("(?ms)^```expr\n(.*?)^```$").FindAllStringSubmatch(page(t), -1) {
		for text := range strings.SplitSeq(block[1], "\n\n") {
			c, err := Compile(strings.TrimSpace(text))
			require.NoError(t, err, text)
			for _, call := range []string{"ls", "rm -rf /", "echo 'x"} {
				require.NoError(t, c.Explain(toolCall(t, "Bash", `{"command":"`+call+`","old_string":"x","replace_all":true}`)).Err, text)
			}
			found++
		}
	}
	require.Greater(t, found, 25)
}

// TestTables holds the tables to what is so.
func TestTables(t *testing.T) {
	text := page(t)
	for _, name := range fieldNames() {
		require.Contains(t, text, "| `"+name+"` |")
	}
	for _, name := range shellFields() {
		require.Regexp(t, "`shell\\."+name+"[`(]", text)
	}
	for _, name := range commandFields() {
		require.Regexp(t, "`\\."+name+"[`(]", text)
	}
	for _, name := range functionNames() {
		require.Contains(t, text, "`"+name+"`")
	}

	_, table, ok := strings.Cut(text, "<!-- checked: shell -->")
	require.True(t, ok)
	table, _, _ = strings.Cut(table, "\n\nIt follows")
	var reader shell.Reader
	rows := 0
	for row := range strings.SplitSeq(table, "\n") {
		cells := strings.Split(strings.ReplaceAll(row, `\|`, "\x00"), "|")
		if len(cells) != 5 || !strings.Contains(cells[1], "`") {
			continue
		}
		rows++
		line := strings.ReplaceAll(strings.Trim(cells[1], " `"), "\x00", "|")
		got := reader.Read(line)
		var runs []string
		for _, c := range got.Commands {
			runs = append(runs, "`"+c.Text+"`")
		}
		require.Equal(t, strings.TrimSpace(cells[2]), strings.Join(runs, ", "), line)
		require.Equal(t, strings.TrimSpace(cells[3]) == "yes", got.Unresolved, "%s: %s", line, got.Why)
	}
	require.Greater(t, rows, 15)
}
