package install

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/hookd/hookd/protocol"
)

// yamlFile is an [editor] of a file with a mapping named hooks, which holds a
// list of handlers by event. Ours stand in blocks of their own between two
// comments, so that nothing else is touched.
type yamlFile struct{}

func (f yamlFile) merge(path string, text []byte, want []entry) ([]byte, error) {
	if _, err := readYAML(path, text); err != nil {
		return nil, err
	}
	plain, err := dropBlocks(path, text)
	if err != nil {
		return nil, err
	}
	root, err := readYAML(path, plain)
	if err != nil {
		return nil, err
	}
	eol := lineEnd(text)
	hooks := yamlMember(root, "hooks")
	if hooks == nil {
		var b bytes.Buffer
		b.Write(plain)
		if len(plain) > 0 && !bytes.HasSuffix(plain, []byte("\n")) {
			b.WriteString(eol)
		}
		b.WriteString(blockBegin + eol + "hooks:" + eol)
		for _, e := range want {
			b.WriteString(yamlEvent("  ", eol, e))
		}
		b.WriteString(blockEnd + eol)
		return b.Bytes(), checkYAML(path, text, b.Bytes(), len(want))
	}
	after, err := insertYAML(path, plain, root, hooks, eol, want)
	if err != nil {
		return nil, err
	}
	return after, checkYAML(path, text, after, len(want))
}

// insertYAML puts our entries into the hooks that are there: events that are new
// in one block, and into the list of each event that has one.
func insertYAML(path string, text []byte, root, hooks *yaml.Node, eol string, want []entry) ([]byte, error) {
	refuse := func(n *yaml.Node, why string) error {
		return &FileError{Path: path, Line: n.Line, Column: n.Column, Text: why}
	}
	lines := slices.Collect(bytes.Lines(text))
	key := yamlKey(root, "hooks")
	indent := "  "
	empty := hooks.Kind == yaml.ScalarNode && hooks.Tag == "!!null" || hooks.Kind == yaml.MappingNode && len(hooks.Content) == 0
	switch {
	case empty && hooks.Kind == yaml.MappingNode && hooks.Line == key.Line: // {}
		line := lines[key.Line-1]
		begin := hooks.Column - 1
		end := bytes.IndexByte(line[begin:], '}')
		if end < 0 {
			return nil, refuse(hooks, "hooks is written over several lines; write it as a block")
		}
		lines[key.Line-1] = append(bytes.TrimRight(bytes.Clone(line[:begin]), " "), line[begin+end+1:]...)
	case empty && hooks.Value == "":
	case hooks.Kind != yaml.MappingNode || hooks.Style&yaml.FlowStyle != 0:
		return nil, refuse(hooks, "hooks is no block with events; write it as one")
	default:
		indent = strings.Repeat(" ", hooks.Content[0].Column-1)
	}
	fresh := ""
	into := map[int]string{} // before the line with this index
	for _, e := range want {
		list := yamlMember(hooks, e.event)
		if list == nil {
			fresh += yamlEvent(indent, eol, e)
			continue
		}
		if list.Kind != yaml.SequenceNode || list.Style&yaml.FlowStyle != 0 || len(list.Content) == 0 {
			return nil, refuse(list, fmt.Sprintf("the hooks of %s are no block with a list; write them as one, or remove the line", e.event))
		}
		at := list.Content[0].Line - 1
		line := string(lines[at])
		in := line[:len(line)-len(strings.TrimLeft(line, " "))]
		if !strings.HasPrefix(strings.TrimLeft(line, " "), "- ") {
			return nil, refuse(list, fmt.Sprintf("the hooks of %s are written in a way that can't be added to; write each after a dash", e.event))
		}
		into[at] += in + blockBegin + eol + yamlHandler(in, eol, e) + in + blockEnd + eol
	}
	if fresh != "" {
		at := key.Line
		into[at] = indent + blockBegin + eol + fresh + indent + blockEnd + eol + into[at]
		if at == len(lines) && !bytes.HasSuffix(lines[at-1], []byte("\n")) {
			lines[at-1] = append(bytes.Clone(lines[at-1]), eol...)
		}
	}
	var b bytes.Buffer
	for i := 0; i <= len(lines); i++ {
		b.WriteString(into[i])
		if i < len(lines) {
			b.Write(lines[i])
		}
	}
	return b.Bytes(), nil
}

func yamlEvent(indent, eol string, e entry) string {
	return indent + e.event + ":" + eol + yamlHandler(indent+"  ", eol, e)
}

func yamlHandler(indent, eol string, e entry) string {
	text := ""
	for i, m := range e.value {
		lead := indent + "  "
		if i == 0 {
			lead = indent + "- "
		}
		text += lead + m.Name + ": " + string(m.Value) + eol // a JSON text is a YAML text
	}
	return text
}

// dropBlocks takes ours out. What would be left of hooks is an empty mapping.
func dropBlocks(path string, text []byte) ([]byte, error) {
	blocks, err := findBlocks(path, text)
	if err != nil || len(blocks) == 0 {
		return text, err
	}
	var rest []byte
	from := 0
	for _, b := range blocks {
		rest = append(rest, text[from:b.begin]...)
		from = b.end
	}
	rest = append(rest, text[from:]...)
	root, err := readYAML(path, rest)
	if err != nil {
		return nil, err
	}
	hooks := yamlMember(root, "hooks")
	if hooks == nil || hooks.Tag != "!!null" || hooks.Value != "" {
		return rest, nil
	}
	key := yamlKey(root, "hooks")
	lines := slices.Collect(bytes.Lines(rest))
	end := key.Column - 1 + len("hooks:")
	line := lines[key.Line-1]
	if !bytes.HasPrefix(line[key.Column-1:], []byte("hooks:")) {
		return rest, nil
	}
	lines[key.Line-1] = slices.Concat(line[:end], []byte(" {}"), line[end:])
	return bytes.Join(lines, nil), nil
}

