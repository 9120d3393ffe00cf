package install

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tailscale/hujson"

	"github.com/hookd/hookd/protocol"
)

// FileError says where in an agent's file something stands that hookd will not
// touch.
type FileError struct {
	Path string
	// Line and Column count from 1; a column is a byte. Line is 0 when the whole
	// file is meant.
	Line, Column int
	Text         string
}

// Error implements error.
func (e *FileError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.Path, e.Text)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.Path, e.Line, e.Column, e.Text)
}

// byteOrderMark is what some editors put before UTF-8.
const byteOrderMark = "\xef\xbb\xbf"

// maxDepth is how deeply values in an agent's file may nest: the parser is
// recursive.
const maxDepth = 200

// document is a JSON file as people keep it: with comments, trailing commas and
// an indentation of its own. An edit changes the bytes that it must and no
// others.
type document struct {
	path string
	bom  bool
	text []byte
	root hujson.Value
	eol  string
	unit string // one level of indentation; "" = everything stands in one line
	tidy bool   // on one line, there are blanks after colons and commas
}

// parseDocument reads a file whose root is an object. An empty file counts as
// an empty object. The error is a *[FileError].
func parseDocument(path string, text []byte) (*document, error) {
	d := &document{path: path, text: bytes.Clone(text)}
	d.text, d.bom = bytes.CutPrefix(d.text, []byte(byteOrderMark))
	if len(bytes.TrimSpace(d.text)) == 0 {
		d.text = []byte("{}\n")
	}
	if err := d.parse(); err != nil {
		return nil, err
	}
	if err := d.unicode(); err != nil {
		return nil, err
	}
	if _, ok := d.root.Value.(*hujson.Object); !ok {
		return nil, d.fail(d.root.StartOffset, "an object is expected here")
	}
	d.style()
	return d, nil
}

// parse reads d.text.
func (d *document) parse() error {
	if at := tooDeep(d.text); at >= 0 {
		return d.fail(at, "nested more than %d levels deep", maxDepth)
	}
	// The parser writes into what it is given, and wants an end after a comment.
	text := append(bytes.Clone(d.text), '\n')
	root, err := hujson.Parse(text)
	if err != nil {
		return d.syntax(err)
	}
	d.root = root
	return nil
}

// unicode makes sure that all texts are Unicode, which the parser does not look
// at.
func (d *document) unicode() error {
	plain := d.root.Clone()
	plain.Standardize()
	_, err := jsontext.NewDecoder(bytes.NewReader(plain.Pack()), jsontext.AllowDuplicateNames(true)).ReadValue()
	if bad, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return d.fail(int(bad.ByteOffset), "a text that is no Unicode")
	}
	return nil
}

// syntax turns an error of the parser into one with a place.
func (d *document) syntax(err error) error {
	var line, column int
	if n, _ := fmt.Sscanf(err.Error(), "hujson: line %d, column %d: ", &line, &column); n != 2 {
		return &FileError{Path: d.path, Text: "not JSON: " + err.Error()}
	}
	why := "not JSON"
	if cause := errors.Unwrap(err); cause != nil {
		why += ": " + cause.Error()
	}
	return &FileError{Path: d.path, Line: line, Column: column, Text: why}
}

func (d *document) fail(offset int, format string, args ...any) error {
	line, column := position(d.text, offset)
	return &FileError{Path: d.path, Line: line, Column: column, Text: fmt.Sprintf(format, args...)}
}

// position turns an offset into a line and a column, both from 1.
func position(text []byte, offset int) (line, column int) {
	before := text[:min(offset, len(text))]
	return bytes.Count(before, []byte("\n")) + 1, len(before) - bytes.LastIndexByte(before, '\n')
}

// tooDeep returns the offset of the first bracket beyond maxDepth, or -1.
// Brackets in comments count too, which nobody will notice.
func tooDeep(text []byte) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{', '[':
			if depth++; depth > maxDepth {
				return i
			}
		case '}', ']':
			depth--
		case '"':
			for i++; i < len(text) && text[i] != '"' && text[i] != '\n'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		}
	}
	return -1
}

// style finds out how the file is written.
func (d *document) style() {
	d.eol = "\n"
	if bytes.Contains(d.text, []byte("\r\n")) {
		d.eol = "\r\n"
	}
	members := d.root.Value.(*hujson.Object).Members
	if len(members) == 0 {
		d.unit = "  "
		return
	}
	d.unit, _ = ownLine(members[0].Name.BeforeExtra)
	d.tidy = bytes.Contains(d.text, []byte(`": `))
}

// bytes returns the file.
func (d *document) bytes() []byte {
	if d.bom {
		return append([]byte(byteOrderMark), d.text...)
	}
	return bytes.Clone(d.text)
}

// ownLine returns the indentation of a value that stands on a line of its own.
func ownLine(before hujson.Extra) (string, bool) {
	at := bytes.LastIndexByte(before, '\n')
	if at < 0 {
		return "", false
	}
	indent := before[at+1:]
	return string(indent), len(bytes.TrimLeft(indent, " \t")) == 0
}

