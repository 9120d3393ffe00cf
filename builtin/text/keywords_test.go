package text

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKeywords(t *testing.T) {
	k := NewKeywords([][]string{{"Key", "token"}, nil, {"key", "忽略"}, {"absent"}})
	require.Equal(t, []Hit{
		{List: 0, Places: [][2]int{{4, 7}, {8, 13}}}, {List: 1}, {List: 2, Places: [][2]int{{4, 7}, {13, 19}}},
	}, k.In("API_KEY Token忽略"))
	require.Equal(t, []Hit{{List: 1}}, k.In(""))
	require.Empty(t, NewKeywords(nil).In("x"))
	require.True(t, k.Any(""), "a list without words")
	few := NewKeywords([][]string{{"Key", "ab"}})
	require.True(t, few.Any("a KEY"))
	require.True(t, few.Any("AB"))
	require.False(t, few.Any("ke y a b"))
}

// FuzzKeywords compares with the plain way to search.
func FuzzKeywords(f *testing.F) {
	f.Add("he,she,his,hers", "uSHErs his")
	f.Add("a,aa,ba,abab", "abababaa")
	f.Fuzz(func(t *testing.T, words, s string) {
		var lists [][]string
		for w := range strings.SplitSeq(words, ",") {
			if w != "" && len(lists) < 20 {
				lists = append(lists, []string{w})
			}
		}
		var got, want [][3]int
		for _, h := range NewKeywords(lists).In(s) {
			for _, at := range h.Places {
				got = append(got, [3]int{h.List, at[0], at[1]})
			}
		}
		for i, list := range lists {
			w := Lower(list[0])
			for at := 0; at+len(w) <= len(s); at++ {
				if Lower(s)[at:at+len(w)] == w {
					want = append(want, [3]int{i, at, at + len(w)})
				}
			}
		}
		require.Equal(t, want, got)
		require.Equal(t, len(want) > 0, NewKeywords(lists).Any(s))
	})
}
