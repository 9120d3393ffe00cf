package text

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/protocol"
)

// words finds words of digits: "n1" is a kind n with the value 1.
type words map[string]Strategy

var word = regexp.MustCompile(`([a-z]+)(\d+)`)

func (w words) Find(ctx context.Context, p *Part) (list []Match, err error) {
	for _, at := range word.FindAllStringSubmatchIndex(p.Text, -1) {
		kind := p.Text[at[2]:at[3]]
		if with, ok := w[kind]; ok {
			list = append(list, Match{
				Start: at[0], End: at[1], Kind: kind, With: with, Label: "[" + kind + "]", Masked: kind + "*", Value: p.Text[at[4]:at[5]],
			})
		}
	}
	return list, context.Cause(ctx)
}

func scrubber(w words) *Scrubber { return &Scrubber{Finder: w, Key: []byte("0123456789abcdef")} }

func TestScrubText(t *testing.T) {
	s := scrubber(words{"red": Redact, "mask": Mask, "hash": Hash, "off": Off, "block": Block})
	for in, want := range map[string]string{
		"nothing 12":               "nothing 12",
		"a red1, red2 and mask33.": "a [red], [red] and mask*.",
		"off1 block1":              "off1 [block]",
		"中\u200bre\u200bd１\u200b文": "中\u200b[red]\u200b文",
	} {
		var r Report
		out, err := s.Text(t.Context(), in, &r)
		require.NoError(t, err)
		require.Equal(t, want, out)
	}
	var r Report
	out, err := s.Text(t.Context(), "hash1 hash01 hash1", &r)
	require.NoError(t, err)
	require.Regexp(t, `^\[hash:[0-9a-f]{12}\] \[hash:[0-9a-f]{12}\] \[hash:[0-9a-f]{12}\]$`, out)
	require.Equal(t, out[:19], out[40:])
	require.NotEqual(t, out[:19], out[20:39])
	require.Equal(t, "3 × hash", r.Kinds())
	other, err := (&Scrubber{Finder: s.Finder, Key: []byte("another key, really")}).Text(t.Context(), "hash1", &r)
	require.NoError(t, err)
	require.NotEqual(t, out[:19], other)
}

// What a replacement makes is searched again, and never without end.
func TestScrubAgain(t *testing.T) {
	twice := replacer{"aa": "b", "bb": "[x]"}
	var r Report
	out, err := (&Scrubber{Finder: twice}).Text(t.Context(), "aaaa", &r)
	require.NoError(t, err)
	require.Equal(t, "[x]", out)
	out, err = (&Scrubber{Finder: replacer{"a": "aa"}}).Text(t.Context(), "1a2", &r)
	require.NoError(t, err)
	require.Equal(t, "[…]", out)
}

type replacer map[string]string

func (r replacer) Find(_ context.Context, p *Part) (list []Match, err error) {
	for from, to := range r {
		if at := strings.Index(p.Text, from); at >= 0 {
			list = append(list, Match{Start: at, End: at + len(from), Kind: from, With: Redact, Label: to})
		}
	}
	return list, nil
}

// A number in a piece of JSON that is only a part of a text stays one value.
func TestScrubPieceOfJSON(t *testing.T) {
	digits := Scrubber{Finder: replacer{"12345678901": "[n]"}}
	for in, want := range map[string]string{
		`result: {"a": 12345678901, "b": 1}`: `result: {"a": "[n]", "b": 1}`,
		`{\"a\":12345678901`:                 `{\"a\":\"[n]\"`,
		`"a": "12345678901"`:                 `"a": "[n]"`,
		`a: 12345678901`:                     `a: [n]`,
	} {
		out, err := digits.Text(t.Context(), in, &Report{})
		require.NoError(t, err)
		require.Equal(t, want, out)
	}
}

func TestSettle(t *testing.T) {
	m := func(start, end, rank int) Match { return Match{Start: start, End: end, Rank: rank} }
	for _, c := range []struct{ in, want []Match }{
		{nil, nil},
		{[]Match{m(5, 8, 0), m(0, 3, 0)}, []Match{m(0, 3, 0), m(5, 8, 0)}},
		{[]Match{m(0, 3, 0), m(2, 9, 5)}, []Match{m(2, 9, 5)}},
		{[]Match{m(0, 3, 4), m(0, 3, 1), m(1, 4, 0)}, []Match{m(1, 4, 0)}},
		{[]Match{m(0, 3, 1), m(2, 5, 1)}, []Match{m(0, 3, 1)}},
		{[]Match{m(0, 3, 1), m(3, 6, 1)}, []Match{m(0, 3, 1), m(3, 6, 1)}},
	} {
		require.Equal(t, c.want, Settle(c.in))
	}
}

