package text

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/protocol"
)

// seven replaces each 7 by an S.
func seven(p *Part) (string, bool) {
	if !strings.Contains(p.Text, "7") {
		return "", false
	}
	return strings.ReplaceAll(p.Text, "7", "S"), true
}

func TestRewrite(t *testing.T) {
	for in, want := range map[string]string{
		`"7"`:                             `"S"`,
		`"none"`:                          ``,
		`{}`:                              ``,
		`[7, true, null, 1.5]`:            ``,
		`{"a":"7","b":["7",{"c":7}]}`:     `{"a":"S","b":["S",{"c":7}]}`,
		"{ \"a\" :\n \"7\" , \"n\":1.0 }": "{ \"a\" :\n \"S\" , \"n\":1.0 }",
		`{"a":"\u0037\n\"x\""}`:           `{"a":"S\n\"x\""}`,
		`{"a":"\u0041","b":"7"}`:          `{"a":"\u0041","b":"S"}`,
		`{"n":17777777777}`:               `{"n":"1SSSSSSSSSS"}`,
		`{"n":-17777777777}`:              ``,
		`{"n":1777777777.7}`:              ``,
		`{"n":1.7777777777e77}`:           ``,
		`{"n":777}`:                       ``,
		// Names, and names that would stand twice.
		`{"7":"x"}`:                    `{"S":"x"}`,
		`{"7":1,"S":2}`:                `{"S 2":1,"S":2}`,
		`{"a7":1,"\u00617":2}`:         `{"aS":1,"aS 2":2}`, // not strict, and yet no harm
		`[{"S":0,"7":1,"77":{"7":2}}]`: `[{"S":0,"S 2":1,"SS":{"S":2}}]`,
		// JSON within strings.
		`{"arguments":"{\"p\":\"7\",\"n\":17777777777,\"k\":7}"}`: `{"arguments":"{\"p\":\"S\",\"n\":\"1SSSSSSSSSS\",\"k\":7}"}`,
		`"[\"a\",\"[\\\"7\\\"]\"]"`:                               `"[\"a\",\"[\\\"S\\\"]\"]"`,
		`"{\"a\":\"7\"}\n{\"a\":\"8\"}\n"`:                        `"{\"a\":\"S\"}\n{\"a\":\"8\"}\n"`,
		`"{\"a\":7}"`:                                             ``,
		`"{\"a\": 7"`:                                             `"{\"a\": S"`,
		`"{7}"`:                                                   `"{S}"`,
		`" \n[\"7\"] "`:                                           `" \n[\"S\"] "`,
	} {
		out, changed := Rewrite(jsontext.Value(in), nil, seven)
		if want == "" {
			require.False(t, changed, in)
			want = in
		} else {
			require.True(t, changed, in)
		}
		require.Equal(t, want, string(out))
	}
}

// What is nested more deeply than anybody nests is plain text, not a reason to
// give up.
func TestRewriteDeeplyEmbedded(t *testing.T) {
	text := `{"a":"7"}`
	for range 12 {
		text = `{"a":` + string(protocol.Quote(text)) + `}`
	}
	out, changed := Rewrite(jsontext.Value(text), nil, seven)
	require.True(t, changed)
	require.NotContains(t, string(out), "7")
	require.NoError(t, protocol.CheckValue(out, 0))
}

func TestRewriteParts(t *testing.T) {
	var parts []string
	in := `{"n":"v","list":["i",{"deep":12345678901}],"json":"{\"k\":\"w\"}"}`
	Rewrite(jsontext.Value(in), nil, func(p *Part) (string, bool) {
		parts = append(parts, fmt.Sprint(p.Form, " ", p.Name, "=", p.Text))
		return "", false
	})
	require.Equal(t, []string{
		"1 =n", "0 n=v", "1 =list", "0 =i", "1 =deep", "2 deep=12345678901", "1 =json", "1 =k", "0 k=w",
	}, parts)
}

func TestKeepIDs(t *testing.T) {
	in := `[{"role":"assistant","id":"7","content":[{"type":"text","text":"7"},{"type":"tool_use","id":"7","input":{"id":"7"}},` +
		`{"type":"thinking","thinking":"7","signature":"7"},{"type":"tool_result","tool_use_id":"7","content":"7"}],` +
		`"tool_calls":[{"id":"7","function":{"name":"f","arguments":"{\"id\":\"7\"}"}}]},{"role":"tool","tool_call_id":"7","content":"7"}]`
	want := `[{"role":"assistant","id":"7","content":[{"type":"text","text":"S"},{"type":"tool_use","id":"7","input":{"id":"S"}},` +
		`{"type":"thinking","thinking":"S","signature":"7"},{"type":"tool_result","tool_use_id":"7","content":"S"}],` +
		`"tool_calls":[{"id":"7","function":{"name":"f","arguments":"{\"id\":\"S\"}"}}]},{"role":"tool","tool_call_id":"7","content":"S"}]`
	out, _ := Rewrite(jsontext.Value(in), IDs, seven)
	require.Equal(t, want, string(out))
	out, _ = Rewrite(jsontext.Value(`{"id":"7","content":"7","call_id":"7","sender":{"id":"7"}}`), IDs, seven)
	require.Equal(t, `{"id":"7","content":"S","call_id":"7","sender":{"id":"S"}}`, string(out))
}

func TestMedia(t *testing.T) {
	png := base64.StdEncoding.EncodeToString(append([]byte("\x89PNG\r\n\x1a\n"), bytes.Repeat([]byte{1, 2, 3}, 300)...))
	for text, want := range map[string]bool{
		png:                                      true,
		"data:image/png;base64," + png:           true,
		"data:text/plain;base64," + png:          false,
		"data:image/png;base64," + png + " 7":    false,
		png[:100]:                                false,
		"x" + png:                                false,
		strings.Repeat("iVBORw0KGgo secret", 99): false,
		"data:" + strings.Repeat("iVBORw0", 99):  false,
	} {
		require.Equal(t, want, isMedia(text), text[:20])
	}
}

// FuzzRewrite wants valid JSON for valid JSON, whatever is replaced by what.
func FuzzRewrite(f *testing.F) {
	f.Add(`{"a":"7","7":[17777777777,"{\"7\":\"\\u0037\"}"]}`, `x"\`)
	f.Add(`{"7":1,"x":2,"77":"[7]"}`, "x")
	f.Add(`["{\"a\":1}\n{\"b\":\"7\"}"]`, "\n\x00\xff")
	f.Fuzz(func(t *testing.T, in, with string) {
		if protocol.CheckValue([]byte(in), 0) != nil {
			return
		}
		same, changed := Rewrite(jsontext.Value(in), nil, func(*Part) (string, bool) { return "", false })
		require.False(t, changed)
		require.Equal(t, in, string(same))
		out, _ := Rewrite(jsontext.Value(in), nil, func(p *Part) (string, bool) {
			return strings.ReplaceAll(p.Text, "7", with), strings.Contains(p.Text, "7")
		})
		require.NoError(t, protocol.CheckValue(out, 0), "%s → %s", in, out)
	})
}
