package approval

import (
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/protocol"
)

// Ticket is one call that waits for a person. It does not change.
type Ticket struct {
	// ID is short and can be spoken, such as "bavi-nope-42".
	ID string
	// Digest is the call's; the answer holds for it alone.
	Digest string
	Tool   string
	// Arguments are the call's, byte for byte.
	Arguments jsontext.Value
	// Message says why somebody is asked; AskedBy is the hook that said so.
	// Both are empty when that is not known.
	Message, AskedBy string
	// Agent is what the agent calls itself; PID and UID are who it is by the
	// kernel's word, -1 when that is not known.
	Agent    string
	PID, UID int
	// What the agent said of the call, each empty when it did not.
	Session, Task, User, Node, CWD, Model, CallID string
	// Opened and Expires are when it was put on the desk and when it becomes a
	// no by itself.
	Opened, Expires time.Time
}

// Limit is how long the ticket may be open.
func (t *Ticket) Limit() time.Duration { return t.Expires.Sub(t.Opened) }

// Agent is the process that asks, by the kernel's word. -1 = unknown.
type Agent struct{ PID, UID int }

type agentKey struct{}

// WithAgent returns a context that tells the desk whose call it is. The agent must not
// change.
func WithAgent(ctx context.Context, a *Agent) context.Context {
	return context.WithValue(ctx, agentKey{}, a)
}

func agentOf(ctx context.Context) Agent {
	if a, ok := ctx.Value(agentKey{}).(*Agent); ok {
		return *a
	}
	return Agent{PID: -1, UID: -1}
}

// newTicket makes the ticket of a request, without its id.
func newTicket(ctx context.Context, req *protocol.Request, now time.Time) Ticket {
	who := agentOf(ctx)
	t := Ticket{
		Digest: req.Digest(), Tool: req.Tool(), Arguments: req.Subject.Get("arguments"), CallID: req.CallID,
		Agent: req.MetaString("agent"), PID: who.PID, UID: who.UID,
		Session: req.MetaString("session_id"), Task: req.MetaString("task_id"), User: req.MetaString("user_id"),
		Node: req.MetaString("node_id"), CWD: req.MetaString("cwd"), Model: req.MetaString("model"),
		Opened: now, Expires: now.Add(req.Timeout),
	}
	if end, ok := ctx.Deadline(); ok && end.Before(t.Expires) {
		t.Expires = end
	}
	if ask, err := protocol.ParseObject(req.Extra.Get("ask")); err == nil {
		t.Message, t.AskedBy = text(ask, "reason"), text(ask, "by")
	}
	return t
}

func text(o protocol.Object, name string) string {
	if v := o.Get(name); v != nil && v.Kind() == '"' {
		return protocol.Unquote(v)
	}
	return ""
}

// How says what has resolved a ticket.
type How string

// The ways in which a ticket ends. Only answered and rule can be a yes.
const (
	HowAnswered  How = "answered"
	HowRule      How = "rule"
	HowTimeout   How = "timeout"
	HowAgentGone How = "agent_gone"
	HowShutdown  How = "shutdown"
	// HowCancelled: somebody has cancelled the session.
	HowCancelled How = "session_cancelled"
	// HowAbandoned: hookd ended without resolving it, and said no when it came
	// back.
	HowAbandoned How = "abandoned"
	// HowUnrecorded: the yes could not be recorded, so it is a no.
	HowUnrecorded How = "unrecorded"
)

// Resolution is how a ticket has ended.
type Resolution struct {
	Approved bool
	How      How
	Reason   string
	// By says who has ruled: a person or a rule; "" when nobody has.
	By string
	// Person is the person who has ruled; zero when none has.
	Person Ruler
	At     time.Time
}

// String says it for people: "ann (uid 1000) said no: not today".
func (r *Resolution) String() string {
	said := "no"
	if r.Approved {
		said = "yes"
	}
	text := r.Reason
	if r.By != "" {
		text = r.By + " said " + said
		if r.Reason != "" {
			text += ": " + r.Reason
		}
	}
	return text
}

// Ruler is a person who rules, by the kernel's word about the connection.
type Ruler struct {
	UID int
	// PID is the process that said it; 0 when the system does not tell.
	PID int
	// Name is the user's; "" = unknown.
	Name string
}

// String names the person: "ann (uid 1000)", or "uid 1000".
func (r Ruler) String() string {
	if r.Name == "" {
		return fmt.Sprintf("uid %d", r.UID)
	}
	return fmt.Sprintf("%s (uid %d)", r.Name, r.UID)
}

// seconds writes a duration as people say it: "60 s", "0.5 s".
func seconds(d time.Duration) string {
	return fmt.Sprintf("%g s", d.Round(10*time.Millisecond).Seconds())
}
