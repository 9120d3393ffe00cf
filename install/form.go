package install

import (
	"path/filepath"
	"time"

	"github.com/hookd/hookd/protocol"
)

// role is what an event is good for, and with that how long the agent waits.
type role int

const (
	watch  role = iota // hookd is told
	decide             // the answer counts
	gate               // the answer comes before an action and can stop it
)

// event is one of an agent's events.
type event struct {
	name string
	role role
	// stops: something is about to happen that hookd can stop, a tool or not.
	stops bool
	// max is the longest time the agent gives it; 0 = no limit of its own.
	max time.Duration
	// left says why it is installed only when asked for; "" = it always is.
	left string
}

// How long agents wait by default.
const (
	watchTimeout   = 10 * time.Second
	decideTimeout  = time.Minute
	approveTimeout = 5 * time.Minute // people decide
)

// form is how an agent writes one handler.
type form struct {
	// command is the member with the program or the shell line.
	command string
	// exec: the member has the program alone, and args the rest.
	exec bool
	// direct: there is no line, but a file that runs the program.
	direct bool
	// login: the line is run by the user's own shell as a login shell, whose
	// profile may write before us.
	login bool
	// event is the member with the event's name, where that is not told by the
	// place.
	event string
	// typed and named handlers have a type and a name.
	typed, named bool
	// timeout is the member with the time the agent waits, in units.
	timeout string
	unit    time.Duration
	// closed is the member that makes the agent say no when the program can't be
	// run or does not answer, and what it must be.
	closed      string
	closedValue any
	// extra are members that every handler has.
	extra protocol.Object
	// group says what a matcher group of the event has beside its hooks; nil =
	// there are no groups, and it may return nil for an event without.
	group func(e event) protocol.Object
}

// plainGroup is a matcher group without a matcher, which matches everything.
func plainGroup(event) protocol.Object { return protocol.Object{} }

// entry writes the handler of an event.
func (f form) entry(c Call, e event, limit time.Duration, closed bool) (entry, error) {
	var o protocol.Object
	if f.event != "" {
		o = append(o, object(f.event, e.name)...)
	}
	if f.named {
		o = append(o, object("name", "hookd")...)
	}
	if f.typed {
		o = append(o, object("type", "command")...)
	}
	if f.exec {
		argv := c.Argv()
		o = append(o, object(f.command, argv[0], "args", argv[1:])...)
	} else {
		line, err := shellLine(c.Argv())
		if err != nil {
			return entry{}, err
		}
		o = append(o, object(f.command, line)...)
	}
	if f.timeout != "" {
		o = append(o, object(f.timeout, int64((limit+f.unit-1)/f.unit))...)
	}
	if f.closed != "" && closed && (e.stops || e.role == gate) {
		o = append(o, object(f.closed, f.closedValue)...)
	}
	en := entry{event: e.name, call: c, value: append(o, f.extra...)}
	if f.group != nil {
		en.group = f.group(e)
	}
	return en, nil
}

// run is how the agent runs a call of its file.
func (f form) run(argv []string, getenv func(string) string) ([]string, error) {
	if f.exec || f.direct {
		return argv, nil
	}
	line, err := shellLine(argv)
	if err != nil {
		return nil, err
	}
	if shell := getenv("SHELL"); f.login && filepath.IsAbs(shell) {
		return []string{shell, "-lc", line}, nil
	}
	return []string{"sh", "-c", line}, nil
}

// limit is how long the agent is to wait at an event.
func (e event) limit(o *Options) time.Duration {
	d := o.Timeout
	if d == 0 {
		d = decideTimeout
		if o.Approve {
			d = approveTimeout
		}
	}
	if e.role == watch {
		d = min(d, watchTimeout)
	}
	if e.max > 0 {
		d = min(d, e.max)
	}
	return d
}

func events(r role, names ...string) []event {
	list := make([]event, len(names))
	for i, name := range names {
		list[i] = event{name: name, role: r}
	}
	return list
}

func leftOut(why string, names ...string) []event {
	list := events(watch, names...)
	for i := range list {
		list[i].left = why
	}
	return list
}
