package pii

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/hookd/hookd/builtin/text"
	"github.com/hookd/hookd/builtin/text/corpus"
	"github.com/hookd/hookd/protocol"
)

// FuzzScrub holds what must be true of every text: JSON stays JSON, no value
// that was found is left, and what is redacted once stays as it is.
func FuzzScrub(f *testing.F) {
	for _, path := range []string{"testdata/positive.jsonl", "testdata/negative.jsonl"} {
		for _, c := range corpus.Load(f, path) {
			f.Add(c.Text)
		}
	}
	f.Add("13812345678" + "6222021234567890128" + "a@example.com" + "DE89370400440532013000")
	f.Add("1381234567813812345678@qq.com138 1234 5678 6222 0212 3456 7890")
	f.Add(`{"13812345678":13812345678,"a":"{\"b\":6222021234567890128}"}`)
	var scrubbers []*text.Scrubber
	for _, with := range []text.Strategy{text.Redact, text.Mask, text.Hash} {
		var members protocol.Object
		for _, name := range kindNames {
			members = append(members, protocol.Member{Name: name, Value: protocol.Quote(with)})
		}
		members = append(members, protocol.Member{Name: "id_card_15", Value: jsontext.Value("true")}, protocol.Member{Name: "bank_card_13_15", Value: jsontext.Value("true")})
		p, err := New(members.AppendJSON(nil), "", []byte("a key for all the tests"), zap.NewNop())
		require.NoError(f, err)
		scrubbers = append(scrubbers, &p.scrubber)
	}
	f.Fuzz(func(t *testing.T, in string) {
		in = strings.ToValidUTF8(in, "?") // the protocol lets nothing else through
		for i, s := range scrubbers {
			var first, second text.Report
			out, err := s.Text(context.Background(), in, &first)
			require.NoError(t, err)
			again, err := s.Text(context.Background(), out, &second)
			require.NoError(t, err)
			require.Equal(t, out, again, "scrubber %d of %q", i, in)
			require.True(t, second.Empty(), "scrubber %d left %s in %q of %q", i, second.Kinds(), out, in)

			value := protocol.Object{{Name: "a", Value: protocol.Quote(in)}}.AppendJSON(nil)
			if protocol.CheckValue([]byte(in), 0) == nil {
				value = []byte(in)
			}
			clean, err := s.Value(context.Background(), value, nil, &text.Report{})
			require.NoError(t, err)
			require.NoError(t, protocol.CheckValue(clean, 0), "scrubber %d of %s made %s", i, value, clean)
			var left text.Report
			_, err = s.Value(context.Background(), clean, nil, &left)
			require.NoError(t, err)
			require.True(t, left.Empty(), "scrubber %d left %s in %s of %s", i, left.Kinds(), clean, value)
		}
	})
}

// TestComposed glues values together in all the ways that chance finds, because
// no fuzzer guesses check digits.
func TestComposed(t *testing.T) {
	pieces := []string{
		aPhone, anID, aCard, anIBAN, "a@example.com", "+12025550123", "10.0.0.7", "2001:db8::7", "86", "+86", "0086", "138-1234-5678", "6222 0212 3456 7890 128",
		"x", "X", "1", "0", ".", "-", " ", "+", ":", "@", "/", "中", "\u200b", "１", "[", "]", "\"", "(", ")", "{\"a\":", "}", "\\", "\n", "[hash:3f2a9c1b7d04]", "138****5678",
	}
	r := rand.New(rand.NewPCG(1, 2))
	p, err := New(jsontext.Value(`{"ip":"redact","phone":"mask","email":"hash","id_card_15":true,"bank_card_13_15":true}`), "", []byte("a key for all the tests"), zap.NewNop())
	require.NoError(t, err)
	for range 5000 {
		var b strings.Builder
		for range 1 + r.IntN(8) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		in := b.String()
		var first, second text.Report
		out, err := p.scrubber.Text(t.Context(), in, &first)
		require.NoError(t, err)
		again, err := p.scrubber.Text(t.Context(), out, &second)
		require.NoError(t, err)
		require.Equal(t, out, again, "%q", in)
		require.True(t, second.Empty(), "%q → %q", in, out)
	}
}
