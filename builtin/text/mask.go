package text

import (
	"context"
	"errors"
	"io"
)

// Masker returns a function that replaces what these scrubbers find, one after
// the other, in texts that are about to be stored: a value of JSON, several of
// them one behind the other, or plain text. JSON stays valid, and what is blocked
// is replaced by its label. The function is safe for concurrent use; it does not
// change its argument and may return it.
func Masker(list ...*Scrubber) func(text []byte) []byte {
	return func(text []byte) []byte {
		for _, s := range list {
			text = s.bytes(text)
		}
		return text
	}
}

func (s *Scrubber) bytes(b []byte) []byte {
	if isValues(b) {
		out, err := s.Value(context.Background(), b, nil, &Report{})
		if err == nil { // the context never ends
			return out
		}
	}
	out, err := s.Text(context.Background(), string(b), &Report{})
	if err != nil {
		return []byte("[…]")
	}
	return []byte(out)
}

// isValues reports whether b is JSON: one value or several.
func isValues(b []byte) bool {
	dec := newDecoder(b)
	for n := 0; ; n++ {
		if err := dec.SkipValue(); err != nil {
			return n > 0 && errors.Is(err, io.EOF)
		}
	}
}
