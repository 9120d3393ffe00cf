package text

import (
	"cmp"
	"slices"
	"unicode/utf8"

	ahocorasick "github.com/BobuSumisu/aho-corasick"
)

// Keywords finds out in one pass which of many lists of words occur in a text.
// Upper and lower case of ASCII letters are the same.
type Keywords struct {
	trie   *ahocorasick.Trie
	owners [][]int // by pattern: the lists that it stands in
	always []int   // lists without words
}

// NewKeywords prepares a search. A list without words occurs in every text.
func NewKeywords(lists [][]string) *Keywords {
	k := &Keywords{}
	at := map[string]int{}
	b := ahocorasick.NewTrieBuilder()
	for i, words := range lists {
		if len(words) == 0 {
			k.always = append(k.always, i)
		}
		for _, w := range words {
			w = Lower(w)
			id, known := at[w]
			if !known {
				id = len(k.owners)
				at[w] = id
				k.owners = append(k.owners, nil)
				b.AddString(w)
			}
			k.owners[id] = append(k.owners[id], i)
		}
	}
	k.trie = b.Build()
	return k
}

// Hit is a list of which a word occurs in a text.
type Hit struct {
	// List is the index of the list.
	List int
	// Places are where its words stand, by their ends in order; they may overlap.
	// A list without words has none.
	Places [][2]int
}

// In returns the lists that occur in a text, in their order.
func (k *Keywords) In(s string) []Hit {
	var hits []Hit
	for _, list := range k.always {
		hits = append(hits, Hit{List: list})
	}
	k.trie.Walk(lower(s), func(end, n, pattern int64) bool {
		for _, list := range k.owners[pattern] {
			at := slices.IndexFunc(hits, func(h Hit) bool { return h.List == list })
			if at < 0 {
				at = len(hits)
				hits = append(hits, Hit{List: list})
			}
			hits[at].Places = append(hits[at].Places, [2]int{int(end - n + 1), int(end + 1)})
		}
		return true
	})
	slices.SortFunc(hits, func(a, b Hit) int { return cmp.Compare(a.List, b.List) })
	return hits
}

// Lower returns s with small ASCII letters. Its places stay what they are.
func Lower(s string) string { return string(lower(s)) }

func lower(s string) []byte {
	b := []byte(s)
	for i, c := range b {
		if c < utf8.RuneSelf && 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return b
}
