package install

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hookd/hookd/protocol"
)

// Options say what to install.
type Options struct {
	// Agent is one of [Agents].
	Agent string
	Scope Scope
	// Program is what the agent is told to run.
	Program Program
	// OnUnavailable is what holds when no daemon answers: continue, deny or ask.
	// Empty leaves it to hookd-hook, which denies where the event can deny.
	OnUnavailable string
	// Approve lets hookd's approvers decide what hooks ask about, instead of the
	// agent's own prompt.
	Approve bool
	// Autostart makes hookd-hook start a daemon when there is none.
	Autostart bool
	// Socket is the daemon's; empty = the usual place.
	Socket string
	// Timeout is how long the agent waits where the answer counts; 0 = a minute,
	// and five with Approve. hookd-hook itself gives up a little earlier.
	Timeout time.Duration
	// Events are the agent's own names of those to install; empty = the usual
	// ones.
	Events []string
}

// Limits of Options.Timeout.
const (
	minTimeout = time.Second
	maxTimeout = 24 * time.Hour
)

// OptionError is returned for an option that makes no sense.
type OptionError struct{ Text string }

// Error implements error.
func (e *OptionError) Error() string { return e.Text }

func badOption(format string, args ...any) error { return &OptionError{fmt.Sprintf(format, args...)} }

// prepare checks the options and finds the agent.
func prepare(p *Place, name string, scope Scope) (*spec, error) {
	s, err := findSpec(name)
	if err != nil {
		return nil, err
	}
	switch {
	case !slices.Contains(s.scopes, scope):
		return nil, badOption("%s has no hooks for a %s, only for a %s", s.title, scope, s.scopes[0])
	case !filepath.IsAbs(p.Home):
		return nil, badOption("where the user's folder is, is not known: set HOME")
	case scope == Project && !filepath.IsAbs(p.Project):
		return nil, errNoProject
	case scope == Project && !isFolder(p.Project):
		return nil, badOption("%s is no folder", p.Project)
	}
	return s, nil
}

func (o *Options) check(s *spec) error {
	switch o.OnUnavailable {
	case "", "continue", "deny", "ask":
	default:
		return badOption("--on-unavailable is continue, deny or ask, not %q", o.OnUnavailable)
	}
	if o.Timeout != 0 && (o.Timeout < minTimeout || o.Timeout > maxTimeout) {
		return badOption("--timeout %s is not between %s and %s", o.Timeout, minTimeout, maxTimeout)
	}
	if o.Socket != "" && !filepath.IsAbs(o.Socket) {
		return badOption("--socket %q is no absolute path, and agents run hooks in any folder", o.Socket)
	}
	if len(o.Program.Argv) == 0 || !filepath.IsAbs(o.Program.Argv[0]) {
		return ErrNoProgram
	}
	var names []string
	for _, e := range s.events {
		names = append(names, e.name)
	}
	for _, name := range o.Events {
		if !slices.Contains(names, name) {
			return badOption("%s has no event %q%s; it has %s", s.title, name, protocol.DidYouMean(name, names), strings.Join(names, ", "))
		}
	}
	return nil
}

// closed reports whether an agent should say no when it can't run hookd-hook.
func (o *Options) closed() bool { return o.OnUnavailable == "" || o.OnUnavailable == "deny" }

// call is the command for one event.
func (o *Options) call(s *spec, e event) Call {
	c := Call{Program: o.Program.Argv, Agent: s.name, Event: e.name}
	c.Flags = append(c.Flags, "--timeout", duration(clientTimeout(e.limit(o))))
	if o.OnUnavailable != "" {
		c.Flags = append(c.Flags, "--on-unavailable", o.OnUnavailable)
	}
	if o.Approve && e.role != watch {
		c.Flags = append(c.Flags, "--approve")
	}
	if o.Autostart {
		c.Flags = append(c.Flags, "--autostart")
	}
	if o.Socket != "" {
		c.Flags = append(c.Flags, "--socket", o.Socket)
	}
	return c
}

// duration is written in one unit, which is the easiest to read.
func duration(d time.Duration) string {
	if d%time.Second == 0 {
		return strconv.FormatInt(int64(d/time.Second), 10) + "s"
	}
	return strconv.FormatInt(int64(d/time.Millisecond), 10) + "ms"
}

// entries are the handlers for the wanted events.
func (s *spec) entries(o *Options) ([]entry, error) {
	var list []entry
	for _, e := range s.events {
		if len(o.Events) == 0 && e.left != "" || len(o.Events) > 0 && !slices.Contains(o.Events, e.name) {
			continue
		}
		en, err := s.form.entry(o.call(s, e), e, e.limit(o), o.closed())
		if err != nil {
			return nil, err
		}
		list = append(list, en)
	}
	return list, nil
}

