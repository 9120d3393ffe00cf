package pii

import (
	"strings"

	"golang.org/x/net/publicsuffix"

	"github.com/hookd/hookd/builtin/text"
)

// Bounds on what is read around an @; longer addresses can't be delivered.
const (
	maxLocal  = 256
	maxDomain = 253
)

// email looks for an address whose @ lies from at to after. Its domain must end
// in one of the public suffixes, so that icon@2x.png is none.
func (sc *scan) email(at, after int) {
	if !sc.wants(email) {
		return
	}
	start := at
	for start > max(0, at-maxLocal) && isLocal(sc.s[start-1]) {
		start--
	}
	for start < at && strings.IndexByte(".-+%", sc.s[start]) >= 0 {
		start++
	}
	if local := sc.s[start:at]; local == "" || local[len(local)-1] == '.' || strings.Contains(local, "..") || sc.login(start, local) {
		return
	}
	domain := sc.domain(after)
	if domain == "" {
		return
	}
	end := after + len(domain)
	if sc.at(end) == ':' && (sc.at(end+1) == '/' && sc.at(end+2) != '/' || sc.at(end+1) == '~') {
		return // host:/path of scp and the like
	}
	local := sc.s[start:at]
	sc.add(email, start, end, strings.ToLower(local+"@"+domain), 0, 0)
	if m := &sc.found[len(sc.found)-1]; m.With == text.Mask {
		m.Masked = local[:1] + "***" + sc.s[at:end]
	}
}

func isLocal(c byte) bool { return isAlnum(c) || strings.IndexByte("._%+-", c) >= 0 }

// login reports whether what stands before the @ is the user of a machine:
// git@host, and the user or password of a URL.
func (sc *scan) login(start int, local string) bool {
	if strings.EqualFold(local, "git") {
		return true
	}
	if sc.at(start-1) == '/' && sc.at(start-2) == '/' && sc.at(start-3) == ':' {
		return true // scheme://user@host
	}
	if sc.at(start-1) != ':' {
		return false
	}
	for i := start - 2; i > max(0, start-maxLocal); i-- {
		switch c := sc.s[i]; {
		case c == '/':
			return sc.at(i-1) == '/' && sc.at(i-2) == ':' // scheme://user:password@host
		case c <= ' ' || c == '"' || c == '\'':
			return false
		}
	}
	return false
}

// domain returns the name of a host that begins at a place, or "".
func (sc *scan) domain(at int) string {
	end := at
	for end < min(len(sc.s), at+maxDomain) && (isAlnum(sc.s[end]) || sc.s[end] == '-' || sc.s[end] == '.') {
		end++
	}
	name := strings.TrimRight(sc.s[at:end], ".-")
	if name == "" || name[0] == '.' || name[0] == '-' || strings.Contains(name, "..") || !strings.Contains(name, ".") {
		return ""
	}
	// A sentence may go on right behind the address: example.com.Thanks.
	for strings.Contains(name, ".") {
		suffix, icann := publicsuffix.PublicSuffix(strings.ToLower(name))
		if len(suffix) < len(name) && (icann || strings.Contains(suffix, ".")) {
			return name
		}
		name = name[:strings.LastIndexByte(name, '.')]
	}
	return ""
}
