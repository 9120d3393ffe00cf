package thin

import (
	"strconv"
	"syscall"
)

// Method is what the daemon is asked by. Its params are agent, event, payload
// (the text as it came, with bytes that are no UTF-8 replaced), env, approve,
// dry_run and deadline_ms; its result holds stdout, stderr and exit_code.
const Method = "hook.native"

// hints are variables by which agents that send the same payload are told
// apart.
var hints = [...]string{
	"CLAUDE_PROJECT_DIR", "CURSOR_VERSION", "DROID_PROJECT_DIR", "FACTORY_PROJECT_DIR", "GEMINI_PROJECT_DIR",
	"KIRO_SESSION_ID", "QWEN_PROJECT_DIR", "COPILOT_AGENT_PROMPT",
}

// request is the line that asks.
func request(o *Options, payload []byte, deadlineMS int64, getenv func(string) string) []byte {
	b := make([]byte, 0, len(payload)+len(payload)/8+512)
	b = append(b, `{"jsonrpc":"2.0","id":1,"method":"`+Method+`","params":{"agent":`...)
	b = appendString(b, []byte(o.Agent))
	b = append(b, `,"event":`...)
	b = appendString(b, []byte(o.Event))
	b = append(b, `,"deadline_ms":`...)
	b = strconv.AppendInt(b, deadlineMS, 10)
	if o.Approve {
		b = append(b, `,"approve":true`...)
	}
	if o.DryRun {
		b = append(b, `,"dry_run":true`...)
	}
	b = append(b, `,"env":{`...)
	first := true
	for _, name := range hints {
		value := getenv(name)
		if value == "" {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = appendString(b, []byte(name))
		b = append(b, ':')
		b = appendString(b, []byte(value))
	}
	b = append(b, `},"payload":`...)
	b = appendString(b, payload)
	return append(b, "}}\n"...)
}

// withFolder adds the folder in which this program was started to the payload of
// an agent that does not say where it works.
func withFolder(agent string, payload []byte) []byte {
	switch {
	case agent == "windsurf":
	case agent != "" && agent != "auto", index(payload, `"agent_action_name"`) < 0, surely(payload) != "windsurf":
		return payload // most often without a closer look
	}
	rest := space(payload)
	if _, said := member(payload, "cwd"); said || len(rest) == 0 || rest[0] != '{' {
		return payload
	}
	cwd, err := syscall.Getwd()
	if err != nil || cwd == "" || cwd[0] != '/' {
		return payload
	}
	begin := len(payload) - len(rest) + 1
	b := make([]byte, 0, len(payload)+len(cwd)+16)
	b = append(append(b, payload[:begin]...), `"cwd":`...)
	b = appendString(b, []byte(cwd))
	if next := space(rest[1:]); len(next) > 0 && next[0] != '}' {
		b = append(b, ',')
	}
	return append(b, payload[begin:]...)
}

const hexDigits = "0123456789abcdef"

// appendString appends text as a JSON string. Bytes that are no UTF-8 become
// U+FFFD, one each.
func appendString(b, text []byte) []byte {
	b = append(b, '"')
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, '\\', 'n')
		case c == '\t':
			b = append(b, '\\', 't')
		case c < 0x20 || c == 0x7f:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		case c < 0x80:
			b = append(b, c)
		default:
			n := runeLen(text[i:])
			if n == 0 {
				b = append(b, "\uFFFD"...)
				i++
				continue
			}
			b = append(b, text[i:i+n]...)
			i += n
			continue
		}
		i++
	}
	return append(b, '"')
}

// runeLen is how many bytes the first character of b has, above 0x7f; 0: it is
// no UTF-8.
func runeLen(b []byte) int {
	n := 0
	switch c := b[0]; {
	case c >= 0xC2 && c <= 0xDF:
		n = 2
	case c >= 0xE0 && c <= 0xEF:
		n = 3
	case c >= 0xF0 && c <= 0xF4:
		n = 4
	}
	if n == 0 || len(b) < n {
		return 0
	}
	for _, c := range b[1:n] {
		if c&0xC0 != 0x80 {
			return 0
		}
	}
	switch { // too long, a surrogate, beyond the last character
	case b[0] == 0xE0 && b[1] < 0xA0, b[0] == 0xED && b[1] > 0x9F, b[0] == 0xF0 && b[1] < 0x90, b[0] == 0xF4 && b[1] > 0x8F:
		return 0
	}
	return n
}

