package protocol

// toolTable lists the tools that agents have in common, under all their names.
// It is data laid out by the linker: nothing runs when a program starts.
var toolTable = [...]toolRow{
	{
		name: "Bash", claude: true, kind: ToolShell,
		names: []string{
			"bash", "shell", "Shell", "run_command", "run_shell_command", "run_terminal_cmd", "run_terminal_command", "runTerminalCommand",
			"run_in_terminal", "runInTerminal", "Execute", "execute", "execute_bash", "execute_cmd", "execute_command",
			"developer__shell", "shell_command", "local_shell", "exec", "exec_command", "unified_exec", "container.exec", "terminal",
		},
		also: []string{"PowerShell", "powershell", "pwsh"},
		shapes: [][]string{
			{"command", "description", "run_in_background"},
			{"CommandLine", "", ""},
			{"commandLine", "", ""},
			{"command_line", "", ""},
			{"cmd", "", ""},
			{"command", "description", "is_background"},
			{"command", "explanation", "isBackground"},
			{"script", "", ""},
			{"value", "", ""},
		},
	},
	{
		name: "PowerShell", claude: true, kind: ToolShell, names: []string{"powershell", "pwsh"},
		shapes: [][]string{{"command", "description", "run_in_background"}, {"script", "", ""}, {"cmd", "", ""}},
	},
	{
		name: "Monitor", claude: true, kind: ToolShell,
		shapes: [][]string{{"command", "description"}},
	},
	{
		// What is typed into a program that runs already, most often a shell.
		name: "write_stdin", kind: ToolShell,
		names: []string{
			"send_command_input", "write_bash", "send_to_terminal", "sendToTerminal", "write_to_terminal", "terminal_input", "send_terminal_input",
			"send_keys", "write_process", "write_to_process", "process_input", "send_process_input", "interact_with_process", "shell_input",
		},
		shapes: [][]string{{"chars"}, {"input"}, {"Input"}, {"text"}, {"command"}, {"keys"}, {"data"}},
	},
	{
		// Code that is run, of a language which an argument may name.
		name: "execute_code", kind: ToolShell,
		names: []string{
			"executeCode", "run_code", "runCode", "code_execution", "code_interpreter", "automation_script", "run_script", "execute_script",
			"python", "run_python", "execute_python", "python_exec", "run_python_code", "execute_python_code", "ipython", "execute_ipython_cell",
			"run_ipython_cell", "execute_javascript_code", "execute_typescript", "run_javascript", "repl", "eval_code", "jupyter_execute",
			"notebook_execute", "execute_notebook", "execute_notebook_cell", "run_notebook_cell", "runNotebookCell", "execute_cell", "run_cell",
		},
		shapes: [][]string{{"code", "language"}, {"script", "language"}, {"code", "lang"}, {"script", "lang"}, {"source", ""}, {"cell", ""}},
	},
	{
		name: "Write", claude: true, kind: ToolFileWrite,
		names: []string{
			"write", "write_file", "WriteFile", "write_to_file", "create_file", "createFile", "Create", "create", "fs_write",
			"developer__write", "append_file",
		},
		also: []string{
			"apply_patch", "ApplyPatch", "applyPatch", "str_replace_editor", "str_replace_based_edit_tool", "text_editor",
			"developer__text_editor", "file_editor", "editFiles",
		},
		shapes: [][]string{
			{"file_path", "content"},
			{"path", "content"},
			{"filePath", "content"},
			{"TargetFile", "CodeContent"},
			{"path", "file_text"},
			{"file_path", "contents"},
			{"path", "contents"},
			{"path", "text"},
			{"filename", "content"},
		},
	},
	{
		name: "Edit", claude: true, kind: ToolFileEdit,
		names: []string{
			"edit", "edit_file", "editFile", "replace", "str_replace", "StrReplace", "StrReplaceFile", "search_replace", "replace_in_file",
			"replace_file_content", "replace_string_in_file", "insert_edit_into_file", "developer__edit",
		},
		also: []string{
			"apply_patch", "ApplyPatch", "applyPatch", "patch", "str_replace_editor", "str_replace_based_edit_tool", "text_editor",
			"developer__text_editor", "file_editor", "editFiles", "fs_write", "multi_edit", "multiedit", "multi_replace_file_content",
			"multi_replace_string_in_file",
		},
		shapes: [][]string{
			{"file_path", "old_string", "new_string", "replace_all"},
			{"path", "old_string", "new_string", "replace_all"},
			{"file_path", "old_str", "new_str", "change_all"},
			{"path", "old_str", "new_str", "replace_all"},
			{"filePath", "oldString", "newString", "replaceAll"},
			{"TargetFile", "TargetContent", "ReplacementContent", "AllowMultiple"},
			{"file_path", "old_string", "new_string", "allow_multiple"},
			{"path", "old_text", "new_text", "replace_all"},
			{"path", "edit.old", "edit.new", "edit.replace_all"},
			{"path", "before", "after", ""},
			{"target_file", "", "", ""},
		},
	},
	{
		// One text that may change several files; see patchOps.
		name: "apply_patch", kind: ToolFileEdit, names: []string{"ApplyPatch", "applyPatch", "patch"},
		shapes: [][]string{{"command"}, {"input"}, {"patch"}, {"patchText"}, {"patch_text"}},
	},
	{
		// Editors of which one argument says whether they view, write or edit.
		name: "str_replace_editor", kind: ToolFileEdit,
		names: []string{"str_replace_based_edit_tool", "text_editor", "developer__text_editor", "file_editor"},
	},
	{
		name: "MultiEdit", claude: true, kind: ToolFileEdit,
		names: []string{"multi_edit", "multiedit", "multi_replace_file_content", "multi_replace_string_in_file", "editFiles"},
		shapes: [][]string{
			{"file_path", "edits"},
			{"TargetFile", "ReplacementChunks"},
			{"file_path", "changes"},
			{"filePath", "edits"},
			{"", "replacements"},
			{"path", "edits"},
		},
	},
	{
		name: "NotebookEdit", claude: true, kind: ToolFileEdit, names: []string{"notebook_edit", "edit_notebook_file", "edit_notebook", "EditNotebook"},
		shapes: [][]string{{"notebook_path", "new_source"}, {"filePath", "newCode"}, {"target_notebook", "new_string"}},
	},
	{
		name: "Delete", kind: ToolFileWrite, names: []string{"delete_file", "delete", "deleteFile", "DeleteFile"},
		shapes: [][]string{{"path"}, {"target_file"}, {"file_path"}, {"filePath"}},
	},
	{
		name: "Read", claude: true, kind: ToolFileRead,
		names: []string{
			"read", "read_file", "ReadFile", "readFile", "view", "View", "view_file", "fs_read", "developer__read", "read_many_files",
			"ReadMediaFile", "view_image", "NotebookRead",
		},
		shapes: [][]string{
			{"file_path", "offset", "limit"},
			{"path", "line_offset", "n_lines"},
			{"path", "offset", "limit"},
			{"filePath", "offset", "limit"},
			{"absolute_path", "offset", "limit"},
			{"target_file", "offset", "limit"},
			{"AbsolutePath", "", ""},
			{"notebook_path", "", ""},
		},
	},
	{
		name: "Grep", claude: true, kind: ToolFileRead,
		names: []string{"grep", "rg", "grep_search", "search_file_content", "search_files", "codebase_search", "semantic_search", "SemanticSearch"},
		shapes: [][]string{
			{"pattern", "path", "glob"},
			{"pattern", "dir_path", "include"},
			{"Query", "SearchPath", ""},
			{"regex", "path", "file_pattern"},
			{"query", "", "includePattern"},
		},
	},
	{
		name: "Glob", claude: true, kind: ToolFileRead, names: []string{"glob", "file_search", "find_by_name", "glob_file_search", "findFiles"},
		shapes: [][]string{
			{"pattern", "path"},
			{"Pattern", "SearchDirectory"},
			{"glob_pattern", "target_directory"},
			{"query", ""},
			{"pattern", "dir_path"},
		},
	},
	{
		name: "LS", claude: true, kind: ToolFileRead,
		names: []string{"ls", "list", "list_dir", "list_files", "list_directory", "listDirectory", "tree", "developer__tree"},
		shapes: [][]string{
			{"path"}, {"directory_path"}, {"dir_path"}, {"DirectoryPath"}, {"target_directory"}, {"relative_workspace_path"},
		},
	},
	{
		name: "WebFetch", claude: true, kind: ToolWeb,
		names: []string{
			"web_fetch", "webfetch", "fetch", "FetchUrl", "FetchURL", "fetch_url", "fetch_webpage", "fetch_web_page", "read_url_content",
			"read_web_page", "web_extract", "agentic_fetch", "download", "browser_navigate", "browser_action", "open_browser_page",
		},
		shapes: [][]string{{"url", "prompt"}, {"Url", ""}, {"URL", ""}, {"uri", ""}},
	},
	{
		name: "WebSearch", claude: true, kind: ToolWeb,
		names:  []string{"web_search", "websearch", "google_web_search", "search_web", "SearchWeb"},
		shapes: [][]string{{"query"}, {"search_term"}, {"q"}, {"Query"}},
	},
	{
		name: "Agent", claude: true, kind: ToolAgent,
		names: []string{
			"Task", "task", "agent", "spawn_agent", "spawn", "subagent", "invoke_subagent", "browser_subagent", "runSubagent", "run_subagent",
			"use_subagent", "use_subagents", "delegate", "delegate_task", "dispatch_agent", "new_task", "Subagent",
		},
		shapes: [][]string{
			{"prompt", "description", "subagent_type"},
			{"message", "", "agent_type"},
			{"task", "description", "subagent_type"},
			{"Task", "TaskName", ""},
			{"context", "", ""},
		},
	},
	{
		// The tool that calls any MCP server's tool; the server is an argument.
		name: "call_mcp_tool", kind: ToolMCP,
		names: []string{"use_mcp_tool", "CallMcpTool", "access_mcp_resource", "read_mcp_resource", "ReadMcpResourceTool", "FetchMcpResource", "list_mcp_resources", "ListMcpResourcesTool"},
	},
	{
		name: "TodoWrite", claude: true, kind: ToolOther,
		names: []string{"todo_write", "todowrite", "todos", "update_todo", "update_plan", "manage_todo_list", "SetTodoList", "write_todos", "todo_list"},
	},
	{
		name: "AskUserQuestion", claude: true, kind: ToolOther,
		names:  []string{"ask_user", "AskUser", "AskQuestion", "ask_user_question", "ask_question", "ask_followup_question", "request_user_input", "question", "vscode_askQuestions"},
		shapes: [][]string{{"questions"}},
	},
	{name: "ExitPlanMode", claude: true, kind: ToolOther, names: []string{"exit_plan_mode", "ExitSpecMode"}, shapes: [][]string{{"plan"}}},
	{name: "BashOutput", claude: true, kind: ToolOther, names: []string{"read_bash", "command_status", "job_output", "get_terminal_output"}},
	{name: "KillShell", claude: true, kind: ToolOther, names: []string{"KillBash", "stop_bash", "job_kill", "kill_terminal"}},
}

