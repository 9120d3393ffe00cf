package protocol

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Action is the verb of a decision. The zero value means continue.
type Action string

// The verbs. Which of them a stage allows stands in [StageInfo.Verbs].
const (
	ActionContinue  Action = "continue"
	ActionModify    Action = "modify"
	ActionRespond   Action = "respond"
	ActionAllow     Action = "allow" // continue, and the agent need not ask its user
	ActionAsk       Action = "ask"   // needs approval
	ActionDeny      Action = "deny"  // on the wire also deny_tool and block
	ActionInject    Action = "inject"
	ActionAbortTurn Action = "abort_turn"
	ActionHardAbort Action = "hard_abort"
)

// WireDenyTool is how hookd says deny at before_tool.
const WireDenyTool = "deny_tool"

// Rank orders the verbs: the aggregate of several decisions is the one with
// the highest rank.
func (a Action) Rank() int {
	switch a {
	case ActionAllow:
		return 1
	case ActionModify:
		return 2
	case ActionInject, ActionRespond:
		return 3
	case ActionAsk:
		return 4
	case ActionDeny:
		return 5
	case ActionAbortTurn:
		return 6
	case ActionHardAbort:
		return 7
	}
	return 0
}

// Stops reports whether the verb ends the chain.
func (a Action) Stops() bool { return a.Rank() >= ActionDeny.Rank() }

// parseAction reads a verb exactly: other cases, spaces and unknown words are
// refused.
func parseAction(word string) (Action, error) {
	switch a := Action(word); a {
	case ActionContinue, ActionModify, ActionRespond, ActionAllow, ActionAsk, ActionDeny, ActionInject, ActionAbortTurn, ActionHardAbort:
		return a, nil
	case WireDenyTool, "block":
		return ActionDeny, nil
	}
	return "", fmt.Errorf("action: unknown verb %q%s", clip(word), DidYouMean(word, actionWords()))
}

// actionWords lists the verbs as they may stand on the wire.
func actionWords() []string {
	return []string{"continue", "modify", "respond", "allow", "ask", "deny", WireDenyTool, "block", "inject", "abort_turn", "hard_abort"}
}

// Decision is one hook's answer at a stage other than approve_tool. The zero
// value is "continue".
type Decision struct {
	Action Action
	// Reason is kept on every path, also for aborts.
	Reason string
	// Permission names, with ask, what is asked for.
	Permission string
	// Subject holds, with modify or continue, the members that change: they are
	// merged over the subject, top-level member by member. It is the stage's
	// result member ("call", "request", …).
	Subject jsontext.Value
	// Patch is a JSON Patch (RFC 6902) on the subject instead of Subject.
	Patch jsontext.Value
	// Respond holds, with respond, what is used instead of running the tool,
	// the model or the agent.
	Respond jsontext.Value
	// Inject holds, with inject, the messages {role, content} that start another
	// round.
	Inject []jsontext.Value
	// AddContext is more context for the model.
	AddContext []string
	// Warnings are shown and logged and have no effect on the flow.
	Warnings []string
	// State holds values for later hooks of this call and for the agent.
	State Object
	// JumpTo names the node or step the agent should go to.
	JumpTo string
	// Steps are the turns of hooks that stand behind this one, such as those of
	// a project. They follow its own step in the trail. Only hooks in Go set
	// them; they are not on the wire.
	Steps []Step
}

// Decided returns the verb with the zero value read as continue.
func (d *Decision) Decided() Action {
	if d.Action == "" {
		return ActionContinue
	}
	return d.Action
}

// DecodeDecision reads a hook's answer at this stage. A null or empty result
// is "continue". Anything that can't be read exactly — an unknown member or
// verb, another case, a wrong type, a name twice — is an error, and the caller
// must not act on any part of it.
func DecodeDecision(stage *StageInfo, raw []byte) (Decision, error) {
	switch string(raw) { // what hooks say most of the time needs no reading
	case `{}`:
		return Decision{}, nil
	case `{"action":"continue"}`:
		return Decision{Action: ActionContinue}, nil
	}
	if isNull(raw) {
		return Decision{}, nil
	}
	obj, err := DecodeObject(raw, 0)
	if err != nil {
		return Decision{}, err
	}
	var d Decision
	for _, m := range obj {
		if !slices.Contains(stage.members, m.Name) {
			return Decision{}, unknownMember(m.Name, stage.members)
		}
		if err := d.setMember(stage, m); err != nil {
			return Decision{}, err
		}
	}
	if err := d.checkMembers(stage); err != nil {
		return Decision{}, err
	}
	return d, nil
}

