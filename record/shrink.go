package record

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/protocol"
)

// shortText is the length from which a text may be cut.
const shortText = 64

// shrink makes a valid JSON object at most limit bytes long, or little longer:
// the longest texts in it are cut, all to the same length, and say so. When
// there is too much beside long texts, the largest members are left out. It
// reports whether anything is missing.
func shrink(v jsontext.Value, limit int) (jsontext.Value, bool) {
	if len(v) <= limit {
		return v, false
	}
	if short := cutTexts(v, limit); len(short) <= limit+limit/4 {
		return short, true
	}
	return dropMembers(v, limit), true
}

// cutTexts cuts long texts so that the whole has about limit bytes.
func cutTexts(v jsontext.Value, limit int) jsontext.Value {
	var lengths []int
	eachText(v, func(from, to int) {
		if n := to - from; n > shortText {
			lengths = append(lengths, n)
		}
	})
	most := fairLength(lengths, limit-len(v))
	out, copied := make([]byte, 0, limit+limit/4), 0
	eachText(v, func(from, to int) {
		if to-from > max(most, shortText) {
			out = append(append(out, v[copied:from]...), cutText(protocol.Unquote(v[from:to]), most)...)
			copied = to
		}
	})
	return append(out, v[copied:]...)
}

// fairLength says how long a text may be so that cutting all longer ones to it
// saves -excess bytes.
func fairLength(lengths []int, excess int) int {
	slices.Sort(lengths)
	rest := excess // what the texts may have together
	for _, n := range lengths {
		rest += n
	}
	for i, n := range lengths {
		share := rest / (len(lengths) - i)
		if n > share {
			return max(share, 0)
		}
		rest -= n
	}
	return shortText
}

// cutText returns the start of a text as a JSON string that says what is
// missing. It ends between words, so that no half of a number or key is left.
func cutText(s string, most int) jsontext.Value {
	const note = 48 // what the words about the rest need
	cut := min(max(most-note, 0), len(s))
	for cut > 0 && cut < len(s) && !utf8.RuneStart(s[cut]) {
		cut--
	}
	for back := 0; cut > 0 && cut < len(s) && back < 256 && wordByte(s[cut-1]); back++ {
		cut--
	}
	return protocol.Quote(s[:cut] + fmt.Sprintf("…[%d more bytes are not recorded]", len(s)-cut))
}

// dropMembers leaves out the largest members of an object until the rest fits.
func dropMembers(v jsontext.Value, limit int) jsontext.Value {
	obj, err := protocol.ParseObject(v)
	if err != nil {
		return cutText(string(v), limit)
	}
	bySize := make([]int, len(obj))
	for i := range bySize {
		bySize[i] = i
	}
	slices.SortStableFunc(bySize, func(a, b int) int { return len(obj[b].Value) - len(obj[a].Value) })
	left := len(v)
	for _, i := range bySize {
		if left <= limit {
			break
		}
		left -= len(obj[i].Value)
		obj[i].Value = protocol.Quote(fmt.Sprintf("[%d bytes are not recorded]", len(obj[i].Value)))
		left += len(obj[i].Value)
	}
	if out := obj.AppendJSON(nil); len(out) <= limit*2 {
		return out
	}
	return protocol.Object{{Name: "not_recorded_bytes", Value: fmt.Appendf(nil, "%d", len(v))}}.AppendJSON(nil)
}

// eachText calls f with the place of every string in v that is not a name.
func eachText(v jsontext.Value, f func(from, to int)) {
	for at := 0; at < len(v); at++ {
		if v[at] != '"' {
			continue
		}
		end := stringEnd(v, at+1)
		if !isName(v[end:]) {
			f(at, end)
		}
		at = end - 1
	}
}

// clip cuts a text for people to at most n bytes.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	cut := n
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
