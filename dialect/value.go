package dialect

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/protocol"
)

// The values here come out of messages that were read strictly.

// object returns the members of an object, and none of anything else.
func object(v jsontext.Value) protocol.Object {
	if v == nil || v.Kind() != '{' {
		return nil
	}
	o, err := protocol.ParseObject(v)
	if err != nil {
		return nil
	}
	return o
}

// members returns the members of what must be an object.
func members(path string, v jsontext.Value) (protocol.Object, error) {
	if v.Kind() != '{' {
		return nil, fmt.Errorf("%s: expected an object", path)
	}
	return protocol.ParseObject(v)
}

// inside returns the members of the object under a name.
func inside(o protocol.Object, name string) protocol.Object { return object(o.Get(name)) }

// without returns o without one member.
func without(o protocol.Object, name string) protocol.Object {
	out := make(protocol.Object, 0, len(o))
	for _, m := range o {
		if m.Name != name {
			out = append(out, m)
		}
	}
	return out
}

// isNull reports whether there is no value, or null.
func isNull(v jsontext.Value) bool { return len(v) == 0 || v.Kind() == 'n' }

// text returns what a content says. whole is false when it holds more than
// text, which then is left out.
func text(content jsontext.Value) (said string, whole bool) {
	if isNull(content) {
		return "", true
	}
	if content.Kind() == '[' {
		blocks, err := protocol.Items(content)
		odd := func(b jsontext.Value) bool {
			t := object(b).Get("text")
			return b.Kind() != '"' && (t == nil || t.Kind() != '"')
		}
		return protocol.ContentText(content), err == nil && !slices.ContainsFunc(blocks, odd)
	}
	return protocol.ContentText(content), content.Kind() == '"'
}

// PicoClaw has durations in whole nanoseconds where hookd has milliseconds.

// nanoseconds turns milliseconds into nanoseconds; what is no number is 0.
func nanoseconds(ms jsontext.Value) jsontext.Value {
	n, ok := number(ms)
	if !ok {
		return jsontext.Value("0")
	}
	n.Mul(n, big.NewRat(1e6, 1))
	return jsontext.Value(new(big.Int).Quo(n.Num(), n.Denom()).String())
}

// milliseconds turns nanoseconds into milliseconds; nil when there is no number.
func milliseconds(ns jsontext.Value) jsontext.Value {
	n, ok := number(ns)
	if !ok {
		return nil
	}
	n.Quo(n, big.NewRat(1e6, 1))
	return jsontext.Value(strings.TrimRight(strings.TrimRight(n.FloatString(6), "0"), "."))
}

// maxNumberBytes keeps numbers with huge exponents, which no duration has, from
// being written out.
const maxNumberBytes = 32

func number(v jsontext.Value) (*big.Rat, bool) {
	if v == nil || v.Kind() != '0' || len(v) > maxNumberBytes || strings.ContainsAny(string(v), "eE") {
		return nil, false
	}
	return new(big.Rat).SetString(string(v))
}
