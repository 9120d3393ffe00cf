package protocol

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The readers below take values that a strict decoder has already checked, so
// only their type is left to be judged. Errors name the path.

func wantKind(path string, v jsontext.Value, want jsontext.Kind) error {
	if k := v.Kind(); k != want {
		return fmt.Errorf("%s: expected %s, got %s", path, kindName(want), kindName(k))
	}
	return nil
}

func stringValue(path string, v jsontext.Value) (string, error) {
	if err := wantKind(path, v, '"'); err != nil {
		return "", err
	}
	return Unquote(v), nil
}

// Unquote returns the text of a JSON string that has been checked already.
func Unquote(v jsontext.Value) string {
	if raw := v[1 : len(v)-1]; bytes.IndexByte(raw, '\\') < 0 {
		return string(raw)
	}
	b, _ := jsontext.AppendUnquote(nil, []byte(v)) // checked: can't fail
	return string(b)
}

// stringsValue reads an array of strings, and a single string when one is
// allowed.
func stringsValue(path string, v jsontext.Value, orOne bool) ([]string, error) {
	if orOne && v.Kind() == '"' {
		return []string{Unquote(v)}, nil
	}
	if err := wantKind(path, v, '['); err != nil {
		return nil, err
	}
	items, err := Items(v)
	if err != nil {
		return nil, err
	}
	list := make([]string, len(items))
	for i, it := range items {
		if list[i], err = stringValue(path+"."+strconv.Itoa(i), it); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func objectValue(path string, v jsontext.Value) (Object, error) {
	if err := wantKind(path, v, '{'); err != nil {
		return nil, err
	}
	return ParseObject(v)
}

// ParseObject splits an object that has been checked already into its members.
func ParseObject(v jsontext.Value) (Object, error) {
	if v.Kind() != '{' {
		return nil, fmt.Errorf("expected an object, got %s", kindName(v.Kind()))
	}
	return ReadMembers(checkedDecoder(v))
}

// checkedDecoder does not check anew what has been checked already.
func checkedDecoder(v jsontext.Value) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(v), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// Items splits an array that has been checked already into its items.
func Items(v jsontext.Value) ([]jsontext.Value, error) {
	dec := checkedDecoder(v)
	if _, err := dec.ReadToken(); err != nil {
		return nil, jsonError(err)
	}
	var items []jsontext.Value
	for dec.PeekKind() != ']' {
		it, err := dec.ReadValue()
		if err != nil {
			return nil, jsonError(err)
		}
		items = append(items, it)
	}
	return items, nil
}

// ContentText returns the text of a checked content: a string, or the texts of
// an array of blocks. It leaves out what has no text, and nothing else: a guard
// must see the text beside an odd block.
func ContentText(content jsontext.Value) string {
	switch content.Kind() {
	case '"':
		return Unquote(content)
	case '[':
	default:
		return ""
	}
	blocks, _ := Items(content)
	var text strings.Builder
	for _, b := range blocks {
		if b.Kind() == '{' {
			block, _ := ParseObject(b)
			b = block.Get("text")
		}
		if b.Kind() == '"' {
			text.WriteString(Unquote(b))
		}
	}
	return text.String()
}

// Messages splits an inject value: one message, or an array of several. Each
// is {role, content} with content a string or an array of blocks.
func Messages(path string, v jsontext.Value) ([]jsontext.Value, error) {
	if v.Kind() != '[' {
		return []jsontext.Value{v}, checkMessage(path, v)
	}
	list, err := Items(v)
	if err != nil {
		return nil, err
	}
	for i, m := range list {
		if err := checkMessage(path+"."+strconv.Itoa(i), m); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func checkMessage(path string, v jsontext.Value) error {
	obj, err := objectValue(path, v)
	if err != nil {
		return err
	}
	if err := wantMember(path, obj, "role", '"'); err != nil {
		return err
	}
	if k := obj.Get("content").Kind(); k != '"' && k != '[' {
		return fmt.Errorf("%s.content: expected a string or an array of blocks", path)
	}
	return nil
}

func wantMember(path string, obj Object, name string, kind jsontext.Kind) error {
	v := obj.Get(name)
	if v == nil {
		return fmt.Errorf("%s.%s is missing", path, name)
	}
	return wantKind(path+"."+name, v, kind)
}

// paramKind returns the kind of value that a subject or fixed param has: 't'
// stands for a boolean.
func paramKind(name string) jsontext.Kind {
	switch name {
	case "messages", "tools":
		return '['
	case "tool", "model":
		return '"'
	case "read_only":
		return 't'
	case "duration_ms":
		return '0'
	}
	return '{'
}

// checkParam judges the type of one subject or fixed param.
func checkParam(prefix string, m Member) error {
	path := prefix + m.Name
	if want := paramKind(m.Name); want == 't' {
		_, err := boolValue(path, m.Value)
		return err
	} else if err := wantKind(path, m.Value, want); err != nil {
		return err
	}
	if m.Name == "tool" && len(m.Value) == 2 {
		return fmt.Errorf("%s: is empty", path)
	}
	return nil
}

// checkContent judges the one member of a wrapped subject whose shape is fixed,
// so that a guard which reads text can't be passed by. What stands behind it is
// not read.
func checkContent(path string, v jsontext.Value) error {
	dec := checkedDecoder(v)
	if _, err := dec.ReadToken(); err != nil {
		return jsonError(err)
	}
	for dec.PeekKind() == '"' {
		name, err := dec.ReadValue()
		if err != nil {
			return jsonError(err)
		}
		if memberName(name) == "content" {
			return wantContent(path, dec.PeekKind())
		}
		if err := dec.SkipValue(); err != nil {
			return jsonError(err)
		}
	}
	return nil
}

// wantContent accepts text and blocks, and the null of a model's answer that
// only calls tools.
func wantContent(path string, k jsontext.Kind) error {
	if k != '"' && k != '[' && k != 'n' {
		return fmt.Errorf("%s.content: expected a string or an array of blocks, got %s", path, kindName(k))
	}
	return nil
}

// intValue reads an integer without going through floating point.
func intValue(path string, v jsontext.Value) (int64, error) {
	if err := wantKind(path, v, '0'); err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: expected an integer, got %s", path, clip(string(v)))
	}
	return n, nil
}

func boolValue(path string, v jsontext.Value) (bool, error) {
	switch v.Kind() {
	case 't':
		return true, nil
	case 'f':
		return false, nil
	}
	return false, fmt.Errorf("%s: expected a boolean, got %s", path, kindName(v.Kind()))
}

// maxMillis, some 34 years, is as long as any wait; longer ones, as by agents
// that mean "for ever", would overflow a [time.Duration].
const maxMillis = 1 << 40

// millisValue reads a time to wait in milliseconds.
func millisValue(path string, v jsontext.Value) (int64, error) {
	n, err := intValue(path, v)
	if err == nil && n < 0 {
		err = fmt.Errorf("%s: must not be negative", path)
	}
	return min(n, maxMillis), err
}

// paramError turns the error of a param into one that names its path, which may
// be deeper, such as meta.iteration.
func paramError(name string, err error) *Error {
	path, text, ok := strings.Cut(err.Error(), ": ")
	if !ok || !strings.HasPrefix(path, name) {
		path, text = name, err.Error()
	}
	return InvalidParams(path, "%s", text)
}

// clip shortens what a peer wrote before it goes into a message.
func clip(s string) string {
	if len(s) > 64 {
		return strings.ToValidUTF8(s[:64], "") + "…"
	}
	return s
}

// SameValue reports whether two checked values mean the same: the order of
// members and white space do not matter, numbers are compared as text.
func SameValue(a, b jsontext.Value) bool {
	if bytes.Equal(a, b) {
		return true
	}
	if a == nil || b == nil || a.Kind() != b.Kind() {
		return false
	}
	switch a.Kind() {
	case '"':
		return Unquote(a) == Unquote(b)
	case '[':
		x, errX := Items(a)
		y, errY := Items(b)
		return errX == nil && errY == nil && slices.EqualFunc(x, y, SameValue)
	case '{':
		x, errX := ParseObject(a)
		y, errY := ParseObject(b)
		if errX != nil || errY != nil || len(x) != len(y) {
			return false
		}
		values := make(map[string]jsontext.Value, len(y))
		for _, m := range y {
			values[m.Name] = m.Value
		}
		return !slices.ContainsFunc(x, func(m Member) bool { return !SameValue(m.Value, values[m.Name]) })
	}
	return string(a) == string(b)
}

// Quote returns s as a JSON string.
func Quote[S ~string](s S) jsontext.Value { return AppendString(nil, s) }

// Marshal returns v as JSON with members in a fixed order.
func Marshal(v any) (jsontext.Value, error) {
	return json.Marshal(v, json.Deterministic(true))
}

// Unmarshal reads JSON into v strictly: names are matched exactly, a name may
// stand once only, and members that v does not have are kept out silently.
func Unmarshal(b []byte, v any) error { return json.Unmarshal(b, v) }
