package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTools(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "here"), []byte("text"), 0o600))
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(folder, "link")))
	tools, err := openTools(folder)
	require.NoError(t, err)
	t.Cleanup(tools.close)
	for _, tt := range []struct {
		tool, arguments string
		content         string // that the result contains
		failed          bool
	}{
		{"read_file", `{"path":"here"}`, "text", false},
		{"read_file", `{"path":"missing"}`, "no such file", true},
		{"read_file", `{"path":"../here"}`, "escapes", true},
		{"read_file", `{"path":"link"}`, "escapes", true},
		{"write_file", `{"path":"a/b/c","content":"x"}`, "written", false},
		{"write_file", `{"path":"/tmp/agent-was-here","content":"x"}`, "escapes", true},
		{"bash", `{"command":"cat a/b/c; echo y >&2; exit 3"}`, "xy\n[exit status 3]", true},
		{"bash", `{"command":"cat"}`, "", false}, // nothing to read
		{"bash", `{"Command":"echo x"}`, "Command", true},
		{"bash", `{"command":"echo x","command":"echo y"}`, "duplicate", true},
		{"bash", `{"cmd":"echo x"}`, "cmd", true},
		{"fly", `{}`, "there is no such tool", true},
	} {
		got := tools.run(t.Context(), tt.tool, []byte(tt.arguments))
		require.Contains(t, got.Content, tt.content, tt.arguments)
		require.Equal(t, tt.failed, got.IsError, tt.arguments)
	}
	long := tools.run(t.Context(), "bash", []byte(`{"command":"head -c 1000000 /dev/zero"}`))
	require.Len(t, long.Content, maxOutput)
}

// TestBashEnds: what takes too long ends with all that it has started.
func TestBashEnds(t *testing.T) {
	tools, err := openTools(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(tools.close)
	tools.commandTime = 100 * time.Millisecond
	began := time.Now()
	got := tools.run(t.Context(), "bash", []byte(`{"command":"echo begun; sleep 600 & sleep 600"}`))
	require.Less(t, time.Since(began), 30*time.Second)
	require.True(t, got.IsError)
	require.True(t, strings.HasPrefix(got.Content.(string), "begun\n[stopped after 100ms"), got.Content)
}

// TestTemporaryFolder: without a folder the tools get one, for as long as they
// are open.
func TestTemporaryFolder(t *testing.T) {
	tools, err := openTools("")
	require.NoError(t, err)
	require.DirExists(t, tools.folder)
	tools.close()
	require.NoDirExists(t, tools.folder)
}