// Install works out what has to change so that an agent asks hookd at the wanted
// events, and at no others. Nothing is written. The errors that a caller can
// tell apart are *[UnknownAgentError], *[OptionError] and *[FileError].
func Install(p Place, o Options) (*Plan, error) {
	s, err := prepare(&p, o.Agent, o.Scope)
	if err != nil {
		return nil, err
	}
	if err := o.check(s); err != nil {
		return nil, err
	}
	entries, err := s.entries(&o)
	if err != nil {
		return nil, err
	}
	targets, err := s.targets(&p, o.Scope)
	if err != nil {
		return nil, err
	}
	plan := &Plan{Agent: s.name, Title: s.title, Scope: o.Scope}
	written := map[string]bool{}
	for _, t := range targets {
		t.agent = s.name
		written[t.path] = true
		c, err := planTarget(t, entries)
		if err != nil {
			return nil, err
		}
		plan.add(c)
	}
	// What an older version wrote elsewhere would fire a second time.
	all, err := s.all(&p, o.Scope)
	if err != nil {
		return nil, err
	}
	for _, t := range all {
		if written[t.path] {
			continue
		}
		c, err := planUninstall(t)
		if err != nil {
			return nil, err
		}
		plan.add(c)
	}
	for _, e := range entries {
		plan.Events = append(plan.Events, e.event)
	}
	plan.say(s, &p, &o)
	return plan, nil
}

// planTarget is planInstall, or planUninstall when nothing is wanted there.
func planTarget(t target, entries []entry) (*Change, error) {
	if t.only != "" {
		i := slices.IndexFunc(entries, func(e entry) bool { return e.event == t.only })
		if i < 0 {
			return planUninstall(t)
		}
		entries = entries[i : i+1]
	}
	return planInstall(t, entries)
}

func (p *Plan) add(c *Change) {
	if c != nil {
		p.Changes = append(p.Changes, *c)
	}
}

// say collects what the user should know.
func (p *Plan) say(s *spec, place *Place, o *Options) {
	if len(o.Events) == 0 {
		p.LeftOut = s.leftOut()
	}
	p.Todo = s.todo(place, o.Scope)
	if o.Program.Note != "" {
		p.Warnings = append(p.Warnings, o.Program.Note)
	}
	for _, c := range p.Changes {
		if c.Real != c.Path {
			p.Warnings = append(p.Warnings, fmt.Sprintf("%s is a link: %s is what changes", c.Path, c.Real))
		}
	}
	if o.Scope == Project {
		p.Warnings = append(p.Warnings, fmt.Sprintf("whoever else uses this project needs %s at the same place: %s", clientProgram, o.Program.Argv[0]))
	}
	p.Warnings = append(p.Warnings, s.runsToo(place)...)
	p.Warnings = append(p.Warnings, s.isRunBy(place, o.Scope)...)
}

// leftOut names the events that are not installed unless asked for, a line per
// reason.
func (s *spec) leftOut() []string {
	var reasons []string
	names := map[string][]string{}
	for _, e := range s.events {
		if e.left == "" {
			continue
		}
		if names[e.left] == nil {
			reasons = append(reasons, e.left)
		}
		names[e.left] = append(names[e.left], e.name)
	}
	for i, why := range reasons {
		reasons[i] = strings.Join(names[why], ", ") + ": " + why
	}
	return reasons
}

// Uninstall works out how to take out of an agent's files what Install has put
// there. Nothing is written. Errors are as for [Install].
func Uninstall(p Place, agent string, scope Scope) (*Plan, error) {
	s, err := prepare(&p, agent, scope)
	if err != nil {
		return nil, err
	}
	plan := &Plan{Agent: s.name, Title: s.title, Scope: scope}
	all, err := s.all(&p, scope)
	if err != nil {
		return nil, err
	}
	for _, t := range all {
		c, err := planUninstall(t)
		if err != nil {
			return nil, err
		}
		plan.add(c)
	}
	return plan, nil
}

// runsToo says whose files this agent runs beside its own, so that one event
// reaches hookd twice.
func (s *spec) runsToo(p *Place) []string {
	var found []string
	for _, im := range s.imports {
		if from, err := findSpec(im.agent); err == nil && installed(p, im.agent, im.scopes) {
			found = append(found, fmt.Sprintf("%s also runs what is installed for %s, so hookd is asked twice about each event: %s", s.title, from.title, im.off))
		}
	}
	return found
}

// isRunBy says which other agents, with hookd installed, will run what is
// installed for this one too.
func (s *spec) isRunBy(p *Place, scope Scope) []string {
	var found []string
	for _, other := range specs() {
		for _, im := range other.imports {
			if im.agent == s.name && slices.Contains(im.scopes, scope) && installed(p, other.name, both()) {
				found = append(found, fmt.Sprintf("%s also runs what is installed for %s, so hookd is asked twice about its events: %s", other.title, s.title, im.off))
			}
		}
	}
	return found
}

// installed reports whether an agent's files hold entries of ours.
func installed(p *Place, agent string, scopes []Scope) bool {
	s, err := findSpec(agent)
	if err != nil {
		return false
	}
	for _, scope := range scopes {
		if scope == Project && p.Project == "" || !slices.Contains(s.scopes, scope) {
			continue
		}
		targets, err := s.all(p, scope)
		if err != nil {
			continue
		}
		for _, t := range targets {
			file, err := readDisk(t.path)
			if err != nil || file.text == nil {
				continue
			}
			if _, ours, err := t.edit.strip(t.path, agent, file.text); err == nil && len(ours) > 0 {
				return true
			}
		}
	}
	return false
}

// here reports whether an agent seems to be on this machine.
func (s *spec) here(p *Place) bool {
	for _, dir := range s.folders(p) {
		if isFolder(dir) || isFile(dir) {
			return true
		}
	}
	return findInPath(s.programs, p.getenv) != ""
}
