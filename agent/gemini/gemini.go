// Package gemini speaks the hook format of the Gemini CLI: Claude Code's
// payloads with events and answers of its own, among them the requests to the
// model and its answers.
package gemini

import (
	"github.com/hookd/hookd/agent/native"
	"github.com/hookd/hookd/protocol"
)

const (
	before = protocol.StageBeforeTool
	after  = protocol.StageAfterTool
	prompt = protocol.StageUserMessage
	start  = protocol.StageInjectInstructions
	ask    = protocol.StageBeforeLLM
	answer = protocol.StageAfterLLM
	stop   = protocol.StageStop
)

// The event at which the tools are chosen from which the model may choose.
const toolSelection = "BeforeToolSelection"

// New returns the dialect.
func New() *native.Format {
	return &native.Format{
		Agent: "gemini", Table: rows(),
		EventKeys: []string{"hook_event_name"},
		Decode:    decode,
		Render:    render,
	}
}

func rows() []native.Row {
	return []native.Row{
		{Event: "SessionStart", Stage: start, Kind: protocol.EventSessionStart, Context: true, Notify: true},
		{Event: "SessionEnd", Kind: protocol.EventSessionEnd, Note: "the agent does not wait"},
		{Event: "BeforeAgent", Stage: prompt, Block: true, Context: true, Abort: true, Notify: true, Note: "angle brackets in the context are escaped"},
		{Event: "AfterAgent", Stage: stop, Inject: true, Abort: true, Notify: true},
		{Event: "BeforeModel", Stage: ask, Block: true, Modify: true, Respond: true, Abort: true, Notify: true, Note: "the messages hold their text only"},
		{Event: "AfterModel", Stage: answer, Modify: true, Abort: true, Notify: true, Note: "for every piece of an answer"},
		{Event: toolSelection, Stage: ask, Modify: true, Note: "options.toolConfig alone can be changed here; the rest at BeforeModel"},
		{Event: "BeforeTool", Stage: before, Block: true, Ask: true, Allow: true, Modify: true, Merge: true, Abort: true, Notify: true},
		{Event: "AfterTool", Stage: after, Modify: true, Context: true, Abort: true, Notify: true, Note: "also after a failed call"},
		{Event: "PreCompress", Kind: protocol.EventBeforeCompact, Note: "the agent does not wait"},
		{Event: "Notification", Kind: protocol.EventNotification},
	}
}
