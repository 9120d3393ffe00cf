package pii

import (
	"context"
	"slices"
	"sort"
	"strings"

	"github.com/hookd/hookd/builtin/text"
)

// finder finds personal data in one pass over a text.
type finder struct {
	config *config
	with   [kinds]text.Strategy
	labels [kinds]string
	allow  *text.Allow
}

// Find returns what is found in a part.
func (f *finder) Find(ctx context.Context, p *text.Part) ([]text.Match, error) {
	if p.Media {
		return nil, nil
	}
	return f.find(p.Text, p.Form), context.Cause(ctx)
}

func (f *finder) find(s string, form text.Form) []text.Match {
	sc := scan{finder: f, s: s}
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case isDigit(c):
			end := i + 1
			for end < len(s) && isDigit(s[end]) {
				end++
			}
			sc.digits(i, end)
			i = end
		case c == '@':
			sc.email(i, i+1)
			i++
		case c == '%' && strings.HasPrefix(s[i:], "%40"):
			sc.email(i, i+3)
			i += 3
		case c == ':':
			sc.ipv6(i)
			i++
		case isLetter(c) && (i == 0 || !isAlnum(s[i-1])):
			sc.iban(i)
			i++
		default:
			i++
		}
	}
	if f.config.SkipCode && form == text.String && len(sc.found) > 0 {
		code := text.Code(s)
		sc.found = slices.DeleteFunc(sc.found, func(m text.Match) bool {
			// The first block that ends behind the match's beginning.
			i := sort.Search(len(code), func(i int) bool { return code[i][1] > m.Start })
			return i < len(code) && code[i][0] < m.End
		})
	}
	return sc.found
}

// scan is the search of one text.
type scan struct {
	*finder
	s     string
	found []text.Match
}

// wants reports whether a kind is looked for.
func (sc *scan) wants(k kind) bool { return sc.with[k] != text.Off }

// add notes a match. value is its one spelling; first and last say how many
// letters and digits a mask leaves at its ends.
func (sc *scan) add(k kind, start, end int, value string, first, last int) {
	raw := sc.s[start:end]
	m := text.Match{Start: start, End: end, Kind: kindNames[k], Rank: int(k), With: sc.with[k], Label: sc.labels[k], Value: value}
	if sc.allow.Has(raw, value) {
		m.With = text.Off
	}
	if m.With == text.Mask {
		m.Masked = mask(raw, first, last)
	}
	sc.found = append(sc.found, m)
}

// mask makes stars of the letters and digits of s but for some at its ends, and
// keeps what stands between them.
func mask(s string, first, last int) string {
	b := []byte(s)
	n := 0
	for _, c := range b {
		if isAlnum(c) {
			n++
		}
	}
	at := 0
	for i, c := range b {
		if !isAlnum(c) {
			continue
		}
		if at >= first && at < n-last {
			b[i] = '*'
		}
		at++
	}
	return string(b)
}

// keepDigits returns the digits of s.
func keepDigits(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' }) < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := range len(s) {
		if isDigit(s[i]) {
			b = append(b, s[i])
		}
	}
	return string(b)
}

func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
func isLetter(c byte) bool { c |= 0x20; return 'a' <= c && c <= 'z' }
func isAlnum(c byte) bool  { return isDigit(c) || isLetter(c) }
func isHex(c byte) bool    { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

// at returns a byte of the text, or 0 outside of it.
func (sc *scan) at(i int) byte {
	if i < 0 || i >= len(sc.s) {
		return 0
	}
	return sc.s[i]
}
