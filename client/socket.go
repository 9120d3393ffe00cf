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

// StateFolder returns where hookd keeps what must outlive it: the folder that a
// service manager has made ($STATE_DIRECTORY), else $XDG_STATE_HOME/hookd, which
// is ~/.local/state/hookd. It is "" where none of them is known.
func StateFolder(getenv func(string) string) string {
	if dir, _, _ := strings.Cut(getenv("STATE_DIRECTORY"), ":"); dir != "" {
		return dir
	}
	if state := getenv("XDG_STATE_HOME"); state != "" {
		return filepath.Join(state, "hookd")
	}
	if home := getenv("HOME"); home != "" {
		return filepath.Join(home, ".local", "state", "hookd")
	}
	return ""
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
