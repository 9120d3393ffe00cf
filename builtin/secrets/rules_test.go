package secrets

import (
	"context"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/builtin/text"
	"github.com/hookd/hookd/builtin/text/corpus"
	"github.com/hookd/hookd/protocol"
)

// TestRules reads all embedded rules: each pattern compiles, names are unique,
// keywords are there.
func TestRules(t *testing.T) {
	rules, err := builtinRules()
	require.NoError(t, err)
	require.Greater(t, len(rules), 200)
	seen := map[string]bool{}
	near := 0
	for _, r := range rules {
		require.False(t, seen[r.id], r.id)
		seen[r.id] = true
		require.NotEmpty(t, r.keywords, "%s: every text would be searched", r.id)
		require.LessOrEqual(t, r.group, r.pattern().NumSubexp(), r.id)
		for _, a := range r.allow {
			a.patterns()
		}
		if r.pattern().reach > 0 {
			near++
		}
	}
	require.Greater(t, near, 200, "most rules can be searched near their keywords")
	require.Len(t, RuleNames(), len(rules))
	for _, id := range guesses {
		require.True(t, seen[id], id)
	}
}

func TestReach(t *testing.T) {
	words := func(s ...string) []string { return s }
	for _, c := range []struct {
		regex string
		words []string
		want  int
	}{
		{`key=[a-z]{5}`, words("key"), 1},
		{`key [a-z]{5}!`, words("key"), 3},
		{`key[a-z]+`, words("key"), 1},
		{`key.*`, words("key"), 0},
		{`key\s*x`, words("key"), 0},
		{`key\s{0,5}x`, words("key"), 6},
		{`(?i)(?:key|kei)x`, words("KEY", "kei"), 1},
		{`(?i)(?:key|kex|other)x`, words("key", "kex"), 0},
		{`(?:key)?x`, words("key"), 0},
		{`(?:key){2}x`, words("key"), 1},
		{`(?:key){0,2}x`, words("key"), 0},
		{`k[ae]y`, words("kay", "key"), 1},
		{`k[a-z]y`, words("key"), 0},
		{`密码[!-~]{8}`, words("密码"), 15},
		{`\bkey\b`, words("key"), 1},
		{`key`, nil, 0},
		{`ke(?:y|)`, words("key"), 0},
	} {
		require.Equal(t, c.want, reach(c.regex, c.words), c.regex)
	}
}

func TestWindows(t *testing.T) {
	s := "aa bb key cc dd ee ff key gg"
	at := func(word string) [2]int { i := strings.Index(s, word); return [2]int{i, i + len(word)} }
	require.Equal(t, [][2]int{{0, len(s)}}, windows(s, nil, 0))
	require.Empty(t, windows(s, nil, 3))
	w := windows(s, [][2]int{at("key")}, 2)
	require.Equal(t, "bb key cc ", s[w[0][0]:w[0][1]][1:])
	last := strings.LastIndex(s, "key")
	require.Len(t, windows(s, [][2]int{at("key"), {last, last + 3}}, 2), 2)
	require.Len(t, windows(s, [][2]int{at("key"), {last, last + 3}}, 4), 1)
}

// FuzzNear compares the search near keywords with that of the whole text.
func FuzzNear(f *testing.F) {
	var all strings.Builder
	for _, path := range []string{"testdata/positive.jsonl", "testdata/negative.jsonl"} {
		for _, c := range corpus.Load(f, path) {
			all.WriteString(c.Text + "\n")
			f.Add(c.Text)
		}
	}
	f.Add(all.String())
	rules, err := builtinRules()
	require.NoError(f, err)
	near := testFinder(f, ``)
	whole := *near
	whole.rules = nil
	for _, r := range rules {
		p := pattern{r.pattern().Regexp, 0}
		other := *r
		other.pattern = func() pattern { return p }
		whole.rules = append(whole.rules, &other)
	}
	f.Fuzz(func(t *testing.T, s string) {
		part := &text.Part{Text: s}
		want, err := whole.Find(context.Background(), part)
		require.NoError(t, err)
		got, err := near.Find(context.Background(), part)
		require.NoError(t, err)
		require.Equal(t, covered(want, s), covered(got, s))
	})
}

// covered marks what matches cover. Where two keys stand side by side, the
// searches may part them otherwise.
func covered(list []text.Match, s string) string {
	b := []byte(regexp.MustCompile(`[^\n]`).ReplaceAllString(s, "."))
	b = append(b, make([]byte, max(0, len(s)-len(b)))...)
	for _, m := range list {
		for i := m.Start; i < m.End && i < len(b); i++ {
			b[i] = '#'
		}
	}
	return string(b)
}

