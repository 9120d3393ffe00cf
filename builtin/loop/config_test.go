package loop

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
		{config: `{}`},
		{config: `{"warn":2,"deny":0,"except":["wait","po*","/^x/"]}`},
		{config: `{"warn":1}`, want: "/warn: expected 0 (off) or 2 to 1000000, got 1"},
		{config: `{"deny":-1}`, want: "/deny: expected 0"},
		{config: `{"deny":1000001}`, want: "/deny: expected 0"},
		{config: `{"warn":2.5}`, want: "/warn: expected an integer, got 2.5"},
		{config: `{"warm":2}`, want: `/warm: unknown key "warm" (did you mean "warn"?)`},
		{config: `{"except":["x",""]}`, want: "/except/1: "},
		{config: `{"except":["/(/"]}`, want: "/except/0: bad regular expression", beyond: true},
		{config: `{"warn":2,"warn":3}`, want: "duplicate name", beyond: true},
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
	require.NoError(t, Validate(nil))
	require.NoError(t, Validate(jsontext.Value("null")))
}

// TestPage wants every config on the docs page to be one.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/builtins-loop.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```jsonc\n(.*?)```").FindAllSubmatch(page, -1)
	require.NotEmpty(t, blocks)
	for _, b := range blocks {
		plain, err := hujson.Standardize(b[1])
		require.NoError(t, err)
		config := jsontext.Value(plain)
		for _, name := range []string{"hooks", "builtins", "loop", "config"} {
			o, err := protocol.ParseObject(config)
			require.NoError(t, err)
			config = o.Get(name)
		}
		require.NoError(t, Validate(config))
	}
}
