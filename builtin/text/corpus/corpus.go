// Package corpus measures how well a finder finds, for tests: a table of texts,
// what is to be found in each, and how much of it is.
package corpus

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/builtin/text"
)

// Case is a text with what is to be found in it: pairs of a kind and a value.
type Case struct {
	Text  string      `json:"text"`
	Found [][2]string `json:"found"`
	// Name is that of the member that the text is the value of; may be empty.
	Name string `json:"name"`
}

// Joint stands within the values of a table that others would take for real
// ones; it is taken out when the table is read.
const Joint = "¦"

// Load reads a table: one case in JSON per line.
func Load(t testing.TB, path string) []Case {
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	dec := jsontext.NewDecoder(bytes.NewBufferString(strings.ReplaceAll(string(data), Joint, "")))
	var cases []Case
	for dec.PeekKind() == '{' {
		var c Case
		require.NoError(t, json.UnmarshalDecode(dec, &c, json.RejectUnknownMembers(true)), "%s: case %d", path, len(cases)+1)
		cases = append(cases, c)
	}
	require.NotEmpty(t, cases)
	return cases
}

// Score counts what was found.
type Score struct {
	Kind string
	// Hits were to be found and were, Missed were not. Wrong were found and not
	// to be found.
	Hits, Missed, Wrong int
}

// Precision returns which share of what was found was to be found.
func (s Score) Precision() float64 { return share(s.Hits, s.Wrong) }

// Recall returns which share of what was to be found was found.
func (s Score) Recall() float64 { return share(s.Hits, s.Missed) }

func share(n, rest int) float64 {
	if n+rest == 0 {
		return 1
	}
	return float64(n) / float64(n+rest)
}

// Measure lets a finder search all cases and counts, by kind and, as the last
// score, in all. A place counts as found only when it is the whole value and
// nothing more, and of the right kind. Differences are logged.
func Measure(t testing.TB, f text.Finder, cases []Case) []Score {
	scores := map[string]*Score{}
	score := func(kind string) *Score {
		if scores[kind] == nil {
			scores[kind] = &Score{Kind: kind}
		}
		return scores[kind]
	}
	all := &Score{Kind: "all"}
	for _, c := range cases {
		left := slices.Clone(c.Found)
		for _, got := range find(t, f, c) {
			if at := slices.Index(left, got); at >= 0 {
				left = slices.Delete(left, at, at+1)
				score(got[0]).Hits++
				all.Hits++
				continue
			}
			t.Logf("wrong: %s %q in %q", got[0], got[1], c.Text)
			score(got[0]).Wrong++
			all.Wrong++
		}
		for _, want := range left {
			t.Logf("missed: %s %q in %q", want[0], want[1], c.Text)
			score(want[0]).Missed++
			all.Missed++
		}
	}
	var list []Score
	for _, s := range scores {
		list = append(list, *s)
	}
	slices.SortFunc(list, func(a, b Score) int { return cmp.Compare(a.Kind, b.Kind) })
	return append(list, *all)
}

func find(t testing.TB, f text.Finder, c Case) (found [][2]string) {
	folded := text.Fold(c.Text)
	list, err := f.Find(context.Background(), &text.Part{Text: folded.Text, Name: c.Name})
	require.NoError(t, err)
	for _, m := range text.Settle(list) {
		start, end := folded.Place(m.Start, m.End)
		found = append(found, [2]string{m.Kind, c.Text[start:end]})
	}
	return found
}

// Table writes scores as a table in Markdown.
func Table(scores []Score) string {
	var b strings.Builder
	b.WriteString("| kind | to be found | found | wrongly found | precision | recall |\n|---|---|---|---|---|---|\n")
	for _, s := range scores {
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %.1f %% | %.1f %% |\n", s.Kind, s.Hits+s.Missed, s.Hits, s.Wrong, 100*s.Precision(), 100*s.Recall())
	}
	return b.String()
}

var measured = regexp.MustCompile(`(?s)<!-- measured -->\n.*?<!-- end -->`)

// InDocs fails when a page says something else between <!-- measured --> and
// <!-- end -->; with update, it writes what was measured there.
func InDocs(t testing.TB, page, what string, update bool) {
	data, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Len(t, measured.FindAll(data, -1), 1, page)
	fresh := measured.ReplaceAllLiteralString(string(data), "<!-- measured -->\n\n"+what+"\n<!-- end -->")
	if update && fresh != string(data) {
		require.NoError(t, os.WriteFile(page, []byte(fresh), 0o644))
		return
	}
	require.Equal(t, fresh, string(data), "%s is not fresh: run the test with -update", page)
}
