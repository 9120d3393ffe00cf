package client

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/protocol"
)

// Answer is what hookd says at every step. It decides nothing by itself: see
// the verdict that it stands in.
type Answer struct {
	// Action is hookd's verb; empty when there is no verdict.
	Action protocol.Action
	// Reason says why, for the model or the user. It is also set when there is
	// no verdict.
	Reason string
	// Warnings are for the user and the log.
	Warnings []string
	// AddContext is more context for the model, in this order.
	AddContext []string
	// State is what hooks left for the agent, and what [Call.State] of later
	// steps may hand on.
	State map[string]jsontext.Value
	// JumpTo names the node or step that the agent should go to.
	JumpTo string
	// DecidedBy names the hook whose verb this is; empty for continue.
	DecidedBy string
	// Degraded names the hooks that failed and were passed over.
	Degraded []protocol.Degraded
	// Generation numbers the version of hookd's config.
	Generation uint64
	// Trail is every hook's turn, when [Call.Trail] asked for it.
	Trail []protocol.Step
}

// EndsTurn reports whether a hook has ended the turn: the agent stops working
// on this message, whatever the step was.
func (a *Answer) EndsTurn() bool {
	return a.Action == protocol.ActionAbortTurn || a.EndsRun()
}

// EndsRun reports whether a hook has ended the whole run: the agent stops and
// takes back, where it can, what the turn has done.
func (a *Answer) EndsRun() bool { return a.Action == protocol.ActionHardAbort }

// Verdict is about a step whose subject is one object, or none. The zero value
// is a no.
type Verdict struct {
	Answer
	// Allowed says that the agent may go on with Final.
	Allowed bool
	// Final is what to go on with: the object that was asked about, as hooks have
	// changed it. It is nil unless Allowed, and where there is nothing to change.
	Final jsontext.Value
}

// Text returns the content of Final as one text; blocks that are not text are
// left out.
func (v *Verdict) Text() string {
	final, err := protocol.DecodeObject(v.Final, 0)
	if err != nil {
		return ""
	}
	return protocol.ContentText(final.Get("content"))
}

// AgentVerdict is about a run of the agent. The zero value is a no.
type AgentVerdict struct {
	Answer
	// Allowed says that the agent may run, with Request.
	Allowed bool
	// Request is the request as hooks have changed it; nil unless Allowed.
	Request jsontext.Value
	// Response is what a hook answers in place of the agent, which does not run;
	// {} means to skip it. It is never set when Allowed.
	Response jsontext.Value
}

// ModelVerdict is about a model call. The zero value is a no.
type ModelVerdict struct {
	Answer
	// Allowed says that the model may be called, with the four that follow.
	Allowed bool
	// Model, Messages, Tools and Options are the request as hooks have changed
	// it. Those that were not asked about are empty, as are all unless Allowed.
	Model    string
	Messages jsontext.Value
	Tools    jsontext.Value
	Options  jsontext.Value
	// Response is what a hook answers in place of the model, which is not
	// called. It is never set when Allowed.
	Response jsontext.Value
}

// ToolVerdict is about a tool call. The zero value is a no.
type ToolVerdict struct {
	Answer
	// Allowed says that Tool may run with Arguments, now and once.
	Allowed bool
	// NeedsApproval says that no hook objects so far and [Client.ApproveTool]
	// has the last word. It is set only after [BeforeTool.ApproveLater].
	NeedsApproval bool
	// Permission names what is asked for, when a hook asked for approval.
	Permission string
	// Tool and Arguments are the call as hooks have changed it. They are set
	// only when Allowed or NeedsApproval.
	Tool      string
	Arguments jsontext.Value
	// Result is the tool's result, to be given to the model, when the tool does
	// not run: what a hook answered in its place, or an error that says why.
	Result jsontext.Value
	// Approval says who approved or refused; nil when nobody was asked.
	Approval *protocol.ApprovalResult
}

// ResultVerdict is about a tool's result.
type ResultVerdict struct {
	Answer
	// Allowed says that Result is the tool's, as hooks have changed it.
	Allowed bool
	// Result is to be given to the model. When the tool's own is withheld it is
	// an error that says why.
	Result jsontext.Value
}

// StopVerdict is about the end of the loop. The zero value means to stop.
type StopVerdict struct {
	Answer
	// Again says that the loop goes on for another round, with Inject.
	Again bool
	// Inject holds the messages {role, content} to add before that round.
	Inject []jsontext.Value
}

// Result is a tool's result in the form that hooks understand.
type Result struct {
	// Content is a string, or an array of blocks {type, text, …}.
	Content any  `json:"content"`
	IsError bool `json:"is_error"`
}

