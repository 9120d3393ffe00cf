// Package invariant holds what is true of hookd whatever goes wrong around it,
// as checks that tests of faults and the soak share:
//
//	I1  each request gets one answer in its time, or its connection is closed ([Ledger])
//	I2  nothing is allowed without a readable answer of every hook whose policy is deny,
//	    and what was passed over is named ([Answer])
//	I3  each hook that matched has one outcome of the closed list ([Answer])
//	I5  goroutines, descriptors, children, zombies and memory come back ([Usage])
//	I6  who is well does not notice ([Latencies])
//	I7  no secret is told ([Secrets])
//	I8  status names the fault, and is well when it is over ([Unwell])
//
// I4 is about the durable record, which checks itself.
package invariant

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/hookd/hookd/protocol"
)

// Hook is one that a call matches.
type Hook struct {
	Name string
	// Denies: without its answer the call must not go on.
	Denies bool
}

// Verdict is what an agent reads in the answer to a stage.
type Verdict struct {
	Action     string              `json:"action"`
	Reason     string              `json:"reason"`
	DecidedBy  string              `json:"decided_by"`
	Generation int                 `json:"generation"`
	Warnings   []string            `json:"warnings"`
	Degraded   []protocol.Degraded `json:"degraded"`
	Trail      []Step              `json:"trail"`
	// Approved stands in the answer to approve_tool only.
	Approved *bool `json:"approved"`
}

// Step is one hook's turn.
type Step struct {
	Hook    string           `json:"hook"`
	Outcome protocol.Outcome `json:"outcome"`
	Detail  string           `json:"detail"`
	Recheck bool             `json:"recheck"`
}

// Stops reports whether the agent must not go on.
func (v *Verdict) Stops() bool {
	if v.Approved != nil {
		return !*v.Approved
	}
	switch v.Action {
	case "deny", "deny_tool", "abort_turn", "hard_abort":
		return true
	}
	return false
}

// Outcome returns what became of a hook's turn; "" when it had none.
func (v *Verdict) Outcome(hook string) protocol.Outcome {
	for _, s := range v.Trail {
		if s.Hook == hook {
			return s.Outcome
		}
	}
	return ""
}

// Answer reads the result of a stage that was asked for with its trail, and
// checks I2 and I3 for the hooks that matched, in their order. The error names
// everything that is wrong.
func Answer(result []byte, matched []Hook) (*Verdict, error) {
	v := &Verdict{}
	if err := json.Unmarshal(result, v); err != nil {
		return nil, fmt.Errorf("an answer that can't be read: %w: %s", err, result)
	}
	errs := []error{v.whole(matched)}
	if v.Generation <= 0 {
		errs = append(errs, errors.New("no generation"))
	}
	if !v.Stops() {
		for _, h := range matched {
			errs = append(errs, v.allowed(h))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return v, fmt.Errorf("%w\n%s", err, result)
	}
	return v, nil
}

// whole is I3.
func (v *Verdict) whole(matched []Hook) error {
	var errs []error
	var asked, want []string
	for _, h := range matched {
		want = append(want, h.Name)
	}
	for _, s := range v.Trail {
		if !s.Recheck {
			asked = append(asked, s.Hook)
		}
		if !slices.Contains(protocol.Outcomes(), s.Outcome) {
			errs = append(errs, fmt.Errorf("I3: %s has the unknown outcome %q", s.Hook, s.Outcome))
		}
		if s.Outcome == protocol.OutcomeNotRun && !v.Stops() {
			errs = append(errs, fmt.Errorf("I3: %s was not run, and the call goes on", s.Hook))
		}
	}
	if !slices.Equal(asked, want) {
		errs = append(errs, fmt.Errorf("I3: the hooks %q matched, and %q have an outcome", want, asked))
	}
	return errors.Join(errs...)
}

// allowed is I2, of one hook in a call that goes on.
func (v *Verdict) allowed(h Hook) error {
	o := v.Outcome(h.Name)
	switch {
	case o.AlwaysDenies():
		return fmt.Errorf("I2: %s: %s, and the call goes on", h.Name, o)
	case o.NoAnswer() && h.Denies:
		return fmt.Errorf("I2: %s has the policy deny and %s, and the call goes on", h.Name, o)
	case o.NoAnswer() && !slices.ContainsFunc(v.Degraded, func(d protocol.Degraded) bool { return d.Hook == h.Name && d.Outcome == o }):
		return fmt.Errorf("I2: %s: %s, and it is not named in degraded", h.Name, o)
	}
	return nil
}
