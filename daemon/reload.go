package daemon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/hookd/hookd/config"
	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/manager"
	"github.com/hookd/hookd/mount"
	"github.com/hookd/hookd/protocol"
)

// readyWithin is how long the new hooks of a reload may take to start and
// greet, all together: a greeting's own limit and a little more.
const readyWithin = 8 * time.Second

// closeWithin is how long a hook that a reload has taken away may go on with
// calls that nobody waits for, before its stop ladder is cut short.
const closeWithin = 10 * time.Second

// hookSet is what the current generation was made from. One goroutine changes
// it: the one that runs [daemon.reloads].
type hookSet struct {
	config    *config.Config
	loadedAt  time.Time
	hooks     map[string]*mountedHook
	overrides map[string]override
}

// mountedHook is a running hook under the entry that holds now.
type mountedHook struct {
	entry   *config.Entry
	key     string
	mounted *mount.Mounted
}

// override is an operator's enable or disable, which outranks the config until
// it ends or hookd does.
type override struct {
	enabled bool
	until   time.Time // zero = no end
}

// view is what others may read of the set; it never changes.
type view struct {
	hookSet
	err string // why the last load or reload was refused; "" = it was not
}

// entry returns the config's entry of a name, or nil.
func (s *hookSet) entry(name string) *config.Entry {
	i := slices.IndexFunc(s.config.Hooks.Entries, func(e config.Entry) bool { return e.Name == name })
	if i < 0 {
		return nil
	}
	return &s.config.Hooks.Entries[i]
}

func (d *daemon) current() *view { return d.view.Load().(*view) }

func (d *daemon) limits() protocol.Limits { return d.current().config.Limits }

