package rpc

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What hookd writes is read the quick way, and what only looks like it is not. That
// both ways say the same is FuzzEnvelope's.
func TestUsual(t *testing.T) {
	written := func(encode func(m *message)) string {
		m := &message{}
		encode(m)
		return string(m.head[:len(m.head)-1])
	}
	for line, want := range map[string]bool{
		written(func(m *message) { m.encodeRequest(NumberID(12), "hook.before_tool", []byte(`{"tool":"bash"}`)) }): true,
		written(func(m *message) { m.encodeRequest(ID{}, "$/cancelRequest", []byte(`{"id":1}`)) }):                 true,
		written(func(m *message) { m.encodeResult(NumberID(0), []byte(`{"action":"continue"}`)) }):                 true,
		written(func(m *message) { m.encodeResult(NumberID(999_999_999_999_999), nil) }):                           true,
		written(func(m *message) { m.encodeResult(StringID("x"), nil) }):                                           false,
		`{"jsonrpc":"2.0","id":1,"result":{},"result":{}}`:                                                         false,
		`{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2}}`:                                                          false,
		`{"jsonrpc":"2.0","id":1,"result":{}}}`:                                                                    false,
		`{"jsonrpc":"2.0","id":1,"result":}`:                                                                       false,
		`{"jsonrpc":"2.0","id":1,"result": {}}`:                                                                    false,
		`{"jsonrpc":"2.0","id":1`:                                                                                  false,
		`{"jsonrpc":"2.0","id":}`:                                                                                  false,
		`{"jsonrpc":"2.0","id":01,"result":{}}`:                                                                    false,
		`{"jsonrpc":"2.0","id":1000000000000000,"result":{}}`:                                                      false,
		`{"jsonrpc":"2.0","id":-1,"result":{}}`:                                                                    false,
		`{"jsonrpc":"2.0","id":1,"method":"m","params":{},"params":{}}`:                                            false,
		`{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"\ud800"}}`:                                            false,
		`{"jsonrpc":"2.0","id":1,"method":"m","params":{}`:                                                         false,
		`{"jsonrpc":"2.0","id":1,"method":"m","params":[]}`:                                                        false,
		`{"jsonrpc":"2.0","id":1,"method":"\u006d","params":{}}`:                                                   false,
		`{"jsonrpc":"2.0","id":1,"method":"","params":{}}`:                                                         false,
		`{"jsonrpc":"2.0","id":1,"method":"m","params":{},"result":{}}`:                                            false,
		`{"jsonrpc":"1.0","id":1,"method":"m","params":{}}`:                                                        false,
		`{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}`:                                          false,
	} {
		_, usual := new(parser).usual([]byte(line))
		require.Equal(t, want, usual, line)
	}
}
