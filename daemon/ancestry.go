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
	if filepath.Base(argv[0]) == "hookd" {
		return isRelayCommand(argv[1:])
	}
	return len(argv) > 2 && argv[1] == "-c" && runsRelay(argv[2])
}

// isRelayCommand reports whether hookd with these arguments is a relay. Flags may
// stand before the command; as on the command line itself, a flag without = takes
// the next word.
func isRelayCommand(args []string) bool {
	for i := 0; i < len(args); i++ {
		switch word := args[i]; {
		case word == "--":
			return false
		case strings.HasPrefix(word, "-"):
			if !strings.Contains(word, "=") && (len(word) == 2 || strings.HasPrefix(word, "--")) {
				i++
			}
		case word != "":
			return word == "connect" || word == "hook" || word == "mcp"
		}
	}
	return false
}

// runsRelay reports whether a line for a shell starts a relay. It looks at words
// and quotes; what is in variables is not followed.
func runsRelay(line string) bool {
	if strings.Contains(line, "hookd-hook") {
		return true
	}
	var words []string
	var word strings.Builder
	var quote rune
	found := false
	endWord := func() {
		if word.Len() > 0 {
			words = append(words, word.String())
			word.Reset()
		}
	}
	endCommand := func() {
		endWord()
		for i, w := range words {
			found = found || filepath.Base(w) == "hookd" && isRelayCommand(words[i+1:])
		}
		words = nil
	}
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote = r
		case r == ' ' || r == '\t':
			endWord()
		case strings.ContainsRune(";|&()\n", r):
			endCommand()
		default:
			word.WriteRune(r)
		}
	}
	endCommand()
	return found
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
