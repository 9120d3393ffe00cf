package pii

import (
	"strings"
	"time"
)

// digits looks at a run of digits, from start to end, with what is beside it.
func (sc *scan) digits(start, end int) {
	if sc.wants(ip) && end-start <= 3 {
		sc.ipv4(start)
	}
	if sc.wants(e164) && sc.at(start-1) == '+' {
		sc.e164(start)
	}
	afterPoint := sc.at(start-1) == '.' && isDigit(sc.at(start-2))
	beforePoint := sc.at(end) == '.' && isDigit(sc.at(end+1))
	if n := end - start; n >= 11 && n <= 19 && !afterPoint && !beforePoint && !sc.inHex(start, end) {
		sc.phoneRun(start, end)
		sc.idRun(start, end)
		if sc.wants(bankCard) && isCard(sc.s[start:end], sc.config.ShortBankCard) {
			sc.add(bankCard, start, end, sc.s[start:end], 4, 4)
		}
	}
	if n := end - start; n >= 3 && n <= 7 && !afterPoint && isSeparator(sc.at(end)) && isDigit(sc.at(end+1)) {
		sc.groups(start)
	}
}

func isSeparator(c byte) bool { return c == ' ' || c == '-' || c == '.' }

// hexToken is how long a token of hex digits is at least to be a hash or the
// like, in which digits mean nothing, and tokenReach how far it is looked for.
const (
	hexToken   = 20
	tokenReach = 64
)

// inHex reports whether a run of digits is a part of a hash or of a UUID.
func (sc *scan) inHex(start, end int) bool {
	from, to := start, end
	for from > max(0, start-tokenReach) && isAlnum(sc.s[from-1]) {
		from--
	}
	for to < min(len(sc.s), end+tokenReach) && isAlnum(sc.s[to]) {
		to++
	}
	if from == start && to == end {
		return false
	}
	if sc.at(from+1)|0x20 == 'x' && sc.s[from] == '0' {
		return true
	}
	for i := from; i < to; i++ {
		if !isHex(sc.s[i]) {
			return false
		}
	}
	uuid := to-from == 12 && sc.at(from-1) == '-' && sc.at(from-6) == '-' && isHex(sc.at(from-2)) && isHex(sc.at(from-5))
	return uuid || to-from >= hexToken
}

// phoneRun looks for a mobile number without separators.
func (sc *scan) phoneRun(start, end int) {
	if !sc.wants(phone) {
		return
	}
	run := sc.s[start:end]
	switch number := run[max(0, len(run)-11):]; {
	case !isMobile(number):
	case len(run) == 11:
		sc.add(phone, sc.prefix(start), end, number, 0, 0)
		sc.fixPhone(number)
	case len(run) == 13 && run[:2] == "86", len(run) == 15 && run[:4] == "0086":
		if sc.at(start-1) == '+' && len(run) == 13 {
			start--
		}
		sc.add(phone, start, end, number, 0, 0)
		sc.fixPhone(number)
	}
}

// fixPhone masks the number itself and leaves the country code before it, with
// the separators as they are.
func (sc *scan) fixPhone(number string) {
	m := &sc.found[len(sc.found)-1]
	if m.Masked == "" {
		return
	}
	raw := sc.s[m.Start:m.End]
	at, left := len(raw), len(number)
	for left > 0 {
		if at--; isDigit(raw[at]) {
			left--
		}
	}
	m.Masked = raw[:at] + mask(raw[at:], 3, 4)
}

// prefix returns where the country code before a mobile number begins, or start
// when there is none: 86, +86, 0086, (+86), with a separator or without.
func (sc *scan) prefix(start int) int {
	at := start
	if c := sc.at(at - 1); c == ' ' || c == '-' {
		at--
	}
	paren := sc.at(at-1) == ')'
	if paren {
		at--
	}
	if sc.at(at-1) != '6' || sc.at(at-2) != '8' {
		return start
	}
	at -= 2
	switch {
	case sc.at(at-1) == '0' && sc.at(at-2) == '0':
		at -= 2
	case sc.at(at-1) == '+':
		at--
	}
	if paren {
		if at--; sc.at(at) != '(' {
			return start
		}
	}
	if isDigit(sc.at(at - 1)) {
		return start
	}
	return at
}

// isMobile reports whether 11 digits begin as a mobile number of mainland China
// does. Which beginnings are in use is fixed by the ministry; new ones are rare.
func isMobile(s string) bool {
	if len(s) != 11 || s[0] != '1' {
		return false
	}
	third := s[2]
	switch s[1] {
	case '3', '8':
		return true
	case '4':
		return third != '2' && third != '3'
	case '5':
		return third != '4'
	case '6':
		return strings.IndexByte("2567", third) >= 0
	case '7':
		return third != '9'
	case '9':
		return third != '4'
	}
	return false
}

