package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/approval"
	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/rpc"
)

// Methods of the control socket for approvals.
const (
	MethodApprovalsList    = "hookd.approvals.list"
	MethodApprovalsApprove = "hookd.approvals.approve"
	MethodApprovalsDeny    = "hookd.approvals.deny"
	MethodApprovalsRules   = "hookd.approvals.rules"
	MethodApprovalsRevoke  = "hookd.approvals.revoke"
)

// listedBytes is how many bytes of arguments one list holds; the first ticket
// has its own whatever their size.
const listedBytes = 8 << 20

// ApprovalsListParams say what of the open tickets is wanted.
type ApprovalsListParams struct {
	// Known are ids of tickets that the asker has already: of those, only the id
	// and the digest are told.
	Known []string `json:"known"`
}

// ApprovalTicket is a call that waits for a person.
type ApprovalTicket struct {
	ID     string `json:"id"`
	Digest string `json:"digest"`
	Tool   string `json:"tool"`
	// Arguments are null where they are left out: because the asker has them, or
	// because the list would become too long. ArgumentsBytes is their size.
	Arguments      jsontext.Value `json:"arguments"`
	ArgumentsBytes int            `json:"arguments_bytes"`
	// Message says why a person is asked, AskedBy which hook has said so.
	Message string `json:"message"`
	AskedBy string `json:"asked_by"`
	Agent   string `json:"agent"`
	// PID and UID are the agent's, from the kernel; -1 = unknown.
	PID     int       `json:"pid"`
	UID     int       `json:"uid"`
	Session string    `json:"session"`
	Task    string    `json:"task"`
	User    string    `json:"user"`
	Node    string    `json:"node"`
	CWD     string    `json:"cwd"`
	Model   string    `json:"model"`
	CallID  string    `json:"call_id"`
	Opened  time.Time `json:"opened"`
	Expires time.Time `json:"expires"`
}

// ApprovalAnswerParams answer a ticket.
type ApprovalAnswerParams struct {
	ID     string `json:"id"`
	Reason string `json:"reason,omitzero"`
	// Scope is empty for this call alone, session or always.
	Scope approval.Scope `json:"scope,omitzero"`
	// Digest, when it is said, must be the ticket's.
	Digest string `json:"digest,omitzero"`
}

// ApprovalAnswered is what an answer has done.
type ApprovalAnswered struct {
	Ticket   ApprovalTicket `json:"ticket"`
	Approved bool           `json:"approved"`
	By       string         `json:"by"`
	Reason   string         `json:"reason"`
	// Rule is the one that was made, and Also are other tickets that it has
	// answered.
	Rule *ApprovalRule `json:"rule,omitzero"`
	Also []string      `json:"also"`
	// Warning says what could not be done beside the answer.
	Warning string `json:"warning,omitzero"`
}

// ApprovalRule is an answer for calls to come.
type ApprovalRule struct {
	Rule     int            `json:"rule"`
	Approved bool           `json:"approved"`
	Scope    approval.Scope `json:"scope"`
	Digest   string         `json:"digest"`
	Tool     string         `json:"tool"`
	// Arguments are null when they are too large to be kept.
	Arguments jsontext.Value `json:"arguments"`
	// What a call must come from. Session is empty unless scope is session.
	Agent   string    `json:"agent"`
	UID     int       `json:"uid"`
	CWD     string    `json:"cwd"`
	Session string    `json:"session"`
	Reason  string    `json:"reason"`
	By      string    `json:"by"`
	Made    time.Time `json:"made"`
	// Used counts the calls that it has answered since hookd started.
	Used     int       `json:"used"`
	LastUsed time.Time `json:"last_used,omitzero"`
}

// ApprovalRevokeParams name a rule.
type ApprovalRevokeParams struct {
	Rule int `json:"rule"`
}

