package sessions

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
)

func TestUsage(t *testing.T) {
	for text, want := range map[string]int64{
		`{"usage":{"input_tokens":1,"output_tokens":2}}`:                                              3,
		`{"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}`:                        3,
		`{"usage":{"total_tokens":7}}`:                                                                7,
		`{"usage":{"input_tokens":1,"cache_read_input_tokens":10,"cache_creation_input_tokens":100}}`: 111,
		`{"usage":{"input_tokens":-5,"prompt_tokens":2}}`:                                             2,
		`{"usage":{"input_tokens":99999999999999999}}`:                                                maxTokens,
		`{"usage":{}}`: -1, `{"usage":null}`: -1, `{"usage":[1]}`: -1, `{}`: -1, `{"usage":{"input_tokens":"5"}}`: -1, `[]`: -1,
	} {
		u, ok := ReadUsage(jsontext.Value(text))
		require.Equal(t, want >= 0, ok, text)
		require.Equal(t, max(want, 0), u.Tokens(), text)
	}
}

func TestUsagePlus(t *testing.T) {
	sum := Usage{Input: 1, Output: 2}.Plus(Usage{Input: 10, Total: 5})
	require.Equal(t, Usage{Input: 11, Output: 2, Total: 5}, sum)
	require.Equal(t, int64(18), sum.Tokens())
}
