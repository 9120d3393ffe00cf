// Package grok speaks the hook format of Grok Build: payloads in camelCase, a
// flat decision and an exit code. Grok runs the hooks in Claude Code's and
// Cursor's files too, with payloads of its own.
package grok

import (
	"errors"

	"github.com/hookd/hookd/agent/native"
	"github.com/hookd/hookd/protocol"
)

const (
	before = protocol.StageBeforeTool
	after  = protocol.StageAfterTool
	prompt = protocol.StageUserMessage
	stop   = protocol.StageStop
)

// New returns the dialect.
func New() *native.Format {
	return &native.Format{
		Agent: "grok", Table: rows(),
		EventKeys: []string{"hookEventName", "hook_event_name"},
		// Cursor's names, whose files Grok reads.
		Also: map[string]string{
			"beforeShellExecution": "PreToolUse", "beforeMCPExecution": "PreToolUse", "beforeReadFile": "PreToolUse",
			"beforeSubmitPrompt": "UserPromptSubmit",
		},
		Decode: decode,
		Render: render,
	}
}

func rows() []native.Row {
	return []native.Row{
		{Event: "SessionStart", Kind: protocol.EventSessionStart},
		{Event: "SessionEnd", Kind: protocol.EventSessionEnd},
		{Event: "UserPromptSubmit", Stage: prompt},
		{Event: "PreToolUse", Stage: before, Block: true},
		{Event: "PostToolUse", Stage: after},
		{Event: "PostToolUseFailure", Stage: after},
		{Event: "Stop", Stage: stop},
	}
}

func decode(c *native.Call) error {
	c.SetMeta("session_id", "sessionId", "session_id")
	c.SetMeta("turn_id", "promptId")
	c.SetMeta("cwd", "cwd", "workspaceRoot")
	c.SetMeta("model", "model")
	c.SetCallID("toolUseId", "toolCallId", "tool_use_id")
	args := c.First("toolInput", "tool_input")
	name := c.Text("toolName")
	if name == "" {
		name = c.Text("tool_name")
	}
	switch c.Stage {
	case before:
		if args == nil {
			return errors.New("toolInput is missing")
		}
		return c.SetTool(name, args)
	case after:
		if err := c.SetTool(name, args); err != nil {
			return err
		}
		c.SetResult(c.First("toolResult", "toolResponse", "toolOutput", "error"), c.Row.Event == "PostToolUseFailure")
	case prompt:
		return c.SetMessage(c.First("prompt", "userPrompt"))
	case stop:
		reason := c.First("reason", "stopReason")
		if reason == nil {
			reason = protocol.Quote("end_turn")
		}
		c.SetRequest(append(protocol.Object{{Name: "reason", Value: reason}}, c.Pick("last_message=lastAssistantMessage", "background_tasks=backgroundTasks")...))
	}
	switch c.Kind {
	case protocol.EventSessionStart:
		c.SetEvent(c.Pick("source"))
	case protocol.EventSessionEnd:
		c.SetEvent(c.Pick("reason"))
	}
	return nil
}

// render writes a plan: a denial is said in both ways that Grok reads.
func render(_ *native.Call, p *native.Plan) native.Answer {
	if p.Verdict < native.Deny {
		return native.Answer{}
	}
	a := native.JSON(native.Say(native.Say(nil, "decision", "deny"), "reason", p.Reason))
	a.ExitCode = native.ExitBlock
	return a
}
