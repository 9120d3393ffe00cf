package native

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/protocol"
)

// TestResultShapes reads the text of results in all shapes, and puts another
// text in its place.
func TestResultShapes(t *testing.T) {
	for _, tc := range []struct {
		result, content string
		isError         bool
		changed         string // with the content "new"; "" = the shape has no place
	}{
		{`"plain"`, `"plain"`, false, `"new"`},
		{`null`, `""`, false, `"new"`},
		{``, `""`, false, `"new"`},
		{`{"stdout":"a\n","stderr":"b","interrupted":false}`, `"a\nb"`, false, `{"stdout":"new","stderr":"","interrupted":false}`},
		{`{"stdout":"","stderr":"b"}`, `"b"`, false, `{"stdout":"new","stderr":""}`},
		{`{"stdout":"a","stderr":""}`, `"a"`, false, `{"stdout":"new","stderr":""}`},
		{`[{"type":"text","text":"a"}]`, `[{"type":"text","text":"a"}]`, false, `[{"type":"text","text":"new"}]`},
		{`{"content":[{"type":"text","text":"a"}],"isError":true}`, `[{"type":"text","text":"a"}]`, true, `{"content":[{"type":"text","text":"new"}],"isError":true}`},
		{`{"type":"text","file":{"filePath":"/p","content":"a"}}`, `"a"`, false, `{"type":"text","file":{"filePath":"/p","content":"new"}}`},
		{`{"llmContent":"a","returnDisplay":"a"}`, `"a"`, false, `{"llmContent":"new","returnDisplay":""}`},
		{`{"llmContent":"a","error":{"message":"m"}}`, `"a"`, true, `{"llmContent":"new","error":{"message":"m"}}`},
		{`{"resultType":"failure","textResultForLlm":"a"}`, `"a"`, true, `{"resultType":"failure","textResultForLlm":"new"}`},
		{`{"success":false,"result":["a"]}`, `"{\"success\":false,\"result\":[\"a\"]}"`, true, ``},
		{`{"files":["a"]}`, `"{\"files\":[\"a\"]}"`, false, ``},
		{`[1,2]`, `"[1,2]"`, false, ``},
		{`[]`, `"[]"`, false, ``},
		{`7`, `"7"`, false, ``},
		{`{"error":""}`, `"{\"error\":\"\"}"`, false, ``},
	} {
		content, isError := ReadResult(jsontext.Value(tc.result))
		require.Equal(t, tc.content, string(content), tc.result)
		require.Equal(t, tc.isError, isError, tc.result)
		changed, ok := WriteResult(jsontext.Value(tc.result), protocol.Quote("new"))
		require.Equal(t, tc.changed != "", ok, tc.result)
		require.Equal(t, tc.changed, string(changed), tc.result)
	}
}

func TestWriteResultOfTheSameKind(t *testing.T) {
	changed, ok := WriteResult(jsontext.Value(`{"files":["a"]}`), protocol.Quote(`{"files": []}`))
	require.True(t, ok, "the JSON of a result was shown, and JSON of one came back")
	require.Equal(t, `{"files":[]}`, string(changed))
	_, ok = WriteResult(jsontext.Value(`{"files":["a"]}`), protocol.Quote(`{"files":1,"files":2}`))
	require.False(t, ok)
	_, ok = WriteResult(jsontext.Value(`[1]`), jsontext.Value(`[{"type":"text","text":"x"}]`))
	require.False(t, ok)
	changed, _ = WriteResult(jsontext.Value(`"a"`), jsontext.Value(`[{"type":"text","text":"x"},{"type":"text","text":"y"}]`))
	require.Equal(t, `"xy"`, string(changed))
}

func TestUnwrap(t *testing.T) {
	for in, want := range map[string]string{
		`"{\"a\": 1}"`: `{"a":1}`, `" [1, 2]\n"`: `[1,2]`, `"plain"`: `"plain"`, `"7"`: `"7"`, `{"a":1}`: `{"a":1}`,
		`"{\"a\":1,\"a\":2}"`: `"{\"a\":1,\"a\":2}"`, `"{"`: `"{"`,
	} {
		require.Equal(t, want, string(Unwrap(jsontext.Value(in))), in)
	}
	require.Nil(t, Unwrap(nil))
}
