package secrets

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/builtin"
)

// TestConfig wants the code and the schema to agree, but for what no schema can
// say.
func TestConfig(t *testing.T) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(Schema())))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource("schema.json", doc))
	schema, err := compiler.Compile("schema.json")
	require.NoError(t, err)

	for _, c := range []struct {
		config, want string
		beyond       bool // no schema can say it
	}{
		{config: `{}`},
		{config: `{"strategy":"block","rules":{"generic-api-key":"off","aws-*":"hash"},"before_tool":"ask","label":"[{rule}]","allow":["x","/^y/"]}`},
		{config: `{"canaries":["12345678"],"canaries_env":["CANARY"],"canaries_file":"canaries","hash_key":"0123456789abcdef"}`},
		{config: `{"custom":[{"id":"corp","regex":"corp-([0-9]+)"},{"id":"other","regex":"x+","keywords":["x"],"entropy":2.5}],"rules":{"corp":"block"}}`},
		{config: `[]`, want: "expected an object"},
		{config: `{"strategie":"mask"}`, want: `/strategie: unknown key "strategie" (did you mean "strategy"?)`},
		{config: `{"strategy":"ask"}`, want: `/strategy: unknown strategy "ask", one of block, redact, mask, hash, off`},
		{config: `{"before_tool":"deny"}`, want: `/before_tool: unknown strategy "deny", one of block, redact, mask, hash, off, ask`},
		{config: `{"rules":{"github-pat":"none"}}`, want: `/rules/github-pat: unknown strategy "none"`},
		{config: `{"rules":{"github-pad":"off"}}`, want: `/rules/github-pad: no rule has the name "github-pad" (did you mean "github-pat"?)`, beyond: true},
		{config: `{"rules":{"a/b~*":"off"}}`, want: `/rules/a~1b~0*: no rule has the name`, beyond: true},
		{config: `{"label":"SECRET"}`, want: "/label: "},
		{config: `{"allow":[""]}`, want: "/allow/0: is empty"},
		{config: `{"allow":["/(/"]}`, want: "/allow/0: bad regular expression", beyond: true},
		{config: `{"canaries":["short"]}`, want: "/canaries/0: a canary of fewer than 8 bytes"},
		{config: `{"canaries":["1\u200b2\u200b3\u200b4\u200b5"]}`, want: "/canaries/0: a canary of fewer than 8 bytes", beyond: true},
		{config: `{"canaries_env":["A=B"]}`, want: `/canaries_env/0: "A=B" can't be the name`},
		{config: `{"canaries_env":[""]}`, want: `/canaries_env/0: "" can't be the name`},
		{config: `{"custom":[{"regex":"x"}]}`, want: `/custom/0/id: "" can't be the name of a rule`},
		{config: `{"custom":[{"id":"a*","regex":"x"}]}`, want: `/custom/0/id: "a*" can't be the name of a rule`},
		{config: `{"custom":[{"id":"x","regex":"x"},{"id":"x","regex":"y"}]}`, want: `/custom/1/id: there is a rule "x" already`, beyond: true},
		{config: `{"custom":[{"id":"jwt","regex":"y"}]}`, want: `/custom/0/id: there is a rule "jwt" already`, beyond: true},
		{config: `{"custom":[{"id":"x"}]}`, want: "/custom/0/regex: is missing"},
		{config: `{"custom":[{"id":"x","regex":"("}]}`, want: "/custom/0/regex: bad regular expression", beyond: true},
		{config: `{"custom":[{"id":"x","regex":"a*"}]}`, want: "/custom/0/regex: matches no text at all", beyond: true},
		{config: `{"custom":[{"id":"x","regex":"x","keywords":[""]}]}`, want: "/custom/0/keywords/0: is empty"},
		{config: `{"custom":[{"id":"x","regex":"x","entropy":-1}]}`, want: "/custom/0/entropy: must not be negative"},
		{config: `{"custom":[{"id":"x","regex":"x","key_words":["y"]}]}`, want: `/custom/0/key_words: unknown key "key_words" (did you mean "keywords"?)`},
		{config: `{"hash_key":"short"}`, want: "/hash_key: is too short"},
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
		require.NotContains(t, err.Error(), "12345678")
		_, ok := errors.AsType[*builtin.ConfigError](err)
		require.True(t, ok, "%s: %T", c.config, err)
		require.Equal(t, c.beyond, bySchema == nil, "%s: %v", c.config, bySchema)
	}
	require.NoError(t, Validate(nil))
}
