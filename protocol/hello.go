package protocol

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Methods besides the stages and [MethodEvent].
const (
	MethodHello    = "hook.hello"
	MethodNative   = "hook.native" // an event of a coding agent, in its own words
	MethodCancel   = "$/cancelRequest"
	MethodProgress = "hook.progress"
)

// Software names a program in a greeting.
type Software struct {
	Name    string `json:"name"`
	Version string `json:"version,omitzero"`
}

// AgentHello is how an agent greets hookd.
type AgentHello struct {
	// Name is required; it is shown, matched by "agents" patterns, and no proof
	// of identity.
	Name    string   `json:"name"`
	Version int      `json:"version,omitzero"`
	Client  Software `json:"client,omitzero"`
	// SessionID is used where a request's meta names none.
	SessionID string `json:"session_id,omitzero"`
	// DeadlineMS and ApprovalDeadlineMS say how long this agent waits for a
	// decision and for an approval, in milliseconds; 0 = as long as it takes.
	DeadlineMS         int64 `json:"deadline_ms,omitzero"`
	ApprovalDeadlineMS int64 `json:"approval_deadline_ms,omitzero"`
	// Events says that the agent sends its own events, so none are derived.
	Events bool `json:"events,omitzero"`
}

// AgentWelcome is hookd's answer to an [AgentHello].
type AgentWelcome struct {
	OK         bool     `json:"ok"`
	Name       string   `json:"name"`
	Version    int      `json:"version"`
	Server     Software `json:"server"`
	Generation uint64   `json:"generation"`
	Limits     Limits   `json:"limits"`
}

// HookHello is how hookd greets a hook process.
type HookHello struct {
	// Name is the entry's key in the config.
	Name    string `json:"name"`
	Version int    `json:"version"`
	// Modes says the same as Stages in the words of an older protocol: observe,
	// llm, tool, approve.
	Modes      []string       `json:"modes"`
	Stages     []Stage        `json:"stages"`
	Events     []string       `json:"events"`
	Server     Software       `json:"server"`
	Generation uint64         `json:"generation"`
	Limits     Limits         `json:"limits"`
	Config     jsontext.Value `json:"config,omitzero"`
}

// HookWelcome is a hook's answer to a [HookHello]. The zero value is a yes to
// everything that was offered.
type HookWelcome struct {
	// Refused is set by "ok": false; Reason says why.
	Refused bool
	Reason  string
	// Name is shown and never compared.
	Name string
	// Stages is the part of the offer that the hook wants; nil = all.
	Stages []Stage
	// MaxInFlight is how many calls the hook works on at once; 0 = not said.
	MaxInFlight int
	// KeyStrategies says per key of state how values are merged.
	KeyStrategies map[string]KeyStrategy
}

// KeyStrategy says how the values that several hooks give one key of state
// become one. The zero value means [LastWins].
type KeyStrategy string

// The strategies.
const (
	LastWins  KeyStrategy = "last_wins"
	MergeList KeyStrategy = "merge_list" // concatenate
	MergeMap  KeyStrategy = "merge_map"  // deep
)

// ParseKeyStrategy reads a strategy's name.
func ParseKeyStrategy(word string) (KeyStrategy, error) {
	all := []string{string(LastWins), string(MergeList), string(MergeMap)}
	if !slices.Contains(all, word) {
		return "", fmt.Errorf("unknown strategy %q%s", clip(word), DidYouMean(word, all))
	}
	return KeyStrategy(word), nil
}

