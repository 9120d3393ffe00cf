package pii

import (
	"net/netip"
	"strings"

	"github.com/hookd/hookd/builtin/text"
)

// ipv4 looks for an address whose first number begins at a place. Addresses
// that are everybody's are none: 0.0.0.0/8, loopback, netmasks and broadcast.
func (sc *scan) ipv4(start int) {
	if c := sc.at(start - 1); isAlnum(c) || c == '.' || c == '_' || c == '-' && isAlnum(sc.at(start-2)) || c == '/' && isAlnum(sc.at(start-2)) {
		return // v1.2.3.4, name-1.2.3.4, Browser/1.2.3.4
	}
	end := start
	for end < min(len(sc.s), start+len("255.255.255.255")+1) && (isDigit(sc.s[end]) || sc.s[end] == '.') {
		end++
	}
	name := strings.TrimRight(sc.s[start:end], ".")
	end = start + len(name)
	addr, err := netip.ParseAddr(name)
	if err != nil || isAlnum(sc.at(end)) || sc.at(end) == '_' || sc.at(end) == '.' && isDigit(sc.at(end+1)) {
		return
	}
	if first := addr.As4()[0]; first == 0 || first == 255 || addr.IsLoopback() {
		return
	}
	sc.add(ip, start, end, addr.String(), 0, 0)
	if m := &sc.found[len(sc.found)-1]; m.With == text.Mask {
		parts := strings.Split(name, ".")
		m.Masked = parts[0] + "." + parts[1] + ".*.*"
	}
}

// ipv6 looks for an address whose first colon is this. Only addresses that name a
// machine count: global, unique local and link local ones.
func (sc *scan) ipv6(colon int) {
	const longest = 45
	if !sc.wants(ip) {
		return
	}
	start, end := colon, colon
	for start > max(0, colon-5) && isHex(sc.s[start-1]) {
		start--
	}
	for end < min(len(sc.s), start+longest+1) && (isHex(sc.s[end]) || sc.s[end] == ':' || sc.s[end] == '.') {
		end++
	}
	name := sc.s[start:end]
	if !strings.HasSuffix(name, "::") {
		name = strings.TrimRight(name, ":")
	}
	name = strings.TrimRight(name, ".")
	if c := sc.at(start - 1); isAlnum(c) || c == '_' || c == ':' || isAlnum(sc.at(start+len(name))) || strings.Count(name, ":") < 2 {
		return
	}
	addr, err := netip.ParseAddr(name)
	if err != nil || addr.Zone() != "" || !(addr.As16()[0]&0xE0 == 0x20 || addr.IsPrivate() || addr.IsLinkLocalUnicast()) {
		return
	}
	sc.add(ip, start, start+len(name), addr.String(), 0, 0)
	if m := &sc.found[len(sc.found)-1]; m.With == text.Mask {
		m.Masked = strings.Join(strings.SplitN(name, ":", 3)[:2], ":") + ":****"
	}
}
