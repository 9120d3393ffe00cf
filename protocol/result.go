package protocol

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Degraded names a hook that failed and was passed over.
type Degraded struct {
	Hook    string  `json:"hook"`
	Outcome Outcome `json:"outcome"`
	Detail  string  `json:"detail"`
}

// Step is one hook's turn in a call.
type Step struct {
	Hook    string  `json:"hook"`
	Outcome Outcome `json:"outcome"`
	// Action is the verb that the hook said; empty when it said none.
	Action Action `json:"action"`
	// Duration is duration_us on the wire.
	Duration time.Duration `json:"-"`
	// Changed names the members of the subject that it changed.
	Changed []string `json:"changed"`
	// Recheck marks the second turn of a guard, on the final subject.
	Recheck bool `json:"recheck,omitzero"`
	// Detail says more about a failure.
	Detail string `json:"detail,omitzero"`
}

// ApprovalResult is what became of an approval.
type ApprovalResult struct {
	Approved bool   `json:"approved"`
	Reason   string `json:"reason"`
	By       string `json:"by"`
	// Digest binds the approval to one call; see [Request.Digest].
	Digest string `json:"digest"`
}

// Result is hookd's answer to an agent. At approve_tool only Approval and the
// members from Generation on count. The zero value is "continue", or a no at
// approve_tool.
type Result struct {
	Action     Action
	Reason     string
	Permission string
	Subject    jsontext.Value // the merged subject, present when it changed
	Respond    jsontext.Value
	// Inject holds messages that start another round. On the wire one stands as
	// an object, several as an array.
	Inject     []jsontext.Value
	AddContext []string
	Warnings   []string
	State      Object
	JumpTo     string

	Approval *ApprovalResult

	Generation uint64
	// DecidedBy names the hook whose verb this is; empty for continue.
	DecidedBy string
	Degraded  []Degraded
	// Trail holds every hook's turn. It is always kept; whether it is sent is
	// the agent's choice.
	Trail []Step
}

// AppendJSON appends the result as it is sent for this stage, with the trail
// when withTrail.
func (r *Result) AppendJSON(b []byte, stage *StageInfo, withTrail bool) []byte {
	if stage.Name == StageApproveTool {
		b = r.Approval.appendMembers(append(b, '{'))
		b = appendStringsMember(b, "warnings", r.Warnings)
	} else {
		d := Decision{
			Action: r.Action, Reason: r.Reason, Permission: r.Permission, Subject: r.Subject, Respond: r.Respond,
			Inject: r.Inject, AddContext: r.AddContext, Warnings: r.Warnings, State: r.State, JumpTo: r.JumpTo,
		}
		b = d.AppendJSON(b, stage)
		b = b[:len(b)-1]
		if r.Approval != nil {
			b = append(b, `,"approval":{`...)
			b = r.Approval.appendMembers(b)
			b = append(b, '}')
		}
	}
	b = append(b, `,"generation":`...)
	b = strconv.AppendUint(b, r.Generation, 10)
	b = appendStringMember(b, "decided_by", r.DecidedBy)
	b = AppendDegraded(b, r.Degraded)
	if withTrail {
		b = append(b, `,"trail":`...)
		b = AppendTrail(b, stage, r.Trail)
	}
	return append(b, '}')
}

// AppendDegraded appends `,"degraded":[…]`, or nothing when there is nothing.
func AppendDegraded(b []byte, list []Degraded) []byte {
	if len(list) == 0 {
		return b
	}
	b = append(b, `,"degraded":[`...)
	for i, d := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"hook":`...)
		b = AppendString(b, d.Hook)
		b = appendStringMember(b, "outcome", string(d.Outcome))
		b = appendStringMember(b, "detail", d.Detail)
		b = append(b, '}')
	}
	return append(b, ']')
}

// AppendTrail appends a trail as a JSON array.
func AppendTrail(b []byte, stage *StageInfo, trail []Step) []byte {
	b = append(b, '[')
	for i, s := range trail {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"hook":`...)
		b = AppendString(b, s.Hook)
		b = appendStringMember(b, "outcome", string(s.Outcome))
		if s.Action != "" {
			b = appendStringMember(b, "action", wireAction(stage, s.Action))
		}
		b = append(b, `,"duration_us":`...)
		b = strconv.AppendInt(b, s.Duration.Microseconds(), 10)
		b = appendStringsMember(b, "changed", s.Changed)
		if s.Recheck {
			b = append(b, `,"recheck":true`...)
		}
		b = appendStringMember(b, "detail", s.Detail)
		b = append(b, '}')
	}
	return append(b, ']')
}

func (a *ApprovalResult) appendMembers(b []byte) []byte {
	if a == nil {
		return append(b, `"approved":false`...)
	}
	if a.Approved {
		b = append(b, `"approved":true`...)
	} else {
		b = append(b, `"approved":false`...)
	}
	b = appendStringMember(b, "reason", a.Reason)
	b = appendStringMember(b, "by", a.By)
	return appendStringMember(b, "digest", a.Digest)
}