// approvals serves the methods for approvals. Only list and rules are answered
// from what is known; the others may wait for the record.
func (c *controller) approvals(r *rpc.Request) rpc.Work {
	desk := c.d.people.desk
	switch r.Method {
	case MethodApprovalsList:
		return calling(r, func(p *ApprovalsListParams) (any, error) { return ticketsOf(desk.Open(), p.Known), nil })
	case MethodApprovalsRules:
		return calling(r, func(*struct{}) (any, error) { return rulesList(desk.Rules()), nil })
	case MethodApprovalsRevoke:
		return calling(r, func(p *ApprovalRevokeParams) (any, error) {
			rule, err := desk.Revoke(p.Rule, ruler(c.creds))
			return ruleOf(&rule), err
		})
	}
	return calling(r, func(p *ApprovalAnswerParams) (any, error) {
		done, err := desk.Answer(p.ID, approval.Answer{
			Approve: r.Method == MethodApprovalsApprove, Reason: p.Reason, Scope: p.Scope, Digest: p.Digest, By: ruler(c.creds),
		})
		if err != nil {
			return nil, err
		}
		return answered(done), nil
	})
}

// calling reads the params of a control method and runs it. An error is the
// asker's business, so all of its text goes back.
func calling[P any](r *rpc.Request, do func(*P) (any, error)) rpc.Work {
	var p P
	if r.Params != nil {
		if err := protocol.Unmarshal(r.Params, &p); err != nil {
			return refuse(protocol.InvalidParams("", "%s", err))
		}
	}
	return rpc.Work{Run: func(context.Context) ([]byte, error) {
		res, err := do(&p)
		if e, ok := errors.AsType[*protocol.Error](err); ok {
			return nil, e
		}
		if err != nil {
			return nil, protocol.Errorf(protocol.CodeInvalidRequest, "%s", err)
		}
		return protocol.Marshal(res)
	}}
}

func ticketsOf(open []approval.Ticket, known []string) []ApprovalTicket {
	list := make([]ApprovalTicket, 0, len(open))
	left := listedBytes
	for i := range open {
		t := &open[i]
		if slices.Contains(known, t.ID) {
			list = append(list, ApprovalTicket{ID: t.ID, Digest: t.Digest, ArgumentsBytes: len(t.Arguments)})
			continue
		}
		v := ticketOf(t)
		if n := len(t.Arguments); n <= left || left == listedBytes {
			v.Arguments = t.Arguments
			left -= n
		}
		list = append(list, v)
	}
	return list
}

// ticketOf shows a ticket without its arguments.
func ticketOf(t *approval.Ticket) ApprovalTicket {
	return ApprovalTicket{
		ID: t.ID, Digest: t.Digest, Tool: t.Tool, ArgumentsBytes: len(t.Arguments), Message: t.Message, AskedBy: t.AskedBy,
		Agent: t.Agent, PID: t.PID, UID: t.UID, Session: t.Session, Task: t.Task, User: t.User, Node: t.Node, CWD: t.CWD,
		Model: t.Model, CallID: t.CallID, Opened: t.Opened.UTC(), Expires: t.Expires.UTC(),
	}
}

func answered(a *approval.Answered) *ApprovalAnswered {
	v := &ApprovalAnswered{
		Ticket: ticketOf(&a.Ticket), Approved: a.Resolution.Approved, By: a.Resolution.By, Reason: a.Resolution.Reason,
		Also: a.Also, Warning: a.Warning,
	}
	if len(a.Ticket.Arguments) <= listedBytes {
		v.Ticket.Arguments = a.Ticket.Arguments
	}
	if a.Rule != nil {
		v.Rule = ruleOf(a.Rule)
	}
	return v
}

func rulesList(rules []approval.Rule) []*ApprovalRule {
	list := make([]*ApprovalRule, len(rules))
	for i := range rules {
		list[i] = ruleOf(&rules[i])
	}
	return list
}

func ruleOf(r *approval.Rule) *ApprovalRule {
	return &ApprovalRule{
		Rule: r.Number, Approved: r.Approve, Scope: r.Scope, Digest: r.Digest, Tool: r.Tool, Arguments: r.Arguments,
		Agent: r.Agent, UID: r.UID, CWD: r.CWD, Session: r.Session, Reason: r.Reason, By: r.By.String(), Made: r.Made.UTC(),
		Used: r.Used, LastUsed: r.LastUsed.UTC(),
	}
}

// needs says which built-in has to be in the config for something.
func needs(what, name string) error {
	return fmt.Errorf(`%s: add "%s": {"priority": 10} to hooks.builtins in the config`, what, name)
}
