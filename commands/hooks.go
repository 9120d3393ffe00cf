package commands

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// Hooks returns the rules of a file as hooks of a layer, in the order in which
// they are asked. offset is added to priorities, so that the rules of several
// files of one layer stay in the order of the files. Of a disabled file there
// are none.
func (f *File) Hooks(layer hook.Layer, offset int, r *Runner) []*hook.Registration {
	if f.Disabled {
		return nil
	}
	var list []*hook.Registration
	for _, rule := range f.sorted() {
		if !rule.Enabled {
			continue
		}
		for i := range rule.Handlers {
			list = append(list, f.registration(layer, offset, rule, i, r))
		}
	}
	return list
}

// name is what a handler is called everywhere.
func (f *File) name(layer hook.Layer, rule *Rule, i int) string {
	name := fmt.Sprintf("%s:%s/%s", layer, rule.Event, rule.Name)
	if len(rule.Handlers) > 1 {
		name += fmt.Sprintf("#%d", i+1)
	}
	return name
}

func (f *File) registration(layer hook.Layer, offset int, rule *Rule, i int, r *Runner) *hook.Registration {
	h := &rule.Handlers[i]
	c := &scripted{file: f, rule: rule, handler: h, row: row(rule.Event), runner: r, name: f.name(layer, rule, i)}
	reg := &hook.Registration{
		Name: c.name, Source: hook.Command, Layer: layer, Priority: offset + rule.Priority,
		Roles: hook.Roles{Value: c, Remote: true}, If: c, FailPolicy: h.FailPolicy, MayRespond: false, MaxRepeats: rule.MaxRepeats,
		Timeout: h.Timeout, ApprovalTimeout: h.Timeout, ObserverTimeout: h.Timeout,
	}
	switch {
	case c.row.stage == protocol.StageApproveTool:
		reg.Roles.Approver = c
	case c.row.stage != "":
		reg.Roles.Interceptor = c
	}
	if c.row.stage != "" {
		reg.Stages = []protocol.Stage{c.row.stage}
		reg.Roles.Stages = reg.Stages
	}
	if h.Async {
		reg.Mode = hook.Async
	}
	if len(c.row.kinds) > 0 {
		reg.Roles.Observer = c
		for _, kind := range c.row.kinds {
			if s, err := protocol.ParseSubscription(string(kind)); err == nil {
				reg.Events = append(reg.Events, s)
			}
		}
	}
	return reg
}

// scripted is one handler of a rule as a hook.
type scripted struct {
	file    *File
	rule    *Rule
	handler *Handler
	row     eventRow
	runner  *Runner
	name    string
	counter string // parts what several projects' rules of one name count
}

// Remote says that the hook keeps its own time.
func (c *scripted) Remote() {}

// Abstains says that a script at PermissionRequest may have no opinion.
func (c *scripted) Abstains() {}

// Holds reports whether the rule means a call or an event: its matcher and its
// conditions.
func (c *scripted) Holds(req *protocol.Request) bool {
	o := ofRequest(req)
	if req.Stage.Name == "" { // an event that is shown as a call
		o.req = nil
	}
	return c.means(o, req)
}

func (c *scripted) means(o *occasion, req *protocol.Request) bool {
	if o.req != nil && !o.is(c.row) {
		return false
	}
	switch c.row.subject {
	case "":
	case "tool":
		if !c.rule.matcher.tool(o.tool) {
			return false
		}
	default:
		if !c.rule.matcher.text(o.about(c.row)) {
			return false
		}
	}
	if c.rule.cond != nil && !c.rule.cond.Holds(req) {
		return false
	}
	if c.handler.IfText != "" && (c.row.subject != "tool" || !c.handler.cond.Holds(req)) {
		return false
	}
	return true
}

