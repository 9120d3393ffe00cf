package shell

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// unescape takes the backslashes from text outside of quotes.
func unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			if i++; s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// unescapeIn takes the backslashes from text in double quotes, where they stand
// for themselves unless they are before one of special.
func unescapeIn(s, special string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && (s[i+1] == '\n' || strings.IndexByte(special, s[i+1]) >= 0) {
			if i++; s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// unescapeC reads the text of $'…'.
func unescapeC(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch c := s[i]; c {
		case 'a', 'b', 'f', 'n', 'r', 't', 'v', 'e', 'E':
			b.WriteByte("\a\b\f\n\r\t\v\x1b\x1b"[strings.IndexByte("abfnrtveE", c)])
		case 'x':
			i += writeCode(&b, s[i+1:], 2, 16, true)
		case 'u':
			i += writeCode(&b, s[i+1:], 4, 16, false)
		case 'U':
			i += writeCode(&b, s[i+1:], 8, 16, false)
		case '0', '1', '2', '3', '4', '5', '6', '7':
			i += writeCode(&b, s[i:], 3, 8, true) - 1
		case 'c':
			if i+1 < len(s) {
				i++
				b.WriteByte(s[i] & 0x1f)
			}
		case '\\', '\'', '"', '?':
			b.WriteByte(c)
		default:
			b.WriteByte('\\')
			b.WriteByte(c)
		}
	}
	// What stands behind a zero byte is cut off.
	text, _, _ := strings.Cut(b.String(), "\x00")
	return text
}

// writeCode writes the character of the first digits of s, as a byte or in
// UTF-8, and returns how many they are.
func writeCode(b *strings.Builder, s string, most, base int, raw bool) int {
	n := 0
	for n < len(s) && n < most && digitIn(s[n], base) {
		n++
	}
	if n == 0 {
		return 0
	}
	code, _ := strconv.ParseUint(s[:n], base, 32)
	if raw {
		b.WriteByte(byte(code))
	} else {
		b.Write(utf8.AppendRune(nil, rune(min(code, utf8.MaxRune+1))))
	}
	return n
}

func digitIn(c byte, base int) bool {
	if base == 8 {
		return c >= '0' && c <= '7'
	}
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// requote writes words so that a shell would read them as they are.
func requote(words []field) (text string, ok bool) {
	var b strings.Builder
	for i := range words {
		f := &words[i]
		if f.unsafe || f.glob || f.splits {
			return "", false
		}
		b.WriteByte(' ')
		if f.unknown {
			b.WriteString(f.text)
		} else {
			b.WriteString("'" + strings.ReplaceAll(f.text, "'", `'\''`) + "'")
		}
	}
	return b.String(), true
}
