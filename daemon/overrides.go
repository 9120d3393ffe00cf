package daemon

import (
	"context"
	"maps"
	"time"

	"go.uber.org/zap"

	"github.com/hookd/hookd/protocol"
)

// override is an operator's enable or disable, which outranks the config until
// it ends or hookd does.
type override struct {
	enabled bool
	until   time.Time // zero = no end
}

func (o override) word() string {
	if o.enabled {
		return "enabled"
	}
	return "disabled"
}

// setEnabled overrides an entry's "enabled" for a while, or for as long as
// hookd runs. It touches no other hook.
func (d *daemon) setEnabled(ctx context.Context, name string, o override) (*ReloadResult, error) {
	entry := d.set.entry(name)
	switch {
	case entry == nil:
		return nil, d.unknownHook(name)
	case !d.set.config.Hooks.Enabled:
		return nil, protocol.InvalidParams("", "hooks.enabled is false in the config: no hook runs")
	}
	next := d.set
	next.overrides = maps.Clone(d.set.overrides)
	if next.overrides == nil {
		next.overrides = map[string]override{}
	}
	if entry.Enabled == o.enabled {
		delete(next.overrides, name)
	} else {
		next.overrides[name] = o
	}
	res, err := d.apply(ctx, next, change{only: name})
	if err != nil {
		return nil, err
	}
	fields := []zap.Field{zap.String("hook", name)}
	if !o.until.IsZero() {
		fields = append(fields, zap.Time("until", o.until))
	}
	d.log.Warn("hook "+o.word()+" by hand", fields...)
	d.book.overridden(ctx, d.set.config, res.Generation, "hook "+name+" "+o.word()+" by hand"+untilText(o.until))
	d.tellState(name, o.word())
	return res, nil
}

// renew starts a hook anew, the new one before the old one stops.
func (d *daemon) renew(ctx context.Context, name string) (*ReloadResult, error) {
	if d.set.entry(name) == nil {
		return nil, d.unknownHook(name)
	}
	if d.set.hooks[name] == nil {
		return nil, protocol.InvalidParams("", "hook %q is disabled; start it with hookd enable %s", name, name)
	}
	return d.apply(ctx, d.set, change{only: name, renew: name})
}

func (d *daemon) unknownHook(name string) error {
	var names []string
	for _, e := range d.set.config.Hooks.Entries {
		names = append(names, e.Name)
	}
	return protocol.InvalidParams("", "there is no hook %q%s", name, protocol.DidYouMean(name, names))
}

// tellState tells observers what became of a hook by hand.
func (d *daemon) tellState(name, state string) {
	d.manager.Publish(nil, protocol.NewHookdEvent(protocol.EventHookState, nil, protocol.Object{
		{Name: "hook", Value: protocol.Quote(name)}, {Name: "state", Value: protocol.Quote(state)},
	}.AppendJSON(nil)))
}

// nextExpiry is how long until an override ends.
func (d *daemon) nextExpiry() time.Duration {
	next := time.Hour
	for _, o := range d.set.overrides {
		if !o.until.IsZero() {
			next = min(next, time.Until(o.until))
		}
	}
	return max(next, 0)
}

// expireOverrides gives hooks back to the config whose override has ended. A
// hook that does not start then is there all the same, under its policy.
func (d *daemon) expireOverrides(ctx context.Context) {
	now := time.Now()
	next := d.set
	next.overrides = maps.Clone(d.set.overrides)
	for name, o := range d.set.overrides {
		if o.until.IsZero() || now.Before(o.until) {
			continue
		}
		delete(next.overrides, name)
		if _, err := d.apply(ctx, next, change{only: name, patient: true}); err != nil {
			// A built-in that can't be made; it can only be tried again later.
			d.log.Error("the override of a hook ended, but it can't be started; trying again in a minute", zap.String("hook", name), zap.Error(err))
			o.until = now.Add(time.Minute)
			next = d.set
			next.overrides = maps.Clone(d.set.overrides)
			next.overrides[name] = o
			d.set = next
			continue
		}
		d.log.Warn("the override of a hook ended", zap.String("hook", name))
		d.book.overridden(ctx, d.set.config, d.manager.Generation().Number, "the override of hook "+name+" ended")
		d.tellState(name, "back to the config")
		next = d.set
		next.overrides = maps.Clone(d.set.overrides)
	}
}
