package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// scripted is a hook that answers by a script. A "process" among them behaves
// as the host of a child does: it keeps its timeout itself and reads its
// answers from the wire form; a "builtin" is plain Go.
type scripted struct {
	reg *hook.Registration

	mu      sync.Mutex
	script  map[protocol.Stage][]line
	observe line
	asks    []ask
	verbose bool // show all params, not only what is judged
	tell    tell
}

// tell writes a line into the trace; beside the call when the line has no
// fixed place in the order of the call.
type tell func(f *scripted, beside bool, format string, args ...any)

// ask is one time that the hook was asked.
type ask struct {
	stage   protocol.Stage
	subject protocol.Object
	renamed string // the tool that it put in place of the call's
}

// line is one scripted answer. Lines of a stage are used up in turn, the last
// one stays; a line with a condition is used only while the condition holds.
type line struct {
	when  string        // the subject's JSON must contain this
	after time.Duration // before it answers
	verb  string        // "fail", "error", "panic", "hang", "stuck" or "" = a JSON answer
	text  string
}

// parseLine reads `STAGE [if TEXT] [after D] ANSWER`.
func parseLine(text string) (protocol.Stage, line, error) {
	stage, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	var l line
	for {
		rest = strings.TrimSpace(rest)
		word, more, _ := strings.Cut(rest, " ")
		switch word {
		case "if":
			more = strings.TrimSpace(more)
			quoted, err := strconv.QuotedPrefix(more)
			if err != nil {
				return "", l, fmt.Errorf("if wants a quoted text: %s", text)
			}
			l.when, _ = strconv.Unquote(quoted)
			rest = more[len(quoted):]
		case "after":
			d, tail, _ := strings.Cut(strings.TrimSpace(more), " ")
			var err error
			if l.after, err = time.ParseDuration(d); err != nil {
				return "", l, err
			}
			rest = tail
		case "fail", "error", "panic", "hang", "stuck":
			l.verb, l.text = word, strings.TrimSpace(more)
			return protocol.Stage(stage), l, nil
		default:
			l.text = rest
			return protocol.Stage(stage), l, nil
		}
	}
}

// parseHooks reads a "hooks" section: a line per hook, its answers indented
// below it, and perhaps a line of rules.
func parseHooks(text string) (Rules, []*scripted, error) {
	rules := Rules{ChainTimeout: 30 * time.Second, ApproveUnasked: true}
	var list []*scripted
	for l := range strings.Lines(text) {
		l = strings.TrimRight(l, "\n")
		switch {
		case strings.TrimSpace(l) == "":
		case l[0] == ' ':
			if len(list) == 0 {
				return rules, nil, fmt.Errorf("an answer before the first hook: %s", l)
			}
			f := list[len(list)-1]
			stage, ln, err := parseLine(l)
			if err != nil {
				return rules, nil, err
			}
			if stage == "observe" {
				f.observe = ln
				continue
			}
			f.script[stage] = append(f.script[stage], ln)
		default:
			words := strings.Fields(l)
			if words[0] == "rules" {
				if err := parseRules(&rules, words[1:]); err != nil {
					return rules, nil, err
				}
				continue
			}
			f, err := newScripted(words[0], words[1:])
			if err != nil {
				return rules, nil, fmt.Errorf("%s: %w", l, err)
			}
			list = append(list, f)
		}
	}
	for _, f := range list {
		for _, s := range protocol.Stages() {
			if f.script[s.Name] != nil && !slices.Contains(f.reg.Stages, s.Name) {
				f.reg.Stages = append(f.reg.Stages, s.Name)
			}
		}
	}
	return rules, list, nil
}

