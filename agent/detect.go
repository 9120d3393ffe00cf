package agent

import (
	"strings"

	"github.com/hookd/hookd/agent/native"
	"github.com/hookd/hookd/protocol"
)

// Detect tells from a payload which agent wrote it. name is "" where nothing
// speaks for any. sure means that no other agent writes such payloads; else the
// name is a good guess, and the installer's word counts more. getenv may be nil.
func Detect(payload []byte, getenv func(string) string) (name string, sure bool) {
	_, o, _, err := native.ReadPayload(payload)
	if err != nil {
		return "", false
	}
	if getenv == nil {
		getenv = func(string) string { return "" }
	}
	has := func(names ...string) bool {
		for _, n := range names {
			if o.Get(n) == nil {
				return false
			}
		}
		return true
	}
	event := protocol.MetaString(o, "hook_event_name")
	switch {
	case has("cursor_version"):
		return "cursor", true
	case has("conversation_id", "generation_id"):
		return "cursor", true
	case has("agent_action_name"):
		return "windsurf", true
	case has("toolCall") && !has("toolName"), has("conversationId", "workspacePaths"):
		return "antigravity", true
	case has("hookEventName", "workspaceRoot"), strings.Contains(protocol.MetaString(o, "hookEventName"), "_"):
		return "grok", true
	case has("hookName", "taskId"):
		return "cline", true
	case has("hookEventName"), event != "" && has("sessionId"):
		return "vscode", true
	case has("sessionId", "timestamp") && event == "":
		return "copilot", true
	case has("event_type", "session_id"):
		return "openhands", false
	case has("event", "working_dir"):
		return "goose", false
	case has("event", "cwd") && event == "":
		return "crush", false
	case has("type", "thread-id"):
		return "codex", true
	case event == "":
		return "", false
	}
	return detectByEvent(o, event, getenv), false
}

// detectByEvent tells apart the agents that name the event in the same way.
func detectByEvent(o protocol.Object, event string, getenv func(string) string) string {
	mode := protocol.MetaString(o, "permission_mode")
	_, gemini := strings.CutPrefix(event, "Before")
	if !gemini {
		_, gemini = strings.CutPrefix(event, "After")
	}
	switch {
	case (gemini || event == "PreCompress") && o.Get("timestamp") != nil:
		return "gemini"
	case mode == "off" || mode == "spec" || strings.HasPrefix(mode, "auto-") || getenv("DROID_PROJECT_DIR") != "":
		return "droid"
	case o.Get("model") != nil && (o.Get("turn_id") != nil || mode != "" && o.Get("timestamp") == nil):
		return "codex" // of a session's start it tells neither turn, nor time as Qwen does
	case strings.Contains(event, "."):
		return "opencode"
	case strings.Contains(event, "_") && o.Get("extra") != nil:
		return "hermes"
	case event[0] >= 'a' && event[0] <= 'z':
		return "kiro"
	case getenv("QWEN_PROJECT_DIR") != "" || mode == "yolo" || mode == "auto_edit":
		return "qwen"
	case o.Get("tool_call_id") != nil:
		return "kimi"
	}
	return "claude"
}
