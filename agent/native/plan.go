package native

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/protocol"
)

// Verdict is what a plan says about what is about to happen.
type Verdict int

// The verdicts. NoOpinion leaves everything to the agent.
const (
	NoOpinion Verdict = iota
	Allow             // go on, and don't ask the user
	Ask               // ask the user
	Deny
	Stop // end the turn; at a gate also deny
	Quit // end the agent
)

// Plan is hookd's answer cut down to what the event's row can say. A dialect
// writes it as it is: no part is there that the row has no flag for.
type Plan struct {
	Verdict Verdict
	// Reason belongs to the verdict. It is never empty with Deny, Stop and Quit.
	Reason string
	// Input holds the changed arguments, all of them (before_tool); nil = none.
	Input protocol.Object
	// Content is the changed text: of the tool's result (after_tool), of the
	// message or of the output; nil = none.
	Content jsontext.Value
	// Respond is the answer in place of the model's.
	Respond jsontext.Value
	// Subject is the whole changed subject at the other stages.
	Subject jsontext.Value
	// Context is more context for the model.
	Context string
	// Message starts another round.
	Message string
	// Notice is what the user is shown.
	Notice string
	// KeepPrompt is [Policy.KeepPrompt].
	KeepPrompt bool
	// Warnings say what had no native form, and what was done instead.
	Warnings []string
}

// Warn adds a warning.
func (p *Plan) Warn(parts ...string) { p.Warnings = append(p.Warnings, strings.Join(parts, "")) }

// AddContext adds a text to what the model is told.
func (p *Plan) AddContext(text string) {
	if p.Context != "" && text != "" {
		p.Context += "\n"
	}
	p.Context += text
}

// ChangedInput returns the arguments that differ from the call's, for agents
// that merge ([Row.Merge]).
func (p *Plan) ChangedInput(c *Call) protocol.Object {
	var changed protocol.Object
	for _, m := range p.Input {
		if !protocol.SameValue(c.Arguments.Get(m.Name), m.Value) {
			changed = append(changed, m)
		}
	}
	return changed
}

// reasonNobody is what hookd says at approve_tool when there is no approver.
const reasonNobody = "nobody can be asked"

// Resolve cuts hookd's answer down to what the row of the call can say. r may be
// nil: no opinion.
func Resolve(c *Call, r *protocol.Result, policy Policy) *Plan {
	p := &Plan{KeepPrompt: policy.KeepPrompt}
	if r == nil || c.Stage == "" {
		return p
	}
	s := &resolver{Plan: p, c: c, r: r, policy: policy}
	if c.Stage == protocol.StageApproveTool {
		s.approval()
	} else {
		s.verdict()
		s.change()
		s.inject()
	}
	s.context()
	s.rest()
	return p
}

// resolver makes one plan.
type resolver struct {
	*Plan
	c      *Call
	r      *protocol.Result
	policy Policy
}

// lacks warns that a part has no native form and returns what to do instead, as
// far as the row can do that.
func (s *resolver) lacks(part string) Fallback {
	to, row := s.policy.gap(s.c.Stage, part), &s.c.Row
	if to == FallbackWithhold && !row.Modify {
		to = FallbackContext
	}
	if to == FallbackContext && !row.Context || to == FallbackDeny && !row.Block {
		to = FallbackSilent
	}
	s.Warn(s.c.dialect, " has no form for ", part, " at ", s.c.Event, ": ", said(to))
	return to
}

func said(f Fallback) string {
	switch f {
	case FallbackDeny:
		return "denied instead"
	case FallbackContext:
		return "told to the model instead"
	case FallbackWithhold:
		return "the reason is put in its place"
	case FallbackAbortTurn:
		return "treated as abort_turn"
	}
	return "left out"
}

