// Package cline speaks the hook format of Cline: one program per event, payloads
// that hold what the event is about under its name, and answers of always the
// same three members.
package cline

import (
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/agent/native"
	"github.com/hookd/hookd/protocol"
)

const (
	before  = protocol.StageBeforeTool
	after   = protocol.StageAfterTool
	prompt  = protocol.StageUserMessage
	start   = protocol.StageInjectInstructions
	compact = protocol.StageBeforeCompact
	stop    = protocol.StageStop
)

// New returns the dialect.
func New() *native.Format {
	return &native.Format{
		Agent: "cline", Table: rows(),
		EventKeys: []string{"hookName"},
		Decode:    decode,
		Render:    render,
	}
}

func rows() []native.Row {
	const later = "the model gets the context with its next request"
	return []native.Row{
		{Event: "TaskStart", Stage: start, Kind: protocol.EventSessionStart, Context: true, Abort: true},
		{Event: "TaskResume", Stage: start, Kind: protocol.EventSessionStart, Context: true, Abort: true},
		{Event: "UserPromptSubmit", Stage: prompt, Block: true, Context: true},
		{Event: "PreToolUse", Stage: before, Block: true, Context: true, Note: later},
		{Event: "PostToolUse", Stage: after, Context: true, Note: later},
		{Event: "PreCompact", Stage: compact, Note: "the conversation is in a file"},
		{Event: "TaskCancel", Kind: protocol.EventInterruptReceived},
		{Event: "TaskComplete", Stage: stop},
	}
}

func decode(c *native.Call) error {
	c.SetMeta("session_id", "taskId")
	c.SetMetaText("cwd", c.FirstText("workspaceRoots"))
	c.SetMetaText("model", protocol.MetaString(c.Sub("model"), "slug"))
	switch c.Stage {
	case before, after:
		return decodeTool(c)
	case prompt:
		return c.SetMessage(c.Sub("userPromptSubmit").Get("prompt"))
	case start:
		c.SetRequest(append(protocol.Object{{Name: "event", Value: protocol.Quote(c.Event)}}, native.Pick(task(c, "taskStart"), "input=initialTask")...))
		source := "startup"
		if c.Row.Event == "TaskResume" {
			source = "resume"
		}
		c.SetEvent(append(native.Say(nil, "source", source), native.Pick(task(c, "taskStart"), "message=initialTask")...))
	case compact:
		c.SetRequest(native.Pick(c.Sub("preCompact"), "tokens=contextSize", "trigger=compactionStrategy", "messages=messagesToCompact", "contextJsonPath", "contextRawPath"))
	case stop:
		c.SetRequest(append(protocol.Object{{Name: "reason", Value: protocol.Quote("complete")}}, native.Pick(task(c, "taskComplete"), "last_message=result")...))
	}
	if c.Kind == protocol.EventInterruptReceived {
		c.SetEvent(native.Pick(task(c, "taskCancel"), "status=completionStatus"))
	}
	return nil
}

// task returns what is known of a task, under the event's name.
func task(c *native.Call, member string) protocol.Object {
	about := c.Sub(member)
	if v := about.Get("taskMetadata"); v.Kind() == '{' {
		about, _ = protocol.ParseObject(v)
	}
	return about
}

func decodeTool(c *native.Call) error {
	member := "preToolUse"
	if c.Stage == after {
		member = "postToolUse"
	}
	about := c.Sub(member)
	args := about.Get("parameters")
	if c.Stage == before && (args == nil || args.Kind() == 'n') {
		return errors.New(member + ".parameters is missing")
	}
	name := protocol.MetaString(about, "toolName")
	if name == "" {
		name = protocol.MetaString(about, "tool")
	}
	if err := c.SetTool(name, args); err != nil {
		return err
	}
	if c.Stage == after {
		c.SetResult(about.Get("result"), about.Get("success").Kind() == 'f')
		if v := about.Get("executionTimeMs"); v.Kind() == '0' {
			c.SetSubject("duration_ms", v)
		}
	}
	return nil
}

// render writes a plan, always whole.
func render(_ *native.Call, p *native.Plan) native.Answer {
	cancel, reason := "false", ""
	if p.Verdict >= native.Deny {
		cancel, reason = "true", p.Reason
	}
	out := protocol.Object{{Name: "cancel", Value: jsontext.Value(cancel)}}
	return native.JSON(native.Say(native.Say(out, "contextModification", p.Context), "errorMessage", reason))
}