// No hash looks like a number: twelve digits in a row would.
func TestHashesHaveNoLongNumbers(t *testing.T) {
	for i := range 5000 {
		h := hashed([]byte("key"), "kind", strings.Repeat("x", i))
		require.Len(t, h, len("[hash:]")+hashDigits)
		require.LessOrEqual(t, longestRun(h), hashRun)
	}
}

func TestCheckLabel(t *testing.T) {
	for _, good := range []string{"[x]", "***", "【手机】", "手机号", "<a b>"} {
		require.NoError(t, CheckLabel(good))
	}
	for _, bad := range []string{"", "x", "[x", "x]", "-", "@x)", `"x"`, "手机1"} {
		require.Error(t, CheckLabel(bad), bad)
	}
	require.EqualError(t, CheckLabel("PHONE"), `"PHONE" could become one word with the text beside it: put it in brackets, such as [PHONE]`)
}

func request(t *testing.T, stage protocol.Stage, subject string) *protocol.Request {
	params, err := protocol.DecodeObject([]byte(subject), 0)
	require.NoError(t, err)
	req, bad := protocol.DecodeRequest(protocol.NewStageTable().Stage(stage), params)
	require.Nil(t, bad)
	return req
}

func TestJudge(t *testing.T) {
	s := scrubber(words{"red": Redact, "block": Block})
	for _, c := range []struct {
		name    string
		stage   protocol.Stage
		subject string
		want    string // the decision on the wire
	}{
		{"nothing", protocol.StageOutput, `{"output":{"content":"fine"}}`, `{"action":"continue"}`},
		{
			"a message", protocol.StageUserMessage, `{"message":{"role":"user","content":"red1 red2","n":1.0}}`,
			`{"action":"modify","reason":"replaced: 2 × red","message":{"role":"user","content":"[red] [red]","n":1.0}}`,
		},
		{
			"blocks", protocol.StageUserMessage, `{"message":{"content":[{"type":"text","text":"red1"},{"type":"image","data":"x"}]}}`,
			`{"action":"modify","reason":"replaced: red","message":{"content":[{"type":"text","text":"[red]"},{"type":"image","data":"x"}]}}`,
		},
		{
			"blocked", protocol.StageUserMessage, `{"message":{"content":"red1 block1"}}`,
			`{"action":"deny","reason":"found in the message: block, which may not pass. Take it out and try again."}`,
		},
		{
			"a conversation", protocol.StageBeforeLLM, `{"model":"red1","messages":[{"role":"user","content":"red1"}],"options":{"user":"red1"}}`,
			`{"action":"modify","reason":"replaced: red","request":{"messages":[{"role":"user","content":"[red]"}]}}`,
		},
		{
			"no deny here", protocol.StageAfterTool, `{"tool":"t","arguments":{"a":"red1"},"result":{"content":"block1, red1"}}`,
			`{"action":"modify","reason":"replaced: block, red","result":{"content":"[block], [red]"},"warnings":["found in the tool's result: block, which is blocked; there is no deny at after_tool, so it was replaced"]}`,
		},
		{
			"a name", protocol.StageOutput, `{"output":{"red1":"x","content":"y"}}`,
			`{"action":"modify","reason":"replaced: red","patch":[{"op":"replace","path":"","value":{"[red]":"x","content":"y"}}]}`,
		},
		{
			"arguments", protocol.StageBeforeTool, `{"tool":"red1","arguments":{"a":"red1"}}`,
			`{"action":"modify","reason":"replaced: red","call":{"arguments":{"a":"[red]"}}}`,
		},
		{"no texts", protocol.StageStop, `{}`, `{"action":"continue"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			req := request(t, c.stage, c.subject)
			d, err := s.Judge(t.Context(), req)
			require.NoError(t, err)
			require.NoError(t, d.Check(req.Stage))
			require.Equal(t, c.want, string(d.AppendJSON(nil, req.Stage)))
		})
	}
}

func TestJudgeStops(t *testing.T) {
	reason := errors.New("the agent has gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	_, err := scrubber(words{}).Judge(ctx, request(t, protocol.StageOutput, `{"output":{"content":"red1"}}`))
	require.ErrorIs(t, err, reason)
	out, err := scrubber(words{}).Value(ctx, jsontext.Value(`["a","b"]`), nil, &Report{})
	require.ErrorIs(t, err, reason)
	require.Nil(t, out)
}
