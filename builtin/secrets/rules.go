package secrets

import (
	_ "embed"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/hookd/hookd/protocol"
)

// The rules of gitleaks (MIT, see rules/LICENSE.gitleaks), written by gen from
// the module itself, and those of hookd beside them.
//
//go:generate go -C gen run .
var (
	//go:embed rules/gitleaks.json
	gitleaksRules string
	//go:embed rules/hookd.json
	hookdRules string
)

// ruleFile is a file of rules.
type ruleFile struct {
	Source string     `json:"source"`
	Allow  fileAllow  `json:"allow"` // holds for all rules of the file
	Rules  []fileRule `json:"rules"`
}

type fileRule struct {
	ID       string      `json:"id"`
	Regex    string      `json:"regex"`
	Group    int         `json:"group"`
	Entropy  float64     `json:"entropy"`
	Keywords []string    `json:"keywords"`
	Allow    []fileAllow `json:"allow"`
}

// fileAllow says what is no secret though it looks like one.
type fileAllow struct {
	// All: every condition must hold, else one of them.
	All bool `json:"all"`
	// Target is what Regexes are laid on: "" the secret, "match" all that the
	// rule matched, "line" the whole line.
	Target  string   `json:"target"`
	Regexes []string `json:"regexes"`
	// StopWords stand in the secret, upper and lower case the same.
	StopWords []string `json:"stop_words"`
}

// rule is one sort of secret. Its patterns are compiled when they are needed
// for the first time: there are many, and most never are.
type rule struct {
	id       string
	keywords []string // one of them stands in every text that holds a secret
	entropy  float64
	group    int
	rank     int
	pattern  func() pattern
	allow    []*allowance
	// lead: a match begins up to maxLead word characters before what the pattern
	// finds.
	lead bool
}

// pattern is what finds secrets.
type pattern struct {
	*regexp.Regexp
	// reach is how far from a keyword it is searched, see [reach]; 0 means
	// everywhere.
	reach int
}

// allowance is a fileAllow that is ready to be used.
type allowance struct {
	fileAllow
	patterns func() []*regexp.Regexp
}

// Ranks of rules: where two find the same text, the one that knows what it is
// names it.
const (
	rankCanary = iota
	rankOwn    // from the config
	rankKnown
	rankGuess
)

// guesses are the rules that go by what stands before a value.
var guesses = []string{"generic-api-key", "password-assignment", "password-in-environment", "password-zh", "key-zh", "authorization-header", "url-credentials", "llm-api-key"}

// builtinRules returns the embedded rules.
func builtinRules() ([]*rule, error) {
	var all []*rule
	for _, text := range []string{hookdRules, gitleaksRules} {
		var f ruleFile
		if err := protocol.Unmarshal([]byte(text), &f); err != nil {
			return nil, fmt.Errorf("read embedded rules: %w", protocol.JSONError(err))
		}
		for _, from := range f.Rules {
			r := newRule(from, rankKnown)
			if slices.Contains(guesses, r.id) {
				r.rank = rankGuess
			}
			r.allow = append(r.allow, newAllowance(f.Allow))
			all = append(all, r)
		}
	}
	return all, nil
}

func newRule(from fileRule, rank int) *rule {
	r := &rule{id: from.ID, keywords: rarer(from.ID, from.Keywords), entropy: from.Entropy, group: from.Group, rank: rank}
	adapted := adapt(from.Regex)
	if rest, ok := strings.CutPrefix(adapted, leadRegex); ok {
		adapted, r.lead = "(?i)"+rest, true
	}
	r.pattern = sync.OnceValue(func() pattern {
		return pattern{regexp.MustCompile(adapted), reach(adapted, r.keywords)}
	})
	for _, a := range from.Allow {
		r.allow = append(r.allow, newAllowance(a))
	}
	return r
}

// leadRegex begins many rules of gitleaks, to take in the name that a key has. It
// makes searching slow, so hookd looks back by itself: see [rule.withLead].
const (
	leadRegex = "(?i)[\\w.-]{0,50}?"
	maxLead   = 50
)

