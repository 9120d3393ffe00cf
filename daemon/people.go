package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/zap"

	"github.com/hookd/hookd/approval"
	"github.com/hookd/hookd/builtin/cancel"
	"github.com/hookd/hookd/child"
	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/manager"
	"github.com/hookd/hookd/mount"
	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/rpc"
)

// people is where persons rule: the desk of approvals and the table of
// sessions. Both outlive reloads. Its built-ins can be registered before it is
// opened, and mounted after.
type people struct {
	desk    *approval.Desk
	table   *cancel.Table
	spawner *child.Spawner // runs notifications; nil: there are none
}

// peopleStores keep what persons have said beyond the end of hookd; nil = until
// then.
type peopleStores struct {
	Approvals approval.Journal
	Sessions  cancel.Store
}

// builtins are the hooks through which persons rule.
func (p *people) builtins() []mount.Builtin {
	return []mount.Builtin{
		{
			Name: "cancel", Priority: firstCancel,
			New:    func(mount.BuiltinContext) (any, error) { return cancel.New(p.table), nil },
			Events: cancel.Events(),
		},
		{
			// A person comes last among the built-ins: what another one refuses nobody
			// needs to look at.
			Name: "human", Priority: 90, When: hook.IfAsked, Validate: approval.ValidateHuman,
			New: func(c mount.BuiltinContext) (any, error) {
				return approval.NewHuman(p.desk, approval.HumanOptions{Name: c.Name, Config: c.Config, Folder: c.Folder, Notify: p.notify, Log: c.Log})
			},
			Stages: []protocol.Stage{protocol.StageApproveTool},
			Events: []string{string(protocol.EventSessionEnd)},
		},
	}
}

// newPeople returns a place where nobody will come, for those who only try
// hooks.
func newPeople() *people {
	p := &people{}
	p.desk, _ = approval.NewDesk(approval.Options{}) // without a journal there
	p.table, _ = cancel.NewTable(cancel.Options{})   // is nothing to be read
	return p
}

// openPeople opens the desk and the table. What an earlier hookd has left and
// can't be read is said in the log: no rule holds then.
func (d *daemon) openPeople(s peopleStores) {
	p, log := d.people, d.log.Named("approval")
	p.spawner = d.spawner
	var err error
	if p.table, err = cancel.NewTable(cancel.Options{Store: s.Sessions, Waiting: p.waiting, Log: log}); err != nil {
		log.Error("sessions that were cancelled may go on", zap.Error(err))
	}
	p.desk, err = approval.NewDesk(approval.Options{
		Journal: s.Approvals, Guard: d.guardAnswer, Cancelled: p.cancelled, ShuttingDown: manager.ErrShuttingDown, Slept: slept, Log: log,
		Publish: func(kind protocol.EventKind, meta protocol.Object, payload jsontext.Value) {
			d.manager.Publish(nil, protocol.NewHookdEvent(kind, meta, payload))
		},
	})
	if err != nil {
		log.Error("approvals of before are not what they were", zap.Error(err))
	}
}

// waiting counts the open tickets of each session.
func (p *people) waiting() map[string]int {
	n := map[string]int{}
	for _, t := range p.desk.Open() {
		n[sessionOf(&t)]++
	}
	return n
}

func (p *people) cancelled(t *approval.Ticket) (reason string, is bool) {
	if c := p.table.Cancelled(sessionOf(t)); c != nil {
		return c.Text(), true
	}
	return "", false
}

func sessionOf(t *approval.Ticket) string { return cancel.ID(t.Session, t.Agent) }

// asks reports whether the built-in of this name is mounted now.
func (d *daemon) asks(name string) bool {
	return slices.ContainsFunc(d.manager.Generation().Hooks(), func(h *hook.Registration) bool {
		return h.Name == name && h.Source == hook.InProcess
	})
}

