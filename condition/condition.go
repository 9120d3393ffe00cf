// Package condition reads and answers the "if" of a hook's entry: a text that
// says about which calls the hook is asked. It is an expression over what is
// known of a call, such as
//
//	kind == 'shell' && shell.mayRun('rm')
//
// or a permission rule as Claude Code has them, such as Bash(git *).
//
// The package reads nothing but its arguments. What can't be judged counts as
// true: the hook is asked.
package condition

import (
	"errors"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/condition/shell"
	"github.com/hookd/hookd/protocol"
)

// The limits of a condition.
const (
	maxText   = 8 << 10               // bytes of the condition itself
	maxNodes  = 1000                  // parts of an expression
	maxMemory = 100_000               // items of the lists that an expression makes
	maxValue  = 1 << 20               // bytes of one value that it looks at
	maxJoined = 1 << 20               // bytes of the texts that it joins
	maxTime   = 50 * time.Millisecond // for the loops of an expression
)

// Condition is one that was read. It doesn't change and is safe for concurrent
// use. Make it with [Compile].
type Condition struct {
	text  string
	judge judge
	lines *shell.Reader
	now   func() time.Time
}

// judge is what a condition comes down to.
type judge interface {
	// judge answers for a call, with what it was that decided, if it can say so.
	// After an error the answer is true.
	judge(f *facts) (holds bool, why string, err error)
	// uses returns the fields that it looks at.
	uses() []string
}

// Compile reads a condition. The error is a *[Error].
func Compile(text string) (*Condition, error) {
	c := &Condition{text: text, lines: &shell.Reader{}, now: time.Now}
	if len(text) > maxText {
		return nil, &Error{1, 1, "the condition is longer than 8 KiB"}
	}
	if strings.TrimSpace(text) == "" {
		return nil, &Error{1, 1, "the condition is empty: leave it out, or write what must be true"}
	}
	var err error
	if isRule(text) {
		c.judge, err = parseRule(text)
	} else {
		c.judge, err = compileExpression(text)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// String returns the text that was read.
func (c *Condition) String() string { return c.text }

// Holds reports whether the condition is true of a call, or can't be judged. It
// judges the request's subject and meta as they are, never its context. A field
// that the request does not have is empty.
func (c *Condition) Holds(req *protocol.Request) bool {
	holds, _, _ := c.judged(c.facts(req))
	return holds
}

// errReadings is why a condition can't be judged of a call whose arguments say
// one thing in two ways.
var errReadings = errors.New("arguments that mean the same say different things, and which of them the agent takes is not known")

// judged is the answer for a call: of one that can be read in several ways it
// holds when it is true of any of them, and then never for sure.
func (c *Condition) judged(f *facts) (holds bool, why string, err error) {
	holds, why, err = c.judge.judge(f)
	if err != nil || f.tool == "" || len(f.arguments()) == 0 {
		return holds, why, err
	}
	readings, all := protocol.ToolReadings(f.tool, f.arguments())
	if !all {
		return true, why, errReadings
	}
	for _, args := range readings {
		if holds {
			break
		}
		reading := newFacts(f.req, f.lines, f.now)
		reading.args, reading.argsRead = args, true
		if holds, why, err = c.judge.judge(reading); err != nil {
			return true, why, err
		}
	}
	if holds && readings != nil {
		return true, why, errReadings
	}
	return holds, why, nil
}

func (c *Condition) facts(req *protocol.Request) *facts {
	return newFacts(req, c.lines, c.now)
}

// Explanation says how a condition was judged.
type Explanation struct {
	// Holds is the answer.
	Holds bool
	// Err says why the condition could not be judged, which makes it hold; nil
	// when it could.
	Err error
	// Why is for people: what a rule found. It may be empty.
	Why string
	// Rule says that the condition is a permission rule, not an expression.
	Rule bool
	// Fields are the fields that the condition looks at, with their values.
	Fields []Field
	// Shell is the reading of the shell line, or nil when it was not looked at.
	Shell *shell.Line
}

// Field is a field with its value as JSON.
type Field struct {
	Name  string
	Value jsontext.Value
}

// Explain judges as [Condition.Holds] does, and says how. The values may hold
// secrets.
func (c *Condition) Explain(req *protocol.Request) Explanation {
	f := c.facts(req)
	var e Explanation
	e.Holds, e.Why, e.Err = c.judged(f)
	_, e.Rule = c.judge.(*rule)
	for _, name := range c.judge.uses() {
		if name == "shell" {
			e.Shell = f.shell()
			continue
		}
		value, err := protocol.Marshal(f.field(name))
		if err != nil { // a text that is not UTF-8
			value = protocol.Quote("?")
		}
		e.Fields = append(e.Fields, Field{name, value})
	}
	return e
}

// EventRequest returns an event in the form in which conditions judge it: its
// payload is the subject, so an event's tool, arguments and message are found
// where it has them. The stage is empty.
func EventRequest(ev *protocol.Event) *protocol.Request {
	req := &protocol.Request{Meta: ev.Meta}
	if ev.Payload != nil && ev.Payload.Kind() == '{' {
		req.Subject, _ = protocol.ParseObject(ev.Payload)
	}
	return req
}
