package text

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/hookd/hookd/builtin"
)

// Allow is a list of values that are left alone. The zero value is empty.
type Allow struct {
	values   map[string]bool
	patterns []*regexp.Regexp
}

// NewAllow reads a list: a text is a value, upper and lower case the same;
// "/…/" is an unanchored RE2 pattern. Errors are *[builtin.ConfigError] below
// pointer.
func NewAllow(pointer string, list []string) (*Allow, error) {
	a := &Allow{values: map[string]bool{}}
	for i, text := range list {
		at := pointer + "/" + strconv.Itoa(i)
		switch {
		case text == "":
			return nil, &builtin.ConfigError{Pointer: at, Err: fmt.Errorf("is empty: name a value, or a /pattern/")}
		case text == "//":
			return nil, &builtin.ConfigError{Pointer: at, Err: fmt.Errorf("the pattern // allows everything: switch the hook off instead")}
		case len(text) > 2 && text[0] == '/' && text[len(text)-1] == '/':
			re, err := Pattern(at, text[1:len(text)-1])
			if err != nil {
				return nil, err
			}
			a.patterns = append(a.patterns, re)
		default:
			a.values[allowForm(text)] = true
		}
	}
	return a, nil
}

// Has reports whether a value is allowed, in one of its spellings.
func (a *Allow) Has(spellings ...string) bool {
	if len(a.values) == 0 && len(a.patterns) == 0 {
		return false
	}
	for _, s := range spellings {
		if a.values[allowForm(s)] {
			return true
		}
		for _, re := range a.patterns {
			if re.MatchString(s) {
				return true
			}
		}
	}
	return false
}

func allowForm(s string) string { return strings.ToLower(Fold(s).Text) }

// Pattern compiles an RE2 pattern of a config. The error is a
// *[builtin.ConfigError] at pointer.
func Pattern(pointer, pattern string) (*regexp.Regexp, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, &builtin.ConfigError{Pointer: pointer, Err: fmt.Errorf("bad regular expression /%s/: %w", pattern, err)}
	}
	return re, nil
}
