package policy

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/builtin"
	"github.com/hookd/hookd/condition"
	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// Policy is an interceptor of tool calls that looks them up in a table. It
// keeps nothing between calls. Make it with [New]; it needs no closing.
type Policy struct {
	rules []*rule
	other *rule // the default
}

// New makes a Policy. The error is a *[builtin.ConfigError].
func New(raw jsontext.Value) (*Policy, error) {
	c := config{}
	if err := builtin.ReadConfig(raw, &c); err != nil {
		return nil, err
	}
	if c.Default == "" {
		c.Default = approve
	}
	if err := oneOf("/default", "action", c.Default, actions()); err != nil {
		return nil, err
	}
	p := &Policy{other: &rule{action: c.Default}}
	for i := range c.Rules {
		r, err := newRule(&c.Rules[i], i)
		if err != nil {
			return nil, err
		}
		p.rules = append(p.rules, r)
	}
	return p, nil
}

// Stages are where a Policy is asked.
func (*Policy) Stages() []protocol.Stage { return []protocol.Stage{protocol.StageBeforeTool} }

// Quick marks that a Policy waits for nothing; conditions bound their own time.
func (*Policy) Quick() {}

// Intercept decides by the first rule that is about the call, else by the
// default.
func (p *Policy) Intercept(_ context.Context, req *protocol.Request) (protocol.Decision, error) {
	if req.Stage.Name != protocol.StageBeforeTool {
		return protocol.Decision{}, nil
	}
	tool := req.Tool()
	args, err := protocol.ParseObject(req.Subject.Get("arguments"))
	if err != nil {
		return protocol.Decision{}, fmt.Errorf("read the arguments of %s: %w", tool, err)
	}
	kind := protocol.ReadToolFacts(tool, args).Kind
	for _, r := range p.rules {
		if r.about(req, tool, kind) {
			return r.decision(tool), nil
		}
	}
	return p.other.decision(tool), nil
}

// rule is one row that was read.
type rule struct {
	number   int // 0 is the default
	hasTools bool
	// meant takes tools under all their names, written only under the names that
	// stand in the config; words are those names that are no patterns.
	meant, written hook.Match
	words          []string
	kinds          []protocol.ToolKind
	when           *condition.Condition
	action         string
	reason, risk   string
	skipPrompt     bool
}

// about reports whether the rule is about a call. What is not certain makes a
// rule count that holds calls back, and not one that lets them go.
func (r *rule) about(req *protocol.Request, tool string, kind protocol.ToolKind) bool {
	if r.hasTools && !r.names(tool, kind) {
		return false
	}
	if len(r.kinds) > 0 && !slices.Contains(r.kinds, kind) {
		// By its name the tool may be of another kind than by its arguments.
		if r.action == auto || !slices.Contains(r.kinds, protocol.ToolKindOf(tool)) {
			return false
		}
	}
	if r.when == nil {
		return true
	}
	if !r.when.Holds(req) {
		return false
	}
	return r.action != auto || r.when.Explain(req).Err == nil
}

// names reports whether the rule's list of tools has this one. A tool of many
// uses, such as an editor that can also write, is among the aliases of each of
// them: auto takes it only for the use that this call makes of it.
func (r *rule) names(tool string, kind protocol.ToolKind) bool {
	if r.action != auto || !r.meant.Matches(tool, true, "") {
		return r.meant.Matches(tool, true, "")
	}
	if r.written.Matches("", false, tool) {
		return true
	}
	return slices.ContainsFunc(r.words, func(word string) bool {
		return protocol.SameTool(word, tool) && protocol.ToolKindOf(word) == kind
	})
}

// decision says what becomes of a call that the rule is about.
func (r *rule) decision(tool string) protocol.Decision {
	switch r.action {
	case auto:
		if r.skipPrompt {
			return protocol.Decision{Action: protocol.ActionAllow, Reason: r.reason}
		}
		return protocol.Decision{}
	case deny:
		return protocol.Decision{Action: protocol.ActionDeny, Reason: r.why("%s is not allowed", tool)}
	}
	d := protocol.Decision{Action: protocol.ActionAsk, Reason: r.why("%s needs approval", tool), Permission: r.risk}
	if d.Permission == "" {
		d.Permission = tool
	}
	return d
}

// why returns the rule's reason, else one that names the rule, with the risk.
func (r *rule) why(format, tool string) string {
	text := r.reason
	if text == "" {
		text = fmt.Sprintf(format, tool)
		if r.number > 0 {
			text += fmt.Sprintf(" (rule %d of the policy)", r.number)
		} else {
			text += " (default of the policy)"
		}
	}
	if r.risk != "" {
		text += " (risk: " + r.risk + ")"
	}
	return text
}
