// Package windsurf speaks the hook format of Windsurf's Cascade, also after it
// became Devin Desktop. Payloads hold what an event is about in tool_info; the
// only answers are to go on and, before something happens, not to.
package windsurf

import (
	"errors"

	"github.com/hookd/hookd/agent/native"
	"github.com/hookd/hookd/protocol"
)

const (
	before = protocol.StageBeforeTool
	after  = protocol.StageAfterTool
	prompt = protocol.StageUserMessage
	stop   = protocol.StageStop
)

// New returns the dialect.
func New() *native.Format {
	return &native.Format{
		Agent: "windsurf", Table: rows(),
		EventKeys: []string{"agent_action_name"},
		Decode:    decode,
		Render:    render,
	}
}

func rows() []native.Row {
	return []native.Row{
		{Event: "pre_user_prompt", Stage: prompt, Block: true, Notify: true},
		{Event: "pre_read_code", Stage: before, Block: true, Notify: true},
		{Event: "pre_write_code", Stage: before, Block: true, Notify: true},
		{Event: "pre_run_command", Stage: before, Block: true, Notify: true},
		{Event: "pre_mcp_tool_use", Stage: before, Block: true, Notify: true},
		{Event: "post_read_code", Stage: after},
		{Event: "post_write_code", Stage: after},
		{Event: "post_run_command", Stage: after, Note: "without its output and exit code"},
		{Event: "post_mcp_tool_use", Stage: after},
		{Event: "post_cascade_response", Stage: stop, Note: "the agent does not wait"},
		{Event: "post_cascade_response_with_transcript", Stage: stop, Note: "as post_cascade_response; register one of them"},
	}
}

func decode(c *native.Call) error {
	c.SetMeta("session_id", "trajectory_id")
	c.SetMeta("turn_id", "execution_id")
	c.SetMeta("model", "model_name")
	info := c.Sub("tool_info")
	if cwd := protocol.MetaString(info, "cwd"); cwd != "" {
		c.SetMetaText("cwd", cwd)
	} else {
		c.SetMeta("cwd", "cwd") // of the client: Windsurf says it only of commands
	}
	switch c.Stage {
	case before, after:
		if err := setTool(c, info); err != nil {
			return err
		}
		if c.Stage == after {
			c.SetResult(info.Get("mcp_result"), false)
		}
	case prompt:
		return c.SetMessage(info.Get("user_prompt"))
	case stop:
		c.SetRequest(append(protocol.Object{{Name: "reason", Value: protocol.Quote("end_turn")}}, native.Pick(info, "last_message=response", "transcript_path")...))
	}
	return nil
}

// setTool names the tool that an event is about, which only those of MCP tools
// say, by a name that Cascade's own tools have.
func setTool(c *native.Call, info protocol.Object) error {
	need, name := "file_path", ""
	args := info
	switch c.Row.Event {
	case "pre_read_code", "post_read_code":
		name = "view_file"
	case "pre_write_code", "post_write_code":
		name, args = written(info)
	case "pre_run_command", "post_run_command":
		need, name = "command_line", "run_command"
	default:
		return setMCP(c, info)
	}
	if info.Get(need).Kind() != '"' {
		return errors.New("tool_info." + need + " is missing")
	}
	return c.SetTool(name, args.AppendJSON(nil))
}

// written tells a new file, whose one edit replaces nothing, from edits.
func written(info protocol.Object) (name string, args protocol.Object) {
	edits := info.Get("edits")
	if edits.Kind() != '[' {
		return "multi_edit", info
	}
	items, _ := protocol.Items(edits)
	if len(items) != 1 || items[0].Kind() != '{' {
		return "multi_edit", info
	}
	edit, _ := protocol.ParseObject(items[0])
	old, text := edit.Get("old_string"), edit.Get("new_string")
	if old.Kind() != '"' || text.Kind() != '"' || len(edit) != 2 {
		return "multi_edit", info
	}
	args = native.Pick(info, "file_path")
	if len(old) == 2 {
		return "write_to_file", append(args, protocol.Member{Name: "content", Value: text})
	}
	return "edit_file", append(args, edit...)
}

func setMCP(c *native.Call, info protocol.Object) error {
	server, tool := protocol.MetaString(info, "mcp_server_name"), protocol.MetaString(info, "mcp_tool_name")
	if tool == "" {
		return errors.New("tool_info.mcp_tool_name is missing")
	}
	if err := c.SetTool("mcp__"+server+"__"+tool, info.Get("mcp_tool_arguments")); err != nil {
		return err
	}
	facts := c.Facts()
	facts.Kind, facts.Server = protocol.ToolMCP, server
	c.SetFacts(facts, nil)
	return nil
}

// render writes a plan. What is written to stderr at an exit code of 0 is for
// the user, who sees it where show_output is set.
func render(c *native.Call, p *native.Plan) native.Answer {
	a := native.RenderExit(c, p)
	if a.ExitCode == 0 && p.Notice != "" {
		a.Stderr = []byte(p.Notice)
	}
	return a
}
