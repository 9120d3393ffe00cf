package install

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mvdan.cc/sh/v3/shell"
	"mvdan.cc/sh/v3/syntax"
)

// The programs that an agent may be told to run.
const (
	clientProgram = "hookd-hook" // small, made for this
	daemonProgram = "hookd"      // "hookd hook" does the same and starts slower
)

// Program is what agents are told to run.
type Program struct {
	// Argv is the program by its absolute path and what comes before the flags:
	// nothing, or "hook".
	Argv []string
	// Note says why it is not the usual one; empty when it is.
	Note string
}

// ErrNoProgram is returned by [FindProgram] when there is nothing that agents
// could run.
var ErrNoProgram = errors.New("neither hookd-hook nor hookd has a path that agents could be told")

// FindProgram looks for hookd-hook beside the running hookd, whose path is self,
// and then in the PATH of getenv. Without one agents run "hookd hook".
func FindProgram(self string, getenv func(string) string) (Program, error) {
	var folders []string
	if filepath.IsAbs(self) {
		folders = append(folders, filepath.Dir(self))
		if real, err := filepath.EvalSymlinks(self); err == nil {
			folders = append(folders, filepath.Dir(real))
		}
	}
	for _, dir := range append(folders, filepath.SplitList(getenv("PATH"))...) {
		if path := filepath.Join(dir, clientProgram); filepath.IsAbs(path) && runnable(path) == nil {
			return Program{Argv: []string{path}, Note: passing(path)}, nil
		}
	}
	if !filepath.IsAbs(self) || runnable(self) != nil {
		return Program{}, ErrNoProgram
	}
	if note := passing(self); note != "" {
		return Program{Argv: []string{self, "hook"}, Note: note}, nil
	}
	return Program{
		Argv: []string{self, "hook"},
		Note: fmt.Sprintf("%s is neither beside %s nor in the PATH, so agents run %q, which starts several times slower; put it there and install again", clientProgram, self, self+" hook"),
	}, nil
}

// passing warns of a program that "go run" has built and will remove.
func passing(path string) string {
	if strings.Contains(path, "/go-build") {
		return path + " is in a folder that goes away; install hookd first, and then again from there"
	}
	return ""
}

// findInPath returns where the first of these programs is, or "".
func findInPath(names []string, getenv func(string) string) string {
	for _, name := range names {
		for _, dir := range filepath.SplitList(getenv("PATH")) {
			if path := filepath.Join(dir, name); filepath.IsAbs(path) && runnable(path) == nil {
				return path
			}
		}
	}
	return ""
}

// runnable reports why a path is no program that can be run.
func runnable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return errors.New("it is no file")
	case info.Mode()&0o111 == 0:
		return errors.New("it is not executable")
	}
	return nil
}

// Call is one call of hookd-hook, as it stands in an agent's file.
type Call struct {
	// Program is the program, and "hook" when it is hookd itself.
	Program []string
	Agent   string
	Event   string
	// Flags are the others, in their order.
	Flags []string
}

// Argv returns the call as a list of arguments.
func (c Call) Argv() []string {
	argv := append(slices.Clone(c.Program), "--agent", c.Agent, "--event", c.Event)
	return append(argv, c.Flags...)
}

// valued are the other flags of hookd-hook that are followed by a value.
func valued() []string { return []string{"--socket", "--on-unavailable", "--timeout", "--max-bytes"} }

// readCall finds out whether a list of arguments is a call of hookd-hook.
func readCall(argv []string) (Call, bool) {
	var c Call
	switch {
	case len(argv) > 0 && filepath.Base(argv[0]) == clientProgram:
		c.Program = argv[:1]
	case len(argv) > 1 && filepath.Base(argv[0]) == daemonProgram && argv[1] == "hook":
		c.Program = argv[:2]
	default:
		return c, false
	}
	rest := argv[len(c.Program):]
	for i := 0; i < len(rest); i++ {
		name, value, joined := strings.Cut(rest[i], "=")
		if name != "--agent" && name != "--event" {
			c.Flags = append(c.Flags, rest[i])
			if i+1 < len(rest) && !joined && slices.Contains(valued(), name) {
				i++ // whatever the value looks like
				c.Flags = append(c.Flags, rest[i])
			}
			continue
		}
		if !joined {
			if i++; i < len(rest) {
				value = rest[i]
			}
		}
		if name == "--agent" {
			c.Agent = value
		} else {
			c.Event = value
		}
	}
	return c, c.Agent != ""
}

// readLine is readCall for a shell line. A line that does more than one thing is
// none of ours.
func readLine(line string) (Call, bool) {
	// Most lines are somebody else's and may be anything.
	if !strings.Contains(line, clientProgram) && !strings.Contains(line, daemonProgram) {
		return Call{}, false
	}
	argv, err := shell.Fields(line, func(string) string { return "" })
	if err != nil {
		return Call{}, false
	}
	if len(argv) > 1 && argv[0] == "exec" {
		argv = argv[1:]
	}
	return readCall(argv)
}

// shellLine writes a list of arguments as a line that sh, bash, zsh and fish
// read back as the same list.
func shellLine(argv []string) (string, error) {
	words := make([]string, len(argv))
	for i, arg := range argv {
		word, err := syntax.Quote(arg, syntax.LangPOSIX)
		if err != nil {
			return "", fmt.Errorf("%q can't stand in a shell line: %w", arg, err)
		}
		words[i] = word
	}
	return strings.Join(words, " "), nil
}

// clientTimeout is the client's own deadline: a little less than the agent's,
// so that the client still answers.
func clientTimeout(agent time.Duration) time.Duration {
	switch {
	case agent >= 10*time.Second:
		return agent - time.Second
	case agent > 2*time.Second:
		return agent - 500*time.Millisecond
	}
	return agent * 3 / 4
}
