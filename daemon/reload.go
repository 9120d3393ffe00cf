package daemon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/hookd/hookd/config"
	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/manager"
	"github.com/hookd/hookd/protocol"
)

// readyWithin is how long the new hooks of a reload may take to start and
// greet, all together: a greeting's own limit and a little more.
const readyWithin = 8 * time.Second

// busyAfter is how long somebody who wants a change waits for the one before
// it to be over, before he is told to come again.
const busyAfter = 900 * time.Millisecond

// hookSet is what the current generation was made from. One goroutine changes
// it: the one that runs [daemon.reloads].
type hookSet struct {
	config    *config.Config
	loadedAt  time.Time
	hooks     map[string]*mountedHook
	overrides map[string]override
	layers    layered
	// refusal says why the file as it is now was refused; "" = it was not.
	refusal string
	// misfits says which hooks can't be used as they greeted; "" = none.
	misfits string
}

// entry returns the config's entry of a name, or nil.
func (s *hookSet) entry(name string) *config.Entry {
	i := slices.IndexFunc(s.config.Hooks.Entries, func(e config.Entry) bool { return e.Name == name })
	if i < 0 {
		return nil
	}
	return &s.config.Hooks.Entries[i]
}

// wanted reports whether a hook shall run for the entry.
func (s *hookSet) wanted(e *config.Entry) bool {
	if o, ok := s.overrides[e.Name]; ok {
		return o.enabled
	}
	return e.Enabled
}

// current is what others may read of the set; it never changes.
func (d *daemon) current() *hookSet { return d.view.Load().(*hookSet) }

func (d *daemon) limits() protocol.Limits { return d.current().config.Limits }

// show lets others see the set as it is now.
func (d *daemon) show() {
	v := d.set
	d.view.Store(&v)
	d.somethingNew()
}

// request asks the reloading goroutine for something.
type request struct {
	ctx context.Context
	do  func(ctx context.Context) (*ReloadResult, error)
	// done gets exactly one answer.
	done chan<- reloadAnswer
}

type reloadAnswer struct {
	result *ReloadResult
	err    error
}

// ReloadResult says what a reload did.
type ReloadResult struct {
	// Changed is false when file and hooks were as before.
	Changed    bool     `json:"changed"`
	Generation uint64   `json:"generation"`
	Started    []string `json:"started"`
	Kept       []string `json:"kept"`
	Stopped    []string `json:"stopped"`
	Warnings   []string `json:"warnings"`
}

