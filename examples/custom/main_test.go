package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOwnMain builds hookd with a hook of one's own and asks it.
func TestOwnMain(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "custom")
	out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, string(out))
	config := filepath.Join(dir, "config.json")
	require.NoError(t, os.WriteFile(config, []byte(`{"hooks": {"builtins": {"no-sudo": {"fail_policy": "deny"}}}}`), 0o600))

	for command, want := range map[string]string{
		"sudo reboot": `"action":"deny_tool","reason":"sudo is not for agents"`,
		"ls":          `"action":"continue"`,
	} {
		cmd := exec.Command(program, "check", "--call", "before_tool", config)
		cmd.Stdin = strings.NewReader(`{"tool":"bash","arguments":{"command":"` + command + `"}}`)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		require.Contains(t, string(out), want)
	}
}
