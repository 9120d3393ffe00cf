// Package kiro speaks the hook format of the Kiro CLI and of its older self,
// Amazon Q Developer CLI: payloads in snake_case, events in camelCase, exit
// codes, and context as plain text on stdout. The payloads name no session; it
// stands in the environment, see [native.Call.DefaultSession].
package kiro

import (
	"errors"

	"github.com/hookd/hookd/agent/native"
	"github.com/hookd/hookd/protocol"
)

const (
	before = protocol.StageBeforeTool
	after  = protocol.StageAfterTool
	prompt = protocol.StageUserMessage
	start  = protocol.StageInjectInstructions
	stop   = protocol.StageStop
)

// New returns the dialect.
func New() *native.Format {
	return &native.Format{
		Agent: "kiro", Table: rows(),
		EventKeys: []string{"hook_event_name"},
		Decode:    decode,
		Render:    render,
	}
}

func rows() []native.Row {
	return []native.Row{
		{Event: "agentSpawn", Stage: start, Kind: protocol.EventSessionStart, Context: true},
		{Event: "userPromptSubmit", Stage: prompt, Context: true},
		{Event: "preToolUse", Stage: before, Block: true},
		{Event: "postToolUse", Stage: after},
		{Event: "stop", Stage: stop},
	}
}

func decode(c *native.Call) error {
	c.SetMeta("session_id", "session_id")
	c.SetMeta("cwd", "cwd")
	switch c.Stage {
	case before:
		if c.First("tool_input") == nil {
			return errors.New("tool_input is missing")
		}
		return c.SetTool(c.Text("tool_name"), c.Payload.Get("tool_input"))
	case after:
		if err := c.SetTool(c.Text("tool_name"), c.Payload.Get("tool_input")); err != nil {
			return err
		}
		c.SetResult(c.First("tool_response"), false)
	case prompt:
		return c.SetMessage(c.Payload.Get("prompt"))
	case start:
		c.SetRequest(append(protocol.Object{{Name: "event", Value: protocol.Quote(c.Event)}}, c.Pick("input=prompt")...))
		c.SetEvent(c.Pick("message=prompt"))
	case stop:
		c.SetRequest(append(protocol.Object{{Name: "reason", Value: protocol.Quote("end_turn")}}, c.Pick("last_message=assistant_response")...))
	}
	return nil
}

// render writes a plan. The context is what the model reads, word for word.
func render(c *native.Call, p *native.Plan) native.Answer {
	if p.Verdict < native.Deny && p.Context != "" {
		return native.Answer{Stdout: []byte(p.Context), Text: true}
	}
	return native.RenderExit(c, p)
}
