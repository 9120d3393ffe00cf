package protocol

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Request is what a stage is asked with. Values stand as they stood on the
// wire and must not be changed in place.
type Request struct {
	Stage *StageInfo
	// CallID joins the stages of one tool or model call; may be empty.
	CallID string
	Meta   Object
	// Context is a free object of the agent's; hooks can't change it.
	Context jsontext.Value
	// State holds what earlier hooks of the call have left.
	State Object
	// Subject holds the params that hooks judge and may change; Fixed those
	// that they only see.
	Subject Object
	Fixed   Object
	// Extra holds params that hookd does not know, kept and passed on.
	Extra Object
	// DryRun asks to judge without side effects.
	DryRun bool
	// Timeout is how long one hook may take for its answer. hookd sets it per
	// hook; it is not on the wire.
	Timeout time.Duration
	// DeadlineMS is how long the asker waits, in milliseconds; 0 = not said.
	DeadlineMS int64

	// Approve asks hookd to run the approvers too (before_tool).
	Approve bool
	// Asked says whether an interceptor asked for approval (approve_tool); nil
	// when the agent does not say.
	Asked *bool
	// Trail asks for the trail in the answer.
	Trail bool

	// Size is the length of the message that the values share memory with, in
	// bytes; 0 = not known. It is not on the wire.
	Size int
}

// DecodeRequest reads the params of a stage. Types are checked, unknown params
// kept. The error names the field in its data.path.
func DecodeRequest(stage *StageInfo, params Object) (*Request, *Error) {
	r := &Request{Stage: stage, Subject: make(Object, 0, len(stage.Subject))}
	for _, m := range params {
		if err := r.setParam(m); err != nil {
			return nil, paramError(m.Name, err)
		}
	}
	for _, name := range stage.Required {
		if r.Subject.Get(name) == nil {
			return nil, InvalidParams(name, "is missing")
		}
	}
	return r, nil
}

func (r *Request) setParam(m Member) (err error) {
	switch {
	case slices.Contains(r.Stage.Subject, m.Name):
		if m.Value.Kind() == 'n' && !slices.Contains(r.Stage.Required, m.Name) {
			return nil // null: as if it were not there
		}
		r.Subject = append(r.Subject, m)
		if err = checkParam("", m); err == nil && r.Stage.Wrapped() {
			err = checkContent(m.Name, m.Value)
		}
		return err
	case slices.Contains(r.Stage.Fixed, m.Name):
		r.Fixed = append(r.Fixed, m)
		if m.Value.Kind() == 'n' {
			return nil
		}
		return checkParam("", m)
	}
	switch {
	case !isCommonParam(m.Name) && !isAskParam(m.Name):
		// Some readers do not tell upper from lower case. A hook of that kind
		// would judge another value than the agent runs.
		if known := r.Stage.foldsTo(m.Name); known != "" {
			return fmt.Errorf("%s: is %q in other letters", clip(m.Name), known)
		}
		r.Extra = append(r.Extra, m)
		return nil
	case m.Value.Kind() == 'n':
		return nil
	}
	switch m.Name {
	case "meta":
		r.Meta, err = decodeMeta(m.Value)
	case "context":
		r.Context, err = m.Value, wantKind(m.Name, m.Value, '{')
	case "state":
		r.State, err = objectValue(m.Name, m.Value)
	case "call_id":
		r.CallID, err = stringValue(m.Name, m.Value)
	case "dry_run":
		r.DryRun, err = boolValue(m.Name, m.Value)
	case "deadline_ms":
		r.DeadlineMS, err = millisValue(m.Name, m.Value)
		if err == nil && r.DeadlineMS == 0 {
			err = errors.New("deadline_ms: must be positive")
		}
	case "approve":
		r.Approve, err = boolValue(m.Name, m.Value)
	case "asked":
		var asked bool
		asked, err = boolValue(m.Name, m.Value)
		r.Asked = &asked
	case "trail":
		r.Trail, err = boolValue(m.Name, m.Value)
	}
	return err
}

// isCommonParam reports whether every stage has the param beside its subject.
func isCommonParam(name string) bool {
	switch name {
	case "meta", "context", "call_id", "state", "deadline_ms", "dry_run":
		return true
	}
	return false
}

// isAskParam reports whether the param is read by hookd and not passed on.
func isAskParam(name string) bool { return name == "approve" || name == "asked" || name == "trail" }

// isMetaText reports whether a member of meta is a text that hookd knows.
func isMetaText(name string) bool {
	switch name {
	case "agent_id", "session_id", "turn_id", "parent_turn_id", "task_id", "user_id", "node_id", "agent", "model", "cwd", "trace_id":
		return true
	}
	return false
}

