package text

import (
	"cmp"
	"slices"
)

// Keywords finds out in one pass which of many lists of words occur in a text.
// Upper and lower case of ASCII letters are the same.
//
// It looks up each three bytes of the text in a small table of how words begin,
// which almost none of them do. An automaton reads each byte once, but its tables
// take megabytes for the same words, and the time to fetch them.
type Keywords struct {
	words  []keyword
	starts [1 << startBits]int32 // by the hash of its first bytes: a word, from 1; others follow in next
	short  [256]int32            // the same of shorter words, by their first byte
	always []int                 // lists without words
}

// keyword is a word in small letters.
type keyword struct {
	text  string
	start uint32 // its first bytes
	next  int32  // the next word in the same place, from 1; 0 = none
	lists []int  // those that it stands in
}

const (
	startBytes = 3
	startBits  = 12
)

// startHash is where a word that begins with these bytes is in the table.
func startHash(start uint32) uint32 { return start * 0x9E3779B1 >> (32 - startBits) }

// NewKeywords prepares a search. A list without words occurs in every text; no
// word is empty.
func NewKeywords(lists [][]string) *Keywords {
	k := &Keywords{}
	at := map[string]int{}
	for i, words := range lists {
		if len(words) == 0 {
			k.always = append(k.always, i)
		}
		for _, w := range words {
			w = Lower(w)
			id, known := at[w]
			if !known {
				id = len(k.words)
				at[w] = id
				k.add(w)
			}
			k.words[id].lists = append(k.words[id].lists, i)
		}
	}
	return k
}

// add adds a word.
func (k *Keywords) add(text string) {
	w := keyword{text: text}
	id := int32(len(k.words) + 1)
	if len(text) < startBytes {
		w.next, k.short[text[0]] = k.short[text[0]], id
	} else {
		w.start = uint32(text[0])<<16 | uint32(text[1])<<8 | uint32(text[2])
		h := startHash(w.start)
		w.next, k.starts[h] = k.starts[h], id
	}
	k.words = append(k.words, w)
}

// Hit is a list of which a word occurs in a text.
type Hit struct {
	// List is the index of the list.
	List int
	// Places are where its words stand, by their ends in order; they may overlap.
	// A list without words has none.
	Places [][2]int
}

// Any reports whether a list occurs in a text.
func (k *Keywords) Any(s string) bool {
	if len(k.always) > 0 {
		return true
	}
	any := false
	k.search(s, func(*keyword, int) bool {
		any = true
		return false
	})
	return any
}

// In returns the lists that occur in a text, in their order.
func (k *Keywords) In(s string) []Hit {
	var hits []Hit
	for _, list := range k.always {
		hits = append(hits, Hit{List: list})
	}
	k.search(s, func(w *keyword, from int) bool {
		hits = w.hit(hits, from)
		return true
	})
	for _, h := range hits {
		slices.SortFunc(h.Places, func(a, b [2]int) int { return cmp.Or(cmp.Compare(a[1], b[1]), cmp.Compare(a[0], b[0])) })
	}
	slices.SortFunc(hits, func(a, b Hit) int { return cmp.Compare(a.List, b.List) })
	return hits
}

// search calls each for the words in a text and where they stand, until it returns
// false.
func (k *Keywords) search(s string, each func(w *keyword, from int) bool) {
	var last uint32 // the last bytes
	for i := range len(s) {
		c := small(s[i])
		last = (last<<8 | uint32(c)) & (1<<(8*startBytes) - 1)
		if i >= startBytes-1 {
			for id := k.starts[startHash(last)]; id != 0; id = k.words[id-1].next {
				w, from := &k.words[id-1], i+1-startBytes
				if w.start == last && w.at(s, from) && !each(w, from) {
					return
				}
			}
		}
		for id := k.short[c]; id != 0; id = k.words[id-1].next {
			if w := &k.words[id-1]; w.at(s, i) && !each(w, i) {
				return
			}
		}
	}
}

// at reports whether the word stands in s at this place.
func (w *keyword) at(s string, from int) bool {
	if len(s)-from < len(w.text) {
		return false
	}
	for i := range len(w.text) {
		if small(s[from+i]) != w.text[i] {
			return false
		}
	}
	return true
}

// hit adds a place of the word.
func (w *keyword) hit(hits []Hit, from int) []Hit {
	for _, list := range w.lists {
		at := slices.IndexFunc(hits, func(h Hit) bool { return h.List == list })
		if at < 0 {
			at = len(hits)
			hits = append(hits, Hit{List: list})
		}
		hits[at].Places = append(hits[at].Places, [2]int{from, from + len(w.text)})
	}
	return hits
}

// small returns an ASCII letter as a small one.
func small(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// Lower returns s with small ASCII letters. Its places stay what they are.
func Lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		b[i] = small(c)
	}
	return string(b)
}
