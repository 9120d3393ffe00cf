package cursor

import (
	"errors"
	"path"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/agent/native"
	"github.com/hookd/hookd/protocol"
)

// mcpPrefix stands before the names of MCP tools at preToolUse, and is put
// there at the events that leave it out.
const mcpPrefix = "MCP:"

func decode(c *native.Call) error {
	c.SetMeta("session_id", "conversation_id", "session_id")
	c.SetMeta("turn_id", "generation_id")
	c.SetMeta("model", "model_id", "model")
	c.SetMeta("agent_id", "subagent_id")
	c.SetMeta("agent_type", "subagent_type")
	setFolder(c)
	c.SetCallID("tool_use_id", "tool_call_id")
	setEvent(c)
	switch c.Stage {
	case before:
		return decodeCall(c)
	case after:
		return decodeResult(c)
	case prompt:
		return c.SetMessage(c.Payload.Get("prompt"))
	case start:
		c.SetRequest(append(protocol.Object{{Name: "event", Value: protocol.Quote(c.Event)}}, c.Pick("composer_mode", "is_background_agent")...))
	case spawn:
		c.SetRequest(c.Pick("input=task", "subagent_type", "model=subagent_model", "is_parallel_worker"))
	case compact:
		c.SetRequest(c.Pick("trigger", "tokens=context_tokens", "context_window_size", "message_count", "messages_to_compact"))
	case stop:
		c.SetRequest(c.Pick("reason=status", "last_message=summary", "loop_count", "task", "modified_files"))
	}
	return nil
}

// setFolder takes the first of the workspace's folders, or the one below it in
// which a command is to run. A command that runs elsewhere, as the model chooses,
// still belongs to the workspace.
func setFolder(c *native.Call) {
	cwd, root := c.Text("cwd"), c.FirstText("workspace_roots")
	if root != "" {
		below := strings.TrimSuffix(path.Clean(root), "/") + "/"
		if !strings.HasPrefix(path.Clean(cwd)+"/", below) {
			cwd = root
		}
	}
	c.SetMetaText("cwd", cwd)
}

func decodeCall(c *native.Call) error {
	name, args, err := call(c)
	if err != nil {
		return err
	}
	return c.SetTool(name, args)
}

// call names the tool and the arguments of the events that are about one.
func call(c *native.Call) (name string, args jsontext.Value, err error) {
	need := "tool_input"
	switch c.Row.Event {
	case "beforeShellExecution", "afterShellExecution":
		name, need = "Shell", "command"
		args = c.Pick("command", "cwd").AppendJSON(nil)
	case "beforeReadFile", "beforeTabFileRead":
		name, need = "Read", "file_path"
		args = c.Pick("file_path", "content", "attachments").AppendJSON(nil)
	case "afterFileEdit", "afterTabFileEdit":
		name, need = "MultiEdit", "file_path"
		args = c.Pick("file_path", "edits").AppendJSON(nil)
	case "beforeMCPExecution", "afterMCPExecution":
		name, args = c.Text("tool_name"), c.Payload.Get("tool_input")
		if name != "" && !strings.HasPrefix(name, mcpPrefix) {
			name = mcpPrefix + name
		}
	default:
		name, args = c.Text("tool_name"), c.Payload.Get("tool_input")
	}
	if c.First(need) == nil {
		return "", nil, errors.New(need + " is missing")
	}
	return name, args, nil
}

func decodeResult(c *native.Call) error {
	if err := c.SetTool(c.Text("tool_name"), c.Payload.Get("tool_input")); err != nil {
		return err
	}
	if c.Row.Event == "postToolUseFailure" {
		c.SetResult(c.First("error_message"), true)
	} else {
		c.SetResult(native.Unwrap(c.First("tool_output")), false)
	}
	if v := c.First("duration"); v.Kind() == '0' {
		c.SetSubject("duration_ms", v)
	}
	return nil
}

func setEvent(c *native.Call) {
	switch c.Kind {
	case protocol.EventSessionStart:
		c.SetEvent(c.Pick("source=composer_mode", "is_background_agent"))
	case protocol.EventSessionEnd:
		c.SetEvent(c.Pick("reason", "status=final_status", "duration_ms", "message=error_message"))
	case protocol.EventSubagentStart, protocol.EventSubagentStop:
		c.SetEvent(c.Pick("agent_id=subagent_id", "agent_type=subagent_type", "status", "task", "summary", "duration_ms"))
	case protocol.EventLLMResponse:
		c.SetEvent(append(c.Pick("content=text", "model"), usage(c)...))
	case protocol.EventLLMDelta:
		c.SetEvent(append(protocol.Object{{Name: "type", Value: protocol.Quote("thought")}}, c.Pick("content=text", "duration_ms")...))
	case protocol.EventToolExecEnd:
		c.SetEvent(ran(c))
	}
}

func usage(c *native.Call) protocol.Object {
	counts := c.Pick("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
	if counts == nil {
		return nil
	}
	return protocol.Object{{Name: "usage", Value: counts.AppendJSON(nil)}}
}

// ran tells of a call that has been run.
func ran(c *native.Call) protocol.Object {
	var out protocol.Object
	if name, args, err := call(c); err == nil {
		out = append(native.SayIf(nil, "tool", name), protocol.Member{Name: "arguments", Value: args})
	}
	return append(out, c.Pick("duration_ms=duration", "preview=output", "preview=result_json")...)
}
