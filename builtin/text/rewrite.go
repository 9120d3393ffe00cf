// Package text finds places in texts and replaces them, wherever in a JSON value
// the texts stand: in strings, in names, in numbers, and in JSON that is itself
// the text of a string. What it gives back is valid JSON of the same shape.
package text

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/protocol"
)

// Form says as what a text stands in its value.
type Form int

// The forms.
const (
	String Form = iota // the text of a string, or a text that is no JSON
	Name               // the name of an object's member
	Number             // a whole number without sign; its replacement becomes a string
)

// Part is one text of a value.
type Part struct {
	// Text is what a reader sees: escapes are resolved.
	Text string
	// Name is that of the member whose value Text is; "" in arrays and for names.
	Name string
	Form Form
	// Media: Text is a picture, a sound or the like in base64.
	Media bool
}

// Edit says what becomes of a part: its new text, and whether that is another.
// It must not keep the part.
type Edit func(p *Part) (string, bool)

// Keep says which values are left alone and not shown to an [Edit]. The path is
// that of a value: names of members, "*" for the items of an array. It must not
// be kept or changed.
type Keep func(path []string) bool

const (
	// maxEmbedded is how deeply JSON within the strings of JSON is opened. What
	// lies deeper is read as plain text.
	maxEmbedded = 8
	// minNumber is how many digits a number has before it is looked at.
	minNumber = 11
)

// Rewrite gives each text of a checked value to edit and returns the value with
// the new texts, and whether it is another. Bytes of what does not change stay.
// A string that is itself JSON, or several values of JSON one behind the other,
// is opened. A nil keep keeps nothing.
func Rewrite(v jsontext.Value, keep Keep, edit Edit) (jsontext.Value, bool) {
	r := rewriter{edit: edit, keep: keep}
	return r.values(v)
}

type rewriter struct {
	edit     Edit
	keep     Keep
	path     []string // of the value that is read
	embedded int
	broken   bool // what was to be read is no JSON
}

// scope is an object or array that the rewriter is in.
type scope struct {
	object bool
	start  int             // of its bracket
	name   string          // of the member that is read, as it was
	taken  map[string]bool // names that are not free any more; nil before the first is edited
}

// values reads one value or several, one behind the other.
func (r *rewriter) values(src []byte) (out []byte, changed bool) {
	dec := newDecoder(src)
	var scopes []scope
	last, base := 0, len(r.path)
	put := func(start, end int, with []byte) {
		out = append(append(out, src[last:start]...), with...)
		last, changed = end, true
	}
	for {
		kind := dec.PeekKind()
		switch kind {
		case '{', '[':
			if _, err := dec.ReadToken(); err != nil {
				return r.stop(src, base)
			}
			scopes = append(scopes, scope{object: kind == '{', start: int(dec.InputOffset()) - 1})
			r.path = append(r.path, "*")
			continue
		case '}', ']':
			if _, err := dec.ReadToken(); err != nil {
				return r.stop(src, base)
			}
			scopes, r.path = scopes[:len(scopes)-1], r.path[:len(r.path)-1]
			continue
		}
		container, length := dec.StackIndex(dec.StackDepth())
		raw, err := dec.ReadValue()
		switch {
		case errors.Is(err, io.EOF) && len(scopes) == 0:
			r.path = r.path[:base]
			if !changed {
				return src, false
			}
			return append(out, src[last:]...), true
		case err != nil: // can't be: the value has been checked
			return r.stop(src, base)
		}
		end := int(dec.InputOffset())
		start := end - len(raw)
		if container == '{' && length%2 == 0 {
			in := &scopes[len(scopes)-1]
			in.name = protocol.Unquote(raw)
			r.path[len(r.path)-1] = in.name
			if r.kept() {
				continue
			}
			if name, ok := r.edit(&Part{Text: in.name, Form: Name}); ok {
				put(start, end, protocol.Quote(in.free(name, src)))
			}
			continue
		}
		if with, ok := r.scalar(raw, scopes); ok {
			put(start, end, with)
		}
	}
}

// stop leaves everything as it was.
func (r *rewriter) stop(src []byte, base int) ([]byte, bool) {
	r.path, r.broken = r.path[:base], true
	return src, false
}

func (r *rewriter) kept() bool { return r.keep != nil && r.embedded == 0 && r.keep(r.path) }

// scalar edits a value that is neither object nor array.
func (r *rewriter) scalar(raw jsontext.Value, scopes []scope) (with []byte, changed bool) {
	p := Part{}
	if n := len(scopes); n > 0 && scopes[n-1].object {
		p.Name = scopes[n-1].name
	}
	switch raw.Kind() {
	case '"':
		p.Text = protocol.Unquote(raw)
	case '0':
		if len(raw) < minNumber || len(bytes.Trim(raw, "0123456789")) > 0 {
			return nil, false
		}
		p.Text, p.Form = string(raw), Number
	default:
		return nil, false
	}
	if r.kept() {
		return nil, false
	}
	if p.Form == String {
		if r.embedded < maxEmbedded && IsJSON(p.Text) {
			r.embedded++
			out, changed := r.values([]byte(p.Text))
			r.embedded--
			return protocol.Quote(string(out)), changed
		}
		p.Media = isMedia(p.Text)
	}
	text, changed := r.edit(&p)
	if !changed {
		return nil, false
	}
	return protocol.Quote(text), true
}

// IsJSON reports whether a text is an object or an array of JSON, or several
// values that begin and end with one, such as lines of JSON.
func IsJSON(text string) bool {
	inner := strings.Trim(text, " \t\r\n")
	if len(inner) < 2 || inner[0] != '{' && inner[0] != '[' || inner[len(inner)-1] != '}' && inner[len(inner)-1] != ']' {
		return false
	}
	if protocol.CheckDepth([]byte(inner), protocol.DefaultMaxDepth) != nil {
		return false
	}
	dec := newDecoder([]byte(inner))
	for {
		if err := dec.SkipValue(); err != nil {
			return errors.Is(err, io.EOF)
		}
	}
}

// newDecoder reads JSON as it comes. Names that stand twice are for others to
// judge: here each of them is edited.
func newDecoder(src []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(src), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// free returns name, with a number when the object has such a member already.
func (s *scope) free(name string, src []byte) string {
	if s.taken == nil {
		s.taken = map[string]bool{}
		members, _ := protocol.ReadMembers(newDecoder(src[s.start:]))
		for _, m := range members {
			s.taken[m.Name] = true
		}
	}
	unique := name
	for n := 2; s.taken[unique]; n++ {
		unique = name + " " + strconv.Itoa(n)
	}
	s.taken[unique] = true
	return unique
}
