package daemon_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/daemon"
)

// The entry of the built-in human needs nothing but its name: it is asked only
// when a hook asks, and timeout_ms is how long a person has.
func TestHumanByDefault(t *testing.T) {
	d := startDaemon(t, fmt.Sprintf(`{"approval": {"not_same_process_tree": false}, "hooks": {
		"builtins": {"human": {"timeout_ms": 90000}},
		"processes": {"gate": %s}}}`, asking()))
	a := d.dial(t)
	require.Contains(t, a.ask("hook.approve_tool", `{"tool":"bash","arguments":{},"asked":false}`), `"approved":true`, "nobody has asked for it")
	a.asks("hook.before_tool", pushCall)
	open := d.tickets(t, 1)[0]
	require.Equal(t, 90*time.Second, open.Expires.Sub(open.Opened).Round(time.Second))
	require.Equal(t, "sure?", open.Message)
	require.Equal(t, "gate", open.AskedBy)
}

// A check knows the built-ins of people, and asks nobody.
func TestCheckKnowsPeople(t *testing.T) {
	report, err := daemon.Check(t.Context(), daemon.CheckOptions{ConfigPath: writeConfig(t, `{"hooks": {"builtins": {"cancel": {}, "human": {"config": {"notify": ["true"]}}}}}`)})
	require.NoError(t, err)
	text, err := json.Marshal(report.Hooks)
	require.NoError(t, err)
	require.Len(t, report.Hooks, 2, string(text))
	require.Empty(t, report.Problems)
}
