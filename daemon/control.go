package daemon

import (
	"context"
	"time"

	"github.com/hookd/hookd/config"
	"github.com/hookd/hookd/manager"
	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/rpc"
)

// Methods of the control socket.
const (
	MethodStatus    = "hookd.status"
	MethodReload    = "hookd.reload"
	MethodRestart   = "hookd.restart"
	MethodEnable    = "hookd.enable"
	MethodDisable   = "hookd.disable"
	MethodSubscribe = "hookd.events.subscribe"
)

// controlConnections is how many may be open at once.
const controlConnections = 64

// HookParams name a hook, for restart, enable and disable.
type HookParams struct {
	Name string `json:"name"`
	// ForMS ends an enable or disable by itself, in milliseconds; 0 = it stays
	// until hookd ends.
	ForMS int64 `json:"for_ms,omitzero"`
}

// SubscribeParams say which events to send; none means all.
type SubscribeParams struct {
	Events []string `json:"events"`
}

// controller serves one connection of the control socket. Nothing here waits
// for a hook, except what asks for one.
type controller struct {
	d     *daemon
	creds rpc.Creds // of the one who rules
	feed  *manager.Feed
	done  chan struct{} // the feed's goroutine has ended
}

func (d *daemon) controlServer(cfg *config.Config) rpc.ServerOptions {
	controllers := map[*rpc.Conn]*controller{} // guarded by d.mu
	return rpc.ServerOptions{
		MaxConnections: controlConnections,
		Authorize:      d.authorize(cfg.Control.AllowUIDs),
		Log:            d.log.Named("control"),
		Open: func(c *rpc.Conn) rpc.Options {
			ctl := &controller{d: d, creds: c.Creds}
			d.mu.Lock()
			controllers[c] = ctl
			d.mu.Unlock()
			return rpc.Options{Handler: ctl, Log: d.log.Named("control")}
		},
		Closed: func(c *rpc.Conn) {
			d.mu.Lock()
			ctl := controllers[c]
			delete(controllers, c)
			d.mu.Unlock()
			ctl.close()
		},
	}
}

// Accept implements [rpc.Handler].
func (c *controller) Accept(r *rpc.Request) rpc.Work {
	if r.Notification() {
		return rpc.Work{}
	}
	switch r.Method {
	case MethodStatus:
		return rpc.Work{Run: func(context.Context) ([]byte, error) { return protocol.Marshal(c.d.status()) }}
	case MethodReload:
		return reloading(func(ctx context.Context) (*ReloadResult, error) {
			return c.d.ask(withRuler(ctx, c.creds), func(ctx context.Context) (*ReloadResult, error) { return c.d.reloadAndTell(ctx, "asked for") })
		})
	case MethodRestart, MethodEnable, MethodDisable:
		return c.hook(r)
	case MethodSubscribe:
		return c.subscribe(r)
	case MethodApprovalsList, MethodApprovalsApprove, MethodApprovalsDeny, MethodApprovalsRules, MethodApprovalsRevoke:
		return c.approvals(r)
	case MethodSessionsList, MethodSessionsShow, MethodSessionsCancel, MethodSessionsResume:
		return c.noted(r, c.sessionsOf(r))
	}
	return rpc.Work{}
}

// reloading answers with what a reload did, or with why it was refused: that
// is the asker's business, so the whole text goes back.
func reloading(do func(ctx context.Context) (*ReloadResult, error)) rpc.Work {
	return rpc.Work{Run: func(ctx context.Context) ([]byte, error) {
		res, err := do(ctx)
		if err != nil {
			return nil, asWire(err)
		}
		return protocol.Marshal(res)
	}}
}

func asWire(err error) error {
	if e, ok := err.(*protocol.Error); ok {
		return e
	}
	return protocol.Errorf(protocol.CodeInternal, "%s", err)
}

func (c *controller) hook(r *rpc.Request) rpc.Work {
	var p HookParams
	if r.Params != nil {
		if err := protocol.Unmarshal(r.Params, &p); err != nil {
			return refuse(protocol.InvalidParams("", "%s", err))
		}
	}
	if p.Name == "" {
		return refuse(protocol.InvalidParams("name", "is missing"))
	}
	if p.ForMS < 0 {
		return refuse(protocol.InvalidParams("for_ms", "must not be negative"))
	}
	return reloading(func(ctx context.Context) (*ReloadResult, error) {
		return c.d.ask(withRuler(ctx, c.creds), func(ctx context.Context) (*ReloadResult, error) {
			if r.Method == MethodRestart {
				return c.d.renew(ctx, p.Name)
			}
			o := override{enabled: r.Method == MethodEnable}
			if p.ForMS > 0 {
				o.until = time.Now().Add(time.Duration(p.ForMS) * time.Millisecond)
			}
			return c.d.setEnabled(ctx, p.Name, o)
		})
	})
}

// subscribe starts to send events to the connection. A slow reader loses the
// newest and is told how many.
func (c *controller) subscribe(r *rpc.Request) rpc.Work {
	var p SubscribeParams
	if r.Params != nil {
		if err := protocol.Unmarshal(r.Params, &p); err != nil {
			return refuse(protocol.InvalidParams("events", "%s", err))
		}
	}
	if c.feed != nil {
		return refuse(protocol.Errorf(protocol.CodeInvalidRequest, "this connection has subscribed already"))
	}
	if len(p.Events) == 0 {
		p.Events = []string{"*"}
	}
	var subs []protocol.Subscription
	for _, text := range p.Events {
		s, err := protocol.ParseSubscription(text)
		if err != nil {
			return refuse(protocol.InvalidParams("events", "%s", err))
		}
		subs = append(subs, s)
	}
	c.feed, c.done = c.d.manager.Subscribe(subs), make(chan struct{})
	go c.follow(r.Peer) // ends with the feed; close waits for it
	return rpc.Work{Inline: true, Run: func(context.Context) ([]byte, error) { return []byte(`{"ok":true}`), nil }}
}

func (c *controller) follow(peer *rpc.Peer) {
	defer close(c.done)
	for ev := range c.feed.Events() {
		// An error means that the connection is closing, and the feed with it.
		_ = peer.Notify(context.Background(), protocol.MethodEvent, ev.AppendJSON(nil, ev.Seq, ev.Missed))
	}
}

func (c *controller) close() {
	if c == nil || c.feed == nil {
		return
	}
	c.feed.Close()
	<-c.done
}
