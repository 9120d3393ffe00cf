// Package antigravity speaks the hook format of the Antigravity CLI, agy.
// Payloads are in camelCase and don't say which event they are about: that
// stands on the command line. A gate that is answered without a decision is
// shut, so there always is one.
package antigravity

import (
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/agent/native"
	"github.com/hookd/hookd/protocol"
)

const (
	before = protocol.StageBeforeTool
	after  = protocol.StageAfterTool
	start  = protocol.StageInjectInstructions
	stop   = protocol.StageStop
)

// New returns the dialect.
func New() *native.Format {
	return &native.Format{
		Agent: "antigravity", Table: rows(),
		EventOf: eventOf,
		Decode:  decode,
		Render:  render,
	}
}

func rows() []native.Row {
	return []native.Row{
		{Event: "SessionStart", Kind: protocol.EventSessionStart, Note: "not documented"},
		{Event: "PreInvocation", Stage: start, Kind: protocol.EventIterationStart, Context: true, Note: "before each call of the model, which is not shown"},
		{Event: "PreToolUse", Stage: before, Block: true, Ask: true, AskWeak: true, Modify: true, Merge: true, Note: "an ask is force_ask, which runs the call under --dangerously-skip-permissions"},
		{Event: "PostToolUse", Stage: after, Note: "without the result; not for every call"},
		{Event: "PostInvocation", Stage: start, Kind: protocol.EventIterationEnd, Context: true, Abort: true},
		{Event: "Stop", Stage: stop, Inject: true, Note: "also while background work goes on: fully_idle is false then"},
	}
}

// eventOf takes the event that the hook was registered for. Where that is none
// of the table's, the payload's shape tells, so that a call is never run unasked
// because of a slip in a settings file.
func eventOf(event string, payload protocol.Object) string {
	for _, row := range rows() {
		if native.SameEvent(row.Event, event) {
			return event
		}
	}
	has := func(name string) bool { return payload.Get(name) != nil }
	switch {
	case has("toolCall") && !has("error"):
		return "PreToolUse"
	case has("toolCall"):
		return "PostToolUse"
	case has("terminationReason"), has("fullyIdle"):
		return "Stop"
	}
	return event
}

func decode(c *native.Call) error {
	c.SetMeta("session_id", "conversationId")
	c.SetMeta("model", "modelName")
	c.SetMetaText("cwd", c.FirstText("workspacePaths"))
	switch c.Stage {
	case before, after:
		return decodeTool(c)
	case start:
		c.SetRequest(append(protocol.Object{{Name: "event", Value: protocol.Quote(c.Event)}}, c.Pick("invocation=invocationNum")...))
		c.SetEvent(c.Pick("invocation=invocationNum", "steps=initialNumSteps"))
	case stop:
		out := c.Pick("reason=terminationReason", "execution=executionNum", "fully_idle=fullyIdle")
		c.SetRequest(append(out, failure(c)...))
	}
	return nil
}

// failure gives the error, if there was one.
func failure(c *native.Call) protocol.Object {
	if c.Text("error") == "" {
		return nil
	}
	return c.Pick("error")
}

func decodeTool(c *native.Call) error {
	if v := c.First("stepIdx"); v.Kind() == '0' {
		c.SetCallIDText("step-" + string(v))
	}
	call := c.Sub("toolCall")
	if call == nil && c.Stage == after {
		// What was run is not said.
		c.Stage, c.Kind = "", protocol.EventToolExecEnd
		c.SetEvent(failure(c))
		return nil
	}
	args := call.Get("args")
	if c.Stage == before && args.Kind() != '{' {
		return errors.New("toolCall.args is missing")
	}
	if err := c.SetTool(protocol.MetaString(call, "name"), args); err != nil {
		return err
	}
	if c.Stage == after {
		var result jsontext.Value
		failed := c.Text("error") != ""
		if failed {
			result = c.First("error")
		}
		c.SetResult(result, failed)
	}
	return nil
}

// render writes a plan.
func render(c *native.Call, p *native.Plan) native.Answer {
	var out protocol.Object
	switch {
	case c.Stage == before, c.Row.Event == "":
		out = decision(c, p)
	case c.Stage == stop && p.Message != "":
		out = native.Say(native.Say(nil, "decision", "continue"), "reason", p.Message)
	}
	if p.Context != "" {
		step := native.Say(nil, "ephemeralMessage", p.Context)
		out = append(out, protocol.Member{Name: "injectSteps", Value: append(append(jsontext.Value{'['}, step.AppendJSON(nil)...), ']')})
	}
	if c.Stage == start && p.Verdict == native.Stop {
		out = native.Say(out, "terminationBehavior", "terminate")
		p.Warn("antigravity shows nobody why a hook ended the turn: ", p.Reason)
	}
	return native.JSON(out)
}

func decision(c *native.Call, p *native.Plan) protocol.Object {
	word := "allow"
	switch {
	case p.Verdict == native.Ask:
		word = "force_ask" // ask would be answered by what the user has once allowed for always
	case p.Verdict >= native.Deny:
		word = "deny"
	}
	out := native.SayIf(native.Say(nil, "decision", word), "reason", p.Reason)
	if p.Input != nil {
		out = append(out, protocol.Member{Name: "overwrite", Value: p.ChangedInput(c).AppendJSON(nil)})
	}
	return out
}
