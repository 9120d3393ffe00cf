package manager

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/zap"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// Causes with which a caller's context ends. They become the reason of what
// was cut short.
var (
	// ErrAgentGone: the agent disconnected or cancelled the call.
	ErrAgentGone = errors.New("the agent went away")
	// ErrShuttingDown: hookd is about to exit.
	ErrShuttingDown = errors.New("shutting down")

	errChainDeadline = errors.New("the chain's deadline passed")
	errAgentDeadline = errors.New("the agent's deadline came near")
	errHookTimeout   = errors.New("the hook's timeout passed")
)

// Limits that are not for the config.
const (
	// abandonedCalls is how many calls of one in-process hook may go on after
	// their context ended before the hook is asked no more.
	abandonedCalls = 8
	// observerQueue is how many events wait for one observer at most.
	observerQueue = 1024
	// observerBytes is how many bytes of payload those may hold together, without
	// what is encoded of them once for all observers.
	observerBytes = 32 << 20
	// observerPace is the least time between two deliveries to an observer that
	// takes several events at once, observerBatch and observerBatchBytes are
	// about how many these are at most. A process that is woken for each event
	// of a busy agent has no time left for what it is woken for.
	observerPace       = 2 * time.Millisecond
	observerBatch      = 64
	observerBatchBytes = 64 << 10
	// asyncQueue is how many calls wait for one hook in mode async at most.
	asyncQueue = 64
	// deadlineMargin is what of an agent's deadline is left for the way back.
	deadlineMargin = 200 * time.Millisecond
	// minDeadline is the shortest deadline with which an agent may ask.
	minDeadline = 300 * time.Millisecond
)

// Options configure a [HookManager].
type Options struct {
	// Log gets failures and dropped events; nil = none. Never payload.
	Log *zap.Logger
	// Recorder is shown every answer before it is sent; nil = none.
	Recorder Recorder
}

// Recorder keeps what was decided.
type Recorder interface {
	// Record is called once per call, before the answer is sent and on its
	// path, so it must be quick. An error means that the answer must not be a
	// yes: the call is denied with it. A recorder that prefers to go on without
	// a record returns nil.
	Record(ctx context.Context, rec *Record) error
}

// Record is one call with its answer. It is read-only, and valid during the call of
// [Recorder.Record] only, but for Request and Final, which never change.
type Record struct {
	// Call is [Plan.Call].
	Call    uint64
	Caller  *Caller
	Request *protocol.Request
	// Final is the subject after all changes, Digest the [protocol.Request.Digest]
	// of the call with it where that is known; "" = it has to be computed.
	Final    protocol.Object
	Digest   string
	Result   *protocol.Result
	Started  time.Time
	Duration time.Duration
	// Err says why the agent got no decision; nil otherwise.
	Err error
}

// HookManager runs agents' calls through hooks and events to observers. Make
// one with [New]; it is safe for concurrent use.
type HookManager struct {
	log      *zap.Logger
	recorder Recorder
	stages   *protocol.StageTable

	current atomic.Pointer[Generation]
	swap    sync.Mutex // orders Swap calls

	feedsMu sync.Mutex // orders changes of feeds
	feeds   atomic.Pointer[[]*Feed]

	calls   atomic.Uint64 // planned so far
	stats   statsTable
	repeats repeats
	eventID eventIDs

	// approvals ends, with a cause, when every open approval must become a no.
	approvals       context.Context
	cancelApprovals context.CancelCauseFunc
	now             func() time.Time
}

// New returns a manager without any hook. Close it.
func New(o Options) *HookManager {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	m := &HookManager{log: o.Log, recorder: o.Recorder, stages: protocol.NewStageTable(), now: time.Now}
	m.approvals, m.cancelApprovals = context.WithCancelCause(context.Background())
	m.eventID.start = m.now()
	m.current.Store(emptyGeneration())
	return m
}

// Generation returns the one that new calls see.
func (m *HookManager) Generation() *Generation { return m.current.Load() }

// Swap makes g the generation of all calls that start from now on and returns
// the one before it. Calls already under way finish on the old one; wait for
// [Generation.Drained] before taking its hooks away. Hooks that both hold keep
// their observer queues.
func (m *HookManager) Swap(g *Generation) (old *Generation) {
	m.swap.Lock()
	defer m.swap.Unlock()
	old = m.current.Load()
	g.start(m, old)
	m.current.Store(g)
	old.retire(g)
	return old
}

