package budget

import (
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/protocol"
)

// usage is what one answer of a model has used, as its agent tells it.
type usage struct {
	input, output int64
	// total is set when the agent does not say how much went in and came out.
	total int64
}

// maxTokens is more than any model uses for an answer, so that sums can't run
// over.
const maxTokens = 1 << 40

// readUsage reads the "usage" of a response or of an event's payload.
func readUsage(holder jsontext.Value) (u usage, known bool) {
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
	u.input = count("input_tokens", "prompt_tokens")
	u.output = count("output_tokens", "completion_tokens")
	if !known {
		u.total = count("total_tokens")
		return u, known
	}
	// Where they are told by these names, input_tokens does not hold them.
	u.input += count("cache_read_input_tokens") + count("cache_creation_input_tokens")
	return u, known
}

func (u usage) tokens() int64 { return u.input + u.output + u.total }

// cost is never too low: what may be either is taken for the dearer.
func (u usage) cost(p price) float64 {
	return (float64(u.input)*p.Input + float64(u.output)*p.Output + float64(u.total)*math.Max(p.Input, p.Output)) / 1e6
}

// modelOf returns the model that a response or payload names, or "".
func modelOf(holder jsontext.Value) string {
	if v := object(holder).Get("model"); v != nil && v.Kind() == '"' {
		return protocol.Unquote(v)
	}
	return ""
}

// object returns the members of a checked value, none when it is no object.
func object(v jsontext.Value) protocol.Object {
	if v.Kind() != '{' {
		return nil
	}
	o, _ := protocol.ParseObject(v)
	return o
}
