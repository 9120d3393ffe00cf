package rpc

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/protocol"
)

// usual reads a message whose members stand in the order and without the spaces
// in which almost everybody writes them. That is a comparison of bytes, where the
// decoder takes a dozen steps; what hookd itself writes is always so. It reports
// false for anything else, also for what is wrong, which [parser.envelope] then
// reads from the start and names. What it reads it reads like that.
func (p *parser) usual(line []byte) (envelope, bool) {
	e := envelope{size: len(line)}
	rest, ok := bytes.CutPrefix(line, []byte(`{"jsonrpc":"2.0",`))
	if !ok || line[len(line)-1] != '}' {
		return e, false
	}
	if after, has := bytes.CutPrefix(rest, []byte(`"id":`)); has {
		n, digits := usualNumber(after)
		if digits == 0 || digits == len(after) || after[digits] != ',' {
			return e, false
		}
		e.hasID, e.id, rest = true, NumberID(n), after[digits+1:]
		if result, answers := bytes.CutPrefix(rest, []byte(`"result":`)); answers {
			result = result[: len(result)-1 : len(result)-1]
			p.reset(result)
			v, err := p.dec.ReadValue()
			if err != nil || len(v) != len(result) {
				return e, false
			}
			e.response, e.result = true, jsontext.Value(result)
			return e, true
		}
	}
	if rest, ok = bytes.CutPrefix(rest, []byte(`"method":"`)); !ok {
		return e, false
	}
	end := usualName(rest)
	params, ok := bytes.CutPrefix(rest[end:], []byte(`","params":`))
	if !ok || end == 0 || len(params) < 2 || params[0] != '{' {
		return e, false
	}
	params = params[: len(params)-1 : len(params)-1]
	p.reset(params)
	members, err := protocol.ReadMembers(&p.dec)
	if err != nil || int(p.dec.InputOffset()) != len(params) {
		return e, false
	}
	e.request, e.method, e.params, e.members = true, string(rest[:end]), jsontext.Value(params), members
	return e, true
}

// usualNumber reads a number of at most 15 digits, which is below 2^53, and
// returns how many digits it has; 0 when it does not begin with one.
func usualNumber(b []byte) (n uint64, digits int) {
	for digits < len(b) && '0' <= b[digits] && b[digits] <= '9' {
		n = n*10 + uint64(b[digits]-'0')
		digits++
	}
	if digits > 15 || digits > 1 && b[0] == '0' {
		return 0, 0
	}
	return n, digits
}

// usualName returns how many bytes of b are those of a method's name.
func usualName(b []byte) int {
	for i, c := range b {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '.', c == '/', c == '$':
		default:
			return i
		}
	}
	return len(b)
}