// reply is what was made of hookd's result. The zero value is a no.
type reply struct {
	Answer
	res    protocol.Result
	passes bool            // the step may go on
	final  protocol.Object // the subject to go on with; nil when there is no verdict
}

// noVerdict is the reply to a call that failed.
func noVerdict(err error) *reply {
	return &reply{Answer: Answer{Reason: "hookd gave no verdict: " + err.Error()}}
}

// read makes a reply of hookd's result, or fails when anything in it can't be
// acted on.
func (q *query) read(raw []byte) (*reply, error) {
	res, err := protocol.DecodeResult(q.stage, raw)
	if err != nil {
		return nil, err
	}
	r := &reply{res: *res, Answer: Answer{
		Action: res.Action, Reason: res.Reason, Warnings: res.Warnings, AddContext: res.AddContext, JumpTo: res.JumpTo,
		DecidedBy: res.DecidedBy, Degraded: res.Degraded, Generation: res.Generation, Trail: res.Trail,
	}}
	if res.State != nil {
		r.State = make(map[string]jsontext.Value, len(res.State))
		for _, m := range res.State {
			r.State[m.Name] = m.Value
		}
	}
	if r.final, err = q.finalSubject(res); err != nil {
		return nil, err
	}
	if q.stage.Name == protocol.StageApproveTool {
		r.Action, r.Reason = protocol.ActionDeny, res.Approval.Reason
		if res.Approval.Approved {
			r.Action = protocol.ActionAllow
		}
	}
	switch r.Action {
	case protocol.ActionContinue, protocol.ActionModify, protocol.ActionAllow:
		r.passes = true
	}
	if q.approve && !r.Action.Stops() {
		if err := approved(res.Approval, r.final); err != nil {
			return nil, err
		}
		if r.Action == protocol.ActionAsk {
			return nil, errors.New("the question for approval was left open")
		}
	}
	return r, nil
}

// finalSubject returns what the agent may go on with: the whole subject in the
// answer, or what was sent when it did not change.
func (q *query) finalSubject(res *protocol.Result) (protocol.Object, error) {
	stage := q.stage
	if res.Subject == nil {
		if res.Action == protocol.ActionModify {
			return nil, fmt.Errorf("modify without %q", stage.Result)
		}
		return q.subject.list, nil
	}
	members, err := protocol.ParseObject(res.Subject)
	if err != nil {
		return nil, err
	}
	if err := stage.CheckSubject(stage.Result, members); err != nil {
		return nil, err
	}
	if stage.Wrapped() {
		return protocol.Object{{Name: stage.Result, Value: res.Subject}}, nil
	}
	for _, name := range stage.Required {
		if members.Get(name) == nil {
			return nil, fmt.Errorf("%s.%s is missing", stage.Result, name)
		}
	}
	return members, nil
}

// approved makes sure that a yes is one, and about this very call.
func approved(a *protocol.ApprovalResult, call protocol.Object) error {
	switch {
	case a == nil || !a.Approved:
		return errors.New("it goes on without an approval")
	case a.Digest != (&protocol.Request{Subject: call}).Digest():
		return errors.New("the approval is for another call")
	}
	return nil
}

// refusal is what a model is told in place of a tool's result.
func (r *reply) refusal() jsontext.Value {
	why := cmp.Or(r.Reason, "denied by "+cmp.Or(r.DecidedBy, "hookd"))
	return append(protocol.AppendString([]byte(`{"content":`), why), `,"is_error":true}`...)
}

// response is what a hook answered in place of what was asked about, or nil.
func (r *reply) response() jsontext.Value {
	if r.Action != protocol.ActionRespond {
		return nil
	}
	return r.res.Respond
}

func (r *reply) verdict(subject string) Verdict {
	v := Verdict{Answer: r.Answer, Allowed: r.passes}
	if r.passes {
		v.Final = r.final.Get(subject)
	}
	return v
}

func (r *reply) toolVerdict(approveLater bool) ToolVerdict {
	v := ToolVerdict{Answer: r.Answer, Permission: r.res.Permission, Approval: r.res.Approval}
	switch {
	case r.passes && !approveLater:
		v.Allowed = true
	case r.passes || r.Action == protocol.ActionAsk:
		v.NeedsApproval = true
	case r.response() != nil:
		v.Result = r.response()
	default:
		v.Result = r.refusal()
	}
	if v.Allowed || v.NeedsApproval {
		v.Tool = protocol.Unquote(r.final.Get("tool"))
		v.Arguments = r.final.Get("arguments")
	}
	return v
}
