package sessions

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/protocol"
)

// Usage is what one answer of a model has used, in tokens, as its agent tells
// it. The zero value is nothing.
type Usage struct {
	Input, Output int64
	// Total is set instead when the agent does not say how much went in and came
	// out.
	Total int64
}

// maxTokens is more than any model uses for an answer, so that sums can't run
// over.
const maxTokens = 1 << 40

// ReadUsage reads the "usage" of a response or of an event's payload. known is
// false when it tells none.
func ReadUsage(holder jsontext.Value) (u Usage, known bool) {
	members := object(object(holder).Get("usage"))
	count := func(names ...string) int64 {
		for _, name := range names {
			n, err := strconv.ParseInt(string(members.Get(name)), 10, 64)
			if err == nil && n >= 0 {
				known = true
				return min(n, maxTokens)
			}
		}
		return 0
	}
	u.Input = count("input_tokens", "prompt_tokens")
	u.Output = count("output_tokens", "completion_tokens")
	if !known {
		u.Total = count("total_tokens")
		return u, known
	}
	// Where they are told by these names, input_tokens does not hold them.
	u.Input += count("cache_read_input_tokens") + count("cache_creation_input_tokens")
	return u, known
}

// Tokens is the sum, in and out.
func (u Usage) Tokens() int64 { return u.Input + u.Output + u.Total }

// Plus is the sum of both.
func (u Usage) Plus(more Usage) Usage {
	return Usage{u.Input + more.Input, u.Output + more.Output, u.Total + more.Total}
}

// object returns the members of a checked value, none when it is no object.
func object(v jsontext.Value) protocol.Object {
	if v.Kind() != '{' {
		return nil
	}
	o, _ := protocol.ParseObject(v)
	return o
}
