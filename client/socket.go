package client

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// SocketPath returns where hookd's socket for agents is: named, when it is not
// empty, else $HOOKD_SOCKET, else the first place of the default order whose
// folder exists. The daemon and its clients use the same order, so that they
// meet without any setting:
//
//  1. $XDG_RUNTIME_DIR/hookd/hookd.sock
//  2. /run/user/UID/hookd/hookd.sock
//  3. the state folder: $XDG_STATE_HOME/hookd/hookd.sock, which is
//     ~/.local/state/hookd/hookd.sock
func SocketPath(named string, getenv func(string) string) string {
	if named != "" {
		return named
	}
	if env := getenv("HOOKD_SOCKET"); env != "" {
		return env
	}
	for _, dir := range []string{getenv("XDG_RUNTIME_DIR"), filepath.Join("/run/user", strconv.Itoa(os.Getuid()))} {
		if info, err := os.Stat(dir); dir != "" && err == nil && info.IsDir() {
			return filepath.Join(dir, "hookd", "hookd.sock")
		}
	}
	state := getenv("XDG_STATE_HOME")
	if state == "" {
		state = filepath.Join(getenv("HOME"), ".local", "state")
	}
	return filepath.Join(state, "hookd", "hookd.sock")
}

// ControlSocketPath returns where the control socket is: named, when it is not
// empty, else $HOOKD_CONTROL_SOCKET, else beside the socket for agents:
// hookd.sock has hookd.control.sock.
func ControlSocketPath(named, socket string, getenv func(string) string) string {
	if named != "" {
		return named
	}
	if env := getenv("HOOKD_CONTROL_SOCKET"); env != "" {
		return env
	}
	return strings.TrimSuffix(socket, ".sock") + ".control.sock"
}
