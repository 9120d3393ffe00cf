// Package budget holds agents to what they may use: tool calls, model calls,
// tokens, money and time, per session and per day.
package budget

import (
	_ "embed"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/builtin"
	"github.com/hookd/hookd/protocol"
)

// config is the config of a [Budget].
type config struct {
	Session limits `json:"session"`
	Day     limits `json:"day"`
	// Action is what happens when a limit is reached: deny or ask; empty means deny.
	Action string `json:"action"`
	// Prices are tried in order; the first whose model fits counts.
	Prices []price `json:"prices"`
	// Currency is a word for reasons.
	Currency string `json:"currency"`
	// File is where the figures are kept across restarts; empty means nowhere.
	File string `json:"file"`
}

// limits are upper bounds; nil is none.
type limits struct {
	Calls      *int64   `json:"calls"`
	ModelCalls *int64   `json:"model_calls"`
	Tokens     *int64   `json:"tokens"`
	Cost       *float64 `json:"cost"`
	Minutes    *float64 `json:"minutes"`
}

// price is what a million tokens cost.
type price struct {
	Model  string  `json:"model"` // a name or a glob
	Input  float64 `json:"input"`
	Output float64 `json:"output"`
}

const (
	actionAsk  = "ask"
	actionDeny = "deny"
)

//go:embed schema.json
var schema string

// Schema returns the JSON Schema of the config.
func Schema() []byte { return []byte(schema) }

// Validate reports what is wrong in the config of a [Budget]. It opens nothing.
// The error is a *[builtin.ConfigError].
func Validate(config jsontext.Value) error {
	_, err := readConfig(config)
	return err
}

func readConfig(raw jsontext.Value) (*config, error) {
	c := &config{}
	if err := builtin.ReadConfig(raw, c); err != nil {
		return nil, err
	}
	if c.Action == "" {
		c.Action = actionDeny
	}
	if known := []string{actionAsk, actionDeny}; c.Action != actionAsk && c.Action != actionDeny {
		return nil, problem("/action", "unknown action %q, one of %s%s", c.Action, strings.Join(known, ", "), protocol.DidYouMean(c.Action, known))
	}
	for i, scope := range []*limits{&c.Session, &c.Day} {
		if err := scope.check([]string{"/session", "/day"}[i], len(c.Prices) > 0); err != nil {
			return nil, err
		}
	}
	for i, p := range c.Prices {
		at := "/prices/" + strconv.Itoa(i)
		switch {
		case p.Model == "":
			return nil, problem(at+"/model", `is missing: a model's name or a glob; "*" is every model`)
		case !amount(p.Input):
			return nil, problem(at+"/input", "expected 0 or more")
		case !amount(p.Output):
			return nil, problem(at+"/output", "expected 0 or more")
		}
	}
	return c, nil
}

// amount reports whether a number can be a price or a limit.
func amount(n float64) bool { return n >= 0 && !math.IsInf(n, 0) && !math.IsNaN(n) }

func (l *limits) check(at string, priced bool) error {
	for i, n := range []*int64{l.Calls, l.ModelCalls, l.Tokens} {
		if n != nil && *n < 0 {
			return problem(at+[]string{"/calls", "/model_calls", "/tokens"}[i], "expected 0 or more; leave it out for no limit")
		}
	}
	for i, n := range []*float64{l.Cost, l.Minutes} {
		if n != nil && !amount(*n) {
			return problem(at+[]string{"/cost", "/minutes"}[i], "expected 0 or more; leave it out for no limit")
		}
	}
	if l.Cost != nil && !priced {
		return problem(at+"/cost", `needs "prices": without them nothing has a cost`)
	}
	return nil
}

// none reports whether nothing is limited.
func (l *limits) none() bool { return *l == limits{} }

// priceOf returns the price of a model.
func (c *config) priceOf(model string) (price, bool) {
	for _, p := range c.Prices {
		if p.Model == model || protocol.Glob(p.Model, model) {
			return p, true
		}
	}
	return price{}, false
}

func problem(pointer, format string, args ...any) error {
	return &builtin.ConfigError{Pointer: pointer, Err: fmt.Errorf(format, args...)}
}
