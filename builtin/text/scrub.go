package text

import (
	"context"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Finder looks for places. It is called concurrently.
type Finder interface {
	// Find returns the matches in p.Text, in any order; they may overlap. The
	// text is folded (see [Fold]). The error is that of ctx when it has ended.
	Find(ctx context.Context, p *Part) ([]Match, error)
}

// Scrubber replaces what a finder finds. It does not change.
type Scrubber struct {
	Finder Finder
	// Key is that of hashes.
	Key []byte
}

// maxRounds is how often a text is searched again after something was replaced
// in it. Two rounds are usual: one that finds, one that finds nothing more.
const maxRounds = 8

// Value scrubs the texts of a checked value; see [Rewrite] for keep. It returns
// the new value, the same when nothing was found, and tells r what was. An error
// is that of ctx.
func (s *Scrubber) Value(ctx context.Context, v jsontext.Value, keep Keep, r *Report) (jsontext.Value, error) {
	var failed error
	out, _ := Rewrite(v, keep, func(p *Part) (string, bool) {
		if failed != nil {
			return "", false
		}
		var edited string
		var changed bool
		edited, changed, failed = s.part(ctx, p, r)
		return edited, changed
	})
	if failed != nil {
		return nil, failed
	}
	return out, nil
}

// Text scrubs a text that stands by itself.
func (s *Scrubber) Text(ctx context.Context, text string, r *Report) (string, error) {
	p := &Part{Text: text, Media: isMedia(text)}
	edited, changed, err := s.part(ctx, p, r)
	if !changed {
		return text, err
	}
	return edited, err
}

// part scrubs one part until nothing is found in it any more.
func (s *Scrubber) part(ctx context.Context, p *Part, r *Report) (out string, changed bool, err error) {
	at := *p
	out = p.Text
	for range maxRounds {
		folded := Fold(out)
		at.Text = folded.Text
		list, err := s.Finder.Find(ctx, &at)
		if err != nil {
			return "", false, err
		}
		next, hit := s.replace(&folded, list, p.Form, r)
		if !hit {
			return out, changed, nil
		}
		out, changed = next, true
	}
	// Replacements that make new matches again and again: nothing of it stays.
	return "[…]", true, nil
}

// replace puts replacements in the places of matches.
func (s *Scrubber) replace(f *Folded, list []Match, form Form, r *Report) (out string, hit bool) {
	var b strings.Builder
	last := 0
	for _, m := range Settle(list) {
		if m.With == Off {
			continue
		}
		start, end := f.Place(m.Start, m.End)
		b.WriteString(f.from[last:start])
		quote := ""
		if form == String {
			quote = quoteFor(f.Text, m)
		}
		b.WriteString(quote + m.replacement(s.Key) + quote)
		last, hit = end, true
		r.add(m)
	}
	if !hit {
		return "", false
	}
	b.WriteString(f.from[last:])
	return b.String(), true
}

// quoteFor returns the quotes that a replacement needs where a text holds a
// piece of JSON in which a number is replaced: `"phone": 123`.
func quoteFor(s string, m Match) string {
	if strings.Trim(s[m.Start:m.End], "0123456789") != "" {
		return ""
	}
	before, ok := strings.CutSuffix(strings.TrimRight(s[:m.Start], " \t"), ":")
	if !ok || !strings.HasSuffix(before, `"`) {
		return ""
	}
	if strings.HasSuffix(before, `\"`) {
		return `\"`
	}
	return `"`
}