func decodeMeta(v jsontext.Value) (Object, error) {
	meta, err := objectValue("meta", v)
	if err != nil {
		return nil, err
	}
	for _, m := range meta {
		if known := strings.ToLower(m.Name); known != m.Name && isMetaText(known) && meta.Get(known) != nil {
			return nil, fmt.Errorf("meta.%s: is %q in other letters", clip(m.Name), known)
		}
		if m.Value.Kind() == 'n' {
			continue
		}
		switch {
		case m.Name == "iteration":
			if _, err := intValue("meta.iteration", m.Value); err != nil {
				return nil, err
			}
		case isMetaText(m.Name):
			if err := wantKind("meta."+m.Name, m.Value, '"'); err != nil {
				return nil, err
			}
		}
	}
	return meta, nil
}

// MetaString returns a text member of meta, or "".
func (r *Request) MetaString(name string) string { return MetaString(r.Meta, name) }

// MetaString returns a text member of meta, or "".
func MetaString(meta Object, name string) string {
	if v := meta.Get(name); v != nil && v.Kind() == '"' {
		return Unquote(v)
	}
	return ""
}

// Tool returns the tool's name at the tool stages, else "".
func (r *Request) Tool() string {
	v := r.Subject.Get("tool")
	if v == nil {
		v = r.Fixed.Get("tool")
	}
	if v == nil || v.Kind() != '"' {
		return ""
	}
	return Unquote(v)
}

// Digest identifies a tool call: SHA-256, in hex, over the tool's name, a zero
// byte and the arguments without insignificant white space. An approval holds
// for one digest only. It is "" where the subject is not a tool call.
func (r *Request) Digest() string {
	args := r.Subject.Get("arguments")
	if args == nil {
		args = r.Fixed.Get("arguments")
	}
	if args == nil {
		return ""
	}
	h := sha256.New()
	h.Write([]byte(r.Tool()))
	h.Write([]byte{0})
	h.Write(Compact(args))
	return hex.EncodeToString(h.Sum(nil))
}

// AppendParams appends the params with which a hook is asked. deadlineMS is
// the time that is left for its answer.
func (r *Request) AppendParams(b []byte, deadlineMS int64) []byte {
	b = append(b, '{')
	start := len(b)
	sep := func() {
		if len(b) > start {
			b = append(b, ',')
		}
	}
	members := func(o Object) {
		for _, m := range o {
			sep()
			b = AppendString(b, m.Name)
			b = append(b, ':')
			b = append(b, m.Value...)
		}
	}
	if r.Meta != nil {
		sep()
		b = append(b, `"meta":`...)
		b = r.Meta.AppendJSON(b)
	}
	if r.Context != nil {
		sep()
		b = append(b, `"context":`...)
		b = append(b, r.Context...)
	}
	if r.CallID != "" {
		sep()
		b = append(b, `"call_id":`...)
		b = AppendString(b, r.CallID)
	}
	if r.State != nil {
		sep()
		b = append(b, `"state":`...)
		b = r.State.AppendJSON(b)
	}
	members(r.Subject)
	members(r.Fixed)
	members(r.Extra)
	if deadlineMS > 0 {
		sep()
		b = append(b, `"deadline_ms":`...)
		b = strconv.AppendInt(b, deadlineMS, 10)
	}
	if r.DryRun {
		sep()
		b = append(b, `"dry_run":true`...)
	}
	return append(b, '}')
}

// foldsTo returns the param of the stage that differs from name in case only,
// or "".
func (s *StageInfo) foldsTo(name string) string {
	lower := strings.ToLower(name)
	if lower != name && (isCommonParam(lower) || isAskParam(lower)) {
		return lower
	}
	for _, list := range [][]string{s.Subject, s.Fixed} {
		for _, known := range list {
			if strings.EqualFold(known, name) {
				return known
			}
		}
	}
	return ""
}

// Apply merges a decision's change into the subject and returns the new one
// with the names of the members whose meaning changed. The receiver's subject
// is left as it is.
func (s *StageInfo) Apply(subject Object, change jsontext.Value) (Object, []string, error) {
	members, err := ParseObject(change)
	if err != nil {
		return nil, nil, err
	}
	if !s.Wrapped() {
		merged, changed := merge(subject, s.changes(members))
		return merged, changed, nil
	}
	inner, err := ParseObject(subject.Get(s.Result))
	if err != nil {
		return nil, nil, err
	}
	merged, changed := merge(inner, members)
	if len(changed) == 0 {
		return subject, nil, nil
	}
	return subject.With(s.Result, merged.AppendJSON(nil)), changed, nil
}

// merge lays the members of change over base. Members whose meaning does not
// change keep their bytes.
func merge(base, change Object) (Object, []string) {
	var changed []string
	out := base.Merged(change, func(name string, old, value jsontext.Value) jsontext.Value {
		if SameValue(old, value) {
			return old
		}
		changed = append(changed, name)
		return value
	})
	if len(changed) == 0 {
		return base, nil
	}
	return out, changed
}

// SubjectValue returns the subject as the value of the stage's result member:
// the wrapped object itself, or an object of the params.
func (s *StageInfo) SubjectValue(subject Object) jsontext.Value {
	if s.Wrapped() {
		return subject.Get(s.Result)
	}
	return subject.AppendJSON(nil)
}