// knowing makes the agents' server tell approvers which process asks.
func (d *daemon) knowing(o rpc.ServerOptions) rpc.ServerOptions {
	open := o.Open
	o.Open = func(c *rpc.Conn) rpc.Options {
		peer := open(c)
		peer.Handler = &asker{peer.Handler, &approval.Agent{PID: c.Creds.PID, UID: c.Creds.UID}}
		return peer
	}
	return o
}

// parent is the agent of a hookd on stdio: the process that has started it.
func parent(ctx context.Context) context.Context {
	return approval.WithAgent(ctx, &approval.Agent{PID: os.Getppid(), UID: os.Getuid()})
}

// asker hands requests on and says whose they are.
type asker struct {
	rpc.Handler
	agent *approval.Agent
}

// Accept implements [rpc.Handler].
func (a *asker) Accept(r *rpc.Request) rpc.Work {
	w := a.Handler.Accept(r)
	if run := w.Run; run != nil && mayNeedApproval(r.Method) {
		w.Run = func(ctx context.Context) ([]byte, error) { return run(approval.WithAgent(ctx, a.agent)) }
	}
	return w
}

func mayNeedApproval(method string) bool {
	switch method {
	case beforeTool, approveTool, protocol.MethodNative:
		return true
	}
	return false
}

const (
	beforeTool  = "hook." + string(protocol.StageBeforeTool)
	approveTool = "hook." + string(protocol.StageApproveTool)
)

// ruler names who is at the other end of a control connection.
func ruler(c rpc.Creds) approval.Ruler {
	r := approval.Ruler{UID: c.UID, PID: c.PID}
	if u, err := user.LookupId(strconv.Itoa(c.UID)); err == nil {
		r.Name = u.Username
	}
	return r
}

// notify runs a command once, with a ticket on its standard input.
func (p *people) notify(ctx context.Context, n *approval.Notice) error {
	if p.spawner == nil {
		return errors.New("no commands are started here")
	}
	c, err := p.spawner.Start(ctx, child.Spec{Name: n.Name, Argv: n.Argv, Dir: n.Dir, PassEnv: n.PassEnv})
	if err != nil {
		return err
	}
	var pipes sync.WaitGroup
	pipes.Go(func() { // both end when the command has
		_, _ = c.Stdin().Write(n.Stdin) // a command need not read it
		_ = c.Stdin().Close()
	})
	pipes.Go(func() {
		_, _ = io.Copy(io.Discard, c.Stdout())
		_ = c.Stdout().Close()
	})
	defer pipes.Wait()
	select {
	case <-c.Done():
	case <-ctx.Done():
		c.Kill()
		<-c.Done()
		return context.Cause(ctx)
	}
	if e := c.Exit(); e != (child.Exit{}) {
		text := "it " + e.How()
		if tail := c.StderrTail(); len(tail) > 0 {
			text += ": " + strings.Join(tail[max(0, len(tail)-3):], " / ")
		}
		return errors.New(text)
	}
	return nil
}

// guardAnswer refuses the answer of a process that the asking agent has
// started. It guards against accidents: a process that wants to can leave the
// tree, and the wall is another user.
func (d *daemon) guardAnswer(t *approval.Ticket, by approval.Ruler) error {
	if !d.current().config.Approval.NotSameProcessTree || t.PID <= 0 {
		return nil // who asks is not known: an agent at the HTTP door
	}
	const how = "; approval.not_same_process_tree false in the config allows it"
	agent := agentProcess(t.PID)
	within, err := descends(by.PID, agent)
	switch {
	case by.PID == agent:
		return fmt.Errorf("the agent that asks (process %d) must not answer itself%s", agent, how)
	case err != nil:
		return fmt.Errorf("whether the agent has started the process that answers can't be told: %w%s", err, how)
	case within:
		return fmt.Errorf("process %d was started by the agent that asks (process %d), which must not answer itself%s", by.PID, agent, how)
	}
	return nil
}
