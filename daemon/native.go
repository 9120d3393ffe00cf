package daemon

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/hookd/hookd/agent"
	"github.com/hookd/hookd/manager"
	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/rpc"
)

// A coding agent calls a program, or a URL, per event in a format of its own.
// The thin client and the HTTP door hand over what they got as it is; here it
// becomes a call of the manager, and the answer goes back in the agent's words.

// question is one event of a coding agent.
type question struct {
	// agent is a name that package agent knows; "auto" or "" is found out.
	agent, event string
	// payload is what the agent sent, maybe with repairs: it is text.
	payload string
	// env are variables of the agent's that tell agents apart.
	env map[string]string
	// approve lets the approvers decide what a hook asks about.
	approve, dryRun bool
	deadlineMS      int64
}

// readQuestion reads the params of hook.native.
func readQuestion(members protocol.Object) (q question, bad *protocol.Error) {
	text := func(m protocol.Member, into *string) {
		if m.Value.Kind() == '"' {
			*into = protocol.Unquote(m.Value)
		} else {
			bad = protocol.InvalidParams(m.Name, "expected a string")
		}
	}
	flag := func(m protocol.Member, into *bool) {
		if k := m.Value.Kind(); k == 't' || k == 'f' {
			*into = k == 't'
		} else {
			bad = protocol.InvalidParams(m.Name, "expected true or false")
		}
	}
	for _, m := range members {
		switch m.Name {
		case "agent":
			text(m, &q.agent)
		case "event":
			text(m, &q.event)
		case "payload":
			text(m, &q.payload)
		case "approve":
			flag(m, &q.approve)
		case "dry_run":
			flag(m, &q.dryRun)
		case "deadline_ms":
			if err := protocol.Unmarshal(m.Value, &q.deadlineMS); err != nil || q.deadlineMS <= 0 {
				bad = protocol.InvalidParams(m.Name, "expected a positive number of milliseconds")
			}
		case "env":
			q.env = map[string]string{}
			if err := protocol.Unmarshal(m.Value, &q.env); err != nil {
				bad = protocol.InvalidParams(m.Name, "expected an object of strings")
			}
		default:
			bad = protocol.InvalidParams(m.Name, "is unknown")
		}
		if bad != nil {
			return q, bad
		}
	}
	if strings.TrimSpace(q.payload) == "" {
		return q, protocol.InvalidParams("payload", "is missing")
	}
	return q, nil
}

// native serves the thin client.
func (s *session) native(r *rpc.Request) rpc.Work {
	if r.Notification() {
		s.d.refused.Add(1)
		s.d.log.Warn("an agent's event was sent without id and refused", zap.String("method", r.Method))
		return rpc.Work{}
	}
	q, bad := readQuestion(r.Members)
	if bad != nil {
		return refuse(bad)
	}
	s.calls.Add(1)
	s.saw(q.agent + " " + q.event)
	return rpc.Work{Run: func(ctx context.Context) ([]byte, error) {
		a, err := s.d.answer(ctx, s.caller, q)
		if err != nil {
			return nil, err
		}
		return nativeJSON(a), nil
	}}
}

// nativeJSON writes an answer as the thin client reads it, which knows this
// order and no other.
func nativeJSON(a agent.Answer) []byte {
	b := append(make([]byte, 0, len(a.Stdout)+len(a.Stderr)+64), `{"stdout":`...)
	b = protocol.AppendString(b, string(a.Stdout))
	b = append(b, `,"stderr":`...)
	b = protocol.AppendString(b, string(a.Stderr))
	b = fmt.Appendf(b, `,"exit_code":%d,"warnings":[`, a.ExitCode)
	for i, w := range a.Warnings {
		if i > 0 {
			b = append(b, ',')
		}
		b = protocol.AppendString(b, w)
	}
	return append(b, `]}`...)
}

