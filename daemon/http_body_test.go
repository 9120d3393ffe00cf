package daemon

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/agent"
)

// TestContradiction: what agents send for an event at that event's URL is none.
func TestContradiction(t *testing.T) {
	archives, err := filepath.Glob("../agent/*/testdata/*.txtar")
	require.NoError(t, err)
	tried := 0
	for _, path := range archives {
		name := strings.TrimSuffix(filepath.Base(path), ".txtar")
		d := agent.Find(name)
		if d == nil {
			continue
		}
		archive, err := txtar.ParseFile(path)
		require.NoError(t, err)
		for _, f := range archive.Files {
			file, ok := strings.CutSuffix(f.Name, ".json")
			if !ok {
				continue
			}
			for _, row := range d.Rows() {
				if file != row.Event && !strings.HasPrefix(file, row.Event+".") {
					continue
				}
				q := question{agent: name, event: row.Event, payload: string(f.Data)}
				require.NoError(t, contradiction(&q), "%s %s", name, f.Name)
				tried++
			}
		}
	}
	require.Greater(t, tried, 100)
	require.ErrorContains(t, contradiction(&question{agent: "claude", event: "PreToolUse", payload: `{"hook_event_name":"PostToolUse","tool_name":"Bash","tool_input":{}}`}), "PostToolUse")
	require.ErrorContains(t, contradiction(&question{agent: "claude", event: "PreToolUse", payload: `{"agent_action_name":"pre_run_command"}`}), "windsurf")
	require.NoError(t, contradiction(&question{agent: "auto", payload: `{"agent_action_name":"pre_run_command"}`}))
	require.NoError(t, contradiction(&question{agent: "nobody", event: "x", payload: `{`}))
}
