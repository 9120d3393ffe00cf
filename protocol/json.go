package protocol

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// DefaultMaxDepth is how deeply values may nest when a limit is not given.
const DefaultMaxDepth = 128

// ErrDuplicateName is wrapped by the errors of this package when an object
// holds a name twice. The same text then means different things to different
// readers, so nobody may act on it.
var ErrDuplicateName = errors.New("duplicate name")

// ErrDepth is wrapped by the errors of this package when values nest too deeply.
var ErrDepth = errors.New("nested too deeply")

// Member is one name with its value as it stood on the wire. Both share the
// memory of the line they came from and must not be changed.
type Member struct {
	Name  string
	Value jsontext.Value
}

// Object is the members of a JSON object in the order of the wire. Names are
// unique.
type Object []Member

// Get returns the value of a member, or nil when there is none.
func (o Object) Get(name string) jsontext.Value {
	for i := range o {
		if o[i].Name == name {
			return o[i].Value
		}
	}
	return nil
}

// With returns a copy of o in which name has this value, at its old place or
// at the end.
func (o Object) With(name string, value jsontext.Value) Object {
	out := append(make(Object, 0, len(o)+1), o...)
	for i := range out {
		if out[i].Name == name {
			out[i].Value = value
			return out
		}
	}
	return append(out, Member{name, value})
}

// indexFrom is the number of lookups from which an index is worth its memory.
const indexFrom = 256

// Finder returns a function that finds members by name, quickly also when many
// names are looked up in a large object.
func (o Object) Finder(lookups int) func(name string) (at int, ok bool) {
	if len(o)*lookups < indexFrom {
		return func(name string) (int, bool) {
			i := slices.IndexFunc(o, func(m Member) bool { return m.Name == name })
			return i, i >= 0
		}
	}
	index := make(map[string]int, len(o))
	for i := range o {
		index[o[i].Name] = i
	}
	return func(name string) (int, bool) {
		i, ok := index[name]
		return i, ok
	}
}

// Merged returns a copy of o with the members of change laid over it: each at
// its old place or, when it is new, at the end. put says which value a member
// gets, from its old one (nil = none) and the new one. Names in change are
// unique.
func (o Object) Merged(change Object, put func(name string, old, value jsontext.Value) jsontext.Value) Object {
	find := o.Finder(len(change))
	out := append(make(Object, 0, len(o)+len(change)), o...)
	for _, m := range change {
		if i, ok := find(m.Name); ok {
			out[i].Value = put(m.Name, o[i].Value, m.Value)
		} else {
			out = append(out, Member{m.Name, put(m.Name, nil, m.Value)})
		}
	}
	return out
}

// AppendJSON appends the object to b as JSON, values byte for byte.
func (o Object) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	for i, m := range o {
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendString(b, m.Name)
		b = append(b, ':')
		b = append(b, m.Value...)
	}
	return append(b, '}')
}

// AppendString appends s to b as a JSON string. Bytes that are not UTF-8
// become U+FFFD.
func AppendString[S ~string](b []byte, s S) []byte {
	// AppendQuote fails only on invalid UTF-8, and then has replaced it.
	b, _ = jsontext.AppendQuote(b, string(s))
	return b
}

// CheckDepth reports an error wrapping [ErrDepth] when values in b nest more
// than limit deep. It reads brackets outside of strings and nothing else, so
// it can stand before a parser and costs no stack.
func CheckDepth(b []byte, limit int) error {
	if bytes.Count(b, []byte{'{'})+bytes.Count(b, []byte{'['}) <= limit {
		return nil
	}
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '{', '[':
			if depth++; depth > limit {
				return fmt.Errorf("%w: more than %d levels", ErrDepth, limit)
			}
		case '}', ']':
			depth--
		case '"':
			end := stringEnd(b, i+1)
			if end < 0 {
				return nil // unterminated: the parser says so
			}
			i = end
		}
	}
	return nil
}

// stringEnd returns the index of the quote that ends the string whose first
// byte is at from, or -1.
func stringEnd(b []byte, from int) int {
	for {
		n := bytes.IndexByte(b[from:], '"')
		if n < 0 {
			return -1
		}
		end := from + n
		slashes := 0
		for end-1-slashes >= from && b[end-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return end
		}
		from = end + 1
	}
}

// DecodeObject reads b strictly as one JSON object: valid UTF-8, no lone
// surrogates, no name twice at any depth, at most maxDepth levels (0 means
// [DefaultMaxDepth]) and nothing after it.
func DecodeObject(b []byte, maxDepth int) (Object, error) {
	if maxDepth <= 0 {
		maxDepth = DefaultMaxDepth
	}
	if err := CheckDepth(b, maxDepth); err != nil {
		return nil, err
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(b))
	if k := dec.PeekKind(); k != '{' {
		if _, err := dec.ReadToken(); err != nil {
			return nil, jsonError(err)
		}
		return nil, fmt.Errorf("expected an object, got %s", kindName(k))
	}
	obj, err := ReadMembers(dec)
	if err != nil {
		return nil, err
	}
	if _, err := dec.ReadToken(); err != io.EOF {
		return nil, errors.New("more data after the object")
	}
	return obj, nil
}

