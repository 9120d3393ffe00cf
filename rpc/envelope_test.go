package rpc

import (
	"bytes"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/protocol"
)

func TestPeek(t *testing.T) {
	tests := []struct {
		line string
		want glance
	}{
		{`{"jsonrpc":"2.0","id":7,"method":"m","params":{"id":8`, glance{id: NumberID(7), request: true}},
		{` { "id" : "a\"}" , "result" : [ {"method":1} , "}" ] ,`, glance{id: StringID(`a"}`), response: true}},
		{`{"result":{"id":1},"error":{"id":2},"id":3}`, glance{id: NumberID(3), response: true}},
		{`{"id":12`, glance{}}, // may be longer
		{`{"id":"12`, glance{}},
		{`{"id":12,"id":13}`, glance{}},
		{`{"id":12,"result":{bad}, "id":13}`, glance{response: true}},
		{`{"id":null,"method":1}`, glance{request: true}},
		{`{"id":{"id":5},"x":1}`, glance{}},
		{`{"a":"`, glance{}},
		{`{"a"`, glance{}},
		{`{"a":`, glance{}},
		{`{"a":[1,2`, glance{}},
		{`{"a":1 "id":5,}`, glance{id: NumberID(5)}},
		{`[{"id":5}]`, glance{}},
		{`{`, glance{}},
		{``, glance{}},
		{`{"id":5}{"id":6}`, glance{id: NumberID(5)}},
		{"\ufeff" + `{"id":5}`, glance{id: NumberID(5)}},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, peek([]byte(tt.line)), tt.line)
	}
}

func FuzzEnvelope(f *testing.F) {
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":[1,{"b":"c\n"}],"d":1e5}}`,
		`{"params" : { } ,"method":"$/cancelRequest","jsonrpc":"2.0"}`,
		`{"jsonrpc":"2.0","id":"x","result":null}`,
		`{"jsonrpc":"2.0","id":7,"method":"hook.before_tool","params":{"tool":"bash","arguments":{"command":"ls"}}}`,
		`{"jsonrpc":"2.0","id":7,"result":{"action":"continue"}}`, `{"jsonrpc":"2.0","id":7,"result":3}`,
		`{"jsonrpc":"2.0","method":"hook.event","params":{"kind":"x"}}`,
		`{"jsonrpc":"2.0","id":7,"result":{}},"result":{}}`, `{"jsonrpc":"2.0","id":7,"method":"m","params":{}},"id":8}`,
		`{"jsonrpc":"2.0","id":07,"result":{}}`, `{"jsonrpc":"2.0","id":9007199254740993,"result":{}}`,
		`{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"no","data":[]}}`,
		`{"jsonrpc":"2.0","id":2,"result":{"a":1,"a":2}}`,
		`{"jsonrpc":"2.0","id":2,"result":{},"error":{}}`,
		`{"\u0069d":2,"method":"\ud83d\ude00","jsonrpc":"2.0"}`,
		`{"id":2,"result":"\ud800"}`,
		`[{"id":1}]`, "\r0", "{\"id\":1,\r\"result\":2}",
		`{"id":1,"result":{bad`,
		strings.Repeat(`{"a":[`, 200),
		"\ufeff{}", "null", `""`, "{}x", "",
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if bytes.IndexByte(line, '\n') >= 0 {
			return
		}
		whole := bytes.Clone(line)
		e, err := parse(line, 20)
		require.Equal(t, whole, line, "a line is never written to")
		quick, slow := new(parser), new(parser)
		if was, usual := quick.usual(line); usual && protocol.CheckDepth(line, 20) == nil && bytes.IndexByte(line, '\r') < 0 {
			slow.reset(line)
			is, wrong := slow.envelope(line)
			require.NoError(t, wrong)
			require.Equal(t, is, was)
		}
		g := peek(line)
		if err != nil {
			if bytes.IndexByte(line, '\r') < 0 { // which is fine in JSON, and not in a line
				require.Error(t, protocol.CheckValue(line, 20))
			}
			require.NotEmpty(t, err.Error())
			onlyDuplicates(line)
			return
		}
		require.NoError(t, protocol.CheckValue(line, 20))
		for i := range min(len(line), 300) { // what is seen of a cut line does not change later
			if cut := peek(line[:i]); cut.id.set && cut.id != g.id {
				require.False(t, g.id.set, "%s", line[:i])
			}
		}
		if !bytes.ContainsRune(line, '\\') && e.hasID && (e.request || e.response) {
			require.Equal(t, e.request, g.request)
			require.Equal(t, e.response, g.response)
			require.Equal(t, e.id, g.id)
		}
		if e.invalid != nil || !e.request {
			require.Empty(t, e.method)
			return
		}
		require.NotEmpty(t, e.method)
		obj := jsontext.Value(whole)
		members, err := protocol.DecodeObject(obj, 20)
		require.NoError(t, err)
		require.Equal(t, members.Get("params"), e.params)
		if e.params != nil {
			inner, err := protocol.DecodeObject(e.params, 20)
			require.NoError(t, err)
			require.Equal(t, inner, e.members)
		}
		// What we would write for it reads the same.
		var m message
		m.encodeRequest(e.id, e.method, e.params)
		again, err := parse(bytes.TrimSuffix(bytes.Join([][]byte{m.head, m.body}, nil), []byte("\n")), 20)
		require.NoError(t, err)
		again.size = e.size
		require.Equal(t, e, again)
	})
}
