package install

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"
)

// wholeFile is an [editor] of a file that is hookd's from end to end. A line in
// it holds a checksum of the others, so that what people changed is neither
// overwritten nor removed.
type wholeFile struct {
	// comment begins a line that the agent does not read.
	comment string
	// render writes the file but for the line with the checksum, which comes
	// after the first skip lines.
	render func(want []entry) ([]byte, error)
	skip   int
	// read finds what the file runs.
	read func(text []byte) []entry
}

// stamp is what the line with the checksum begins with.
const stamp = " made by hookd install, sha256 of the other lines "

func (f wholeFile) merge(path string, text []byte, want []entry) ([]byte, error) {
	if text != nil {
		if err := f.check(path, text); err != nil {
			return nil, err
		}
	}
	body, err := f.render(want)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(body)
	line := f.comment + stamp + hex.EncodeToString(sum[:]) + "\n"
	at := 0
	for range f.skip {
		at += bytes.IndexByte(body[at:], '\n') + 1
	}
	return append(append(append([]byte{}, body[:at]...), line...), body[at:]...), nil
}

// check makes sure that a file is as hookd wrote it.
func (f wholeFile) check(path string, text []byte) error {
	body, sum, ok := f.split(text)
	if !ok {
		return &FileError{Path: path, Text: fmt.Sprintf("is there already and is none of hookd's; move it away, or let it call %s itself", clientProgram)}
	}
	if got := sha256.Sum256(body); hex.EncodeToString(got[:]) != sum {
		return &FileError{Path: path, Text: "was made by hookd and changed by hand since; move it away if hookd is to write it anew"}
	}
	return nil
}

// split takes the line with the checksum out.
func (f wholeFile) split(text []byte) (body []byte, sum string, ok bool) {
	for line := range bytes.Lines(text) {
		found, is := strings.CutPrefix(strings.TrimRight(string(line), "\r\n"), f.comment+stamp)
		if is && !ok {
			sum, ok = found, true
			continue
		}
		body = append(body, line...)
	}
	return body, sum, ok
}

func (f wholeFile) strip(path, agent string, text []byte) ([]byte, []entry, error) {
	if _, _, ok := f.split(text); !ok {
		return text, nil, nil // somebody else's
	}
	if err := f.check(path, text); err != nil {
		return nil, nil, err
	}
	ours := f.read(text)
	if len(ours) == 0 {
		ours = []entry{{call: Call{Agent: agent}}}
	}
	return nil, ours, nil
}

func (wholeFile) blank(_ string, rest []byte) bool { return rest == nil }

func (f wholeFile) scan(path string, text []byte) ([]slot, error) {
	if _, _, ok := f.split(text); !ok {
		return []slot{{event: filepath.Base(path), text: path, line: 1}}, nil
	}
	var found []slot
	for _, e := range f.read(text) {
		line, _ := shellLine(e.call.Argv())
		found = append(found, slot{event: e.event, call: e.call, ours: true, text: line, line: 1})
	}
	return found, nil
}

// fixedFile is an [editor] of a small file that an agent wants beside the one
// with the hooks. Its content never changes.
type fixedFile struct{ content string }

func (f fixedFile) merge(path string, text []byte, _ []entry) ([]byte, error) {
	if text != nil && string(text) != f.content {
		return nil, &FileError{Path: path, Text: "is there already and is none of hookd's; move it away"}
	}
	return []byte(f.content), nil
}

func (f fixedFile) strip(_, agent string, text []byte) ([]byte, []entry, error) {
	if string(text) != f.content {
		return text, nil, nil
	}
	return nil, []entry{{call: Call{Agent: agent}}}, nil
}

func (fixedFile) blank(_ string, rest []byte) bool { return rest == nil }

func (fixedFile) scan(string, []byte) ([]slot, error) { return nil, nil }