// ReadMembers reads the object that dec stands before. dec must read from a
// [bytes.Buffer]: values are not copied, they share its memory.
func ReadMembers(dec *jsontext.Decoder) (Object, error) {
	if _, err := dec.ReadToken(); err != nil {
		return nil, jsonError(err)
	}
	obj := make(Object, 0, 8)
	for dec.PeekKind() != '}' {
		name, err := dec.ReadValue()
		if err != nil {
			return nil, jsonError(err)
		}
		m := Member{Name: memberName(name)}
		if m.Value, err = dec.ReadValue(); err != nil {
			return nil, jsonError(err)
		}
		obj = append(obj, m)
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, jsonError(err)
	}
	return obj, nil
}

// CheckValue reports whether b is one strictly valid JSON value, by the rules
// of [DecodeObject].
func CheckValue(b []byte, maxDepth int) error {
	if maxDepth <= 0 {
		maxDepth = DefaultMaxDepth
	}
	if err := CheckDepth(b, maxDepth); err != nil {
		return err
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(b))
	if _, err := dec.ReadValue(); err != nil {
		return jsonError(err)
	}
	if _, err := dec.ReadToken(); err != io.EOF {
		return errors.New("more data after the value")
	}
	return nil
}

// JSONError turns an error of the JSON library into one line for a person, and
// marks duplicate names with [ErrDuplicateName].
func JSONError(err error) error { return jsonError(err) }

func jsonError(err error) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the JSON ends too early")
	}
	var syn *jsontext.SyntacticError
	if !errors.As(err, &syn) {
		return err
	}
	at := ""
	if syn.JSONPointer != "" {
		at = fmt.Sprintf(" at %q", clip(string(syn.JSONPointer)))
	}
	if errors.Is(syn.Err, jsontext.ErrDuplicateName) {
		return fmt.Errorf("%w%s", ErrDuplicateName, at)
	}
	return fmt.Errorf("%v%s (byte %d)", syn.Err, at, syn.ByteOffset)
}

// memberName decodes a name; the common ones cost no allocation.
func memberName(quoted jsontext.Value) string {
	raw := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(raw, '\\') >= 0 {
		// The decoder has checked the string, so unquoting can't fail.
		b, _ := jsontext.AppendUnquote(nil, []byte(quoted))
		return string(b)
	}
	switch string(raw) { // no allocation: the compiler compares in place
	case "meta":
		return "meta"
	case "tool":
		return "tool"
	case "arguments":
		return "arguments"
	case "action":
		return "action"
	case "reason":
		return "reason"
	case "call_id":
		return "call_id"
	case "context":
		return "context"
	case "messages":
		return "messages"
	case "model":
		return "model"
	case "tools":
		return "tools"
	case "options":
		return "options"
	case "approved":
		return "approved"
	case "result":
		return "result"
	case "params":
		return "params"
	case "method":
		return "method"
	case "jsonrpc":
		return "jsonrpc"
	case "id":
		return "id"
	}
	return string(raw)
}

func kindName(k jsontext.Kind) string {
	switch k {
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '{':
		return "an object"
	case '[':
		return "an array"
	}
	return "something that is not JSON"
}

// Compact returns v without insignificant whitespace and otherwise unchanged:
// digits of numbers, escapes and the order of members stay.
func Compact(v jsontext.Value) jsontext.Value {
	if !spaced(v) {
		return v
	}
	out := bytes.Clone(v)
	val := jsontext.Value(out)
	if val.Compact() != nil {
		return v
	}
	return val
}

// spaced reports whether there is white space between the tokens of a value.
func spaced(v jsontext.Value) bool {
	for i := 0; i < len(v); i++ {
		switch v[i] {
		case ' ', '\n', '\t', '\r':
			return true
		case '"':
			for i++; i < len(v) && v[i] != '"'; i++ {
				if v[i] == '\\' {
					i++
				}
			}
		}
	}
	return false
}

// closest returns the candidate that differs least from word, for a "did you
// mean", or "" when none is near.
func closest(word string, candidates []string) string {
	best, bestDist := "", len(word)/3+1
	for _, c := range candidates {
		if max(len(word)-len(c), len(c)-len(word)) > bestDist {
			continue // too far already, and a peer's word may be very long
		}
		if d := editDistance(strings.ToLower(word), strings.ToLower(c)); d <= bestDist && (best == "" || d < bestDist) {
			best, bestDist = c, d
		}
	}
	return best
}

// DidYouMean returns ` (did you mean "x"?)` for the candidate nearest to word,
// or "" when none is near.
func DidYouMean(word string, candidates []string) string {
	if c := closest(word, candidates); c != "" {
		return fmt.Sprintf(" (did you mean %q?)", c)
	}
	return ""
}

func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diag := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diag
			if a[i] != b[j] {
				cost = min(diag, row[j], row[j+1]) + 1
			}
			diag, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
