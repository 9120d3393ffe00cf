package console

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The marks in which invisible characters are written, and the one for a tab.
// In the text itself they are escaped too, so that a mark is always a mark.
const (
	markBegin = '‹'
	markEnd   = '›'
	markTab   = '⇥'
)

// maxCombining is how many combining characters may follow a letter. More of
// them, as in no language, could cover what stands around.
const maxCombining = 3

// Escape returns a text as it can be shown on one line: characters that control
// a terminal, change the direction of the text, or can't be seen, are written
// as ‹U+202E›. Two texts that differ look different, as far as letters do.
func Escape(s string) string {
	if plainASCII(s) {
		return s
	}
	var b strings.Builder
	for _, p := range pieces(s) {
		b.WriteString(p.Text)
	}
	return b.String()
}

func plainASCII(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// pieces cuts a text into what is shown as it is and what is a mark.
func pieces(s string) []Span {
	if plainASCII(s) {
		if s == "" {
			return nil
		}
		return []Span{{s, Plain}}
	}
	var out []Span
	begin := 0
	plain := func(end int) {
		if end > begin {
			out = append(out, Span{s[begin:end], Plain})
		}
	}
	combining, letter := 0, false
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		shown := visible(r, size)
		if unicode.In(r, unicode.Mn, unicode.Me) {
			combining++
			shown = shown && letter && combining <= maxCombining
		} else {
			combining, letter = 0, unicode.In(r, unicode.L, unicode.N, unicode.Mc)
		}
		if !shown {
			plain(i)
			out = append(out, Span{mark(s[i:i+size], r), Marked})
			begin = i + size
			letter = false
		}
		i += size
	}
	plain(len(s))
	return out
}

// visible reports whether a terminal shows a character as what it is.
func visible(r rune, size int) bool {
	switch {
	case r == ' ':
		return true
	case r == utf8.RuneError && size == 1, r == markBegin, r == markEnd, r == markTab:
		return false
	case r == '\u2800': // a braille pattern without dots
		return false
	case unicode.In(r, unicode.Zs, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector):
		return false
	}
	return unicode.IsGraphic(r)
}

func mark(text string, r rune) string {
	if r == utf8.RuneError && len(text) == 1 {
		return fmt.Sprintf("%c0x%02X%c", markBegin, text[0], markEnd)
	}
	return fmt.Sprintf("%cU+%04X%c", markBegin, r, markEnd)
}
