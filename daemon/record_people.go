package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/zap"

	"github.com/hookd/hookd/approval"
	"github.com/hookd/hookd/builtin/cancel"
	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/record"
	"github.com/hookd/hookd/rpc"
)

// peopleStores is where the word of people is kept: in the record, if there is
// one.
func (b *book) peopleStores() peopleStores {
	if b.store == nil {
		return peopleStores{}
	}
	return peopleStores{Approvals: &journal{b}, Sessions: &cancellations{b}}
}

// rules returns the rules of the record that hold.
func (b *book) rules() ([]record.Rule, error) {
	r, err := record.OpenReader(b.store.Status().Path)
	if err != nil {
		return nil, err
	}
	list, err := r.Rules(context.Background())
	return list, errors.Join(err, r.Close())
}

// journal keeps approvals in the record.
type journal struct{ *book }

var _ approval.Journal = (*journal)(nil)

func ticketRow(t *approval.Ticket) *record.Approval {
	return &record.Approval{
		Ticket: t.ID, Digest: t.Digest, Tool: t.Tool, Arguments: t.Arguments, Session: t.Session, Agent: t.Agent, User: t.User,
		Task: t.Task, Node: t.Node, PID: t.PID, UID: t.UID, Opened: t.Opened, Expires: t.Expires, Timeout: t.Limit(),
	}
}

// Opened implements [approval.Journal].
func (j *journal) Opened(t *approval.Ticket) error {
	return j.store.ApprovalRequested(context.Background(), ticketRow(t))
}

// Resolved implements [approval.Journal].
func (j *journal) Resolved(t *approval.Ticket, r *approval.Resolution) error {
	a := ticketRow(t)
	a.Answered, a.Approved, a.Outcome, a.Reason, a.By = r.At, r.Approved, string(r.How), r.Reason, r.By
	if r.Person != (approval.Ruler{}) {
		a.ByPID, a.ByUID = cmp.Or(r.Person.PID, -1), r.Person.UID
	}
	if r.How == approval.HowRule {
		a.Rule, _, _ = strings.Cut(strings.TrimPrefix(r.By, "rule "), " ")
	}
	return j.store.ApprovalAnswered(context.Background(), a)
}

// Refused implements [approval.Journal].
func (j *journal) Refused(t *approval.Ticket, r *approval.Refusal) error {
	detail := protocol.Object{
		{Name: "ticket", Value: protocol.Quote(t.ID)},
		{Name: "said", Value: protocol.Quote(map[bool]string{true: "yes", false: "no"}[r.Approve])},
		{Name: "reason", Value: protocol.Quote(r.Reason)},
		{Name: "by", Value: protocol.Quote(r.By.String())},
	}
	return j.store.Security(&record.SecurityEvent{
		What: "approval_refused", Severity: "warn", Session: t.Session, Agent: t.Agent, User: t.User, Tool: t.Tool,
		PID: r.By.PID, UID: r.By.UID, Message: r.Why, Detail: detail.AppendJSON(nil),
	})
}

// keptRule is what of an approval's rule the columns of the record do not hold.
// It stands where the record has a rule's arguments.
type keptRule struct {
	Approve   bool           `json:"approve"`
	Agent     string         `json:"agent"`
	UID       int            `json:"uid"`
	CWD       string         `json:"cwd"`
	By        approval.Ruler `json:"by"`
	Arguments jsontext.Value `json:"arguments,omitzero"`
}

// ruleArguments is how large the arguments of a rule may be to be kept.
const ruleArguments = 16 << 10

// RuleMade implements [approval.Journal].
func (j *journal) RuleMade(r *approval.Rule) error {
	kept := keptRule{Approve: r.Approve, Agent: r.Agent, UID: r.UID, CWD: r.CWD, By: r.By}
	if len(r.Arguments) <= ruleArguments {
		kept.Arguments = r.Arguments
	}
	text, err := protocol.Marshal(&kept)
	if err != nil {
		return fmt.Errorf("write rule: %w", err)
	}
	return j.store.AddRule(context.Background(), &record.Rule{
		ID: strconv.Itoa(r.Number), Scope: string(r.Scope), Session: r.Session, Digest: r.Digest, Tool: r.Tool,
		Arguments: text, Created: r.Made, By: r.By.String(), Reason: r.Reason,
	})
}

