package secrets

import (
	"context"
	"strings"

	"github.com/hookd/hookd/builtin/text"
)

// finder finds secrets in texts.
type finder struct {
	rules    []*rule // those that are not off
	with     []text.Strategy
	labels   []string
	keywords *text.Keywords
	reaching bool // a keyword may reach from a member's name into its value
	allow    *text.Allow
	canaries *canaries
}

// canaryKind and canaryLabel name what is found where a canary is.
const (
	canaryKind  = "canary"
	canaryLabel = "[canary]"
)

// Find returns the secrets in a part. A member's name counts for what they are:
// "api_key" before a value tells more than the value.
func (f *finder) Find(ctx context.Context, p *text.Part) ([]text.Match, error) {
	var found []text.Match
	for _, at := range f.canaries.find(p.Text) {
		found = append(found, text.Match{Start: at[0], End: at[1], Kind: canaryKind, Rank: rankCanary, With: text.Block, Label: canaryLabel})
	}
	if p.Media || p.Form == text.Number {
		return found, nil
	}
	s, shift := p.Text, 0
	if p.Name != "" {
		if !f.reaching && !f.keywords.Any(p.Name) && !f.keywords.Any(p.Text) {
			return found, nil
		}
		s = p.Name + `":"` + p.Text + `"`
		shift = len(p.Name) + len(`":"`)
	}
	for _, hit := range f.keywords.In(s) {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		for _, w := range windows(s, hit.Places, f.rules[hit.List].pattern().reach) {
			found = f.apply(hit.List, s, w, shift, len(p.Text), found)
		}
	}
	return found, nil
}

// apply lets one rule search a window of s, of which size bytes from shift on
// are the text.
func (f *finder) apply(i int, s string, window [2]int, shift, size int, found []text.Match) []text.Match {
	r := f.rules[i]
	for _, at := range r.pattern().FindAllStringSubmatchIndex(s[window[0]:window[1]], -1) {
		for k := range at {
			if at[k] >= 0 {
				at[k] += window[0]
			}
		}
		start, end := r.secretIn(s, at)
		if !r.holds(s, [2]int{r.withLead(s, at[0]), at[1]}, [2]int{start, end}) {
			continue
		}
		start, end = max(start-shift, 0), min(end-shift, size)
		if start >= end {
			continue // it is in the name
		}
		value := s[shift+start : shift+end]
		m := text.Match{
			Start: start, End: end, Kind: r.id, Rank: r.rank, With: f.with[i], Label: f.labels[i], Masked: r.masked(value), Value: value,
		}
		if f.allow.Has(value) {
			m.With = text.Off
		}
		found = append(found, m)
	}
	return found
}

// masked shows the first four characters of a long key, by which its owner knows
// it, and not how long it is. Nothing is shown of a password.
func (r *rule) masked(secret string) string {
	const shown, long = 4, 16
	if r.rank == rankGuess || len(secret) < long || strings.HasPrefix(secret, "-----") {
		return "****"
	}
	return strings.ToValidUTF8(secret[:shown], "") + "****"
}
