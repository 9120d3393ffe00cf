package skills

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
		{config: `{"folders":["a","/b"],"intro":"x","max_skills":1,"max_bytes":1024,"always":true}`},
		{config: `{}`, want: "/folders: is missing"},
		{config: `{"folders":[]}`, want: "/folders: is missing"},
		{config: `{"folders":["a"," "]}`, want: "/folders/1: is empty"},
		{config: `{"folders":"a"}`, want: "/folders: expected a list"},
		{config: `{"folders":["a"],"max_skills":0}`, want: "/max_skills: expected 1 to 1000, got 0"},
		{config: `{"folders":["a"],"max_bytes":5}`, want: "/max_bytes: expected 1024 to 262144, got 5"},
		{config: `{"folders":["a"],"intro":"` + strings.Repeat("x", 4097) + `"}`, want: "/intro: has 4097 bytes, 4096 at most"},
		{config: `{"folder":["a"]}`, want: `/folder: unknown key "folder" (did you mean "folders"?)`},
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
	require.ErrorContains(t, Validate(nil), "/folders: is missing")
}

// TestPage wants every config on the docs page to be one.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/builtins-skills.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```jsonc\n(.*?)```").FindAllSubmatch(page, -1)
	require.NotEmpty(t, blocks)
	for _, b := range blocks {
		plain, err := hujson.Standardize(b[1])
		require.NoError(t, err)
		config := jsontext.Value(plain)
		for _, name := range []string{"hooks", "builtins", "skills", "config"} {
			o, err := protocol.ParseObject(config)
			require.NoError(t, err)
			config = o.Get(name)
		}
		require.NoError(t, Validate(config))
	}
}
