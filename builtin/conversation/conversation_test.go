package conversation

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
)

func groups(messages string) string {
	var parts []string
	for _, g := range Groups(Read(jsontext.Value(messages))) {
		part := fmt.Sprint(g.From)
		for i := g.From + 1; i < g.To; i++ {
			part += fmt.Sprint("+", i)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, " ")
}

func TestGroups(t *testing.T) {
	const user, said = `{"role":"user","content":"u"}`, `{"role":"assistant","content":"a"}`
	for name, c := range map[string]struct{ messages, want string }{
		"none":      {`[]`, ""},
		"plain":     {`[` + user + `,` + said + `,` + user + `]`, "0 1 2"},
		"openai":    {`[` + user + `,{"role":"assistant","content":null,"tool_calls":[{"id":"1"},{"id":"2"}]},{"role":"tool","tool_call_id":"1","content":"x"},{"role":"tool","tool_call_id":"2","content":"y"},` + said + `]`, "0 1+2+3 4"},
		"anthropic": {`[` + user + `,{"role":"assistant","content":[{"type":"text","text":"t"},{"type":"tool_use","id":"1"}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1"}]},` + user + `]`, "0 1+2 3"},
		"far apart": {`[{"role":"assistant","tool_calls":[{"id":"1"}]},` + user + `,{"role":"tool","tool_call_id":"1"}]`, "0+1+2"},
		"woven":     {`[{"role":"assistant","tool_calls":[{"id":"1"}]},{"role":"assistant","tool_calls":[{"id":"2"}]},{"role":"tool","tool_call_id":"1"},{"role":"tool","tool_call_id":"2"},` + user + `]`, "0+1+2+3 4"},
		"ids again": {`[{"role":"assistant","tool_calls":[{"id":"1"}]},{"role":"tool","tool_call_id":"1"},{"role":"assistant","tool_calls":[{"id":"1"}]},{"role":"tool","tool_call_id":"1"}]`, "0+1 2+3"},
		"responses": {`[` + user + `,{"type":"reasoning","id":"r"},{"type":"function_call","call_id":"1","id":"x"},{"type":"function_call_output","call_id":"1","output":"o"},` + said + `]`, "0 1+2+3 4"},
		"gemini":    {`[{"role":"model","parts":[{"functionCall":{"name":"f"}}]},{"role":"user","parts":[{"functionResponse":{"name":"f"}}]},` + user + `]`, "0+1 2"},
		"old":       {`[{"role":"assistant","function_call":{"name":"f"}},{"role":"function","name":"f","content":"x"},` + user + `]`, "0+1 2"},
		"sdk":       {`[{"role":"assistant","content":[{"type":"tool-call","toolCallId":"1"}]},{"role":"tool","content":[{"type":"tool-result","toolCallId":"1"}]}]`, "0+1"},
		"no ids":    {`[{"role":"assistant","tool_calls":[{}]},{"role":"tool","content":"x"},` + user + `]`, "0+1 2"},
		"no call":   {`[{"role":"tool","tool_call_id":"9"},` + said + `,{"role":"tool","tool_call_id":"9"}]`, "0 1+2"},
		"odd":       {`[1,null,"x",[],{},{"role":1,"content":5,"tool_calls":{},"parts":"x"}]`, "0 1 2 3 4 5"},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, groups(c.messages)) })
	}
}

func TestTail(t *testing.T) {
	list := Read(jsontext.Value(`[{"role":"user"},{"role":"assistant","tool_calls":[{"id":"1"}]},{"role":"tool","tool_call_id":"1"},{"role":"user"}]`))
	for n, want := range map[int]int{0: 4, 1: 3, 2: 1, 3: 1, 4: 0, 99: 0} {
		require.Equal(t, want, Tail(list, n), n)
	}
}