// factTable says under which names arguments hold a fact, in the order in which
// they are looked for. A dot leads into an object or into the first item of an
// array.
//
// line, file and address are those of them that mean the same in a tool that
// nobody knows; content and newText hold what is written, editor what is done.
var factTable = struct {
	command, shell, typed, code, language, path, url, server, tool, inner, patch []string

	line, file, address, content, newText, editor []string
}{
	command:  []string{"command", "CommandLine", "commandLine", "command_line", "cmd", "script"},
	shell:    []string{"command", "CommandLine", "commandLine", "command_line", "cmd", "script", "value"}, // value: its only argument
	typed:    []string{"chars", "input", "Input", "text", "command"},                                      // into a program that runs already
	code:     []string{"code", "script", "source"},
	language: []string{"language", "lang", "Language"},
	path: []string{
		"file_path", "path", "filePath", "TargetFile", "AbsolutePath", "target_file", "absolute_path", "notebook_path", "target_notebook",
		"filename", "FilePath", "file", "operations.path", "replacements.filePath", "paths.", "files.", "file_paths.",
		"directory_path", "DirectoryPath", "dir_path", "dirPath", "SearchPath", "SearchDirectory", "target_directory", "directory", "folder",
		"relative_workspace_path",
	},
	url:    []string{"url", "Url", "URL", "uri", "urls.", "Urls."},
	server: []string{"server", "server_name", "serverName", "ServerName", "mcp_server_name"},
	tool:   []string{"tool", "tool_name", "toolName", "ToolName", "name"},
	inner:  []string{"arguments", "Arguments"}, // of the MCP server's tool
	patch:  []string{"command", "input", "patch", "patchText", "patch_text", "value"},

	line: []string{"command", "CommandLine", "commandLine", "command_line", "cmd"},
	file: []string{
		"file_path", "path", "filePath", "TargetFile", "AbsolutePath", "target_file", "absolute_path", "notebook_path", "target_notebook", "FilePath",
	},
	address: []string{"url", "Url", "URL", "uri"},
	content: []string{"content", "CodeContent", "file_text", "contents"},
	newText: []string{"new_string", "new_str", "newString", "ReplacementContent", "new_text"},
	editor:  []string{"command"},
}
