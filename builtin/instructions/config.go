// Package instructions gives texts to models: rules of a house, notes on a
// project, whatever every agent is to know.
package instructions

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/builtin"
	"github.com/hookd/hookd/condition"
	"github.com/hookd/hookd/protocol"
)

// config is the config of [Instructions].
type config struct {
	Instructions []itemConfig `json:"instructions"`
}

type itemConfig struct {
	// Text is given as it is, or what File holds; one of them is set.
	Text string `json:"text"`
	File string `json:"file"`
	// If is the condition under which it is given; empty means always.
	If string `json:"if"`
	// At lists the stages; empty means inject_instructions.
	At []string `json:"at"`
	// Once gives it once per session.
	Once bool `json:"once"`
}

// maxText is how many bytes a text has at most.
const maxText = 64 << 10

func stageNames() []string {
	return []string{string(protocol.StageInjectInstructions), string(protocol.StageBeforeLLM)}
}

//go:embed schema.json
var schema string

// Schema returns the JSON Schema of the config.
func Schema() []byte { return []byte(schema) }

// Validate reports what is wrong in the config of [Instructions]. It opens no
// file. The error is a *[builtin.ConfigError].
func Validate(config jsontext.Value) error {
	_, err := readConfig(config)
	return err
}

func readConfig(raw jsontext.Value) ([]*item, error) {
	c := config{}
	if err := builtin.ReadConfig(raw, &c); err != nil {
		return nil, err
	}
	var list []*item
	for i := range c.Instructions {
		it, err := newItem(&c.Instructions[i], "/instructions/"+strconv.Itoa(i))
		if err != nil {
			return nil, err
		}
		list = append(list, it)
	}
	return list, nil
}

func newItem(c *itemConfig, at string) (*item, error) {
	it := &item{at: at, text: c.Text, path: c.File, once: c.Once, id: c.Text + "\x00" + c.File + "\x00" + c.If}
	switch {
	case c.Text != "" && c.File != "":
		return nil, problem(at, "text and file: give one of them")
	case strings.TrimSpace(c.Text) == "" && c.File == "":
		return nil, problem(at, "says nothing: give a text or a file")
	case len(c.Text) > maxText:
		return nil, problem(at+"/text", "has %d bytes, %d at most", len(c.Text), maxText)
	}
	if len(c.At) == 0 {
		c.At = stageNames()[:1]
	}
	for i, name := range c.At {
		if !slices.Contains(stageNames(), name) {
			return nil, problem(at+"/at/"+strconv.Itoa(i), "unknown stage %q, one of %s%s", name, strings.Join(stageNames(), ", "), protocol.DidYouMean(name, stageNames()))
		}
		it.stages = append(it.stages, protocol.Stage(name))
	}
	if strings.TrimSpace(c.If) != "" {
		var err error
		if it.when, err = condition.Compile(c.If); err != nil {
			return nil, problem(at+"/if", "%w", err)
		}
	}
	return it, nil
}

func problem(pointer, format string, args ...any) error {
	return &builtin.ConfigError{Pointer: pointer, Err: fmt.Errorf(format, args...)}
}
