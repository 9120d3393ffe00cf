package condition

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/protocol"
)

// valueOf returns a JSON value as expressions see it: text, true and false,
// nil, lists, maps and numbers.
func valueOf(v jsontext.Value) any {
	switch v.Kind() {
	case '"':
		return protocol.Unquote(v)
	case 't':
		return true
	case 'f':
		return false
	case '0':
		return numberOf(string(v))
	case '[':
		items, _ := protocol.Items(v)
		list := make([]any, len(items))
		for i, it := range items {
			list[i] = valueOf(it)
		}
		return list
	case '{':
		members, _ := protocol.ParseObject(v)
		m := make(map[string]any, len(members))
		for _, member := range members {
			m[member.Name] = valueOf(member.Value)
		}
		return m
	}
	return nil
}

// numberOf returns an integer, or a fraction if nothing is lost by that, and
// else the digits as text: 12345678901234567890 and 12345678901234567891 must
// not be the same.
func numberOf(digits string) any {
	if n, err := strconv.Atoi(digits); err == nil {
		return n
	}
	mantissa, _, _ := strings.Cut(strings.ToLower(digits), "e")
	mantissa = strings.Trim(strings.Replace(mantissa, ".", "", 1), "-0")
	// Up to 15 digits survive the way into floating point and back.
	if f, err := strconv.ParseFloat(digits, 64); err == nil && len(mantissa) <= 15 {
		return f
	}
	return digits
}
