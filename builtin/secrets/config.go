// Package secrets finds keys, tokens and passwords in what people, models and
// tools say, and denies, replaces, masks or hashes them; and it watches over
// canaries: strings that must never come out. How secrets look is known from the
// rules of gitleaks and some of our own.
package secrets

import (
	"cmp"
	_ "embed"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/builtin"
	"github.com/hookd/hookd/builtin/text"
	"github.com/hookd/hookd/protocol"
)

// config is the config of a [Secrets].
type config struct {
	// Strategy is that of all rules that Rules does not name.
	Strategy text.Strategy `json:"strategy"`
	// Rules says it by the name of a rule, or by a glob. A name comes before
	// globs, a longer glob before a shorter one.
	Rules map[string]text.Strategy `json:"rules"`
	// BeforeTool is what happens to a tool's arguments that hold a secret. A rule
	// whose strategy is block blocks here too.
	BeforeTool argumentStrategy `json:"before_tool"`
	// Label stands in the place of secrets; {rule} in it becomes the rule's name.
	Label string `json:"label"`
	// Allow lists values, and patterns between slashes, that are left alone.
	Allow []string `json:"allow"`
	// Custom are rules beside the built-in ones.
	Custom []customRule `json:"custom"`
	// Canaries must never come out.
	Canaries []string `json:"canaries"`
	// CanariesEnv names environment variables of hookd that hold canaries.
	CanariesEnv []string `json:"canaries_env"`
	// CanariesFile is a file with a canary in each line.
	CanariesFile string `json:"canaries_file"`
	text.KeyConfig
}

// argumentStrategy is a [text.Strategy], or ask: let people approve the call.
type argumentStrategy string

const ask argumentStrategy = "ask"

type customRule struct {
	ID string `json:"id"`
	// Regex finds the secret: its first group, or all of it.
	Regex string `json:"regex"`
	// Keywords: one of them stands in every text with such a secret. None:
	// every text is searched.
	Keywords []string `json:"keywords"`
	// Entropy is how random a secret looks at least, in bits per character.
	Entropy float64 `json:"entropy"`
}

//go:embed schema.json
var schema string

// Schema returns the JSON Schema of the config.
func Schema() []byte { return []byte(schema) }

// Validate reports what is wrong in the config of a [Secrets]. All of it is
// optional: no config means that every secret is replaced by a label, and that a
// tool's arguments with one are denied. It opens no file and reads no
// environment. The error is a *[builtin.ConfigError].
func Validate(config jsontext.Value) error {
	_, err := readSetup(config)
	return err
}

// RuleNames returns the names of the built-in rules, sorted.
func RuleNames() []string {
	rules, _ := builtinRules() // embedded: can be read
	var names []string
	for _, r := range rules {
		names = append(names, r.id)
	}
	slices.Sort(names)
	return names
}

func problem(pointer, format string, args ...any) error {
	return &builtin.ConfigError{Pointer: pointer, Err: fmt.Errorf(format, args...)}
}

// setup is a config that has been checked, with its rules.
type setup struct {
	*config
	rules []*rule
	with  []text.Strategy // by rule
	allow *text.Allow
}

func readSetup(raw jsontext.Value) (*setup, error) {
	c := &config{Strategy: text.Redact, BeforeTool: argumentStrategy(text.Block), Label: "[密钥:{rule}]"}
	if err := builtin.ReadConfig(raw, c); err != nil {
		return nil, err
	}
	if err := c.Strategy.Check(); err != nil {
		return nil, problem("/strategy", "%w", err)
	}
	if list := append(text.Strategies(), string(ask)); !slices.Contains(list, string(c.BeforeTool)) {
		return nil, problem("/before_tool", "unknown strategy %q, one of %s%s", c.BeforeTool, strings.Join(list, ", "), protocol.DidYouMean(string(c.BeforeTool), list))
	}
	if err := text.CheckLabel(c.Label); err != nil {
		return nil, problem("/label", "%w", err)
	}
	if err := c.KeyConfig.Validate(); err != nil {
		return nil, err
	}
	if err := c.checkCanaries(); err != nil {
		return nil, err
	}
	s := &setup{config: c}
	var err error
	if s.allow, err = text.NewAllow("/allow", c.Allow); err != nil {
		return nil, err
	}
	if s.rules, err = builtinRules(); err != nil {
		return nil, err
	}
	if err := s.addCustom(); err != nil {
		return nil, err
	}
	return s, s.setStrategies()
}