func (s *resolver) verdict() {
	r := s.r
	switch r.Action {
	case protocol.ActionAllow:
		s.allow()
	case protocol.ActionAsk:
		s.ask()
	case protocol.ActionDeny:
		s.deny(s.reason())
	case protocol.ActionRespond:
		s.respond()
	case protocol.ActionAbortTurn:
		s.abort()
	case protocol.ActionHardAbort:
		if s.c.Row.Quit {
			s.Verdict, s.Reason = Quit, s.reason()
			return
		}
		s.lacks(partQuit)
		s.abort()
	default:
		// An approver who said yes has answered what the agent's prompt would ask.
		if a := r.Approval; a != nil && a.Approved && a.By != "" {
			s.allow()
			s.Reason = a.Reason
		}
	}
}

// reason returns why, and never nothing.
func (s *resolver) reason() string {
	switch {
	case s.r.Reason != "":
		return s.r.Reason
	case s.r.DecidedBy != "":
		return "denied by " + s.r.DecidedBy
	}
	return "denied by hookd"
}

func (s *resolver) allow() {
	if s.c.Row.Allow {
		s.Verdict, s.Reason = Allow, s.r.Reason
		return
	}
	s.lacks(partAllow)
}

func (s *resolver) ask() {
	if s.c.Row.Ask {
		if s.c.Row.AskWeak {
			s.Warn(s.c.dialect, " runs the call without asking where its prompts are switched off; with --approve hookd's approvers decide instead")
		}
		s.Verdict, s.Reason = Ask, s.r.Reason
		return
	}
	if s.lacks(partAsk) == FallbackDeny {
		s.refuse(withReason("this needs approval, and "+s.c.dialect+" can't be made to ask for it here", s.r.Reason))
	}
}

func withReason(text, reason string) string {
	if reason == "" {
		return text
	}
	return text + ": " + reason
}

func (s *resolver) refuse(reason string) { s.Verdict, s.Reason = Deny, reason }

func (s *resolver) deny(reason string) {
	if s.c.Row.Block {
		s.refuse(reason)
		return
	}
	s.instead(s.lacks(partDeny), reason)
}

// instead does what there is no form for in another way.
func (s *resolver) instead(to Fallback, reason string) {
	switch to {
	case FallbackDeny:
		s.refuse(reason)
	case FallbackWithhold:
		s.Content = protocol.Quote(reason)
	case FallbackContext:
		s.AddContext("Don't use this: " + reason)
	}
}

func (s *resolver) respond() {
	if s.c.Row.Respond {
		s.Plan.Respond = s.r.Respond
		return
	}
	s.instead(s.lacks(partRespond), "This was answered instead of being run. The answer:\n"+answerText(s.r.Respond))
}

// answerText returns what a response says: its content, or all of it.
func answerText(v jsontext.Value) string {
	if v.Kind() == '{' {
		members, _ := protocol.ParseObject(v)
		if text := protocol.ContentText(members.Get("content")); text != "" {
			return text
		}
	}
	return string(v)
}

func (s *resolver) abort() {
	if s.c.Row.Abort {
		s.Verdict, s.Reason = Stop, s.reason()
		return
	}
	s.instead(s.lacks(partAbort), s.reason())
}

// change carries over what hooks changed of the subject.
func (s *resolver) change() {
	if s.r.Subject == nil || s.Verdict >= Deny || s.Content != nil {
		return
	}
	members, err := protocol.ParseObject(s.r.Subject)
	if err != nil {
		return // it was decoded as an object
	}
	switch s.c.Stage {
	case protocol.StageBeforeTool:
		s.changeCall(members)
	case protocol.StageAfterTool:
		if v := members.Get("content"); v != nil && !protocol.SameValue(v, s.c.content) {
			s.changeContent(v, "A hook changed the result of this tool. Read this in its place:\n")
		}
	case protocol.StageUserMessage:
		s.changeContent(members.Get("content"), "A hook changed the user's message. Read it as:\n")
	case protocol.StageOutput:
		s.changeContent(members.Get("content"), "")
	default:
		switch {
		case s.c.Row.Modify:
			s.Subject = s.r.Subject
		case s.lacks(partModify) == FallbackDeny:
			s.refuse(withReason("a hook changed this, and "+s.c.dialect+" can't take the change", s.r.Reason))
		}
	}
}

