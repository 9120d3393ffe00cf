package instructions

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
		{config: `{"instructions":[{"text":"x"},{"file":"y.md","if":"kind == 'shell'","at":["before_llm","inject_instructions"],"once":true}]}`},
		{config: `{"instructions":[{}]}`, want: "/instructions/0: says nothing"},
		{config: `{"instructions":[{"text":" "}]}`, want: "/instructions/0: says nothing"},
		{config: `{"instructions":[{"text":"x","file":"y"}]}`, want: "/instructions/0: text and file: give one of them"},
		{config: `{"instructions":[{"text":"x","at":["before_lm"]}]}`, want: `/instructions/0/at/0: unknown stage "before_lm", one of inject_instructions, before_llm (did you mean "before_llm"?)`},
		{config: `{"instructions":[{"text":"x","at":["output"]}]}`, want: `/instructions/0/at/0: unknown stage "output"`},
		{config: `{"instructions":[{"text":"x","if":"agnt == 'x'"}]}`, want: `/instructions/0/if: column 1: unknown name "agnt"`, beyond: true},
		{config: `{"instructions":[{"txt":"x"}]}`, want: `/instructions/0/txt: unknown key "txt" (did you mean "text"?)`},
		{config: `{"instructions":[{"text":"` + strings.Repeat("x", 65537) + `"}]}`, want: "/instructions/0/text: has 65537 bytes, 65536 at most"},
		{config: `{"instructions":{}}`, want: "/instructions: expected a list"},
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
	page, err := os.ReadFile("../../docs/builtins-instructions.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```jsonc\n(.*?)```").FindAllSubmatch(page, -1)
	require.NotEmpty(t, blocks)
	for _, b := range blocks {
		plain, err := hujson.Standardize(b[1])
		require.NoError(t, err)
		config := jsontext.Value(plain)
		for _, name := range []string{"hooks", "builtins", "instructions", "config"} {
			o, err := protocol.ParseObject(config)
			require.NoError(t, err)
			config = o.Get(name)
		}
		require.NoError(t, Validate(config))
	}
}
