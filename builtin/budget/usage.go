package budget

import (
	"math"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/builtin/sessions"
	"github.com/hookd/hookd/protocol"
)

// cost is never too low: what may be either is taken for the dearer.
func cost(u *sessions.Usage, p price) float64 {
	return (float64(u.Input)*p.Input + float64(u.Output)*p.Output + float64(u.Total)*math.Max(p.Input, p.Output)) / 1e6
}

// modelOf returns the model that a response or payload names, or "".
func modelOf(holder jsontext.Value) string {
	if holder.Kind() != '{' {
		return ""
	}
	o, _ := protocol.ParseObject(holder) // a checked value
	if v := o.Get("model"); v != nil && v.Kind() == '"' {
		return protocol.Unquote(v)
	}
	return ""
}
