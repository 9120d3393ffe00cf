// Package inputguard looks at what a user says before anybody acts on it: how
// long it is, whether it holds words that are not wanted, and whether it tries
// to talk the model out of its instructions.
package inputguard

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/builtin"
	"github.com/hookd/hookd/builtin/text"
	"github.com/hookd/hookd/protocol"
)

// action is what a rule does when it holds.
type action string

const (
	warn action = "warn" // the message passes, with a warning
	deny action = "deny"
	off  action = "off" // the rule is not looked at
)

// config is the config of a [Guard].
type config struct {
	// MaxLength is how many characters a message may have; 0 means any number.
	MaxLength int `json:"max_length"`
	// MaxLengthAction is what happens to a longer one.
	MaxLengthAction action `json:"max_length_action"`
	// DenyWords and WarnWords are words that are not wanted. A * at an end stands
	// for more of the same word.
	DenyWords []string `json:"deny_words"`
	WarnWords []string `json:"warn_words"`
	// DenyWordsFile is a file with such a word in each line.
	DenyWordsFile string `json:"deny_words_file"`
	// Injection is what the built-in rules do that Rules does not name.
	Injection action `json:"injection"`
	// Rules says it by the name of a built-in rule, or by a glob.
	Rules map[string]action `json:"rules"`
	// Patterns are rules beside the built-in ones.
	Patterns []customPattern `json:"patterns"`
}

type customPattern struct {
	ID      string `json:"id"`
	Pattern string `json:"pattern"`
	Action  action `json:"action"`
	// Reason says for people what was found.
	Reason string `json:"reason"`
}

//go:embed schema.json
var schema string

// Schema returns the JSON Schema of the config.
func Schema() []byte { return []byte(schema) }

// Validate reports what is wrong in the config of a [Guard]. All of it is
// optional: no config means that what looks like a prompt injection gets a
// warning. It opens no file. The error is a *[builtin.ConfigError].
func Validate(config jsontext.Value) error {
	_, err := newRules(config)
	return err
}

func problem(pointer, format string, args ...any) error {
	return &builtin.ConfigError{Pointer: pointer, Err: fmt.Errorf(format, args...)}
}

// check reports whether a is one of these.
func (a action) check(pointer string, actions ...action) error {
	if slices.Contains(actions, a) {
		return nil
	}
	var list []string
	for _, known := range actions {
		list = append(list, string(known))
	}
	return problem(pointer, "unknown action %q, one of %s%s", a, strings.Join(list, ", "), protocol.DidYouMean(string(a), list))
}

// rules are a config that has been checked, with the rules that are not off.
type rules struct {
	*config
	list  []*rule
	words []*word
}

func newRules(raw jsontext.Value) (*rules, error) {
	c := &config{MaxLengthAction: deny, Injection: warn}
	if err := builtin.ReadConfig(raw, c); err != nil {
		return nil, err
	}
	if c.MaxLength < 0 {
		return nil, problem("/max_length", "must not be negative; 0 means any length")
	}
	if err := c.MaxLengthAction.check("/max_length_action", warn, deny); err != nil {
		return nil, err
	}
	if err := c.Injection.check("/injection", warn, deny, off); err != nil {
		return nil, err
	}
	r := &rules{config: c}
	if err := r.addWords("/deny_words", c.DenyWords, deny); err != nil {
		return nil, err
	}
	if err := r.addWords("/warn_words", c.WarnWords, warn); err != nil {
		return nil, err
	}
	if err := r.addBuiltin(); err != nil {
		return nil, err
	}
	return r, r.addCustom()
}

func (r *rules) addWords(pointer string, list []string, then action) error {
	for i, text := range list {
		w, err := newWord(text, then)
		if err != nil {
			return problem(pointer+"/"+strconv.Itoa(i), "%w", err)
		}
		r.words = append(r.words, w)
	}
	return nil
}

// addBuiltin takes those of the embedded rules that are not off.
func (r *rules) addBuiltin() error {
	embedded, err := embeddedRules()
	if err != nil {
		return err
	}
	names := RuleNames()
	var globs []string
	for name, then := range r.Rules {
		at := "/rules/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
		if err := then.check(at, warn, deny, off); err != nil {
			return err
		}
		if !slices.ContainsFunc(names, func(known string) bool { return protocol.Glob(name, known) }) {
			return problem(at, "no rule has the name %q%s", name, protocol.DidYouMean(name, names))
		}
		if strings.ContainsAny(name, "*?") {
			globs = append(globs, name)
		}
	}
	slices.SortFunc(globs, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	for _, rule := range embedded {
		then, named := r.Rules[rule.id]
		if !named {
			then = r.Injection
			if i := slices.IndexFunc(globs, func(g string) bool { return protocol.Glob(g, rule.id) }); i >= 0 {
				then = r.Rules[globs[i]]
			}
		}
		if rule.then = then; then != off {
			r.list = append(r.list, rule)
		}
	}
	return nil
}

func (r *rules) addCustom() error {
	names := RuleNames()
	for i, from := range r.Patterns {
		at := "/patterns/" + strconv.Itoa(i)
		if from.ID == "" || strings.ContainsAny(from.ID, "*?") {
			return problem(at+"/id", "%q can't be the name of a rule", from.ID)
		}
		if slices.Contains(names, from.ID) {
			return problem(at+"/id", "there is a rule %q already", from.ID)
		}
		names = append(names, from.ID)
		if from.Pattern == "" {
			return problem(at+"/pattern", "is missing")
		}
		then := cmp.Or(from.Action, deny)
		if err := then.check(at+"/action", warn, deny); err != nil {
			return err
		}
		re, err := text.Pattern(at+"/pattern", "(?i)"+from.Pattern)
		if err != nil {
			return err
		}
		r.list = append(r.list, &rule{id: from.ID, about: cmp.Or(from.Reason, "it is not allowed here"), then: then, matches: re.MatchString})
	}
	return nil
}

const maxWordFile = 4 << 20

// loadWords reads the file of words.
func (r *rules) loadWords(folder string) error {
	if r.DenyWordsFile == "" {
		return nil
	}
	data, err := text.ReadFile(folder, r.DenyWordsFile, maxWordFile)
	if err != nil {
		return problem("/deny_words_file", "%w", err)
	}
	for i, line := range strings.Split(string(data), "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		w, err := newWord(line, deny)
		if err != nil {
			return problem("/deny_words_file", "line %d: %w", i+1, err)
		}
		r.words = append(r.words, w)
	}
	return nil
}
