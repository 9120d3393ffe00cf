package text

import (
	"unicode/utf8"
)

// Folded is a text as it is searched: characters that can't be seen are gone,
// full-width letters and digits, odd spaces and odd hyphens are the plain ones.
type Folded struct {
	// Text is the folded text.
	Text string
	from string
	// starts holds, for each byte of Text, where it stands in from; nil when
	// the texts are the same.
	starts []int32
}

// Fold folds a text of less than 2 GB.
func Fold(s string) Folded {
	first := firstFolding(s)
	if first < 0 {
		return Folded{Text: s, from: s}
	}
	out := append(make([]byte, 0, len(s)), s[:first]...)
	starts := make([]int32, first, len(s))
	for i := range starts {
		starts[i] = int32(i)
	}
	for i := first; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if to, folds := fold(r); folds {
			if to != 0 {
				out, starts = append(out, to), append(starts, int32(i))
			}
		} else {
			for k := range size {
				out, starts = append(out, s[i+k]), append(starts, int32(i+k))
			}
		}
		i += size
	}
	return Folded{Text: string(out), from: s, starts: starts}
}

// Place says where a place of the folded text lies in the text itself. It must
// not be empty.
func (f *Folded) Place(start, end int) (int, int) {
	if f.starts == nil {
		return start, end
	}
	last := int(f.starts[end-1])
	_, size := utf8.DecodeRuneInString(f.from[last:])
	return int(f.starts[start]), last + size
}

// firstFolding returns where the first character stands that changes, or -1.
// Most texts have none, so bytes that can't begin one are passed over.
func firstFolding(s string) int {
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c < 0x80:
			i++
			continue
		case 0xE4 <= c && c <= 0xED: // CJK, Hangul
			i += 3
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if _, folds := fold(r); folds {
			return i
		}
		i += size
	}
	return -1
}

// fold returns what a character is folded to; 0 is nothing at all.
func fold(r rune) (to byte, folds bool) {
	switch {
	case r < 0x80:
		return 0, false
	case 0xFF01 <= r && r <= 0xFF5E:
		return byte(r - 0xFF01 + '!'), true
	case 0x1D7CE <= r && r <= 0x1D7FF: // digits of mathematics, five alphabets
		return '0' + byte((r-0x1D7CE)%10), true
	case Invisible(r):
		return 0, true
	}
	switch r {
	case 0xA0, 0x202F, 0x205F, 0x3000:
		return ' ', true
	case 0x2212, 0xFE58, 0xFE63:
		return '-', true
	}
	switch {
	case 0x2000 <= r && r <= 0x200A:
		return ' ', true
	case 0x2010 <= r && r <= 0x2015:
		return '-', true
	}
	return 0, false
}

// Invisible reports whether a character takes no room and has no meaning in a
// text of words: zero-width, direction and variation marks, tags.
func Invisible(r rune) bool {
	switch {
	case r == 0xAD, r == 0x34F, r == 0x61C, r == 0x180E, r == 0xFEFF, r == 0x3164, r == 0xFFA0:
		return true
	case 0x200B <= r && r <= 0x200F, 0x202A <= r && r <= 0x202E, 0x2060 <= r && r <= 0x206F:
		return true
	case 0xFE00 <= r && r <= 0xFE0F, 0xE0000 <= r && r <= 0xE0FFF:
		return true
	}
	return false
}