func parseRules(r *Rules, words []string) (err error) {
	for _, w := range words {
		switch key, value, _ := strings.Cut(w, "="); key {
		case "disabled":
			r.Disabled = true
		case "chain_timeout":
			r.ChainTimeout, err = time.ParseDuration(value)
		case "no_approver":
			r.ApproveUnasked = value == "approve"
		default:
			err = fmt.Errorf("unknown rule %q", w)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func newScripted(name string, words []string) (*scripted, error) {
	f := &scripted{script: map[protocol.Stage][]line{}}
	f.reg = &hook.Registration{
		Name: name, Source: hook.Process, FailPolicy: hook.FailContinue, MaxRepeats: new(8),
		Roles:   hook.Roles{Value: f, Observer: f, Interceptor: f, Approver: f, Remote: true},
		Timeout: 5 * time.Second, ApprovalTimeout: 60 * time.Second, ObserverTimeout: 500 * time.Millisecond,
	}
	r := f.reg
	var tools, agents []string
	for _, w := range words {
		var err error
		key, value, _ := strings.Cut(w, "=")
		list := strings.Split(value, ",")
		switch {
		case key == "process":
		case key == "builtin":
			r.Source, r.Roles.Remote = hook.InProcess, false
		case key == "command":
			r.Source = hook.Command
		case key == "layer":
			var n int
			n, err = strconv.Atoi(value)
			r.Layer = hook.Layer(n)
		case key == "if":
			r.If = holdsText(value)
		case key == "quick":
			r.Roles.Quick = true
		case key == "required":
			r.Required = true
		case key == "recheck":
			r.Recheck = true
		case key == "verbose":
			f.verbose = true
		case key == "may_respond":
			r.MayRespond = true
		case key == "priority":
			r.Priority, err = strconv.Atoi(value)
		case key == "policy":
			r.FailPolicy = hook.FailPolicy(value)
		case key == "mode":
			r.Mode = hook.Mode(value)
		case key == "when":
			r.When = hook.When(value)
		case key == "timeout":
			r.Timeout, err = time.ParseDuration(value)
		case key == "approval_timeout":
			r.ApprovalTimeout, err = time.ParseDuration(value)
		case key == "observer_timeout":
			r.ObserverTimeout, err = time.ParseDuration(value)
		case key == "max_repeats" && value == "null":
			r.MaxRepeats = nil
		case key == "max_repeats":
			var n int
			n, err = strconv.Atoi(value)
			r.MaxRepeats = &n
		case key == "tools":
			tools = list
		case key == "agents":
			agents = list
		case key == "stages":
			for _, s := range list {
				r.Stages = append(r.Stages, protocol.Stage(s))
			}
		case key == "events":
			for _, e := range list {
				var sub protocol.Subscription
				if sub, err = protocol.ParseSubscription(e); err != nil {
					return nil, err
				}
				r.Events = append(r.Events, sub)
			}
		case strings.HasPrefix(key, "state."):
			if r.KeyStrategies == nil {
				r.KeyStrategies = map[string]protocol.KeyStrategy{}
			}
			r.KeyStrategies[key[len("state."):]], err = protocol.ParseKeyStrategy(value)
		default:
			err = fmt.Errorf("unknown word %q", w)
		}
		if err != nil {
			return nil, err
		}
	}
	var err error
	r.Match, err = hook.NewMatch(tools, agents)
	return f, err
}

// holdsText is a condition: the subject holds a text. "panic" can't be judged.
type holdsText string

func (h holdsText) Holds(req *protocol.Request) bool {
	if h == "panic" {
		panic("this condition is broken")
	}
	return strings.Contains(string(req.Subject.AppendJSON(nil)), string(h))
}

// next is the line for this turn.
func (f *scripted) next(req *protocol.Request) line {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asks = append(f.asks, ask{stage: req.Stage.Name, subject: req.Subject})
	lines := f.script[req.Stage.Name]
	for i, l := range lines {
		if l.when != "" && !strings.Contains(string(req.Subject.AppendJSON(nil)), l.when) {
			continue
		}
		if l.when == "" && i < len(lines)-1 {
			f.script[req.Stage.Name] = slices.Delete(lines, i, i+1)
		}
		return l
	}
	if req.Stage.Name == protocol.StageApproveTool {
		return line{text: `{"approved":true}`}
	}
	return line{text: `{"action":"continue"}`}
}

var errOwnTimeout = errors.New("the child's time is over")

// answer plays a line and returns its text.
func (f *scripted) answer(ctx context.Context, req *protocol.Request) (string, error) {
	shown := string(req.Subject.AppendJSON(nil))
	switch {
	case f.verbose:
		shown = string(req.AppendParams(nil, req.Timeout.Milliseconds()))
	case req.State != nil:
		shown += " state " + string(req.State.AppendJSON(nil))
	}
	async := f.reg.Mode == hook.Async
	l := f.next(req)
	f.tell(f, async, "%s is asked %s", f.reg.Name, shown)
	if l.verb == "panic" {
		f.tell(f, async, "%s panics: %s", f.reg.Name, l.text)
	}
	text, err := f.play(ctx, req, l)
	// Nobody waits any more for plain Go whose context has ended.
	late := async || ctx.Err() != nil && !f.reg.Roles.Remote && !f.reg.Roles.Quick
	switch {
	case err != nil && ctx.Err() != nil || errors.Is(err, errOwnTimeout): // whose clock ran out first is chance
		f.tell(f, late, "%s is cut short", f.reg.Name)
	case err != nil:
		f.tell(f, late, "%s fails: %v", f.reg.Name, err)
	default:
		f.tell(f, late, "%s says %s", f.reg.Name, text)
	}
	return text, err
}

func (f *scripted) play(ctx context.Context, req *protocol.Request, l line) (string, error) {
	if f.reg.Roles.Remote && req.Stage != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, req.Timeout, errOwnTimeout)
		defer cancel()
	}
	switch {
	case l.verb == "stuck":
		d, err := time.ParseDuration(l.text)
		if err != nil {
			return "", err
		}
		time.Sleep(d)
		return "{}", nil
	case l.verb == "hang":
		<-ctx.Done()
		return "", f.cutShort(ctx, req)
	case l.after > 0:
		select {
		case <-time.After(l.after):
		case <-ctx.Done():
			return "", f.cutShort(ctx, req)
		}
	}
	switch l.verb {
	case "fail":
		outcome, detail, _ := strings.Cut(l.text, " ")
		return "", &hook.Failure{Outcome: protocol.Outcome(outcome), Detail: detail}
	case "error":
		return "", errors.New(l.text)
	case "panic":
		panic(l.text)
	}
	return l.text, nil
}

// cutShort is what a hook returns whose context ended.
func (f *scripted) cutShort(ctx context.Context, req *protocol.Request) error {
	if !f.reg.Roles.Remote {
		return ctx.Err()
	}
	cause := context.Cause(ctx)
	if errors.Is(cause, errOwnTimeout) {
		return &hook.Failure{Outcome: protocol.OutcomeTimeout, Detail: fmt.Sprintf("no answer within %s", req.Timeout), Err: cause}
	}
	return cause
}

// Intercept implements [hook.Interceptor].
func (f *scripted) Intercept(ctx context.Context, req *protocol.Request) (protocol.Decision, error) {
	text, err := f.answer(ctx, req)
	if err != nil {
		return protocol.Decision{}, err
	}
	d, err := protocol.DecodeDecision(req.Stage, []byte(text))
	if err != nil {
		return protocol.Decision{}, &hook.Failure{Outcome: protocol.OutcomeBadAnswer, Detail: err.Error(), Err: err}
	}
	if call, err := protocol.ParseObject(d.Subject); err == nil && req.Stage.Tool() {
		f.mu.Lock()
		f.asks[len(f.asks)-1].renamed = (&protocol.Request{Subject: call}).Tool()
		f.mu.Unlock()
	}
	return d, nil
}

// Approve implements [hook.Approver].
func (f *scripted) Approve(ctx context.Context, req *protocol.Request) (protocol.Approval, error) {
	text, err := f.answer(ctx, req)
	if err != nil {
		return protocol.Approval{}, err
	}
	a, err := protocol.DecodeApproval([]byte(text))
	if err != nil {
		return protocol.Approval{}, &hook.Failure{Outcome: protocol.OutcomeBadAnswer, Detail: err.Error(), Err: err}
	}
	return a, nil
}

// Observe implements [hook.Observer].
func (f *scripted) Observe(ctx context.Context, ev *hook.Event) error {
	missed := ""
	if ev.Missed > 0 {
		missed = fmt.Sprintf(", %d missed", ev.Missed)
	}
	from := ev.Source
	if s := protocol.MetaString(ev.Meta, "session_id"); s != "" {
		from += " " + s
	}
	f.tell(f, true, "%s observes #%d%s: %s (%s) %s", f.reg.Name, ev.Seq, missed, ev.Kind, from, ev.Payload)
	_, err := f.play(ctx, &protocol.Request{Timeout: f.reg.ObserverTimeout}, f.observe)
	return err
}

func (f *scripted) asked() []ask {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.asks)
}
