package daemon

import (
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/hookd/hookd/approval"
	"github.com/hookd/hookd/builtin/cancel"
	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/rpc"
)

// Methods of the control socket for sessions.
const (
	MethodSessionsList   = "hookd.sessions.list"
	MethodSessionsShow   = "hookd.sessions.show"
	MethodSessionsCancel = "hookd.sessions.cancel"
	MethodSessionsResume = "hookd.sessions.resume"
)

// SessionParams name a session.
type SessionParams struct {
	Session string `json:"session"`
	// Reason is for the agent and the log; it may be empty.
	Reason string `json:"reason,omitzero"`
}

// SessionStatus is one agent's work.
type SessionStatus struct {
	// Session names it; @NAME is an agent that gives its sessions no id.
	Session string `json:"session"`
	Agent   string `json:"agent"`
	// State is running, waiting_approval or cancelled.
	State cancel.State `json:"state"`
	// Waiting is how many calls wait for a person.
	Waiting   int       `json:"waiting"`
	Since     time.Time `json:"since"`
	LastEvent string    `json:"last_event"`
	LastAt    time.Time `json:"last_at"`
	Calls     int64     `json:"calls"`
	// Aborted are those that were stopped because the session is cancelled.
	Aborted int64 `json:"aborted"`
	// Tokens are null when no answer of a model has told any.
	Tokens *int64 `json:"tokens"`
	Errors int64  `json:"errors"`
	// CancelledBy, CancelledAt and Reason say who has cancelled it.
	CancelledBy string    `json:"cancelled_by,omitzero"`
	CancelledAt time.Time `json:"cancelled_at,omitzero"`
	Reason      string    `json:"reason,omitzero"`
	// Figures are null while the built-in metrics is not in the config.
	Figures *SessionFigures `json:"figures"`
}

// SessionDetails are what hookd knows of one session.
type SessionDetails struct {
	SessionStatus
	// Stages counts calls by stage.
	Stages map[protocol.Stage]int64 `json:"stages"`
	// Recent are the newest stages and events, oldest first.
	Recent []SessionMoment `json:"recent"`
	// Approvals are the calls that wait, without their arguments.
	Approvals []ApprovalTicket `json:"approvals"`
}

// SessionMoment is something that was heard of a session.
type SessionMoment struct {
	What string    `json:"what"`
	At   time.Time `json:"at"`
}

// SessionChanged is what a cancel or resume has done.
type SessionChanged struct {
	SessionDetails
	// Denied is how many calls waited for a person and are a no now.
	Denied int `json:"denied"`
	// Warning says what could not be done beside it.
	Warning string `json:"warning,omitzero"`
}

// sessionsOf serves the methods for sessions.
func (c *controller) sessionsOf(r *rpc.Request) rpc.Work {
	return calling(r, func(p *SessionParams) (any, error) {
		people := c.d.people
		switch {
		case !c.d.asks("cancel"):
			return nil, needs("sessions are not followed", "cancel")
		case r.Method == MethodSessionsList:
			list := []SessionStatus{}
			for _, s := range people.table.List() {
				v := statusOf(&s)
				v.Figures = c.d.takers.figures(s.ID)
				list = append(list, v)
			}
			return list, nil
		case p.Session == "":
			return nil, protocol.InvalidParams("session", "is missing")
		}
		done := &SessionChanged{}
		var err error
		switch r.Method {
		case MethodSessionsCancel:
			err = c.cancelSession(p, done)
		case MethodSessionsResume:
			by := ruler(c.creds)
			if done.Warning, err = people.table.Resume(p.Session); err == nil {
				c.d.log.Info("session resumed", zap.String("session", p.Session), zap.String("by", by.String()))
			}
		}
		if err != nil {
			return nil, err
		}
		s, err := people.table.Get(p.Session)
		if err != nil {
			return nil, err
		}
		done.SessionDetails = people.details(&s)
		done.Figures = c.d.takers.figures(s.ID)
		if r.Method == MethodSessionsShow {
			return &done.SessionDetails, nil
		}
		return done, nil
	})
}

// cancelSession stops a session: first its next stages, then the calls of it
// that wait.
func (c *controller) cancelSession(p *SessionParams, done *SessionChanged) (err error) {
	people, by := c.d.people, ruler(c.creds)
	if done.Warning, err = people.table.Cancel(p.Session, strings.TrimSpace(p.Reason), by.String()); err != nil {
		return err
	}
	c.d.log.Warn("session cancelled", zap.String("session", p.Session), zap.String("by", by.String()), zap.String("reason", p.Reason))
	text := (&cancel.Cancellation{Reason: strings.TrimSpace(p.Reason), By: by.String()}).Text()
	done.Denied = people.desk.DenyWhere(func(t *approval.Ticket) bool { return sessionOf(t) == p.Session }, text, by)
	return nil
}

func statusOf(s *cancel.Session) SessionStatus {
	v := SessionStatus{
		Session: s.ID, Agent: s.Agent, State: s.State, Waiting: s.Waiting, Since: s.Since.UTC(), LastEvent: s.LastEvent, LastAt: s.LastAt.UTC(),
		Calls: s.Total(), Aborted: s.Aborted, Errors: s.Errors,
	}
	if s.TokensKnown {
		v.Tokens = new(s.Tokens)
	}
	if c := s.Cancellation; c != nil {
		v.CancelledBy, v.CancelledAt, v.Reason = c.By, c.At.UTC(), c.Reason
	}
	return v
}

func (p *people) details(s *cancel.Session) SessionDetails {
	v := SessionDetails{SessionStatus: statusOf(s), Stages: s.Calls, Recent: []SessionMoment{}, Approvals: []ApprovalTicket{}}
	for _, m := range s.Recent {
		v.Recent = append(v.Recent, SessionMoment{m.What, m.At.UTC()})
	}
	for _, t := range p.desk.Open() {
		if sessionOf(&t) == s.ID {
			v.Approvals = append(v.Approvals, ticketOf(&t))
		}
	}
	return v
}
