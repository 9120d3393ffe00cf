// Package mount attaches hooks: it makes a running hook of an entry of the
// config. An entry of a built-in becomes a Go value in this process. An entry
// of a process becomes a child that is started, greeted, watched and started
// again by a supervisor; what it may not do stands in the config, what it can
// do it says when it is greeted.
package mount

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/zap"

	"github.com/hookd/hookd/config"
	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// Builtin is a kind of hook that runs inside hookd and that a config may name.
type Builtin struct {
	// Name is the key under hooks.builtins.
	Name string
	// Validate reports what is wrong in an entry's config, which is nil when the
	// entry has none. It opens and starts nothing. A [ConfigError] names the
	// place. A nil Validate means that the entry takes no config.
	Validate func(config jsontext.Value) error
	// New makes the hook, a value that fills a role of package hook. If it has a
	// method Close() error, that is called when the hook is not needed any more.
	New func(c BuiltinContext) (any, error)
	// Priority is that of an entry which does not say. Those that ship have tens,
	// security first; 0 to 9 stay free for what must come before them.
	Priority int
	// Timeout is that of an entry which does not say, for its interceptor stages; 0
	// = as the config has it for all.
	Timeout time.Duration
	// Events and Stages are what the hook is told and asked when its entry does
	// not say. Nil means all that its roles allow.
	Events []string
	Stages []protocol.Stage
	// When is for which calls it is asked as an approver when its entry does not
	// say; empty means [hook.Always].
	When hook.When
}

// BuiltinContext is what a built-in is made from.
type BuiltinContext struct {
	// Name is the entry's.
	Name string
	// Config has passed Validate; nil when the entry has none.
	Config jsontext.Value
	// Folder is where relative paths in Config start.
	Folder string
	// Generation is the first one that the hook is part of.
	Generation uint64
	// Log bears the hook's name.
	Log *zap.Logger
}

// ConfigError is an error that names its place in the config of a built-in.
type ConfigError interface {
	error
	// JSONPointer is the place within the config, such as "/path"; "" is all of
	// it. The text of the error may name it too.
	JSONPointer() string
}

// Registry holds the built-ins that a config may name. It does not change.
type Registry struct{ builtins map[string]Builtin }

// NewRegistry returns a registry of these built-ins. Names that are empty or
// stand twice, a missing New, and events or stages that don't exist are errors.
func NewRegistry(builtins ...Builtin) (*Registry, error) {
	r := &Registry{builtins: map[string]Builtin{}}
	for _, b := range builtins {
		if err := r.add(b); err != nil {
			return nil, fmt.Errorf("register built-in %q: %w", b.Name, err)
		}
	}
	return r, nil
}

func (r *Registry) add(b Builtin) error {
	switch _, twice := r.builtins[b.Name]; {
	case b.Name == "":
		return errors.New("it has no name")
	case twice:
		return errors.New("the name stands twice")
	case b.New == nil:
		return errors.New("it has no New")
	}
	if _, err := subscriptions(b.Events); err != nil {
		return err
	}
	for _, s := range b.Stages {
		if names := protocol.StageNames(); !slices.Contains(names, string(s)) {
			return fmt.Errorf("unknown stage %q%s", s, protocol.DidYouMean(string(s), names))
		}
	}
	r.builtins[b.Name] = b
	return nil
}

// Names returns the names of the built-ins, sorted.
func (r *Registry) Names() []string { return slices.Sorted(maps.Keys(r.builtins)) }

// Priority is when an entry's hook is asked: what the entry says, else what its
// built-in does.
func (r *Registry) Priority(e *config.Entry) int {
	if !e.Prioritised && e.Source == hook.InProcess {
		return r.builtins[e.Name].Priority
	}
	return e.Priority
}

// Check reports what is wrong with the entry of a built-in. It is a
// [config.Checker].
func (r *Registry) Check(e *config.Entry) []config.Problem {
	if e.Source != hook.InProcess {
		return nil
	}
	b, ok := r.builtins[e.Name]
	if !ok {
		have := "this hookd has none"
		if names := r.Names(); len(names) > 0 {
			have = "known are " + strings.Join(names, ", ")
		}
		return []config.Problem{{Message: fmt.Sprintf("unknown built-in %q%s: %s", e.Name, protocol.DidYouMean(e.Name, r.Names()), have)}}
	}
	err := b.validate(e.Config)
	if err == nil {
		return nil
	}
	place, text := "", err.Error()
	if named, ok := errors.AsType[ConfigError](err); ok {
		place = named.JSONPointer()
		text = strings.TrimPrefix(text, place+": ")
	}
	return []config.Problem{{Pointer: "/config" + place, Message: text}}
}

func (b *Builtin) validate(config jsontext.Value) error {
	switch {
	case b.Validate != nil:
		return b.Validate(config)
	case config == nil || config.Kind() == 'n' || string(protocol.Compact(config)) == "{}":
		return nil
	}
	return fmt.Errorf("the built-in %s takes no config", b.Name)
}

// handles returns what a hook of this kind is told and asked unless its entry
// says otherwise.
func (b *Builtin) handles(roles hook.Roles) (events []protocol.Subscription, stages []protocol.Stage) {
	events, _ = subscriptions(b.Events) // checked when it was registered
	if b.Events == nil && roles.Observer != nil {
		events, _ = subscriptions([]string{"*"})
	}
	if b.Stages != nil {
		return events, b.Stages
	}
	for _, s := range protocol.Stages() {
		asked := roles.Interceptor != nil && (roles.Stages == nil || slices.Contains(roles.Stages, s.Name))
		if s.Name == protocol.StageApproveTool {
			asked = roles.Approver != nil
		}
		if asked {
			stages = append(stages, s.Name)
		}
	}
	return events, stages
}

func subscriptions(patterns []string) ([]protocol.Subscription, error) {
	var list []protocol.Subscription
	for _, text := range patterns {
		s, err := protocol.ParseSubscription(text)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}
