// Package claude speaks the hook format of Claude Code and of the agents that
// took it over: Codex, Qwen Code, Droid, Kimi CLI and the agent of VS Code.
// Payloads are snake_case objects on stdin, answers hold hookSpecificOutput.
package claude

import (
	"github.com/hookd/hookd/agent/native"
	"github.com/hookd/hookd/protocol"
)

// style is what differs between the agents of the family beyond their tables.
type style struct {
	// exitOnly: denials are exit status 2 with the reason on stderr, and nothing
	// else is said.
	exitOnly bool
	// nestedStop: what keeps the agent working stands in hookSpecificOutput.
	nestedStop bool
	// emptyObject: at stop, no opinion is {} and not silence.
	emptyObject bool
	// allowWithInput: a changed input is refused without an allow beside it.
	allowWithInput bool
	// resultByReason: a changed result is a block whose reason replaces it.
	resultByReason bool
	// compactByContinue and compactByExit: how a compaction is prevented.
	compactByContinue, compactByExit bool
	// promptByContinue: a prompt is refused by ending the turn as well.
	promptByContinue bool
}

func format(agent string, rows []native.Row, s style) *native.Format {
	return &native.Format{
		Agent: agent, Table: rows,
		EventKeys: []string{"hook_event_name"},
		Decode:    decode,
		Render:    s.render,
	}
}

// Claude returns the dialect of Claude Code.
func Claude() *native.Format { return format("claude", claudeRows(), style{}) }

// Codex returns the dialect of OpenAI's Codex. It takes an answer with a member
// that it does not know for a failure and goes on, so nothing superfluous may
// be said.
func Codex() *native.Format {
	f := format("codex", codexRows(), style{emptyObject: true, allowWithInput: true, resultByReason: true, compactByContinue: true})
	f.EventOf = codexEvent
	return f
}

// Qwen returns the dialect of Qwen Code.
func Qwen() *native.Format { return format("qwen", qwenRows(), style{}) }

// Droid returns the dialect of Factory's Droid.
func Droid() *native.Format { return format("droid", droidRows(), style{compactByExit: true}) }

// Kimi returns the dialect of the Kimi CLI.
func Kimi() *native.Format { return format("kimi", kimiRows(), style{exitOnly: true}) }

