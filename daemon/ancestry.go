package daemon

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// maxRelays is how many relays may stand between an agent and hookd.
const maxRelays = 8

// agentProcess returns the agent behind a process that asks. An agent may ask
// through a relay that it starts for that; then the process that has started
// the relay is meant.
func agentProcess(pid int) int {
	for range maxRelays {
		if !isRelay(commandOf(pid)) {
			return pid
		}
		up := parentOf(pid)
		if up <= 1 {
			return pid
		}
		pid = up
	}
	return pid
}

// isRelay reports whether a command hands on what an agent asks: hookd's own
// relays, and the shell that an agent starts them with.
func isRelay(argv []string) bool {
	if len(argv) == 0 {
		return false
	}
	if filepath.Base(argv[0]) == "hookd-hook" {
		return true
	}
	if filepath.Base(argv[0]) == "hookd" && len(argv) > 1 {
		return argv[1] == "connect" || argv[1] == "hook"
	}
	if len(argv) > 2 && argv[1] == "-c" {
		for _, words := range []string{"hookd-hook", "hookd hook", "hookd connect"} {
			if strings.Contains(argv[2], words) {
				return true
			}
		}
	}
	return false
}

// maxGenerations is how far up a family is looked at. No honest one is larger.
const maxGenerations = 1024

// descends reports whether a process is another one, or was started by it or by
// one of its descendants. A process that has left the tree, because its parent
// has ended, is not found.
func descends(pid, from int) (bool, error) {
	if pid <= 0 {
		return false, errors.New("the system does not say which process it is")
	}
	for generation := range maxGenerations {
		if pid == from {
			return true, nil
		}
		up := parentOf(pid)
		if up <= 0 && generation == 0 && pid != 1 {
			return false, fmt.Errorf("process %d can't be looked at", pid)
		}
		if up <= 0 {
			return false, nil
		}
		pid = up
	}
	return false, fmt.Errorf("it has more than %d ancestors", maxGenerations)
}
