package mount

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hookd/hookd/config"
	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// Mounted is a hook that runs.
type Mounted struct {
	entry *config.Entry // it was mounted for
	key   string
	began time.Time
	roles hook.Roles

	process *process // nil for a built-in

	value    any // the built-in
	priority int // its own, where the entry does not say; timeout too
	timeout  time.Duration
	events   []protocol.Subscription
	stages   []protocol.Stage
	when     hook.When
	closed   atomic.Bool
}

// Registration returns the hook with the rules of an entry: the one it was
// mounted for, or a later one with the same process key. Stages are those of
// the entry that the hook took when it was greeted, all of them before that;
// so ask again when a process becomes [Ready].
func (m *Mounted) Registration(e *config.Entry) (*hook.Registration, error) {
	r, err := m.registration(e)
	if err != nil {
		return nil, fmt.Errorf("mount %q: %w", e.Name, err)
	}
	return r, nil
}

// left returns the names of the stages that were offered and not taken.
func left(offered, taken []protocol.Stage) (names []string) {
	for _, s := range offered {
		if !slices.Contains(taken, s) {
			names = append(names, string(s))
		}
	}
	return names
}

func (m *Mounted) registration(e *config.Entry) (*hook.Registration, error) {
	if e.ProcessKey() != m.key {
		return nil, errors.New("the entry asks for another process or built-in than runs: mount it anew")
	}
	r := &hook.Registration{
		Name: e.Name, Source: e.Source, Priority: e.Priority, Roles: m.roles, Stages: e.Intercept, Events: e.Observe,
		Match: e.Match, If: e.If, FailPolicy: e.FailPolicy, Required: e.Required, Recheck: e.Recheck, Mode: e.Mode, When: cmp.Or(e.When, m.when, hook.Always),
		MayRespond: e.MayRespond, MaxRepeats: e.MaxRepeats, KeyStrategies: e.KeyStrategies,
		Timeout: e.Timeout, ApprovalTimeout: e.ApprovalTimeout, ObserverTimeout: e.ObserverTimeout,
	}
	if m.process == nil {
		if !e.Prioritised {
			r.Priority = m.priority
		}
		if !e.Timed && m.timeout > 0 {
			r.Timeout = m.timeout
		}
		if e.Observe == nil {
			r.Events = m.events
		}
		if e.Intercept == nil {
			r.Stages = m.stages
			if len(m.stages) == 1 && m.stages[0] == protocol.StageApproveTool && e.OwnTimeout > 0 {
				r.ApprovalTimeout = e.OwnTimeout
			}
		}
		return r, r.Check()
	}
	welcome := m.process.greeted()
	if welcome == nil {
		return r, r.Check()
	}
	r.Stages = slices.DeleteFunc(slices.Clone(r.Stages), func(s protocol.Stage) bool { return !slices.Contains(welcome.Stages, s) })
	if declined := len(e.Intercept) - len(r.Stages); declined > 0 && r.Denies() {
		return nil, fmt.Errorf("it left out %s when it was greeted, and its entry makes it a guard there: correct the hook, or intercept", strings.Join(left(e.Intercept, r.Stages), ", "))
	}
	var err error
	if r.KeyStrategies, err = mergeStrategies(e.KeyStrategies, welcome.KeyStrategies); err != nil {
		return nil, err
	}
	if len(r.Stages) == 0 && len(r.Events) == 0 {
		return nil, errors.New("it took none of the stages that it was offered: correct intercept, or remove the entry")
	}
	return r, r.Check()
}

// mergeStrategies joins what an entry and its hook say of the same keys.
func mergeStrategies(entry, welcome map[string]protocol.KeyStrategy) (map[string]protocol.KeyStrategy, error) {
	if len(welcome) == 0 {
		return entry, nil
	}
	all := maps.Clone(welcome)
	for key, s := range entry {
		if other, both := welcome[key]; both && other != s {
			return nil, fmt.Errorf("the hook merges the key %q of state by %s, its entry by %s: one key can be merged in one way only", key, other, s)
		}
		all[key] = s
	}
	return all, nil
}

// Ready waits until the hook may be called. It returns the reason as soon as
// it is known that the hook does not start at the moment, also when it will be
// tried again.
func (m *Mounted) Ready(ctx context.Context) error {
	if m.process == nil {
		return nil
	}
	if err := m.process.ready(ctx); err != nil {
		return fmt.Errorf("hook %q: %w", m.entry.Name, err)
	}
	return nil
}

// Status returns how the hook fares.
func (m *Mounted) Status() Status {
	if m.process != nil {
		return m.process.status()
	}
	s := Status{Name: m.entry.Name, State: Ready, Started: m.began}
	if m.closed.Load() {
		s.State = Stopped
	}
	return s
}

// Changed reports whether the files of a process are others than when it was
// last started.
func (m *Mounted) Changed() bool {
	return m.process != nil && m.process.status().Fingerprint != FileFingerprint(m.entry.Files())
}

// Restart starts the child of a process hook anew and waits until it is ready.
// Calls in flight may finish before, until ctx ends. It also ends a pause after
// failures. The error says why the new child does not start.
func (m *Mounted) Restart(ctx context.Context) error {
	if m.process == nil {
		return fmt.Errorf("hook %q runs inside hookd: there is no process to restart", m.entry.Name)
	}
	if err := m.process.renew(ctx); err != nil {
		return fmt.Errorf("restart hook %q: %w", m.entry.Name, err)
	}
	return nil
}

// Close ends the hook. New calls are refused, those in flight may finish, then
// the child is asked to end, told to, and killed. When ctx ends, all that is
// cut short by killing it. A built-in is closed at once, so its calls must have
// ended. The error is a built-in's.
func (m *Mounted) Close(ctx context.Context) error {
	if m.process != nil {
		m.process.shut(ctx)
		return nil
	}
	if m.closed.Swap(true) {
		return nil
	}
	if err := m.closeValue(); err != nil {
		return fmt.Errorf("close hook %q: %w", m.entry.Name, err)
	}
	return nil
}

func (m *Mounted) closeValue() error {
	if c, ok := m.value.(io.Closer); ok {
		return c.Close()
	}
	return nil
}