// isNull reports whether there is no value, or null. White space is that of
// JSON, not of Unicode.
func isNull(raw []byte) bool {
	raw = bytes.Trim(raw, " \t\r\n")
	return len(raw) == 0 || string(raw) == "null"
}

func (d *Decision) setMember(stage *StageInfo, m Member) (err error) {
	if m.Name == "action" {
		word, err := stringValue("action", m.Value)
		if err != nil {
			return err
		}
		d.Action, err = parseAction(word)
		return err
	}
	if m.Value.Kind() == 'n' {
		return nil // null: as if it were not there
	}
	switch m.Name {
	case "reason":
		d.Reason, err = stringValue(m.Name, m.Value)
	case "permission":
		d.Permission, err = stringValue(m.Name, m.Value)
	case "jump_to":
		d.JumpTo, err = stringValue(m.Name, m.Value)
	case "add_context":
		d.AddContext, err = stringsValue(m.Name, m.Value, true)
	case "warnings":
		d.Warnings, err = stringsValue(m.Name, m.Value, false)
	case "state":
		d.State, err = objectValue(m.Name, m.Value)
	case "patch":
		d.Patch, err = m.Value, wantKind(m.Name, m.Value, '[')
	case "inject":
		d.Inject, err = Messages(m.Name, m.Value)
	case stage.Result:
		d.Subject, err = m.Value, wantKind(m.Name, m.Value, '{')
	case stage.Respond:
		d.Respond, err = m.Value, wantKind(m.Name, m.Value, '{')
	}
	return err
}

// checkMembers holds the rules between members.
func (d *Decision) checkMembers(stage *StageInfo) error {
	switch {
	case d.Subject != nil && d.Patch != nil:
		return fmt.Errorf("%s and patch: give one of them", stage.Result)
	case d.Patch != nil && stage.Result == "":
		return errors.New("patch: nothing can be changed at " + string(stage.Name))
	case d.Action == ActionRespond && stage.Respond != "" && d.Respond == nil:
		return fmt.Errorf("respond without %q", stage.Respond)
	case d.Action == ActionInject && stage.Allows(ActionInject) && len(d.Inject) == 0:
		return errors.New(`inject without "inject"`)
	}
	if d.Subject == nil {
		return nil
	}
	members, err := ParseObject(d.Subject)
	if err != nil {
		return fmt.Errorf("%s: %w", stage.Result, err)
	}
	return stage.CheckSubject(stage.Result, stage.changes(members))
}

// changes returns what a hook may change of the members that it gave back. Many
// scripts give all params back, one of them changed; what they say about meta
// or context has no effect.
func (s *StageInfo) changes(members Object) Object {
	if s.Wrapped() {
		return members
	}
	return slices.DeleteFunc(members, func(m Member) bool { return isCommonParam(m.Name) })
}

// Check reports what in a decision could not stand on the wire at this stage.
// It is for decisions made in Go: [DecodeDecision] returns checked ones only.
func (d *Decision) Check(stage *StageInfo) error {
	if d.Subject != nil && stage.Result == "" {
		return errors.New("nothing can be changed at " + string(stage.Name))
	}
	_, err := DecodeDecision(stage, d.AppendJSON(nil, stage))
	return err
}

