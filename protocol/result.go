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
	Action   Action        `json:"action"`
	Duration time.Duration `json:"duration_us,format:micro"`
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
// that a newer daemon may have added are ignored; the verb is not: one that is
// missing, unknown or not allowed here is an error, which an agent reads as
// "not allowed".
func DecodeResult(stage *StageInfo, raw []byte) (*Result, error) {
	obj, err := DecodeObject(raw, 0)
	if err != nil {
		return nil, err
	}
	r := &Result{}
	if stage.Name == StageApproveTool {
		r.Approval = &ApprovalResult{}
	}
	seen := false
	for _, m := range obj {
		switch {
		case m.Name == "action" && r.Approval == nil:
			seen = true
			if r.Action, err = decodeVerb(stage, m.Value); err != nil {
				return nil, err
			}
		case m.Name == "approved" && r.Approval != nil:
			seen = true
			r.Approval.Approved, err = boolValue(m.Name, m.Value)
		case stage.Result != "" && m.Name == stage.Result:
			r.Subject, err = m.Value, wantKind(m.Name, m.Value, '{')
		case stage.Respond != "" && m.Name == stage.Respond:
			r.Respond, err = m.Value, wantKind(m.Name, m.Value, '{')
		default:
			err = r.setMember(m)
		}
		if err != nil {
			return nil, err
		}
	}
	if !seen {
		return nil, errors.New("the answer holds no verdict")
	}
	if r.Action == ActionRespond && r.Respond == nil {
		return nil, errors.New("respond without " + stage.Respond)
	}
	return r, nil
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

func (r *Result) setMember(m Member) (err error) {
	into := func(v any) error {
		if err := Unmarshal(m.Value, v); err != nil {
			return fmt.Errorf("%s: %w", m.Name, jsonError(err))
		}
		return nil
	}
	text := func(dst *string) (err error) {
		*dst, err = stringValue(m.Name, m.Value)
		return err
	}
	switch m.Name {
	case "reason":
		if r.Approval != nil {
			return text(&r.Approval.Reason)
		}
		return text(&r.Reason)
	case "by":
		if r.Approval != nil {
			return text(&r.Approval.By)
		}
	case "digest":
		if r.Approval != nil {
			return text(&r.Approval.Digest)
		}
	case "permission":
		return text(&r.Permission)
	case "inject":
		r.Inject, err = Messages(m.Name, m.Value)
	case "add_context":
		r.AddContext, err = stringsValue(m.Name, m.Value, true)
	case "warnings":
		r.Warnings, err = stringsValue(m.Name, m.Value, false)
	case "state":
		r.State, err = objectValue(m.Name, m.Value)
	case "jump_to":
		return text(&r.JumpTo)
	case "approval":
		return into(&r.Approval)
	case "generation":
		return into(&r.Generation)
	case "decided_by":
		return text(&r.DecidedBy)
	case "degraded":
		return into(&r.Degraded)
	case "trail":
		return into(&r.Trail)
	}
	return err
}
