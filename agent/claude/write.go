package claude

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/agent/native"
	"github.com/hookd/hookd/protocol"
)

// exitAbort is the exit code by which Droid ends.
const exitAbort = 3

// answer collects the members of an answer in the order in which they are
// written.
type answer struct {
	top, specific protocol.Object
}

func (a *answer) say(name string, text string) {
	a.top = append(a.top, protocol.Member{Name: name, Value: protocol.Quote(text)})
}

func (a *answer) add(name string, text string) {
	a.specific = append(a.specific, protocol.Member{Name: name, Value: protocol.Quote(text)})
}

func (a *answer) put(name string, v jsontext.Value) {
	a.specific = append(a.specific, protocol.Member{Name: name, Value: v})
}

// render writes a plan.
func (s style) render(c *native.Call, p *native.Plan) native.Answer {
	switch {
	case s.exitOnly || c.Row.Event == "":
		return native.RenderExit(c, p)
	case p.Verdict == native.Quit:
		return native.Answer{Stderr: []byte(p.Reason), ExitCode: exitAbort}
	case p.Verdict == native.Deny && c.Stage == compact && s.compactByExit:
		return native.Blocked(p.Reason)
	}
	var a answer
	if p.Verdict == native.Stop || p.Verdict == native.Deny && s.deniesByContinue(c.Stage) {
		a.top = append(a.top, protocol.Member{Name: "continue", Value: jsontext.Value("false")})
		a.say("stopReason", p.Reason)
	}
	if p.Notice != "" {
		a.say("systemMessage", p.Notice)
	}
	s.fill(&a, c, p)
	if p.Context != "" {
		a.add("additionalContext", p.Context)
	}
	return native.Answer{Stdout: s.bytes(&a, c)}
}

// deniesByContinue reports whether a denial ends the turn.
func (s style) deniesByContinue(stage protocol.Stage) bool {
	return stage == compact && s.compactByContinue || stage == prompt && s.promptByContinue
}

// bytes puts the parts together.
func (s style) bytes(a *answer, c *native.Call) []byte {
	if len(a.specific) > 0 {
		specific := append(protocol.Object{{Name: "hookEventName", Value: protocol.Quote(c.Row.Event)}}, a.specific...)
		a.top = append(a.top, protocol.Member{Name: "hookSpecificOutput", Value: specific.AppendJSON(nil)})
	}
	if len(a.top) == 0 {
		if s.emptyObject && c.Stage == stop {
			return []byte("{}")
		}
		return nil
	}
	return a.top.AppendJSON(nil)
}

// fill writes the verdict and the changes of a stage.
func (s style) fill(a *answer, c *native.Call, p *native.Plan) {
	switch c.Stage {
	case before:
		s.fillCall(a, c, p)
	case approve:
		fillPermission(a, p)
	case prompt:
		if p.Verdict >= native.Deny {
			a.say("decision", "block")
			a.say("reason", p.Reason)
		}
	case compact:
		if p.Verdict == native.Deny && !s.compactByContinue {
			a.say("decision", "block")
			a.say("reason", p.Reason)
		}
	case after:
		s.fillResult(a, c, p)
	case stop:
		s.fillStop(a, p)
	case protocol.StageOutput:
		if p.Content != nil {
			a.add("displayContent", protocol.ContentText(p.Content))
		}
	}
}

func (s style) fillCall(a *answer, c *native.Call, p *native.Plan) {
	decision := ""
	switch p.Verdict {
	case native.Allow:
		decision = "allow"
	case native.Ask:
		decision = "ask"
	case native.Deny, native.Stop:
		decision = "deny"
	case native.NoOpinion:
		if p.Input != nil && (s.allowWithInput || !p.KeepPrompt) {
			decision = "allow"
		}
	}
	if decision != "" {
		a.add("permissionDecision", decision)
	}
	if decision != "" && p.Reason != "" {
		a.add("permissionDecisionReason", p.Reason)
	}
	if p.Input != nil {
		a.put("updatedInput", c.NativeArguments(p.Input))
	}
}

func fillPermission(a *answer, p *native.Plan) {
	var decision protocol.Object
	switch p.Verdict {
	case native.Allow:
		decision = protocol.Object{{Name: "behavior", Value: protocol.Quote("allow")}}
	case native.Deny, native.Stop:
		decision = protocol.Object{{Name: "behavior", Value: protocol.Quote("deny")}, {Name: "message", Value: protocol.Quote(p.Reason)}}
	default:
		return
	}
	a.put("decision", decision.AppendJSON(nil))
}

// fillResult puts a changed result where the agent takes it.
func (s style) fillResult(a *answer, c *native.Call, p *native.Plan) {
	if p.Content == nil {
		return
	}
	if s.resultByReason {
		reason := protocol.ContentText(p.Content)
		if reason == "" {
			reason = "(The result was removed by a hook.)" // an empty reason would block nothing
		}
		a.say("decision", "block")
		a.say("reason", reason)
		return
	}
	changed, ok := native.WriteResult(c.NativeResult, p.Content)
	if !ok {
		p.AddContext("A hook changed the result of this tool. Read this in its place:\n" + protocol.ContentText(p.Content))
		p.Warn(c.Agent, ": the changed result does not fit the shape of ", c.ToolName, "'s results: told to the model instead")
		return
	}
	name := "updatedToolOutput"
	if c.Facts().Kind == protocol.ToolMCP {
		name = "updatedMCPToolOutput"
	}
	a.put(name, changed)
}

func (s style) fillStop(a *answer, p *native.Plan) {
	switch {
	case p.Message == "" || p.Verdict == native.Stop:
	case s.nestedStop:
		a.add("decision", "block")
		a.add("reason", p.Message)
	default:
		a.say("decision", "block")
		a.say("reason", p.Message)
	}
}
