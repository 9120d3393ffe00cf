package manager

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// Rules are what a generation holds besides its hooks.
type Rules struct {
	// Disabled: every stage answers continue, with a warning.
	Disabled bool
	// ChainTimeout bounds all interceptors of one call together; never zero.
	ChainTimeout time.Duration
	// ApproveUnasked is the answer to a call for which nobody asked for
	// approval and no approver is there.
	ApproveUnasked bool
}

// Generation is one good version of the config: hooks in their order and the
// rules around them. It never changes after it was made.
type Generation struct {
	// Number is told to agents and hooks; the first is 1.
	Number uint64
	number jsontext.Value // the same, as it stands in meta

	rules      Rules
	members    []*member
	byStage    map[protocol.Stage][]*member
	observers  []*member
	strategies map[string]protocol.KeyStrategy
	units      map[string]*unit
	closed     bool // the manager is: nobody is asked any more, and nothing passes

	// refs counts the calls under way, one more while g is current, and one
	// while the generation before it is not drained.
	refs    atomic.Int64
	drained chan struct{}
	next    *Generation // set before g stops being current
}

func emptyGeneration() *Generation {
	g := &Generation{
		number:     jsontext.Value("0"),
		byStage:    map[protocol.Stage][]*member{},
		strategies: map[string]protocol.KeyStrategy{},
		units:      map[string]*unit{},
		drained:    make(chan struct{}),
	}
	g.refs.Store(1)
	return g
}

// NewGeneration checks and orders hooks. It fails when two have the same name,
// when one can't work (see [hook.Registration.Check]), or when two declare
// different strategies for one key of state.
func NewGeneration(number uint64, rules Rules, hooks []*hook.Registration) (*Generation, error) {
	g := emptyGeneration()
	g.Number, g.number, g.rules = number, slices.Clip(strconv.AppendUint(nil, number, 10)), rules
	declaredBy := map[string]string{}
	for _, r := range hooks {
		if err := r.Check(); err != nil {
			return nil, fmt.Errorf("hook %q: %w", r.Name, err)
		}
		if g.units[r.Name] != nil {
			return nil, fmt.Errorf("hook %q: the name stands twice", r.Name)
		}
		for _, key := range slices.Sorted(maps.Keys(r.KeyStrategies)) {
			s := r.KeyStrategies[key]
			if have, ok := g.strategies[key]; ok && have != s {
				return nil, fmt.Errorf("hook %q: key %q of state is %s here and %s in hook %q", r.Name, key, s, have, declaredBy[key])
			}
			g.strategies[key], declaredBy[key] = s, r.Name
		}
		u := &unit{name: r.Name, value: r.Roles.Value}
		g.units[r.Name] = u
		g.members = append(g.members, &member{Registration: r, unit: u})
	}
	slices.SortFunc(g.members, func(a, b *member) int {
		return cmp.Or(cmp.Compare(sourceRank(a.Source), sourceRank(b.Source)), cmp.Compare(a.Layer, b.Layer), cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Name, b.Name))
	})
	for _, mb := range g.members {
		for _, s := range mb.Stages {
			if !slices.Contains(g.byStage[s], mb) {
				g.byStage[s] = append(g.byStage[s], mb)
			}
		}
		if len(mb.Events) > 0 {
			g.observers = append(g.observers, mb)
		}
	}
	return g, nil
}

func sourceRank(s hook.Source) int {
	if s == hook.InProcess {
		return 0
	}
	return 1
}

// Hooks returns the registrations in the order in which they are asked.
func (g *Generation) Hooks() []*hook.Registration {
	list := make([]*hook.Registration, len(g.members))
	for i, mb := range g.members {
		list[i] = mb.Registration
	}
	return list
}

// Drained is closed when g has been swapped out and its last call has ended.
func (g *Generation) Drained() <-chan struct{} { return g.drained }

// Wait waits, until ctx ends, for g to be drained and for the workers of hooks
// that only g held.
func (g *Generation) Wait(ctx context.Context) error {
	select {
	case <-g.drained:
	case <-ctx.Done():
		return fmt.Errorf("generation %d: calls are still open: %w", g.Number, context.Cause(ctx))
	}
	for _, u := range g.units {
		if err := u.wait(ctx); err != nil {
			return fmt.Errorf("generation %d: %w", g.Number, err)
		}
	}
	return nil
}

// start takes over the units of hooks that old holds too, and starts workers
// for the rest.
func (g *Generation) start(m *HookManager, old *Generation) {
	for _, mb := range g.members {
		if u := old.units[mb.Name]; u != nil && sameValue(u.value, mb.Roles.Value) {
			mb.unit = u
			g.units[mb.Name] = u
		} else {
			mb.unit.stats = m.stats.of(mb.Name)
		}
		mb.unit.adopt(m, mb.Registration)
	}
}

// retire lets g drain. Until it has, next can't: a call that is still on g may
// be on its way to a hook that next holds too and a later one does not.
func (g *Generation) retire(next *Generation) {
	next.refs.Add(1)
	g.next = next
	g.release()
}

// acquire keeps g from being drained until release. It fails when g is drained
// already.
func (g *Generation) acquire() bool {
	for {
		n := g.refs.Load()
		if n == 0 {
			return false
		}
		if g.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// release ends what acquire began. The last one ends the workers of units that
// the next generation does not hold: until then calls still tell them things.
func (g *Generation) release() {
	if g.refs.Add(-1) > 0 {
		return
	}
	for name, u := range g.units {
		if g.next.units[name] != u {
			u.close()
		}
	}
	close(g.drained)
	g.next.release()
}

// sameValue compares two hooks by identity; values that can't be compared are
// never the same.
func sameValue(a, b any) bool {
	return a != nil && reflect.TypeOf(a) == reflect.TypeOf(b) &&
		reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}
