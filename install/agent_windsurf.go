package install

import "path/filepath"

func windsurfHome(p *Place) string { return filepath.Join(p.Home, ".codeium", "windsurf") }

func windsurfSpec() *spec {
	list := events(decide, "pre_user_prompt")
	list = append(list, events(gate, "pre_read_code", "pre_write_code", "pre_run_command", "pre_mcp_tool_use")...)
	list = append(list, events(watch, "post_read_code", "post_write_code", "post_run_command", "post_mcp_tool_use", "post_cascade_response", "post_setup_worktree")...)
	list = append(list, leftOut("post_cascade_response tells the same without the transcript", "post_cascade_response_with_transcript")...)
	return &spec{
		name: "windsurf", title: "Windsurf", also: []string{"cascade", "devin"}, programs: []string{"windsurf", "devin-desktop"},
		folders: func(p *Place) []string { return []string{windsurfHome(p)} },
		events:  list, scopes: both(),
		// No matcher and no timeout: hookd-hook's own deadline is the only one.
		form: form{command: "command", extra: object("show_output", true)},
		targets: one(claudeHooks(),
			func(p *Place) string { return filepath.Join(windsurfHome(p), "hooks.json") },
			func(p *Place) string { return p.in(".windsurf", "hooks.json") }),
		todo: func(*Place, Scope) []string {
			return []string{"Start Windsurf anew. The plug-in for JetBrains reads ~/.codeium/hooks.json instead; copy the entries there if you use it."}
		},
		probe: probe{
			event:   "pre_run_command",
			payload: `{"agent_action_name":"pre_run_command","trajectory_id":"hookd-doctor","execution_id":"hookd-doctor","timestamp":"2026-01-01T00:00:00Z","model_name":"none","tool_info":{"command_line":"true","cwd":"/"}}`,
			answer:  silentAnswer,
		},
	}
}
