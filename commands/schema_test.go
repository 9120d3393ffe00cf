package commands

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
)

// TestSchema holds the schema to the reader: both take and refuse the same.
func TestSchema(t *testing.T) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("hooks.json", doc))
	s, err := c.Compile("hooks.json")
	require.NoError(t, err)
	rule := func(text string) string { return `{"version":1,"hooks":{"PreToolUse":[` + text + `]}}` }
	handler := func(text string) string { return rule(`{"hooks":[` + text + `]}`) }
	for text, good := range map[string]bool{
		draft:           true,
		`{"version":1}`: true,
		`{"version":1,"hooks":{"before_tool":[]},"disabled":true,"$schema":"x","description":"y"}`:                                               true,
		rule(`{"name":"a","matcher":"x","if":"","enabled":false,"priority":-3,"max_repeats":0,"hooks":[]}`):                                      true,
		handler(`{"type":"http","url":"https://h/x","headers":{"A":"b"},"allowedEnvVars":["A"]}`):                                                true,
		handler(`{"type":"command","command":"x","args":[],"timeout":0.5,"async":true,"pass_env":["A"],"fail_policy":"deny","on_error":"warn"}`): true,

		`{"version":2}`:                           false,
		`{"version":1,"hook":{}}`:                 false,
		`{"version":1,"hooks":[]}`:                false,
		`{"version":1,"disabled":1}`:              false,
		`{"version":1,"hooks":{"PreTooluse":[]}}`: false,
		rule(`{}`):                                                    false,
		rule(`{"mather":"x","hooks":[]}`):                             false,
		rule(`{"name":"","hooks":[]}`):                                false,
		rule(`{"max_repeats":-1,"hooks":[]}`):                         false,
		handler(`{}`):                                                 false,
		handler(`{"type":"prompt"}`):                                  false,
		handler(`{"type":"command"}`):                                 false,
		handler(`{"type":"command","command":""}`):                    false,
		handler(`{"type":"http"}`):                                    false,
		handler(`{"type":"http","url":"file:///x"}`):                  false,
		handler(`{"type":"command","command":"x","timeout":0}`):       false,
		handler(`{"type":"command","command":"x","timeout":601}`):     false,
		handler(`{"type":"command","command":"x","fail_policy":"x"}`): false,
		handler(`{"type":"command","command":"x","on_error":"x"}`):    false,
		handler(`{"type":"command","command":"x","pass_env":"A"}`):    false,
	} {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		require.NoError(t, err)
		_, err = Parse("h.json", []byte(text))
		require.Equal(t, good, err == nil, "the reader: %s: %v", text, err)
		require.Equal(t, good, s.Validate(value) == nil, "the schema: %s", text)
	}
	for _, r := range eventRows() {
		require.Contains(t, string(Schema()), r.name)
		require.Contains(t, string(Schema()), r.alias)
	}
	for _, name := range observed {
		require.Contains(t, string(Schema()), name)
	}
	copied, err := os.ReadFile("../schema/hooks.schema.json")
	require.NoError(t, err)
	require.Equal(t, string(Schema()), string(copied), "cp commands/hooks.schema.json schema/")
}
