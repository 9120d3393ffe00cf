package condition

import (
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/condition/shell"
	"github.com/hookd/hookd/protocol"
)

// facts are what conditions know of one call. They are worked out when they are
// asked for, and serve one goroutine.
type facts struct {
	req   *protocol.Request
	lines *shell.Reader
	now   func() time.Time

	tool     string
	args     protocol.Object
	argsRead bool
	known    *protocol.ToolFacts
	line     *shell.Line
}

func newFacts(req *protocol.Request, lines *shell.Reader, now func() time.Time) *facts {
	return &facts{req: req, lines: lines, now: now, tool: req.Tool()}
}

// member returns a param of the subject, or one that belongs to it.
func (f *facts) member(name string) jsontext.Value {
	if v := f.req.Subject.Get(name); v != nil {
		return v
	}
	return f.req.Fixed.Get(name)
}

// arguments returns the tool's arguments.
func (f *facts) arguments() protocol.Object {
	if !f.argsRead {
		f.argsRead = true
		if v := f.member("arguments"); v != nil && v.Kind() == '{' {
			f.args, _ = protocol.ParseObject(v)
		}
	}
	return f.args
}

// facts returns what is known of the tool call.
func (f *facts) facts() *protocol.ToolFacts {
	if f.known == nil {
		f.known = &protocol.ToolFacts{}
		if f.tool != "" {
			*f.known = protocol.ReadToolFacts(f.tool, f.arguments())
		}
	}
	return f.known
}

// paths returns all files that the call names.
func (f *facts) paths() []string {
	if list := protocol.ToolPaths(f.tool, f.arguments()); len(list) > 0 {
		return list
	}
	if path := f.facts().Path; path != "" {
		return []string{path}
	}
	return nil
}

// shell returns what the call's shell line runs.
func (f *facts) shell() *shell.Line {
	if f.line != nil {
		return f.line
	}
	switch facts := f.facts(); {
	case isPowerShell(f.tool):
		f.line = &shell.Line{Unresolved: true, Why: []string{"the line is for PowerShell, which can't be read here"}}
	case facts.Command != "":
		f.line = f.lines.Read(facts.Command)
		if facts.Opaque {
			f.line.Unresolved = true
			f.line.Why = append(f.line.Why, "what is typed is a part of a line, or the arguments say different things")
		}
	case facts.Opaque:
		f.line = &shell.Line{Unresolved: true, Why: []string{"code is run that is no shell's"}}
	case facts.Kind == protocol.ToolShell && len(f.arguments()) > 0 && !f.emptyCommand():
		f.line = &shell.Line{Unresolved: true, Why: []string{"no command was found in the tool's arguments"}}
	default:
		f.line = &shell.Line{}
	}
	return f.line
}

// emptyCommand reports whether the command is there, and is empty.
func (f *facts) emptyCommand() bool {
	v := f.arguments().Get("command")
	return v != nil && v.Kind() == '"' || protocol.SameTool(f.tool, "write_stdin") // what types nothing
}

func isPowerShell(tool string) bool {
	tool = strings.ToLower(tool)
	return strings.Contains(tool, "powershell") || strings.Contains(tool, "pwsh")
}

// message returns what was said: the user's message, the last one of a request
// to a model, an answer, or what is about to be shown.
func (f *facts) message() string {
	for _, name := range []string{"message", "response", "output", "prompt"} {
		if v := f.member(name); v != nil {
			return said(v)
		}
	}
	if v := f.member("messages"); v != nil && v.Kind() == '[' {
		if list, _ := protocol.Items(v); len(list) > 0 {
			return said(list[len(list)-1])
		}
	}
	if v := f.member("request"); v != nil && v.Kind() == '{' {
		request, _ := protocol.ParseObject(v)
		for _, name := range []string{"input", "last_message"} {
			if v := request.Get(name); v != nil {
				return said(v)
			}
		}
	}
	return ""
}

// said returns the text of a message, or of its content.
func said(v jsontext.Value) string {
	if v.Kind() == '{' {
		message, _ := protocol.ParseObject(v)
		if v = message.Get("content"); v == nil {
			return ""
		}
	}
	return protocol.ContentText(v)
}

func (f *facts) model() string {
	if v := f.member("model"); v != nil && v.Kind() == '"' {
		return protocol.Unquote(v)
	}
	return f.req.MetaString("model")
}

func (f *facts) stage() string {
	if f.req.Stage == nil {
		return ""
	}
	return string(f.req.Stage.Name)
}

// fieldNames returns the names of the fields.
func fieldNames() []string {
	return []string{
		"tool", "kind", "command", "path", "paths", "url", "server", "args", "agent", "session", "cwd", "message", "model", "stage", "shell",
	}
}

// field returns the value of a field other than shell.
func (f *facts) field(name string) any {
	switch name {
	case "tool":
		return f.tool
	case "kind":
		return string(f.facts().Kind)
	case "command":
		return f.facts().Command
	case "path":
		return f.facts().Path
	case "paths":
		return f.paths()
	case "url":
		return f.facts().URL
	case "server":
		return f.facts().Server
	case "args":
		return jsontext.Value(f.arguments().AppendJSON(nil))
	case "agent":
		return f.req.MetaString("agent")
	case "session":
		return f.req.MetaString("session_id")
	case "cwd":
		return f.req.MetaString("cwd")
	case "message":
		return f.message()
	case "model":
		return f.model()
	case "stage":
		return f.stage()
	}
	return nil
}
