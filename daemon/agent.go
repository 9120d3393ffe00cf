package daemon

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/hookd/hookd/config"
	"github.com/hookd/hookd/dialect"
	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/manager"
	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/rpc"
)

// session is one agent's connection.
type session struct {
	d      *daemon
	caller *manager.Caller
	host   *dialect.Host // how the agent speaks, once it has said something; nil: as hookd does
	since  time.Time

	name      atomic.Pointer[string] // from its greeting; nil before
	calls     atomic.Int64
	lastEvent atomic.Pointer[string] // kind of the newest event, or the stage of the newest call
	lastAt    atomic.Int64           // unix ms
}

func (d *daemon) agentServer(cfg *config.Config) rpc.ServerOptions {
	sessions := map[*rpc.Conn]*session{} // guarded by d.mu
	return rpc.ServerOptions{
		MaxConnections: cfg.Limits.MaxConnections,
		Authorize:      d.authorizeAgent(cfg.Socket.AllowUIDs),
		Log:            d.log.Named("rpc"),
		Open: func(c *rpc.Conn) rpc.Options {
			s := d.newSession(c.Creds.PID, c.Creds.UID)
			d.mu.Lock()
			sessions[c] = s
			d.sessions[s] = struct{}{}
			d.mu.Unlock()
			return s.peerOptions(cfg.Limits)
		},
		Closed: func(c *rpc.Conn) {
			d.mu.Lock()
			s := sessions[c]
			delete(d.sessions, s)
			delete(sessions, c)
			d.mu.Unlock()
			d.gone(s)
		},
	}
}

// authorizeAgent refuses, beside strangers, the processes of hooks: a reviewer
// that starts an agent must not end up asking itself.
func (d *daemon) authorizeAgent(allowed []int) func(rpc.Creds) error {
	byUser := d.authorize(allowed)
	return func(c rpc.Creds) error {
		if err := byUser(c); err != nil {
			return err
		}
		err := d.notAHook(c.PID)
		if err != nil {
			d.book.turnedAway(c, err)
		}
		return err
	}
}

func (d *daemon) newSession(pid, uid int) *session {
	return &session{d: d, caller: &manager.Caller{PID: pid, UID: uid}, since: time.Now()}
}

func (s *session) peerOptions(limits protocol.Limits) rpc.Options {
	// An honest agent may have several large answers coming at once; one that
	// does not read is found by the write deadline.
	return rpc.Options{Handler: s, Limits: limits, Bytes: s.d.bytes, MaxQueuedBytes: limits.MaxMessageBytes, Log: s.d.log.Named("rpc")}
}

// serveStdio serves the process that started hookd as an agent. It returns
// io.EOF when that side is done.
func (d *daemon) serveStdio(ctx context.Context) error {
	s := d.newSession(-1, -1)
	d.mu.Lock()
	d.sessions[s] = struct{}{}
	d.mu.Unlock()
	d.awaitHooks(ctx)
	peer := rpc.NewPeer(ctx, d.Stdio, s.peerOptions(d.limits()))
	select {
	case <-peer.Done():
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), drainCalls, manager.ErrShuttingDown)
	defer cancel()
	// What could not be finished has been answered or its asker is gone.
	_ = peer.Shutdown(drain)
	d.mu.Lock()
	delete(d.sessions, s)
	d.mu.Unlock()
	d.gone(s)
	return io.EOF
}

// Accept implements [rpc.Handler].
func (s *session) Accept(r *rpc.Request) rpc.Work {
	s.listen(r)
	if stage := s.d.stages.Method(r.Method); stage != nil {
		return s.stage(stage, r)
	}
	switch r.Method {
	case protocol.MethodEvent, dialect.MethodRuntimeEvent:
		return s.event(r)
	case protocol.MethodHello:
		return s.hello(r)
	case protocol.MethodNative:
		return s.native(r)
	}
	return rpc.Work{}
}

// listen finds out how the agent speaks, until it has greeted or made a call.
func (s *session) listen(r *rpc.Request) {
	if s.calls.Load() > 0 || s.name.Load() != nil {
		return
	}
	host := dialect.Recognise(r.Method, r.Members)
	if r.Method == protocol.MethodHello {
		s.host = host
	} else if host != nil {
		s.host = host
		unsaid := &protocol.AgentHello{}
		host.Greet(unsaid)
		_ = s.caller.Greet(unsaid) // its deadlines are long enough
	}
}

