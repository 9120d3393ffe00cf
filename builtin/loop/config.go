// Package loop stops agents that go in circles: the same tool call again and
// again.
package loop

import (
	_ "embed"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/builtin"
	"github.com/hookd/hookd/hook"
)

// config is the config of a [Guard].
type config struct {
	// Warn and Deny are how often a call is made in a row before something is
	// said, and before it is refused; 0 switches that off.
	Warn int `json:"warn"`
	Deny int `json:"deny"`
	// Except lists tools that may be called again and again.
	Except []string `json:"except"`
}

const (
	defaultWarn = 3
	defaultDeny = 5
	most        = 1_000_000
)

//go:embed schema.json
var schema string

// Schema returns the JSON Schema of the config.
func Schema() []byte { return []byte(schema) }

// Validate reports what is wrong in the config of a [Guard]. All of it is
// optional. The error is a *[builtin.ConfigError].
func Validate(config jsontext.Value) error {
	_, _, err := readConfig(config)
	return err
}

func readConfig(raw jsontext.Value) (*config, hook.Match, error) {
	c := &config{Warn: defaultWarn, Deny: defaultDeny}
	if err := builtin.ReadConfig(raw, c); err != nil {
		return nil, hook.Match{}, err
	}
	for i, n := range []int{c.Warn, c.Deny} {
		if n < 0 || n == 1 || n > most {
			return nil, hook.Match{}, problem([]string{"/warn", "/deny"}[i], "expected 0 (off) or 2 to %d, got %d", most, n)
		}
	}
	except, err := hook.NewMatch(c.Except, nil)
	if err != nil {
		bad, _ := errors.AsType[*hook.MatchError](err)
		return nil, hook.Match{}, problem("/except"+bad.Path[len("tools"):], "%w", bad.Err)
	}
	return c, except, nil
}

func problem(pointer, format string, args ...any) error {
	return &builtin.ConfigError{Pointer: pointer, Err: fmt.Errorf(format, args...)}
}
