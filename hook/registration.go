package hook

import (
	"fmt"
	"slices"
	"time"

	"github.com/hookd/hookd/protocol"
)

// Source says where a hook runs. In-process hooks are asked before processes.
type Source string

// The sources.
const (
	InProcess Source = "builtin"
	Process   Source = "process"
	// Command is a program that is started for every call.
	Command Source = "command"
)

// Layer says who has put a hook there. Among hooks that are no built-ins the
// lower layer is asked first, whatever the priorities. The zero value is the
// config file's.
type Layer int

// The layers.
const (
	LayerOrganisation Layer = -1 // nobody below can turn it off
	LayerConfig       Layer = 0
	LayerUser         Layer = 1
	LayerProject      Layer = 2
)

// String returns the layer's name.
func (l Layer) String() string {
	switch l {
	case LayerOrganisation:
		return "organisation"
	case LayerConfig:
		return "config"
	case LayerUser:
		return "user"
	case LayerProject:
		return "project"
	}
	return fmt.Sprintf("layer %d", int(l))
}

// Condition narrows, beyond [Match], which calls a hook is asked about.
type Condition interface {
	// Holds reports whether a call is meant, as it stands at the hook's turn. It
	// is called concurrently, maybe several times per call, and waits for
	// nothing. What it can't judge, it must report as true.
	Holds(req *protocol.Request) bool
}

// Excluder is a [Condition] that can tell of most calls that it does not hold,
// without any work. Such calls are answered as if the hook were not there.
type Excluder interface {
	Excludes(req *protocol.Request) bool
}

// FailPolicy says what a missing answer means. The zero value means the
// default of the config.
type FailPolicy string

// The policies.
const (
	FailContinue FailPolicy = "continue"
	FailDeny     FailPolicy = "deny"
)

// Mode says what a hook's verdict is worth. The zero value means [Enforce].
type Mode string

// The modes.
const (
	Enforce Mode = "enforce"
	Warn    Mode = "warn"   // deny, ask and abort become warnings; modify applies; failures continue
	Shadow  Mode = "shadow" // asked and recorded, never applied
	Async   Mode = "async"  // not waited for; the answer is ignored and counted
)

// When says for which calls an approver is asked. The zero value means
// [Always].
type When string

// The values of when.
const (
	Always  When = "always"
	IfAsked When = "asked" // only when an interceptor answered "ask"
)

// Registration is a mounted hook with the rules of its entry. A generation
// holds many; none of them changes after it was made.
type Registration struct {
	// Name is unique among all hooks.
	Name   string
	Source Source
	Layer  Layer
	// Priority: lower is asked first.
	Priority int
	// Roles are what the hook does; see [RolesOf].
	Roles Roles
	// Stages are where it is asked, as interceptor and approver.
	Stages []protocol.Stage
	// Events are what it observes.
	Events []protocol.Subscription
	Match  Match
	// If narrows Match further; nil = no condition.
	If Condition
	// FailPolicy is never empty here.
	FailPolicy FailPolicy
	// Required: hookd is not ready before the hook has greeted, and its
	// failures deny.
	Required bool
	// Recheck asks the hook once more when the subject changed after its turn,
	// also when its policy is not deny.
	Recheck    bool
	Mode       Mode
	When       When
	MayRespond bool
	// MaxRepeats limits, per session, how often inject has an effect; nil =
	// unlimited.
	MaxRepeats *int
	// KeyStrategies says per key of state how values are merged.
	KeyStrategies map[string]protocol.KeyStrategy
	// Timeout, ApprovalTimeout and ObserverTimeout are never zero here.
	Timeout         time.Duration
	ApprovalTimeout time.Duration
	ObserverTimeout time.Duration
}

// Handles reports whether the hook is asked at this stage.
func (r *Registration) Handles(stage protocol.Stage) bool { return slices.Contains(r.Stages, stage) }

// Observes reports whether the hook wants events of this kind.
func (r *Registration) Observes(kind protocol.EventKind) bool {
	return slices.ContainsFunc(r.Events, func(s protocol.Subscription) bool { return s.Matches(kind) })
}

// Denies reports whether a missing answer of this hook denies.
func (r *Registration) Denies() bool { return r.Required || r.FailPolicy == FailDeny }

// StageTimeout is how long the hook may take at this stage.
func (r *Registration) StageTimeout(stage protocol.Stage) time.Duration {
	if stage == protocol.StageApproveTool {
		return r.ApprovalTimeout
	}
	return r.Timeout
}

// Check reports what in the registration can't work. It is the last guard
// before a hook is mounted; a config has been checked before.
func (r *Registration) Check() error {
	switch {
	case r.Name == "":
		return fmt.Errorf("a hook needs a name")
	case r.FailPolicy != FailContinue && r.FailPolicy != FailDeny:
		return fmt.Errorf("fail policy %q is neither continue nor deny", r.FailPolicy)
	case !slices.Contains([]Mode{"", Enforce, Warn, Shadow, Async}, r.Mode):
		return fmt.Errorf("mode %q is none of enforce, warn, shadow, async", r.Mode)
	case !slices.Contains([]When{"", Always, IfAsked}, r.When):
		return fmt.Errorf("when %q is neither always nor asked", r.When)
	case r.Required && (r.Mode == Warn || r.Mode == Shadow || r.Mode == Async):
		return fmt.Errorf("a required hook can't run in mode %s", r.Mode)
	case r.Timeout <= 0 || r.ApprovalTimeout <= 0 || r.ObserverTimeout <= 0:
		return fmt.Errorf("timeouts must be positive")
	}
	intercepts := false
	for _, s := range r.Stages {
		if !slices.Contains(protocol.StageNames(), string(s)) {
			return fmt.Errorf("unknown stage %q%s", s, protocol.DidYouMean(string(s), protocol.StageNames()))
		}
		if s == protocol.StageApproveTool {
			if r.Roles.Approver == nil {
				return fmt.Errorf("it is no approver, but %s is asked for", s)
			}
			continue
		}
		intercepts = true
		if r.Roles.Stages != nil && !slices.Contains(r.Roles.Stages, s) {
			return fmt.Errorf("it does not handle %s", s)
		}
	}
	switch {
	case intercepts && r.Roles.Interceptor == nil:
		return fmt.Errorf("it is no interceptor, but interceptor stages are asked for")
	case len(r.Events) > 0 && r.Roles.Observer == nil:
		return fmt.Errorf("it is no observer, but events are asked for")
	case len(r.Stages) == 0 && len(r.Events) == 0:
		return fmt.Errorf("it has neither a stage nor an event to handle")
	}
	return nil
}
