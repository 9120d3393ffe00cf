package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/hookd/hookd/client"
	"github.com/hookd/hookd/dialect"
	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/rpc"
)

// What connect answers while the daemon is away.
const (
	awayContinue = "continue"
	awayDeny     = "deny"
	awayAsk      = "ask"
)

func (a *app) connectCommand() *cobra.Command {
	var p places
	away := awayDeny
	policies := []string{awayContinue, awayDeny, awayAsk}
	cmd := &cobra.Command{
		Use:   "connect",
		Short: "Stand in for the daemon as the child of an agent",
		Long: `Relays an agent that starts its hooks as child processes to the daemon: what
comes on standard input goes to the daemon's socket, and its answers to standard
output. It serves agents that speak hookd's protocol and PicoClaw.

It does not end when the daemon does. It connects again, and answers by itself
meanwhile, as --on-unavailable says:
  deny      no, where a step can be denied; else the turn is aborted; where
            neither is possible, such as at stop, it continues with a warning
  ask       at before_tool the agent is to ask its user; else as deny
  continue  yes, also to approvals
It ends when standard input does, after what was asked is answered.`,
		Example: `  hookd connect --on-unavailable deny

In PicoClaw's config:
  "hooks": {"processes": {"hookd": {"enabled": true, "command": ["hookd", "connect"],
    "observe": ["*"], "intercept": ["before_llm", "after_llm", "before_tool", "after_tool", "approve_tool"]}}}`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains(policies, away) {
				return usage(cmd, "--on-unavailable %q: one of %s", away, strings.Join(policies, ", "))
			}
			return a.connect(cmd.Context(), p, away)
		},
	}
	p.flags(cmd, false)
	cmd.Flags().StringVar(&away, "on-unavailable", away, "the answer while no daemon is there: continue, deny or ask")
	_ = cmd.RegisterFlagCompletionFunc("on-unavailable", cobra.FixedCompletions(policies, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	return cmd
}

// connect's own limits are above the daemon's: it is the daemon that refuses,
// and the agent gets that in words that it understands.
const (
	relayMessageBytes = 1 << 30
	relayQueuedBytes  = 64 << 20
	relayMaxDepth     = 10000
	relayInFlight     = 4096
)

func relayLimits() protocol.Limits {
	return protocol.Limits{MaxMessageBytes: relayMessageBytes, MaxDepth: relayMaxDepth, MaxInFlight: relayInFlight}
}

func (a *app) connect(ctx context.Context, p places, away string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := &relay{
		ctx: ctx, path: client.SocketPath(p.socket, a.getenv), away: away, log: a.err,
		stages: protocol.NewStageTable(), turn: make(chan struct{}, 1),
	}
	agent := rpc.NewPeer(ctx, rpc.Stdio(a.in, a.out), rpc.Options{Handler: c, Limits: relayLimits(), MaxQueuedBytes: relayQueuedBytes})
	<-agent.Done()
	_ = agent.Close() // it has ended already
	cancel()
	c.keeper.Wait()
	if d := c.daemon.Load(); d != nil {
		_ = d.peer.Close() // as above
	}
	if n := c.dropped.Load(); n > 0 {
		c.say("events dropped because no daemon was there: %d", n)
	}
	if err := agent.Err(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("the agent's side: %w", err)
	}
	return nil
}

const (
	// greetLimit is how long the daemon may take for the greeting. An agent
	// waits 5 s for the answer to its own.
	greetLimit = 4500 * time.Millisecond
	// redial is how often is tried to reach a daemon that is away.
	redial = 200 * time.Millisecond
	// redialRefused is how often one is tried that refuses the greeting.
	redialRefused = 5 * time.Second
	// hostMargin is what is left of the time that a host waits. The daemon has
	// answered before that, if it can.
	hostMargin = 200 * time.Millisecond
)

var (
	errGreeting = fmt.Errorf("hookd did not answer the greeting within %s", greetLimit)
	errTooLate  = errors.New("hookd did not answer in time")
)

// relay stands between an agent and the daemon.
type relay struct {
	ctx    context.Context
	path   string // of the daemon's socket
	away   string
	log    io.Writer
	stages *protocol.StageTable

	// Set by the first message, before all else that happens.
	met  bool
	host *dialect.Host // how the agent speaks

	hello   atomic.Pointer[jsontext.Value] // the agent's greeting, nil when it did not greet
	daemon  atomic.Pointer[link]           // the last connection, maybe broken
	turn    chan struct{}                  // held by the one that connects
	lost    bool                           // the daemon is away, and that was said; with turn
	dropped atomic.Int64                   // events
	keeper  sync.WaitGroup
}

// link is one connection to the daemon.
type link struct {
	peer    *rpc.Peer
	welcome jsontext.Value // the answer to the greeting, nil without one
}

func (l *link) alive() bool { return l != nil && l.peer.Err() == nil }

// Accept implements [rpc.Handler].
func (c *relay) Accept(r *rpc.Request) rpc.Work {
	first := !c.met
	if first {
		c.met, c.host = true, dialect.Recognise(r.Method, r.Members)
	}
	greets := r.Method == protocol.MethodHello && !r.Notification() && (first || !c.daemon.Load().alive())
	if greets {
		c.hello.Store(&r.Params)
	}
	if first {
		// Nothing more is read until the daemon is there or known to be away: the
		// greeting comes before all else.
		_, _ = c.reach(c.ctx)
		c.keeper.Go(c.keep)
	}
	if r.Notification() {
		c.tell(r)
		return rpc.Work{}
	}
	return rpc.Work{Run: func(ctx context.Context) ([]byte, error) { return c.ask(ctx, r, greets) }}
}

// tell hands an event on, or counts it.
func (c *relay) tell(r *rpc.Request) {
	if d := c.daemon.Load(); !d.alive() || d.peer.TryNotify(r.Method, r.Params) != nil {
		c.dropped.Add(1)
	}
}

// ask gets the answer to a request, from the daemon if there is one.
func (c *relay) ask(ctx context.Context, r *rpc.Request, greets bool) ([]byte, error) {
	stage := c.stages.Method(r.Method)
	if c.host != nil && stage != nil {
		limit := dialect.HostDeadline
		if stage.Name == protocol.StageApproveTool {
			limit = dialect.HostApprovalDeadline
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit-hostMargin, errTooLate)
		defer cancel()
	}
	d, err := c.reach(ctx)
	if err == nil {
		if greets && d.welcome != nil {
			return d.welcome, nil
		}
		var result jsontext.Value
		if result, err = d.peer.Call(ctx, r.Method, r.Params); err == nil {
			return result, nil
		}
	}
	return c.answer(stage, r, err)
}

// answer says something in the daemon's place, whose own answer is err.
func (c *relay) answer(stage *protocol.StageInfo, r *rpc.Request, err error) ([]byte, error) {
	refusal, refused := errors.AsType[*protocol.Error](err)
	refused = refused && refusal.Code != protocol.CodeShuttingDown // which is as good as away
	switch {
	case errors.Is(err, rpc.ErrCancelled):
		return nil, err
	case refused && stage == nil:
		return nil, refusal
	case refused:
		return c.host.Refusal(stage, refusal)
	case stage != nil:
		policy := c.away
		if unreadable(err) { // it is there: what it said must not turn into a yes
			policy = awayDeny
		}
		return c.host.Answer(&protocol.Request{Stage: stage}, r.Members, unavailable(policy, stage, r.Members, err), nil), nil
	case r.Method == protocol.MethodHello:
		usual := protocol.Limits{}.WithDefaults()
		return c.host.Welcome(protocol.AgentWelcome{
			OK: true, Name: "hookd", Version: protocol.Version, Server: protocol.Software{Name: "hookd connect", Version: version()},
			Limits: protocol.Limits{MaxMessageBytes: usual.MaxMessageBytes, MaxInFlight: usual.MaxInFlight},
		})
	case r.Method == protocol.MethodEvent || r.Method == dialect.MethodRuntimeEvent:
		c.dropped.Add(1)
		return nil, nil
	}
	return nil, protocol.Errorf(protocol.CodeInternal, "hookd is not available")
}

// unreadable reports whether the daemon answered, or was asked too much, and is
// not away.
func unreadable(err error) bool {
	return errors.Is(err, rpc.ErrGarbage) || errors.Is(err, rpc.ErrDuplicateMember) || errors.Is(err, rpc.ErrOversize) || errors.Is(err, rpc.ErrOverloaded)
}

// unavailable is the answer at a stage without a daemon.
func unavailable(policy string, stage *protocol.StageInfo, params protocol.Object, err error) *protocol.Result {
	why := "hookd is not available (hookd serve starts it)"
	switch { // no more than that: the reason goes to the model
	case errors.Is(err, errTooLate):
		why = errTooLate.Error()
	case unreadable(err):
		why = "hookd's answer can't be used"
	}
	approve := string(params.Get("approve")) == "true"
	res := &protocol.Result{Action: stage.OnFailure, Reason: why}
	switch {
	case policy == awayContinue:
		res.Action = protocol.ActionContinue
	case policy == awayAsk && stage.Allows(protocol.ActionAsk) && !approve:
		res.Action = protocol.ActionAsk
	}
	if res.Action == protocol.ActionContinue && stage.Name != protocol.StageApproveTool {
		res.Reason, res.Warnings = "", []string{why + ", so nothing was checked"}
	}
	if stage.Name == protocol.StageApproveTool || approve {
		res.Approval = &protocol.ApprovalResult{Approved: policy == awayContinue, Reason: why}
	}
	return res
}

// reach returns a connection to the daemon that has been greeted, making one if
// need be. It tries once.
func (c *relay) reach(ctx context.Context) (*link, error) {
	if d := c.daemon.Load(); d.alive() {
		return d, nil
	}
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	old := c.daemon.Load()
	if old.alive() {
		return old, nil
	}
	if old != nil {
		_ = old.peer.Close() // it has ended already
	}
	d, err := c.open(ctx)
	switch {
	case err == nil:
		c.daemon.Store(d)
		if c.lost {
			c.say("connected to hookd again; events dropped meanwhile: %d", c.dropped.Swap(0))
		}
		c.lost = false
	case !c.lost && ctx.Err() == nil:
		c.lost = true
		c.say("%v; answering in its place (--on-unavailable %s)", err, c.away)
	}
	return d, err
}

// open connects and passes the agent's greeting on.
func (c *relay) open(ctx context.Context) (*link, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, greetLimit, errGreeting)
	defer cancel()
	conn, err := dialSocket(ctx, c.path)
	if err != nil {
		return nil, err
	}
	var said atomic.Pointer[string] // a refusal that answers nothing in particular
	d := &link{peer: rpc.NewPeer(c.ctx, conn, rpc.Options{
		Limits: relayLimits(), MaxQueuedBytes: relayQueuedBytes, Silent: true,
		OnNoise: func(n rpc.Noise) { said.Store(&n.Detail) },
	})}
	hello := c.hello.Load()
	if hello == nil {
		return d, nil
	}
	if d.welcome, err = d.peer.Call(ctx, protocol.MethodHello, *hello); err != nil {
		_ = d.peer.Close() // what counts is the reason
		if detail := said.Load(); detail != nil && errors.Is(err, rpc.ErrClosed) {
			err = fmt.Errorf("%w; it said %s", err, *detail)
		}
		return nil, err
	}
	return d, nil
}

// keep connects again whenever the daemon is back.
func (c *relay) keep() {
	for {
		d, err := c.reach(c.ctx)
		var pause <-chan time.Time
		var ended <-chan struct{}
		switch refusal, refused := errors.AsType[*protocol.Error](err); {
		case err == nil:
			ended = d.peer.Done()
		case refused && refusal.Code != protocol.CodeShuttingDown:
			pause = time.After(redialRefused)
		default:
			pause = time.After(redial)
		}
		select {
		case <-ended:
		case <-pause:
		case <-c.ctx.Done():
			return
		}
	}
}

func (c *relay) say(format string, args ...any) {
	fmt.Fprintf(c.log, "hookd connect: "+format+"\n", args...)
}