// stage turns a request into a call of the manager. Nobody could read the
// answer to a notification, so a stage without an id is not run.
func (s *session) stage(stage *protocol.StageInfo, r *rpc.Request) rpc.Work {
	if r.Notification() {
		s.d.refused.Add(1)
		s.d.log.Warn("a stage was sent without id and refused", zap.String("stage", string(stage.Name)), zap.String("agent", s.caller.Name))
		return rpc.Work{}
	}
	s.calls.Add(1)
	s.saw(string(stage.Name))
	host := s.host
	req, bad := host.Request(stage, r.Members)
	if bad != nil {
		return rpc.Work{Inline: true, Run: func(context.Context) ([]byte, error) { return host.Refusal(stage, bad) }}
	}
	req.Size = r.Size
	plan := s.d.manager.Plan(s.caller, req)
	return rpc.Work{
		Inline: plan.Inline,
		Run: func(ctx context.Context) ([]byte, error) {
			res, err := plan.Run(ctx)
			if err != nil {
				return host.Refusal(stage, err)
			}
			return host.Answer(req, r.Members, res, s.approverDue), nil
		},
		Undelivered: func(reason error) { s.d.book.undelivered(s.caller, req, plan.Call, reason) },
	}
}

// approverDue reports whether somebody whose word counts would be asked about a
// call of this tool that needs approval.
func (s *session) approverDue(tool string) bool {
	return slices.ContainsFunc(s.d.manager.Generation().Hooks(), func(h *hook.Registration) bool {
		if _, rarely := h.Roles.Value.(hook.Abstainer); rarely {
			return false
		}
		return h.Handles(protocol.StageApproveTool) && h.Mode != hook.Shadow && h.Mode != hook.Async && h.Match.Matches(tool, true, s.caller.Name)
	})
}

func refuse(err error) rpc.Work {
	return rpc.Work{Inline: true, Run: func(context.Context) ([]byte, error) { return nil, err }}
}

// event hands an agent's event on. Sent as a request it is answered null.
func (s *session) event(r *rpc.Request) rpc.Work {
	ev, bad := s.host.Event(r.Method, r.Members)
	if bad != nil {
		s.d.dropped.Add(1)
		s.d.log.Debug("event dropped", zap.String("agent", s.caller.Name), zap.String("why", bad.Message))
		if r.Notification() {
			return rpc.Work{}
		}
		return refuse(bad)
	}
	s.saw(string(ev.Kind))
	s.d.book.event(s.caller, ev)
	s.d.manager.Publish(s.caller, ev)
	if r.Notification() {
		return rpc.Work{}
	}
	return rpc.Work{Inline: true, Run: func(context.Context) ([]byte, error) { return nil, nil }}
}

// hello learns who is there. It comes first or not at all, and once.
func (s *session) hello(r *rpc.Request) rpc.Work {
	if r.Notification() {
		return rpc.Work{}
	}
	h, bad := protocol.DecodeAgentHello(r.Members)
	if bad != nil {
		w := refuse(bad)
		w.Last = errors.Is(bad, &protocol.Error{Code: protocol.CodeVersionMismatch})
		return w
	}
	if s.name.Load() != nil {
		return refuse(protocol.Errorf(protocol.CodeInvalidRequest, "a second %s on one connection", protocol.MethodHello))
	}
	if s.calls.Load() > 0 {
		return refuse(protocol.Errorf(protocol.CodeInvalidRequest, "%s comes before the first call", protocol.MethodHello))
	}
	s.host.Greet(h)
	if bad := s.caller.Greet(h); bad != nil {
		return refuse(bad)
	}
	s.name.Store(&h.Name)
	s.saw(protocol.MethodHello)
	limits, host := s.d.limits(), s.host
	return rpc.Work{Inline: true, Run: func(context.Context) ([]byte, error) {
		return host.Welcome(protocol.AgentWelcome{
			OK: true, Name: "hookd", Version: protocol.Version, Server: s.d.software(),
			Generation: s.d.manager.Generation().Number,
			Limits:     protocol.Limits{MaxMessageBytes: limits.MaxMessageBytes, MaxInFlight: limits.MaxInFlight},
		})
	}}
}

func (s *session) saw(what string) {
	if last := s.lastEvent.Load(); last == nil || *last != what { // most agents do the same again and again
		kept := what
		s.lastEvent.Store(&kept)
	}
	s.lastAt.Store(time.Now().UnixMilli())
}
