package text

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hookd/hookd/protocol"
)

// Strategy says what becomes of a value that was found.
type Strategy string

// The strategies.
const (
	Block  Strategy = "block"  // the step is denied
	Redact Strategy = "redact" // a label stands in its place
	Mask   Strategy = "mask"   // its middle is made of stars
	Hash   Strategy = "hash"   // a keyed hash stands in its place
	Off    Strategy = "off"    // it is not looked for
)

// Strategies lists the strategies as they stand in a config.
func Strategies() []string {
	return []string{string(Block), string(Redact), string(Mask), string(Hash), string(Off)}
}

// Check reports whether s is a strategy.
func (s Strategy) Check() error {
	if list := Strategies(); !slices.Contains(list, string(s)) {
		return fmt.Errorf("unknown strategy %q, one of %s%s", string(s), strings.Join(list, ", "), protocol.DidYouMean(string(s), list))
	}
	return nil
}

// Match is a place in a text that holds something.
type Match struct {
	// Start and End are bytes of the text; a match is not empty.
	Start, End int
	// Kind names what it is; it is no part of it.
	Kind string
	// Rank decides between matches of one length: the lowest wins.
	Rank int
	// With says what becomes of it; Off: it stays, and nothing else is found
	// there.
	With Strategy
	// Label stands in its place for Redact and Block, Masked for Mask.
	Label, Masked string
	// Value is hashed for Hash: the value in one spelling.
	Value string
}

// Settle returns those matches that do not overlap, in the order of the text:
// the longest first, of equals the one with the lowest rank, then the leftmost.
func Settle(list []Match) []Match {
	if len(list) < 2 {
		return list
	}
	slices.SortStableFunc(list, func(a, b Match) int {
		return cmp.Or(cmp.Compare(b.End-b.Start, a.End-a.Start), cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Start, b.Start))
	})
	// The longer come first, so that what overlaps one of them has an end in it.
	taken := make([]bool, slices.MaxFunc(list, func(a, b Match) int { return cmp.Compare(a.End, b.End) }).End)
	kept := list[:0:0]
	for _, m := range list {
		if taken[m.Start] || taken[m.End-1] {
			continue
		}
		for i := m.Start; i < m.End; i++ {
			taken[i] = true
		}
		kept = append(kept, m)
	}
	slices.SortFunc(kept, func(a, b Match) int { return cmp.Compare(a.Start, b.Start) })
	return kept
}

// replacement returns what stands in the place of a match.
func (m *Match) replacement(key []byte) string {
	switch m.With {
	case Mask:
		return m.Masked
	case Hash:
		return hashed(key, m.Kind, m.Value)
	}
	return m.Label
}

// hashDigits is how many hex digits of a hash are shown, and hashRun how many
// decimal ones may stand together, so that none of them looks like a number
// that is searched for.
const (
	hashDigits = 12
	hashRun    = 7
)

// hashed returns the keyed hash of a value. Who has the key can find out of
// which value it is; nobody else can.
func hashed(key []byte, kind, value string) string {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(kind))
	h.Write([]byte{0})
	h.Write([]byte(value))
	digits := hex.EncodeToString(h.Sum(nil))
	at := 0
	for at+hashDigits < len(digits) && longestRun(digits[at:at+hashDigits]) > hashRun {
		at++
	}
	return "[hash:" + digits[at:at+hashDigits] + "]"
}

// longestRun returns how many decimal digits stand together in s at most.
func longestRun(s string) int {
	longest, run := 0, 0
	for _, c := range s {
		if run++; c < '0' || c > '9' {
			run = 0
		}
		longest = max(longest, run)
	}
	return longest
}

// CheckLabel reports whether a label can stand anywhere in a text, also in a piece
// of JSON, without becoming one word with what is beside it.
func CheckLabel(label string) error {
	const word = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.+-_@%:/=\"'`\\"
	switch {
	case label == "":
		return errors.New("is empty")
	case strings.ContainsFunc(label, func(r rune) bool { return r == '"' || r == '\\' || r < ' ' }):
		return fmt.Errorf("%q holds a quote, a backslash or a control character, which would break JSON around it", label)
	case strings.IndexByte(word, label[0]) >= 0 || strings.IndexByte(word, label[len(label)-1]) >= 0:
		return fmt.Errorf("%q could become one word with the text beside it: put it in brackets, such as [%s]", label, strings.Trim(label, word[62:]))
	}
	return nil
}
