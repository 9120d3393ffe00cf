package daemon

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/hookd/hookd/config"
	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/manager"
	"github.com/hookd/hookd/mount"
	"github.com/hookd/hookd/protocol"
)

// tryWithin is how long the canaries of a reload may take, all together: the
// most that one may take and a little more.
const tryWithin = 32 * time.Second

// closeWithin is how long a hook that was taken away may go on with calls that
// nobody waits for, before its stop ladder is cut short.
const closeWithin = 10 * time.Second

// mountedHook is a running hook under the entry that holds now.
type mountedHook struct {
	entry   *config.Entry
	key     string
	mounted *mount.Mounted
	canary  *mount.Canary // nil when the entry has none
}

// registration returns the hook with the rules of its entry.
func (h *mountedHook) registration() (*hook.Registration, error) {
	r, err := h.mounted.Registration(h.entry)
	if err == nil && h.canary != nil {
		err = h.canary.Guard(r)
	}
	return r, err
}

// status returns how the hook fares. One that judges wrongly is degraded.
func (h *mountedHook) status() mount.Status {
	s := h.mounted.Status()
	if h.canary != nil {
		s = judged(s, h.canary)
	}
	return s
}

func judged(s mount.Status, by *mount.Canary) mount.Status {
	if err := by.Err(); err != nil && (s.State == mount.Ready || s.State == mount.Degraded) {
		s.State, s.LastError = mount.Degraded, err.Error()
	}
	return s
}

// tryBy gives the hook its canary: the one that tries it already, when have
// holds the same hook and asks the same, or a new one.
func (d *daemon) tryBy(h, have *mountedHook) {
	if have != nil && have.mounted == h.mounted && have.entry.Canary.Same(h.entry.Canary) && have.entry.Timeout == h.entry.Timeout {
		h.canary = have.canary
		return
	}
	m, name := h.mounted, h.entry.Name
	h.canary = d.mounter.Canary(m, h.entry, func(c *mount.Canary) { d.hookState(name, judged(m.Status(), c)) })
}

// tryAll asks the hooks of a set their canaries. New ones must give the right
// answer, those that were there already no wrong one.
func (d *daemon) tryAll(ctx context.Context, s *hookSet, fresh []*mountedHook, c change) error {
	ctx, cancel := context.WithTimeoutCause(ctx, tryWithin, fmt.Errorf("no answer within %s", tryWithin))
	defer cancel()
	var list []*mountedHook
	for _, name := range slices.Sorted(maps.Keys(s.hooks)) {
		if h := s.hooks[name]; h.canary != nil && (c.only == "" || c.only == name) {
			list = append(list, h)
		}
	}
	problems := make([]*config.LoadError, len(list))
	var wg sync.WaitGroup
	for i, h := range list {
		wg.Go(func() {
			try := h.canary.Ask
			if slices.Contains(fresh, h) {
				try = h.canary.First
			}
			if err := try(ctx); err != nil {
				problems[i] = s.config.ProblemAt(h.entry.Canary.Pointer, err.Error())
			}
		})
	}
	wg.Wait()
	return together(problems)
}

// together makes one error of problems with one file; nil ones are none.
func together(problems []*config.LoadError) error {
	var all *config.LoadError
	for _, p := range problems {
		switch {
		case p == nil:
		case all == nil:
			all = p
		default:
			all.Problems = append(all.Problems, p.Problems...)
		}
	}
	if all == nil {
		return nil
	}
	return all
}

// dropCanaries ends the canaries of a set that another one does not hold.
func dropCanaries(of, kept map[string]*mountedHook) {
	for name, h := range of {
		if now := kept[name]; h.canary != nil && (now == nil || now.canary != h.canary) {
			h.canary.Close()
		}
	}
}

// checkPins compares the pinned files of all hooks that shall run.
func checkPins(s *hookSet) error {
	var problems []*config.LoadError
	for i := range s.config.Hooks.Entries {
		if e := &s.config.Hooks.Entries[i]; s.config.Hooks.Enabled && s.wanted(e) {
			problems = append(problems, mount.CheckPins(s.config, e)...)
		}
	}
	return together(problems)
}

// track remembers a mounted hook until it is closed, so that a shutdown finds
// also those that a reload has begun to take away.
func (d *daemon) track(m *mount.Mounted) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mounted[m] = struct{}{}
}

// tracked are all hooks that are not closed.
func (d *daemon) tracked() []*mount.Mounted {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Keys(d.mounted))
}

// retire closes hooks that are gone once the calls of their generation have
// ended. It does not wait.
func (d *daemon) retire(old *manager.Generation, gone []*mountedHook) {
	if len(gone) == 0 {
		return
	}
	d.drains.Go(func() {
		<-old.Drained() // shutdown swaps and drains every generation
		ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
		defer cancel()
		// Events that are queued for a hook still go to it.
		if err := old.Wait(ctx); err != nil {
			d.log.Warn("events of a replaced hook were cut short", zap.Error(err))
		}
		d.closeAll(ctx, gone)
	})
}

// closeAll closes hooks side by side.
func (d *daemon) closeAll(ctx context.Context, list []*mountedHook) {
	var wg sync.WaitGroup
	for _, h := range list {
		wg.Go(func() { d.close(ctx, h.mounted) })
	}
	wg.Wait()
}

// closeHooks closes every hook there is.
func (d *daemon) closeHooks(ctx context.Context) {
	var wg sync.WaitGroup
	for _, m := range d.tracked() {
		wg.Go(func() { d.close(ctx, m) })
	}
	wg.Wait()
}

func (d *daemon) close(ctx context.Context, m *mount.Mounted) {
	if err := m.Close(ctx); err != nil {
		d.log.Warn("close hook", zap.Error(err))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.mounted, m)
}

// hookState is told by every supervisor when its hook changes state.
func (d *daemon) hookState(name string, s mount.Status) {
	d.manager.Publish(nil, protocol.NewHookdEvent(protocol.EventHookState, nil, protocol.Object{
		{Name: "hook", Value: protocol.Quote(name)},
		{Name: "state", Value: protocol.Quote(s.State)},
		{Name: "pid", Value: fmt.Appendf(nil, "%d", s.PID)},
		{Name: "restarts", Value: fmt.Appendf(nil, "%d", s.Restarts)},
		{Name: "last_error", Value: protocol.Quote(s.LastError)},
	}.AppendJSON(nil)))
	d.somethingNew()
	if s.State == mount.Ready {
		select {
		case d.refresh <- struct{}{}:
		default: // a look is due already
		}
	}
}

// hookProgress tells observers what a hook says of a call it works on.
func (d *daemon) hookProgress(p mount.Progress) {
	d.manager.Publish(nil, protocol.NewHookdEvent(protocol.EventHookProgress, nil, protocol.Object{
		{Name: "hook", Value: protocol.Quote(p.Hook)},
		{Name: "call_id", Value: protocol.Quote(p.CallID)},
		{Name: "text", Value: protocol.Quote(p.Text)},
	}.AppendJSON(nil)))
}

// hookPIDs are the processes of all hooks by pid, those included that are
// being greeted or taken away.
func (d *daemon) hookPIDs() map[int]string {
	pids := map[int]string{}
	for _, m := range d.tracked() {
		if s := m.Status(); s.PID > 0 && s.PID != os.Getpid() {
			pids[s.PID] = s.Name
		}
	}
	maps.Copy(pids, d.spawner.Strays())
	return pids
}
