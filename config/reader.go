package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tailscale/hujson"

	"github.com/hookd/hookd/protocol"
)

// maxProblems is how many problems one error names. More help nobody.
const maxProblems = 100

// reader turns the text of a file into the types of file.go. What is wrong is
// collected, and reading goes on: a value that can't be used leaves its
// field's default.
type reader struct {
	// source is the file, text the same without comments, every byte at its
	// old place.
	source   []byte
	text     []byte
	root     hujson.Value
	problems []problem
	fields   map[reflect.Type][]field
}

type problem struct {
	pointer string
	offset  int
	message string
}

type field struct {
	name  string
	index []int
	tag   reflect.StructTag
}

// parse reads the syntax. When that fails nothing else can be said.
func (r *reader) parse(data []byte) bool {
	// A comment in the last line may lack its newline. The parser writes into
	// what it is given.
	r.source, r.text = data, slices.Concat(data, []byte("\n"))
	if len(bytes.TrimSpace(data)) == 0 {
		return r.fail(0, "the file is empty; {} is the smallest config")
	}
	if bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) {
		return r.fail(0, "the file starts with a byte order mark; save it as UTF-8 without one")
	}
	// The parser is recursive and would die of a stack overflow.
	if offset := tooDeep(data, protocol.DefaultMaxDepth); offset >= 0 {
		return r.fail(offset, "nested more than %d levels deep", protocol.DefaultMaxDepth)
	}
	var err error
	if r.root, err = hujson.Parse(r.text); err != nil {
		return r.syntax(err)
	}
	r.root.Standardize()
	r.text = r.root.Pack()
	// What is left are texts that are not Unicode. Names that stand twice are
	// found below, all of them.
	_, err = jsontext.NewDecoder(bytes.NewReader(r.text), jsontext.AllowDuplicateNames(true)).ReadValue()
	if syn, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return r.fail(int(syn.ByteOffset), `a text that is no Unicode: a byte that is not UTF-8, or one half of a \u surrogate pair`)
	}
	return true
}

func (r *reader) fail(offset int, format string, args ...any) bool {
	r.add("", offset, format, args...)
	return false
}

// syntax restates an error of the parser, which tells its place in its text
// and may quote a whole value.
func (r *reader) syntax(err error) bool {
	var line, column, offset int
	fmt.Sscanf(err.Error(), "hujson: line %d, column %d: ", &line, &column)
	for range line - 1 {
		offset += bytes.IndexByte(r.text[offset:], '\n') + 1
	}
	offset += max(column-1, 0)
	message := err.Error()
	if cause := errors.Unwrap(err); cause != nil {
		message = cause.Error()
	}
	switch at := r.text[min(offset, len(r.text)-1)]; {
	case strings.Contains(message, "unexpected EOF"):
		message = "the file ends too early"
	case !strings.HasPrefix(message, "invalid literal"):
	case at == '"':
		message = `a text with a bad \ escape or a line break in it`
	default:
		message = "not a JSON value; texts and names stand in double quotes"
	}
	return r.fail(offset, "%s", message)
}

// tooDeep returns the offset of the first bracket beyond limit levels, or -1.
func tooDeep(b []byte, limit int) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '{', '[':
			if depth++; depth > limit {
				return i
			}
		case '}', ']':
			depth--
		case '"':
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		case '/':
			end := "\n"
			if bytes.HasPrefix(b[i:], []byte("/*")) {
				i, end = i+2, "*/"
			}
			n := bytes.Index(b[min(i, len(b)):], []byte(end))
			if n < 0 {
				return -1
			}
			i += n + len(end) - 1
		}
	}
	return -1
}

// add notes a problem with the value at pointer.
func (r *reader) add(pointer string, offset int, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	if len(message) > 500 {
		message = strings.ToValidUTF8(message[:500], "") + "…"
	}
	r.problems = append(r.problems, problem{pointer, offset, message})
}

