package native

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/protocol"
)

// maxDepth leaves room for what a payload is wrapped in on its way.
const maxDepth = protocol.DefaultMaxDepth - 8

// noiseBytes is how much of what is not JSON an error shows.
const noiseBytes = 40

// ReadPayload reads what an agent wrote to its hook as one JSON object. White
// space between its parts is taken out, so that it fits on a line; digits and
// escapes stay. Two things are repaired, each with a warning: bytes that are
// not UTF-8 and lone surrogates become U+FFFD, and a byte order mark is taken
// off. A name that stands twice is an error, because two readers would
// understand two things; so is anything before or after the object.
func ReadPayload(payload []byte) (raw jsontext.Value, members protocol.Object, warnings []string, err error) {
	b := bytes.TrimSpace(bytes.TrimPrefix(payload, []byte("\xef\xbb\xbf")))
	switch {
	case len(b) == 0:
		return nil, nil, nil, errors.New("it is empty")
	case b[0] != '{':
		return nil, nil, nil, fmt.Errorf("expected a JSON object, got %s", noise(b))
	}
	raw = append(jsontext.Value(nil), b...) // the caller's bytes stay
	members, err = decode(&raw)
	if err == nil {
		return raw, members, nil, nil
	}
	repaired, n := Repair(b)
	if n == 0 {
		return nil, nil, nil, err
	}
	raw = repaired
	if members, err = decode(&raw); err != nil {
		return nil, nil, nil, err
	}
	return raw, members, []string{strconv.Itoa(n) + " parts of the payload's text were not Unicode and were replaced by U+FFFD"}, nil
}

// decode takes the white space out of raw and splits it.
func decode(raw *jsontext.Value) (protocol.Object, error) {
	if err := protocol.CheckDepth(*raw, maxDepth); err != nil {
		return nil, err
	}
	members, err := protocol.DecodeObject(*raw, maxDepth)
	if err != nil {
		return nil, err
	}
	compact := protocol.Compact(*raw)
	if len(compact) == len(*raw) {
		return members, nil
	}
	*raw = compact
	return protocol.ParseObject(compact)
}

// Repair returns JSON text in which every byte that is not UTF-8 and every lone
// surrogate is U+FFFD, and how many there were. Nothing else is touched; the
// bytes given are not changed.
func Repair(b []byte) ([]byte, int) {
	out := make([]byte, 0, len(b)+8)
	n := 0
	for i := 0; i < len(b); {
		switch c := b[i]; {
		case c == '\\' && i+1 < len(b):
			size, whole := escapeAt(b[i:])
			if whole {
				out = append(out, b[i:i+size]...)
			} else {
				out = append(out, `\ufffd`...)
				n++
			}
			i += size
		case c < utf8.RuneSelf:
			out = append(out, c)
			i++
		default:
			r, size := utf8.DecodeRune(b[i:])
			if r == utf8.RuneError && size == 1 {
				n++
			}
			out = utf8.AppendRune(out, r)
			i += size
		}
	}
	return out, n
}

// escapeAt returns the length of the escape that b starts with, and whether it
// stands for something: half of a surrogate pair does not.
func escapeAt(b []byte) (size int, whole bool) {
	if b[1] != 'u' {
		return 2, true
	}
	first, ok := hex4(b[2:])
	if !ok {
		return 2, true // not an escape at all: the parser says so
	}
	switch {
	case first >= 0xdc00 && first < 0xe000:
		return 6, false
	case first >= 0xd800 && first < 0xdc00:
		if len(b) >= 12 && b[6] == '\\' && b[7] == 'u' {
			if second, ok := hex4(b[8:]); ok && second >= 0xdc00 && second < 0xe000 {
				return 12, true
			}
		}
		return 6, false
	}
	return 6, true
}

func hex4(b []byte) (int, bool) {
	if len(b) < 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b[:4]), 16, 16)
	return int(n), err == nil && b[0] != '+' && b[0] != '_'
}

// noise shows the start of what is not JSON, such as a greeting that a shell
// profile printed.
func noise(b []byte) string {
	if len(b) > noiseBytes {
		b = append(append([]byte(nil), b[:noiseBytes]...), "…"...)
	}
	return strconv.Quote(strings.ToValidUTF8(string(b), "\ufffd"))
}

// peekEvent finds the name of the event in a payload that can't be read as a
// whole: a text member of the outermost object.
func peekEvent(payload []byte, keys []string) (event string) {
	depth, best := 0, len(keys) // which of the keys it was, the first being the best
	for i := 0; i < len(payload); i++ {
		switch payload[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			name, after := quoted(payload, i)
			i = after - 1
			value := bytes.TrimLeft(payload[after:], " \t\r\n")
			at := slices.Index(keys, name)
			if depth != 1 || len(value) == 0 || value[0] != ':' || at < 0 || at >= best {
				continue
			}
			if value = bytes.TrimLeft(value[1:], " \t\r\n"); len(value) > 0 && value[0] == '"' {
				event, _ = quoted(value, 0)
				best = at
			}
		}
	}
	return event
}

// quoted returns what stands between the quote at i and the next one, and where it
// goes on. Escapes stay as they are: names of events have none.
func quoted(b []byte, i int) (text string, after int) {
	for end := i + 1; end < len(b); end++ {
		switch b[end] {
		case '\\':
			end++
		case '"':
			return string(b[i+1 : end]), end + 1
		}
	}
	return "", len(b)
}