// DecodeAgentHello reads the params of an agent's greeting. Unknown members
// are ignored, so that newer agents can say more.
func DecodeAgentHello(params Object) (*AgentHello, *Error) {
	h := &AgentHello{Version: Version}
	for _, m := range params {
		if m.Value.Kind() == 'n' {
			continue
		}
		var err error
		switch m.Name {
		case "name":
			h.Name, err = stringValue(m.Name, m.Value)
		case "version":
			var v int64
			v, err = intValue(m.Name, m.Value)
			h.Version = int(v)
		case "client":
			err = unmarshalMember(m, &h.Client)
		case "session_id":
			h.SessionID, err = stringValue(m.Name, m.Value)
		case "deadline_ms":
			h.DeadlineMS, err = millisValue(m.Name, m.Value)
		case "approval_deadline_ms":
			h.ApprovalDeadlineMS, err = millisValue(m.Name, m.Value)
		case "events":
			h.Events, err = boolValue(m.Name, m.Value)
		}
		if err != nil {
			return nil, paramError(m.Name, err)
		}
	}
	switch {
	case h.Name == "":
		return nil, InvalidParams("name", "is missing")
	case h.Version != Version:
		e := Errorf(CodeVersionMismatch, "protocol version %d is not spoken here", h.Version)
		e.Data = jsontext.Value(fmt.Sprintf(`{"min":%d,"max":%d}`, Version, Version))
		return nil, e
	}
	return h, nil
}

// DecodeHookWelcome reads a hook's answer to the greeting. Any object and null
// are a yes; "ok": false is a refusal, and another version or a stage that was
// not offered is an error.
func DecodeHookWelcome(raw []byte, offer []Stage) (HookWelcome, error) {
	var w HookWelcome
	if isNull(raw) {
		return w, nil
	}
	obj, err := DecodeObject(raw, 0)
	if err != nil {
		return w, err
	}
	for _, m := range obj {
		if m.Value.Kind() == 'n' {
			continue
		}
		switch m.Name {
		case "ok":
			ok, err := boolValue(m.Name, m.Value)
			if err != nil {
				return w, err
			}
			w.Refused = !ok
		case "reason":
			if m.Value.Kind() == '"' {
				w.Reason = Unquote(m.Value)
			}
		case "name":
			if m.Value.Kind() == '"' {
				w.Name = Unquote(m.Value)
			}
		case "version":
			if v, err := intValue(m.Name, m.Value); err != nil || v != Version {
				return w, fmt.Errorf("version: the hook speaks %s, hookd speaks %d", clip(string(m.Value)), Version)
			}
		case "stages":
			names, err := stringsValue(m.Name, m.Value, false)
			if err != nil {
				return w, err
			}
			w.Stages = []Stage{}
			for _, n := range names {
				if !slices.Contains(offer, Stage(n)) {
					return w, fmt.Errorf("stages: %q was not offered", clip(n))
				}
				w.Stages = append(w.Stages, Stage(n))
			}
		case "max_in_flight":
			n, err := intValue(m.Name, m.Value)
			if err != nil || n < 1 || n > 1024 {
				return w, fmt.Errorf("max_in_flight: expected an integer from 1 to 1024, got %s", clip(string(m.Value)))
			}
			w.MaxInFlight = int(n)
		case "key_strategies":
			obj, err := objectValue(m.Name, m.Value)
			if err != nil {
				return w, err
			}
			w.KeyStrategies = make(map[string]KeyStrategy, len(obj))
			for _, k := range obj {
				word, err := stringValue("key_strategies."+k.Name, k.Value)
				if err != nil {
					return w, err
				}
				if w.KeyStrategies[k.Name], err = ParseKeyStrategy(word); err != nil {
					return w, fmt.Errorf("key_strategies.%s: %w", k.Name, err)
				}
			}
		}
	}
	return w, nil
}

// Modes returns the older protocol's words for stages and events.
func Modes(stages []Stage, observes bool) []string {
	has := func(want ...Stage) bool {
		return slices.ContainsFunc(want, func(s Stage) bool { return slices.Contains(stages, s) })
	}
	modes := []string{}
	if observes {
		modes = append(modes, "observe")
	}
	if has(StageBeforeLLM, StageAfterLLM) {
		modes = append(modes, "llm")
	}
	if has(StageBeforeTool, StageAfterTool) {
		modes = append(modes, "tool")
	}
	if has(StageApproveTool) {
		modes = append(modes, "approve")
	}
	return modes
}
