package console

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/hookd/hookd/protocol"
)

// maxDiffBytes is how much is compared. More would be shown too late.
const maxDiffBytes = 1 << 20

// change is what a call would change in a file, made from its arguments.
type change struct {
	path string
	// note says how it was made; diff is in the unified form, and empty when
	// there is no difference.
	note string
	diff []byte
	// members of the arguments that it shows.
	members []string
}

// How editing tools call what they take.
var (
	pathNames    = []string{"file_path", "path", "filePath", "filepath", "filename", "file"}
	contentNames = []string{"content", "contents", "file_text"}
	replaceNames = [][2]string{
		{"old_string", "new_string"}, {"old_str", "new_str"}, {"oldString", "newString"}, {"old_text", "new_text"}, {"oldText", "newText"},
	}
)

// changesOf finds what a call would change. readFile reads a file as the person
// can.
func changesOf(t *Ticket, readFile func(path string) ([]byte, error)) []change {
	args, err := protocol.ParseObject(t.Arguments)
	if err != nil {
		return nil
	}
	path, _ := textOf(args, pathNames...)
	if c, ok := replacement(args, path); ok {
		return []change{c}
	}
	if v := args.Get("edits"); v != nil && v.Kind() == '[' {
		return replacements(args, path)
	}
	name := ""
	for _, n := range contentNames {
		if _, found := textOf(args, n); found != "" {
			name = n
			break
		}
	}
	if path == "" || name == "" {
		return nil
	}
	return written(t, path, name, protocol.Unquote(args.Get(name)), readFile)
}

// textOf returns the first of the named members that is a text, and its name.
func textOf(o protocol.Object, names ...string) (text, name string) {
	for _, n := range names {
		if v := o.Get(n); v != nil && v.Kind() == '"' {
			return protocol.Unquote(v), n
		}
	}
	return "", ""
}

// replacement makes a change of an old and a new text.
func replacement(o protocol.Object, path string) (change, bool) {
	for _, pair := range replaceNames {
		before, hasOld := textOf(o, pair[0])
		after, hasNew := textOf(o, pair[1])
		if hasOld == "" || hasNew == "" {
			continue
		}
		if len(before)+len(after) > maxDiffBytes {
			return change{}, false
		}
		note := "one place"
		if string(o.Get("replace_all")) == "true" || string(o.Get("replaceAll")) == "true" {
			note = "every place"
		}
		return change{path: path, note: note, diff: unified(before, after), members: pair[:]}, true
	}
	return change{}, false
}

// replacements makes changes of a list of edits, of all of them or none.
func replacements(args protocol.Object, path string) (list []change) {
	items, err := protocol.Items(args.Get("edits"))
	if err != nil || len(items) == 0 || len(args.Get("edits")) > maxDiffBytes {
		return nil
	}
	for i, item := range items {
		o, err := protocol.ParseObject(item)
		if err != nil {
			return nil
		}
		c, ok := replacement(o, path)
		known := 2 // an edit that says more is shown as it is
		for _, name := range []string{"replace_all", "replaceAll"} {
			if o.Get(name) != nil {
				known++
			}
		}
		if !ok || len(o) != known {
			return nil
		}
		c.note = fmt.Sprintf("edit %d of %d, %s", i+1, len(items), c.note)
		c.members = []string{"edits"}
		list = append(list, c)
	}
	return list
}

// written compares a whole new content with the file as it is.
func written(t *Ticket, path, member, after string, readFile func(string) ([]byte, error)) []change {
	full := path
	if !filepath.IsAbs(full) {
		if !filepath.IsAbs(t.CWD) {
			return nil // nobody knows which file is meant
		}
		full = filepath.Join(t.CWD, path)
	}
	before, err := readFile(full)
	c := change{path: full, members: []string{member}}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.note = "a new file"
	case err != nil:
		// The content itself is shown; the reason goes with it.
		return []change{{path: full, note: "not compared with the file: " + reason(err)}}
	case len(before)+len(after) > maxDiffBytes:
		return []change{{path: full, note: "not compared with the file: too large"}}
	case bytes.IndexByte(before, 0) >= 0:
		return []change{{path: full, note: "not compared with the file: it is no text"}}
	default:
		c.note = "the file as it is now, and as it would be"
	}
	c.diff = unified(string(before), after)
	return []change{c}
}

func reason(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return err.Error()
}

// unified returns the differences without the names of files, which would be
// made up.
func unified(before, after string) []byte {
	d := diff.Diff("a", []byte(before), "b", []byte(after))
	if i := bytes.Index(d, []byte("\n@@")); i >= 0 {
		return d[i+1:]
	}
	return d
}

// change writes one change.
func (c *content) change(ch *change) {
	title := Line{{"change", Bold}}
	if ch.path != "" {
		title = append(title, Span{" of ", Plain})
		title = append(title, pieces(ch.path)...)
	}
	c.add(append(title, Span{" (" + Escape(ch.note) + "):", Dim}))
	switch {
	case ch.members == nil: // not compared: the arguments follow
	case len(ch.diff) == 0:
		c.barred(Line{{"no difference", Dim}})
	default:
		for line := range strings.SplitSeq(strings.TrimSuffix(string(ch.diff), "\n"), "\n") {
			c.barred(diffLine(line))
		}
	}
}

func diffLine(line string) Line {
	if line == "" {
		return nil
	}
	style := Plain
	switch line[0] {
	case '+':
		style = Good
	case '-':
		style = Bad
	case '@', '\\':
		style = Dim
	}
	return append(Line{{line[:1], style}}, spread(line[1:], style)...)
}

// maxFileBytes is how much of a file is read to be compared.
const maxFileBytes = maxDiffBytes + 1

// ReadFile reads a regular file, up to a bit more than what is compared. It
// does not wait for a pipe or a device.
func ReadFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	return io.ReadAll(io.LimitReader(f, maxFileBytes))
}