func (c *config) checkCanaries() error {
	for i, value := range c.Canaries {
		if err := checkCanary(value); err != nil {
			return problem("/canaries/"+strconv.Itoa(i), "%w", err)
		}
	}
	for i, name := range c.CanariesEnv {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return problem("/canaries_env/"+strconv.Itoa(i), "%q can't be the name of an environment variable", name)
		}
	}
	return nil
}

// checkCanary never names the canary.
func checkCanary(value string) error {
	if len(text.Fold(value).Text) < minCanary {
		return fmt.Errorf("a canary of fewer than %d bytes would be found everywhere", minCanary)
	}
	return nil
}

// addCustom checks the rules of the config and puts them first.
func (s *setup) addCustom() error {
	for i, from := range s.Custom {
		at := "/custom/" + strconv.Itoa(i)
		switch {
		case from.ID == "" || strings.ContainsAny(from.ID, "*?"):
			return problem(at+"/id", "%q can't be the name of a rule", from.ID)
		case slices.ContainsFunc(s.rules, func(r *rule) bool { return r.id == from.ID }):
			return problem(at+"/id", "there is a rule %q already", from.ID)
		case from.Regex == "":
			return problem(at+"/regex", "is missing")
		case slices.Contains(from.Keywords, ""):
			return problem(at+"/keywords/"+strconv.Itoa(slices.Index(from.Keywords, "")), "is empty")
		case from.Entropy < 0:
			return problem(at+"/entropy", "must not be negative")
		}
		re, err := text.Pattern(at+"/regex", adapt(from.Regex))
		if err != nil {
			return err
		}
		if re.MatchString("") {
			return problem(at+"/regex", "matches no text at all, and with it every text")
		}
		s.rules = append(s.rules, newRule(fileRule{ID: from.ID, Regex: from.Regex, Keywords: from.Keywords, Entropy: from.Entropy}, rankOwn))
	}
	return nil
}

// setStrategies finds the strategy of each rule.
func (s *setup) setStrategies() error {
	var globs []string
	for name, strategy := range s.Rules {
		at := "/rules/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
		if err := strategy.Check(); err != nil {
			return problem(at, "%w", err)
		}
		if strings.ContainsAny(name, "*?") {
			globs = append(globs, name)
		}
		if !slices.ContainsFunc(s.rules, func(r *rule) bool { return protocol.Glob(name, r.id) }) {
			var names []string
			for _, r := range s.rules {
				names = append(names, r.id)
			}
			return problem(at, "no rule has the name %q%s", name, protocol.DidYouMean(name, names))
		}
	}
	slices.SortFunc(globs, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	for _, r := range s.rules {
		strategy, named := s.Rules[r.id]
		if !named {
			strategy = s.Strategy
			if i := slices.IndexFunc(globs, func(g string) bool { return protocol.Glob(g, r.id) }); i >= 0 {
				strategy = s.Rules[globs[i]]
			}
		}
		s.with = append(s.with, strategy)
	}
	return nil
}

// maxCanaries bounds what every text is searched for.
const (
	maxCanaries   = 1000
	maxCanaryFile = 1 << 20
)

// loadCanaries returns the canaries of the config, its environment and its file.
func (c *config) loadCanaries(folder string) ([]string, error) {
	list := slices.Clone(c.Canaries)
	for i, name := range c.CanariesEnv {
		value := os.Getenv(name)
		if err := checkCanary(value); err != nil {
			return nil, problem("/canaries_env/"+strconv.Itoa(i), "the environment variable %s of hookd must hold a canary of %d bytes at least", name, minCanary)
		}
		list = append(list, value)
	}
	if c.CanariesFile != "" {
		more, err := c.readCanaries(folder)
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	if len(list) > maxCanaries {
		return nil, problem("", "%d canaries are too many, %d at most", len(list), maxCanaries)
	}
	return list, nil
}

// readCanaries reads the file.
func (c *config) readCanaries(folder string) (list []string, err error) {
	data, err := text.ReadFile(folder, c.CanariesFile, maxCanaryFile)
	if err != nil {
		return nil, problem("/canaries_file", "%w", err)
	}
	for i, line := range strings.Split(string(data), "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		if err := checkCanary(line); err != nil {
			return nil, problem("/canaries_file", "line %d: %w", i+1, err)
		}
		list = append(list, line)
	}
	return list, nil
}