func TestMessage(t *testing.T) {
	list := Read(jsontext.Value(`[{"role":"developer","content":"be \u0022good\u0022"},{"role":"user","content":[{"type":"text","text":"a"},{"type":"image","data":"x"},{"type":"text","text":"b"}]},` +
		`{"role":"assistant","tool_calls":[{"id":"id1","type":"function","function":{"name":"f","arguments":"{\"q\":\"find\"}"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"id1","content":"found"}]}]`))
	require.True(t, list[0].System())
	require.Equal(t, `be "good"`, list[0].Content())
	require.True(t, list[1].User())
	require.Equal(t, "ab", list[1].Content())
	require.Equal(t, "a\nx\nb", list[1].Texts())
	require.Equal(t, "f\nfind", list[2].Texts())
	require.False(t, list[3].User(), "a result")
	require.Equal(t, "found", list[3].Texts())
	require.JSONEq(t, `[{"role":"user","content":"x\"y"}]`, string(Value([]Message{New("user", `x"y`)})))
	require.Equal(t, `[]`, string(Value(nil)))
	require.Nil(t, Read(jsontext.Value(`{}`)))
}

func TestCount(t *testing.T) {
	c := NewCounter()
	ctx := context.Background()
	count := func(m Message) int {
		n, err := c.Message(ctx, &m)
		require.NoError(t, err)
		again, err := c.Message(ctx, &m)
		require.NoError(t, err)
		require.Equal(t, n, again)
		return n
	}
	require.Equal(t, perMessage+4, count(New("user", "hello world, hello")))
	require.Equal(t, perMessage+4, count(Read(jsontext.Value(`[{"role":"user","content":[{"type":"text","text":"hello world, hello"}]}]`))[0]))
	require.Equal(t, perMessage, count(New("user", "")))
	words := strings.Repeat(" word", 20_000)
	require.Equal(t, perMessage+20_000, count(New("user", words)), "pieces are cut between tokens")
	require.InDelta(t, 20_000/8, count(New("user", strings.Repeat("a", 20_000))), 100)

	picture := "iVBORw0KGgo" + base64.StdEncoding.EncodeToString(make([]byte, 300_000))
	raw := `[{"role":"user","content":[{"type":"image","source":{"type":"base64","data":"` + picture + `"}}]}]`
	n := count(Read(jsontext.Value(raw))[0])
	require.True(t, n >= perMedia && n < perMedia+50, n)
	count(Read(jsontext.Value(`[5]`))[0])
}

func TestExceeds(t *testing.T) {
	c := NewCounter()
	list := []Message{New("user", strings.Repeat(" word", 1000))}
	for limit, want := range map[int]bool{1: true, 1003: true, 1004: false, 100_000: false} {
		got, err := c.Exceeds(context.Background(), list, limit)
		require.NoError(t, err)
		require.Equal(t, want, got, limit)
	}
	// Where bytes are few, nothing is loaded.
	quick := &Counter{load: nil}
	got, err := quick.Exceeds(context.Background(), list, 100_000)
	require.NoError(t, err)
	require.False(t, got)
}

func TestCountStops(t *testing.T) {
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(gone)
	_, err := NewCounter().Count(ctx, []Message{New("user", "x")})
	require.ErrorIs(t, err, gone)
}

func FuzzGroups(f *testing.F) {
	f.Add(`[{"role":"assistant","tool_calls":[{"id":"1"}]},{"role":"tool","tool_call_id":"1"}]`)
	f.Add(`[{"type":"reasoning"},{"content":[{"type":"tool_use","id":"a"}]},{"content":[{"type":"tool_result","tool_use_id":"a"}]}]`)
	f.Add(`[1,"x",{"parts":[{"functionCall":{}}]}]`)
	f.Fuzz(func(t *testing.T, s string) {
		v := jsontext.Value(s)
		if !v.IsValid() || v.Kind() != '[' {
			return
		}
		list := Read(v)
		at := 0
		for _, g := range Groups(list) {
			require.Equal(t, at, g.From)
			require.Greater(t, g.To, g.From)
			at = g.To
		}
		require.Equal(t, len(list), at)
		require.True(t, Value(list).IsValid())
		for i := range list {
			list[i].Texts()
			list[i].Content()
		}
		for n := range len(list) + 2 {
			require.LessOrEqual(t, Tail(list, n), max(len(list)-n, 0))
		}
	})
}
