package secrets

import (
	"context"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/zap"

	"github.com/hookd/hookd/builtin/text"
	"github.com/hookd/hookd/protocol"
)

// Secrets is an interceptor that keeps keys, tokens, passwords and canaries from
// passing. Make it with [New]; it needs no closing.
type Secrets struct {
	scrubber  text.Scrubber
	arguments text.Scrubber // for before_tool
	answer    text.Scrubber // for after_llm: canaries only
	atTool    argumentStrategy
	canaries  *canaries
}

// New makes a Secrets. folder is where relative paths of files start. key is
// used for hashes when config names none; when it is empty too, a random one is
// made, and hashes of the same value differ from hook to hook and from start to
// start. The error is a *[builtin.ConfigError].
func New(config jsontext.Value, folder string, key []byte, log *zap.Logger) (*Secrets, error) {
	set, err := readSetup(config)
	if err != nil {
		return nil, err
	}
	if key, err = set.Load(folder, key); err != nil {
		return nil, err
	}
	list, err := set.loadCanaries(folder)
	if err != nil {
		return nil, err
	}
	if !set.Given() && slices.Contains(set.with, text.Hash) {
		log.Info("no hash_key is configured: the hashes of secrets are others after a restart")
	}
	s := &Secrets{atTool: set.BeforeTool, canaries: newCanaries(list)}
	all := newFinder(set, s.canaries)
	s.scrubber = text.Scrubber{Finder: all, Key: key}
	s.answer = text.Scrubber{Finder: &finder{keywords: text.NewKeywords(nil), canaries: s.canaries}}
	s.arguments = text.Scrubber{Finder: all.atTool(set.BeforeTool), Key: key}
	return s, nil
}

// newFinder prepares the rules that are not off.
func newFinder(set *setup, c *canaries) *finder {
	f := &finder{allow: set.allow, canaries: c}
	var words [][]string
	for i, r := range set.rules {
		if set.with[i] == text.Off {
			continue
		}
		f.rules, f.with = append(f.rules, r), append(f.with, set.with[i])
		f.labels = append(f.labels, strings.ReplaceAll(set.Label, "{rule}", r.id))
		words = append(words, r.keywords)
		f.reaching = f.reaching || slices.ContainsFunc(r.keywords, func(w string) bool { return w == ":" || strings.Contains(w, `"`) })
	}
	f.keywords = text.NewKeywords(words)
	return f
}

// atTool returns the finder for a tool's arguments: what is blocked stays
// blocked, the rest has this strategy.
func (f *finder) atTool(strategy argumentStrategy) *finder {
	g := *f
	g.with = slices.Clone(f.with)
	for i, with := range g.with {
		if with != text.Block {
			g.with[i] = text.Strategy(strategy)
			if strategy == ask {
				g.with[i] = text.Redact
			}
		}
	}
	return &g
}

// Stages are where a Secrets is asked; with canaries also after the model has
// answered, because not every agent asks at its output.
func (s *Secrets) Stages() []protocol.Stage {
	stages := []protocol.Stage{
		protocol.StageUserMessage, protocol.StageBeforeLLM, protocol.StageBeforeTool, protocol.StageAfterTool, protocol.StageOutput,
	}
	if len(s.canaries.spellings) > 0 {
		stages = append(stages, protocol.StageAfterLLM)
	}
	return stages
}

// Intercept denies canaries and what is blocked, and replaces the rest.
func (s *Secrets) Intercept(ctx context.Context, req *protocol.Request) (protocol.Decision, error) {
	switch {
	case req.Stage.Allows(protocol.ActionDeny) && s.holdsCanary(req):
		return protocol.Decision{
			Action: protocol.ActionDeny,
			Reason: "found in " + text.Noun(req.Stage.Name) + ": a canary, a string that must never come out. Find out how it got there.",
		}, nil
	case req.Stage.Name == protocol.StageAfterLLM:
		return s.answer.Judge(ctx, req)
	case req.Stage.Name != protocol.StageBeforeTool:
		return s.scrubber.Judge(ctx, req)
	}
	d, err := s.arguments.Judge(ctx, req)
	if err == nil && s.atTool == ask && d.Action == protocol.ActionModify {
		found := strings.TrimPrefix(d.Reason, text.Replaced)
		return protocol.Decision{Action: protocol.ActionAsk, Reason: "found in the tool's arguments: " + found}, nil
	}
	return d, err
}

// holdsCanary looks for canaries in all that a request is about, IDs, options
// and definitions of tools among it.
func (s *Secrets) holdsCanary(req *protocol.Request) bool {
	if len(s.canaries.spellings) == 0 {
		return false
	}
	found := false
	for _, m := range req.Subject {
		text.Rewrite(m.Value, nil, func(p *text.Part) (string, bool) {
			found = found || s.canaries.in(text.Fold(p.Text).Text)
			return "", false
		})
	}
	return found
}

// Scrubber returns what replaces secrets in texts, for those who have no request.
func (s *Secrets) Scrubber() *text.Scrubber { return &s.scrubber }
