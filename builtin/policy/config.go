// Package policy holds the table of who may do what: which tool calls run
// without a question, which need a yes, and which are refused.
package policy

import (
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/builtin"
	"github.com/hookd/hookd/condition"
	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// config is the config of a [Policy].
type config struct {
	// Default is the action for calls that no rule is about; empty means approve.
	Default string `json:"default"`
	// Rules are tried in order; the first that is about a call decides.
	Rules []ruleConfig `json:"rules"`
}

// ruleConfig is one row of the table. What it names must all be true of a call.
type ruleConfig struct {
	Tools  []string `json:"tools"`
	Kinds  []string `json:"kinds"`
	If     string   `json:"if"`
	Action string   `json:"action"`
	Reason string   `json:"reason"`
	Risk   string   `json:"risk"`
	// SkipPrompt, with auto, tells the agent that it need not ask its user either.
	SkipPrompt bool `json:"skip_prompt"`
}

// The actions of rules.
const (
	auto    = "auto"
	approve = "approve"
	deny    = "deny"
)

func actions() []string { return []string{auto, approve, deny} }

func risks() []string { return []string{"low", "medium", "high"} }

//go:embed schema.json
var schema string

// Schema returns the JSON Schema of the config.
func Schema() []byte { return []byte(schema) }

// Validate reports what is wrong in the config of a [Policy]. No config means
// that every call needs a yes. The error is a *[builtin.ConfigError].
func Validate(config jsontext.Value) error {
	_, err := New(config)
	return err
}

func problem(pointer, format string, args ...any) error {
	return &builtin.ConfigError{Pointer: pointer, Err: fmt.Errorf(format, args...)}
}

// oneOf checks a word against the ones that there are.
func oneOf(pointer, noun, word string, known []string) error {
	for _, k := range known {
		if k == word {
			return nil
		}
	}
	return problem(pointer, "unknown %s %q, one of %s%s", noun, word, strings.Join(known, ", "), protocol.DidYouMean(word, known))
}

// newRule reads the rule at a place.
func newRule(c *ruleConfig, index int) (*rule, error) {
	at := "/rules/" + strconv.Itoa(index)
	r := &rule{number: index + 1, action: c.Action, reason: c.Reason, risk: c.Risk, skipPrompt: c.SkipPrompt}
	if c.Action == "" {
		return nil, problem(at+"/action", "is missing: one of %s", strings.Join(actions(), ", "))
	}
	if err := oneOf(at+"/action", "action", c.Action, actions()); err != nil {
		return nil, err
	}
	if c.Risk != "" {
		if err := oneOf(at+"/risk", "risk", c.Risk, risks()); err != nil {
			return nil, err
		}
	}
	if c.SkipPrompt && c.Action != auto {
		return nil, problem(at+"/skip_prompt", "goes with the action auto only")
	}
	if len(c.Tools) == 0 && len(c.Kinds) == 0 && strings.TrimSpace(c.If) == "" {
		return nil, problem(at, `is about every call: use "default" for it, or write "tools": ["*"]`)
	}
	if err := r.readTools(at, c.Tools); err != nil {
		return nil, err
	}
	if err := r.readKinds(at, c.Kinds); err != nil {
		return nil, err
	}
	return r, r.readIf(at, c.If)
}

func (r *rule) readTools(at string, tools []string) (err error) {
	r.hasTools = len(tools) > 0
	if r.meant, err = hook.NewMatch(tools, nil); err != nil {
		bad, ok := errors.AsType[*hook.MatchError](err)
		if !ok {
			return problem(at+"/tools", "%w", err)
		}
		return problem(at+"/"+bad.Path, "%w", bad.Err)
	}
	// Names of agents have no aliases, so their list takes names as written.
	r.written, _ = hook.NewMatch(nil, tools)
	for _, text := range tools {
		if len(text) >= 2 && text[0] == '/' && text[len(text)-1] == '/' {
			continue
		}
		for word := range strings.SplitSeq(text, "|") {
			if word = strings.TrimSpace(word); !strings.ContainsAny(word, "*?") {
				r.words = append(r.words, word)
			}
		}
	}
	return nil
}

func (r *rule) readKinds(at string, kinds []string) error {
	var known []string
	for _, k := range protocol.ToolKinds() {
		known = append(known, string(k))
	}
	for i, k := range kinds {
		if err := oneOf(at+"/kinds/"+strconv.Itoa(i), "kind", k, known); err != nil {
			return err
		}
		r.kinds = append(r.kinds, protocol.ToolKind(k))
	}
	return nil
}

func (r *rule) readIf(at, text string) (err error) {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	if r.when, err = condition.Compile(text); err != nil {
		return problem(at+"/if", "%w", err)
	}
	if r.action == auto && r.when.Explain(&protocol.Request{}).Rule {
		return problem(at+"/if", "a permission rule holds as soon as a part of the call is like it, which is too little for auto: name the tool in \"tools\", and write an expression, such as all(shell.commands, .name in ['ls', 'cat']) && !shell.unresolved")
	}
	return nil
}
