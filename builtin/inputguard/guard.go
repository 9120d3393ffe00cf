package inputguard

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/zap"

	"github.com/hookd/hookd/builtin/text"
	"github.com/hookd/hookd/protocol"
)

// Guard is an interceptor of what users say. Make it with [New]; it needs no
// closing.
type Guard struct {
	rules    *rules
	words    *wordList
	keywords *text.Keywords // one list for each of rules.list
}

// New makes a Guard. folder is where a relative path of a file starts. The error
// is a *[builtin.ConfigError].
func New(config jsontext.Value, folder string, log *zap.Logger) (*Guard, error) {
	r, err := newRules(config)
	if err != nil {
		return nil, err
	}
	if err := r.loadWords(folder); err != nil {
		return nil, err
	}
	if r.MaxLength == 0 && len(r.words) == 0 && len(r.list) == 0 {
		log.Warn("the config of the hook switches everything off: it lets all messages pass")
	}
	var keywords [][]string
	for _, rule := range r.list {
		keywords = append(keywords, rule.words)
	}
	return &Guard{rules: r, words: newWordList(r.words), keywords: text.NewKeywords(keywords)}, nil
}

// Stages are where a Guard is asked.
func (*Guard) Stages() []protocol.Stage { return []protocol.Stage{protocol.StageUserMessage} }

// Intercept denies a message for which a rule holds that denies, with the first
// of them as the reason. Rules that warn make warnings.
func (g *Guard) Intercept(ctx context.Context, req *protocol.Request) (protocol.Decision, error) {
	message := req.Subject.Get("message")
	if message == nil {
		return protocol.Decision{}, nil
	}
	texts := textsOf(message)
	found := &findings{}
	if most := g.rules.MaxLength; most > 0 {
		if n := length(message, texts); n > most {
			found.add(g.rules.MaxLengthAction, "max_length: it has %d characters, %d at most", n, most)
			if found.deny != "" {
				return found.decision(), nil // the longer it is, the less it is worth reading
			}
		}
	}
	joined := []string{strings.Join(texts, "\n")}
	if len(texts) > 1 {
		// A word could be cut in two by the end of a block.
		joined = append(joined, content(message))
	}
	for _, s := range joined {
		if err := g.look(ctx, s, found); err != nil {
			return protocol.Decision{}, err
		}
	}
	return found.decision(), nil
}

// look applies words and rules to one text.
func (g *Guard) look(ctx context.Context, s string, found *findings) error {
	folded := fold(s)
	g.words.in(folded, func(w *word) {
		found.add(w.then, "%s_words: it holds a word that is not wanted here", w.then)
	})
	for _, hit := range g.keywords.In(folded) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r := g.rules.list[hit.List]
		if r.id == hiddenText && hidesText(s) || r.matches != nil && r.matches(folded) {
			found.add(r.then, "%s: %s", r.id, r.about)
		}
	}
	return nil
}

// textsOf returns the texts of a message.
func textsOf(message jsontext.Value) (texts []string) {
	text.Rewrite(message, text.IDs, func(p *text.Part) (string, bool) {
		if !p.Media {
			texts = append(texts, p.Text)
		}
		return "", false
	})
	return texts
}

// content returns the text of a message's content, all blocks in one.
func content(message jsontext.Value) string {
	members, _ := protocol.ParseObject(message) // checked when it came
	return protocol.ContentText(members.Get("content"))
}

// length returns how many characters a message has: those of its content, or of
// all its texts when there is none.
func length(message jsontext.Value, texts []string) int {
	if n := utf8.RuneCountInString(content(message)); n > 0 {
		return n
	}
	n := 0
	for _, s := range texts {
		n += utf8.RuneCountInString(s)
	}
	return n
}

// findings collects for which rules a message holds.
type findings struct {
	deny  string // the first reason to deny
	warns []string
}

func (f *findings) add(then action, format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	if then == deny {
		if f.deny == "" {
			f.deny = what
		}
		return
	}
	for _, w := range f.warns {
		if w == what {
			return
		}
	}
	f.warns = append(f.warns, what)
}

func (f *findings) decision() protocol.Decision {
	d := protocol.Decision{}
	for _, w := range f.warns {
		d.Warnings = append(d.Warnings, "the message may be unwanted: "+w)
	}
	if f.deny != "" {
		d.Action, d.Reason = protocol.ActionDeny, "the message was refused: "+f.deny
	}
	return d
}
