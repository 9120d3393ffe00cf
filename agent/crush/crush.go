// Package crush speaks the hook format of Crush: one event, payloads that name
// it in "event", and flat answers. Changed arguments are laid over the old ones,
// and the exit code 49 halts the agent.
package crush

import (
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/agent/native"
	"github.com/hookd/hookd/protocol"
)

// exitHalt is the exit code that halts the agent.
const exitHalt = 49

// New returns the dialect.
func New() *native.Format {
	return &native.Format{
		Agent: "crush", EventKeys: []string{"event"},
		Table: []native.Row{{
			Event: "PreToolUse", Stage: protocol.StageBeforeTool,
			Block: true, Allow: true, Modify: true, Merge: true, Context: true, Abort: true, Quit: true,
			Note: "not for the calls of sub-agents",
		}},
		Decode: decode,
		Render: render,
	}
}

func decode(c *native.Call) error {
	c.SetMeta("session_id", "session_id")
	c.SetMeta("cwd", "cwd")
	c.SetCallID("tool_call_id", "tool_use_id")
	if c.Stage == "" {
		return nil
	}
	if c.First("tool_input") == nil {
		return errors.New("tool_input is missing")
	}
	return c.SetTool(c.Text("tool_name"), c.Payload.Get("tool_input"))
}

// render writes a plan. A change or context alone leaves the decision, and so
// the agent's own prompt, as it is.
func render(c *native.Call, p *native.Plan) native.Answer {
	switch {
	case p.Verdict == native.Quit:
		return native.Answer{Stderr: []byte(p.Reason), ExitCode: exitHalt}
	case c.Row.Event == "":
		return native.RenderExit(c, p)
	}
	out := decision(p)
	if p.Input != nil {
		out = append(out, protocol.Member{Name: "updated_input", Value: p.ChangedInput(c).AppendJSON(nil)})
	}
	out = native.SayIf(out, "context", p.Context)
	switch {
	case len(out) == 0:
		return native.Answer{}
	case p.Verdict == native.NoOpinion:
		out = append(protocol.Object{{Name: "decision", Value: jsontext.Value("null")}}, out...)
	}
	return native.JSON(out)
}

// decision writes the verdict, if there is one.
func decision(p *native.Plan) protocol.Object {
	word := "deny"
	switch p.Verdict {
	case native.NoOpinion:
		return nil
	case native.Allow:
		word = "allow"
	}
	out := native.Say(protocol.Object{{Name: "version", Value: jsontext.Value("1")}}, "decision", word)
	if p.Verdict == native.Stop {
		out = append(out, protocol.Member{Name: "halt", Value: jsontext.Value("true")})
	}
	return native.SayIf(out, "reason", p.Reason)
}
