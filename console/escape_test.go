package console

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/protocol"
)

func TestEscape(t *testing.T) {
	for in, want := range map[string]string{
		"git push":                        "git push",
		"":                                "",
		"größer 文件 файл שלום":             "größer 文件 файл שלום",
		"a\x1b[2Kb":                       "a‹U+001B›[2Kb",
		"a\r\nb\tc":                       "a‹U+000D›‹U+000A›b‹U+0009›c",
		"rm\u202e -rf\u2066":              "rm‹U+202E› -rf‹U+2066›",
		"pay\u200bpal\ufeff":              "pay‹U+200B›pal‹U+FEFF›",
		"\u00adsoft\u00a0space":           "‹U+00AD›soft‹U+00A0›space",
		"\u009b31m":                       "‹U+009B›31m",
		"hangul\u3164filler\uffa0":        "hangul‹U+3164›filler‹U+FFA0›",
		"blank\u2800":                     "blank‹U+2800›",
		"tag\U000e0041":                   "tag‹U+E0041›",
		"vs\ufe0f\U000e0100":              "vs‹U+FE0F›‹U+E0100›",
		"bad\xff\xc3":                     "bad‹0xFF›‹0xC3›",
		"\ufffd":                          "\ufffd",
		"‹U+202E›":                        "‹U+2039›U+202E‹U+203A›",
		"⇥":                               "‹U+21E5›",
		"line\u2028para\u2029":            "line‹U+2028›para‹U+2029›",
		"private\ue000":                   "private‹U+E000›",
		"e\u0301 ok":                      "e\u0301 ok",
		"\u0301x":                         "‹U+0301›x",
		" \u0301":                         " ‹U+0301›",
		"z" + strings.Repeat("\u0301", 5): "z" + strings.Repeat("\u0301", 3) + "‹U+0301›‹U+0301›",
		"กำ":                              "กำ",
	} {
		require.Equal(t, want, Escape(in))
	}
}

// Whatever comes in, what goes out moves no cursor, hides nothing, and can be
// read back.
func FuzzEscape(f *testing.F) {
	for _, s := range []string{"git push", "\x1b[2J", "a\u202eb", "\xff\xfe", "‹U+0041›", "e\u0301\u0301\u0301\u0301", "\ufffd", "文件\u3164"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		out := Escape(s)
		require.True(t, utf8.ValidString(out))
		for _, r := range out {
			require.True(t, unicode.IsGraphic(r), "%U", r)
			require.False(t, unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Cc, r) || r != ' ' && unicode.Is(unicode.Zs, r), "%U", r)
			require.False(t, unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector), "%U", r)
		}
		require.Equal(t, s, unescape(t, out))
		n := 0
		for _, p := range pieces(s) {
			n += columns(p.Text)
		}
		require.Equal(t, columns(out), n)
		// Wrapped it is all there, in its order.
		var b strings.Builder
		for _, l := range wrap(pieces(s), Span{bar, Dim}, Span{wrapBar, Dim}, 12) {
			require.LessOrEqual(t, l.width(), 12)
			b.WriteString(l[1:].String())
		}
		require.Equal(t, out, b.String())
	})
}

// unescape reads marks back.
func unescape(t *testing.T, s string) string {
	t.Helper()
	var b strings.Builder
	for s != "" {
		before, rest, found := strings.Cut(s, string(markBegin))
		b.WriteString(before)
		if !found {
			break
		}
		inner, after, found := strings.Cut(rest, string(markEnd))
		require.True(t, found)
		b.WriteString(readMark(t, inner))
		s = after
	}
	return b.String()
}

func readMark(t *testing.T, inner string) string {
	t.Helper()
	var n rune
	digits, isByte := strings.CutPrefix(inner, "0x")
	if !isByte {
		digits = strings.TrimPrefix(inner, "U+")
	}
	for _, d := range digits {
		n = n*16 + rune(strings.IndexRune("0123456789ABCDEF", d))
	}
	if isByte {
		return string([]byte{byte(n)})
	}
	return string(n)
}

// Whatever the arguments are, the page fits the terminal and holds no control
// character.
func FuzzPage(f *testing.F) {
	f.Add("bash", `{"command":"git push"}`, uint8(80), uint8(24))
	f.Add("edit", `{"file_path":"/a","old_string":"a\nb","new_string":"a\nc","n":[1,{"x":"\u202e"}]}`, uint8(40), uint8(10))
	f.Add("\x1b]0;x", `{"edits":[{"old_string":"\t","new_string":"\r"}],"a\n":1.0}`, uint8(3), uint8(2))
	f.Fuzz(func(t *testing.T, tool, arguments string, width, height uint8) {
		if protocol.CheckValue([]byte(arguments), 0) != nil {
			return // nothing else comes from hookd
		}
		p := page(t, int(width)+1, int(height)+1, call("bavi-nope-42", tool, arguments))
		for _, key := range []string{"", "space", "v", "end", "r", "?"} {
			press(p, key)
			for _, r := range screen(t, p) {
				require.True(t, r == '\n' || unicode.IsGraphic(r), "%U", r)
			}
		}
	})
}