// judge notes a problem that was found after reading, unless something about
// this value was said before: then it may well be its consequence.
func (r *reader) judge(pointer, format string, args ...any) {
	if r.full() {
		return
	}
	for _, p := range r.problems {
		if p.pointer == pointer || strings.HasPrefix(p.pointer, pointer+"/") {
			return
		}
	}
	r.add(pointer, r.offset(pointer), format, args...)
}

// offset finds a value, or the nearest one around the place where it would be.
func (r *reader) offset(pointer string) int {
	for {
		if v := r.root.Find(pointer); v != nil {
			return v.StartOffset
		}
		pointer = pointer[:max(0, strings.LastIndexByte(pointer, '/'))]
	}
}

// full reports whether enough problems are known to stop looking.
func (r *reader) full() bool { return len(r.problems) >= maxProblems }

// value reads v into dst. The tag is that of the field which holds dst.
func (r *reader) value(pointer string, v *hujson.Value, dst reflect.Value, tag reflect.StructTag) {
	if r.full() {
		return
	}
	kind := v.Value.Kind()
	switch {
	case dst.Type() == reflect.TypeFor[jsontext.Value](), dst.Type() == reflect.TypeFor[pins]():
		r.raw(pointer, v, dst)
		return
	case dst.Kind() == reflect.Pointer && kind == 'n' && tag.Get("nullable") != "":
		dst.SetZero()
		return
	case dst.Kind() == reflect.Pointer:
		known := len(r.problems)
		p := reflect.New(dst.Type().Elem())
		if r.value(pointer, v, p.Elem(), tag); len(r.problems) == known {
			dst.Set(p)
		}
		return
	}
	lit, _ := v.Value.(hujson.Literal)
	switch want := jsonKind(dst.Kind()); {
	case want == '0' && kind == '"' && isInteger(lit.String()):
		r.add(pointer, v.StartOffset, "expected an integer, got a string: write %[1]s, not %[1]q", lit.String())
	case want == '0' && kind != '0':
		r.add(pointer, v.StartOffset, "expected an integer, got %s", kindName(kind))
	case kind != want && (want != 't' || kind != 'f'):
		r.add(pointer, v.StartOffset, "expected %s, got %s", kindName(want), kindName(kind))
	case want == '{' && dst.Kind() == reflect.Struct:
		r.object(pointer, v, dst)
	case want == '{':
		r.table(pointer, v, dst, tag)
	case want == '[':
		r.list(pointer, v, dst, tag)
	case want == '"':
		dst.SetString(lit.String())
		r.check(pointer, v.StartOffset, dst, tag)
	case want == 't':
		dst.SetBool(lit.Bool())
	default:
		r.integer(pointer, v.StartOffset, string(lit), dst, tag)
	}
}

// object reads a struct: defaults first, then what stands in the file.
func (r *reader) object(pointer string, v *hujson.Value, dst reflect.Value) {
	r.defaults(dst)
	fields := r.fieldsOf(dst.Type())
	seen := map[string]bool{}
	for name, m := range r.members(pointer, v) {
		seen[name] = true
		at := pointer + "/" + escape(name)
		if i := slices.IndexFunc(fields, func(f field) bool { return f.name == name }); i >= 0 {
			r.value(at, &m.Value, dst.FieldByIndex(fields[i].index), fields[i].tag)
			continue
		}
		r.add(at, m.Name.StartOffset, "%s", r.unknownKey(name, dst.Type()))
	}
	for _, f := range fields {
		if f.tag.Get("required") != "" && !seen[f.name] {
			r.add(pointer+"/"+f.name, v.StartOffset, "is missing")
		}
	}
}

func (r *reader) unknownKey(name string, in reflect.Type) string {
	has := func(t reflect.Type) []string {
		var names []string
		for _, f := range r.fieldsOf(t) {
			names = append(names, f.name)
		}
		return names
	}
	if in == reflect.TypeFor[builtin]() && slices.Contains(has(reflect.TypeFor[process]()), name) {
		return "only processes have this key: a built-in runs inside hookd"
	}
	return "unknown key" + suggest(name, has(in))
}

