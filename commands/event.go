package commands

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/hookd/hookd/protocol"
)

// eventRow says what one of Claude Code's events is to hookd.
type eventRow struct {
	name string
	// stage is where its rules are asked; "" = they are told of events only.
	stage protocol.Stage
	// kinds are the events whose rules are told, where no stage stands for them.
	kinds []protocol.EventKind
	// subject names the member that a matcher is compared with; "" = none, and a
	// matcher means nothing. "tool" is the tool's name.
	subject string
	// plain: text on stdout that is no JSON is context for the model.
	plain bool
	// blocks: exit status 2 stops something.
	blocks bool
	// alias is hookd's own word, taken in files of hookd's form too.
	alias string
}

// eventRows is the table of events that a hooks.json may name.
func eventRows() []eventRow {
	return []eventRow{
		{name: "PreToolUse", stage: protocol.StageBeforeTool, subject: "tool", blocks: true, alias: "before_tool"},
		{name: "PermissionRequest", stage: protocol.StageApproveTool, subject: "tool", alias: "approve_tool"},
		{name: "PostToolUse", stage: protocol.StageAfterTool, subject: "tool", blocks: true, alias: "after_tool"},
		{name: "PostToolUseFailure", stage: protocol.StageAfterTool, subject: "tool", blocks: true},
		{name: "UserPromptSubmit", stage: protocol.StageUserMessage, plain: true, blocks: true, alias: "user_message"},
		{name: "UserPromptExpansion", stage: protocol.StageUserMessage, subject: "command_name", plain: true, blocks: true},
		{name: "Stop", stage: protocol.StageStop, blocks: true, alias: "stop"},
		{name: "SubagentStop", stage: protocol.StageStop, subject: "agent_type", blocks: true},
		{name: "SessionStart", stage: protocol.StageInjectInstructions, kinds: []protocol.EventKind{protocol.EventSessionStart}, subject: "source", plain: true, alias: "session_start"},
		{name: "Setup", stage: protocol.StageInjectInstructions, subject: "trigger"},
		{name: "SubagentStart", stage: protocol.StageInjectInstructions, kinds: []protocol.EventKind{protocol.EventSubagentStart}, subject: "agent_type"},
		{name: "PostToolBatch", stage: protocol.StageInjectInstructions, blocks: true},
		{name: "PreCompact", stage: protocol.StageBeforeCompact, subject: "trigger", blocks: true, alias: "before_compact"},
		{name: "PostCompact", kinds: []protocol.EventKind{protocol.EventAfterCompact}, subject: "trigger"},
		{name: "SessionEnd", kinds: []protocol.EventKind{protocol.EventSessionEnd}, subject: "reason", alias: "session_end"},
		{name: "Notification", kinds: []protocol.EventKind{protocol.EventNotification}, subject: "notification_type", alias: "notification"},
		{name: "StopFailure", kinds: []protocol.EventKind{protocol.EventAgentError}, subject: "error"},
		{name: "PermissionDenied", kinds: []protocol.EventKind{protocol.EventToolExecSkipped}, subject: "tool"},
	}
}

// observed are further events of Claude Code, which rules can only be told of.
var observed = []string{
	"InstructionsLoaded", "MessageDisplay", "TaskCreated", "TaskCompleted", "TeammateIdle", "ConfigChange", "CwdChanged", "DirectoryAdded",
	"FileChanged", "WorktreeCreate", "WorktreeRemove", "Elicitation", "ElicitationResult", "PreModelSwitch", "PostModelSwitch",
}

// row finds an event by Claude Code's name of it.
func row(event string) eventRow {
	for _, r := range eventRows() {
		if r.name == event {
			return r
		}
	}
	return eventRow{name: event, kinds: []protocol.EventKind{protocol.EventKind("x_claude." + event)}}
}

func isToolEvent(event string) bool { return row(event).subject == "tool" }

// eventNamed reads an event's name in a file and returns Claude Code's.
func eventNamed(name string, form Form) (string, error) {
	var known []string
	for _, r := range eventRows() {
		if r.name == name || form == FormHookd && r.alias == name && name != "" {
			return r.name, nil
		}
		known = append(known, r.name)
	}
	if slices.Contains(observed, name) {
		return name, nil
	}
	hint := protocol.DidYouMean(name, append(known, observed...))
	if hint == "" {
		hint = "; known: " + strings.Join(known, ", ")
	}
	return "", fmt.Errorf("unknown event %q%s", name, hint)
}

// matcher says which calls a rule means: nothing, "" or "*" means all; a text of
// letters, digits and _ - , | and spaces is a name, or a list of names; anything
// else is a regular expression that may match anywhere. Names of tools mean the
// tool under all agents' names for it.
type matcher struct {
	all   bool
	names []string
	re    *regexp.Regexp
}

var exactMatcher = regexp.MustCompile(`^[A-Za-z0-9_\- ,|]+$`)

func newMatcher(event, text string) (*matcher, error) {
	switch {
	case text == "" || text == "*":
		return &matcher{all: true}, nil
	case exactMatcher.MatchString(text):
		m := &matcher{}
		for _, name := range strings.FieldsFunc(text, func(r rune) bool { return r == '|' || r == ',' }) {
			if name = strings.TrimSpace(name); name != "" {
				m.names = append(m.names, name)
			}
		}
		return m, nil
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("bad regular expression (RE2, as Go has it): %w", err)
	}
	return &matcher{re: re}, nil
}

// tool reports whether a tool of this name is meant.
func (m *matcher) tool(name string) bool {
	if m.all {
		return true
	}
	if m.re == nil {
		return slices.ContainsFunc(m.names, func(n string) bool { return protocol.SameTool(n, name) })
	}
	return m.re.MatchString(name) || slices.ContainsFunc(protocol.ToolAliases(name), m.re.MatchString)
}

// text reports whether another subject is meant, such as the source of a
// session.
func (m *matcher) text(subject string) bool {
	return m.all || m.re == nil && slices.Contains(m.names, subject) || m.re != nil && m.re.MatchString(subject)
}
