package console

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestKeys(t *testing.T) {
	for in, want := range map[string]string{
		"y": "y", "yn": "y n", "\r": "enter", "\n": "enter", "\t": "tab", "\x7f": "backspace", "\x03": "ctrl-c", "\x15": "ctrl-u",
		"\x1b[A": "up", "\x1bOB": "down", "\x1b[5~": "pgup", "\x1b[6~": "pgdn", "\x1b[Z": "shift-tab", " ": "  ",
		"ä": "ä", "文": "文", "\xffy": "y", "\x1b": "esc", "\x1b\x1b": "esc esc",
		// What is not known is taken whole: no letter of it is a key.
		"\x1b[1;5y": "", "\x1b[?1;2c": "", "\x1bOy": "", "\x1by": "", "\x1bän": "n", "\x1b[Iy": "y",
		"\x1b[": "", "\x1b[12": "", "\x1bO": "", "\xc3": "",
		"\x1b[" + strings.Repeat("1", 100) + "y": strings.TrimSpace(strings.Repeat("1 ", 69) + "y"),
		"\x1b[200~yes\x1b[201~n":                 "paste(yes) n",
		"\x1b[200~y\x1b[20":                      "",
		"\x1b[200~a\x1b[A\x1b[201~":              "paste(a\x1b[A)",
	} {
		require.Equal(t, strings.TrimSpace(want), keyNames(new(Keys).feedAll(in, max(len(in), 1))), "%q", in)
		require.Equal(t, strings.TrimSpace(want), keyNames(new(Keys).feedAll(in, 1)), "%q byte by byte", in)
	}
}

// feedAll hands over so many bytes at a time, and then no more.
func (k *Keys) feedAll(s string, size int) (keys []Key) {
	for b := []byte(s); len(b) > 0; b = b[min(size, len(b)):] {
		keys = append(keys, k.Feed(b[:min(size, len(b))])...)
	}
	return append(keys, k.Flush()...)
}

func keyNames(keys []Key) string {
	var list []string
	for _, k := range keys {
		if k.Name == "paste" {
			k.Name += "(" + k.Text + ")"
		}
		list = append(list, k.Name)
	}
	return strings.TrimSpace(strings.Join(list, " "))
}

func TestLongPaste(t *testing.T) {
	keys := new(Keys).feedAll("\x1b[200~"+strings.Repeat("y", 3*maxPaste)+"\x1b[201~", 1000)
	require.Len(t, keys, 1)
	require.Len(t, keys[0].Text, maxPaste)
}

// However the bytes are cut, the keys are the same, and nothing is kept for
// ever.
func FuzzKeys(f *testing.F) {
	f.Add([]byte("y\x1b[A\x1b[200~paste\x1b[201~n"), uint8(3))
	f.Add([]byte("\x1b\x1b\x1bO\xff\xc3"), uint8(1))
	f.Fuzz(func(t *testing.T, b []byte, size uint8) {
		whole := new(Keys).feedAll(string(b), len(b)+1)
		var k Keys
		parts := k.feedAll(string(b), int(size)+1)
		require.Equal(t, whole, parts)
		require.LessOrEqual(t, len(k.rest), maxSequence+utf8.UTFMax+len(pasteEnd))
		require.LessOrEqual(t, len(k.pasted), maxPaste)
	})
}
