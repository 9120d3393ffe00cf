package fault_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/internal/fault"
)

func TestModesAreRead(t *testing.T) {
	for text, want := range map[string]int{
		"never": 0, "late=5300ms": 5300, "late=2s": 2000, "late": 5300, "exit=127": 127, "exit": 0,
		"bigline=64MiB": 64 << 20, "bigline=1000": 1000, "deep=10001": 10001, "crashloop": 100,
	} {
		m, err := fault.ParseMode(text)
		require.NoError(t, err, text)
		require.Equal(t, want, m.Number, text)
	}
	for text, want := range map[string]string{
		"nevr": `unknown mode "nevr", one of obey, `, "never=1": "takes no argument", "late=x": "mode late: ",
		"exit=x": "mode exit: ", "bigline=xMiB": "mode bigline: ", "": "unknown mode",
	} {
		_, err := fault.ParseMode(text)
		require.ErrorContains(t, err, want, text)
	}
}

// Each mode is another fault, and all are explained.
func TestModesDiffer(t *testing.T) {
	seen := map[string]string{}
	for _, name := range fault.Names() {
		m, err := fault.ParseMode(name)
		require.NoError(t, err)
		text, err := json.Marshal(m.Calls)
		require.NoError(t, err)
		is := string(m.Life) + string(text)
		if name == "obey" || name == "well" { // what they do depends on the call
			is = name
		}
		require.Empty(t, seen[is], name)
		seen[is] = name
		require.Contains(t, fault.Usage(), "  "+name)
	}
	require.Equal(t, len(seen), strings.Count(fault.Usage(), "\n"))
}

func TestExpand(t *testing.T) {
	o := fault.Orders{Pad: 3, Depth: 2}
	facts := fault.Facts{ID: "7", Events: 5, Arguments: `{"a":1}`}
	for text, want := range map[string]string{
		"":                       "",
		fault.Yes:                `{"jsonrpc":"2.0","id":7,"result":{}}`,
		"$ID $EVENTS $PAD $DEEP": "7 5 xxx [[]]",
		"$FF$NUL$BOM$CR":         "\xff\x00\ufeff\r",
		`"$ARGS"`:                `"{\"a\":1}"`,
		"$5":                     "$5",
	} {
		require.Equal(t, want, o.Expand(text, facts))
	}
}