// DenyApprovals turns every open and every later approval into a no with this
// reason, such as [ErrShuttingDown].
func (m *HookManager) DenyApprovals(cause error) { m.cancelApprovals(cause) }

// Close takes the last generation away and waits, until ctx ends, for its
// observers to work off what they have been sent. Calls that come later are
// refused with [protocol.CodeShuttingDown].
func (m *HookManager) Close(ctx context.Context) error {
	m.DenyApprovals(ErrShuttingDown)
	none := emptyGeneration()
	none.closed = true
	last := m.Swap(none)
	if err := last.Wait(ctx); err != nil {
		return fmt.Errorf("close manager: %w", err)
	}
	return nil
}

// Stats returns the counters of all hooks that were ever mounted, by name.
// They outlive reloads.
func (m *HookManager) Stats() map[string]HookStats { return m.stats.snapshot() }

// Caller is who asks: one connection of an agent. Fields are set before the
// first call and not changed later, except by [Caller.Greet].
type Caller struct {
	// Name is what the agent called itself; "" before it greeted.
	Name string
	// PID and UID are the peer's credentials; -1 = unknown.
	PID, UID int
	// SessionID is used where a request's meta names none.
	SessionID string
	// Deadline and ApprovalDeadline are how long the agent waits; 0 = not said.
	Deadline, ApprovalDeadline time.Duration
	// OwnEvents: the agent sends events, none are derived.
	OwnEvents bool

	asked   askedMemory
	repeats repeats // of calls that name no session
}

// Greet takes over what the agent said of itself.
func (c *Caller) Greet(h *protocol.AgentHello) *protocol.Error {
	decision, err := deadline("deadline_ms", h.DeadlineMS)
	if err != nil {
		return err
	}
	approval, err := deadline("approval_deadline_ms", h.ApprovalDeadlineMS)
	if err != nil {
		return err
	}
	c.Name, c.SessionID, c.OwnEvents = h.Name, h.SessionID, h.Events
	c.Deadline, c.ApprovalDeadline = decision, approval
	return nil
}

// deadline reads how long an agent waits; 0 = not said.
func deadline(path string, ms int64) (time.Duration, *protocol.Error) {
	d := time.Duration(ms) * time.Millisecond
	if d != 0 && d < minDeadline {
		return 0, protocol.InvalidParams(path, "must be at least %d", minDeadline.Milliseconds())
	}
	return d, nil
}

// agentName is the name that "agents" patterns see.
func (c *Caller) agentName(meta protocol.Object) string {
	if c.Name != "" {
		return c.Name
	}
	return protocol.MetaString(meta, "agent")
}

func (c *Caller) session(meta protocol.Object) string {
	if s := protocol.MetaString(meta, "session_id"); s != "" {
		return s
	}
	return c.SessionID
}

// fillMeta returns meta with what hookd knows better than the payload.
func (c *Caller) fillMeta(meta protocol.Object, generation jsontext.Value) protocol.Object {
	out := make(protocol.Object, 0, len(meta)+3)
	for _, m := range meta {
		if m.Name == "generation" || (m.Name == "agent" && c.Name != "") {
			continue
		}
		out = append(out, m)
	}
	if c.Name != "" {
		out = append(out, protocol.Member{Name: "agent", Value: protocol.Quote(c.Name)})
	}
	if c.SessionID != "" && meta.Get("session_id") == nil {
		out = append(out, protocol.Member{Name: "session_id", Value: protocol.Quote(c.SessionID)})
	}
	return append(out, protocol.Member{Name: "generation", Value: generation})
}

// member is a hook in one generation: the rules of its entry, and the unit
// that runs it.
type member struct {
	*hook.Registration
	unit *unit
}

// counts reports whether what the member says can decide anything.
func (mb *member) counts() bool { return mb.Mode != hook.Shadow && mb.Mode != hook.Async }

// rechecks reports whether the member must see the final subject.
func (mb *member) rechecks() bool { return (mb.Recheck || mb.Denies()) && mb.counts() }
