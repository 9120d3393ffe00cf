package client

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/protocol"
)

// encode marshals a value for hookd, which reads strictly: what is not valid
// Unicode becomes U+FFFD, and a name that stands twice is an error.
func encode(v any) (jsontext.Value, error) {
	return json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
}

// params are gathered for one message. The first error stays.
type params struct {
	list protocol.Object
	err  error
}

// add appends a param, unless its value is nil.
func (p *params) add(name string, v any) {
	if v == nil || p.err != nil {
		return
	}
	raw, err := encode(v)
	switch {
	case err != nil:
		p.err = fmt.Errorf("%s: %w", name, err)
	case raw.Kind() != 'n':
		p.list = append(p.list, protocol.Member{Name: name, Value: raw})
	}
}

// addObject appends a param, and an empty object when its value is nil.
func (p *params) addObject(name string, v any) {
	n := len(p.list)
	p.add(name, v)
	if len(p.list) == n {
		p.add(name, struct{}{})
	}
}

func (p *params) addMeta(m Meta) {
	p.add("meta", m)
	if n := len(p.list); n > 0 && string(p.list[n-1].Value) == "{}" {
		p.list = p.list[:n-1]
	}
}
