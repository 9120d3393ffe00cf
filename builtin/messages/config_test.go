package messages

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
	testify "github.com/stretchr/testify/require"
	"github.com/tailscale/hujson"

	"github.com/hookd/hookd/builtin"
	"github.com/hookd/hookd/protocol"
)

func compiled(t *testing.T) *jsonschema.Schema {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(Schema())))
	testify.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	testify.NoError(t, compiler.AddResource("schema.json", doc))
	schema, err := compiler.Compile("schema.json")
	testify.NoError(t, err)
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
		{config: `{"rules":[{"action":"drop","roles":["x"],"content":"/^y/"},{"action":"cap","messages":5,"tokens":0},{"action":"cap","tokens":100},{"action":"reorder"},{"action":"require","content":"x","reason":"y"}]}`},
		{config: `{"rules":[{"roles":["x"]}]}`, want: "/rules/0/action: is missing"},
		{config: `{"rules":[{"action":"dorp","roles":["x"]}]}`, want: `/rules/0/action: unknown action "dorp", one of drop, cap, reorder, require (did you mean "drop"?)`},
		{config: `{"rules":[{"action":"drop"}]}`, want: "/rules/0: says of no message"},
		{config: `{"rules":[{"action":"require","roles":[],"content":""}]}`, want: "/rules/0: says of no message"},
		{config: `{"rules":[{"action":"drop","roles":["x",""]}]}`, want: "/rules/0/roles/1: is empty"},
		{config: `{"rules":[{"action":"drop","content":"//"}]}`, want: "/rules/0/content: the pattern //"},
		{config: `{"rules":[{"action":"drop","content":"/(/"}]}`, want: "/rules/0/content: bad regular expression", beyond: true},
		{config: `{"rules":[{"action":"drop","roles":["x"],"messages":1}]}`, want: "/rules/0/messages: goes with cap only"},
		{config: `{"rules":[{"action":"reorder","tokens":1}]}`, want: "/rules/0/tokens: goes with cap only"},
		{config: `{"rules":[{"action":"reorder","roles":["x"]}]}`, want: "/rules/0/roles: goes with drop and require only"},
		{config: `{"rules":[{"action":"cap","messages":1,"content":"x"}]}`, want: "/rules/0/content: goes with drop and require only"},
		{config: `{"rules":[{"action":"drop","roles":["x"],"reason":"y"}]}`, want: "/rules/0/reason: goes with require only"},
		{config: `{"rules":[{"action":"cap"}]}`, want: "/rules/0: limits nothing"},
		{config: `{"rules":[{"action":"cap","messages":-1}]}`, want: "/rules/0/messages: expected 1 to"},
		{config: `{"rules":[{"action":"cap","tokens":-1}]}`, want: "/rules/0/tokens: expected 1 to"},
		{config: `{"rules":[{"action":"cap","token":5}]}`, want: `/rules/0/token: unknown key "token" (did you mean "tokens"?)`},
	} {
		err := Validate(jsontext.Value(c.config))
		v, readErr := jsonschema.UnmarshalJSON(strings.NewReader(c.config))
		testify.NoError(t, readErr)
		bySchema := schema.Validate(v)
		if c.want == "" {
			testify.NoError(t, err, c.config)
			testify.NoError(t, bySchema, c.config)
			continue
		}
		testify.ErrorContains(t, err, c.want, c.config)
		_, ok := errors.AsType[*builtin.ConfigError](err)
		testify.True(t, ok, c.config)
		testify.Equal(t, c.beyond, bySchema == nil, "%s: %v", c.config, bySchema)
	}
	testify.NoError(t, Validate(nil))
	testify.NoError(t, Validate(jsontext.Value("null")))
}

// TestPage wants every config on the docs page to be one.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/builtins-messages.md")
	testify.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```jsonc\n(.*?)```").FindAllSubmatch(page, -1)
	testify.NotEmpty(t, blocks)
	for _, b := range blocks {
		plain, err := hujson.Standardize(b[1])
		testify.NoError(t, err)
		config := jsontext.Value(plain)
		for _, name := range []string{"hooks", "builtins", "messages", "config"} {
			o, err := protocol.ParseObject(config)
			testify.NoError(t, err)
			config = o.Get(name)
		}
		testify.NoError(t, Validate(config))
	}
}
