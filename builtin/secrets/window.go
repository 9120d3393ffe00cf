package secrets

import (
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

// How far from its keyword a match can reach is not counted in bytes but in
// those that are not of a token: a key may be as long as it wants to be, and yet
// a match of its rule holds few spaces, quotes and the like.

// reach returns how many bytes that are not of a token a match can hold, and one
// more; or 0 when that is not known, or when it is not certain that each match
// holds one of the keywords. Then the whole text is searched.
func reach(regex string, keywords []string) int {
	re, err := syntax.Parse(regex, syntax.Perl)
	if err != nil || len(keywords) == 0 {
		return 0
	}
	most := loose(re)
	if most < 0 || most > maxReach || !alwaysHolds(re, keywords) {
		return 0
	}
	return most + 1
}

// maxReach is the reach from which searching near keywords saves nothing, and
// maxSet how many texts a part of a pattern can stand for.
const (
	maxReach = 2 << 10
	maxSet   = 64
)

// ofToken reports whether a byte is one of which tokens are made.
func ofToken(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	}
	return strings.IndexByte("+/=_.-\\", c) >= 0
}

// loose returns how many bytes that are not of a token a match has at most, or -1
// when there is no end to them.
func loose(re *syntax.Regexp) int {
	switch re.Op {
	case syntax.OpLiteral:
		n := 0
		for _, r := range re.Rune {
			n += looseRune(r)
		}
		return n
	case syntax.OpCharClass:
		return looseClass(re.Rune)
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return utf8.UTFMax
	case syntax.OpCapture, syntax.OpQuest:
		return loose(re.Sub[0])
	case syntax.OpStar, syntax.OpPlus, syntax.OpRepeat:
		n := loose(re.Sub[0])
		switch {
		case n <= 0:
			return n
		case re.Op != syntax.OpRepeat || re.Max < 0:
			return -1
		}
		return min(n*re.Max, maxReach+1)
	case syntax.OpConcat, syntax.OpAlternate:
		total := 0
		for _, sub := range re.Sub {
			n := loose(sub)
			if n < 0 {
				return -1
			}
			if re.Op == syntax.OpAlternate {
				total = max(total, n)
			} else {
				total = min(total+n, maxReach+1)
			}
		}
		return total
	}
	return 0 // nothing but a condition
}

// foldsToASCII are the signs for kelvin and the long s: with (?i) they are a k
// and an s, and nobody writes a key with them.
const foldsToASCII = "\u212a\u017f"

func looseRune(r rune) int {
	if r < utf8.RuneSelf && ofToken(byte(r)) || strings.ContainsRune(foldsToASCII, r) {
		return 0
	}
	return max(utf8.RuneLen(r), 1)
}

// looseClass returns what one character of a class costs at most.
func looseClass(ranges []rune) int {
	most := 0
	for i := 0; i+1 < len(ranges); i += 2 {
		if ranges[i+1]-ranges[i] > utf8.RuneSelf {
			return utf8.UTFMax
		}
		for r := ranges[i]; r <= ranges[i+1]; r++ {
			most = max(most, looseRune(r))
		}
	}
	return most
}

// windows returns the parts of a text that lie within reach of one of these
// places; those that touch are one.
func windows(s string, places [][2]int, reach int) [][2]int {
	if reach == 0 {
		return [][2]int{{0, len(s)}}
	}
	var list [][2]int
	for _, at := range places {
		n := len(list)
		if n > 0 && at[1] <= list[n-1][1] && at[0] >= list[n-1][0] {
			// Only its right side can be new.
			list[n-1][1] = max(list[n-1][1], rightEnd(s, at[1], reach))
			continue
		}
		w := [2]int{leftEnd(s, at[0], reach), rightEnd(s, at[1], reach)}
		if n > 0 && w[0] <= list[n-1][1] {
			list[n-1][0], list[n-1][1] = min(w[0], list[n-1][0]), max(w[1], list[n-1][1])
		} else {
			list = append(list, w)
		}
	}
	return list
}

func leftEnd(s string, at, reach int) int {
	for ; at > 0 && reach > 0; at-- {
		if !ofToken(s[at-1]) {
			reach--
		}
	}
	return at
}

func rightEnd(s string, at, reach int) int {
	for ; at < len(s) && reach > 0; at++ {
		if !ofToken(s[at]) {
			reach--
		}
	}
	return at
}

// alwaysHolds reports whether it is certain that every match holds one of these
// words, upper and lower case the same.
func alwaysHolds(re *syntax.Regexp, words []string) bool {
	if all := texts(re); all != nil {
		return holdOne(all, words)
	}
	switch re.Op {
	case syntax.OpCapture, syntax.OpPlus:
		return alwaysHolds(re.Sub[0], words)
	case syntax.OpRepeat:
		return re.Min > 0 && alwaysHolds(re.Sub[0], words)
	case syntax.OpAlternate:
		return !slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return !alwaysHolds(sub, words) })
	case syntax.OpConcat:
		run := []string{""} // what the parts since the last unknown one stand for
		for _, sub := range re.Sub {
			if alwaysHolds(sub, words) {
				return true
			}
			run = product(run, texts(sub))
			if run == nil {
				run = []string{""}
				if all := texts(sub); all != nil {
					run = all
				}
			}
			if holdOne(run, words) {
				return true
			}
		}
	}
	return false
}

func holdOne(all, words []string) bool {
	return len(all) > 0 && !slices.ContainsFunc(all, func(s string) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return strings.Contains(s, strings.ToLower(w)) })
	})
}

// texts returns all that a pattern matches, in lower case, or nil when that is
// not known or too much.
func texts(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpLiteral:
		return []string{strings.ToLower(string(re.Rune))}
	case syntax.OpCharClass:
		return classTexts(re.Rune)
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return []string{""}
	case syntax.OpCapture:
		return texts(re.Sub[0])
	case syntax.OpQuest:
		if all := texts(re.Sub[0]); all != nil && len(all) < maxSet {
			return append(slices.Clone(all), "")
		}
	case syntax.OpConcat:
		all := []string{""}
		for _, sub := range re.Sub {
			if all = product(all, texts(sub)); all == nil {
				return nil
			}
		}
		return all
	case syntax.OpAlternate:
		var all []string
		for _, sub := range re.Sub {
			some := texts(sub)
			if some == nil || len(all)+len(some) > maxSet {
				return nil
			}
			all = append(all, some...)
		}
		return all
	}
	return nil
}

// classTexts returns the characters of a small class.
func classTexts(ranges []rune) (all []string) {
	for i := 0; i+1 < len(ranges); i += 2 {
		if ranges[i+1]-ranges[i] > 4 || len(all) > 8 {
			return nil
		}
		for r := ranges[i]; r <= ranges[i+1]; r++ {
			all = append(all, strings.ToLower(string(r)))
		}
	}
	return all
}

// product returns each of a followed by each of b, or nil.
func product(a, b []string) []string {
	if a == nil || b == nil || len(a)*len(b) > maxSet {
		return nil
	}
	all := make([]string, 0, len(a)*len(b))
	for _, x := range a {
		for _, y := range b {
			all = append(all, x+y)
		}
	}
	return all
}