// withLead returns where a match begins that the pattern found at a place of s.
func (r *rule) withLead(s string, start int) int {
	if !r.lead {
		return start
	}
	for from := start; start > 0 && from-start < maxLead && ofToken(s[start-1]) && strings.IndexByte("+/=\\", s[start-1]) < 0; {
		start--
	}
	return start
}

// adapt makes a rule of gitleaks fit for texts. The rules are made for files of
// code, in which neither a full stop nor Chinese follows a secret: here it ends
// also where a word of a sentence does.
func adapt(regex string) string {
	const inCode, inText = "(?:[\\x60'\"\\s;]|\\\\[nr]|$)", "(?:[\\x60'\"\\s;,)\\]}<>&|]|[^\\x00-\\x7F]|\\.(?:\\s|$)|\\\\[nr]|$)"
	return strings.ReplaceAll(regex, inCode, inText)
}

// rarer are keywords in the place of some that stand in many texts. Each match
// of these rules holds them too.
func rarer(id string, keywords []string) []string {
	switch id {
	case "jwt":
		return []string{"eyj", "eya"} // {" and {space in base64, instead of {
	case "kubernetes-secret-yaml":
		return []string{"kind:"} // instead of secret
	}
	return keywords
}

func newAllowance(from fileAllow) *allowance {
	return &allowance{from, sync.OnceValue(func() []*regexp.Regexp {
		var list []*regexp.Regexp
		for _, regex := range from.Regexes {
			list = append(list, regexp.MustCompile(regex))
		}
		return list
	})}
}

// secretIn returns where in a match the secret is. at are the places of a match
// and its groups.
func (r *rule) secretIn(s string, at []int) (start, end int) {
	start, end = r.groupIn(at)
	for r.rank == rankGuess && end > start && strings.IndexByte(".,;", s[end-1]) >= 0 {
		end-- // the end of a sentence
	}
	return start, end
}

func (r *rule) groupIn(at []int) (start, end int) {
	if r.group > 0 && 2*r.group+1 < len(at) && at[2*r.group] >= 0 {
		return at[2*r.group], at[2*r.group+1]
	}
	for i := 2; i+1 < len(at); i += 2 {
		if at[i] >= 0 && at[i+1] > at[i] {
			return at[i], at[i+1]
		}
	}
	return at[0], at[1]
}

// holds reports whether a match is a secret: it looks random enough, and is none
// of what is known to be harmless.
func (r *rule) holds(s string, match, secret [2]int) bool {
	value := s[secret[0]:secret[1]]
	if value == "" || r.entropy > 0 && entropy(value) <= r.entropy {
		return false
	}
	return !slices.ContainsFunc(r.allow, func(a *allowance) bool { return a.allows(s, match, value) })
}

// allows reports whether the conditions hold.
func (a *allowance) allows(s string, match [2]int, secret string) bool {
	target := secret
	switch a.Target {
	case "match":
		target = s[match[0]:match[1]]
	case "line":
		start := strings.LastIndexByte(s[:match[0]], '\n') + 1
		end := len(s)
		if n := strings.IndexByte(s[match[1]:], '\n'); n >= 0 {
			end = match[1] + n
		}
		target = s[start:end]
	}
	matches := slices.ContainsFunc(a.patterns(), func(re *regexp.Regexp) bool { return re.MatchString(target) })
	if a.All && len(a.Regexes) > 0 != matches {
		return false
	}
	if !a.All && matches {
		return true
	}
	if len(a.StopWords) == 0 {
		return a.All && matches
	}
	lower := strings.ToLower(secret)
	return slices.ContainsFunc(a.StopWords, func(w string) bool { return strings.Contains(lower, w) })
}

// entropy returns how much a text surprises, in bits per character (Shannon).
func entropy(s string) float64 {
	counts := map[rune]int{}
	n := 0
	for _, r := range s {
		counts[r]++
		n++
	}
	bits := 0.0
	for _, count := range counts {
		p := float64(count) / float64(n)
		bits -= p * math.Log2(p)
	}
	return bits
}
