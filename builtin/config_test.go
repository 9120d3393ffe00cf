package builtin

import (
	"errors"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
)

func TestReadConfig(t *testing.T) {
	type inner struct {
		Path string `json:"path"`
	}
	type config struct {
		Name   string           `json:"name"`
		On     bool             `json:"on"`
		Count  int              `json:"count"`
		Most   uint             `json:"most"`
		Share  float64          `json:"share"`
		Names  []string         `json:"names"`
		Inner  *inner           `json:"inner"`
		Inners []inner          `json:"inners"`
		Named  map[string]inner `json:"named"`
	}
	for text, want := range map[string]string{
		``:                               "",
		`null`:                           "",
		`{"name":"x","inner":{}}`:        "",
		`{"nme":1}`:                      `/nme: unknown key "nme" (did you mean "name"?)`,
		`{"inner":{"pth":1}}`:            `/inner/pth: unknown key "pth" (did you mean "path"?)`,
		`{"inners":[{},{"pth":1}]}`:      `/inners/1/pth: unknown key "pth" (did you mean "path"?)`,
		`{"named":{"a/b":{"pth":1}}}`:    `/named/a~1b/pth: unknown key "pth" (did you mean "path"?)`,
		`{"name":1}`:                     "/name: expected a string, got number",
		`{"on":"yes"}`:                   "/on: expected true or false, got string",
		`{"count":1.5}`:                  "/count: expected an integer, got 1.5",
		`{"most":-1}`:                    "/most: expected an integer, 0 or more, got -1",
		`{"share":"1"}`:                  "/share: expected a number, got string",
		`{"names":"x"}`:                  "/names: expected a list, got string",
		`{"names":[1]}`:                  "/names/0: expected a string, got number",
		`{"inner":[]}`:                   "/inner: expected an object, got [",
		`{"named":[]}`:                   "/named: expected an object, got [",
		`[]`:                             "expected an object, got [",
		`{"name":"a","name":"b"}`:        `duplicate name at "/name"`,
		`{"name":"a"`:                    "the JSON ends too early",
		`{"count":99999999999999999999}`: "/count: expected an integer, got 99999999999999999999",
	} {
		var c config
		err := ReadConfig(jsontext.Value(text), &c)
		if want == "" {
			require.NoError(t, err, text)
			continue
		}
		place, ok := errors.AsType[*ConfigError](err)
		require.True(t, ok, "%s: %v", text, err)
		require.Equal(t, want, place.Error(), text)
	}
}
