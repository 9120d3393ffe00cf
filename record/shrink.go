package record

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
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
	if kept, more := cutNote(s); more > 0 { // it was cut once before
		cut = min(cut, len(kept))
		return cutQuote(s[:cut], len(kept)-cut+more)
	}
	return cutQuote(s[:cut], len(s)-cut)
}

// The words about the rest of a text stand around its length.
const noteBegin, noteEnd = "…[", " more bytes are not recorded]"

func cutQuote(s string, more int) jsontext.Value {
	return protocol.Quote(s + noteBegin + strconv.Itoa(more) + noteEnd)
}

// cutNote takes the words about the rest from a text, and returns how much they
// say is missing; 0 when the text has none.
func cutNote(s string) (kept string, more int) {
	rest, ok := strings.CutSuffix(s, noteEnd)
	at := strings.LastIndex(rest, noteBegin)
	if !ok || at < 0 {
		return s, 0
	}
	more, err := strconv.Atoi(rest[at+len(noteBegin):])
	if err != nil || more <= 0 || more > maxNoted {
		return s, 0
	}
	return rest[:at], more
}

// maxNoted is more than a text can miss: what says so was not written by us.
const maxNoted = 1 << 40

// edge is how much of a text before a cut may be the beginning of something
// that a mask would have taken out, had it seen the whole.
const edge = 256

// dropEdges takes away the last bytes of all texts that were cut, so that no
// half of what the mask had to see whole is left.
func dropEdges(v jsontext.Value) jsontext.Value {
	var out []byte
	copied := 0
	eachText(v, func(from, to int) {
		if !bytes.HasSuffix(v[from:to], []byte(noteEnd+`"`)) {
			return
		}
		kept, more := cutNote(protocol.Unquote(v[from:to]))
		if more == 0 {
			return
		}
		short := dropEdge(kept)
		out = append(append(out, v[copied:from]...), cutQuote(short, len(kept)-len(short)+more)...)
		copied = to
	})
	if out == nil {
		return v
	}
	return append(out, v[copied:]...)
}

// dropEdge is the text without its edge.
func dropEdge(s string) string {
	cut := max(len(s)-edge, 0)
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut]
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
