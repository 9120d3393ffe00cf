package mount

import (
	"time"

	"github.com/hookd/hookd/child"
	"github.com/hookd/hookd/protocol"
)

// State is what a mounted hook is doing.
type State string

// The states. A built-in is ready until it is closed.
const (
	// Starting: the child is being started and greeted.
	Starting State = "starting"
	// Ready: it may be called.
	Ready State = "ready"
	// Degraded: it may be called, but owes an answer to a call that timed out.
	Degraded State = "degraded"
	// Backoff: it ended or did not start, and is started again after a pause.
	Backoff State = "backoff"
	// Failed: it ended or did not start too often. It is tried once a minute.
	Failed State = "failed"
	// Untrusted: a file that its entry pins is not what it was. The child is not
	// started until it is again, which is looked at every half minute.
	Untrusted State = "untrusted"
	// Stopping: it is being stopped, for good or to be started anew.
	Stopping State = "stopping"
	// Stopped: it was closed.
	Stopped State = "stopped"
)

// Status is how a mounted hook fares. For a built-in only Name, State and
// Started are set.
type Status struct {
	Name  string
	State State
	// PID is 0 while no child runs.
	PID int
	// Started is when the child that runs was started; zero when none does.
	Started time.Time
	// Restarts counts the starts after the first one.
	Restarts int
	// LastError says why the child last ended, was restarted or did not start,
	// with its last lines on stderr; "" when that never happened.
	LastError string
	// InFlight counts the calls that the child owes an answer, those included
	// that nobody waits for any longer. Capacity is how many it takes at once.
	InFlight, Capacity int
	// Noise counts what came from the child and had no meaning, by the names of
	// package rpc (late_reply, garbage, …), over all its runs.
	Noise map[string]int64
	// Garbage is the last line that could not be read: the reason and its first
	// 256 bytes, escaped.
	Garbage string
	// StderrTail holds the last lines, at most 20, of the child's stderr.
	StderrTail []string
	// Greeted is what the hook calls itself.
	Greeted string
	// Stages are those the hook took of what it was offered; nil before it was
	// greeted.
	Stages []protocol.Stage
	// Confinement is how the child is limited, as it was last started; nil
	// before that.
	Confinement *child.Confinement
	// Escaped counts the processes that have left the child's group, over all
	// its lives.
	Escaped int64
	// Fingerprint is that of the child's files when it was started.
	Fingerprint string
}