var yamlPlace = regexp.MustCompile(`line (\d+): `)

// readYAML reads a file with one mapping, or none. The error is a *[FileError].
func readYAML(path string, text []byte) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc, more yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err == nil {
		if err = dec.Decode(&more); errors.Is(err, io.EOF) {
			err = nil
		} else if err == nil {
			return nil, &FileError{path, more.Line, 1, "a second document begins here; keep one of them"}
		}
	}
	if err == nil {
		var all map[string]any // names that stand twice, and what has no meaning
		err = doc.Decode(&all)
	}
	if err != nil {
		bad := &FileError{Path: path, Text: "not YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")}
		if m := yamlPlace.FindStringSubmatch(err.Error()); m != nil {
			bad.Line, _ = strconv.Atoi(m[1])
			bad.Column = 1
		}
		return nil, bad
	}
	root := doc.Content[0]
	switch {
	case root.Kind == yaml.ScalarNode && root.Tag == "!!null":
		return nil, nil
	case root.Kind != yaml.MappingNode || root.Style&yaml.FlowStyle != 0:
		return nil, &FileError{path, root.Line, root.Column, "names with values are expected here, a line each"}
	}
	return root, nil
}

func yamlKey(v *yaml.Node, name string) *yaml.Node {
	if v == nil || v.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(v.Content); i += 2 {
		if v.Content[i].Value == name {
			return v.Content[i]
		}
	}
	return nil
}

func yamlMember(v *yaml.Node, name string) *yaml.Node {
	if key := yamlKey(v, name); key != nil {
		return v.Content[slices.Index(v.Content, key)+1]
	}
	return nil
}

// checkYAML makes sure that an edit changed nothing but our own hooks.
func checkYAML(path string, before, after []byte, ours int) error {
	others := func(text []byte) (all map[string]any, mine int, err error) {
		root, err := readYAML(path, text)
		if err != nil || root == nil {
			return map[string]any{}, 0, err
		}
		if err := root.Decode(&all); err != nil {
			return nil, 0, err
		}
		hooks, ok := all["hooks"].(map[string]any)
		if !ok && all["hooks"] != nil {
			return all, 0, nil
		}
		for event, v := range hooks {
			list, _ := v.([]any)
			n := len(list)
			list = slices.DeleteFunc(list, func(h any) bool {
				table, _ := h.(map[string]any)
				return table != nil && tomlCall(table)
			})
			if mine += n - len(list); n > 0 && len(list) == 0 {
				delete(hooks, event)
			} else if n > 0 {
				hooks[event] = list
			}
		}
		if len(hooks) == 0 {
			delete(all, "hooks")
		}
		return all, mine, nil
	}
	old, _, err := others(before)
	if err != nil {
		return err
	}
	now, mine, err := others(after)
	if err != nil || mine < ours || !reflect.DeepEqual(old, now) {
		return &FileError{Path: path, Text: "hookd's block would change what the file says elsewhere; add the hooks by hand"}
	}
	return nil
}

func (f yamlFile) strip(path, agent string, text []byte) ([]byte, []entry, error) {
	slots, err := f.scan(path, text)
	if err != nil {
		return nil, nil, err
	}
	blocks, err := findBlocks(path, text)
	if err != nil || len(blocks) == 0 {
		return text, nil, err
	}
	var ours []entry
	for _, s := range slots {
		if s.ours && s.call.Agent == agent {
			ours = append(ours, s.entry())
		}
	}
	rest, err := dropBlocks(path, text)
	if err != nil {
		return nil, nil, err
	}
	return rest, ours, checkYAML(path, text, rest, 0)
}

func (yamlFile) blank(_ string, rest []byte) bool { return len(bytes.TrimSpace(rest)) == 0 }

func (yamlFile) scan(path string, text []byte) ([]slot, error) {
	root, err := readYAML(path, text)
	if err != nil {
		return nil, err
	}
	hooks := yamlMember(root, "hooks")
	if hooks == nil || hooks.Kind != yaml.MappingNode {
		return nil, nil
	}
	var found []slot
	for i := 0; i+1 < len(hooks.Content); i += 2 {
		list := hooks.Content[i+1]
		if list.Kind != yaml.SequenceNode {
			continue
		}
		for n, h := range list.Content {
			s := slot{event: hooks.Content[i].Value, group: n, line: h.Line}
			// In the order in which hookd writes them.
			for _, name := range []string{"command", "timeout", "fail_closed", "matcher"} {
				if v := yamlMember(h, name); v != nil && v.Kind == yaml.ScalarNode {
					s.value = append(s.value, protocol.Member{Name: name, Value: yamlScalar(v)})
				}
			}
			if m := yamlMember(h, "matcher"); m != nil {
				s.matcher = m.Value
			}
			s.call, s.ours, s.text = callOf(s.value)
			found = append(found, s)
		}
	}
	return found, nil
}

// yamlScalar is a scalar as JSON.
func yamlScalar(v *yaml.Node) []byte {
	switch v.Tag {
	case "!!int", "!!bool":
		return []byte(v.Value)
	}
	return protocol.Quote(v.Value)
}
