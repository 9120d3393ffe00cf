package telemetry

import (
	"bufio"
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/net/http/httpguts"

	"github.com/hookd/hookd/builtin"
	"github.com/hookd/hookd/builtin/text"
)

// config is the config of a [Telemetry].
type config struct {
	// Endpoint is the collector; empty means that nothing is sent.
	Endpoint string `json:"endpoint"`
	// HeadersFile holds headers for the collector, one "Name: value" a line.
	HeadersFile string `json:"headers_file"`
	ServiceName string `json:"service_name"`
	// Sample is the part of the traces that is kept, 0 to 1; nil means all.
	Sample         *float64 `json:"sample"`
	MaxRuns        *int64   `json:"max_runs"`
	MaxRunMinutes  *float64 `json:"max_run_minutes"`
	RunIdleMinutes *float64 `json:"run_idle_minutes"`
	// Reasons writes what hooks gave as reasons into spans.
	Reasons bool `json:"reasons"`
}

const (
	defaultService     = "hookd"
	defaultRuns        = 1000
	defaultRunMinutes  = 60
	defaultIdleMinutes = 10

	mostRuns    = 10_000
	mostMinutes = 7 * 24 * 60
	mostHeaders = 64 << 10 // bytes of a headers file
	tracesPath  = "/v1/traces"
)

//go:embed schema.json
var schema string

// Schema returns the JSON Schema of the config.
func Schema() []byte { return []byte(schema) }

// Validate reports what is wrong in the config of a [Telemetry]. It opens
// nothing. The error is a *[builtin.ConfigError].
func Validate(config jsontext.Value) error {
	_, err := readConfig(config)
	return err
}

func readConfig(raw jsontext.Value) (*config, error) {
	c := &config{}
	if err := builtin.ReadConfig(raw, c); err != nil {
		return nil, err
	}
	if c.ServiceName == "" {
		c.ServiceName = defaultService
	}
	if c.Sample == nil {
		c.Sample = new(1.0)
	}
	if c.MaxRuns == nil {
		c.MaxRuns = new(int64(defaultRuns))
	}
	if c.MaxRunMinutes == nil {
		c.MaxRunMinutes = new(float64(defaultRunMinutes))
	}
	if c.RunIdleMinutes == nil {
		c.RunIdleMinutes = new(float64(defaultIdleMinutes))
	}
	switch {
	case *c.Sample < 0 || *c.Sample > 1:
		return nil, problem("/sample", "expected 0 to 1: the part of the traces that is kept")
	case *c.MaxRuns < 1 || *c.MaxRuns > mostRuns:
		return nil, problem("/max_runs", "expected 1 to %d", mostRuns)
	case *c.MaxRunMinutes <= 0 || *c.MaxRunMinutes > mostMinutes:
		return nil, problem("/max_run_minutes", "expected more than 0, at most %d", mostMinutes)
	case *c.RunIdleMinutes <= 0 || *c.RunIdleMinutes > mostMinutes:
		return nil, problem("/run_idle_minutes", "expected more than 0, at most %d", mostMinutes)
	}
	if c.Endpoint == "" {
		return c, nil
	}
	if _, err := tracesURL(c.Endpoint); err != nil {
		return nil, problem("/endpoint", "%w", err)
	}
	return c, nil
}

// tracesURL returns where traces go: the endpoint with the path that OTLP has
// for them. An error never shows the endpoint, which may hold a password.
func tracesURL(endpoint string) (*url.URL, error) {
	u, err := url.Parse(endpoint)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, errors.New("expected a URL such as http://127.0.0.1:4318 or https://otel.example.com")
	case u.User != nil:
		return nil, errors.New("a name and password don't belong here: put a line such as Authorization: Basic … into headers_file")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, errors.New("expected a URL without ? and #; what the collector wants to know beside it goes into headers_file")
	}
	if !strings.HasSuffix(u.Path, tracesPath) {
		u = u.JoinPath(tracesPath)
	}
	return u, nil
}

// readHeaders reads a headers file. An error never shows a value.
func readHeaders(folder, path string) (http.Header, error) {
	data, err := text.ReadFile(folder, path, mostHeaders)
	if err != nil {
		return nil, err
	}
	return parseHeaders(data)
}

// parseHeaders reads lines of "Name: value". Empty lines and those that start
// with # are left out.
func parseHeaders(data []byte) (http.Header, error) {
	headers := http.Header{}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, mostHeaders+1)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, found := strings.Cut(line, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		switch {
		case !found || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value):
			return nil, fmt.Errorf("line %d is no header: expected Name: value", n)
		case reserved(name):
			return nil, fmt.Errorf("line %d: hookd sets the header %s itself", n, http.CanonicalHeaderKey(name))
		}
		headers.Add(name, value)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read headers: %w", err)
	}
	return headers, nil
}

func reserved(name string) bool {
	switch http.CanonicalHeaderKey(name) {
	case "Content-Type", "Content-Length", "Content-Encoding", "Transfer-Encoding", "Host", "Connection":
		return true
	}
	return false
}

func minutes(n float64) time.Duration { return time.Duration(n * float64(time.Minute)) }

func problem(pointer, format string, args ...any) error {
	return &builtin.ConfigError{Pointer: pointer, Err: fmt.Errorf(format, args...)}
}
