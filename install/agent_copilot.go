package install

import (
	"path/filepath"
	"time"
)

func copilotHome(p *Place) string { return p.home("COPILOT_HOME", ".copilot") }

// copilotFile is a file of hookd's own in Copilot's folders of hooks.
func copilotFile(name string, edit editor) func(*Place, Scope) ([]target, error) {
	return one(edit,
		func(p *Place) string { return filepath.Join(copilotHome(p), "hooks", name) },
		func(p *Place) string { return p.in(".github", "hooks", name) })
}

// copilotSpec is the CLI's form, which VS Code reads too.
func copilotSpec() *spec {
	list := events(decide, "sessionStart")
	list = append(list, events(watch, "userPromptSubmitted")...)
	list = append(list, events(gate, "preToolUse")...)
	list = append(list, events(decide, "permissionRequest", "postToolUse", "postToolUseFailure", "subagentStart", "subagentStop", "agentStop")...)
	list = append(list, events(watch, "notification", "preCompact", "errorOccurred", "sessionEnd")...)
	list = append(list, event{name: "userPromptTransformed", role: decide, left: "it tells the prompt of userPromptSubmitted a second time; name it in place of that when hooks are to change prompts"})
	return &spec{
		name: "copilot", title: "GitHub Copilot CLI", also: []string{"copilot-cli"}, programs: []string{"copilot"}, since: "1.0.18",
		folders: func(p *Place) []string { return []string{copilotHome(p)} },
		events:  list, scopes: both(),
		form:    form{typed: true, command: "bash", timeout: "timeoutSec", unit: time.Second},
		targets: copilotFile("hookd.json", jsonFile{at: []string{"hooks"}, root: object("version", int64(1))}),
		todo: func(_ *Place, s Scope) []string {
			list := []string{"Start copilot anew. VS Code reads this file too, and turns the names of the events into its own."}
			if s == Project {
				list = append(list, "The cloud agent runs what is in .github/hooks on GitHub's machines, where there is no hookd: keep the file out of the default branch, or install hookd there.")
			}
			return list
		},
		imports: []imported{{"claude", []Scope{Project}, "remove the entries from the project's .claude folder, or from Copilot"}},
		check:   checkCopilot,
		probe: probe{
			event:   "preToolUse",
			payload: `{"sessionId":"hookd-doctor","timestamp":1767225600000,"cwd":"/","toolName":"bash","toolArgs":"{\"command\":\"true\",\"description\":\"hookd doctor\"}"}`,
			answer:  copilotAnswer,
		},
	}
}

// vscodeSpec is the form of VS Code's own agent.
func vscodeSpec() *spec {
	list := events(decide, "SessionStart", "UserPromptSubmit")
	list = append(list, events(gate, "PreToolUse")...)
	list = append(list, events(decide, "PostToolUse")...)
	list = append(list, events(watch, "PreCompact")...)
	list = append(list, events(decide, "SubagentStart", "SubagentStop", "Stop")...)
	return &spec{
		name: "vscode", title: "VS Code Copilot", also: []string{"copilot-vscode", "vs-code"}, programs: []string{"code"},
		folders: func(p *Place) []string {
			return []string{p.config("Code"), filepath.Join(p.Home, "Library", "Application Support", "Code")}
		},
		events: list, scopes: both(),
		form:    form{typed: true, command: "command", timeout: "timeout", unit: time.Second},
		targets: copilotFile("hookd-vscode.json", jsonFile{at: []string{"hooks"}}),
		todo: func(*Place, Scope) []string {
			return []string{`Nothing: VS Code reads the file again. Hooks must be on in its settings (chat.useHooks); see them with "Chat: Configure Hooks".`}
		},
		imports: []imported{
			{"copilot", both(), "use one of the two: what is installed for copilot works in VS Code as well"},
			{"claude", both(), "set chat.useClaudeHooks to false in VS Code's settings"},
		},
		probe: probe{
			event:   "PreToolUse",
			payload: `{"timestamp":"2026-01-01T00:00:00.000Z","cwd":"/","sessionId":"hookd-doctor","hookEventName":"PreToolUse","transcript_path":"","tool_name":"run_in_terminal","tool_input":{"command":"true","explanation":"hookd doctor"},"tool_use_id":"hookd-doctor"}`,
			answer:  claudeAnswer,
		},
	}
}