// ask hands a request to the reloading goroutine and waits for its answer. When
// that is busy for too long, the error says so.
func (d *daemon) ask(ctx context.Context, do func(ctx context.Context) (*ReloadResult, error)) (*ReloadResult, error) {
	done := make(chan reloadAnswer, 1)
	busy := time.NewTimer(busyAfter)
	defer busy.Stop()
	select {
	case d.requests <- request{ctx, do, done}:
	case <-busy.C:
		return nil, protocol.Errorf(protocol.CodeOverloaded, "hookd waits for new hooks to start; try again in a few seconds")
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	a := <-done
	return a.result, a.err
}

// reloads is the one place where the set of hooks changes while hookd serves.
func (d *daemon) reloads(ctx context.Context) {
	expiry := time.NewTimer(time.Hour)
	defer expiry.Stop()
	for {
		expiry.Reset(d.nextExpiry())
		select {
		case r := <-d.requests:
			res, err := r.do(context.WithoutCancel(r.ctx)) // half a reload helps nobody
			r.done <- reloadAnswer{res, err}
		case s, open := <-d.Reload:
			if !open {
				d.Reload = nil
				continue
			}
			// What went wrong is in the log and in status.
			_, _ = d.reloadAndTell(ctx, "signal: "+s.String())
		case <-d.changes:
			_, _ = d.reloadAndTell(ctx, "the file changed")
		case <-d.refresh:
			d.adoptWelcomes()
		case <-expiry.C:
			d.expireOverrides(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// watch follows the config file until the watcher that it returns is closed.
// Without a file, or a watcher, there are no changes.
func (d *daemon) watch(ctx context.Context) *config.Watcher {
	if d.ConfigPath == "" {
		return nil
	}
	log := d.log.Named("config")
	w, err := config.Watch(ctx, d.ConfigPath, func(err error) { log.Warn(err.Error()) })
	if err != nil {
		d.log.Error("the config file is not watched; use hookd reload", zap.Error(err))
		return nil
	}
	w.Applied(d.set.config.SHA256)
	d.changes = w.Changes()
	d.watcher.Store(w)
	return w
}

// reloadAndTell reloads and leaves word of the outcome in the log, in status
// and with observers.
func (d *daemon) reloadAndTell(ctx context.Context, why string) (*ReloadResult, error) {
	defer d.reloading()()
	was := d.set.config
	res, err := d.reload(ctx)
	d.set.refusal = ""
	if err != nil {
		d.set.refusal = err.Error()
	}
	d.show()
	if err != nil || res.Changed {
		d.book.reloaded(ctx, why, was, d.set.config, res, err)
	}
	payload := protocol.Object{{Name: "why", Value: protocol.Quote(why)}}
	switch {
	case err != nil:
		d.log.Error("reload refused, the last good config stays", zap.String("why", why), zap.Error(err))
		payload = append(payload, protocol.Member{Name: "error", Value: protocol.Quote(err.Error())})
	case !res.Changed:
		d.log.Debug("reload: nothing changed", zap.String("why", why))
		return res, nil
	default:
		d.log.Info("reloaded", zap.String("why", why), zap.Uint64("generation", res.Generation),
			zap.Strings("started", res.Started), zap.Strings("stopped", res.Stopped), zap.Int("kept", len(res.Kept)))
		for _, w := range res.Warnings {
			d.log.Warn("reload: " + w)
		}
		payload = append(payload, protocol.Member{Name: "generation", Value: fmt.Appendf(nil, "%d", res.Generation)})
	}
	d.manager.Publish(nil, protocol.NewHookdEvent(protocol.EventConfigReloaded, nil, payload.AppendJSON(nil)))
	return res, err
}

// reload reads the file and, when it or a hook's files changed, makes the next
// generation of it.
func (d *daemon) reload(ctx context.Context) (*ReloadResult, error) {
	cfg, err := d.load()
	if err != nil {
		return nil, err
	}
	if err := d.refuseRestartOnly(cfg); err != nil {
		return nil, err
	}
	layers, err := d.loadLayers(cfg, &d.set.layers)
	if err != nil {
		return nil, err
	}
	same := cfg.SHA256 == d.set.config.SHA256 && layers.same(&d.set.layers)
	for _, h := range d.set.hooks {
		same = same && !h.mounted.Changed()
	}
	if same {
		return &ReloadResult{Generation: d.manager.Generation().Number, Kept: slices.Sorted(maps.Keys(d.set.hooks))}, nil
	}
	warnings := d.removedRequired(cfg)
	next := d.set
	next.config, next.loadedAt, next.misfits, next.layers = cfg, time.Now(), "", layers
	next.overrides = maps.Clone(d.set.overrides)
	maps.DeleteFunc(next.overrides, func(name string, _ override) bool { return next.entry(name) == nil })
	if err := checkPins(&next); err != nil {
		return nil, err
	}
	res, err := d.apply(ctx, next, change{})
	if err != nil {
		return nil, err
	}
	res.Warnings = warnings
	d.setLevel(cfg.Log.Level)
	if w := d.watcher.Load(); w != nil {
		w.Applied(cfg.SHA256)
	}
	return res, nil
}

// refuseRestartOnly names what can't change while hookd runs.
func (d *daemon) refuseRestartOnly(cfg *config.Config) error {
	old := d.set.config
	var changed []string
	for name, differ := range map[string]bool{
		"socket":     !reflect.DeepEqual(cfg.Socket, old.Socket),
		"http":       cfg.HTTP != old.HTTP,
		"record":     cfg.Record != old.Record,
		"control":    !reflect.DeepEqual(cfg.Control, old.Control),
		"limits":     cfg.Limits != old.Limits,
		"log.format": cfg.Log.Format != old.Log.Format,
	} {
		if differ {
			changed = append(changed, name)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	slices.Sort(changed)
	return fmt.Errorf("%s: a change of %s needs a restart of hookd; nothing of the file was applied", cfg.Path, strings.Join(changed, ", "))
}

// firstGeneration mounts the hooks that hookd starts with. A hook that does
// not start is tried again and again, under its policy.
func (d *daemon) firstGeneration(ctx context.Context, cfg *config.Config) error {
	d.set = hookSet{config: cfg, loadedAt: time.Now(), hooks: map[string]*mountedHook{}}
	d.show()
	layers, err := d.loadLayers(cfg, &d.set.layers)
	if err != nil {
		return err
	}
	d.set.layers = layers
	if err := checkPins(&d.set); err != nil {
		return err
	}
	_, err = d.apply(ctx, d.set, change{patient: true})
	return err
}

// change says what about hooks is to change with a set, beyond what differs.
type change struct {
	// only leaves the files of other hooks out of sight, so that a command
	// about one hook touches one hook.
	only string
	// renew starts the hook of this name anew although nothing differs.
	renew string
	// patient does not wait for new hooks: until they are ready, and when they
	// do not start, their policy holds.
	patient bool
}

// apply makes next the current set: new hooks are started and greeted before
// anything changes, and when one of them is not, nothing does.
func (d *daemon) apply(ctx context.Context, next hookSet, c change) (*ReloadResult, error) {
	before := d.set.hooks
	fresh, err := d.mountAll(ctx, &next, c)
	if err == nil && !c.patient {
		err = allReady(ctx, fresh)
	}
	if err == nil && !c.patient {
		err = d.tryAll(ctx, &next, fresh, c)
	}
	old := d.manager.Generation()
	if err == nil {
		err = d.swap(next)
	}
	if err != nil {
		dropCanaries(next.hooks, before)
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWithin)
		defer cancel()
		d.closeAll(closing, fresh)
		return nil, err
	}
	dropCanaries(before, next.hooks)
	res := &ReloadResult{Changed: true, Generation: d.manager.Generation().Number}
	var gone []*mountedHook
	for name, h := range before {
		if now := next.hooks[name]; now == nil || now.mounted != h.mounted {
			gone = append(gone, h)
			res.Stopped = append(res.Stopped, name)
		} else {
			res.Kept = append(res.Kept, name)
		}
	}
	for _, h := range fresh {
		res.Started = append(res.Started, h.entry.Name)
	}
	slices.Sort(res.Stopped)
	slices.Sort(res.Kept)
	d.retire(old, gone)
	return res, nil
}

// mountAll finds or starts a hook for every entry of the set that wants one,
// and returns those that are new.
func (d *daemon) mountAll(ctx context.Context, s *hookSet, c change) (fresh []*mountedHook, err error) {
	running := s.hooks
	s.hooks = map[string]*mountedHook{}
	number := d.manager.Generation().Number + 1
	for i := range s.config.Hooks.Entries {
		e := &s.config.Hooks.Entries[i]
		if !s.config.Hooks.Enabled || !s.wanted(e) {
			continue
		}
		h := &mountedHook{entry: e, key: e.ProcessKey()}
		unseen := c.only != "" && c.only != e.Name
		if have := running[e.Name]; have != nil && have.key == h.key && c.renew != e.Name && (unseen || !have.mounted.Changed()) {
			h.mounted = have.mounted
		} else if h.mounted, err = d.mounter.Mount(ctx, e, number); err != nil {
			return fresh, err
		} else {
			d.track(h.mounted)
			fresh = append(fresh, h)
		}
		d.tryBy(h, running[e.Name])
		s.hooks[e.Name] = h
	}
	return fresh, nil
}

// allReady waits for new hooks and returns every reason why one is not.
func allReady(ctx context.Context, fresh []*mountedHook) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyWithin, fmt.Errorf("it was not ready within %s", readyWithin))
	defer cancel()
	errs := make([]error, len(fresh))
	var wg sync.WaitGroup
	for i, h := range fresh {
		wg.Go(func() { errs[i] = h.mounted.Ready(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// swap makes a set whose hooks are mounted the current one.
func (d *daemon) swap(next hookSet) error {
	var regs []*hook.Registration
	for _, name := range slices.Sorted(maps.Keys(next.hooks)) {
		r, err := next.hooks[name].registration()
		if err != nil {
			return err
		}
		regs = append(regs, r)
	}
	regs = append(regs, next.layers.registrations()...)
	g, err := manager.NewGeneration(d.manager.Generation().Number+1, rulesOf(next.config), regs)
	if err != nil {
		return err
	}
	d.manager.Swap(g)
	d.set = next
	d.show()
	return nil
}

func rulesOf(cfg *config.Config) manager.Rules {
	return manager.Rules{
		Disabled: !cfg.Hooks.Enabled, ChainTimeout: cfg.Hooks.Defaults.ChainTimeout,
		ApproveUnasked: cfg.Hooks.Defaults.NoApprover == config.Approve,
	}
}

// removedRequired finds required hooks that cfg no longer has. That is the
// owner's right, and said aloud.
func (d *daemon) removedRequired(cfg *config.Config) (warnings []string) {
	next := hookSet{config: cfg, overrides: d.set.overrides}
	for name, h := range d.set.hooks {
		if e := next.entry(name); h.entry.Required && (e == nil || !e.Required || !next.wanted(e)) {
			warnings = append(warnings, fmt.Sprintf("required hook %q is no longer required (config %.12s → %.12s)", name, d.set.config.SHA256, cfg.SHA256))
		}
	}
	slices.Sort(warnings)
	return warnings
}

// adoptWelcomes makes a new generation when what hooks said in their greeting
// (their stages, their key strategies) is not what the current one holds. A
// hook that can't be used as it greeted keeps the rules that it had.
func (d *daemon) adoptWelcomes() {
	changed := false
	var misfits []error
	for _, r := range d.manager.Generation().Hooks() {
		h := d.set.hooks[r.Name]
		if h == nil {
			continue
		}
		now, err := h.registration()
		if err != nil {
			misfits = append(misfits, err)
			continue
		}
		changed = changed || !slices.Equal(now.Stages, r.Stages) || !maps.Equal(now.KeyStrategies, r.KeyStrategies)
	}
	if changed && misfits == nil {
		if err := d.swap(d.set); err != nil {
			misfits = append(misfits, err)
		}
	}
	if err := errors.Join(misfits...); err != nil && err.Error() != d.set.misfits {
		d.set.misfits = err.Error()
		d.log.Error("hooks can't be used as they greeted", zap.Error(err))
		d.show()
	} else if err == nil && d.set.misfits != "" {
		d.set.misfits = ""
		d.show()
	}
}
