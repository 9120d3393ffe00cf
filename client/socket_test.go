package client_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/client"
)

func TestSocketPath(t *testing.T) {
	runtimeDir := t.TempDir()
	state := "/home/u/.local/state/hookd/hookd.sock"
	perUser := filepath.Join("/run/user", strconv.Itoa(os.Getuid()))
	if info, err := os.Stat(perUser); err == nil && info.IsDir() {
		state = filepath.Join(perUser, "hookd", "hookd.sock")
	}
	for _, tt := range []struct {
		named string
		env   map[string]string
		want  string
	}{
		{"/a/b.sock", map[string]string{"HOOKD_SOCKET": "/c.sock"}, "/a/b.sock"},
		{"", map[string]string{"HOOKD_SOCKET": "/c.sock", "XDG_RUNTIME_DIR": runtimeDir}, "/c.sock"},
		{"", map[string]string{"XDG_RUNTIME_DIR": runtimeDir}, runtimeDir + "/hookd/hookd.sock"},
		{"", map[string]string{"XDG_RUNTIME_DIR": runtimeDir + "/none", "HOME": "/home/u"}, state},
	} {
		got := client.SocketPath(tt.named, func(k string) string { return tt.env[k] })
		require.Equal(t, tt.want, got, "%v", tt)
	}
}

func TestControlSocketPath(t *testing.T) {
	env := map[string]string{}
	getenv := func(k string) string { return env[k] }
	require.Equal(t, "/run/hookd.control.sock", client.ControlSocketPath("", "/run/hookd.sock", getenv))
	require.Equal(t, "/run/x.control.sock", client.ControlSocketPath("", "/run/x", getenv))
	env["HOOKD_CONTROL_SOCKET"] = "/c"
	require.Equal(t, "/c", client.ControlSocketPath("", "/run/hookd.sock", getenv))
	require.Equal(t, "/n", client.ControlSocketPath("/n", "/run/hookd.sock", getenv))
}
