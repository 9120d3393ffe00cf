package commands

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// plainWords parts a line into the words that a shell makes of it, with the
// variables whose values are known. It returns nil for a line that is more than
// one plain command, or holds something that only the shell can tell.
func plainWords(line string, known map[string]string) []string {
	var words []string
	var word strings.Builder
	begun := false // a word, also an empty one in quotes
	quote := byte(0)
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case quote == '\'' && c != '\'', quote == '"' && !strings.ContainsRune("\"\\$`", rune(c)):
			word.WriteByte(c)
		case c == quote:
			quote = 0
		case c == '\\':
			i++
			if i == len(line) {
				return nil
			}
			if quote == '"' && !strings.ContainsRune("\"\\$`\n", rune(line[i])) {
				word.WriteByte('\\')
			}
			if line[i] != '\n' {
				word.WriteByte(line[i])
				begun = true
			}
		case c == '$':
			name, size := variable(line[i+1:])
			value, ok := known[name]
			if !ok || quote == 0 && strings.ContainsAny(value, " \t\n*?[\\") {
				return nil
			}
			word.WriteString(value)
			begun = true
			i += size
		case c == '\'' || c == '"':
			quote, begun = c, true
		case c == ' ' || c == '\t':
			if begun {
				words = append(words, word.String())
				word.Reset()
				begun = false
			}
		case c == '~' && !begun:
			if home := known["HOME"]; home == "" || i+1 == len(line) || line[i+1] != '/' {
				return nil
			}
			word.WriteString(known["HOME"])
			begun = true
		case strings.ContainsRune("|&;<>()`*?[]#!{}\n\r", rune(c)):
			return nil
		default:
			word.WriteByte(c)
			begun = true
		}
	}
	if quote != 0 {
		return nil
	}
	if begun {
		words = append(words, word.String())
	}
	return words
}

// variable reads NAME or {NAME} and says how long that is.
func variable(text string) (name string, size int) {
	inner, braced := strings.CutPrefix(text, "{")
	n := 0
	for n < len(inner) && (inner[n] == '_' || inner[n] >= 'A' && inner[n] <= 'Z' || inner[n] >= 'a' && inner[n] <= 'z' || n > 0 && inner[n] >= '0' && inner[n] <= '9') {
		n++
	}
	switch {
	case !braced:
		return inner[:n], n
	case n < len(inner) && inner[n] == '}':
		return inner[:n], n + 2
	}
	return "", 0
}

// interpreter is how a program takes the script that it runs.
type interpreter struct {
	// flags are letters of options that take nothing, valued of those that take
	// the next word. Any other means that nobody can tell.
	flags, valued string
	long          []string // options that take nothing
}

// interpreterNamed knows the programs that hooks are usually run by.
func interpreterNamed(program string) (interpreter, bool) {
	switch strings.TrimRight(filepath.Base(program), "0123456789.") {
	case "python", "pypy":
		return interpreter{flags: "bBdEiIOPqsSuvx", valued: "WX"}, true
	case "sh", "bash", "dash", "ash", "zsh", "ksh":
		return interpreter{flags: "aefhlmuvx", valued: "oO", long: []string{"--norc", "--noprofile", "--posix", "--login"}}, true
	case "node", "php":
		return interpreter{}, true
	case "ruby", "perl":
		return interpreter{flags: "wW"}, true
	}
	return interpreter{}, false
}

// scriptOf returns the script that a command of plain words runs; "" = it runs
// none, or nobody can tell.
func scriptOf(words []string) string {
	assigns := func(word string) bool {
		name, _, ok := strings.Cut(word, "=")
		got, size := variable(name)
		return ok && got != "" && size == len(name)
	}
	for len(words) > 0 && (words[0] == "exec" || words[0] == "command" || assigns(words[0])) {
		words = words[1:]
	}
	if len(words) > 0 && filepath.Base(words[0]) == "env" {
		words = words[1:]
		if len(words) > 0 && words[0] == "-S" {
			words = words[1:]
		}
		for len(words) > 0 && assigns(words[0]) {
			words = words[1:]
		}
	}
	if len(words) == 0 {
		return ""
	}
	how, ok := interpreterNamed(words[0])
	if !ok {
		return ""
	}
	for i := 1; i < len(words); i++ {
		word := words[i]
		switch {
		case word == "--":
			if i+1 < len(words) {
				return words[i+1]
			}
			return ""
		case !strings.HasPrefix(word, "-"):
			return word
		case slices.Contains(how.long, word):
		case len(word) == 2 && strings.Contains(how.valued, word[1:]):
			i++
		case len(word) > 1 && strings.Trim(word[1:], how.flags) == "":
		default:
			return ""
		}
	}
	return ""
}

// missingScript returns the script that a command of plain words runs from a
// folder and that is not there; "" = it is, or nobody can tell.
func missingScript(words []string, dir string) string {
	path := scriptOf(words)
	if path == "" {
		return ""
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return path
	}
	return ""
}
