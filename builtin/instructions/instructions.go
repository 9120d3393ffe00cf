package instructions

import (
	"context"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/zap"

	"github.com/hookd/hookd/builtin/conversation"
	"github.com/hookd/hookd/builtin/sessions"
	"github.com/hookd/hookd/builtin/text"
	"github.com/hookd/hookd/condition"
	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// Table holds what each session was given.
type Table = sessions.Table[given]

// NewTable returns an empty table for at most this many sessions; 0 means
// [sessions.Most].
func NewTable(most int) *Table { return sessions.New[given](most) }

// given is what a session has.
type given struct {
	asks  bool            // its agent has inject_instructions
	items map[string]bool // by id, those that are given once
}

// Instructions is an interceptor that gives texts to models. Make it with [New];
// it needs no closing.
type Instructions struct {
	items []*item
	table *Table
}

// item is one text.
type item struct {
	at     string // its place in the config
	id     string
	text   string
	path   string
	file   *file // nil when text is it
	when   *condition.Condition
	stages []protocol.Stage
	once   bool
}

// New makes Instructions. folder is where relative paths start; files must be
// there. The error is a *[builtin.ConfigError].
func New(config jsontext.Value, folder string, table *Table, log *zap.Logger) (*Instructions, error) {
	items, err := readConfig(config)
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		log.Warn("the config of the hook has no instructions: it gives nothing")
	}
	for _, it := range items {
		if it.path == "" {
			continue
		}
		if it.file, err = open(folder, it.path, log); err != nil {
			return nil, problem(it.at+"/file", "%w", err)
		}
	}
	return &Instructions{items, table}, nil
}

// Stages are where texts are given.
func (*Instructions) Stages() []protocol.Stage {
	return []protocol.Stage{protocol.StageInjectInstructions, protocol.StageBeforeLLM}
}

// Events are what Instructions are told.
func Events() []string {
	return []string{string(protocol.EventSessionEnd), string(protocol.EventAfterCompact)}
}

// Observe forgets what was given where that is gone.
func (in *Instructions) Observe(_ context.Context, ev *hook.Event) error {
	switch ev.Kind {
	case protocol.EventSessionEnd:
		in.table.Drop(sessions.Key(ev.Meta))
	case protocol.EventAfterCompact:
		in.table.Look(sessions.Key(ev.Meta), func(g *given) { g.items = nil })
	}
	return nil
}

// Intercept gives the texts that are due.
func (in *Instructions) Intercept(_ context.Context, req *protocol.Request) (protocol.Decision, error) {
	due := in.due(req)
	var texts []string
	for _, it := range due {
		s := it.text
		if it.file != nil {
			s = it.file.current()
		}
		if s != "" { // an empty file
			texts = append(texts, s)
		}
	}
	switch {
	case len(texts) == 0:
		return protocol.Decision{}, nil
	case req.Stage.Name == protocol.StageInjectInstructions:
		return protocol.Decision{AddContext: texts}, nil
	}
	return addMessages(req, texts), nil
}

// due returns what a call is to be given, and notes it.
func (in *Instructions) due(req *protocol.Request) (due []*item) {
	stage := req.Stage.Name
	var meant []*item
	for _, it := range in.items {
		if slices.Contains(it.stages, stage) && (it.when == nil || it.when.Holds(req)) {
			meant = append(meant, it)
		}
	}
	choose := func(g *given) {
		for _, it := range meant {
			elsewhere := stage == protocol.StageBeforeLLM && g.asks && slices.Contains(it.stages, protocol.StageInjectInstructions)
			if !elsewhere && (!it.once || !g.items[it.id]) {
				due = append(due, it)
			}
		}
	}
	key := sessions.Key(req.Meta)
	if req.DryRun {
		if !in.table.Look(key, choose) {
			choose(&given{})
		}
		return due
	}
	in.table.Do(key, func(g *given) {
		g.asks = g.asks || stage == protocol.StageInjectInstructions
		choose(g)
		for _, it := range due {
			if it.once {
				g.note(it.id)
			}
		}
	})
	return due
}

// maxGiven is how many texts are remembered of a session; reloads bring others.
const maxGiven = 1000

func (g *given) note(id string) {
	if g.items == nil || len(g.items) >= maxGiven {
		g.items = map[string]bool{}
	}
	g.items[id] = true
}

// addMessages puts texts behind the system messages with which a request
// begins, but for those that stand there already.
func addMessages(req *protocol.Request, texts []string) protocol.Decision {
	old := req.Subject.Get("messages")
	list := conversation.Read(old)
	at := 0
	for at < len(list) && list[at].System() {
		at++
	}
	var added []conversation.Message
	for _, s := range texts {
		if !slices.ContainsFunc(list, func(m conversation.Message) bool { return m.System() && m.Content() == s }) {
			added = append(added, conversation.New("system", s))
		}
	}
	if len(added) == 0 {
		return protocol.Decision{}
	}
	d := text.Change(req.Stage, old, conversation.Value(slices.Insert(list, at, added...)))
	d.Reason = "instructions were added"
	return d
}
