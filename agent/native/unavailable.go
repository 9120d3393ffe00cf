package native

import (
	"fmt"

	"github.com/hookd/hookd/protocol"
)

// OnUnavailable says what an agent is told when there is no verdict of hookd's.
// The zero value denies where the event is a gate ([Row.Gate]) and continues
// elsewhere.
type OnUnavailable string

// The choices.
const (
	UnavailableDefault  OnUnavailable = ""
	UnavailableContinue OnUnavailable = "continue"
	UnavailableDeny     OnUnavailable = "deny" // wherever the event can deny
	UnavailableAsk      OnUnavailable = "ask"  // deny where the agent can't ask, or may not do it
)

// ParseOnUnavailable reads a choice; "allow" is another word for continue.
func ParseOnUnavailable(word string) (OnUnavailable, error) {
	switch u := OnUnavailable(word); u {
	case UnavailableDefault, UnavailableContinue, UnavailableDeny, UnavailableAsk:
		return u, nil
	case "allow":
		return UnavailableContinue, nil
	}
	return "", fmt.Errorf("unknown choice %q%s: continue, deny or ask", word, protocol.DidYouMean(word, []string{"continue", "allow", "deny", "ask"}))
}

// unavailable plans an answer without a verdict of hookd's.
func unavailable(c *Call, want OnUnavailable, reason string) *Plan {
	p := &Plan{}
	no := withReason("hookd gave no verdict", reason)
	done := func(what string) *Plan {
		p.Warn(no, ": ", what)
		return p
	}
	row := &c.Row
	gate := row.Gate() || row.Event == "" && c.Event == "" // what it is about can't be told
	switch {
	case want == UnavailableContinue || want != UnavailableDeny && !gate:
		return done("continued")
	case want == UnavailableAsk && c.Stage == protocol.StageApproveTool:
		return done("the agent asks its user")
	case want == UnavailableAsk && row.Ask && !row.AskWeak:
		p.Verdict, p.Reason = Ask, no
		return done("asked")
	case gate || row.Block:
		p.Verdict, p.Reason = Deny, no
		return done("denied")
	case c.Stage == protocol.StageAfterTool && row.Modify:
		p.Content = protocol.Quote(no)
		return done("the result is withheld")
	}
	return done("continued, because nothing can be denied here")
}
