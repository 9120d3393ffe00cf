package agent_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/agent"
)

var update = flag.Bool("update", false, "write the table in the docs anew")

// The page for people that holds the table of all agents, and what stands around
// the table.
const (
	page      = "../docs/agents.md"
	tableHead = "<!-- table of package agent: go test ./agent -update -->\n"
	tableEnd  = "<!-- end of the table -->\n"
)

// TestDocs holds that the page says what the code does.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(text), tableHead)
	require.True(t, ok, "%s has no %s", page, tableHead)
	old, after, ok := strings.Cut(rest, tableEnd)
	require.True(t, ok, "%s has no %s", page, tableEnd)
	fresh := "\n" + agent.Markdown() + "\n"
	if *update && old != fresh {
		require.NoError(t, os.WriteFile(page, []byte(before+tableHead+fresh+tableEnd+after), 0o644))
		return
	}
	require.Equal(t, fresh, old, "go test ./agent -update")
}
