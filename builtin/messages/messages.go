package messages

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/zap"

	"github.com/hookd/hookd/builtin/conversation"
	"github.com/hookd/hookd/builtin/text"
	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// Messages is an interceptor of requests to models that applies rules to their
// messages. It keeps no conversation. Make it with [New]; it needs no closing.
type Messages struct {
	rules   []*rule
	counter *conversation.Counter
}

// New makes Messages. The error is a *[builtin.ConfigError].
func New(config jsontext.Value, log *zap.Logger) (*Messages, error) {
	rules, err := readConfig(config)
	if err != nil {
		return nil, err
	}
	if len(rules) == 0 {
		log.Warn("the config of the hook has no rules: it changes nothing")
	}
	return &Messages{rules, conversation.NewCounter()}, nil
}

// Stages are where Messages are asked.
func (*Messages) Stages() []protocol.Stage { return []protocol.Stage{protocol.StageBeforeLLM} }

// Intercept applies the rules, one after the other.
func (m *Messages) Intercept(ctx context.Context, req *protocol.Request) (protocol.Decision, error) {
	if req.Stage.Name != protocol.StageBeforeLLM {
		return protocol.Decision{}, nil
	}
	old := req.Subject.Get("messages")
	list := conversation.Read(old)
	var did, warnings []string
	for _, r := range m.rules {
		var what, warning string
		var err error
		switch r.Action {
		case drop:
			list, what = r.drop(list)
		case limit:
			list, what, warning, err = m.limit(ctx, r, list)
		case reorder:
			list, what = systemFirst(list)
		case require:
			if !slices.ContainsFunc(list, func(msg conversation.Message) bool { return r.means(&msg) }) {
				return r.missing(), nil
			}
		}
		if err != nil {
			return protocol.Decision{}, err
		}
		if what != "" {
			did = append(did, what)
		}
		if warning != "" {
			warnings = append(warnings, warning)
		}
	}
	switch {
	case len(did) == 0:
		return protocol.Decision{Warnings: warnings}, nil
	case !slices.ContainsFunc(list, func(msg conversation.Message) bool { return !msg.System() }):
		return hook.Deny("the rules over messages would leave none: %s", strings.Join(did, ", ")), nil
	}
	d := text.Change(req.Stage, old, conversation.Value(list))
	d.Reason, d.Warnings = "messages: "+strings.Join(did, ", "), warnings
	return d, nil
}

func (r *rule) missing() protocol.Decision {
	if r.Reason != "" {
		return hook.Deny("%s", r.Reason)
	}
	return hook.Deny("no message is as rule %d over messages wants one", r.number)
}

// drop drops the messages that the rule means, with what can't do without them.
func (r *rule) drop(list []conversation.Message) (out []conversation.Message, what string) {
	for _, g := range conversation.Groups(list) {
		if group := list[g.From:g.To]; !slices.ContainsFunc(group, func(m conversation.Message) bool { return r.means(&m) }) {
			out = append(out, group...)
		}
	}
	if n := len(list) - len(out); n > 0 {
		what = fmt.Sprintf("%d dropped", n)
	}
	return out, what
}

// limit leaves out the oldest messages until the rest keeps the limits. System
// messages stay, and so do the last message and, when no other of the user's is
// left, the user's last.
func (m *Messages) limit(ctx context.Context, r *rule, list []conversation.Message) (out []conversation.Message, what, warning string, err error) {
	tokens := make([]int, len(list))
	count, sum := len(list), 0
	tooMany := r.Messages > 0 && count > r.Messages
	if r.Tokens > 0 {
		if long, err := m.counter.Exceeds(ctx, list, r.Tokens); err != nil {
			return nil, "", "", err
		} else if long {
			tooMany = true
			for i := range list {
				if tokens[i], err = m.counter.Message(ctx, &list[i]); err != nil {
					return nil, "", "", err
				}
				sum += tokens[i]
			}
		}
	}
	if !tooMany {
		return list, "", "", nil
	}
	over := func() bool { return r.Messages > 0 && count > r.Messages || r.Tokens > 0 && sum > r.Tokens }
	gone := make([]bool, len(list))
	groups := conversation.Groups(list)
	users := slices.DeleteFunc(slices.Clone(groups), func(g conversation.Group) bool { return !asks(list[g.From:g.To]) })
	for i, g := range groups {
		if !over() {
			break
		}
		lastUser := len(users) > 0 && g == users[len(users)-1]
		if i == len(groups)-1 || lastUser {
			continue
		}
		for j := g.From; j < g.To; j++ {
			if !list[j].System() {
				gone[j] = true
				count--
				sum -= tokens[j]
			}
		}
	}
	for i := range list {
		if !gone[i] {
			out = append(out, list[i])
		}
	}
	if n := len(list) - len(out); n > 0 {
		what = fmt.Sprintf("%d of the oldest left out", n)
	}
	if over() {
		warning = fmt.Sprintf("rule %d over messages could not be kept: what must stay is too much already", r.number)
	}
	return out, what, warning, nil
}

// asks reports whether a user says something in a group.
func asks(group []conversation.Message) bool {
	return slices.ContainsFunc(group, func(m conversation.Message) bool { return m.User() })
}

// systemFirst puts system messages before all others.
func systemFirst(list []conversation.Message) (out []conversation.Message, what string) {
	out = slices.Clone(list)
	rank := func(m conversation.Message) int {
		if m.System() {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(out, func(a, b conversation.Message) int { return rank(a) - rank(b) })
	if !slices.IsSortedFunc(list, func(a, b conversation.Message) int { return rank(a) - rank(b) }) {
		what = "system messages put first"
	}
	return out, what
}
