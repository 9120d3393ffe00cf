package approval

import (
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/zap"
)

// Scope says how far an answer reaches.
type Scope string

// The scopes. Whatever the scope, an answer never reaches another digest.
const (
	// Once is for the one call that was asked about.
	Once Scope = ""
	// ForSession makes a rule that ends with the session.
	ForSession Scope = "session"
	// Always makes a rule that ends when it is revoked.
	Always Scope = "always"
)

const (
	// maxRules is how many rules may hold at once.
	maxRules = 1024
	// ruleArguments is how large the arguments may be that a rule still shows,
	// in bytes. What counts is the digest.
	ruleArguments = 64 << 10
	// sessionRuleIdle ends a rule for a session whose end nobody has told.
	sessionRuleIdle = 12 * time.Hour
)

// Rule is an answer that a person has given for calls to come. It holds for one
// digest, from one agent of one user, in one folder.
type Rule struct {
	// Number names the rule. No other rule ever has it.
	Number  int
	Approve bool
	// Scope is [ForSession] or [Always].
	Scope        Scope
	Digest, Tool string
	// Arguments are for people; nil when they are too large to be kept.
	Arguments jsontext.Value
	// What a call must come from. Session counts with [ForSession] only.
	Agent   string
	UID     int
	CWD     string
	Session string
	// Reason is what the person said.
	Reason string
	By     Ruler
	Made   time.Time
	// Used counts the calls that it has answered since hookd started; LastUsed
	// is the newest's time.
	Used     int
	LastUsed time.Time
}

// Source is how an answer by the rule is signed: "rule 3 (made by uid 0 at
// 2026-01-02T15:04:05Z)".
func (r *Rule) Source() string {
	return fmt.Sprintf("rule %d (made by %s at %s)", r.Number, r.By, r.Made.UTC().Format(time.RFC3339))
}

// ruleOf makes the rule of an answer, without its number.
func ruleOf(t *Ticket, a *Answer, now time.Time) Rule {
	r := Rule{
		Approve: a.Approve, Scope: a.Scope, Digest: t.Digest, Tool: t.Tool, Agent: t.Agent, UID: t.UID, CWD: t.CWD,
		Reason: a.Reason, By: a.By, Made: now,
	}
	if a.Scope == ForSession {
		r.Session = t.Session
	}
	if len(t.Arguments) <= ruleArguments {
		r.Arguments = slices.Clone(t.Arguments)
	}
	return r
}

func (r *Rule) meets(t *Ticket) bool {
	return r.Digest == t.Digest && r.Agent == t.Agent && r.UID == t.UID && r.CWD == t.CWD &&
		(r.Scope != ForSession || r.Session == t.Session)
}

func (r *Rule) idle(now time.Time) bool {
	last := r.Made
	if r.LastUsed.After(last) {
		last = r.LastUsed
	}
	return r.Scope == ForSession && now.Sub(last) > sessionRuleIdle
}

// ruleFor finds the rule that answers a call: of several, a no. It is called
// with the lock held.
func (d *Desk) ruleFor(t *Ticket, now time.Time) *Rule {
	var found *Rule
	for _, r := range d.rules {
		if r.meets(t) && !r.idle(now) && (found == nil || !r.Approve) {
			found = r
		}
	}
	return found
}

// byRule answers a call by a rule, if there is one.
func (d *Desk) byRule(t *Ticket) (Resolution, bool) {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.ruleFor(t, now)
	if r == nil {
		return Resolution{}, false
	}
	return d.use(r, now), true
}

// use notes that a rule answers a call. It is called with the lock held.
func (d *Desk) use(r *Rule, now time.Time) Resolution {
	r.Used++
	r.LastUsed = now
	d.stats.ByRule++
	return Resolution{Approved: r.Approve, How: HowRule, Reason: r.Reason, By: r.Source(), At: now}
}

// addRule makes a rule hold once it is written down. One that says the same
// already is kept instead.
func (d *Desk) addRule(r Rule) (Rule, error) {
	d.ruling.Lock() // so that numbers reach the journal in order
	defer d.ruling.Unlock()
	d.mu.Lock()
	for _, old := range d.rules {
		if old.Digest == r.Digest && old.Agent == r.Agent && old.UID == r.UID && old.CWD == r.CWD && old.Scope == r.Scope && old.Session == r.Session && old.Approve == r.Approve {
			same := *old
			d.mu.Unlock()
			return same, nil
		}
	}
	full := len(d.rules) >= maxRules
	r.Number = d.lastRule + 1
	d.mu.Unlock()
	if full {
		return Rule{}, fmt.Errorf("%d rules hold already: revoke some", maxRules)
	}
	if err := d.journal.RuleMade(&r); err != nil {
		return Rule{}, fmt.Errorf("the rule could not be recorded and does not hold: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lastRule = r.Number
	d.rules = append(d.rules, new(r))
	return r, nil
}

// Rules returns the rules that hold, oldest first.
func (d *Desk) Rules() []Rule {
	d.endRules(&RuleEnd{Reason: "nothing was heard of the session for " + sessionRuleIdle.String()}, func(r *Rule) bool { return r.idle(time.Now()) })
	d.mu.Lock()
	defer d.mu.Unlock()
	list := make([]Rule, len(d.rules))
	for i, r := range d.rules {
		list[i] = *r
	}
	return list
}

// Revoke ends a rule. Calls that it has answered stay answered.
func (d *Desk) Revoke(number int, by Ruler) (Rule, error) {
	ended, err := d.endRules(&RuleEnd{By: by.String(), Reason: "revoked"}, func(r *Rule) bool { return r.Number == number })
	if len(ended) == 0 {
		return Rule{}, fmt.Errorf("there is no rule %d", number)
	}
	if err != nil {
		return ended[0], fmt.Errorf("rule %d does not hold any more, but that could not be recorded: %w", number, err)
	}
	return ended[0], nil
}

// EndSession ends the rules of a session that is over.
func (d *Desk) EndSession(session string) {
	if session == "" {
		return
	}
	// The rules are gone, recorded or not; a restart would not bring them back.
	_, _ = d.endRules(&RuleEnd{Reason: "the session ended"}, func(r *Rule) bool { return r.Scope == ForSession && r.Session == session })
}

func (d *Desk) endRules(e *RuleEnd, over func(*Rule) bool) (ended []Rule, err error) {
	e.At = time.Now()
	d.mu.Lock()
	d.rules = slices.DeleteFunc(d.rules, func(r *Rule) bool {
		if over(r) {
			ended = append(ended, *r)
			return true
		}
		return false
	})
	d.mu.Unlock()
	for _, r := range ended {
		if failed := d.journal.RuleEnded(r.Number, e); failed != nil {
			d.log.Error("the end of a rule was not recorded", zap.Int("rule", r.Number), zap.Error(failed))
			err = failed
		}
	}
	return ended, err
}