func TestEntropy(t *testing.T) {
	require.Zero(t, entropy("aaaa"))
	require.InDelta(t, 1.0, entropy("abab"), 1e-9)
	require.InDelta(t, 2.0, entropy("密码口令"), 1e-9)
	require.Zero(t, entropy(""))
}

func TestAllowances(t *testing.T) {
	r := newRule(fileRule{ID: "x", Regex: `key=(\w+)`, Keywords: []string{"key"}, Allow: []fileAllow{
		{Regexes: []string{`^example`}},
		{Target: "match", Regexes: []string{`^key=m`}},
		{Target: "line", Regexes: []string{`# test`}},
		{All: true, Regexes: []string{`^a`}, StopWords: []string{"stop"}},
		{StopWords: []string{"halt"}},
	}}, rankKnown)
	for s, want := range map[string]bool{
		"key=secret":           true,
		"key=example1":         false,
		"key=mine":             false,
		"key=secret # test":    false,
		"# test\nkey=secret\n": true,
		"key=astop":            false,
		"key=a":                true,
		"key=bstop":            true,
		"key=xHALTx":           false,
	} {
		at := r.pattern().FindStringSubmatchIndex(s)
		start, end := r.secretIn(s, at)
		require.Equal(t, want, r.holds(s, [2]int{at[0], at[1]}, [2]int{start, end}), s)
	}
}

// FuzzScrub holds what must be true of every text: JSON stays JSON, no secret
// that was found is left, and what is redacted once stays as it is.
func FuzzScrub(f *testing.F) {
	for _, path := range []string{"testdata/positive.jsonl", "testdata/negative.jsonl"} {
		for _, c := range corpus.Load(f, path) {
			f.Add(c.Text)
		}
	}
	f.Add(canary + awsKey + github)
	var scrubbers []*text.Scrubber
	for _, with := range []string{"redact", "mask"} {
		scrubbers = append(scrubbers, newSecrets(f, `{"strategy":"`+with+`","canaries":["`+canary+`"]}`).Scrubber())
	}
	f.Fuzz(func(t *testing.T, in string) {
		in = strings.ToValidUTF8(in, "?")
		value := jsontext.Value(in)
		if protocol.CheckValue(value, 0) != nil {
			value = protocol.Object{{Name: "a", Value: protocol.Quote(in)}}.AppendJSON(nil)
		}
		for i, s := range scrubbers {
			clean, err := s.Value(context.Background(), value, nil, &text.Report{})
			require.NoError(t, err)
			require.NoError(t, protocol.CheckValue(clean, 0), "%s", clean)
			var left text.Report
			again, err := s.Value(context.Background(), clean, nil, &left)
			require.NoError(t, err)
			require.True(t, left.Empty(), "scrubber %d left %s in %s of %s", i, left.Kinds(), clean, value)
			require.Equal(t, string(clean), string(again))
		}
	})
}

// TestComposed glues secrets and what stands beside them together in all the
// ways that chance finds, because no fuzzer guesses secrets.
func TestComposed(t *testing.T) {
	pieces := []string{
		awsKey, github, canary, "sk-" + "0a1b2c3d4e5f60718293a4b5c6d7e8f9", "https://u:q7Lm2vZ9@db.example.com/x", "zq8kd03lwm29vx71tn45",
		"api_key=", "token: ", "password=\"", "密码是", "密钥:", "Authorization: Bearer ", "\"", "'", "`", " ", "\n", ".", ",", ";", "，", "[", "]", "x", "-", "_", "=", "\u200b", "Ａ",
	}
	r := rand.New(rand.NewPCG(3, 4))
	for _, with := range []string{"redact", "mask", "hash"} {
		s := newSecrets(t, `{"strategy":"`+with+`","canaries":["`+canary+`"]}`).Scrubber()
		for range 300 {
			var b strings.Builder
			for range 1 + r.IntN(8) {
				b.WriteString(pieces[r.IntN(len(pieces))])
			}
			var second text.Report
			out, err := s.Text(t.Context(), b.String(), &text.Report{})
			require.NoError(t, err)
			again, err := s.Text(t.Context(), out, &second)
			require.NoError(t, err)
			require.Equal(t, out, again, "%q", b.String())
			require.True(t, second.Empty(), "%q → %q", b.String(), out)
			require.NotContains(t, out, canary)
		}
	}
}