// readAnswer reads the daemon's line. What it does not know to the letter is
// no answer.
func readAnswer(line []byte) (Answer, Failure) {
	r := reader{b: line}
	if r.take(`{"jsonrpc":"2.0","id":1,"result":{"stdout":`) || r.take(`{"id":1,"jsonrpc":"2.0","result":{"stdout":`) || r.take(`{"id":1,"result":{"stdout":`) {
		var a Answer
		a.Stdout = r.text()
		r.want(`,"stderr":`)
		a.Stderr = r.text()
		r.want(`,"exit_code":`)
		a.Exit = r.number()
		if !r.bad && a.Exit != 1 {
			return a, ""
		}
		return Answer{}, "the daemon's answer can't be read: are this program and the daemon of one version?"
	}
	// An error: its message is for people.
	if i := index(line, `"message":`); i >= 0 {
		r := reader{b: line[i+len(`"message":`):]}
		if text := r.text(); !r.bad {
			return Answer{}, Failure("the daemon says: " + string(text))
		}
	}
	return Answer{}, "the daemon's answer can't be read: are this program and the daemon of one version?"
}

// reader takes a text apart from its start. Once bad, it stays so.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(text string) bool {
	if len(r.b) < len(text) || string(r.b[:len(text)]) != text {
		return false
	}
	r.b = r.b[len(text):]
	return true
}

func (r *reader) want(text string) {
	if !r.take(text) {
		r.bad = true
	}
}

func (r *reader) number() int {
	n, digits := 0, 0
	for digits < len(r.b) && digits < 3 && r.b[digits] >= '0' && r.b[digits] <= '9' {
		n = n*10 + int(r.b[digits]-'0')
		digits++
	}
	r.b = r.b[digits:]
	if digits == 0 || n > 255 {
		r.bad = true
	}
	return n
}

// text reads a JSON string.
func (r *reader) text() []byte {
	if len(r.b) == 0 || r.b[0] != '"' {
		r.bad = true
		return nil
	}
	out := make([]byte, 0, 256)
	for i := 1; i < len(r.b); i++ {
		switch c := r.b[i]; {
		case c == '"':
			r.b = r.b[i+1:]
			return out
		case c != '\\':
			out = append(out, c)
			continue
		}
		i++
		if i == len(r.b) {
			break
		}
		switch c := r.b[i]; c {
		case '"', '\\', '/':
			out = append(out, c)
		case 'n':
			out = append(out, '\n')
		case 't':
			out = append(out, '\t')
		case 'r':
			out = append(out, '\r')
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'u':
			u, ok := hex4(r.b[i+1:])
			if !ok {
				r.bad = true
				return nil
			}
			i += 4
			if u >= 0xD800 && u < 0xDC00 && i+2 < len(r.b) && r.b[i+1] == '\\' && r.b[i+2] == 'u' {
				if low, ok := hex4(r.b[i+3:]); ok && low >= 0xDC00 && low < 0xE000 {
					u = 0x10000 + (u-0xD800)<<10 + (low - 0xDC00)
					i += 6
				}
			}
			out = append(out, string(u)...) // a lone surrogate becomes U+FFFD
		default:
			r.bad = true
			return nil
		}
	}
	r.bad = true
	return nil
}

func hex4(b []byte) (u rune, ok bool) {
	if len(b) < 4 {
		return 0, false
	}
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		u = u<<4 | rune(c)
	}
	return u, true
}

func index(b []byte, text string) int {
	for i := 0; i+len(text) <= len(b); i++ {
		if string(b[i:i+len(text)]) == text {
			return i
		}
	}
	return -1
}
