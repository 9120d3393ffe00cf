package inputguard

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"
)

// word is a word that is not wanted.
type word struct {
	folded string
	// open: more of the same word may stand before and behind.
	openStart, openEnd bool
	then               action
}

// newWord reads a word of a config.
func newWord(s string, then action) (*word, error) {
	w := &word{then: then}
	s, w.openStart = strings.CutPrefix(strings.TrimSpace(s), "*")
	s, w.openEnd = strings.CutSuffix(s, "*")
	if w.folded = fold(s); w.folded == "" {
		return nil, errors.New("is empty: every message would hold it")
	}
	return w, nil
}

// stands reports whether the word stands in a folded text at a place where its
// first byte is. Words of letters with spaces between them are not found within
// others; Chinese has no spaces, so there every place counts.
func (w *word) stands(s string, start int) bool {
	end := start + len(w.folded)
	first, _ := utf8.DecodeRuneInString(w.folded)
	last, _ := utf8.DecodeLastRuneInString(w.folded)
	before, _ := utf8.DecodeLastRuneInString(s[:start])
	after, _ := utf8.DecodeRuneInString(s[end:])
	return (w.openStart || !joins(before, first)) && (w.openEnd || !joins(last, after))
}

// joins reports whether two characters side by side are of one word.
func joins(a, b rune) bool { return spaced(a) && spaced(b) }

// spaced reports whether a character is of a script that puts spaces between
// words, or a digit.
func spaced(r rune) bool {
	if r == utf8.RuneError {
		return false // beside the text there is nothing
	}
	return (unicode.IsLetter(r) || unicode.IsDigit(r)) && !unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// wordList finds many words in one pass, by their first two characters. A list
// of a hundred thousand words takes a few megabytes.
type wordList struct {
	single map[rune][]*word
	pairs  map[[2]rune][]*word
}

func newWordList(words []*word) *wordList {
	l := &wordList{map[rune][]*word{}, map[[2]rune][]*word{}}
	for _, w := range words {
		first, size := utf8.DecodeRuneInString(w.folded)
		if size == len(w.folded) {
			l.single[first] = append(l.single[first], w)
			continue
		}
		second, _ := utf8.DecodeRuneInString(w.folded[size:])
		l.pairs[[2]rune{first, second}] = append(l.pairs[[2]rune{first, second}], w)
	}
	return l
}

// in calls found for each word that stands in a folded text.
func (l *wordList) in(s string, found func(*word)) {
	if len(l.single) == 0 && len(l.pairs) == 0 {
		return
	}
	for at, first := range s {
		second, _ := utf8.DecodeRuneInString(s[at+utf8.RuneLen(first):])
		for _, list := range [][]*word{l.single[first], l.pairs[[2]rune{first, second}]} {
			for _, w := range list {
				if strings.HasPrefix(s[at:], w.folded) && w.stands(s, at) {
					found(w)
				}
			}
		}
	}
}
