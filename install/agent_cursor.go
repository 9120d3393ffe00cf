package install

import (
	"time"
)

func cursorHome(p *Place) string { return p.home("", ".cursor") }

func cursorSpec() *spec {
	// One name that Cursor does not know makes it refuse the whole file.
	list := events(decide, "sessionStart", "beforeSubmitPrompt")
	list = append(list, events(gate, "preToolUse", "beforeShellExecution", "beforeMCPExecution", "beforeReadFile", "beforeTabFileRead", "subagentStart")...)
	list = append(list, events(decide, "postToolUse")...)
	list = append(list, events(watch, "postToolUseFailure", "afterShellExecution", "afterMCPExecution", "afterFileEdit", "afterAgentResponse")...)
	list = append(list, events(decide, "preCompact", "subagentStop", "stop")...)
	list = append(list, events(watch, "sessionEnd")...)
	list = append(list, leftOut("it runs while one types", "afterTabFileEdit")...)
	list = append(list, leftOut("it runs for every thought of the model", "afterAgentThought")...)
	list = append(list, leftOut("only new versions know it, and older ones refuse a file that names it", "workspaceOpen")...)
	return &spec{
		name: "cursor", title: "Cursor", also: []string{"cursor-agent"}, programs: []string{"cursor-agent", "cursor"},
		folders: func(p *Place) []string { return []string{cursorHome(p)} },
		events:  list, scopes: both(),
		form: form{command: "command", timeout: "timeout", unit: time.Second, closed: "failClosed", closedValue: true},
		targets: one(jsonFile{at: []string{"hooks"}, root: object("version", int64(1))},
			func(p *Place) string { return cursorHome(p) + "/hooks.json" },
			func(p *Place) string { return p.in(".cursor", "hooks.json") }),
		todo: func(_ *Place, s Scope) []string {
			list := []string{"Nothing: Cursor reads the file again when it changes. See the entries in Settings, Hooks."}
			if s == Project {
				list = append(list, "Trust the workspace, if Cursor asks.")
			}
			return list
		},
		imports: []imported{{"claude", both(), `turn "Third-party skills, plugins and hooks" off in Cursor's settings`}},
		check:   checkCursor,
		probe: probe{
			event:   "beforeShellExecution",
			payload: `{"conversation_id":"hookd-doctor","generation_id":"hookd-doctor","model":"default","hook_event_name":"beforeShellExecution","cursor_version":"0","workspace_roots":["/"],"user_email":null,"transcript_path":null,"command":"true","cwd":"/","sandbox":false}`,
			answer:  cursorAnswer,
		},
	}
}
