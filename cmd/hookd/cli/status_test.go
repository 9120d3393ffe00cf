package cli

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/daemon"
)

// evil is what an agent may put into any of its texts.
const evil = "\x1b]0;x\x07\x1b[31m\u009b2J\u202e\n"

// printing returns an app, and how to read what it has printed.
func printing(t *testing.T) (a *app, printed func() string) {
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	t.Cleanup(func() { file.Close() })
	return &app{out: file, getenv: func(string) string { return "" }}, func() string {
		data, err := os.ReadFile(file.Name())
		require.NoError(t, err)
		return string(data)
	}
}

func requireHarmless(t *testing.T, text string) {
	t.Helper()
	require.Contains(t, text, "‹U+001B›")
	require.NotContains(t, text, "\x1b")
	require.NotContains(t, text, "\x07")
	require.NotContains(t, text, "\u009b")
	require.NotContains(t, text, "\u202e")
}

// Nothing that an agent sends controls the terminal of who follows it.
func TestEventLineIsHarmless(t *testing.T) {
	a, _ := printing(t)
	for _, place := range []string{
		"kind", "meta.agent", "payload.stage", "payload.tool", "payload.hook", "payload.state", "payload.outcome", "payload.action",
		"payload.decided_by", "payload.degraded.hook", "payload.degraded.outcome",
	} {
		ev := nested(place, evil)
		if place == "payload.degraded.hook" || place == "payload.degraded.outcome" {
			payload := ev["payload"].(map[string]any)
			payload["degraded"] = []any{payload["degraded"]}
		}
		raw, err := json.Marshal(ev)
		require.NoError(t, err)
		line := a.eventLine(raw)
		requireHarmless(t, line)
		require.NotContains(t, line, "\n", place)
	}
	for _, place := range []string{"payload.reason", "payload.detail"} {
		raw, err := json.Marshal(nested(place, evil))
		require.NoError(t, err)
		require.Contains(t, a.eventLine(raw), `"\x1b]0;x\a\x1b[31m\u009b2J\u202e\n"`)
	}
}

// nested is an object with a value at a dotted path.
func nested(path, value string) map[string]any {
	for i := range len(path) {
		if path[i] == '.' {
			return map[string]any{path[:i]: nested(path[i+1:], value)}
		}
	}
	return map[string]any{path: value}
}

func TestStatusIsHarmless(t *testing.T) {
	for name, s := range map[string]*daemon.Status{
		"agent":        {Agents: []daemon.AgentStatus{{Name: evil}}},
		"last event":   {Agents: []daemon.AgentStatus{{LastEvent: evil}}},
		"coding agent": {CodingAgents: map[string]daemon.SeenAgent{evil: {}}},
		"its event":    {CodingAgents: map[string]daemon.SeenAgent{"x": {Event: evil, At: time.Now()}}},
		"last error":   {Hooks: []daemon.HookStatus{{Name: "h", State: "failed", LastError: evil}}},
		"stderr":       {Hooks: []daemon.HookStatus{{Name: "h", State: "failed", LastError: "x", Stderr: []string{evil}}}},
	} {
		t.Run(name, func(t *testing.T) {
			a, printed := printing(t)
			require.NoError(t, a.printStatus(s))
			requireHarmless(t, printed())
		})
	}
}