func (s *resolver) changeCall(call protocol.Object) {
	if tool := protocol.MetaString(call, "tool"); tool != "" && tool != s.c.ToolName {
		if s.lacks(partRename) == FallbackDeny {
			s.refuse(withReason("a hook wants to call "+tool+" instead, which "+s.c.dialect+" can't do", s.r.Reason))
		}
		return
	}
	args := call.Get("arguments")
	if args.Kind() != '{' || protocol.SameValue(args, s.c.Arguments.AppendJSON(nil)) {
		return
	}
	part := partModify
	if s.c.Row.Modify {
		input, _ := protocol.ParseObject(args)
		if input == nil {
			input = protocol.Object{}
		}
		if !s.c.Row.Merge || !s.c.wrapped && !s.takesOut(input) {
			s.Input = input
			return
		}
		part = partRemove
	}
	if s.lacks(part) == FallbackDeny {
		s.refuse(withReason("a hook changed this call, and "+s.c.dialect+" can't take the change", s.r.Reason))
	}
}

// takesOut reports whether an argument of the call is gone.
func (s *resolver) takesOut(input protocol.Object) bool {
	for _, m := range s.c.Arguments {
		if input.Get(m.Name) == nil {
			return true
		}
	}
	return false
}

func (s *resolver) changeContent(content jsontext.Value, words string) {
	if content == nil {
		return
	}
	if s.c.Row.Modify {
		s.Content = content
		return
	}
	if s.lacks(partModify) == FallbackContext {
		s.AddContext(words + protocol.ContentText(content))
	}
}

// inject turns messages for another round into one text.
func (s *resolver) inject() {
	if s.r.Action != protocol.ActionInject {
		return
	}
	if !s.c.Row.Inject {
		s.lacks(partInject)
		return
	}
	for _, m := range s.r.Inject {
		msg, err := protocol.ParseObject(m)
		if err != nil {
			continue
		}
		if s.Message != "" {
			s.Message += "\n"
		}
		s.Message += protocol.ContentText(msg.Get("content"))
	}
	if s.Message == "" {
		s.Message = "Go on."
	}
}

func (s *resolver) approval() {
	a := s.r.Approval
	switch {
	case a == nil:
		s.deny("hookd gave no approval")
	case a.Approved && a.By == "":
		// Nobody has said yes: there was nobody to ask. The agent was about to ask
		// its user, and still is.
	case a.Approved:
		s.allow()
		s.Reason = a.Reason
	case a.Reason == reasonNobody && a.By == "" && s.r.DecidedBy == "":
		s.Warn("hookd has no approver: ", s.c.dialect, " asks its user")
	default:
		reason := a.Reason
		if reason == "" {
			reason = s.reason()
		}
		s.deny(reason)
	}
}

// context joins what hooks want the model to know.
func (s *resolver) context() {
	if len(s.r.AddContext) == 0 {
		return
	}
	text := strings.Join(s.r.AddContext, "\n")
	switch {
	case s.c.Row.Context:
		s.AddContext(text)
	case s.Verdict == Deny:
		s.Reason += "\n" + text
	case s.Message != "":
		s.Message += "\n" + text
	default:
		s.lacks(partContext)
	}
}

func (s *resolver) rest() {
	if s.r.JumpTo != "" {
		s.lacks(partJump)
	}
	if len(s.r.Warnings) == 0 {
		return
	}
	if s.c.Row.Notify {
		s.Notice = strings.Join(s.r.Warnings, "\n")
		return
	}
	s.lacks(partNotify)
	s.Warnings = append(s.Warnings, s.r.Warnings...)
}
