package shell

import "strings"

const sedOptions options = "nrEsuzbae:f:i::l: --expression= --file= --in-place --quiet --silent --regexp-extended --separate --unbuffered --null-data --line-length= --follow-symlinks --posix --debug --sandbox --binary"

// sed follows sed, whose e command and flag run what is in the text, and whose
// w writes files.
func (r *reader) sed(c call) {
	got, operands := sedOptions.permuted(c.args[1:])
	var scripts []field
	inPlace, given := false, false
	for _, opt := range got {
		switch opt.name {
		case "e", "expression":
			scripts, given = append(scripts, opt.value), true
		case "f", "file":
			given = true
			if opt.value.text != "-" {
				r.runsFile(&opt.value)
			}
		case "i", "in-place":
			inPlace = true
		}
	}
	if !given && len(operands) > 0 {
		scripts, operands = operands[:1], operands[1:]
	}
	if inPlace {
		for _, f := range operands {
			r.writes(f)
		}
	}
	for _, s := range scripts {
		text := neutral(s)
		r.sedScript(&sedScript{text: text})
		if strings.IndexByte(text, '[') >= 0 {
			r.sedScript(&sedScript{text: text, classes: true})
		}
	}
}

// neutral returns a text with a number for each part that is not known. What
// such a part does to a script is not followed.
func neutral(f field) string {
	if !f.unknown {
		return f.text
	}
	var b strings.Builder
	s := f.text
	for {
		i := strings.IndexByte(s, '$')
		if i < 0 || i+1 == len(s) {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:i])
		end := i + 1
		switch c := s[end]; {
		case c == '(' || c == '{':
			for depth := 0; end < len(s); end++ {
				if strings.IndexByte("({", s[end]) >= 0 {
					depth++
				} else if strings.IndexByte(")}", s[end]) >= 0 {
					if depth--; depth == 0 {
						end++
						break
					}
				}
			}
		default:
			for end < len(s) && isNameByte(s[end]) {
				end++
			}
		}
		if end > i+1 {
			b.WriteByte('1')
		} else {
			b.WriteByte('$')
		}
		s = s[end:]
	}
}

func (r *reader) sedScript(s *sedScript) {
	runs, files := s.read()
	if runs {
		r.unresolvedWord("a script of sed runs commands", s.text)
	}
	for _, file := range files {
		r.writes(field{text: file})
	}
}

// sedScript reads the commands of a script of sed.
type sedScript struct {
	text string
	at   int
	// classes says that a mark in brackets does not end a pattern. Programs
	// differ in that.
	classes bool
}

// read reports whether the script runs something, and which files it writes.
// A script that it can't follow is one that may run something.
func (s *sedScript) read() (runs bool, files []string) {
	for s.at < len(s.text) {
		c := s.next()
		switch c {
		case ' ', '\t', '\n', ';', '{', '}', '!', ',', '~', '+', '$', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'I', 'M':
		case '#', ':', 'b', 't', 'T', 'r', 'R', 'q', 'Q', 'l', 'L', 'v', 'a', 'i', 'c':
			s.rest(strings.IndexByte(":btTqQlL", c) >= 0)
		case 'w', 'W':
			files = append(files, strings.TrimSpace(s.rest(false)))
		case '/':
			s.until('/')
		case '\\':
			if s.at < len(s.text) {
				s.until(s.next())
			}
		case 'y', 's':
			if s.at == len(s.text) {
				return true, files
			}
			mark := s.next()
			if middle := s.until(mark); !middle || !s.until(mark) {
				return runs, files // sed refuses it
			}
			if c == 's' {
				run, file := s.flags()
				runs = runs || run
				if file != "" {
					files = append(files, file)
				}
			}
		case 'd', 'D', 'g', 'G', 'h', 'H', 'n', 'N', 'p', 'P', 'x', 'z', '=', 'F':
		default: // e among them
			return true, files
		}
	}
	return runs, files
}

func (s *sedScript) next() byte {
	c := s.text[s.at]
	s.at++
	return c
}

