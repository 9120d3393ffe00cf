// Package summarize keeps conversations short: when one has become too long for
// a model, a summary takes the place of its middle.
package summarize

import (
	_ "embed"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/builtin"
	"github.com/hookd/hookd/protocol"
)

// config is the config of a [Summarizer].
type config struct {
	// Threshold is how many tokens a conversation has at most.
	Threshold int `json:"threshold"`
	// KeepLast is how many of the last messages stay.
	KeepLast int `json:"keep_last"`
	// Command is a program that reads the prompt and prints the summary.
	Command []string `json:"command"`
	// Endpoint is a model that is asked instead.
	Endpoint endpoint `json:"endpoint"`
	// Prompt takes the place of the built-in one; empty means that.
	Prompt string `json:"prompt"`
	// Role is that of the message which holds the summary.
	Role string `json:"role"`
}

// endpoint is a chat/completions endpoint as OpenAI has it.
type endpoint struct {
	URL   string `json:"url"`
	Model string `json:"model"`
	// APIKeyEnv and APIKeyFile say where the key is; both empty means none.
	APIKeyEnv  string `json:"api_key_env"`
	APIKeyFile string `json:"api_key_file"`
}

const (
	defaultThreshold = 80_000
	minThreshold     = 1000
	maxThreshold     = 100_000_000
	defaultKeep      = 10
	maxKeep          = 100_000
)

//go:embed schema.json
var schema string

// Schema returns the JSON Schema of the config.
func Schema() []byte { return []byte(schema) }

// Validate reports what is wrong in the config of a [Summarizer]. It starts and
// opens nothing. The error is a *[builtin.ConfigError].
func Validate(config jsontext.Value) error {
	_, err := readConfig(config)
	return err
}

func readConfig(raw jsontext.Value) (*config, error) {
	c := &config{Threshold: defaultThreshold, KeepLast: defaultKeep, Role: "user"}
	if err := builtin.ReadConfig(raw, c); err != nil {
		return nil, err
	}
	switch {
	case c.Threshold < minThreshold || c.Threshold > maxThreshold:
		return nil, problem("/threshold", "expected %d to %d tokens, got %d", minThreshold, maxThreshold, c.Threshold)
	case c.KeepLast < 1 || c.KeepLast > maxKeep:
		return nil, problem("/keep_last", "expected 1 to %d messages, got %d", maxKeep, c.KeepLast)
	case c.Role != "user" && c.Role != "system":
		return nil, problem("/role", "unknown role %q, one of user, system%s", c.Role, protocol.DidYouMean(c.Role, []string{"user", "system"}))
	case len(c.Command) == 0 && c.Endpoint == endpoint{}:
		return nil, problem("", "give a command or an endpoint that makes the summaries; to leave messages out without one, use the built-in messages")
	case len(c.Command) > 0 && c.Endpoint != endpoint{}:
		return nil, problem("", "command and endpoint: give one of them")
	case len(c.Command) > 0 && c.Command[0] == "":
		return nil, problem("/command/0", "is empty: the program's name")
	case len(c.Command) > 0:
		return c, nil
	}
	return c, c.Endpoint.check()
}

func (e *endpoint) check() error {
	u, err := url.Parse(e.URL)
	switch {
	case e.URL == "":
		return problem("/endpoint/url", "is missing")
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return problem("/endpoint/url", "expected http://… or https://…")
	case u.User != nil:
		return problem("/endpoint/url", "holds a password: use api_key_env or api_key_file")
	case e.Model == "":
		return problem("/endpoint/model", "is missing")
	case e.APIKeyEnv != "" && e.APIKeyFile != "":
		return problem("/endpoint", "api_key_env and api_key_file: give one of them")
	case e.keyed() && u.Scheme == "http" && !loopback(u.Hostname()):
		return problem("/endpoint/url", "would send the key in the clear: use https")
	}
	return nil
}

func (e *endpoint) keyed() bool { return e.APIKeyEnv != "" || e.APIKeyFile != "" }

func loopback(host string) bool {
	return strings.EqualFold(host, "localhost") || net.ParseIP(host).IsLoopback()
}

func problem(pointer, format string, args ...any) error {
	return &builtin.ConfigError{Pointer: pointer, Err: fmt.Errorf(format, args...)}
}
