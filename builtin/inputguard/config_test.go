package inputguard

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
		{config: `{"max_length":8000,"max_length_action":"warn","deny_words":["bomb","*x*"],"warn_words":["炸弹"],"deny_words_file":"words"}`},
		{config: `{"injection":"deny","rules":{"zh-*":"warn","chat-markup":"off"}}`},
		{config: `{"patterns":[{"id":"x","pattern":"a.b"},{"id":"y","pattern":"c","action":"warn","reason":"why"}]}`},
		{config: `[]`, want: "expected an object"},
		{config: `{"max_len":1}`, want: `/max_len: unknown key "max_len" (did you mean "max_length"?)`},
		{config: `{"max_length":-1}`, want: "/max_length: must not be negative"},
		{config: `{"max_length":"1"}`, want: "/max_length: expected an integer"},
		{config: `{"max_length":1.5}`, want: "/max_length: expected an integer, got 1.5"},
		{config: `{"max_length_action":"off"}`, want: `/max_length_action: unknown action "off", one of warn, deny`},
		{config: `{"injection":"block"}`, want: `/injection: unknown action "block", one of warn, deny, off`},
		{config: `{"rules":{"zh-*":"denied"}}`, want: `/rules/zh-*: unknown action "denied", one of warn, deny, off (did you mean "deny"?)`},
		{config: `{"rules":{"en-jailbrake":"off"}}`, want: `/rules/en-jailbrake: no rule has the name "en-jailbrake" (did you mean "en-jailbreak"?)`, beyond: true},
		{config: `{"rules":{"fr-*":"off"}}`, want: `/rules/fr-*: no rule has the name "fr-*"`, beyond: true},
		{config: `{"deny_words":["x",""]}`, want: "/deny_words/1: is empty"},
		{config: `{"deny_words":["**"]}`, want: "/deny_words/0: is empty"},
		{config: `{"warn_words":["\u200b"]}`, want: "/warn_words/0: is empty", beyond: true},
		{config: `{"deny_words":"x"}`, want: "/deny_words: expected a list"},
		{config: `{"patterns":[{"pattern":"x"}]}`, want: `/patterns/0/id: "" can't be the name of a rule`},
		{config: `{"patterns":[{"id":"a*","pattern":"x"}]}`, want: `/patterns/0/id: "a*" can't be the name of a rule`},
		{config: `{"patterns":[{"id":"chat-markup","pattern":"x"}]}`, want: `/patterns/0/id: there is a rule "chat-markup" already`, beyond: true},
		{config: `{"patterns":[{"id":"x"}]}`, want: "/patterns/0/pattern: is missing"},
		{config: `{"patterns":[{"id":"x","pattern":"("}]}`, want: "/patterns/0/pattern: bad regular expression", beyond: true},
		{config: `{"patterns":[{"id":"x","pattern":"x","action":"off"}]}`, want: `/patterns/0/action: unknown action "off"`},
		{config: `{"patterns":[{"id":"x","pattern":"x","why":"y"}]}`, want: `/patterns/0/why: unknown key "why"`},
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
}
