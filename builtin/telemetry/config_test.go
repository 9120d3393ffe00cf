package telemetry

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"github.com/tailscale/hujson"
	"go.uber.org/zap"

	"github.com/hookd/hookd/builtin"
	"github.com/hookd/hookd/protocol"
)

func compiled(t *testing.T) *jsonschema.Schema {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(Schema())))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource("schema.json", doc))
	schema, err := compiler.Compile("schema.json")
	require.NoError(t, err)
	return schema
}

// TestConfig wants the code and the schema to agree, but for what no schema can
// say.
func TestConfig(t *testing.T) {
	schema := compiled(t)
	for _, c := range []struct {
		config, want string
		beyond       bool // no schema can say it
	}{
		{config: `{}`},
		{config: `{"endpoint":""}`},
		{config: `{"endpoint":"https://otel.example.com:4318/base","headers_file":"h","service_name":"x","sample":0.1,"max_runs":10,"max_run_minutes":0.5,"run_idle_minutes":10080,"reasons":true}`},
		{config: `{"endpoint":"HTTP://[::1]:4318/v1/traces","sample":null,"max_runs":null,"max_run_minutes":null,"run_idle_minutes":null}`},
		{config: `{"endpoint":"127.0.0.1:4318"}`, want: "/endpoint: expected a URL such as"},
		{config: `{"endpoint":"grpc://127.0.0.1:4317"}`, want: "/endpoint: expected a URL such as"},
		{config: `{"endpoint":"http://:4318"}`, want: "/endpoint: expected a URL such as", beyond: true},
		{config: `{"endpoint":"http://h:port"}`, want: "/endpoint: expected a URL such as", beyond: true},
		{config: `{"endpoint":"https://me:hunter2@h"}`, want: "/endpoint: a name and password don't belong here"},
		{config: `{"endpoint":"https://h?key=hunter2"}`, want: "/endpoint: expected a URL without ?"},
		{config: `{"endpoint":"https://h/#x"}`, want: "/endpoint: expected a URL without ?"},
		{config: `{"endpiont":""}`, want: `/endpiont: unknown key "endpiont" (did you mean "endpoint"?)`},
		{config: `{"headers":{"a":"b"}}`, want: `/headers: unknown key "headers"`},
		{config: `{"sample":1.5}`, want: "/sample: expected 0 to 1"},
		{config: `{"sample":-0.1}`, want: "/sample: expected 0 to 1"},
		{config: `{"max_runs":0}`, want: "/max_runs: expected 1 to 10000"},
		{config: `{"max_runs":10001}`, want: "/max_runs: expected 1 to 10000"},
		{config: `{"max_runs":1.5}`, want: "/max_runs: expected an integer, got 1.5"},
		{config: `{"max_run_minutes":0}`, want: "/max_run_minutes: expected more than 0, at most 10080"},
		{config: `{"run_idle_minutes":10081}`, want: "/run_idle_minutes: expected more than 0, at most 10080"},
		{config: `{"reasons":"yes"}`, want: "/reasons: expected true or false"},
		{config: `{"sample":1,"sample":1}`, want: "duplicate name", beyond: true},
	} {
		err := Validate(jsontext.Value(c.config))
		v, readErr := jsonschema.UnmarshalJSON(strings.NewReader(c.config))
		require.NoError(t, readErr)
		bySchema := schema.Validate(v)
		if c.want == "" {
			require.NoError(t, err, c.config)
			require.NoError(t, bySchema, c.config)
			continue
		}
		require.ErrorContains(t, err, c.want, c.config)
		require.NotContains(t, err.Error(), "hunter2")
		_, ok := errors.AsType[*builtin.ConfigError](err)
		require.True(t, ok, c.config)
		require.Equal(t, c.beyond, bySchema == nil, "%s: %v", c.config, bySchema)
	}
	require.NoError(t, Validate(nil))
	require.NoError(t, Validate(jsontext.Value("null")))
}

