package text

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestFold(t *testing.T) {
	for in, want := range map[string]string{
		"":                        "",
		"plain, 中文 é":             "plain, 中文 é",
		"１３８－ＡＢｃ＠":                "138-ABc@",
		"13\u200b8\ufeff1\u00ad2": "13812",
		"a\u3000b\u00a0c\u2009d":  "a b c d",
		"1\u20102\u20113\u20134":  "1-2-3-4",
		"𝟏𝟑𝟖 𝟶𝟷":                  "138 01",
		"a\U000E0041b\ufe0f":      "ab",
		"bad \xff byte １":         "bad \xff byte 1",
	} {
		f := Fold(in)
		require.Equal(t, want, f.Text)
	}
}

func TestFoldPlace(t *testing.T) {
	in := "电话\u200b１３\u200b８x中"
	f := Fold(in)
	require.Equal(t, "电话138x中", f.Text)
	at := len("电话")
	start, end := f.Place(at, at+3)
	require.Equal(t, "１３\u200b８", in[start:end])
	start, end = f.Place(at+3, at+4)
	require.Equal(t, "x", in[start:end])
	start, end = f.Place(at+4, at+7)
	require.Equal(t, "中", in[start:end])
	plain := Fold("abc")
	start, end = plain.Place(1, 2)
	require.Equal(t, []int{1, 2}, []int{start, end})
}

func FuzzFold(f *testing.F) {
	f.Add("电话\u200b１３８")
	f.Add("\xff\u2009\U000E0041")
	f.Fuzz(func(t *testing.T, in string) {
		folded := Fold(in)
		require.Equal(t, folded.Text, Fold(folded.Text).Text)
		require.Equal(t, utf8.ValidString(in), utf8.ValidString(folded.Text))
		for i := range folded.Text {
			start, end := folded.Place(i, i+1)
			require.Less(t, start, end)
			require.LessOrEqual(t, end, len(in))
		}
	})
}

func TestCode(t *testing.T) {
	for in, want := range map[string][]string{
		"no code":                               nil,
		"a\n```go\nx\n```\nb":                   {"```go\nx\n```\n"},
		"```\nnot closed":                       nil,
		"````\n```\n````\n":                     {"````\n```\n````\n"},
		"~~~\nx\n~~~":                           {"~~~\nx\n~~~"},
		"> ```\n> x\n> ```\n":                   {"> ```\n> x\n> ```\n"},
		"```\na\n```\nmid\n```\nb\n```\n":       {"```\na\n```\n", "```\nb\n```\n"},
		"```\na\n``` trailing\nb\n```\n":        {"```\na\n``` trailing\nb\n```\n"},
		"in `line` and ``` three ``` in a line": nil,
	} {
		var got []string
		for _, at := range Code(in) {
			got = append(got, in[at[0]:at[1]])
		}
		require.Equal(t, want, got, in)
	}
}
