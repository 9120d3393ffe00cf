package install

import (
	"bytes"
	"errors"
	"reflect"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/hookd/hookd/protocol"
)

// tomlFile is an [editor] of files with an array of tables named hooks, each
// with an event and a command. Ours stand in a block of their own at the end, so
// that nothing else is touched.
type tomlFile struct{}

// tomlHooks is what is read of such a file.
type tomlHooks struct {
	Hooks []map[string]any `toml:"hooks"`
}

func (tomlFile) merge(path string, text []byte, want []entry) ([]byte, error) {
	if _, err := readTOML(path, text); err != nil {
		return nil, err
	}
	begin, end, err := tomlBlock(path, text)
	if err != nil {
		return nil, err
	}
	eol := lineEnd(text)
	before, after := text[:begin], text[end:]
	var b bytes.Buffer
	b.Write(before)
	if begin == end { // there is no block yet
		if len(before) > 0 && !bytes.HasSuffix(before, []byte("\n")) {
			b.WriteString(eol)
		}
		if len(before) > 0 {
			b.WriteString(eol)
		}
	}
	b.WriteString(blockBegin + eol)
	for i, e := range want {
		if i > 0 {
			b.WriteString(eol)
		}
		b.WriteString("[[hooks]]" + eol)
		for _, m := range e.value {
			value, err := tomlValue(m)
			if err != nil {
				return nil, err
			}
			b.WriteString(m.Name + " = " + value + eol)
		}
	}
	b.WriteString(blockEnd + eol)
	b.Write(after)
	return b.Bytes(), checkTOML(path, text, b.Bytes(), len(want))
}

// tomlValue writes a string or a number.
func tomlValue(m protocol.Member) (string, error) {
	if m.Value.Kind() != '"' {
		return string(m.Value), nil
	}
	text, err := toml.Marshal(map[string]string{"v": protocol.Unquote(m.Value)})
	if err != nil {
		return "", err
	}
	_, value, _ := strings.Cut(strings.TrimSpace(string(text)), " = ")
	return value, nil
}

// tomlBlock finds our block; without one both are the end.
func tomlBlock(path string, text []byte) (begin, end int, err error) {
	blocks, err := findBlocks(path, text)
	switch {
	case err != nil:
		return 0, 0, err
	case len(blocks) == 0:
		return len(text), len(text), nil
	case len(blocks) > 1:
		line, column := position(text, blocks[1].begin)
		return 0, 0, &FileError{Path: path, Line: line, Column: column, Text: "hookd's block begins here a second time; remove one of them"}
	}
	return blocks[0].begin, blocks[0].end, nil
}

// readTOML reads the whole file. The error is a *[FileError].
func readTOML(path string, text []byte) (map[string]any, error) {
	all := map[string]any{}
	err := toml.Unmarshal(text, &all)
	if bad, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, column := bad.Position()
		return nil, &FileError{path, line, column, "not TOML: " + strings.TrimPrefix(bad.Error(), "toml: ")}
	}
	if err != nil {
		return nil, &FileError{Path: path, Text: "not TOML: " + err.Error()}
	}
	return all, nil
}

// checkTOML makes sure that an edit changed nothing but our own hooks.
func checkTOML(path string, before, after []byte, ours int) error {
	old, err := readTOML(path, before)
	if err != nil {
		return err
	}
	now, err := readTOML(path, after)
	if err != nil {
		return &FileError{Path: path, Text: `hooks can't be added at its end, as tables named [[hooks]]: if there is a list "hooks = [ … ]", turn it into such tables`}
	}
	others := func(all map[string]any) (rest []any, mine int) {
		list, _ := all["hooks"].([]any)
		for _, h := range list {
			if table, ok := h.(map[string]any); ok && tomlCall(table) {
				mine++
			} else {
				rest = append(rest, h)
			}
		}
		delete(all, "hooks")
		return rest, mine
	}
	oldRest, _ := others(old)
	nowRest, mine := others(now)
	if !reflect.DeepEqual(old, now) || !reflect.DeepEqual(oldRest, nowRest) || mine < ours {
		return &FileError{Path: path, Text: "hookd's block would change what the file says elsewhere; add the hooks by hand"}
	}
	return nil
}

func tomlCall(table map[string]any) bool {
	command, _ := table["command"].(string)
	_, ours := readLine(command)
	return ours
}

func (f tomlFile) strip(path, agent string, text []byte) ([]byte, []entry, error) {
	slots, err := f.scan(path, text)
	if err != nil {
		return nil, nil, err
	}
	begin, end, err := tomlBlock(path, text)
	if err != nil || begin == end {
		return text, nil, err
	}
	var ours []entry
	for _, s := range slots {
		if s.ours && s.call.Agent == agent {
			ours = append(ours, s.entry())
		}
	}
	rest := bytes.Clone(text[:begin])
	if blank := []byte("\r\n\r\n"); bytes.HasSuffix(rest, blank) {
		rest = rest[:len(rest)-2]
	} else if bytes.HasSuffix(rest, []byte("\n\n")) {
		rest = rest[:len(rest)-1]
	}
	rest = append(rest, text[end:]...)
	return rest, ours, checkTOML(path, text, rest, 0)
}

func (tomlFile) blank(_ string, rest []byte) bool { return len(bytes.TrimSpace(rest)) == 0 }

func (tomlFile) scan(path string, text []byte) ([]slot, error) {
	if _, err := readTOML(path, text); err != nil {
		return nil, err
	}
	var file tomlHooks
	if err := toml.Unmarshal(text, &file); err != nil {
		return nil, &FileError{Path: path, Text: `"hooks" is no list of tables: ` + strings.TrimPrefix(err.Error(), "toml: ")}
	}
	found := make([]slot, 0, len(file.Hooks))
	lines := tomlLines(text)
	for i, table := range file.Hooks {
		s := slot{group: i}
		s.event, _ = table["event"].(string)
		s.matcher, _ = table["matcher"].(string)
		s.text, _ = table["command"].(string)
		s.call, s.ours = readLine(s.text)
		if i < len(lines) {
			s.line = lines[i]
		}
		// In the order in which hookd writes them.
		for _, name := range []string{"event", "command", "timeout", "matcher"} {
			switch v := table[name].(type) {
			case string:
				s.value = append(s.value, object(name, v)...)
			case int64:
				s.value = append(s.value, object(name, v)...)
			}
		}
		found = append(found, s)
	}
	return found, nil
}

// tomlLines are the lines of the headers [[hooks]], good enough for messages.
func tomlLines(text []byte) (lines []int) {
	n := 0
	for line := range bytes.Lines(text) {
		n++
		header, _, _ := strings.Cut(string(line), "#")
		if strings.ReplaceAll(strings.TrimSpace(header), " ", "") == "[[hooks]]" {
			lines = append(lines, n)
		}
	}
	return lines
}

// tomlPath reads a value by names out of a TOML file's content; nil = not there.
func tomlPath(all map[string]any, names ...string) any {
	var v any = all
	for _, name := range names {
		table, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = table[name]
	}
	return v
}
