package rpc

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/sourcegraph/jsonrpc2"

	"github.com/hookd/hookd/protocol"
)

const (
	maxIDBytes = 128       // of a string id
	maxIDNum   = 1<<53 - 1 // what every JSON reader keeps exactly
)

// ID is the id of a request: an integer from 0 to 2^53-1 or a string of at
// most 128 bytes. It is comparable. The zero ID is none: that of a
// notification.
type ID struct {
	id  jsonrpc2.ID
	set bool
}

// NumberID makes an integer ID.
func NumberID(n uint64) ID { return ID{jsonrpc2.ID{Num: n}, true} }

// StringID makes a string ID.
func StringID(s string) ID { return ID{jsonrpc2.ID{Str: s, IsString: true}, true} }

// String returns the id as it stands on the wire, and "null" for the zero ID.
func (id ID) String() string { return string(id.AppendJSON(nil)) }

// number reports whether it may be the id of one of our calls.
func (id ID) number() bool { return id.set && !id.id.IsString }

// AppendJSON appends the id as JSON; the zero ID is null.
func (id ID) AppendJSON(b []byte) []byte {
	switch {
	case !id.set:
		return append(b, "null"...)
	case id.id.IsString:
		return protocol.AppendString(b, id.id.Str)
	}
	return strconv.AppendUint(b, id.id.Num, 10)
}

// parseID reads an id. Of numbers only plain integers are ids: 1.0 and 1e0
// mean different things to different programs.
func parseID(v jsontext.Value) (ID, bool) {
	if len(v) > 0 && v[0] == '"' {
		s, err := jsontext.AppendUnquote(nil, []byte(v))
		if err != nil || len(s) > maxIDBytes {
			return ID{}, false
		}
		return StringID(string(s)), true
	}
	n, err := strconv.ParseUint(string(v), 10, 64)
	if err != nil || n > maxIDNum {
		return ID{}, false
	}
	return NumberID(n), true
}
