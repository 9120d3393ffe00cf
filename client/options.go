package client

import (
	"cmp"
	"log/slog"
	"net"
	"time"

	"github.com/hookd/hookd/rpc"
)

const (
	defaultDeadline         = time.Minute
	defaultApprovalDeadline = 10 * time.Minute
	defaultRedial           = 5 * time.Second
)

// Options are the settings of a [Client]. Only Name is required.
type Options struct {
	// Name is the agent's name, shown to people and matched by "agents" patterns.
	Name string
	// Version is the agent's own version.
	Version string
	// SessionID is used where a [Meta] names none.
	SessionID string

	// Socket is where hookd listens; empty means the place that [SocketPath]
	// finds. [New] does not read it.
	Socket string
	// AllowUIDs are the users, besides one's own and root, whose hookd is
	// believed. [New] does not read it.
	AllowUIDs []int

	// Deadline is how long the agent waits for a decision, and ApprovalDeadline
	// how long for people who approve a tool call. hookd is told both and answers
	// a little before them. 0 means 1 and 10 minutes, and negative as long as
	// hookd's config allows. The least is 300 ms. A context that ends earlier counts
	// instead, and hookd is told that as well.
	Deadline         time.Duration
	ApprovalDeadline time.Duration

	// OwnEvents says that the agent sends all events itself, with
	// [Client.Event], so that hookd derives none from the calls.
	OwnEvents bool

	// Redial is how long a call tries to reach hookd again after the connection
	// broke; 0 means 5 s, negative one try. It ends earlier with the call's context.
	Redial time.Duration

	// Log gets lost connections and events that could not be sent, never what
	// was asked. nil means none.
	Log *slog.Logger

	creds func(net.Conn) (rpc.Creds, error) // of the other side; for tests
}

func (o Options) withDefaults() Options {
	o.Deadline = cmp.Or(o.Deadline, defaultDeadline)
	o.ApprovalDeadline = cmp.Or(o.ApprovalDeadline, defaultApprovalDeadline)
	o.Redial = cmp.Or(o.Redial, defaultRedial)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.creds == nil {
		o.creds = rpc.PeerCreds
	}
	return o
}

// milliseconds rounds up, so that a time that is too short is refused as what
// it is and does not become "not said". Negative times are not said.
func milliseconds(d time.Duration) int64 {
	return max(0, int64((d+time.Millisecond-1)/time.Millisecond))
}