// RuleEnded implements [approval.Journal].
func (j *journal) RuleEnded(number int, e *approval.RuleEnd) error {
	return j.store.RevokeRule(context.Background(), &record.Rule{ID: strconv.Itoa(number), Created: e.At, By: e.By, Reason: e.Reason})
}

// Load implements [approval.Journal]. Tickets that were open have become a no
// when the record was opened.
func (j *journal) Load() (*approval.Saved, error) {
	list, err := j.rules()
	if err != nil {
		return nil, err
	}
	// Every rule is a record of its own, so none has a higher number than the
	// last record.
	saved := &approval.Saved{LastRule: int(j.store.Status().Seq)}
	for i := range list {
		r := &list[i]
		if r.Scope != string(approval.ForSession) && r.Scope != string(approval.Always) {
			continue
		}
		number, err := strconv.Atoi(r.ID)
		var kept keptRule
		if err == nil {
			err = protocol.Unmarshal(r.Arguments, &kept)
		}
		if err != nil {
			j.log.Error("a rule of before can't be read and does not hold", zap.String("rule", r.ID), zap.Error(err))
			continue
		}
		saved.Rules = append(saved.Rules, approval.Rule{
			Number: number, Approve: kept.Approve, Scope: approval.Scope(r.Scope), Digest: r.Digest, Tool: r.Tool, Arguments: kept.Arguments,
			Agent: kept.Agent, UID: kept.UID, CWD: kept.CWD, Session: r.Session, Reason: r.Reason, By: kept.By, Made: r.Created,
		})
	}
	return saved, nil
}

// cancellations keeps in the record which sessions are cancelled: each as a
// rule that holds until it is revoked.
type cancellations struct{ *book }

var _ cancel.Store = (*cancellations)(nil)

func cancelRule(session string) string { return "cancel:" + session }

// Keep implements [cancel.Store].
func (c *cancellations) Keep(k *cancel.Cancellation) error {
	err := c.store.AddRule(context.Background(), &record.Rule{
		ID: cancelRule(k.ID), Scope: record.ScopeCancelled, Session: k.ID, Created: k.At, By: k.By, Reason: k.Reason,
	})
	return errors.Join(err, c.store.Session(&record.SessionEvent{Session: k.ID, What: "cancel", Reason: k.Reason, By: k.By}))
}

// Drop implements [cancel.Store].
func (c *cancellations) Drop(id string) error {
	return c.store.RevokeRule(context.Background(), &record.Rule{ID: cancelRule(id), Scope: record.ScopeCancelled, Session: id, Created: time.Now()})
}

// Load implements [cancel.Store].
func (c *cancellations) Load() ([]cancel.Cancellation, error) {
	rules, err := c.rules()
	if err != nil {
		return nil, err
	}
	var list []cancel.Cancellation
	for _, r := range rules {
		if r.Scope == record.ScopeCancelled {
			list = append(list, cancel.Cancellation{ID: r.Session, Reason: r.Reason, By: r.By, At: r.Created})
		}
	}
	return list, nil
}

// noted records that a session was resumed, once it is.
func (c *controller) noted(r *rpc.Request, w rpc.Work) rpc.Work {
	run := w.Run
	if run == nil || r.Method != MethodSessionsResume {
		return w
	}
	w.Run = func(ctx context.Context) ([]byte, error) {
		out, err := run(ctx)
		var p SessionParams
		if err == nil && protocol.Unmarshal(r.Params, &p) == nil && p.Session != "" {
			c.d.book.tell(func(s *record.Store) error {
				return s.Session(&record.SessionEvent{Session: p.Session, What: "resume", By: ruler(c.creds).String()})
			})
		}
		return out, err
	}
	return w
}
