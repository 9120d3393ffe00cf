package console

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// Style is how a piece of text looks.
type Style uint8

// The styles.
const (
	Plain Style = iota
	Bold
	Dim
	Good    // green
	Bad     // red
	Caution // yellow
	Marked  // what stands for an invisible character
)

// Span is a piece of text in one style. It can be shown as it is.
type Span struct {
	Text  string
	Style Style
}

// Line is one line of the page.
type Line []Span

// String returns the text alone.
func (l Line) String() string {
	var b strings.Builder
	for _, s := range l {
		b.WriteString(s.Text)
	}
	return b.String()
}

func (l Line) width() (n int) {
	for _, s := range l {
		n += columns(s.Text)
	}
	return n
}

// sgr are the codes that switch a style on.
var sgr = map[Style]string{Bold: "1", Dim: "2", Good: "32", Bad: "31", Caution: "33", Marked: "7;33"}

// ansi returns the line for a terminal.
func (l Line) ansi(colour bool) string {
	var b strings.Builder
	for _, s := range l {
		if code := sgr[s.Style]; code != "" && colour {
			b.WriteString("\x1b[" + code + "m" + s.Text + "\x1b[0m")
		} else {
			b.WriteString(s.Text)
		}
	}
	return b.String()
}

// columns is how wide a text is that can be shown as it is.
func columns(s string) (n int) {
	for _, r := range s {
		n += runeColumns(r)
	}
	return n
}

func runeColumns(r rune) int {
	switch {
	case r < utf8.RuneSelf:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// wrap breaks a line where it becomes too wide. first stands before it and rest
// before what follows; both have the same width.
func wrap(l Line, first, rest Span, limit int) []Line {
	room := max(limit-columns(first.Text), 2)
	var out []Line
	line, used := Line{first}, 0
	for _, s := range l {
		begin := 0
		for i, r := range s.Text {
			w := runeColumns(r)
			if used+w > room {
				if i > begin {
					line = append(line, Span{s.Text[begin:i], s.Style})
				}
				out = append(out, line)
				line, used, begin = Line{rest}, 0, i
			}
			used += w
		}
		if begin < len(s.Text) {
			line = append(line, Span{s.Text[begin:], s.Style})
		}
	}
	return append(out, line)
}

// cut shortens a line to a width, and says so by an ellipsis.
func cut(l Line, limit int) Line {
	if l.width() <= limit {
		return l
	}
	var out Line
	left := limit - 1
	for _, s := range l {
		end := 0
		for i, r := range s.Text {
			w := runeColumns(r)
			if w > left {
				return append(out, Span{s.Text[:i], s.Style}, Span{"…", Caution})
			}
			left -= w
			end = i + utf8.RuneLen(r)
		}
		out = append(out, Span{s.Text[:end], s.Style})
	}
	return append(out, Span{"…", Caution})
}
