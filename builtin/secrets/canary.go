package secrets

import (
	"encoding/base64"
	"encoding/hex"
	"strings"

	"github.com/hookd/hookd/builtin/text"
)

// minCanary is how long a canary is at least, so that nothing else looks like it.
const minCanary = 8

// canaries are strings that must never come out, in the spellings in which they
// are looked for. Upper and lower case are the same.
type canaries struct{ spellings []string }

func newCanaries(list []string) *canaries {
	c := &canaries{}
	for _, value := range list {
		value = text.Fold(value).Text
		c.spellings = append(c.spellings, text.Lower(value), hex.EncodeToString([]byte(value)))
		c.spellings = append(c.spellings, inBase64(value)...)
	}
	return c
}

// inBase64 returns what is always the same of a text in base64, whatever stands
// before and behind it: one spelling for each of three places of its first byte.
func inBase64(s string) (spellings []string) {
	for lead := range 3 {
		padded := strings.Repeat("\x00", lead) + s
		whole := len(padded) / 3 * 3
		first := (lead*8 + 5) / 6 // characters that depend on what stands before
		for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			spelling := text.Lower(enc.EncodeToString([]byte(padded[:whole]))[first:])
			if len(spelling) >= minCanary && (len(spellings) == 0 || spellings[len(spellings)-1] != spelling) {
				spellings = append(spellings, spelling)
			}
		}
	}
	return spellings
}

// find returns the places of canaries in a folded text.
func (c *canaries) find(s string) (places [][2]int) {
	if len(c.spellings) == 0 || len(s) < minCanary {
		return nil
	}
	s = text.Lower(s)
	for _, spelling := range c.spellings {
		for at := 0; ; {
			n := strings.Index(s[at:], spelling)
			if n < 0 {
				break
			}
			places = append(places, [2]int{at + n, at + n + len(spelling)})
			at += n + len(spelling)
		}
	}
	return places
}

// in reports whether a canary stands in a folded text.
func (c *canaries) in(s string) bool { return len(c.find(s)) > 0 }