// DecodeResult reads hookd's answer at this stage, as an agent does. Members
// that a newer daemon may have added are ignored; the verdict is not: one that
// is missing, unknown or not allowed here is an error, which an agent reads as
// "not allowed".
func DecodeResult(stage *StageInfo, raw []byte) (*Result, error) {
	obj, err := DecodeObject(raw, 0)
	if err != nil {
		return nil, err
	}
	r, verdict := &Result{}, "action"
	if stage.Name == StageApproveTool {
		r.Approval, verdict = &ApprovalResult{}, "approved"
	}
	for _, m := range obj {
		if verdict == "approved" {
			err = errors.Join(r.Approval.setMember(m), r.setCommonMember(stage, m))
		} else {
			err = r.setMember(stage, m)
		}
		if err != nil {
			return nil, err
		}
	}
	switch {
	case obj.Get(verdict) == nil:
		return nil, fmt.Errorf("the answer holds no verdict: %q is missing", verdict)
	case r.Action == ActionRespond && r.Respond == nil:
		return nil, fmt.Errorf("respond without %q", stage.Respond)
	case r.Action == ActionInject && len(r.Inject) == 0:
		return nil, errors.New(`inject without "inject"`)
	}
	return r, nil
}

// setMember reads a member of a result at a stage other than approve_tool.
func (r *Result) setMember(stage *StageInfo, m Member) (err error) {
	switch m.Name {
	case "action":
		r.Action, err = decodeVerb(stage, m.Value)
	case "reason":
		r.Reason, err = stringValue(m.Name, m.Value)
	case "permission":
		r.Permission, err = stringValue(m.Name, m.Value)
	case "inject":
		r.Inject, err = Messages(m.Name, m.Value)
	case "add_context":
		r.AddContext, err = stringsValue(m.Name, m.Value, true)
	case "state":
		r.State, err = objectValue(m.Name, m.Value)
	case "jump_to":
		r.JumpTo, err = stringValue(m.Name, m.Value)
	case "approval":
		r.Approval, err = decodeApprovalResult(m.Name, m.Value)
	case "": // no stage's result
	case stage.Result:
		r.Subject, err = m.Value, wantKind(m.Name, m.Value, '{')
	case stage.Respond:
		r.Respond, err = m.Value, wantKind(m.Name, m.Value, '{')
	default:
		return r.setCommonMember(stage, m)
	}
	return err
}

// setCommonMember reads what the results of all stages hold.
func (r *Result) setCommonMember(stage *StageInfo, m Member) (err error) {
	switch m.Name {
	case "warnings":
		r.Warnings, err = stringsValue(m.Name, m.Value, false)
	case "generation":
		err = unmarshalMember(m, &r.Generation)
	case "decided_by":
		r.DecidedBy, err = stringValue(m.Name, m.Value)
	case "degraded":
		err = unmarshalMember(m, &r.Degraded)
	case "trail":
		r.Trail, err = decodeTrail(m)
	}
	return err
}

func decodeVerb(stage *StageInfo, v jsontext.Value) (Action, error) {
	word, err := stringValue("action", v)
	if err != nil {
		return "", err
	}
	a, err := parseAction(word)
	if err == nil && !stage.Allows(a) {
		err = fmt.Errorf("action: %q is not allowed at %s", a, stage.Name)
	}
	return a, err
}

func (a *ApprovalResult) setMember(m Member) (err error) {
	switch m.Name {
	case "approved":
		a.Approved, err = boolValue(m.Name, m.Value)
	case "reason":
		a.Reason, err = stringValue(m.Name, m.Value)
	case "by":
		a.By, err = stringValue(m.Name, m.Value)
	case "digest":
		a.Digest, err = stringValue(m.Name, m.Value)
	}
	return err
}

func decodeApprovalResult(path string, v jsontext.Value) (*ApprovalResult, error) {
	members, err := objectValue(path, v)
	if err != nil {
		return nil, err
	}
	a := &ApprovalResult{}
	for _, m := range members {
		if err := a.setMember(m); err != nil {
			return nil, fmt.Errorf("%s.%w", path, err)
		}
	}
	return a, nil
}

func decodeTrail(m Member) ([]Step, error) {
	var list []struct {
		Step
		DurationUS int64 `json:"duration_us"`
	}
	if err := unmarshalMember(m, &list); err != nil {
		return nil, err
	}
	trail := make([]Step, len(list))
	for i, step := range list {
		trail[i] = step.Step
		trail[i].Duration = time.Duration(step.DurationUS) * time.Microsecond
		if a, err := parseAction(string(step.Action)); err == nil {
			trail[i].Action = a // deny_tool is a deny
		}
	}
	return trail, nil
}

func unmarshalMember(m Member, into any) error {
	if err := Unmarshal(m.Value, into); err != nil {
		return fmt.Errorf("%s: %w", m.Name, jsonError(err))
	}
	return nil
}
