package pii

import "strings"

// ibanLengths are the lengths of bank accounts by country (ISO 13616).
const ibanLengths = "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 EG29 ES24 " +
	"FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 " +
	"LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 " +
	"SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30"

// ibanLength returns how long the accounts of a country are, or 0.
func ibanLength(country string) int {
	at := strings.Index(ibanLengths, country)
	if at < 0 || at%5 != 0 {
		return 0
	}
	return int(ibanLengths[at+2]-'0')*10 + int(ibanLengths[at+3]-'0')
}

// iban looks for an account that begins at a place: a country, two check digits
// and the rest, together or in groups of four.
func (sc *scan) iban(start int) {
	if !sc.wants(iban) || start+15 > len(sc.s) || !isLetter(sc.s[start+1]) || !isDigit(sc.s[start+2]) || !isDigit(sc.s[start+3]) {
		return
	}
	n := ibanLength(strings.ToUpper(sc.s[start : start+2]))
	if n == 0 {
		return
	}
	account := make([]byte, 0, n)
	end := start
	for len(account) < n {
		c := sc.at(end)
		if (c == ' ' || c == '-') && len(account)%4 == 0 && len(account) > 0 {
			end++
			c = sc.at(end)
		}
		if !isAlnum(c) {
			return
		}
		account = append(account, c)
		end++
	}
	if isAlnum(sc.at(end)) {
		return
	}
	value := strings.ToUpper(string(account))
	if mod97(value[4:]+value[:4]) == 1 {
		sc.add(iban, start, end, value, 4, 4)
	}
}

// mod97 returns the rest of ISO 7064, mod 97-10; letters count from 10.
func mod97(s string) int {
	rest := 0
	for i := range len(s) {
		if c := s[i]; isDigit(c) {
			rest = (rest*10 + int(c-'0')) % 97
		} else {
			rest = (rest*100 + int(c-'A') + 10) % 97
		}
	}
	return rest
}
