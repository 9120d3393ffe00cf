package main

import (
	"fmt"
	"io"

	"github.com/go-json-experiment/json"

	"github.com/hookd/hookd/client"
	"github.com/hookd/hookd/protocol"
)

// transcript prints what happens, for people.
type transcript struct{ w io.Writer }

func (t transcript) line(label, format string, args ...any) {
	fmt.Fprintf(t.w, "%-22s%s\n", label, fmt.Sprintf(format, args...))
}

// answer prints all that hookd said at a stage. Nothing that concerns the user
// is kept back: a hook that was passed over is no less than one that denied.
func (t transcript) answer(stage string, a client.Answer, err error) {
	said := string(a.Action)
	if err != nil {
		said = "no verdict"
	}
	if a.DecidedBy != "" {
		said += " by " + a.DecidedBy
	}
	t.line("  "+stage, "%s", because(said, a.Reason))
	for _, w := range a.Warnings {
		t.line("    warning", "%s", w)
	}
	for _, d := range a.Degraded {
		t.line("    passed over", "%s: %s %s", d.Hook, d.Outcome, d.Detail)
	}
	for _, c := range a.AddContext {
		t.line("    context", "%s", c)
	}
	if a.JumpTo != "" { // this loop has no steps to go to; others have
		t.line("    jump to", "%s: there is no such step here", a.JumpTo)
	}
}

func (t transcript) approval(a *protocol.ApprovalResult) {
	if a == nil {
		return
	}
	said := "no"
	if a.Approved {
		said = "yes"
	}
	t.line("    approval", "%s", because(said, a.Reason))
}

func because(said, reason string) string {
	if reason == "" {
		return said
	}
	return said + ": " + reason
}

// encode is v as JSON, for people.
func encode(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
