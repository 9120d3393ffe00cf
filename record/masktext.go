package record

import "strings"

func upperOrDigit(c byte) bool  { return c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' }
func letterOrDigit(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' }
func wordByte(c byte) bool      { return letterOrDigit(c) || c == '_' || c == '-' }
func tokenByte(c byte) bool {
	return wordByte(c) || c == '.' || c == '=' || c == '/' || c == '+' || c == '~'
}

// keyAt returns how long the key is that s begins with; 0 when it is none. Each
// issuer's keys begin with a word of their own, which a number of letters of
// one kind follows.
func keyAt(s string) int {
	switch s[0] {
	case 'A':
		return max(key(s, "AKIA", 16, upperOrDigit), key(s, "ASIA", 16, upperOrDigit), key(s, "AIza", 30, wordByte), key(s, "AGE-SECRET-KEY-1", 20, upperOrDigit))
	case 'S':
		return key(s, "SG.", 32, tokenByte)
	case 'd':
		return max(key(s, "dop_v1_", 32, letterOrDigit), key(s, "dckr_pat_", 16, wordByte))
	case 'e':
		return key(s, "eyJ", 24, tokenByte)
	case 'g':
		if strings.HasPrefix(s, "gh") && len(s) > 3 && strings.IndexByte("pousr", s[2]) >= 0 && s[3] == '_' {
			return key(s, s[:4], 20, letterOrDigit)
		}
		return max(key(s, "github_pat_", 20, wordByte), key(s, "glpat-", 16, wordByte), key(s, "glrt-", 16, wordByte), key(s, "gsk_", 32, letterOrDigit))
	case 'h':
		return max(key(s, "hf_", 24, letterOrDigit), key(s, "hvs.", 20, wordByte), key(s, "hvb.", 20, wordByte))
	case 'n':
		return key(s, "npm_", 30, letterOrDigit)
	case 'p':
		return key(s, "pypi-", 24, wordByte)
	case 'r':
		return max(key(s, "rk_live_", 16, letterOrDigit), key(s, "rk_test_", 16, letterOrDigit))
	case 's':
		return max(key(s, "sk_live_", 16, letterOrDigit), key(s, "sk_test_", 16, letterOrDigit), key(s, "sk-", 20, wordByte), key(s, "shpat_", 24, letterOrDigit))
	case 'w':
		return key(s, "whsec_", 20, letterOrDigit)
	case 'x':
		if strings.HasPrefix(s, "xox") && len(s) > 4 && s[4] == '-' {
			return key(s, s[:5], 10, wordByte)
		}
		return key(s, "xapp-", 10, wordByte)
	case 'y':
		return key(s, "ya29.", 20, wordByte)
	}
	return 0
}

// key returns the length of a key that begins with prefix and goes on with at
// least atLeast letters of a kind; 0 when s is none.
func key(s, prefix string, atLeast int, kind func(byte) bool) int {
	if !strings.HasPrefix(s, prefix) {
		return 0
	}
	n := wordLen(s[len(prefix):], kind)
	if n < atLeast {
		return 0
	}
	return len(prefix) + n
}

// span finds, for a text and a place in it, what has to go: s[from:to]; to is 0
// when there is nothing.
type span struct{ from, to int }

// mayBegin reports whether a secret, or the sign before one, may begin with c.
func mayBegin(c byte) bool {
	const signs = 1<<'=' | 1<<':' | 1<<'-'
	const letters = 1<<('A'-64) | 1<<('B'-64) | 1<<('S'-64) | 1<<('b'-64) | 1<<('d'-64) | 1<<('e'-64) | 1<<('g'-64) | 1<<('h'-64) |
		1<<('n'-64) | 1<<('p'-64) | 1<<('r'-64) | 1<<('s'-64) | 1<<('w'-64) | 1<<('x'-64) | 1<<('y'-64)
	if c < 64 {
		return uint64(signs)>>c&1 != 0
	}
	return c < 128 && uint64(letters)>>(c-64)&1 != 0
}

// maskText takes secrets out of a text.
func maskText(s string) (string, bool) {
	var out strings.Builder
	copied := 0
	for i := 0; i < len(s); {
		if !mayBegin(s[i]) {
			i++
			continue
		}
		sp := secretAt(s, i)
		if sp.to <= sp.from || s[sp.from:sp.to] == masked {
			i = max(i+1, sp.to)
			continue
		}
		out.WriteString(s[copied:sp.from])
		out.WriteString(masked)
		copied, i = sp.to, sp.to
	}
	if copied == 0 {
		return s, false
	}
	out.WriteString(s[copied:])
	return out.String(), true
}

// secretAt looks for a secret that begins, or whose name ends, at s[i].
func secretAt(s string, i int) span {
	switch s[i] {
	case '=':
		return assigned(s, i)
	case ':':
		if strings.HasPrefix(s[i:], "://") {
			return urlPassword(s, i+3)
		}
		return assigned(s, i)
	case '-':
		if strings.HasPrefix(s[i:], "-----BEGIN ") {
			return privateKey(s, i)
		}
		if strings.HasPrefix(s[i:], "--") {
			return flagValue(s, i)
		}
	case 'B', 'b':
		return bearer(s, i)
	default:
		if i > 0 && (letterOrDigit(s[i-1]) || s[i-1] == '_') {
			return span{}
		}
		if n := keyAt(s[i:]); n > 0 {
			return span{i, i + n}
		}
	}
	return span{}
}

func wordLen(s string, word func(byte) bool) int {
	n := 0
	for n < len(s) && word(s[n]) {
		n++
	}
	return n
}

// privateKey covers a PEM block of a private key, up to its end or, when that
// was cut off, to the end of the text.
func privateKey(s string, i int) span {
	line, _, _ := strings.Cut(s[i+len("-----BEGIN "):], "-----")
	if len(line) > 64 || !strings.Contains(line, "PRIVATE KEY") {
		return span{}
	}
	from := i + len("-----BEGIN ") + len(line)
	if from+5 > len(s) {
		return span{}
	}
	from += 5
	if end := strings.Index(s[from:], "-----END"); end >= 0 {
		return span{from, from + end}
	}
	return span{from, len(s)}
}

// bearer covers what follows "Bearer " or "Basic " and looks like a token.
func bearer(s string, i int) span {
	for _, scheme := range [...]string{"bearer ", "basic "} {
		if len(s)-i <= len(scheme) || !strings.EqualFold(s[i:i+len(scheme)], scheme) || i > 0 && letterOrDigit(s[i-1]) {
			continue
		}
		from := i + len(scheme)
		n := wordLen(s[from:], tokenByte)
		if n >= 16 || n >= 6 && strings.ContainsAny(s[from:from+n], "0123456789") {
			return span{from, from + n}
		}
	}
	return span{}
}

// urlPassword covers the password in scheme://user:password@host.
func urlPassword(s string, from int) span {
	end := from
	for end < len(s) && strings.IndexByte("/?# \t\r\n\"'<>", s[end]) < 0 {
		end++
	}
	at := strings.LastIndexByte(s[from:end], '@')
	if at < 0 {
		return span{}
	}
	if colon := strings.IndexByte(s[from:from+at], ':'); colon >= 0 && colon+1 < at {
		return span{from + colon + 1, from + at}
	}
	return span{}
}

// flagValue covers the value of a flag such as --password hunter2.
func flagValue(s string, i int) span {
	n := wordLen(s[i:], wordByte)
	if from := i + n; from < len(s) && s[from] == ' ' && secretName(s[i:from]) {
		return value(s, from+1, false)
	}
	return span{}
}

// assigned covers the value in password=hunter2, "token": "…", API_KEY: ….
// What stands before the sign at s[i] is the name.
func assigned(s string, i int) span {
	to := i
	for to > 0 && (s[to-1] == ' ' || s[to-1] == '"' || s[to-1] == '\'') && i-to < 2 {
		to--
	}
	from := to
	for from > 0 && to-from < 64 && (wordByte(s[from-1]) || s[from-1] == '.') {
		from--
	}
	if from == to || i+1 < len(s) && s[i+1] == '=' || !secretName(s[from:to]) {
		return span{}
	}
	return value(s, i+1, s[i] == ':' || i != to)
}

// value covers the value that begins at s[i], after spaces when they may be
// there.
func value(s string, i int, spaces bool) span {
	for n := 0; spaces && i < len(s) && (s[i] == ' ' || s[i] == '\t') && n < 4; n++ {
		i++
	}
	for _, scheme := range [...]string{"bearer ", "basic ", "token "} {
		if len(s)-i > len(scheme) && strings.EqualFold(s[i:i+len(scheme)], scheme) {
			i += len(scheme)
		}
	}
	if i >= len(s) {
		return span{}
	}
	if q := s[i]; q == '"' || q == '\'' || q == '`' {
		if end := strings.IndexByte(s[i+1:], q); end > 0 {
			return span{i + 1, i + 1 + end}
		}
		if end := strings.IndexAny(s[i+1:], " \t\r\n"); end > 0 {
			return span{i + 1, i + 1 + end}
		}
		return span{i + 1, len(s)}
	}
	to := i
	for to < len(s) && strings.IndexByte(" \t\r\n\"'`,;&|<>(){}[]", s[to]) < 0 {
		to++
	}
	if to == i || s[i] == '$' || to < len(s) && s[to] == '(' {
		return span{} // a variable or a call, no secret
	}
	switch strings.ToLower(s[i:to]) {
	case "null", "none", "true", "false", "string", "undefined", "nil", "-":
		return span{}
	}
	return span{i, to}
}
