package text

import "strings"

// Code returns the places of fenced code blocks, fences included, in order:
// [start, end) pairs. A fence is a line that begins with three or more ` or ~; a
// block that is not closed is none.
func Code(s string) [][2]int {
	if !strings.Contains(s, "```") && !strings.Contains(s, "~~~") {
		return nil
	}
	var places [][2]int
	open, fence := -1, ""
	for at := 0; at < len(s); {
		end := strings.IndexByte(s[at:], '\n')
		if end < 0 {
			end = len(s)
		} else {
			end += at + 1
		}
		line := strings.TrimLeft(s[at:end], " \t>")
		switch f := fenceOf(line); {
		case open < 0 && f != "":
			open, fence = at, f
		case open >= 0 && strings.HasPrefix(f, fence) && strings.TrimSpace(line[len(f):]) == "":
			places = append(places, [2]int{open, end})
			open = -1
		}
		at = end
	}
	return places
}

// fenceOf returns the fence that a line begins with, or "".
func fenceOf(line string) string {
	for _, mark := range []string{"`", "~"} {
		if rest := strings.TrimLeft(line, mark); len(line)-len(rest) >= 3 {
			return line[:len(line)-len(rest)]
		}
	}
	return ""
}
