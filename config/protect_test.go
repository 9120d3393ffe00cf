package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A pinned file makes a process another hook when it changes, also when its
// command does not name it.
func TestPinnedFilesAreFilesOfTheHook(t *testing.T) {
	dir := t.TempDir()
	tool := filepath.Join(dir, "tool")
	require.NoError(t, os.WriteFile(tool, nil, 0o755))
	t.Setenv("PATH", dir)
	zero := strings.Repeat("0", 64)
	c := parseText(t, `{"hooks": {"processes": {"a": {"command": ["tool", "-x"], "observe": ["*"],
		"sha256": {"tool": "`+zero+`", "/lib/rules": "`+strings.Repeat("aB", 32)+`"}}}}}`)
	e := &c.Hooks.Entries[0]
	require.Equal(t, []Pin{
		{"/lib/rules", strings.Repeat("ab", 32), "/hooks/processes/a/sha256/~1lib~1rules"},
		{"tool", zero, "/hooks/processes/a/sha256/tool"},
	}, e.Pins)
	require.Equal(t, []string{tool}, e.CommandFiles())
	require.Equal(t, []string{tool, "/lib/rules"}, e.Files(), "also when it is not there")
	require.Equal(t, tool, e.Pins[1].File())
	require.Empty(t, Pin{Path: "nothing"}.File())
	require.ErrorContains(t, c.ProblemAt(e.Pins[0].Pointer, "is another one"), `hooks.processes.a.sha256."/lib/rules": is another one`)
}

func TestSameCanary(t *testing.T) {
	canary := func(text string) *Canary {
		c := parseText(t, `{"hooks": {"processes": {"a": {"command": ["a"], "intercept": ["before_tool", "before_llm"]`+text+`}}}}`)
		return c.Hooks.Entries[0].Canary
	}
	const asks = `, "canary": {"stage": "before_tool", "params": {"tool": "rm", "arguments": {}}, "expect": "deny"}`
	one := canary(asks)
	require.True(t, one.Same(canary(asks+`, "priority": 1`)))
	require.True(t, (*Canary)(nil).Same(nil))
	for _, other := range []string{
		``,
		strings.Replace(asks, `"rm"`, `"ls"`, 1),
		strings.Replace(asks, `"deny"`, `"ask"`, 1),
		strings.Replace(asks, `{}`, `{"n": 1}`, 1),
		`, "canary": {"stage": "before_llm", "params": {"messages": []}, "expect": "deny"}`,
	} {
		require.False(t, one.Same(canary(other)), other)
		require.False(t, canary(other).Same(one), other)
	}
}

// What a canary says of how it is asked has no say.
func TestCanaryIsADryRun(t *testing.T) {
	c := parseText(t, `{"hooks": {"builtins": {"b": {"canary": {"stage": "before_tool", "expect": "continue",
		"params": {"tool": "rm", "arguments": {}, "dry_run": false, "approve": true, "trail": true, "deadline_ms": 5000, "call_id": "c"}}}}}}`)
	require.Equal(t, `{"call_id":"c","tool":"rm","arguments":{},"dry_run":true}`, string(c.Hooks.Entries[0].Canary.Request.AppendParams(nil, 0)))
}