// rest returns what is left of a line, or of a command.
func (s *sedScript) rest(command bool) string {
	from := s.at
	for s.at < len(s.text) {
		c := s.text[s.at]
		if c == '\n' || command && (c == ';' || c == '}') {
			break
		}
		if c == '\\' && !command {
			s.at++
		}
		s.at++
	}
	s.at = min(s.at, len(s.text))
	return s.text[from:s.at]
}

// until skips to behind the next mark.
func (s *sedScript) until(mark byte) bool {
	class := false
	for s.at < len(s.text) {
		switch c := s.next(); {
		case c == '\\':
			s.at++
		case c == '[' && s.classes:
			class = true
		case c == ']':
			class = false
		case c == mark && !class:
			return true
		}
	}
	return false
}

// flags reads the flags of s.
func (s *sedScript) flags() (runs bool, file string) {
	for s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case c == 'e':
			runs = true
		case c == 'w':
			s.at++
			return runs, strings.TrimSpace(s.rest(false))
		case strings.IndexByte("gpiImM0123456789", c) < 0:
			return runs, ""
		}
		s.at++
	}
	return runs, ""
}

// awk follows awk, whose texts can run commands by system and by pipes.
func (r *reader) awk(c call) {
	args := c.args[1:]
	given := false // the program text, by an option
	for i := 0; i < len(args); i++ {
		t := args[i].text
		name, val, attached := strings.Cut(t, "=")
		switch {
		case args[i].splits:
			r.unresolvedWord("a program text of awk", t)
			return
		case t == "-f" || t == "--file" || t == "-E" || t == "--exec":
			if i++; i < len(args) {
				r.runsFile(&args[i])
			}
			if given = true; t == "-E" || t == "--exec" {
				return
			}
		case strings.HasPrefix(t, "-f"):
			f := args[i].cutTo(2)
			r.runsFile(&f)
			given = true
		case attached && (name == "--file" || name == "--exec"):
			r.runsFile(&field{text: val, unknown: args[i].unknown, unsafe: args[i].unsafe})
			given = true
		case t == "-i" && i+1 < len(args) && args[i+1].text == "inplace": // which comes with gawk
			i++
		case name == "-e" || name == "--source" || strings.HasPrefix(t, "-i") || strings.HasPrefix(t, "-l") && t != "-lint" || name == "--include" || name == "--load":
			r.unresolvedWord("a program text of awk", joinText(c.args))
			return
		case t == "-v" || t == "-F" || t == "--assign" || t == "--field-separator":
			i++
		case t == "--":
		case len(t) > 1 && t[0] == '-':
		case given:
			return
		default:
			r.awkWrites(neutral(args[i]))
			if awkRuns(neutral(args[i])) {
				r.unresolvedWord("a program text of awk runs commands", t)
			}
			return
		}
	}
}

// awkRuns reports whether a text of awk may run a command.
func awkRuns(text string) bool {
	before := byte('(') // the last character that is no blank
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '"':
			i = awkEnd(text, i+1, '"')
		case c == '#':
			for i < len(text) && text[i] != '\n' {
				i++
			}
		case c == '/' && strings.IndexByte("(,{}[;!~&|=:?+-*%<>^\n", before) >= 0:
			i = awkEnd(text, i+1, '/')
		case c == '|':
			if i+1 < len(text) && text[i+1] == '|' {
				i++
				break
			}
			return true
		case c == '@' || c == '`':
			return true
		case isNameByte(c) && (c < '0' || c > '9'):
			from := i
			for i+1 < len(text) && isNameByte(text[i+1]) {
				i++
			}
			if text[from:i+1] == "system" {
				return true
			}
			if hasWord("return print printf in", text[from:i+1]) {
				before = '('
				continue
			}
		}
		if c != ' ' && c != '\t' {
			before = c
		}
	}
	return false
}

// awkEnd returns where a string or pattern ends.
func awkEnd(text string, i int, mark byte) int {
	class := false
	for ; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			i++
		case mark == '/' && c == '[':
			class = true
		case c == ']':
			class = false
		case c == mark && !class || c == '\n':
			return i
		}
	}
	return i
}

func isNameByte(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