// Intercept runs the script.
func (c *scripted) Intercept(ctx context.Context, req *protocol.Request) (protocol.Decision, error) {
	v, limited, err := c.run(ctx, ofRequest(req), req.DryRun)
	if err != nil {
		return protocol.Decision{}, err
	}
	if limited {
		return protocol.Decision{Warnings: []string{"has had its effect as often as it may in this session (max_repeats)"}}, nil
	}
	return v.decision, nil
}

// Approve runs the script. One that has no opinion abstains.
func (c *scripted) Approve(ctx context.Context, req *protocol.Request) (protocol.Approval, error) {
	v, limited, err := c.run(ctx, ofRequest(req), req.DryRun)
	if err != nil {
		if c.handler.FailPolicy == hook.FailContinue && ctx.Err() == nil && !alwaysDenies(err) {
			return protocol.Approval{Abstained: true, Steps: []protocol.Step{failedStep(c.name, err)}}, nil
		}
		return protocol.Approval{}, err
	}
	if limited || !v.approved && !v.refused {
		return protocol.Approval{Abstained: true}, nil
	}
	return protocol.Approval{Approved: v.approved, Reason: v.decision.Reason}, nil
}

func alwaysDenies(err error) bool {
	f, ok := errors.AsType[*hook.Failure](err)
	return ok && f.Outcome.AlwaysDenies()
}

// failedStep keeps a failure that is passed over in the trail.
func failedStep(name string, err error) protocol.Step {
	step := protocol.Step{Hook: name, Outcome: protocol.OutcomeHookError, Detail: err.Error()}
	if f, ok := errors.AsType[*hook.Failure](err); ok {
		step.Outcome, step.Detail = f.Outcome, f.Detail
	}
	return step
}

// Observe runs the script for an event. What it says means nothing.
func (c *scripted) Observe(ctx context.Context, ev *hook.Event) error {
	_, _, err := c.run(ctx, ofEvent(ev.Event), false)
	return err
}

func (c *scripted) run(ctx context.Context, o *occasion, dryRun bool) (v verdict, limited bool, err error) {
	// What a person is asked to try must do nothing, and a script that was
	// written for somebody else does not know that.
	if dryRun {
		v.decision.Warnings = []string{"was not run: a script does not know of dry runs"}
		return v, false, nil
	}
	// At stop the manager counts; it knows of other hooks' messages too. Where no
	// session has a name it counts by connection, and an agent may make one for
	// each event.
	effects, who := c.runner.effectsOf(c.counter+c.name), o.who()
	counts := c.rule.MaxRepeats != nil && (c.row.stage != protocol.StageStop || o.session() == "")
	if counts && !effects.left(who, *c.rule.MaxRepeats) {
		return v, true, nil
	}
	active := c.row.stage == protocol.StageStop && effects.any(who)
	v, err = c.runner.run(ctx, c.file, c.name, c.handler, c.row, o, o.payload(c.rule.Event, active))
	if err == nil && v.effect() {
		effects.add(who)
	}
	return v, false, err
}

// effectsOf returns the count of a rule, which outlives reloads.
func (r *Runner) effectsOf(name string) *effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.effects[name]
	if e == nil {
		if len(r.effects) >= rulesCounted {
			clear(r.effects)
		}
		e = &effects{}
		r.effects[name] = e
	}
	return e
}

// effects counts, per session, how often a rule had an effect. The zero value
// is ready.
type effects struct {
	mu     sync.Mutex
	counts map[string]int
	order  []string
}

// How many sessions, and rules, are remembered.
const (
	sessionsCounted = 4096
	rulesCounted    = 4096
)

func (e *effects) left(session string, limit int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.counts[session] < limit
}

func (e *effects) any(session string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.counts[session] > 0
}

func (e *effects) add(session string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.counts == nil {
		e.counts = map[string]int{}
	}
	if _, known := e.counts[session]; !known {
		e.order = append(e.order, session)
		if len(e.order) > sessionsCounted {
			delete(e.counts, e.order[0])
			e.order = e.order[1:]
		}
	}
	e.counts[session]++
}
