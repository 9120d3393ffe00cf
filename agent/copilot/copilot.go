// Package copilot speaks the hook format of GitHub Copilot's command line and
// cloud agents: flat answers, and payloads in camelCase or, for events that are
// registered under Claude Code's names, in snake_case. The agent in VS Code
// reads the same files and speaks Claude Code's format; its payloads are
// recognised and handed on.
package copilot

import (
	"bytes"

	"github.com/hookd/hookd/agent/claude"
	"github.com/hookd/hookd/agent/native"
	"github.com/hookd/hookd/protocol"
)

// Dialect is the dialect of Copilot, on the command line and in VS Code.
type Dialect struct {
	cli  *native.Format
	code native.Dialect
}

// New returns the dialect.
func New() *Dialect {
	return &Dialect{
		cli: &native.Format{
			Agent: "copilot", Table: rows(),
			EventKeys: []string{"hook_event_name"},
			EventOf:   eventOf,
			Decode:    decode,
			Render:    render,
		},
		code: claude.VSCode(),
	}
}

// Name returns "copilot".
func (d *Dialect) Name() string { return d.cli.Name() }

// Rows returns the events of the command line. Those of VS Code are the rows of
// [claude.VSCode].
func (d *Dialect) Rows() []native.Row { return d.cli.Rows() }

// Read translates a payload of either kind.
func (d *Dialect) Read(event string, payload []byte) (*native.Call, error) {
	if fromVSCode(payload) {
		return d.code.Read(event, payload)
	}
	return d.cli.Read(event, payload)
}

// Write translates hookd's answer into the form of the call.
func (d *Dialect) Write(c *native.Call, r *protocol.Result, p native.Policy) native.Answer {
	if c.Dialect() == d.code.Name() {
		return d.code.Write(c, r, p)
	}
	return d.cli.Write(c, r, p)
}

// Unavailable answers without a verdict of hookd's.
func (d *Dialect) Unavailable(event string, want native.OnUnavailable, reason string, payload []byte) native.Answer {
	if fromVSCode(payload) {
		return d.code.Unavailable(event, want, reason, payload)
	}
	return d.cli.Unavailable(event, want, reason, payload)
}

// fromVSCode recognises VS Code by how it mixes names: hookEventName, or
// hook_event_name beside sessionId.
func fromVSCode(payload []byte) bool {
	_, members, _, err := native.ReadPayload(payload)
	if err != nil {
		return bytes.Contains(payload, []byte(`"hookEventName"`))
	}
	return members.Get("hookEventName") != nil || members.Get("hook_event_name") != nil && members.Get("sessionId") != nil
}

const (
	before  = protocol.StageBeforeTool
	approve = protocol.StageApproveTool
	after   = protocol.StageAfterTool
	prompt  = protocol.StageUserMessage
	start   = protocol.StageInjectInstructions
	compact = protocol.StageBeforeCompact
	stop    = protocol.StageStop
)

func rows() []native.Row {
	camel := []native.Row{
		{Event: "sessionStart", Stage: start, Kind: protocol.EventSessionStart, Context: true},
		{Event: "sessionEnd", Kind: protocol.EventSessionEnd},
		{Event: "userPromptSubmitted", Stage: prompt, Note: "what a configured hook says is dropped"},
		{Event: "userPromptTransformed", Stage: prompt, Modify: true, Note: "the prompt as the model gets it; register this or userPromptSubmitted"},
		{Event: "preToolUse", Stage: before, Block: true, Ask: true, Allow: true, Modify: true, Note: "in the cloud an ask is a denial; a time-out of the agent's lets the call through"},
		{Event: "permissionRequest", Stage: approve, Block: true, Allow: true, Note: "before the agent's own rules"},
		{Event: "postToolUse", Stage: after, Modify: true, Context: true},
		{Event: "postToolUseFailure", Stage: after, Context: true},
		{Event: "agentStop", Stage: stop, Inject: true, Note: "goes on at most 8 times in a row"},
		{Event: "subagentStart", Stage: start, Kind: protocol.EventSubagentStart, Context: true, Note: "not for the built-in general-purpose agent"},
		{Event: "subagentStop", Stage: stop, Kind: protocol.EventSubagentStop, Inject: true},
		{Event: "errorOccurred", Kind: protocol.EventAgentError},
		{Event: "preCompact", Stage: compact},
		{Event: "notification", Kind: protocol.EventNotification},
	}
	// Claude Code's names for the same events, with payloads in snake_case. The
	// others differ in their first letter only and are found by these rows too.
	for _, row := range camel {
		switch row.Event {
		case "userPromptSubmitted":
			row.Event, row.Note = "UserPromptSubmit", "as userPromptSubmitted"
		case "agentStop":
			row.Event, row.Note = "Stop", "as agentStop"
		default:
			continue
		}
		camel = append(camel, row)
	}
	return camel
}
