package policy

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
		{config: `{"default":"deny"}`},
		{config: `{"default":"","rules":[]}`},
		{config: `{"default":"approve","rules":[{"tools":["read_file"],"kinds":[],"if":"","action":"auto","reason":""}]}`},
		{config: `{"rules":[{"tools":["a|b","mcp__*","/^x/"],"kinds":["shell","web"],"if":"args.x == 1","action":"approve","risk":"high"}]}`},
		{config: `{"rules":[{"if":"Bash(git push *)","action":"deny"}]}`},
		{config: `{"rules":[{"tools":["*"],"action":"auto","skip_prompt":true}]}`},
		{config: `[]`, want: "expected an object"},
		{config: `{"default":"allow"}`, want: `/default: unknown action "allow", one of auto, approve, deny`},
		{config: `{"defualt":"deny"}`, want: `/defualt: unknown key "defualt" (did you mean "default"?)`},
		{config: `{"rules":[{"tools":["x"]}]}`, want: "/rules/0/action: is missing"},
		{config: `{"rules":[{"tools":["x"],"action":"aprove"}]}`, want: `/rules/0/action: unknown action "aprove", one of auto, approve, deny (did you mean "approve"?)`},
		{config: `{"rules":[{"tools":["x"],"action":"Auto"}]}`, want: "/rules/0/action: unknown action"},
		{config: `{"rules":[{"kinds":["shell","file_reed"],"action":"auto"}]}`, want: `/rules/0/kinds/1: unknown kind "file_reed"`},
		{config: `{"rules":[{"kinds":["shel"],"action":"auto"}]}`, want: `(did you mean "shell"?)`},
		{config: `{"rules":[{"tools":["x"],"action":"deny","risk":"hi"}]}`, want: `/rules/0/risk: unknown risk "hi"`},
		{config: `{"rules":[{"action":"auto"}]}`, want: "/rules/0: is about every call"},
		{config: `{"rules":[{"tools":[],"kinds":[],"if":" ","action":"auto"}]}`, want: "/rules/0: is about every call"},
		{config: `{"rules":[{"tools":["x","/(/"],"action":"auto"}]}`, want: "/rules/0/tools/1: bad regular expression", beyond: true},
		{config: `{"rules":[{"tools":[""],"action":"auto"}]}`, want: "/rules/0/tools/0: "},
		{config: `{"rules":[{"tools":["//"],"action":"auto"}]}`, want: "/rules/0/tools/0: "},
		{config: `{"rules":[{"tools":["x"],"if":"toool == 'x'","action":"deny"}]}`, want: `/rules/0/if: column 1: unknown name "toool"`, beyond: true},
		{config: `{"rules":[{"if":"Bash(git *)","action":"auto"}]}`, want: "/rules/0/if: a permission rule", beyond: true},
		{config: `{"rules":[{"tools":["x"],"action":"deny","skip_prompt":true}]}`, want: "/rules/0/skip_prompt: "},
		{config: `{"rules":[{"tools":"x","action":"deny"}]}`, want: "/rules/0/tools: expected a list"},
		{config: `{"default":"deny","default":"auto"}`, want: "duplicate name", beyond: true},
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
	page, err := os.ReadFile("../../docs/builtins-policy.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```jsonc\n(.*?)```").FindAllSubmatch(page, -1)
	require.NotEmpty(t, blocks)
	for _, b := range blocks {
		plain, err := hujson.Standardize(b[1])
		require.NoError(t, err)
		config := jsontext.Value(plain)
		for _, name := range []string{"hooks", "builtins", "policy", "config"} {
			o, err := protocol.ParseObject(config)
			require.NoError(t, err)
			config = o.Get(name)
		}
		require.NoError(t, Validate(config))
	}
}
