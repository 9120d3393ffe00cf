// Package messages holds rules over the list of messages that goes to a model:
// which are dropped, how many there may be, in which order they stand, and what
// must be among them.
package messages

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/builtin"
	"github.com/hookd/hookd/builtin/conversation"
	"github.com/hookd/hookd/protocol"
)

// config is the config of [Messages].
type config struct {
	// Rules are applied in order, each to what the one before has left.
	Rules []ruleConfig `json:"rules"`
}

type ruleConfig struct {
	Action string `json:"action"`
	// Roles and Content say which messages drop and require mean: of one of these
	// roles, with this text or /pattern/ in it.
	Roles   []string `json:"roles"`
	Content string   `json:"content"`
	// Messages and Tokens are what cap leaves at most; 0 is no limit.
	Messages int `json:"messages"`
	Tokens   int `json:"tokens"`
	// Reason is what require says when it denies.
	Reason string `json:"reason"`
}

// The actions.
const (
	drop    = "drop"
	limit   = "cap"
	reorder = "reorder"
	require = "require"
)

func actions() []string { return []string{drop, limit, reorder, require} }

const most = 100_000_000

//go:embed schema.json
var schema string

// Schema returns the JSON Schema of the config.
func Schema() []byte { return []byte(schema) }

// Validate reports what is wrong in the config of [Messages]. The error is a
// *[builtin.ConfigError].
func Validate(config jsontext.Value) error {
	_, err := readConfig(config)
	return err
}

// rule is a rule that was read.
type rule struct {
	ruleConfig
	number  int
	pattern *regexp.Regexp // nil when Content is a plain text
}

func readConfig(raw jsontext.Value) ([]*rule, error) {
	c := config{}
	if err := builtin.ReadConfig(raw, &c); err != nil {
		return nil, err
	}
	var rules []*rule
	for i := range c.Rules {
		r := &rule{ruleConfig: c.Rules[i], number: i + 1}
		if err := r.read("/rules/" + strconv.Itoa(i)); err != nil {
			return nil, err
		}
		rules = append(rules, r)
	}
	return rules, nil
}

func (r *rule) read(at string) error {
	chooses := r.Action == drop || r.Action == require
	switch {
	case r.Action == "":
		return problem(at+"/action", "is missing: one of %s", strings.Join(actions(), ", "))
	case !slices.Contains(actions(), r.Action):
		return problem(at+"/action", "unknown action %q, one of %s%s", r.Action, strings.Join(actions(), ", "), protocol.DidYouMean(r.Action, actions()))
	case !chooses && len(r.Roles) > 0:
		return problem(at+"/roles", "goes with drop and require only")
	case !chooses && r.Content != "":
		return problem(at+"/content", "goes with drop and require only")
	case r.Action != limit && r.Messages != 0:
		return problem(at+"/messages", "goes with cap only")
	case r.Action != limit && r.Tokens != 0:
		return problem(at+"/tokens", "goes with cap only")
	case r.Action != require && r.Reason != "":
		return problem(at+"/reason", "goes with require only")
	case chooses && len(r.Roles) == 0 && r.Content == "":
		return problem(at, "says of no message which is meant: give roles, content or both")
	case r.Messages < 0 || r.Messages > most:
		return problem(at+"/messages", "expected 1 to %d", most)
	case r.Tokens < 0 || r.Tokens > most:
		return problem(at+"/tokens", "expected 1 to %d", most)
	case r.Action == limit && r.Messages == 0 && r.Tokens == 0:
		return problem(at, "limits nothing: give messages, tokens or both")
	}
	if i := slices.Index(r.Roles, ""); i >= 0 {
		return problem(at+"/roles/"+strconv.Itoa(i), "is empty")
	}
	if n := len(r.Content); n >= 2 && r.Content[0] == '/' && r.Content[n-1] == '/' {
		if n == 2 {
			return problem(at+"/content", "the pattern // means every message: use roles")
		}
		var err error
		if r.pattern, err = regexp.Compile(r.Content[1 : n-1]); err != nil {
			return problem(at+"/content", "bad regular expression: %w", err)
		}
	}
	return nil
}

// means reports whether a rule is about a message.
func (r *rule) means(m *conversation.Message) bool {
	switch {
	case len(r.Roles) > 0 && !slices.Contains(r.Roles, m.Role):
		return false
	case r.pattern != nil:
		return r.pattern.MatchString(m.Texts())
	}
	return r.Content == "" || strings.Contains(m.Texts(), r.Content)
}

func problem(pointer, format string, args ...any) error {
	return &builtin.ConfigError{Pointer: pointer, Err: fmt.Errorf(format, args...)}
}
