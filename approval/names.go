package approval

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
)

// Names are made of letters that can be told apart when they are read aloud.
const (
	consonants = "bdfgjlmnprtvz"
	vowels     = "aeiou"
)

// newName makes an id such as "bavi-nope-42". There are 1.7 billion, so none is
// hit by chance; it is no secret, because it is not what gives a right.
func newName() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: the program would end
	n := binary.LittleEndian.Uint64(b[:])
	take := func(from uint64) uint64 {
		got := n % from
		n /= from
		return got
	}
	syllable := func() string {
		return string([]byte{consonants[take(uint64(len(consonants)))], vowels[take(uint64(len(vowels)))]})
	}
	return fmt.Sprintf("%s%s-%s%s-%02d", syllable(), syllable(), syllable(), syllable(), take(100))
}