// answer judges one event. An error means that there is no verdict; it is a
// *[agent.PayloadError] or what the manager says.
func (d *daemon) answer(ctx context.Context, caller *manager.Caller, q question) (agent.Answer, error) {
	dialect, warning, err := dialectOf(&q)
	if err != nil {
		return agent.Answer{}, err
	}
	c, err := dialect.Read(q.event, []byte(q.payload))
	if err != nil {
		return agent.Answer{}, protocol.Errorf(protocol.CodeInvalidParams, "%v", err)
	}
	if id := q.env["KIRO_SESSION_ID"]; id != "" {
		c.DefaultSession(id) // Kiro's payloads name none
	}
	if warning != "" {
		c.Warnings = append(c.Warnings, warning)
	}
	d.agentSeen(c)
	d.publishNative(caller, c, q.dryRun)
	if c.Stage == "" {
		return d.written(dialect, c, nil), nil
	}
	req, bad := protocol.DecodeRequest(d.stages.Stage(c.Stage), c.Params)
	if bad != nil {
		return agent.Answer{}, bad
	}
	req.DryRun, req.DeadlineMS = q.dryRun, q.deadlineMS
	switch c.Stage {
	case protocol.StageBeforeTool:
		req.Approve = q.approve
	case protocol.StageApproveTool:
		// The agent is about to ask its own user. Those who are asked on request
		// only stay out of it, unless hookd's approvers decide.
		req.Asked = &q.approve
	}
	res, err := d.retries.do(ctx, d.retryKey(caller.UID, &q, c), func() (*protocol.Result, error) { return d.manager.Call(ctx, caller, req) })
	if err != nil {
		return agent.Answer{}, err
	}
	return d.written(dialect, c, res), nil
}

// dialectOf finds the dialect, by its name or by what the payload looks like.
// The warning says when the payload is another agent's than was named.
func dialectOf(q *question) (dialect agent.Dialect, warning string, err error) {
	if q.event == agent.Auto {
		q.event = ""
	}
	if q.agent == "" {
		q.agent = agent.Auto
	}
	dialect, warning, err = agent.Pick(q.agent, []byte(q.payload), func(name string) string { return q.env[name] })
	if err != nil {
		return nil, "", protocol.InvalidParams("agent", "%v; hookd agents lists them", err)
	}
	return dialect, warning, nil
}

// publishNative tells observers what the stage, if any, does not imply.
func (d *daemon) publishNative(caller *manager.Caller, c *agent.Call, dryRun bool) {
	if c.EventParams == nil || dryRun {
		return
	}
	ev, bad := protocol.DecodeEvent(c.EventParams)
	if bad != nil {
		d.dropped.Add(1)
		d.log.Debug("event dropped", zap.String("agent", c.Agent), zap.String("why", bad.Message))
		return
	}
	d.book.event(caller, ev)
	d.manager.Publish(caller, ev)
}

// written is the answer in the agent's words. What could not be said in them
// is logged, because a person who reads only the agent would not know.
func (d *daemon) written(dialect agent.Dialect, c *agent.Call, res *protocol.Result) agent.Answer {
	a := dialect.Write(c, res, agent.Policy{})
	a.Warnings = append(append([]string(nil), c.Warnings...), a.Warnings...)
	if len(a.Warnings) > 0 {
		d.log.Warn("answered with a difference", zap.String("agent", c.Agent), zap.String("event", c.Event), zap.Strings("warnings", a.Warnings))
	}
	return a
}

// SeenAgent is when a coding agent was last heard of.
type SeenAgent struct {
	// Event is the agent's own name of the last one.
	Event string    `json:"event"`
	At    time.Time `json:"at"`
	// Events counts all of them.
	Events int64 `json:"events"`
}

func (d *daemon) heardOf() map[string]SeenAgent {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.heard)
}

// agentSeen keeps a heartbeat per agent: an integration that fell silent shows
// in status.
func (d *daemon) agentSeen(c *agent.Call) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.heard == nil {
		d.heard = map[string]SeenAgent{}
	}
	was := d.heard[c.Agent]
	d.heard[c.Agent] = SeenAgent{Event: c.Event, At: time.Now().UTC(), Events: was.Events + 1}
}

// retryKey is what makes two events the same one, fired twice: all of the
// payload but its time. "" = nothing does.
func (d *daemon) retryKey(uid int, q *question, c *agent.Call) string {
	if c.Params.Get("call_id") == nil || q.dryRun || (c.Stage != protocol.StageBeforeTool && c.Stage != protocol.StageApproveTool) {
		return ""
	}
	var payload protocol.Object
	for _, m := range c.Payload {
		if m.Name != "timestamp" {
			payload = append(payload, m)
		}
	}
	return strings.Join([]string{
		fmt.Sprint(d.manager.Generation().Number), fmt.Sprint(uid), c.Agent, string(c.Stage), fmt.Sprint(q.approve), string(payload.AppendJSON(nil)),
	}, "\x00")
}
