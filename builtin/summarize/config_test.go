package summarize

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"github.com/tailscale/hujson"

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
		{config: `{"command":["x","-a"]}`},
		{config: `{"command":["x"],"endpoint":{},"threshold":1000,"keep_last":1,"prompt":"p","role":"system"}`},
		{config: `{"endpoint":{"url":"https://api.example.com/v1/chat/completions","model":"m","api_key_env":"KEY"}}`},
		{config: `{"endpoint":{"url":"http://127.0.0.1:8080/v1","model":"m","api_key_file":"key"},"command":[]}`},
		{config: `{}`, want: "give a command or an endpoint"},
		{config: `{"command":["x"],"endpoint":{"url":"https://x/y","model":"m"}}`, want: "command and endpoint: give one of them"},
		{config: `{"command":[""]}`, want: "/command/0: is empty"},
		{config: `{"command":"x"}`, want: "/command: expected a list"},
		{config: `{"command":["x"],"threshold":999}`, want: "/threshold: expected 1000 to 100000000 tokens, got 999"},
		{config: `{"command":["x"],"keep_last":0}`, want: "/keep_last: expected 1 to 100000 messages, got 0"},
		{config: `{"command":["x"],"role":"usr"}`, want: `/role: unknown role "usr", one of user, system (did you mean "user"?)`},
		{config: `{"command":["x"],"treshold":5}`, want: `/treshold: unknown key "treshold" (did you mean "threshold"?)`},
		{config: `{"endpoint":{"model":"m"}}`, want: "/endpoint/url: is missing"},
		{config: `{"endpoint":{"url":"ftp://x/y","model":"m"}}`, want: "/endpoint/url: expected http"},
		{config: `{"endpoint":{"url":"https://u:p@x/y","model":"m"}}`, want: "/endpoint/url: holds a password"},
		{config: `{"endpoint":{"url":"https://x/y"}}`, want: "/endpoint/model: is missing"},
		{config: `{"endpoint":{"url":"https://x/y","model":"m","api_key_env":"A","api_key_file":"b"}}`, want: "/endpoint: api_key_env and api_key_file"},
		{config: `{"endpoint":{"url":"http://x/y","model":"m","api_key_env":"A"}}`, want: "/endpoint/url: would send the key in the clear", beyond: true},
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
		_, ok := errors.AsType[*builtin.ConfigError](err)
		require.True(t, ok, c.config)
		require.Equal(t, c.beyond, bySchema == nil, "%s: %v", c.config, bySchema)
	}
	require.ErrorContains(t, Validate(nil), "give a command or an endpoint")
}

// TestPage wants every config on the docs page to be one.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/builtins-summarize.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```jsonc\n(.*?)```").FindAllSubmatch(page, -1)
	require.NotEmpty(t, blocks)
	for _, b := range blocks {
		plain, err := hujson.Standardize(b[1])
		require.NoError(t, err)
		config := jsontext.Value(plain)
		for _, name := range []string{"hooks", "builtins", "summarize", "config"} {
			o, err := protocol.ParseObject(config)
			require.NoError(t, err)
			config = o.Get(name)
		}
		require.NoError(t, Validate(config))
	}
}
