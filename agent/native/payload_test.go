package native

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/protocol"
)

func TestReadPayload(t *testing.T) {
	for _, tc := range []struct {
		about, in, raw string
		warned         bool
	}{
		{"as it is", `{"a":1.50,"b":"\u00e9 \ud83d\ude00"}`, `{"a":1.50,"b":"\u00e9 \ud83d\ude00"}`, false},
		{"on one line", "{\r\n  \"a\": [1, 2]\r\n}\n", `{"a":[1,2]}`, false},
		{"byte order mark", "\xef\xbb\xbf{\"a\":1}", `{"a":1}`, false},
		{"not UTF-8", "{\"a\":\"caf\xe9\"}", `{"a":"caf�"}`, true},
		{"a high surrogate alone", `{"a":"x\ud83dy"}`, `{"a":"x\ufffdy"}`, true},
		{"a low surrogate alone", `{"a":"\udE00"}`, `{"a":"\ufffd"}`, true},
		{"two high surrogates, then a low one", `{"a":"\ud83d\ud83d\ude00"}`, `{"a":"\ufffd\ud83d\ude00"}`, true},
		{"a surrogate at the end", `{"a":"\ud83d"}`, `{"a":"\ufffd"}`, true},
		{"an escaped backslash before u", `{"a":"\\ud83d","b":"\ud83d"}`, `{"a":"\\ud83d","b":"\ufffd"}`, true},
		{"in a name", "{\"\xff\":1}", `{"�":1}`, true},
	} {
		given := []byte(tc.in)
		raw, members, warnings, err := ReadPayload(given)
		require.NoError(t, err, tc.about)
		require.Equal(t, tc.raw, string(raw), tc.about)
		require.Equal(t, tc.raw, string(members.AppendJSON(nil)), tc.about)
		require.Equal(t, tc.warned, len(warnings) == 1, tc.about)
		require.Equal(t, tc.in, string(given), "%s: the bytes given stay", tc.about)
	}
}

func TestReadPayloadRefuses(t *testing.T) {
	for in, want := range map[string]string{
		"":                             "it is empty",
		" \n":                          "it is empty",
		"\xef\xbb\xbf":                 "it is empty",
		`[1]`:                          `expected a JSON object, got "[1]"`,
		"Last login: today\n{\"a\":1}": `expected a JSON object, got "Last login: today\n{\"a\":1}"`,
		`{"a":1`:                       "ends too early",
		`{"a":1} {"b":2}`:              "more data after the object",
		`{"a":1,"a":2}`:                "duplicate name",
		`{"x":{"a":1,"a":2}}`:          "duplicate name",
		"{\"\xff\":1,\"\xfe\":2}":      "duplicate name",
		`{"a":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`: "nested too deeply",
		`{"a":"\uzzzz"}`: "invalid",
	} {
		_, _, _, err := ReadPayload([]byte(in))
		require.ErrorContains(t, err, want, "%q", in)
	}
}

func TestPeekEvent(t *testing.T) {
	keys := []string{"hook_event_name", "event"}
	for in, want := range map[string]string{
		`{"hook_event_name":"Stop","x`:       "Stop",
		`{ "event" : "PreToolUse" , "a": {`:  "PreToolUse",
		`{"event":"A","hook_event_name":"B"`: "B",
		`{"hook_event_name":`:                "",
		`{"hook_event_name":7}`:              "",
		`{"hook_event_name":"`:               "",
		`{"hook_event_name":""}`:             "",
		`nothing`:                            "",
		// Only the agent's own member counts, and not what a tool is called with.
		`{"tool_input":{"hook_event_name":"Notification","x":[[`:                                          "",
		`{"tool_input":{"command":"\"hook_event_name\":\"Notification\""},"hook_event_name":"PreToolUse"`: "PreToolUse",
		`{"tool_input":{"event":"Notification"},"event":"PreToolUse","x":`:                                "PreToolUse",
	} {
		require.Equal(t, want, peekEvent([]byte(in), keys), in)
	}
}

func FuzzReadPayload(f *testing.F) {
	f.Add([]byte("\xef\xbb\xbf{\"a\": \"\xff\\ud83d\"}"))
	f.Add([]byte(`{"a":"\\ud83d\u00"}`))
	f.Add([]byte(`{"a":1}x`))
	f.Fuzz(func(t *testing.T, b []byte) {
		peekEvent(b, []string{"a"})
		raw, members, _, err := ReadPayload(b)
		if err != nil {
			return
		}
		require.NotContains(t, string(raw), "\n")
		again, err := protocol.DecodeObject(raw, 0)
		require.NoError(t, err)
		require.Equal(t, string(again.AppendJSON(nil)), string(members.AppendJSON(nil)))
		_, n := Repair(raw)
		require.Zero(t, n, "what has been repaired is whole")
	})
}
