package pii

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
		{config: `{"phone":"mask","id_card":"redact","bank_card":"block","email":"hash","ip":"off"}`},
		{config: `{"e164":"off","iban":"mask","id_card_15":true,"bank_card_13_15":true,"skip_code":true}`},
		{config: `{"labels":{"phone":"[tel]","ip":"***"},"allow":["a@example.com","/^138/"]}`},
		{config: `{"hash_key":"0123456789abcdef"}`},
		{config: `{"hash_key_env":"KEY"}`},
		{config: `{"hash_key_file":"key"}`},
		{config: `[]`, want: "expected an object"},
		{config: `{"phone":"masked"}`, want: `/phone: unknown strategy "masked", one of block, redact, mask, hash, off (did you mean "mask"?)`},
		{config: `{"phone":""}`, want: `/phone: unknown strategy ""`},
		{config: `{"phone":true}`, want: "/phone: expected a string"},
		{config: `{"ipv4":"off"}`, want: `/ipv4: unknown key "ipv4"`},
		{config: `{"Phone":"off"}`, want: `/Phone: unknown key "Phone" (did you mean "phone"?)`},
		{config: `{"skip_code":"yes"}`, want: "/skip_code: expected true or false"},
		{config: `{"labels":{"fone":"[x]"}}`, want: `/labels/fone: unknown kind "fone", one of id_card, phone, bank_card, iban, email, e164, ip (did you mean "phone"?)`},
		{config: `{"labels":{"phone":""}}`, want: "/labels/phone: is empty"},
		{config: `{"labels":{"phone":"tel"}}`, want: "/labels/phone: "},
		{config: `{"labels":{"phone":"[\"]"}}`, want: "/labels/phone: "},
		{config: `{"labels":{"phone":"[13812345678]"}}`, want: "/labels/phone: holds personal data itself", beyond: true},
		{config: `{"allow":[""]}`, want: "/allow/0: is empty"},
		{config: `{"allow":["//"]}`, want: "/allow/0: the pattern // allows everything"},
		{config: `{"allow":["x","/(/"]}`, want: "/allow/1: bad regular expression", beyond: true},
		{config: `{"allow":"x"}`, want: "/allow: expected a list"},
		{config: `{"hash_key":"short"}`, want: "/hash_key: is too short"},
		{config: `{"hash_key":"0123456789abcdef","hash_key_env":"KEY"}`, want: "give one of them", beyond: true},
		{config: `{"phone":"off","phone":"mask"}`, want: "duplicate name", beyond: true},
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