// idRun looks for an identity number without separators.
func (sc *scan) idRun(start, end int) {
	if !sc.wants(idCard) {
		return
	}
	switch run := sc.s[start:end]; {
	case len(run) == 17 && sc.at(end)|0x20 == 'x' && !isAlnum(sc.at(end+1)):
		run, end = sc.s[start:end+1], end+1
		fallthrough
	case len(run) == 18:
		if isID(run) {
			sc.add(idCard, start, end, strings.ToUpper(run), 3, 4)
		}
	case len(run) == 15 && sc.config.OldIDCard:
		if isProvince(run[:2]) && isDate("19"+run[6:12]) {
			sc.add(idCard, start, end, run, 3, 4)
		}
	}
}

// isID reports whether 18 characters are an identity number: a region, a date
// of birth and the check digit of GB 11643 (ISO 7064, mod 11-2). Residence
// permits of foreigners begin with a 9 before the region.
func isID(s string) bool {
	region := s[:2]
	if s[0] == '9' {
		region = s[1:3]
	}
	if len(s) != 18 || !isProvince(region) || !isDate(s[6:14]) {
		return false
	}
	sum := 0
	for i := range 17 {
		sum = (sum + int(s[i]-'0')) * 2 % 11
	}
	want := "10X98765432"[sum%11]
	return s[17] == want || want == 'X' && s[17] == 'x'
}

func isProvince(code string) bool {
	const known = "11 12 13 14 15 21 22 23 31 32 33 34 35 36 37 41 42 43 44 45 46 50 51 52 53 54 61 62 63 64 65 71 81 82 83"
	return strings.Contains(known, code)
}

// isDate reports whether eight digits are a day on which somebody living can
// have been born.
func isDate(s string) bool {
	day, err := time.Parse("20060102", s)
	return err == nil && day.Year() >= 1900 && day.Before(time.Now().Add(24*time.Hour))
}

// isCard reports whether a run of digits is the number of a bank card: 16 to 19
// digits, 13 on when short, by the check digit of Luhn, and beginning as those
// of banks do. 0, 1 and 7 are other industries, 89 is that of SIM cards; many
// times and identifiers begin with 1.
func isCard(s string, short bool) bool {
	if len(s) > 19 || len(s) < 13 || len(s) < 16 && !short {
		return false
	}
	switch {
	case s[0] == '0', s[0] == '1', s[0] == '7', s[:2] == "89":
		return false
	case strings.Count(s, s[:1]) == len(s):
		return false
	case len(s) == 18 && s[:2] != "62" && isProvince(s[:2]) && isDate(s[6:14]):
		return false // an identity number with a slip in it
	}
	sum := 0
	for i := range len(s) {
		d := int(s[len(s)-1-i] - '0')
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}

// groups looks for numbers that are written in groups, with the same separator
// between all of them.
func (sc *scan) groups(start int) {
	separator := byte(0)
	shape := uint(0) // a hex digit for the length of each group
	at := start
	for n := range maxGroups {
		from := at
		for at-from < 15 && isDigit(sc.at(at)) {
			at++
		}
		shape = shape<<4 | uint(at-from)
		next := sc.at(at)
		if n == 0 {
			separator = next
		} else {
			sc.group(start, at, shape, separator)
		}
		if next != separator || !isDigit(sc.at(at+1)) {
			return
		}
		at++
	}
}

// maxGroups is how many groups a number has at most.
const maxGroups = 5

// group looks at a number in groups of these lengths: 0x344 are three groups, of
// 3, 4 and 4 digits.
func (sc *scan) group(start, end int, shape uint, separator byte) {
	if isDigit(sc.at(end)) {
		return
	}
	switch shape {
	case 0x344, 0x38, 0x74, 0x443, 0x335:
		number := keepDigits(sc.s[start:end])
		if sc.wants(phone) && isMobile(number) && !(separator != ' ' && (sc.joins(end, separator) || sc.joined(start, separator))) {
			sc.add(phone, sc.prefix(start), end, number, 0, 0)
			sc.fixPhone(number)
		}
	case 0x684, 0x683:
		if shape == 0x683 {
			if sc.at(end)|0x20 != 'x' || isAlnum(sc.at(end+1)) {
				return
			}
			end++
		}
		id := strings.ToUpper(strings.ReplaceAll(sc.s[start:end], string(separator), ""))
		if sc.wants(idCard) && isID(id) {
			sc.add(idCard, start, end, id, 3, 4)
		}
	case 0x4444, 0x44441, 0x44442, 0x44443, 0x465, 0x6A, 0x6D:
		number := keepDigits(sc.s[start:end])
		alone := !sc.joins(end, separator) && !sc.joined(start, separator)
		if sc.wants(bankCard) && separator != '.' && alone && isCard(number, sc.config.ShortBankCard) {
			sc.add(bankCard, start, end, number, 4, 4)
		}
	}
}

// joins reports whether another group follows.
func (sc *scan) joins(end int, separator byte) bool {
	return sc.at(end) == separator && isDigit(sc.at(end+1))
}

// joined reports whether another group goes before, but for a country code.
func (sc *scan) joined(start int, separator byte) bool {
	return sc.at(start-1) == separator && isDigit(sc.at(start-2)) && sc.prefix(start) == start
}