// CheckSubject reports whether the members of a changed subject have the types
// that the stage's params have, so that a change can't smuggle in what a
// request could not say. Where the subject is wrapped, any member is free.
func (s *StageInfo) CheckSubject(path string, members Object) error {
	for _, m := range members {
		var err error
		switch {
		case s.Wrapped():
			if m.Name == "content" {
				err = wantContent(path, m.Value.Kind())
			}
		case !slices.Contains(s.Subject, m.Name):
			err = fmt.Errorf("%s: %w", path, unknownMember(m.Name, s.Subject))
		default:
			err = checkParam(path+".", m)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// decisionMembers lists what a decision at this stage may hold.
func decisionMembers(stage *StageInfo) []string {
	names := []string{"action", "reason", "permission", "patch", "add_context", "warnings", "state", "jump_to"}
	for _, n := range []string{stage.Result, stage.Respond} {
		if n != "" {
			names = append(names, n)
		}
	}
	if stage.Allows(ActionInject) {
		names = append(names, "inject")
	}
	return names
}

func unknownMember(name string, known []string) error {
	hint := DidYouMean(name, known)
	switch name {
	case "decision", "allow", "args", "hook_result":
		hint = ` (this looks like another dialect; hookd reads "action": see the entry's "dialect")`
	case "approved":
		hint = ` ("approved" is read at approve_tool only)`
	case "message":
		hint = ` (did you mean "reason"?)`
	}
	return fmt.Errorf("unknown member %q%s", clip(name), hint)
}

// Approval is an approver's answer. The zero value is a no.
type Approval struct {
	Approved bool
	Reason   string
	// By says who approved or refused: a person, a rule.
	By string
	// Abstained: the approver has no opinion on this call, and neither grants nor
	// refuses it. Only hooks in Go set it; on the wire no readable yes is a no.
	Abstained bool
	// Steps are as in [Decision].
	Steps []Step
}

// DecodeApproval reads an approver's answer strictly. Without a readable
// boolean "approved" there is no yes.
func DecodeApproval(raw []byte) (Approval, error) {
	if isNull(raw) {
		return Approval{}, errors.New(`"approved" is missing`)
	}
	obj, err := DecodeObject(raw, 0)
	if err != nil {
		return Approval{}, err
	}
	var a Approval
	seen := false
	for _, m := range obj {
		switch m.Name {
		case "approved":
			if k := m.Value.Kind(); k != 't' && k != 'f' {
				return Approval{}, fmt.Errorf("approved: expected a boolean, got %s", kindName(k))
			}
			a.Approved, seen = m.Value.Kind() == 't', true
		case "reason", "by":
			if m.Value.Kind() == 'n' {
				continue
			}
			s, err := stringValue(m.Name, m.Value)
			if err != nil {
				return Approval{}, err
			}
			if m.Name == "by" {
				a.By = s
			} else {
				a.Reason = s
			}
		case "allow", "action", "decision":
			return Approval{}, fmt.Errorf(`unknown member %q: an approver answers {"approved": true|false, "reason": "…"} (see also the entry's "dialect")`, m.Name)
		default:
			return Approval{}, unknownMember(m.Name, []string{"approved", "reason", "by"})
		}
	}
	if !seen {
		return Approval{}, errors.New(`"approved" is missing`)
	}
	return a, nil
}

// AppendJSON appends the approval as a hook answers it.
func (a Approval) AppendJSON(b []byte) []byte {
	r := ApprovalResult{Approved: a.Approved, Reason: a.Reason, By: a.By}
	return append(r.appendMembers(append(b, '{')), '}')
}

// AppendJSON appends the decision as a hook answers it at this stage.
func (d *Decision) AppendJSON(b []byte, stage *StageInfo) []byte {
	b = append(b, `{"action":`...)
	b = AppendString(b, wireAction(stage, d.Decided()))
	b = appendStringMember(b, "reason", d.Reason)
	b = appendStringMember(b, "permission", d.Permission)
	b = appendValueMember(b, stage.Result, d.Subject)
	b = appendValueMember(b, "patch", d.Patch)
	b = appendValueMember(b, stage.Respond, d.Respond)
	b = appendMessages(b, d.Inject)
	b = appendStringsMember(b, "add_context", d.AddContext)
	b = appendStringsMember(b, "warnings", d.Warnings)
	if d.State != nil {
		b = append(b, `,"state":`...)
		b = d.State.AppendJSON(b)
	}
	b = appendStringMember(b, "jump_to", d.JumpTo)
	return append(b, '}')
}

// wireAction is how hookd says a verb: deny is deny_tool at before_tool.
func wireAction(stage *StageInfo, a Action) string {
	if a == ActionDeny && stage.Name == StageBeforeTool {
		return WireDenyTool
	}
	return string(a)
}

func appendStringMember(b []byte, name, s string) []byte {
	if s == "" {
		return b
	}
	b = append(b, ',')
	b = AppendString(b, name)
	b = append(b, ':')
	return AppendString(b, s)
}

func appendValueMember(b []byte, name string, v jsontext.Value) []byte {
	if v == nil || name == "" {
		return b
	}
	b = append(b, ',')
	b = AppendString(b, name)
	b = append(b, ':')
	return append(b, v...)
}

// appendMessages appends one message as an object and several as an array.
func appendMessages(b []byte, list []jsontext.Value) []byte {
	if len(list) == 1 {
		return appendValueMember(b, "inject", list[0])
	}
	for i, m := range list {
		if i == 0 {
			b = append(b, `,"inject":[`...)
		} else {
			b = append(b, ',')
		}
		b = append(b, m...)
	}
	if len(list) > 0 {
		b = append(b, ']')
	}
	return b
}

func appendStringsMember(b []byte, name string, list []string) []byte {
	if len(list) == 0 {
		return b
	}
	b = append(b, ',')
	b = AppendString(b, name)
	b = append(b, ":["...)
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendString(b, s)
	}
	return append(b, ']')
}