// defaults fills a struct as if nothing of it stood in the file.
func (r *reader) defaults(dst reflect.Value) {
	for _, f := range r.fieldsOf(dst.Type()) {
		to := dst.FieldByIndex(f.index)
		text, ok := f.tag.Lookup("default")
		if to.Kind() == reflect.Pointer && ok {
			to.Set(reflect.New(to.Type().Elem()))
			to = to.Elem()
		}
		switch to.Kind() {
		case reflect.Struct:
			r.defaults(to)
		case reflect.String:
			to.SetString(text)
		case reflect.Bool:
			to.SetBool(text == "true")
		case reflect.Int, reflect.Int64:
			n, _ := strconv.ParseInt(text, 10, 64)
			to.SetInt(n)
		case reflect.Slice:
			if text != "" && to.Type().Elem().Kind() == reflect.String {
				for item := range strings.SplitSeq(text, ",") {
					to.Set(reflect.Append(to, reflect.ValueOf(item).Convert(to.Type().Elem())))
				}
			}
		}
	}
}

// table reads a map with names of the user's choice.
func (r *reader) table(pointer string, v *hujson.Value, dst reflect.Value, tag reflect.StructTag) {
	dst.Set(reflect.MakeMap(dst.Type()))
	for name, m := range r.members(pointer, v) {
		at := pointer + "/" + escape(name)
		key := reflect.New(dst.Type().Key()).Elem()
		key.SetString(name)
		r.check(at, m.Name.StartOffset, key, "")
		item := reflect.New(dst.Type().Elem()).Elem()
		r.value(at, &m.Value, item, tag)
		dst.SetMapIndex(key, item)
	}
}

func (r *reader) list(pointer string, v *hujson.Value, dst reflect.Value, tag reflect.StructTag) {
	items := v.Value.(*hujson.Array).Elements
	dst.Set(reflect.MakeSlice(dst.Type(), len(items), len(items)))
	for i := 0; i < len(items) && !r.full(); i++ {
		r.value(pointer+"/"+strconv.Itoa(i), &items[i], dst.Index(i), tag)
	}
}

// raw takes a value that is not hookd's to understand. Only names that stand
// twice are an error, because the same text would mean different things to
// different readers.
func (r *reader) raw(pointer string, v *hujson.Value, dst reflect.Value) {
	r.unique(pointer, v)
	if v.Value.Kind() == 'n' {
		return
	}
	text := jsontext.Value(slices.Clone(r.text[v.StartOffset:v.EndOffset]))
	// Its syntax is known to be good, and a name that stands twice is reported.
	_ = text.Compact(jsontext.AllowDuplicateNames(true))
	dst.SetBytes(text)
}

func (r *reader) unique(pointer string, v *hujson.Value) {
	switch t := v.Value.(type) {
	case *hujson.Object:
		for name, m := range r.members(pointer, v) {
			r.unique(pointer+"/"+escape(name), &m.Value)
		}
	case *hujson.Array:
		for i := range t.Elements {
			r.unique(pointer+"/"+strconv.Itoa(i), &t.Elements[i])
		}
	}
}

// members goes over the members of an object, each name once. A name that
// comes back is a problem.
func (r *reader) members(pointer string, v *hujson.Value) func(func(string, *hujson.ObjectMember) bool) {
	return func(yield func(string, *hujson.ObjectMember) bool) {
		obj := v.Value.(*hujson.Object)
		first := make(map[string]int, len(obj.Members))
		for i := 0; i < len(obj.Members) && !r.full(); i++ {
			m := &obj.Members[i]
			name := m.Name.Value.(hujson.Literal).String()
			if offset, twice := first[name]; twice {
				line, column := r.place(offset)
				r.add(pointer+"/"+escape(name), m.Name.StartOffset, "duplicate key; it stands at %d:%d already", line, column)
				continue
			}
			first[name] = m.Name.StartOffset
			if !yield(name, m) {
				return
			}
		}
	}
}