// VSCode returns the dialect of Copilot's agent in VS Code. Its payloads mix
// both ways of writing names, and meta.agent is "copilot".
func VSCode() *native.Format {
	f := format("vscode", vscodeRows(), style{nestedStop: true, promptByContinue: true})
	f.As = "copilot"
	f.EventKeys = []string{"hookEventName", "hook_event_name"}
	f.Decode = decodeVSCode
	return f
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

func claudeRows() []native.Row {
	return []native.Row{
		{Event: "SessionStart", Stage: start, Kind: protocol.EventSessionStart, Context: true, Abort: true, Notify: true},
		{Event: "Setup", Stage: start, Kind: protocol.EventSessionStart, Context: true, Notify: true, Note: "before a session, with --init or --maintenance"},
		{Event: "SessionEnd", Kind: protocol.EventSessionEnd},
		{Event: "UserPromptSubmit", Stage: prompt, Block: true, Context: true, Abort: true, Notify: true, Note: "the text of the prompt can't be replaced"},
		{Event: "UserPromptExpansion", Stage: prompt, Block: true, Context: true, Abort: true, Notify: true, Note: "a slash command"},
		{Event: "PreToolUse", Stage: before, Block: true, Ask: true, Allow: true, Modify: true, Context: true, Abort: true, Notify: true, Note: "not for files named with @ in a prompt"},
		{Event: "PermissionRequest", Stage: approve, Block: true, Allow: true, Notify: true, Note: "only when Claude Code is about to ask"},
		{Event: "PermissionDenied", Kind: protocol.EventToolExecSkipped},
		{Event: "PostToolUse", Stage: after, Modify: true, Context: true, Abort: true, Notify: true},
		{Event: "PostToolUseFailure", Stage: after, Context: true, Abort: true, Notify: true},
		{Event: "PostToolBatch", Stage: start, Kind: protocol.EventIterationEnd, Context: true, Abort: true, Notify: true, Note: "after all tool calls of one answer of the model"},
		{Event: "SubagentStart", Stage: start, Kind: protocol.EventSubagentStart, Context: true, Notify: true, Note: "the context goes to the subagent"},
		{Event: "SubagentStop", Stage: stop, Kind: protocol.EventSubagentStop, Context: true, Inject: true, Abort: true, Notify: true},
		{Event: "Stop", Stage: stop, Context: true, Inject: true, Abort: true, Notify: true, Note: "goes on at most 8 times in a row"},
		{Event: "StopFailure", Kind: protocol.EventAgentError},
		{Event: "PreCompact", Stage: compact, Block: true, Notify: true},
		{Event: "PostCompact", Kind: protocol.EventAfterCompact},
		{Event: "Notification", Kind: protocol.EventNotification},
		{Event: "MessageDisplay", Stage: protocol.StageOutput, Modify: true, Note: "changes what the user sees, piece by piece"},
	}
}

func codexRows() []native.Row {
	return []native.Row{
		{Event: "SessionStart", Stage: start, Kind: protocol.EventSessionStart, Context: true, Abort: true, Notify: true},
		{Event: "SessionEnd", Kind: protocol.EventSessionEnd},
		{Event: "UserPromptSubmit", Stage: prompt, Block: true, Context: true, Abort: true, Notify: true},
		{Event: "PreToolUse", Stage: before, Block: true, Modify: true, Context: true, Notify: true, Note: "not for hosted tools, write_stdin and file reads; a changed call also skips the prompt"},
		{Event: "PermissionRequest", Stage: approve, Block: true, Allow: true, Notify: true, Note: "the only place where a hook can grant; not where the policy approves by itself"},
		{Event: "PostToolUse", Stage: after, Modify: true, Context: true, Abort: true, Notify: true, Note: "also after a failed command"},
		{Event: "PreCompact", Stage: compact, Block: true, Notify: true},
		{Event: "PostCompact", Kind: protocol.EventAfterCompact},
		{Event: "SubagentStart", Stage: start, Kind: protocol.EventSubagentStart, Context: true, Notify: true},
		{Event: "SubagentStop", Stage: stop, Kind: protocol.EventSubagentStop, Inject: true, Abort: true, Notify: true},
		{Event: "Stop", Stage: stop, Inject: true, Abort: true, Notify: true},
		{Event: "StopFailure", Kind: protocol.EventAgentError, Note: "not in every version"},
		{Event: "Interrupt", Kind: protocol.EventInterruptReceived},
		{Event: "notify", Kind: protocol.EventTurnEnd, Note: "the older program that is given its JSON as an argument"},
	}
}

func qwenRows() []native.Row {
	return []native.Row{
		{Event: "SessionStart", Stage: start, Kind: protocol.EventSessionStart, Context: true, Notify: true},
		{Event: "SessionEnd", Kind: protocol.EventSessionEnd},
		{Event: "UserPromptSubmit", Stage: prompt, Block: true, Context: true, Abort: true, Notify: true, Note: "also when a turn goes on, so the text need not be the user's own"},
		{Event: "PreToolUse", Stage: before, Block: true, Ask: true, Allow: true, Modify: true, Context: true, Abort: true, Notify: true, Note: "without a terminal an ask is a denial"},
		{Event: "PermissionRequest", Stage: approve, Block: true, Allow: true, Notify: true},
		{Event: "PermissionDenied", Kind: protocol.EventToolExecSkipped},
		{Event: "PostToolUse", Stage: after, Context: true, Abort: true, Notify: true},
		{Event: "PostToolUseFailure", Stage: after, Context: true, Notify: true},
		{Event: "SubagentStart", Stage: start, Kind: protocol.EventSubagentStart, Context: true, Notify: true},
		{Event: "SubagentStop", Stage: stop, Kind: protocol.EventSubagentStop, Inject: true, Abort: true, Notify: true},
		{Event: "Stop", Stage: stop, Context: true, Inject: true, Abort: true, Notify: true},
		{Event: "StopFailure", Kind: protocol.EventAgentError},
		{Event: "PreCompact", Stage: compact, Context: true, Notify: true},
		{Event: "PostCompact", Kind: protocol.EventAfterCompact},
		{Event: "Notification", Kind: protocol.EventNotification},
	}
}

func droidRows() []native.Row {
	return []native.Row{
		{Event: "SessionStart", Stage: start, Kind: protocol.EventSessionStart, Context: true, Abort: true, Quit: true, Notify: true},
		{Event: "SessionEnd", Kind: protocol.EventSessionEnd},
		{Event: "UserPromptSubmit", Stage: prompt, Block: true, Context: true, Abort: true, Quit: true, Notify: true},
		{Event: "PreToolUse", Stage: before, Block: true, Ask: true, Allow: true, Modify: true, Context: true, Abort: true, Quit: true, Notify: true},
		{Event: "PostToolUse", Stage: after, Context: true, Abort: true, Quit: true, Notify: true},
		{Event: "SubagentStop", Stage: stop, Kind: protocol.EventSubagentStop, Inject: true, Abort: true, Quit: true, Notify: true},
		{Event: "Stop", Stage: stop, Inject: true, Abort: true, Quit: true, Notify: true},
		{Event: "PreCompact", Stage: compact, Block: true, Quit: true, Notify: true},
		{Event: "Notification", Kind: protocol.EventNotification},
	}
}

func kimiRows() []native.Row {
	return []native.Row{
		{Event: "SessionStart", Kind: protocol.EventSessionStart},
		{Event: "SessionEnd", Kind: protocol.EventSessionEnd},
		{Event: "UserPromptSubmit", Stage: prompt, Block: true},
		{Event: "PreToolUse", Stage: before, Block: true},
		{Event: "PostToolUse", Stage: after},
		{Event: "PostToolUseFailure", Stage: after},
		{Event: "SubagentStart", Kind: protocol.EventSubagentStart},
		{Event: "SubagentStop", Kind: protocol.EventSubagentStop},
		{Event: "Stop", Stage: stop, Inject: true, Note: "goes on once"},
		{Event: "StopFailure", Kind: protocol.EventAgentError},
		{Event: "PreCompact", Stage: compact},
		{Event: "PostCompact", Kind: protocol.EventAfterCompact},
		{Event: "Notification", Kind: protocol.EventNotification},
	}
}

func vscodeRows() []native.Row {
	return []native.Row{
		{Event: "SessionStart", Stage: start, Kind: protocol.EventSessionStart, Context: true, Abort: true, Notify: true},
		{Event: "UserPromptSubmit", Stage: prompt, Block: true, Abort: true, Notify: true},
		{Event: "PreToolUse", Stage: before, Block: true, Ask: true, Allow: true, Modify: true, Context: true, Abort: true, Notify: true},
		{Event: "PostToolUse", Stage: after, Context: true, Abort: true, Notify: true},
		{Event: "SubagentStart", Stage: start, Kind: protocol.EventSubagentStart, Context: true, Notify: true},
		{Event: "SubagentStop", Stage: stop, Kind: protocol.EventSubagentStop, Inject: true, Abort: true, Notify: true},
		{Event: "Stop", Stage: stop, Inject: true, Abort: true, Notify: true},
		{Event: "PreCompact", Stage: compact, Notify: true},
	}
}
