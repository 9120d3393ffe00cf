package budget

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
		{config: `{"session":{"calls":0,"model_calls":5,"tokens":1000,"minutes":0.5},"day":{"cost":1.5},"prices":[{"model":"*","input":3,"output":15}],"action":"ask","currency":"EUR","file":"x"}`},
		{config: `{"session":{"cost":null},"action":""}`},
		{config: `{"session":{"calls":-1}}`, want: "/session/calls: expected 0 or more"},
		{config: `{"day":{"minutes":-1}}`, want: "/day/minutes: expected 0 or more"},
		{config: `{"day":{"call":1}}`, want: `/day/call: unknown key "call" (did you mean "calls"?)`},
		{config: `{"session":{"tokens":1.5}}`, want: "/session/tokens: expected an integer, got 1.5"},
		{config: `{"day":{"cost":1}}`, want: `/day/cost: needs "prices"`},
		{config: `{"prices":[{"input":1}]}`, want: "/prices/0/model: is missing"},
		{config: `{"prices":[{"model":"x","output":-1}]}`, want: "/prices/0/output: expected 0 or more"},
		{config: `{"action":"denny"}`, want: `/action: unknown action "denny", one of ask, deny (did you mean "deny"?)`},
		{config: `{"action":"ask","action":"deny"}`, want: "duplicate name", beyond: true},
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
	page, err := os.ReadFile("../../docs/builtins-budget.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```jsonc\n(.*?)```").FindAllSubmatch(page, -1)
	require.NotEmpty(t, blocks)
	for _, b := range blocks {
		plain, err := hujson.Standardize(b[1])
		require.NoError(t, err)
		config := jsontext.Value(plain)
		for _, name := range []string{"hooks", "builtins", "budget", "config"} {
			o, err := protocol.ParseObject(config)
			require.NoError(t, err)
			config = o.Get(name)
		}
		require.NoError(t, Validate(config))
	}
}