// check judges a text that was set.
func (r *reader) check(pointer string, offset int, dst reflect.Value, tag reflect.StructTag) {
	if list := tag.Get("enum"); list != "" {
		words := strings.Split(list, ",")
		if slices.Contains(words, dst.String()) {
			return
		}
		hint := suggest(dst.String(), words)
		if len(words) == 1 {
			hint = "; this version knows only " + words[0]
		}
		r.add(pointer, offset, "unknown value %s%s", quote(dst.String()), hint)
		return
	}
	if c, ok := dst.Interface().(checked); ok {
		if err := c.check(); err != nil {
			r.add(pointer, offset, "%s", err)
		}
	}
}

// outOfRange is said with the number, the bounds, and the upper one as a time.
const outOfRange = "%s is out of range: expected %d to %d%s"

func (r *reader) integer(pointer string, offset int, text string, dst reflect.Value, tag reflect.StructTag) {
	low, _ := strconv.ParseInt(tag.Get("min"), 10, 64)
	high, _ := strconv.ParseInt(tag.Get("max"), 10, 64)
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrSyntax):
		r.add(pointer, offset, "expected an integer, got %s", quote(text))
	case err != nil || n < low || n > high:
		upTo := ""
		if strings.HasSuffix(pointer, "_ms") {
			upTo = fmt.Sprintf(" (%s)", time.Duration(high)*time.Millisecond)
		}
		r.add(pointer, offset, outOfRange, text[:min(len(text), 40)], low, high, upTo)
	default:
		dst.SetInt(n)
	}
}

func isInteger(s string) bool { _, err := strconv.ParseInt(s, 10, 64); return err == nil }

func (r *reader) fieldsOf(t reflect.Type) []field {
	if list, ok := r.fields[t]; ok {
		return list
	}
	var list []field
	for _, f := range reflect.VisibleFields(t) {
		if name := f.Tag.Get("json"); name != "" {
			list = append(list, field{name, f.Index, f.Tag})
		}
	}
	if r.fields == nil {
		r.fields = map[reflect.Type][]field{}
	}
	r.fields[t] = list
	return list
}

// positioned returns the problems in the order of the file.
func (r *reader) positioned() []Positioned {
	slices.SortStableFunc(r.problems, func(a, b problem) int { return cmp.Compare(a.offset, b.offset) })
	var list []Positioned
	for _, p := range r.problems[:min(len(r.problems), maxProblems)] {
		line, column := r.place(p.offset)
		list = append(list, Positioned{Line: line, Column: column, Path: dotted(p.pointer), Message: p.message})
	}
	if r.full() {
		list = append(list, Positioned{Message: "there may be more problems; these are enough for now"})
	}
	return list
}

// place returns the line and the column, in characters, of an offset; both
// start at 1.
func (r *reader) place(offset int) (line, column int) {
	before := r.source[:min(offset, len(r.source))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte("\n")) + 1, len([]rune(string(before[start:]))) + 1
}

func jsonKind(k reflect.Kind) hujson.Kind {
	switch k {
	case reflect.Struct, reflect.Map:
		return '{'
	case reflect.Slice:
		return '['
	case reflect.String:
		return '"'
	case reflect.Bool:
		return 't'
	}
	return '0'
}

func kindName(k hujson.Kind) string {
	switch k {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case 'n':
		return "null"
	}
	return "a boolean"
}

// escape makes a name a segment of a JSON pointer.
func escape(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

// dotted returns a pointer as people write paths: a.b."c d".0
func dotted(pointer string) string {
	if pointer == "" {
		return ""
	}
	segments := strings.Split(pointer[1:], "/")
	for i, s := range segments {
		s = strings.ReplaceAll(strings.ReplaceAll(s, "~1", "/"), "~0", "~")
		if s == "" || len(s) > 64 || !plain(s, "_-$") {
			s = quote(s)
		}
		segments[i] = s
	}
	return strings.Join(segments, ".")
}

// plain reports whether s holds only ASCII letters, digits and what is in also.
func plain(s, also string) bool {
	for _, c := range s {
		if !('0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || strings.ContainsRune(also, c)) {
			return false
		}
	}
	return true
}