func (d *daemon) show(err error) {
	v := &view{hookSet: d.set}
	if err != nil {
		v.err = err.Error()
	}
	d.view.Store(v)
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

// ask hands a request to the reloading goroutine and waits for its answer.
func (d *daemon) ask(ctx context.Context, do func(ctx context.Context) (*ReloadResult, error)) (*ReloadResult, error) {
	done := make(chan reloadAnswer, 1)
	select {
	case d.requests <- request{ctx, do, done}:
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
			d.reloadAndTell(ctx, "signal: "+s.String())
		case <-d.refresh:
			d.adoptWelcomes()
		case <-expiry.C:
			d.expireOverrides(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// watch reloads when the config file changes.
func (d *daemon) watch(ctx context.Context) {
	if d.ConfigPath == "" {
		return
	}
	log := d.log.Named("config")
	w, err := config.Watch(ctx, d.ConfigPath, func(err error) { log.Warn(err.Error()) })
	if err != nil {
		d.log.Error("the config file is not watched; use hookd reload", zap.Error(err))
		return
	}
	defer w.Close()
	w.Applied(d.current().config.SHA256)
	d.watcher.Store(w)
	for {
		select {
		case <-w.Changes():
			// What went wrong is in the log and in status.
			_, _ = d.ask(ctx, func(ctx context.Context) (*ReloadResult, error) {
				return d.reloadAndTell(ctx, "the file changed")
			})
			w.Applied(d.current().config.SHA256)
		case <-ctx.Done():
			return
		}
	}
}

// reloadAndTell reloads and leaves word of the outcome in the log, in status
// and with observers.
func (d *daemon) reloadAndTell(ctx context.Context, why string) (*ReloadResult, error) {
	res, err := d.reload(ctx)
	d.show(err)
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
	same := cfg.SHA256 == d.set.config.SHA256
	for _, h := range d.set.hooks {
		same = same && !h.mounted.Changed()
	}
	if same {
		return &ReloadResult{Generation: d.manager.Generation().Number, Kept: slices.Sorted(maps.Keys(d.set.hooks))}, nil
	}
	return d.apply(ctx, cfg, d.set.overrides)
}

// refuseRestartOnly names what can't change while the sockets are open.
func (d *daemon) refuseRestartOnly(cfg *config.Config) error {
	old := d.set.config
	var changed []string
	for name, differ := range map[string]bool{
		"socket":  !reflect.DeepEqual(cfg.Socket, old.Socket),
		"control": !reflect.DeepEqual(cfg.Control, old.Control),
		"limits":  cfg.Limits != old.Limits,
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
	d.show(nil)
	next, fresh, err := d.mountAll(ctx, cfg, nil)
	if err == nil {
		err = d.swap(cfg, nil, next)
	}
	if err != nil {
		d.closeAll(ctx, fresh)
	}
	return err
}

// apply makes a generation of cfg: new hooks are started and greeted before
// anything changes, and when one of them is not, nothing does.
func (d *daemon) apply(ctx context.Context, cfg *config.Config, overrides map[string]override) (*ReloadResult, error) {
	before := d.set.hooks
	warnings := d.removedRequired(cfg)
	next, fresh, err := d.mountAll(ctx, cfg, overrides)
	if err == nil {
		err = allReady(ctx, fresh)
	}
	old := d.manager.Generation()
	if err == nil {
		err = d.swap(cfg, overrides, next)
	}
	if err != nil {
		d.closeAll(ctx, fresh)
		return nil, err
	}
	res := &ReloadResult{Changed: true, Generation: d.manager.Generation().Number, Warnings: warnings}
	var gone []*mountedHook
	for name, h := range before {
		if now := next[name]; now == nil || now.mounted != h.mounted {
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
	d.setLevel(cfg.Log.Level)
	d.retire(old, gone)
	return res, nil
}

// mountAll finds or starts a hook for every enabled entry of cfg.
func (d *daemon) mountAll(ctx context.Context, cfg *config.Config, overrides map[string]override) (next map[string]*mountedHook, fresh []*mountedHook, err error) {
	next = map[string]*mountedHook{}
	number := d.manager.Generation().Number + 1
	for i := range cfg.Hooks.Entries {
		e := &cfg.Hooks.Entries[i]
		enabled := e.Enabled
		if o, ok := overrides[e.Name]; ok {
			enabled = o.enabled
		}
		if !enabled || !cfg.Hooks.Enabled {
			continue
		}
		h := &mountedHook{entry: e, key: e.ProcessKey()}
		if have := d.set.hooks[e.Name]; have != nil && have.key == h.key && !have.mounted.Changed() {
			h.mounted = have.mounted
		} else if h.mounted, err = d.mounter.Mount(ctx, e, number); err != nil {
			return nil, fresh, err
		} else {
			d.track(h.mounted)
			fresh = append(fresh, h)
		}
		next[e.Name] = h
	}
	return next, fresh, nil
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

// swap makes the hooks the current generation.
func (d *daemon) swap(cfg *config.Config, overrides map[string]override, next map[string]*mountedHook) error {
	var regs []*hook.Registration
	for _, name := range slices.Sorted(maps.Keys(next)) {
		r, err := next[name].mounted.Registration(next[name].entry)
		if err != nil {
			return err
		}
		regs = append(regs, r)
	}
	g, err := manager.NewGeneration(d.manager.Generation().Number+1, rulesOf(cfg), regs)
	if err != nil {
		return err
	}
	d.manager.Swap(g)
	d.set = hookSet{config: cfg, loadedAt: time.Now(), hooks: next, overrides: overrides}
	d.show(nil)
	return nil
}

func rulesOf(cfg *config.Config) manager.Rules {
	return manager.Rules{
		Disabled: !cfg.Hooks.Enabled, ChainTimeout: cfg.Hooks.Defaults.ChainTimeout,
		ApproveUnasked: cfg.Hooks.Defaults.NoApprover == config.Approve,
	}
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

// removedRequired finds required hooks that cfg no longer has. That is the
// owner's right, and said aloud.
func (d *daemon) removedRequired(cfg *config.Config) (warnings []string) {
	for name, h := range d.set.hooks {
		if !h.entry.Required {
			continue
		}
		i := slices.IndexFunc(cfg.Hooks.Entries, func(e config.Entry) bool { return e.Name == name })
		if i < 0 || !cfg.Hooks.Entries[i].Required || !cfg.Hooks.Entries[i].Enabled {
			warnings = append(warnings, fmt.Sprintf("required hook %q is no longer required (config %.12s → %.12s)", name, d.set.config.SHA256, cfg.SHA256))
		}
	}
	slices.Sort(warnings)
	return warnings
}

// adoptWelcomes makes a new generation when what hooks said in their greeting
// (their stages, their key strategies) is not what the current one holds.
func (d *daemon) adoptWelcomes() {
	changed := false
	for _, r := range d.manager.Generation().Hooks() {
		h := d.set.hooks[r.Name]
		if h == nil {
			continue
		}
		now, err := h.mounted.Registration(h.entry)
		if err != nil {
			d.log.Error("hook can't be used as it greeted", zap.String("hook", r.Name), zap.Error(err))
			d.show(err)
			return
		}
		changed = changed || !slices.Equal(now.Stages, r.Stages) || !maps.Equal(now.KeyStrategies, r.KeyStrategies)
	}
	if !changed {
		return
	}
	loaded := d.set.loadedAt
	if err := d.swap(d.set.config, d.set.overrides, d.set.hooks); err != nil {
		d.log.Error("hooks can't be used together as they greeted", zap.Error(err))
		d.show(err)
		return
	}
	d.set.loadedAt = loaded
	d.show(nil)
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
	if s.State == mount.Ready {
		select {
		case d.refresh <- struct{}{}:
		default: // a look is due already
		}
	}
}

// setEnabled overrides an entry's "enabled" for a while, or for as long as
// hookd runs.
func (d *daemon) setEnabled(ctx context.Context, name string, enabled bool, duration time.Duration) (*ReloadResult, error) {
	entry := d.set.entry(name)
	if entry == nil {
		return nil, d.unknownHook(name)
	}
	overrides := maps.Clone(d.set.overrides)
	if overrides == nil {
		overrides = map[string]override{}
	}
	o := override{enabled: enabled}
	if duration > 0 {
		o.until = time.Now().Add(duration)
	}
	if entry.Enabled == enabled {
		delete(overrides, name)
	} else {
		overrides[name] = o
	}
	res, err := d.apply(ctx, d.set.config, overrides)
	if err != nil {
		return nil, err
	}
	word := map[bool]string{true: "enabled", false: "disabled"}[enabled]
	d.log.Warn("hook "+word+" by hand", zap.String("hook", name), zap.Duration("for", duration))
	d.manager.Publish(nil, protocol.NewHookdEvent(protocol.EventHookState, nil, protocol.Object{
		{Name: "hook", Value: protocol.Quote(name)}, {Name: "state", Value: protocol.Quote(word)},
	}.AppendJSON(nil)))
	return res, nil
}

func (d *daemon) unknownHook(name string) error {
	var names []string
	for _, e := range d.current().config.Hooks.Entries {
		names = append(names, e.Name)
	}
	return protocol.InvalidParams("name", "there is no hook %q%s", name, protocol.DidYouMean(name, names))
}

func (d *daemon) nextExpiry() time.Duration {
	next := time.Hour
	for _, o := range d.set.overrides {
		if !o.until.IsZero() {
			next = min(next, time.Until(o.until))
		}
	}
	return max(next, 0)
}

// expireOverrides gives hooks back to the config whose override has ended.
func (d *daemon) expireOverrides(ctx context.Context) {
	left := maps.Clone(d.set.overrides)
	maps.DeleteFunc(left, func(_ string, o override) bool { return !o.until.IsZero() && !time.Now().Before(o.until) })
	if len(left) == len(d.set.overrides) {
		return
	}
	if _, err := d.apply(ctx, d.set.config, left); err != nil {
		d.log.Error("an override ended, but its hook does not start; trying again", zap.Error(err))
		d.show(err)
		// Later, so that a broken hook is not started in a tight loop.
		for name, o := range d.set.overrides {
			if !o.until.IsZero() {
				o.until = time.Now().Add(time.Minute)
				d.set.overrides[name] = o
			}
		}
	}
}

// track remembers a mounted hook until it is closed, so that a shutdown finds
// also those that a reload has begun to take away.
func (d *daemon) track(m *mount.Mounted) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mounted[m] = struct{}{}
}

// closeAll closes hooks side by side.
func (d *daemon) closeAll(ctx context.Context, list []*mountedHook) {
	var wg sync.WaitGroup
	for _, h := range list {
		wg.Go(func() { d.close(ctx, h.mounted) })
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

// closeHooks closes every hook there is.
func (d *daemon) closeHooks(ctx context.Context) {
	d.mu.Lock()
	list := slices.Collect(maps.Keys(d.mounted))
	d.mu.Unlock()
	var wg sync.WaitGroup
	for _, m := range list {
		wg.Go(func() { d.close(ctx, m) })
	}
	wg.Wait()
}

// hookPIDs are the processes of hooks, by pid.
func (d *daemon) hookPIDs() map[int]string {
	pids := map[int]string{}
	for name, h := range d.current().hooks {
		if pid := h.mounted.Status().PID; pid > 0 && pid != os.Getpid() {
			pids[pid] = name
		}
	}
	return pids
}
