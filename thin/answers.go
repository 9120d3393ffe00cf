package thin

// Made by "go test ./thin -update" of what package agent says. A switch costs
// nothing at the start; a map would.

// answerFor finds the answer to an event. known is false for agents and events
// that are not in the table.
func answerFor(agent, event, want string) (stdout, stderr string, exit int, known bool) {
	switch agent {
	case "claude", "claude-code", "claudecode":
		switch event + " " + want {
		case "SessionStart ",
			"SessionStart continue",
			"SessionStart deny",
			"SessionStart ask",
			"Setup ",
			"Setup continue",
			"Setup deny",
			"Setup ask",
			"SessionEnd ",
			"SessionEnd continue",
			"SessionEnd deny",
			"SessionEnd ask",
			"UserPromptSubmit continue",
			"UserPromptExpansion continue",
			"PreToolUse continue",
			"PermissionRequest continue",
			"PermissionRequest ask",
			"PermissionDenied ",
			"PermissionDenied continue",
			"PermissionDenied deny",
			"PermissionDenied ask",
			"PostToolUse ",
			"PostToolUse continue",
			"PostToolUse ask",
			"PostToolUseFailure ",
			"PostToolUseFailure continue",
			"PostToolUseFailure deny",
			"PostToolUseFailure ask",
			"PostToolBatch ",
			"PostToolBatch continue",
			"PostToolBatch deny",
			"PostToolBatch ask",
			"SubagentStart ",
			"SubagentStart continue",
			"SubagentStart deny",
			"SubagentStart ask",
			"SubagentStop ",
			"SubagentStop continue",
			"SubagentStop deny",
			"SubagentStop ask",
			"Stop ",
			"Stop continue",
			"Stop deny",
			"Stop ask",
			"StopFailure ",
			"StopFailure continue",
			"StopFailure deny",
			"StopFailure ask",
			"PreCompact ",
			"PreCompact continue",
			"PreCompact ask",
			"PostCompact ",
			"PostCompact continue",
			"PostCompact deny",
			"PostCompact ask",
			"Notification ",
			"Notification continue",
			"Notification deny",
			"Notification ask",
			"MessageDisplay ",
			"MessageDisplay continue",
			"MessageDisplay deny",
			"MessageDisplay ask":
			return "", "", 0, true
		case "UserPromptSubmit ",
			"UserPromptSubmit deny",
			"UserPromptSubmit ask",
			"UserPromptExpansion ",
			"UserPromptExpansion deny",
			"UserPromptExpansion ask",
			"PreCompact deny":
			return "{\"decision\":\"block\",\"reason\":\"hookd gave no verdict: {{reason}}\"}", "", 0, true
		case "PreToolUse ",
			"PreToolUse deny":
			return "{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"deny\",\"permissionDecisionReason\":\"hookd gave no verdict: {{reason}}\"}}", "", 0, true
		case "PreToolUse ask":
			return "{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"ask\",\"permissionDecisionReason\":\"hookd gave no verdict: {{reason}}\"}}", "", 0, true
		case "PermissionRequest ",
			"PermissionRequest deny":
			return "{\"hookSpecificOutput\":{\"hookEventName\":\"PermissionRequest\",\"decision\":{\"behavior\":\"deny\",\"message\":\"hookd gave no verdict: {{reason}}\"}}}", "", 0, true
		case "PostToolUse deny":
			return "{\"hookSpecificOutput\":{\"hookEventName\":\"PostToolUse\",\"updatedToolOutput\":\"hookd gave no verdict: {{reason}}\"}}", "", 0, true
		}
	case "codex", "codex-cli":
		switch event + " " + want {
		case "SessionStart ",
			"SessionStart continue",
			"SessionStart deny",
			"SessionStart ask",
			"SessionEnd ",
			"SessionEnd continue",
			"SessionEnd deny",
			"SessionEnd ask",
			"UserPromptSubmit continue",
			"PreToolUse continue",
			"PermissionRequest continue",
			"PermissionRequest ask",
			"PostToolUse ",
			"PostToolUse continue",
			"PostToolUse ask",
			"PreCompact ",
			"PreCompact continue",
			"PreCompact ask",
			"PostCompact ",
			"PostCompact continue",
			"PostCompact deny",
			"PostCompact ask",
			"SubagentStart ",
			"SubagentStart continue",
			"SubagentStart deny",
			"SubagentStart ask",
			"StopFailure ",
			"StopFailure continue",
			"StopFailure deny",
			"StopFailure ask",
			"Interrupt ",
			"Interrupt continue",
			"Interrupt deny",
			"Interrupt ask",
			"notify ",
			"notify continue",
			"notify deny",
			"notify ask":
			return "", "", 0, true
		case "UserPromptSubmit ",
			"UserPromptSubmit deny",
			"UserPromptSubmit ask",
			"PostToolUse deny":
			return "{\"decision\":\"block\",\"reason\":\"hookd gave no verdict: {{reason}}\"}", "", 0, true
		case "PreToolUse ",
			"PreToolUse deny",
			"PreToolUse ask":
			return "{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"deny\",\"permissionDecisionReason\":\"hookd gave no verdict: {{reason}}\"}}", "", 0, true
		case "PermissionRequest ",
			"PermissionRequest deny":
			return "{\"hookSpecificOutput\":{\"hookEventName\":\"PermissionRequest\",\"decision\":{\"behavior\":\"deny\",\"message\":\"hookd gave no verdict: {{reason}}\"}}}", "", 0, true
		case "PreCompact deny":
			return "{\"continue\":false,\"stopReason\":\"hookd gave no verdict: {{reason}}\"}", "", 0, true
		case "SubagentStop ",
			"SubagentStop continue",
			"SubagentStop deny",
			"SubagentStop ask",
			"Stop ",
			"Stop continue",
			"Stop deny",
			"Stop ask":
			return "{}", "", 0, true
		}
	case "cursor", "cursor-agent":
		switch event + " " + want {
		case "sessionStart ",
			"sessionStart continue",
			"sessionStart deny",
			"sessionStart ask",
			"sessionEnd ",
			"sessionEnd continue",
			"sessionEnd deny",
			"sessionEnd ask",
			"postToolUse ",
			"postToolUse continue",
			"postToolUse ask",
			"postToolUseFailure ",
			"postToolUseFailure continue",
			"postToolUseFailure deny",
			"postToolUseFailure ask",
			"afterShellExecution ",
			"afterShellExecution continue",
			"afterShellExecution deny",
			"afterShellExecution ask",
			"afterMCPExecution ",
			"afterMCPExecution continue",
			"afterMCPExecution deny",
			"afterMCPExecution ask",
			"afterFileEdit ",
			"afterFileEdit continue",
			"afterFileEdit deny",
			"afterFileEdit ask",
			"afterTabFileEdit ",
			"afterTabFileEdit continue",
			"afterTabFileEdit deny",
			"afterTabFileEdit ask",
			"subagentStop ",
			"subagentStop continue",
			"subagentStop deny",
			"subagentStop ask",
			"preCompact ",
			"preCompact continue",
			"preCompact deny",
			"preCompact ask",
			"stop ",
			"stop continue",
			"stop deny",
			"stop ask",
			"afterAgentResponse ",
			"afterAgentResponse continue",
			"afterAgentResponse deny",
			"afterAgentResponse ask",
			"afterAgentThought ",
			"afterAgentThought continue",
			"afterAgentThought deny",
			"afterAgentThought ask":
			return "{}", "", 0, true
		case "beforeSubmitPrompt ",
			"beforeSubmitPrompt deny",
			"beforeSubmitPrompt ask":
			return "{\"continue\":false,\"user_message\":\"hookd gave no verdict: {{reason}}\"}", "", 0, true
		case "beforeSubmitPrompt continue",
			"preToolUse continue",
			"beforeShellExecution continue",
			"beforeMCPExecution continue",
			"beforeReadFile continue",
			"beforeTabFileRead continue",
			"subagentStart continue":
			return "{\"continue\":true,\"permission\":\"allow\"}", "", 0, true
		case "preToolUse ",
			"preToolUse deny",
			"preToolUse ask",
			"beforeShellExecution ",
			"beforeShellExecution deny",
			"beforeMCPExecution ",
			"beforeMCPExecution deny",
			"beforeReadFile ",
			"beforeReadFile deny",
			"beforeReadFile ask",
			"beforeTabFileRead ",
			"beforeTabFileRead deny",
			"beforeTabFileRead ask",
			"subagentStart ",
			"subagentStart deny",
			"subagentStart ask":
			return "{\"continue\":true,\"permission\":\"deny\",\"user_message\":\"hookd gave no verdict: {{reason}}\",\"agent_message\":\"hookd gave no verdict: {{reason}}\"}", "", 0, true
		case "postToolUse deny":
			return "{\"additional_context\":\"A hook changed the result of this tool. Read this in its place:\\nhookd gave no verdict: {{reason}}\"}", "", 0, true
		case "beforeShellExecution ask",
			"beforeMCPExecution ask":
			return "{\"continue\":true,\"permission\":\"ask\",\"user_message\":\"hookd gave no verdict: {{reason}}\",\"agent_message\":\"hookd gave no verdict: {{reason}}\"}", "", 0, true
		}
	case "copilot", "copilot-cli":
		switch event + " " + want {
		case "sessionStart ",
			"sessionStart continue",
			"sessionStart deny",
			"sessionStart ask",
			"sessionEnd ",
			"sessionEnd continue",
			"sessionEnd deny",
			"sessionEnd ask",
			"userPromptSubmitted ",
			"userPromptSubmitted continue",
			"userPromptSubmitted deny",
			"userPromptSubmitted ask",
			"userPromptTransformed ",
			"userPromptTransformed continue",
			"userPromptTransformed deny",
			"userPromptTransformed ask",
			"preToolUse continue",
			"permissionRequest continue",
			"permissionRequest ask",
			"postToolUse ",
			"postToolUse continue",
			"postToolUse ask",
			"postToolUseFailure ",
			"postToolUseFailure continue",
			"postToolUseFailure deny",
			"postToolUseFailure ask",
			"agentStop ",
			"agentStop continue",
			"agentStop deny",
			"agentStop ask",
			"subagentStart ",
			"subagentStart continue",
			"subagentStart deny",
			"subagentStart ask",
			"subagentStop ",
			"subagentStop continue",
			"subagentStop deny",
			"subagentStop ask",
			"errorOccurred ",
			"errorOccurred continue",
			"errorOccurred deny",
			"errorOccurred ask",
			"preCompact ",
			"preCompact continue",
			"preCompact deny",
			"preCompact ask",
			"notification ",
			"notification continue",
			"notification deny",
			"notification ask",
			"UserPromptSubmit ",
			"UserPromptSubmit continue",
			"UserPromptSubmit deny",
			"UserPromptSubmit ask",
			"Stop ",
			"Stop continue",
			"Stop deny",
			"Stop ask":
			return "", "", 0, true
		case "preToolUse ",
			"preToolUse deny":
			return "{\"permissionDecision\":\"deny\",\"permissionDecisionReason\":\"hookd gave no verdict: {{reason}}\"}", "", 0, true
		case "preToolUse ask":
			return "{\"permissionDecision\":\"ask\",\"permissionDecisionReason\":\"hookd gave no verdict: {{reason}}\"}", "", 0, true
		case "permissionRequest ",
			"permissionRequest deny":
			return "{\"behavior\":\"deny\",\"message\":\"hookd gave no verdict: {{reason}}\"}", "", 0, true
		case "postToolUse deny":
			return "{\"modifiedResult\":{\"resultType\":\"success\",\"textResultForLlm\":\"hookd gave no verdict: {{reason}}\"}}", "", 0, true
		}
	case "vscode", "copilot-vscode", "vs-code":
		switch event + " " + want {
		case "SessionStart ",
			"SessionStart continue",
			"SessionStart deny",
			"SessionStart ask",
			"UserPromptSubmit continue",
			"PreToolUse continue",
			"PostToolUse ",
			"PostToolUse continue",
			"PostToolUse deny",
			"PostToolUse ask",
			"SubagentStart ",
			"SubagentStart continue",
			"SubagentStart deny",
			"SubagentStart ask",
			"SubagentStop ",
			"SubagentStop continue",
			"SubagentStop deny",
			"SubagentStop ask",
			"Stop ",
			"Stop continue",
			"Stop deny",
			"Stop ask",
			"PreCompact ",
			"PreCompact continue",
			"PreCompact deny",
			"PreCompact ask":
			return "", "", 0, true
		case "UserPromptSubmit ",
			"UserPromptSubmit deny",
			"UserPromptSubmit ask":
			return "{\"continue\":false,\"stopReason\":\"hookd gave no verdict: {{reason}}\",\"decision\":\"block\",\"reason\":\"hookd gave no verdict: {{reason}}\"}", "", 0, true
		case "PreToolUse ",
			"PreToolUse deny":
			return "{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"deny\",\"permissionDecisionReason\":\"hookd gave no verdict: {{reason}}\"}}", "", 0, true
		case "PreToolUse ask":
			return "{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"ask\",\"permissionDecisionReason\":\"hookd gave no verdict: {{reason}}\"}}", "", 0, true
		}
	case "windsurf", "cascade", "devin":
		switch event + " " + want {
		case "pre_user_prompt ",
			"pre_user_prompt deny",
			"pre_user_prompt ask",
			"pre_read_code ",
			"pre_read_code deny",
			"pre_read_code ask",
			"pre_write_code ",
			"pre_write_code deny",
			"pre_write_code ask",
			"pre_run_command ",
			"pre_run_command deny",
			"pre_run_command ask",
			"pre_mcp_tool_use ",
			"pre_mcp_tool_use deny",
			"pre_mcp_tool_use ask":
			return "", "hookd gave no verdict: {{reason}}", 2, true
		case "pre_user_prompt continue",
			"pre_read_code continue",
			"pre_write_code continue",
			"pre_run_command continue",
			"pre_mcp_tool_use continue",
			"post_read_code ",
			"post_read_code continue",
			"post_read_code deny",
			"post_read_code ask",
			"post_write_code ",
			"post_write_code continue",
			"post_write_code deny",
			"post_write_code ask",
			"post_run_command ",
			"post_run_command continue",
			"post_run_command deny",
			"post_run_command ask",
			"post_mcp_tool_use ",
			"post_mcp_tool_use continue",
			"post_mcp_tool_use deny",
			"post_mcp_tool_use ask",
			"post_cascade_response ",
			"post_cascade_response continue",
			"post_cascade_response deny",
			"post_cascade_response ask",
			"post_cascade_response_with_transcript ",
			"post_cascade_response_with_transcript continue",
			"post_cascade_response_with_transcript deny",
			"post_cascade_response_with_transcript ask":
			return "", "", 0, true
		}
	case "gemini", "gemini-cli":
		switch event + " " + want {
		case "SessionStart ",
			"SessionStart continue",
			"SessionStart deny",
			"SessionStart ask",
			"SessionEnd ",
			"SessionEnd continue",
			"SessionEnd deny",
			"SessionEnd ask",
			"BeforeAgent continue",
			"AfterAgent ",
			"AfterAgent continue",
			"AfterAgent deny",
			"AfterAgent ask",
			"BeforeModel continue",
			"AfterModel ",
			"AfterModel continue",
			"AfterModel deny",
			"AfterModel ask",
			"BeforeToolSelection ",
			"BeforeToolSelection continue",
			"BeforeToolSelection deny",
			"BeforeToolSelection ask",
			"BeforeTool continue",
			"AfterTool ",
			"AfterTool continue",
			"AfterTool ask",
			"PreCompress ",
			"PreCompress continue",
			"PreCompress deny",
			"PreCompress ask",
			"Notification ",
			"Notification continue",
			"Notification deny",
			"Notification ask":
			return "{}", "", 0, true
		case "BeforeAgent ",
			"BeforeAgent deny",
			"BeforeAgent ask",
			"BeforeModel ",
			"BeforeModel deny",
			"BeforeModel ask",
			"BeforeTool ",
			"BeforeTool deny",
			"AfterTool deny":
			return "{\"decision\":\"deny\",\"reason\":\"hookd gave no verdict: {{reason}}\"}", "", 0, true
		case "BeforeTool ask":
			return "{\"decision\":\"ask\",\"reason\":\"hookd gave no verdict: {{reason}}\"}", "", 0, true
		}
	case "antigravity", "agy":
		switch event + " " + want {
		case "SessionStart ",
			"SessionStart continue",
			"SessionStart deny",
			"SessionStart ask",
			"PreInvocation ",
			"PreInvocation continue",
			"PreInvocation deny",
			"PreInvocation ask",
			"PostToolUse ",
			"PostToolUse continue",
			"PostToolUse deny",
			"PostToolUse ask",
			"PostInvocation ",
			"PostInvocation continue",
			"PostInvocation deny",
			"PostInvocation ask",
			"Stop ",
			"Stop continue",
			"Stop deny",
			"Stop ask":
			return "{}", "", 0, true
		case "PreToolUse ",
			"PreToolUse deny",
			"PreToolUse ask":
			return "{\"decision\":\"deny\",\"reason\":\"hookd gave no verdict: {{reason}}\"}", "", 0, true
		case "PreToolUse continue":
			return "{\"decision\":\"allow\"}", "", 0, true
		}
	case "kiro", "kiro-cli", "q", "amazon-q", "amazonq":
		switch event + " " + want {
		case "agentSpawn ",
			"agentSpawn continue",
			"agentSpawn deny",
			"agentSpawn ask",
			"userPromptSubmit ",
			"userPromptSubmit continue",
			"userPromptSubmit deny",
			"userPromptSubmit ask",
			"preToolUse continue",
			"postToolUse ",
			"postToolUse continue",
			"postToolUse deny",
			"postToolUse ask",
			"stop ",
			"stop continue",
			"stop deny",
			"stop ask":
			return "", "", 0, true
		case "preToolUse ",
			"preToolUse deny",
			"preToolUse ask":
			return "", "hookd gave no verdict: {{reason}}", 2, true
		}
	case "droid", "factory":
		switch event + " " + want {
		case "SessionStart ",
			"SessionStart continue",
			"SessionStart deny",
			"SessionStart ask",
			"SessionEnd ",
			"SessionEnd continue",
			"SessionEnd deny",
			"SessionEnd ask",
			"UserPromptSubmit continue",
			"PreToolUse continue",
			"PostToolUse ",
			"PostToolUse continue",
			"PostToolUse deny",
			"PostToolUse ask",
			"SubagentStop ",
			"SubagentStop continue",
			"SubagentStop deny",
			"SubagentStop ask",
			"Stop ",
			"Stop continue",
			"Stop deny",
			"Stop ask",
			"PreCompact ",
			"PreCompact continue",
			"PreCompact ask",
			"Notification ",
			"Notification continue",
			"Notification deny",
			"Notification ask":
			return "", "", 0, true
		case "UserPromptSubmit ",
			"UserPromptSubmit deny",
			"UserPromptSubmit ask":
			return "{\"decision\":\"block\",\"reason\":\"hookd gave no verdict: {{reason}}\"}", "", 0, true
		case "PreToolUse ",
			"PreToolUse deny":
			return "{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"deny\",\"permissionDecisionReason\":\"hookd gave no verdict: {{reason}}\"}}", "", 0, true
		case "PreToolUse ask":
			return "{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"ask\",\"permissionDecisionReason\":\"hookd gave no verdict: {{reason}}\"}}", "", 0, true
		case "PreCompact deny":
			return "", "hookd gave no verdict: {{reason}}", 2, true
		}
	case "qwen", "qwen-code":
		switch event + " " + want {
		case "SessionStart ",
			"SessionStart continue",
			"SessionStart deny",
			"SessionStart ask",
			"SessionEnd ",
			"SessionEnd continue",
			"SessionEnd deny",
			"SessionEnd ask",
			"UserPromptSubmit continue",
			"PreToolUse continue",
			"PermissionRequest continue",
			"PermissionRequest ask",
			"PermissionDenied ",
			"PermissionDenied continue",
			"PermissionDenied deny",
			"PermissionDenied ask",
			"PostToolUse ",
			"PostToolUse continue",
			"PostToolUse deny",
			"PostToolUse ask",
			"PostToolUseFailure ",
			"PostToolUseFailure continue",
			"PostToolUseFailure deny",
			"PostToolUseFailure ask",
			"SubagentStart ",
			"SubagentStart continue",
			"SubagentStart deny",
			"SubagentStart ask",
			"SubagentStop ",
			"SubagentStop continue",
			"SubagentStop deny",
			"SubagentStop ask",
			"Stop ",
			"Stop continue",
			"Stop deny",
			"Stop ask",
			"StopFailure ",
			"StopFailure continue",
			"StopFailure deny",
			"StopFailure ask",
			"PreCompact ",
			"PreCompact continue",
			"PreCompact deny",
			"PreCompact ask",
			"PostCompact ",
			"PostCompact continue",
			"PostCompact deny",
			"PostCompact ask",
			"Notification ",
			"Notification continue",
			"Notification deny",
			"Notification ask":
			return "", "", 0, true
		case "UserPromptSubmit ",
			"UserPromptSubmit deny",
			"UserPromptSubmit ask":
			return "{\"decision\":\"block\",\"reason\":\"hookd gave no verdict: {{reason}}\"}", "", 0, true
		case "PreToolUse ",
			"PreToolUse deny":
			return "{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"deny\",\"permissionDecisionReason\":\"hookd gave no verdict: {{reason}}\"}}", "", 0, true
		case "PreToolUse ask":
			return "{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"ask\",\"permissionDecisionReason\":\"hookd gave no verdict: {{reason}}\"}}", "", 0, true
		case "PermissionRequest ",
			"PermissionRequest deny":
			return "{\"hookSpecificOutput\":{\"hookEventName\":\"PermissionRequest\",\"decision\":{\"behavior\":\"deny\",\"message\":\"hookd gave no verdict: {{reason}}\"}}}", "", 0, true
		}
	case "kimi", "kimi-cli":
		switch event + " " + want {
		case "SessionStart ",
			"SessionStart continue",
			"SessionStart deny",
			"SessionStart ask",
			"SessionEnd ",
			"SessionEnd continue",
			"SessionEnd deny",
			"SessionEnd ask",
			"UserPromptSubmit continue",
			"PreToolUse continue",
			"PostToolUse ",
			"PostToolUse continue",
			"PostToolUse deny",
			"PostToolUse ask",
			"PostToolUseFailure ",
			"PostToolUseFailure continue",
			"PostToolUseFailure deny",
			"PostToolUseFailure ask",
			"SubagentStart ",
			"SubagentStart continue",
			"SubagentStart deny",
			"SubagentStart ask",
			"SubagentStop ",
			"SubagentStop continue",
			"SubagentStop deny",
			"SubagentStop ask",
			"Stop ",
			"Stop continue",
			"Stop deny",
			"Stop ask",
			"StopFailure ",
			"StopFailure continue",
			"StopFailure deny",
			"StopFailure ask",
			"PreCompact ",
			"PreCompact continue",
			"PreCompact deny",
			"PreCompact ask",
			"PostCompact ",
			"PostCompact continue",
			"PostCompact deny",
			"PostCompact ask",
			"Notification ",
			"Notification continue",
			"Notification deny",
			"Notification ask":
			return "", "", 0, true
		case "UserPromptSubmit ",
			"UserPromptSubmit deny",
			"UserPromptSubmit ask",
			"PreToolUse ",
			"PreToolUse deny",
			"PreToolUse ask":
			return "", "hookd gave no verdict: {{reason}}", 2, true
		}
	case "goose":
		switch event + " " + want {
		case "SessionStart ",
			"SessionStart continue",
			"SessionStart deny",
			"SessionStart ask",
			"SessionEnd ",
			"SessionEnd continue",
			"SessionEnd deny",
			"SessionEnd ask",
			"UserPromptSubmit ",
			"UserPromptSubmit continue",
			"UserPromptSubmit deny",
			"UserPromptSubmit ask",
			"PreToolUse continue",
			"PreToolUseResult ",
			"PreToolUseResult continue",
			"PreToolUseResult deny",
			"PreToolUseResult ask",
			"PostToolUse ",
			"PostToolUse continue",
			"PostToolUse deny",
			"PostToolUse ask",
			"PostToolUseFailure ",
			"PostToolUseFailure continue",
			"PostToolUseFailure deny",
			"PostToolUseFailure ask",
			"Stop ",
			"Stop continue",
			"Stop deny",
			"Stop ask",
			"BeforeReadFile ",
			"BeforeReadFile continue",
			"BeforeReadFile deny",
			"BeforeReadFile ask",
			"AfterFileEdit ",
			"AfterFileEdit continue",
			"AfterFileEdit deny",
			"AfterFileEdit ask",
			"BeforeShellExecution ",
			"BeforeShellExecution continue",
			"BeforeShellExecution deny",
			"BeforeShellExecution ask",
			"AfterShellExecution ",
			"AfterShellExecution continue",
			"AfterShellExecution deny",
			"AfterShellExecution ask":
			return "", "", 0, true
		case "PreToolUse ",
			"PreToolUse deny",
			"PreToolUse ask":
			return "", "hookd gave no verdict: {{reason}}", 2, true
		}
	case "crush":
		switch event + " " + want {
		case "PreToolUse ",
			"PreToolUse deny",
			"PreToolUse ask":
			return "{\"version\":1,\"decision\":\"deny\",\"reason\":\"hookd gave no verdict: {{reason}}\"}", "", 0, true
		case "PreToolUse continue":
			return "", "", 0, true
		}
	case "cline":
		switch event + " " + want {
		case "TaskStart ",
			"TaskStart continue",
			"TaskStart deny",
			"TaskStart ask",
			"TaskResume ",
			"TaskResume continue",
			"TaskResume deny",
			"TaskResume ask",
			"UserPromptSubmit continue",
			"PreToolUse continue",
			"PostToolUse ",
			"PostToolUse continue",
			"PostToolUse deny",
			"PostToolUse ask",
			"PreCompact ",
			"PreCompact continue",
			"PreCompact deny",
			"PreCompact ask",
			"TaskCancel ",
			"TaskCancel continue",
			"TaskCancel deny",
			"TaskCancel ask",
			"TaskComplete ",
			"TaskComplete continue",
			"TaskComplete deny",
			"TaskComplete ask":
			return "{\"cancel\":false,\"contextModification\":\"\",\"errorMessage\":\"\"}", "", 0, true
		case "UserPromptSubmit ",
			"UserPromptSubmit deny",
			"UserPromptSubmit ask",
			"PreToolUse ",
			"PreToolUse deny",
			"PreToolUse ask":
			return "{\"cancel\":true,\"contextModification\":\"\",\"errorMessage\":\"hookd gave no verdict: {{reason}}\"}", "", 0, true
		}
	case "grok", "grok-build":
		switch event + " " + want {
		case "SessionStart ",
			"SessionStart continue",
			"SessionStart deny",
			"SessionStart ask",
			"SessionEnd ",
			"SessionEnd continue",
			"SessionEnd deny",
			"SessionEnd ask",
			"UserPromptSubmit ",
			"UserPromptSubmit continue",
			"UserPromptSubmit deny",
			"UserPromptSubmit ask",
			"PreToolUse continue",
			"PostToolUse ",
			"PostToolUse continue",
			"PostToolUse deny",
			"PostToolUse ask",
			"PostToolUseFailure ",
			"PostToolUseFailure continue",
			"PostToolUseFailure deny",
			"PostToolUseFailure ask",
			"Stop ",
			"Stop continue",
			"Stop deny",
			"Stop ask":
			return "", "", 0, true
		case "PreToolUse ",
			"PreToolUse deny",
			"PreToolUse ask":
			return "{\"decision\":\"deny\",\"reason\":\"hookd gave no verdict: {{reason}}\"}", "", 2, true
		}
	case "opencode":
		switch event + " " + want {
		case "tool.execute.before ",
			"tool.execute.before deny",
			"tool.execute.before ask",
			"chat.message ",
			"chat.message deny",
			"chat.message ask":
			return "{\"decision\":\"deny\",\"reason\":\"hookd gave no verdict: {{reason}}\"}", "", 0, true
		case "tool.execute.before continue",
			"tool.execute.after ",
			"tool.execute.after continue",
			"tool.execute.after ask",
			"chat.message continue",
			"event ",
			"event continue",
			"event deny",
			"event ask",
			"session.created ",
			"session.created continue",
			"session.created deny",
			"session.created ask",
			"session.idle ",
			"session.idle continue",
			"session.idle deny",
			"session.idle ask",
			"session.compacted ",
			"session.compacted continue",
			"session.compacted deny",
			"session.compacted ask",
			"session.error ",
			"session.error continue",
			"session.error deny",
			"session.error ask",
			"session.deleted ",
			"session.deleted continue",
			"session.deleted deny",
			"session.deleted ask":
			return "", "", 0, true
		case "tool.execute.after deny":
			return "{\"output\":\"hookd gave no verdict: {{reason}}\"}", "", 0, true
		}
	case "openhands":
		switch event + " " + want {
		case "session_start ",
			"session_start continue",
			"session_start deny",
			"session_start ask",
			"session_end ",
			"session_end continue",
			"session_end deny",
			"session_end ask",
			"user_prompt_submit continue",
			"pre_tool_use continue",
			"post_tool_use ",
			"post_tool_use continue",
			"post_tool_use deny",
			"post_tool_use ask",
			"stop ",
			"stop continue",
			"stop deny",
			"stop ask":
			return "", "", 0, true
		case "user_prompt_submit ",
			"user_prompt_submit deny",
			"user_prompt_submit ask",
			"pre_tool_use ",
			"pre_tool_use deny",
			"pre_tool_use ask":
			return "{\"decision\":\"deny\",\"reason\":\"hookd gave no verdict: {{reason}}\"}", "", 2, true
		}
	case "hermes", "hermes-agent":
		switch event + " " + want {
		case "on_session_start ",
			"on_session_start continue",
			"on_session_start deny",
			"on_session_start ask",
			"on_session_end ",
			"on_session_end continue",
			"on_session_end deny",
			"on_session_end ask",
			"pre_llm_call ",
			"pre_llm_call continue",
			"pre_llm_call deny",
			"pre_llm_call ask",
			"post_llm_call ",
			"post_llm_call continue",
			"post_llm_call deny",
			"post_llm_call ask",
			"pre_tool_call continue",
			"post_tool_call ",
			"post_tool_call continue",
			"post_tool_call deny",
			"post_tool_call ask",
			"subagent_stop ",
			"subagent_stop continue",
			"subagent_stop deny",
			"subagent_stop ask":
			return "", "", 0, true
		case "pre_tool_call ",
			"pre_tool_call deny",
			"pre_tool_call ask":
			return "{\"action\":\"block\",\"message\":\"hookd gave no verdict: {{reason}}\"}", "", 0, true
		}
	}
	return "", "", 0, false
}
