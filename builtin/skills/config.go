// Package skills offers skills to models: folders with a file SKILL.md, whose
// front matter says what the skill is good for. A model gets the index, and
// reads the file of a skill when it needs it.
package skills

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/builtin"
)

// config is the config of [Skills].
type config struct {
	// Folders hold skills, one in each of their folders; or are one.
	Folders []string `json:"folders"`
	// Intro begins the index; empty means the built-in text.
	Intro string `json:"intro"`
	// MaxSkills and MaxBytes bound the index.
	MaxSkills int `json:"max_skills"`
	MaxBytes  int `json:"max_bytes"`
	// Always gives the index with every request, not once per session.
	Always bool `json:"always"`
}

const (
	defaultSkills = 100
	mostSkills    = 1000
	defaultBytes  = 16 << 10
	leastBytes    = 1 << 10
	mostBytes     = 256 << 10
	maxIntro      = 4 << 10
)

//go:embed schema.json
var schema string

// Schema returns the JSON Schema of the config.
func Schema() []byte { return []byte(schema) }

// Validate reports what is wrong in the config of [Skills]. It opens no folder.
// The error is a *[builtin.ConfigError].
func Validate(config jsontext.Value) error {
	_, err := readConfig(config)
	return err
}

func readConfig(raw jsontext.Value) (*config, error) {
	c := &config{MaxSkills: defaultSkills, MaxBytes: defaultBytes}
	if err := builtin.ReadConfig(raw, c); err != nil {
		return nil, err
	}
	switch {
	case len(c.Folders) == 0:
		return nil, problem("/folders", "is missing: the folders that hold skills")
	case c.MaxSkills < 1 || c.MaxSkills > mostSkills:
		return nil, problem("/max_skills", "expected 1 to %d, got %d", mostSkills, c.MaxSkills)
	case c.MaxBytes < leastBytes || c.MaxBytes > mostBytes:
		return nil, problem("/max_bytes", "expected %d to %d, got %d", leastBytes, mostBytes, c.MaxBytes)
	case len(c.Intro) > maxIntro:
		return nil, problem("/intro", "has %d bytes, %d at most", len(c.Intro), maxIntro)
	}
	for i, folder := range c.Folders {
		if strings.TrimSpace(folder) == "" {
			return nil, problem("/folders/"+strconv.Itoa(i), "is empty")
		}
	}
	return c, nil
}

func problem(pointer, format string, args ...any) error {
	return &builtin.ConfigError{Pointer: pointer, Err: fmt.Errorf(format, args...)}
}
