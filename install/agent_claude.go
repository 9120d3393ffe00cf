package install

import "time"

// claudeHooks is how Claude Code, and many after it, keep hooks.
func claudeHooks() jsonFile { return jsonFile{at: []string{"hooks"}} }

func claudeHome(p *Place) string { return p.home("CLAUDE_CONFIG_DIR", ".claude") }

func claudeSpec() *spec {
	list := events(decide, "SessionStart", "Setup", "UserPromptSubmit", "UserPromptExpansion")
	list = append(list, events(gate, "PreToolUse")...)
	list = append(list, events(decide, "PermissionRequest", "PermissionDenied", "PostToolUse", "PostToolUseFailure", "PostToolBatch")...)
	list = append(list, events(decide, "SubagentStart", "SubagentStop", "PreCompact")...)
	list = append(list, events(watch, "PostCompact", "Notification")...)
	list = append(list, events(decide, "Stop")...)
	list = append(list, events(watch, "StopFailure", "SessionEnd")...)
	list = append(list, leftOut("it runs for every piece of text that is shown", "MessageDisplay")...)
	list = append(list, leftOut("it would replace Claude's own way of making a worktree", "WorktreeCreate")...)
	list = append(list, leftOut("hookd is told and has nothing to decide, and older versions do not know all of them",
		"ConfigChange", "Elicitation", "ElicitationResult", "TaskCreated", "TaskCompleted", "TeammateIdle",
		"InstructionsLoaded", "CwdChanged", "FileChanged", "DirectoryAdded", "WorktreeRemove", "PreModelSwitch", "PostModelSwitch")...)
	return &spec{
		name: "claude", title: "Claude Code", also: []string{"claude-code", "claudecode"}, programs: []string{"claude"},
		folders: func(p *Place) []string { return []string{claudeHome(p)} },
		events:  list, scopes: both(),
		form: form{
			typed: true, command: "command", exec: true, timeout: "timeout", unit: time.Second,
			closed: "onFailure", closedValue: "block", group: plainGroup,
		},
		targets: one(claudeHooks(),
			func(p *Place) string { return claudeHome(p) + "/settings.json" },
			func(p *Place) string { return p.in(".claude", "settings.json") }),
		stale: func(p *Place, s Scope) []target {
			if s == User {
				return nil
			}
			return []target{{path: p.in(".claude", "settings.local.json"), edit: claudeHooks()}}
		},
		todo: func(_ *Place, s Scope) []string {
			if s == Project {
				return []string{`Start claude in the project and accept the trust dialog; with "claude -p" the folder counts as trusted.`}
			}
			return []string{"Nothing: running sessions take it up. See the entries with /hooks."}
		},
		check: checkClaude,
		probe: probe{
			event:   "PreToolUse",
			payload: `{"session_id":"hookd-doctor","transcript_path":"","cwd":"/","permission_mode":"default","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"true","description":"hookd doctor"},"tool_use_id":"hookd-doctor"}`,
			answer:  claudeAnswer,
		},
	}
}
