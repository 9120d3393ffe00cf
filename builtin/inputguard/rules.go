package inputguard

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/hookd/hookd/builtin/text"
	"github.com/hookd/hookd/protocol"
)

//go:embed injection.json
var injection string

// hiddenText is the one rule that looks at the message as it came, not folded.
const hiddenText = "hidden-text"

// rule is a sort of text that is not wanted.
type rule struct {
	id string
	// about says for people what was found, as a sentence after "it seems that".
	about string
	then  action
	// words: one of them stands in every text for which the rule holds; none:
	// every text is looked at.
	words   []string
	matches func(folded string) bool
}

// embeddedRules returns the rules of injection.json and [hiddenText].
func embeddedRules() ([]*rule, error) {
	var file []struct {
		ID      string   `json:"id"`
		About   string   `json:"about"`
		Words   []string `json:"words"`
		Pattern string   `json:"pattern"`
	}
	if err := protocol.Unmarshal([]byte(injection), &file); err != nil {
		return nil, fmt.Errorf("read embedded rules: %w", protocol.JSONError(err))
	}
	list := []*rule{{id: hiddenText, about: "it holds text that can't be seen"}}
	for _, from := range file {
		compile := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(from.Pattern) })
		list = append(list, &rule{
			id: from.ID, about: from.About, words: from.Words,
			matches: func(folded string) bool { return compile().MatchString(folded) },
		})
	}
	return list, nil
}

// RuleNames returns the names of the built-in rules.
func RuleNames() (names []string) {
	list, _ := embeddedRules() // embedded: can be read
	for _, r := range list {
		names = append(names, r.id)
	}
	return names
}

// fold makes one spelling of a text: small letters, plain widths and forms,
// nothing that can't be seen but the letters of tags, one space for every white
// space.
func fold(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	space := false
	for _, r := range norm.NFKC.String(s) {
		switch {
		case 0xE0020 <= r && r <= 0xE007E: // tags: letters that are not shown
			r -= 0xE0000
		case text.Invisible(r):
			continue
		}
		if unicode.IsSpace(r) {
			space = true
			continue
		}
		if space && b.Len() > 0 {
			b.WriteByte(' ')
		}
		space = false
		b.WriteRune(unicode.ToLower(punctuation(r)))
	}
	return b.String()
}

// punctuation gives typographic quotes and dashes the plain form.
func punctuation(r rune) rune {
	switch r {
	case '‘', '’', '‛':
		return '\''
	case '“', '”', '„':
		return '"'
	case '‐', '‑', '‒', '–', '—', '―':
		return '-'
	}
	return r
}

// minTags is how many letters of tags are text. Fewer, and those of flags, are
// not.
const minTags = 4

// hidesText reports whether a message holds text in letters that no screen
// shows.
func hidesText(s string) bool {
	const blackFlag, cancel = 0x1F3F4, 0xE007F
	tags, flag := 0, false
	for _, r := range s {
		switch {
		case r == blackFlag:
			flag = true
		case r == cancel:
			flag = false
		case 0xE0020 <= r && r <= 0xE007E:
			if tags++; flag {
				tags--
			}
		default:
			flag = false
		}
	}
	return tags >= minTags
}
