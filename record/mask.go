package record

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/protocol"
)

// masked stands where something was taken out.
const masked = "[masked]"

// MaskSecrets takes keys, tokens and passwords out of a valid JSON value: the
// values of members with such a name, and texts that look like one, also within
// longer texts such as a shell command. What it does not know it leaves byte
// for byte, so it returns v itself when there is nothing to take out. It is a
// net with known holes, not a proof that nothing is left.
func MaskSecrets(v jsontext.Value) jsontext.Value {
	m := masker{in: v}
	for m.at < len(v) {
		switch v[m.at] {
		case '"':
			m.text()
		case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			m.number()
		case '[':
			if m.secret {
				m.lists++
			} else if m.lists > 0 {
				m.lists++
			}
			m.secret = false
			m.at++
		case ']':
			m.lists = max(m.lists-1, 0)
			m.at++
		case '{', ',', 't', 'f', 'n':
			m.secret = false
			m.at++
		default:
			m.at++
		}
	}
	return m.done()
}

// masker goes through a JSON value once. It copies nothing before the first
// change.
type masker struct {
	in, out []byte
	copied  int  // how much of in is in out
	at      int  // where in in we are
	secret  bool // the value that follows belongs to a member with a secret's name
	lists   int  // lists we are in, counted from one that is a secret
}

// replace puts text instead of in[from:to].
func (m *masker) replace(from, to int, text []byte) {
	m.out = append(append(m.out, m.in[m.copied:from]...), text...)
	m.copied = to
}

func (m *masker) done() jsontext.Value {
	if m.out == nil {
		return m.in
	}
	return append(m.out, m.in[m.copied:]...)
}

// text looks at a string: the name of a member, or a value.
func (m *masker) text() {
	from := m.at
	end := stringEnd(m.in, from+1)
	m.at = end
	raw := m.in[from+1 : max(end-1, from+1)]
	if isName(m.in[end:]) {
		if bytes.IndexByte(raw, '\\') >= 0 {
			m.secret = secretName(protocol.Unquote(m.in[from:end]))
		} else {
			m.secret = secretName(raw)
		}
		return
	}
	secret := m.secret || m.lists > 0
	m.secret = false
	switch {
	case secret:
		if len(raw) > 0 && string(raw) != masked {
			m.replace(from, end, []byte(`"`+masked+`"`))
		}
	case bytes.IndexByte(raw, '\\') < 0:
		if out, changed := maskText(string(raw)); changed {
			m.replace(from, end, protocol.Quote(out))
		}
	default:
		if out, changed := maskText(protocol.Unquote(m.in[from:end])); changed {
			m.replace(from, end, protocol.Quote(out))
		}
	}
}

// number takes out a number that belongs to a secret's name, such as a PIN.
func (m *masker) number() {
	from := m.at
	for m.at < len(m.in) && strings.IndexByte("+-.0123456789eE", m.in[m.at]) >= 0 {
		m.at++
	}
	if m.secret || m.lists > 0 {
		m.replace(from, m.at, []byte(`"`+masked+`"`))
	}
	m.secret = false
}

// stringEnd returns the index behind the quote that ends a string whose first
// byte is at from.
func stringEnd(b []byte, from int) int {
	for i := from; i < len(b); i++ {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return len(b)
		}
		i += n
		slashes := 0
		for i-1-slashes >= from && b[i-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i + 1
		}
	}
	return len(b)
}

// isName reports whether the string before rest was the name of a member.
func isName(rest []byte) bool {
	for _, c := range rest {
		switch c {
		case ' ', '\t', '\n', '\r':
			continue
		}
		return c == ':'
	}
	return false
}

// secretName reports whether a member, variable or flag of this name holds a
// secret. Case and the signs between words do not matter.
func secretName[T ~string | ~[]byte](name T) bool {
	var buf [48]byte
	n := 0
	for i := range len(name) {
		c := name[i]
		switch {
		case c == '_' || c == '-' || c == '.' || c == ' ':
			continue
		case c >= 'A' && c <= 'Z':
			c += 'a' - 'A'
		}
		if n == len(buf) { // the end of the name counts
			copy(buf[:], buf[1:])
			n--
		}
		buf[n] = c
		n++
	}
	word := buf[:n]
	for _, w := range [...]string{
		"password", "passwd", "passphrase", "passcode", "secret", "token", "apikey", "accesskey", "accesskeyid", "secretkey", "privatekey",
		"signingkey", "encryptionkey", "authkey", "authorization", "credential", "credentials", "cookie", "cookies", "jwt", "sessionkey",
	} {
		if len(word) >= len(w) && string(word[len(word)-len(w):]) == w {
			return true
		}
	}
	s := string(word)
	return s != "oldpwd" && len(s) > len("pwd") && strings.HasSuffix(s, "pwd") || s == "pin" || s == "pgpassword" || s == "auth"
}