// TestEndpoint wants the path of OTLP where an endpoint does not have it.
func TestEndpoint(t *testing.T) {
	for endpoint, want := range map[string]string{
		"http://h:4318":                "http://h:4318/v1/traces",
		"http://h:4318/":               "http://h:4318/v1/traces",
		"https://h/otlp":               "https://h/otlp/v1/traces",
		"https://h/otlp/":              "https://h/otlp/v1/traces",
		"https://h/api/otel/v1/traces": "https://h/api/otel/v1/traces",
	} {
		u, err := tracesURL(endpoint)
		require.NoError(t, err)
		require.Equal(t, want, u.String())
	}
}

// TestHeaders wants the errors of a headers file to name the line and no value.
func TestHeaders(t *testing.T) {
	for _, c := range []struct {
		file, want string
		headers    http.Header
	}{
		{file: "", headers: http.Header{}},
		{file: "# tenant\n\n  authorization:  Bearer a:b \r\nX-A: 1\nx-a: 2\nX-Empty:", headers: http.Header{"Authorization": {"Bearer a:b"}, "X-A": {"1", "2"}, "X-Empty": {""}}},
		{file: "X-A: 1\nhunter2", want: "line 2 is no header: expected Name: value"},
		{file: "hunter 2: x", want: "line 1 is no header"},
		{file: ": hunter2", want: "line 1 is no header"},
		{file: "A: hunter2\x00", want: "line 1 is no header"},
		{file: "content-type: hunter2", want: "line 1: hookd sets the header Content-Type itself"},
		{file: "Host: hunter2", want: "line 1: hookd sets the header Host itself"},
		{file: strings.Repeat("x", mostHeaders+1), want: "65537 bytes, 65536 at most"},
	} {
		folder := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(folder, "h"), []byte(c.file), 0o600))
		headers, err := readHeaders(folder, "h")
		if c.want == "" {
			require.NoError(t, err)
			require.Equal(t, c.headers, headers)
			continue
		}
		require.ErrorContains(t, err, c.want)
		require.NotContains(t, err.Error(), "hunter2")
		_, err = New(jsontext.Value(`{"endpoint":"http://h","headers_file":"h"}`), folder, NewSink(), zap.NewNop())
		bad, ok := errors.AsType[*builtin.ConfigError](err)
		require.True(t, ok)
		require.Equal(t, "/headers_file", bad.Pointer)
	}
	_, err := New(jsontext.Value(`{"endpoint":"http://h","headers_file":"none"}`), t.TempDir(), NewSink(), zap.NewNop())
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, Validate(jsontext.Value(`{"endpoint":"http://h","headers_file":"none"}`)), "it opens nothing")
}

// FuzzHeaders wants every file to be refused or to make headers that can be
// sent.
func FuzzHeaders(f *testing.F) {
	f.Add([]byte("A: b\n# c\n\r\nX-Y:z"))
	f.Add([]byte(": \n"))
	f.Add([]byte("A:\xff\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		headers, err := parseHeaders(data)
		if err != nil {
			return
		}
		req, err := http.NewRequest(http.MethodPost, "http://h", nil)
		require.NoError(t, err)
		req.Header = headers
		require.NoError(t, req.Write(nowhere{}))
	})
}

type nowhere struct{}

func (nowhere) Write(b []byte) (int, error) { return len(b), nil }

// TestPage wants every config on the docs page to be one.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/builtins-telemetry.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```jsonc\n(.*?)```").FindAllSubmatch(page, -1)
	require.NotEmpty(t, blocks)
	for _, b := range blocks {
		plain, err := hujson.Standardize(b[1])
		require.NoError(t, err)
		config := jsontext.Value(plain)
		for _, name := range []string{"hooks", "builtins", "telemetry", "config"} {
			o, err := protocol.ParseObject(config)
			require.NoError(t, err)
			config = o.Get(name)
		}
		require.NoError(t, Validate(config))
	}
	for _, key := range regexp.MustCompile(`(?m)Key\("([a-z_.]+)"\)`).FindAllStringSubmatch(string(mustRead(t, "spans.go")), -1) {
		require.Contains(t, string(page), "`"+key[1]+"`", "an attribute that the page does not explain")
	}
}

func mustRead(t *testing.T, path string) []byte {
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return data
}