// lineIndent is the indentation of the line in which offset is.
func (d *document) lineIndent(offset int) string {
	line := d.text[bytes.LastIndexByte(d.text[:offset], '\n')+1:]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// member returns a member of an object, or nil. A name that stands there twice
// is an error: nobody knows which one the agent takes.
func (d *document) member(v *hujson.Value, name string) (*hujson.ObjectMember, error) {
	obj, ok := v.Value.(*hujson.Object)
	if !ok {
		return nil, d.fail(v.StartOffset, "an object is expected here, to hold %q", name)
	}
	var found *hujson.ObjectMember
	for i := range obj.Members {
		if m := &obj.Members[i]; nameOf(m) == name {
			if found != nil {
				return nil, d.fail(m.Name.StartOffset, "%q stands here a second time; keep one of them", name)
			}
			found = m
		}
	}
	return found, nil
}

func nameOf(m *hujson.ObjectMember) string { return m.Name.Value.(hujson.Literal).String() }

// lookup follows names through objects; nil means that it is not there.
func (d *document) lookup(names ...string) (*hujson.Value, error) {
	v := &d.root
	for _, name := range names {
		m, err := d.member(v, name)
		if m == nil || err != nil {
			return nil, err
		}
		v = &m.Value
	}
	return v, nil
}

// raw returns a value as plain JSON.
func raw(v *hujson.Value) jsontext.Value {
	plain := v.Clone()
	plain.Minimize()
	return jsontext.Value(bytes.TrimSpace(plain.Pack()))
}

// splice replaces bytes and reads the file anew: all values found before are
// void.
func (d *document) splice(from, to int, with string) error {
	text := make([]byte, 0, len(d.text)+len(with))
	text = append(append(append(text, d.text[:from]...), with...), d.text[to:]...)
	d.text = text
	return d.parse()
}

// replace puts another value in a value's place.
func (d *document) replace(old *hujson.Value, value jsontext.Value) error {
	unit := d.unit
	if !bytes.Contains(d.text[old.StartOffset:old.EndOffset], []byte("\n")) {
		unit = ""
	}
	return d.splice(old.StartOffset, old.EndOffset, d.print(value, d.lineIndent(old.StartOffset), unit))
}

// item is a member or an element of a container.
type item struct {
	before   hujson.Extra // blanks and comments
	from, to int
	after    hujson.Extra // blanks and comments before its comma
}

// items returns what a container holds, and whether a comma follows the last.
func items(v *hujson.Value) (list []item, trailing bool) {
	switch c := v.Value.(type) {
	case *hujson.Object:
		for i := range c.Members {
			m := &c.Members[i]
			list = append(list, item{m.Name.BeforeExtra, m.Name.StartOffset, m.Value.EndOffset, m.Value.AfterExtra})
		}
	case *hujson.Array:
		for i := range c.Elements {
			e := &c.Elements[i]
			list = append(list, item{e.BeforeExtra, e.StartOffset, e.EndOffset, e.AfterExtra})
		}
	}
	return list, len(list) > 0 && list[len(list)-1].after != nil
}

const blanks = " \t\r\n"

// add puts a value at the end of an object, as name, or of an array.
func (d *document) add(to *hujson.Value, name string, value jsontext.Value) error {
	list, trailing := items(to)
	closing, begin := to.EndOffset-1, to.StartOffset+1
	if len(list) > 0 {
		begin = list[len(list)-1].to
	}
	// After the last comment, so that each stays with what it is about.
	at := begin + len(bytes.TrimRight(d.text[begin:closing], blanks))
	after := len(bytes.TrimSuffix(bytes.TrimLeft(d.text[begin:at], blanks), []byte(","))) > 0

	indent, lines := d.lineIndent(to.StartOffset)+d.unit, d.unit != ""
	if len(list) > 0 {
		var own string
		if own, lines = ownLine(list[0].before); lines {
			indent = own
		}
	}
	unit := d.unit
	if !lines {
		unit = ""
	}
	text := d.print(value, indent, unit)
	if name != "" {
		colon := ":"
		if lines || d.tidy {
			colon = ": "
		}
		text = string(protocol.Quote(name)) + colon + text
	}
	switch {
	case lines || after: // what stands behind // on its line would be part of the comment
		text = d.eol + indent + text
	case len(list) > 0 && d.tidy:
		text = " " + text
	}
	switch {
	case trailing:
		return d.splice(at, at, text+",")
	case len(list) > 0:
		return d.splice(begin, at, ","+string(d.text[begin:at])+text)
	case lines: // the closing bracket gets a line of its own
		return d.splice(at, closing, text+d.eol+d.lineIndent(to.StartOffset))
	}
	return d.splice(at, at, text)
}

// remove takes the i-th item out of a container. Comments around it stay.
func (d *document) remove(from *hujson.Value, i int) error {
	list, trailing := items(from)
	it, last := list[i], i == len(list)-1
	end := it.to
	if !last || trailing {
		end += len(it.after) + 1 // with its comma
	}
	kept := bytes.TrimRight(it.before, blanks)
	begin := it.from - len(it.before) + len(kept)
	if next := bytes.TrimLeft(d.text[end:], " \t\r"); len(kept) > 0 && next[0] != '\n' {
		// What follows must not become part of a comment.
		begin += bytes.IndexByte(d.text[begin:it.from], '\n') + 1
	}
	if len(list) == 1 {
		inner := [2]int{from.StartOffset + 1, from.EndOffset - 1}
		if len(bytes.TrimSpace(d.text[inner[0]:begin]))+len(bytes.TrimSpace(d.text[end:inner[1]])) == 0 {
			return d.splice(inner[0], inner[1], "")
		}
		return d.splice(begin, end, "")
	}
	if last && !trailing {
		// The item before it loses its comma.
		comma := list[i-1].to + len(list[i-1].after)
		return d.splice(comma, end, string(d.text[comma+1:begin]))
	}
	return d.splice(begin, end, "")
}
