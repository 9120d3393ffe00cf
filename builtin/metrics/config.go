// Package metrics counts what hookd does, for Prometheus: calls and answers,
// hooks, tokens and steps, approvals, the record. It also keeps the figures of
// each session that is at work.
//
// [Meter] counts and outlives reloads of the config; a mounted [Hook] turns it
// on. This is the only room that knows the Prometheus library.
package metrics

import (
	_ "embed"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/builtin"
)

// config is the config of a [Hook].
type config struct {
	// File is where the metrics are written for node_exporter; empty means
	// nowhere.
	File string `json:"file"`
	// FileSeconds is how often.
	FileSeconds *int `json:"file_seconds"`
	// EverySteps is after how many steps of a session a line is logged; 0 means
	// never, and none at its end either.
	EverySteps *int `json:"every_steps"`
	// Agents are names that get a label of their own.
	Agents []string `json:"agents"`
}

const (
	defaultFileSeconds, maxFileSeconds = 15, 3600
	defaultEverySteps                  = 3
	maxAgents, maxAgentBytes           = 64, 128
)

//go:embed schema.json
var schema string

// Schema returns the JSON Schema of the config.
func Schema() []byte { return []byte(schema) }

// Validate reports what is wrong in the config of a [Hook]. It opens nothing.
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
	if c.FileSeconds == nil {
		c.FileSeconds = new(defaultFileSeconds)
	}
	if c.EverySteps == nil {
		c.EverySteps = new(defaultEverySteps)
	}
	switch {
	case *c.FileSeconds < 1 || *c.FileSeconds > maxFileSeconds:
		return nil, problem("/file_seconds", "expected 1 to %d", maxFileSeconds)
	case *c.EverySteps < 0:
		return nil, problem("/every_steps", "expected 0 or more; 0 logs nothing")
	case len(c.Agents) > maxAgents:
		return nil, problem("/agents", "%d names, at most %d: each is a series of its own", len(c.Agents), maxAgents)
	}
	for i, name := range c.Agents {
		if name == "" || len(name) > maxAgentBytes {
			return nil, problem("/agents/"+strconv.Itoa(i), "expected a name of 1 to %d bytes", maxAgentBytes)
		}
	}
	return c, nil
}

func problem(pointer, format string, args ...any) error {
	return &builtin.ConfigError{Pointer: pointer, Err: fmt.Errorf(format, args...)}
}
