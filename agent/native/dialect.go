// Package native holds what the hook formats of all coding agents have in
// common: the table of events, the call that a payload becomes, the plan that
// an answer becomes, and the policy for what an agent has no form for. A
// dialect is a [Format] with two functions of its own. There is no I/O here.
package native

import (
	"github.com/hookd/hookd/protocol"
)

// Dialect translates between one agent's native hook format and hookd's words.
type Dialect interface {
	// Name is what --agent takes, such as "claude".
	Name() string
	// Rows is the table of the agent's events. The caller may keep and change it.
	Rows() []Row
	// Read translates a payload. event is what the hook was registered for; ""
	// means that the payload says it. The error is a *[PayloadError].
	Read(event string, payload []byte) (*Call, error)
	// Write translates hookd's answer to the call. r is nil when hookd was not
	// asked, because the call has no stage.
	Write(c *Call, r *protocol.Result, p Policy) Answer
	// Unavailable makes the answer when there is no verdict of hookd's: nobody
	// could be reached, or the payload could not be read.
	Unavailable(event string, want OnUnavailable, reason string, payload []byte) Answer
}

// Row says what one native event is to hookd, and what its agent lets a hook
// do there. The table drives the code, so a capability that is false here is
// never used, and what an answer wants of it goes the way of the [Policy].
type Row struct {
	// Event is the event's name in the agent's own spelling.
	Event string
	// Stage is what hookd is asked; "" = the event is observed only.
	Stage protocol.Stage
	// Kind is the event that observers are sent. It is "" where hookd derives
	// one from the stage.
	Kind protocol.EventKind

	Block   bool // deny: the call, the prompt, the compaction
	Ask     bool // call up the agent's own prompt
	AskWeak bool // with Ask: where the agent's prompts are switched off the call is run
	Allow   bool // skip the agent's own prompt
	Modify  bool // change the arguments, the result, the text
	Merge   bool // with Modify: changed arguments are laid over the old ones, so none can be taken out
	Respond bool // answer in place of the model
	Context bool // add context for the model
	Inject  bool // start another round
	Abort   bool // end the turn
	Quit    bool // end the agent
	Notify  bool // show the user a text

	// Note is one line for people.
	Note string
}

// Gate reports whether something is about to happen that the hook can stop, so
// that no answer must not mean yes.
func (r *Row) Gate() bool {
	if !r.Block {
		return false
	}
	switch r.Stage {
	case protocol.StageBeforeTool, protocol.StageApproveTool, protocol.StageUserMessage, protocol.StageBeforeAgent, protocol.StageBeforeLLM:
		return true
	}
	return false
}

// Answer is what the agent is given, to the byte.
type Answer struct {
	// Stdout is one JSON object or nothing, or with Text a text.
	Stdout []byte
	// Text says that Stdout is text for the model, for agents that read it as it is.
	Text   bool
	Stderr []byte
	// ExitCode is 0 wherever the agent reads JSON.
	ExitCode int
	// Warnings say what of hookd's answer had no native form and what was done
	// instead, and what was repaired. They are for the log.
	Warnings []string
}

// PayloadError says why a payload can't be read. On an event that can deny it
// is a failure and not "no opinion": the caller answers by Unavailable.
type PayloadError struct {
	Agent, Event string
	// Reason is one line for people.
	Reason string
}

// Error names the agent, the event and the reason.
func (e *PayloadError) Error() string {
	if e.Event == "" {
		return "the payload of " + e.Agent + " can't be read: " + e.Reason
	}
	return "the payload of " + e.Agent + "'s " + e.Event + " can't be read: " + e.Reason
}

// Format is a [Dialect]: the table of an agent and how its payloads and answers
// look. Make one, fill it, and don't change it any more.
type Format struct {
	// Agent is the dialect's name.
	Agent string
	// As is what meta.agent says where that is not Agent.
	As string
	// Table holds the agent's events.
	Table []Row
	// EventKeys are the members of a payload that may name the event.
	EventKeys []string
	// EventOf, if set, tells the event of payloads without EventKeys. event is
	// what the hook was registered for, or "".
	EventOf func(event string, payload protocol.Object) string
	// Also holds other names of events, with the names under which the table has
	// them. Upper and lower case, and underscores and dashes, need no entry.
	Also map[string]string
	// Decode fills a call from its payload. Row, Stage and Kind are set.
	Decode func(c *Call) error
	// Render writes a plan. It is also called with a zero Row, when the event is
	// not known: then a plan that denies should do so in whatever way works at
	// most of the agent's events.
	Render func(c *Call, p *Plan) Answer
}

var _ Dialect = (*Format)(nil)

// Name returns the dialect's name.
func (f *Format) Name() string { return f.Agent }

// Rows returns a copy of the table.
func (f *Format) Rows() []Row { return append([]Row(nil), f.Table...) }

// Write translates hookd's answer.
func (f *Format) Write(c *Call, r *protocol.Result, p Policy) Answer {
	return f.answer(c, Resolve(c, r, p))
}

// Unavailable answers without a verdict of hookd's.
func (f *Format) Unavailable(event string, want OnUnavailable, reason string, payload []byte) Answer {
	c, err := f.Read(event, payload)
	if err != nil {
		c = f.blind(event, payload)
	}
	return f.answer(c, unavailable(c, want, reason))
}

func (f *Format) answer(c *Call, p *Plan) Answer {
	a := f.Render(c, p)
	a.Warnings = append(append([]string(nil), c.Warnings...), p.Warnings...)
	return a
}
