package hook

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/hookd/hookd/protocol"
)

// Match narrows which calls and events a hook is asked about. The zero value
// matches everything.
type Match struct {
	tools, agents []pattern
}

// NewMatch compiles patterns. A plain word is an exact name, "|" separates
// alternatives, "*" and "?" are globs, and "/…/" is an unanchored RE2 pattern.
// A word for a tool means the tool also under the names that other agents have
// for it (see [protocol.ToolAliases]), so that a guard of Bash is one of
// run_command too. An empty list matches everything. The error names the list and the place in
// it as a path, such as "tools/1".
func NewMatch(tools, agents []string) (Match, error) {
	var m Match
	var err error
	if m.tools, err = compile("tools", tools); err != nil {
		return Match{}, err
	}
	for i := range m.tools {
		for _, word := range m.tools[i].words {
			m.tools[i].words = append(m.tools[i].words, protocol.ToolAliases(word)...)
		}
	}
	m.agents, err = compile("agents", agents)
	return m, err
}

// HasTools reports whether tool names matter to the match.
func (m Match) HasTools() bool { return len(m.tools) > 0 }

// MatchError says which pattern can't be read.
type MatchError struct {
	// Path is the list and the index in it, such as "tools/1".
	Path string
	Err  error
}

// Error returns the path and the reason.
func (e *MatchError) Error() string { return e.Path + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *MatchError) Unwrap() error { return e.Err }

// Matches reports whether a call is meant. The tool is ignored where there is
// none (isTool false).
func (m Match) Matches(tool string, isTool bool, agent string) bool {
	if isTool && tool != "" && len(m.tools) > 0 && !anyMatches(m.tools, tool) {
		return false
	}
	return len(m.agents) == 0 || anyMatches(m.agents, agent)
}

// pattern is one entry of a list: alternatives of words and globs, or a
// regular expression.
type pattern struct {
	words []string
	globs []string
	re    *regexp.Regexp
}

func compile(list string, texts []string) ([]pattern, error) {
	var out []pattern
	for i, text := range texts {
		p, err := parsePattern(text)
		if err != nil {
			return nil, &MatchError{Path: fmt.Sprintf("%s/%d", list, i), Err: err}
		}
		out = append(out, p)
	}
	return out, nil
}

func parsePattern(text string) (pattern, error) {
	var p pattern
	if len(text) >= 2 && text[0] == '/' && text[len(text)-1] == '/' {
		if text == "//" {
			return p, fmt.Errorf("pattern // is empty; * matches everything")
		}
		re, err := regexp.Compile(text[1 : len(text)-1])
		if err != nil {
			return p, fmt.Errorf("bad regular expression %s: %w", text, err)
		}
		p.re = re
		return p, nil
	}
	for alt := range strings.SplitSeq(text, "|") {
		alt = strings.TrimSpace(alt)
		switch {
		case alt == "":
			return p, fmt.Errorf("pattern %q has an empty alternative", text)
		case strings.ContainsAny(alt, "*?"):
			p.globs = append(p.globs, alt)
		default:
			p.words = append(p.words, alt)
		}
	}
	return p, nil
}

func anyMatches(list []pattern, s string) bool {
	for _, p := range list {
		if p.re != nil && p.re.MatchString(s) {
			return true
		}
		for _, w := range p.words {
			if w == s {
				return true
			}
		}
		for _, g := range p.globs {
			if protocol.Glob(g, s) {
				return true
			}
		}
	}
	return false
}
