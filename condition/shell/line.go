// Package shell tells what a line for a shell runs, as far as its text says:
// through quotes, variables, wrappers such as env and xargs, and code in
// arguments. It reads and never runs anything.
//
// It is made for guards. What it can't follow is said to be unresolved; nothing
// is passed over in silence.
package shell

import (
	"slices"
	"strings"
)

// Line is what a line runs. The zero value is a line that runs nothing.
type Line struct {
	// Commands are the commands that may run, in the order in which they were
	// found and without repetition. Those behind a wrapper stand after it.
	Commands []Command
	// Writes are the files that are written by redirections and by the common
	// programs for it, as they are named there. /dev/null and the standard
	// streams are left out.
	Writes []string
	// Unresolved says that something would run which is not among Commands. Why
	// says what, for people; at most a few of the reasons are kept.
	Unresolved bool
	Why        []string
	// Syntax is the first error of syntax, or "". The line is unresolved then,
	// and Commands holds what stands before the error.
	Syntax string
}

// Runs reports whether a command is among those that were found. Words behind
// the name, as in "git clean", are the first arguments that are no options.
// Upper and lower case are the same in names, as they are to some systems.
func (l *Line) Runs(command string) bool {
	words := strings.Fields(command)
	return len(words) > 0 && slices.ContainsFunc(l.Commands, func(c Command) bool { return c.runs(words) })
}

// MayRun reports whether a command was found or can't be ruled out.
func (l *Line) MayRun(command string) bool { return l.Unresolved || l.Runs(command) }

// Command is one command with its arguments. What of a word is not known, such
// as a variable of the environment, stands as it is written.
type Command struct {
	// Name is the last part of Path, the word that was given as the command.
	Name string
	Path string
	// Args are the words behind it, without quotes.
	Args []string
	// Open says that there may be options which Args does not show: a word is
	// not known, or more words come from input.
	Open bool
	// Text is the name and the arguments, joined by blanks. Source is the same as
	// it stands in the line, or "" where it does not stand there by itself.
	Text   string
	Source string
}

// longFlags are the long forms of short options that mean the same to most
// programs.
var longFlags = [...]struct{ short, long string }{
	{"r", "recursive"}, {"R", "recursive"}, {"f", "force"}, {"a", "all"}, {"n", "dry-run"}, {"v", "verbose"}, {"q", "quiet"},
	{"i", "interactive"}, {"y", "yes"}, {"m", "message"}, {"o", "output"}, {"h", "help"}, {"u", "user"}, {"x", "exec"},
}

// Flag reports whether an option is among the arguments. A letter is looked for
// alone and in a bundle such as -rf, and so is its usual long form; a long name
// also in short: "r", "R" and "recursive" are one option. A long option may be
// cut short, have a value behind "=", or have a single dash, as find's -delete.
func (c *Command) Flag(name string) bool {
	name = strings.TrimLeft(name, "-")
	if name == "" {
		return false
	}
	shorts, longs := flagForms(name)
	for _, arg := range c.Args {
		if arg == "--" {
			return false
		}
		if c.isFlag(arg, shorts, longs) {
			return true
		}
	}
	return false
}

// MayFlag reports whether an option was found or can't be ruled out.
func (c *Command) MayFlag(name string) bool { return c.Open || c.Flag(name) }

// flagForms returns the letters and the long names that mean one option.
func flagForms(name string) (shorts string, longs []string) {
	if len(name) == 1 {
		shorts = name
		for _, f := range longFlags {
			if f.short == name {
				longs = append(longs, f.long)
			}
		}
	} else {
		longs = []string{name}
	}
	for _, f := range longFlags {
		if slices.Contains(longs, f.long) && !strings.Contains(shorts, f.short) {
			shorts += f.short
		}
	}
	return shorts, longs
}

func (c *Command) isFlag(arg, shorts string, longs []string) bool {
	if len(arg) < 2 || arg[0] != '-' {
		return false
	}
	word, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	for _, long := range longs {
		if word == long || strings.HasPrefix(arg, "--") && word != "" && strings.HasPrefix(long, word) {
			return true
		}
	}
	if arg[1] == '-' {
		return false
	}
	if c.Name == "find" { // its options are words behind one dash
		return len(word) == 1 && strings.Contains(shorts, word)
	}
	return strings.ContainsAny(word, shorts)
}

func (c *Command) runs(words []string) bool {
	if !strings.EqualFold(c.Name, words[0][strings.LastIndexByte(words[0], '/')+1:]) {
		return false
	}
	words = words[1:]
	for i := 0; i < len(c.Args) && len(words) > 0; i++ {
		switch arg := c.Args[i]; {
		case arg == words[0]:
			words = words[1:]
		case strings.HasPrefix(arg, "-"):
			if c.Name == "git" && gitOptions.takesValue(arg) {
				i++
			}
		default:
			return false
		}
	}
	return len(words) == 0
}
