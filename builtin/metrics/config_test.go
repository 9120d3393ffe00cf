package metrics

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
		{config: `{"file":"hookd.prom","file_seconds":1,"every_steps":0,"agents":["nightly"]}`},
		{config: `{"file_seconds":null,"every_steps":null,"agents":null}`},
		{config: `{"file_seconds":0}`, want: "/file_seconds: expected 1 to 3600"},
		{config: `{"file_seconds":3601}`, want: "/file_seconds: expected 1 to 3600"},
		{config: `{"every_steps":-1}`, want: "/every_steps: expected 0 or more"},
		{config: `{"every_steps":1.5}`, want: "/every_steps: expected an integer, got 1.5"},
		{config: `{"file":1}`, want: "/file: expected a string"},
		{config: `{"files":""}`, want: `/files: unknown key "files" (did you mean "file"?)`},
		{config: `{"agents":["a",""]}`, want: "/agents/1: expected a name of 1 to 128 bytes"},
		{config: `{"agents":["` + strings.Repeat("a", 129) + `"]}`, want: "/agents/0: expected a name"},
		{config: `{"agents":["a"` + strings.Repeat(`,"a"`, 64) + `]}`, want: "/agents: 65 names, at most 64"},
		{config: `{"file":"a","file":"b"}`, want: "duplicate name", beyond: true},
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
	page, err := os.ReadFile("../../docs/builtins-metrics.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```jsonc\n(.*?)```").FindAllSubmatch(page, -1)
	require.NotEmpty(t, blocks)
	for _, b := range blocks {
		plain, err := hujson.Standardize(b[1])
		require.NoError(t, err)
		config := jsontext.Value(plain)
		for _, name := range []string{"hooks", "builtins", "metrics", "config"} {
			o, err := protocol.ParseObject(config)
			require.NoError(t, err)
			config = o.Get(name)
		}
		require.NoError(t, Validate(config))
	}
}
