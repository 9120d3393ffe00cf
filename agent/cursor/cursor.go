// Package cursor speaks the hook format of Cursor, in the editor and on the
// command line: events in camelCase, flat answers. Cursor runs the hooks in
// Claude Code's files too, with payloads of its own, and reads the same answers
// from them.
package cursor

import (
	"github.com/hookd/hookd/agent/native"
	"github.com/hookd/hookd/protocol"
)

const (
	before  = protocol.StageBeforeTool
	after   = protocol.StageAfterTool
	prompt  = protocol.StageUserMessage
	start   = protocol.StageInjectInstructions
	spawn   = protocol.StageBeforeAgent
	compact = protocol.StageBeforeCompact
	stop    = protocol.StageStop
)

// New returns the dialect.
func New() *native.Format {
	return &native.Format{
		Agent: "cursor", Table: rows(),
		EventKeys: []string{"hook_event_name"},
		// The names in Claude Code's files that are not Cursor's own in other letters.
		Also:   map[string]string{"UserPromptSubmit": "beforeSubmitPrompt"},
		Decode: decode,
		Render: render,
	}
}

func rows() []native.Row {
	return []native.Row{
		{Event: "sessionStart", Stage: start, Kind: protocol.EventSessionStart, Context: true},
		{Event: "sessionEnd", Kind: protocol.EventSessionEnd},
		{Event: "beforeSubmitPrompt", Stage: prompt, Block: true, Abort: true, Note: "the reason is shown to the user"},
		{Event: "preToolUse", Stage: before, Block: true, Modify: true, Note: "an ask is denied here; cursor-agent does not run it at every call"},
		{Event: "postToolUse", Stage: after, Modify: true, Context: true, Note: "only the result of an MCP tool can be changed"},
		{Event: "postToolUseFailure", Stage: after},
		{Event: "beforeShellExecution", Stage: before, Block: true, Ask: true, Note: "beside preToolUse"},
		{Event: "afterShellExecution", Kind: protocol.EventToolExecEnd},
		{Event: "beforeMCPExecution", Stage: before, Block: true, Ask: true, Note: "beside preToolUse"},
		{Event: "afterMCPExecution", Kind: protocol.EventToolExecEnd},
		{Event: "beforeReadFile", Stage: before, Block: true, Note: "with the content of the file, before the model gets it"},
		{Event: "afterFileEdit", Kind: protocol.EventToolExecEnd},
		{Event: "beforeTabFileRead", Stage: before, Block: true, Note: "as beforeReadFile, for completions"},
		{Event: "afterTabFileEdit", Kind: protocol.EventToolExecEnd, Note: "while one types"},
		{Event: "subagentStart", Stage: spawn, Kind: protocol.EventSubagentStart, Block: true},
		{Event: "subagentStop", Stage: stop, Kind: protocol.EventSubagentStop, Inject: true},
		{Event: "preCompact", Stage: compact, Notify: true},
		{Event: "stop", Stage: stop, Inject: true, Note: "goes on at most loop_limit times, 5 without one"},
		{Event: "afterAgentResponse", Kind: protocol.EventLLMResponse},
		{Event: "afterAgentThought", Kind: protocol.EventLLMDelta},
	}
}
