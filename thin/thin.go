// Package thin is the client that a coding agent starts for every event. It
// hands what it finds on standard input to the daemon as it is, and writes the
// answer, which is in the agent's own words already, to standard output.
//
// Its time is mostly that of a process's start, so it is made of system calls
// and nothing else: a package that looks small, such as os or time, costs more
// here than the whole conversation. It translates nothing. For the moments in
// which no daemon answers it carries a table of finished answers, made of what
// package agent says ([Unavailable]).
package thin

// Options say what to ask.
type Options struct {
	// Agent is a name that package agent knows, or "auto"; Event is the agent's
	// own name for what happened. Empty is "auto": the payload says.
	Agent, Event string
	// Socket is the daemon's; empty: the standard place.
	Socket string
	// OnUnavailable is "continue", "deny" or "ask": what to answer when there is
	// no answer. Empty is "deny". Where the event has no such answer, it is the
	// nearest that it has.
	OnUnavailable string
	// Approve lets hookd's approvers decide what a hook asks about, instead of
	// the agent's own prompt.
	Approve bool
	// Autostart starts a daemon when there is none.
	Autostart bool
	// DryRun asks for an answer without any effect.
	DryRun bool
	// Version: nothing is asked, and the program's version is wanted.
	Version bool
	// TimeoutMS is how long everything may take together; 0 is
	// [DefaultTimeoutMS], 4 s for an agent that itself waits only 5.
	TimeoutMS int
	// MaxBytes is the largest payload; 0 is [DefaultMaxBytes].
	MaxBytes int
	// Hookd is the program for Autostart; empty: "hookd" beside this one, else
	// the first in PATH.
	Hookd string
}

// What holds when nothing else is said.
const (
	DefaultTimeoutMS = 25_000 // most agents wait 30 s
	DefaultMaxBytes  = 16 << 20

	// hurryTimeoutMS is for agents that wait 5 s.
	hurryTimeoutMS = 4_000
	// idleMS is how long the agent may take with the next part of a payload that
	// it has begun.
	idleMS = 5_000
	// marginMS is what of the time is left for the way back.
	marginMS = 100
	// minDeadlineMS is the shortest time that the daemon takes a question with.
	minDeadlineMS = 300
)

// Answer is what the agent reads.
type Answer struct {
	Stdout, Stderr []byte
	// Exit is the exit status; never 1.
	Exit int

	agent, event string // what was asked about
	payload      []byte
}

// ExitUnsaid is the exit status when Stdout can't be written: 2, which most
// agents read as a no, where the event is a gate or nobody knows what it is;
// else Exit.
func (a *Answer) ExitUnsaid() int {
	if a.Exit != 0 {
		return a.Exit
	}
	agent, event := resolve(a.agent, a.event, a.payload)
	if _, _, _, known := answerFor(agent, event, "deny"); known && !gate(agent, event) {
		return 0
	}
	return 2
}

// Failure is why there is no answer, for people. It holds no payload.
type Failure string

// Error returns the text.
func (f Failure) Error() string { return string(f) }

// Run reads a payload from file descriptor 0, asks, and returns what to say.
// It always returns an answer; when it is not the daemon's, why is not nil.
func Run(o Options, getenv func(string) string) (a Answer, why error) {
	began := nowMS()
	if o.TimeoutMS <= 0 {
		o.TimeoutMS = DefaultTimeoutMS
		if o.Agent == "grok" {
			o.TimeoutMS = hurryTimeoutMS
		}
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	deadline := began + int64(o.TimeoutMS)
	payload, failure := readPayload(0, o.MaxBytes, deadline)
	if failure == "" {
		a, failure = ask(&o, payload, deadline, getenv)
	}
	if failure != "" {
		a, why = Unavailable(o.Agent, o.Event, o.OnUnavailable, string(failure), payload), failure
	}
	a.agent, a.event, a.payload = o.Agent, o.Event, payload
	return a, why
}

// ask takes the payload to the daemon and brings the answer back.
func ask(o *Options, payload []byte, deadline int64, getenv func(string) string) (Answer, Failure) {
	path := socketPath(o.Socket, getenv)
	c, failure := dial(path, deadline)
	if failure != "" && o.Autostart {
		if bad := start(o, path, deadline, getenv); bad != "" {
			return Answer{}, failure + "; " + bad
		}
		c, failure = dial(path, deadline)
	}
	if failure != "" {
		return Answer{}, failure
	}
	defer c.close()
	left := deadline - nowMS() - marginMS
	if left < minDeadlineMS {
		return Answer{}, "the payload took so long that no time is left to ask"
	}
	if failure := c.write(request(o, withFolder(o.Agent, payload), left, getenv)); failure != "" {
		return Answer{}, failure
	}
	line, failure := c.readLine()
	if failure != "" {
		return Answer{}, failure
	}
	return readAnswer(line)
}
