package text

import (
	"fmt"
	"slices"
	"strings"
)

// Report says what was found, by kind and never by value. The zero value is an
// empty one.
type Report struct {
	kinds  []string // in the order in which they were found
	counts map[string]int
	// Blocked are the kinds that were found and may not pass.
	Blocked []string
}

func (r *Report) add(m Match) {
	if r.counts == nil {
		r.counts = map[string]int{}
	}
	if r.counts[m.Kind] == 0 {
		r.kinds = append(r.kinds, m.Kind)
	}
	r.counts[m.Kind]++
	if m.With == Block && !slices.Contains(r.Blocked, m.Kind) {
		r.Blocked = append(r.Blocked, m.Kind)
	}
}

// Empty reports whether nothing was found.
func (r *Report) Empty() bool { return len(r.kinds) == 0 }

// Count returns how many of a kind were found.
func (r *Report) Count(kind string) int { return r.counts[kind] }

// Kinds returns what was found, for people: "2 × phone, email".
func (r *Report) Kinds() string {
	var parts []string
	for _, kind := range r.kinds {
		if n := r.counts[kind]; n > 1 {
			kind = fmt.Sprintf("%d × %s", n, kind)
		}
		parts = append(parts, kind)
	}
	return strings.Join(parts, ", ")
}
