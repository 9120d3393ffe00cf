// Package goose speaks the hook format of goose: payloads that name the event
// in "event", and an exit code with a reason. Where a hook of its decides, goose
// takes all on stdout that it does not know for a failure, so nothing is said
// there.
package goose

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
		Agent: "goose", Table: rows(),
		EventKeys: []string{"event"},
		Decode:    decode,
		Render:    native.RenderExit,
	}
}

func rows() []native.Row {
	return []native.Row{
		{Event: "SessionStart", Kind: protocol.EventSessionStart},
		{Event: "SessionEnd", Kind: protocol.EventSessionEnd},
		{Event: "UserPromptSubmit", Stage: prompt, Note: "the prompt can't be stopped"},
		{Event: "PreToolUse", Stage: before, Block: true},
		{Event: "PreToolUseResult", Kind: protocol.EventToolExecSkipped, Note: "what became of PreToolUse; a yes is x_goose.PreToolUseResult"},
		{Event: "PostToolUse", Stage: after},
		{Event: "PostToolUseFailure", Stage: after},
		{Event: "Stop", Stage: stop, Inject: true, Note: "goes on a few times in a row"},
		{Event: "BeforeReadFile", Kind: protocol.EventToolExecStart, Note: "observed only: PreToolUse decides"},
		{Event: "AfterFileEdit", Kind: protocol.EventToolExecEnd},
		{Event: "BeforeShellExecution", Kind: protocol.EventToolExecStart, Note: "observed only: PreToolUse decides"},
		{Event: "AfterShellExecution", Kind: protocol.EventToolExecEnd},
	}
}

func decode(c *native.Call) error {
	c.SetMeta("session_id", "session_id")
	c.SetMeta("cwd", "working_dir")
	c.SetCallID("tool_call_id")
	setEvent(c)
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
		c.SetResult(c.First("tool_response", "tool_output", "result", "error"), c.Row.Event == "PostToolUseFailure")
	case prompt:
		return c.SetMessage(c.First("message", "prompt", "matcher_context"))
	case stop:
		c.SetRequest(append(protocol.Object{{Name: "reason", Value: protocol.Quote("end_turn")}}, c.Pick("last_message=last_assistant_message")...))
	}
	return nil
}

func setEvent(c *native.Call) {
	switch c.Kind {
	case protocol.EventToolExecSkipped:
		if c.Text("decision") == "allow" {
			c.Free()
			return
		}
		c.SetEvent(c.Pick("tool=tool_name", "arguments=tool_input", "reason", "blocked_by", "cause"))
	case protocol.EventToolExecStart, protocol.EventToolExecEnd:
		c.SetEvent(c.Pick("tool=tool_name", "arguments=tool_input", "about=matcher_context"))
	}
}
