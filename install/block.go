package install

import (
	"bytes"
	"strings"
)

// The lines around what hookd writes into files whose comments begin with #.
const (
	blockBegin = "# >>> hookd: what is between these lines is written and removed by hookd"
	blockEnd   = "# <<< hookd"
)

// block is a part of a file, with its two lines.
type block struct{ begin, end int }

// findBlocks finds what hookd has written. A block without its beginning or its
// end is an error.
func findBlocks(path string, text []byte) ([]block, error) {
	fail := func(offset int, why string) error {
		line, column := position(text, offset)
		return &FileError{Path: path, Line: line, Column: column, Text: why}
	}
	var found []block
	open, offset := -1, 0
	for line := range bytes.Lines(text) {
		switch strings.TrimSpace(string(line)) {
		case blockBegin:
			if open >= 0 {
				return nil, fail(offset, "hookd's block begins here a second time; remove one of them")
			}
			open = offset
		case blockEnd:
			if open < 0 {
				return nil, fail(offset, "hookd's block ends here and has no beginning; remove this line")
			}
			found = append(found, block{open, offset + len(line)})
			open = -1
		}
		offset += len(line)
	}
	if open >= 0 {
		return nil, fail(open, "hookd's block begins here and has no end; remove it by hand")
	}
	return found, nil
}

// lineEnd is how lines end in a file.
func lineEnd(text []byte) string {
	if bytes.Contains(text, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}
