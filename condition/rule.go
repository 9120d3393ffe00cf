package condition

import (
	"path"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/protocol"
)

// rule is a permission rule as Claude Code has them: a tool, and maybe which of
// its calls, such as Bash(git *), Edit(src/**) or mcp__github__*. It speaks of
// the tool under all names that agents have for it.
type rule struct {
	tool string
	// spec is what stands in the parentheses; "" = all calls.
	spec string
	// domain is the host name of "domain:…".
	domain string
	// path is set for rules about files.
	path *pathPattern
}

// isRule reports whether a text is a rule and no expression. A rule is one tool's
// name, alone or with parentheses that end with the text. The name begins with
// an upper-case letter or "mcp__", which no field and no function does, or it
// is a name under which an agent knows a common tool.
func isRule(text string) bool {
	text = strings.TrimSpace(text)
	name, _, open := strings.Cut(text, "(")
	if !isToolName(name) || open && !strings.HasSuffix(text, ")") {
		return false
	}
	if name[0] >= 'A' && name[0] <= 'Z' || strings.HasPrefix(name, "mcp__") {
		return true
	}
	if slices.Contains(fieldNames(), name) || slices.Contains(functionNames(), name) || name == "true" || name == "false" || name == "nil" || name == "not" {
		return false
	}
	return protocol.ToolKindOf(name) != protocol.ToolOther || protocol.ToolAliases(name) != nil
}

func isToolName(name string) bool {
	for i := 0; i < len(name); i++ {
		c := name[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		if !letter && (i == 0 || (c < '0' || c > '9') && strings.IndexByte("-.:*", c) < 0) {
			return false
		}
	}
	return name != ""
}

// parseRule reads a rule.
func parseRule(text string) (judge, error) {
	start := len(text) - len(strings.TrimLeft(text, " \t\r\n"))
	trimmed := strings.TrimSpace(text)
	name, spec, open := strings.Cut(trimmed, "(")
	r := &rule{tool: name}
	at := start + len(name) + 1
	if strings.Contains(name, "*") && !strings.HasPrefix(name, "mcp__") {
		return nil, errorAt(text, start, "a tool's name has no *, except behind mcp__server__")
	}
	if !open {
		return r, nil
	}
	spec = strings.TrimSuffix(spec, ")")
	if i := unbalanced(spec); i >= 0 {
		return nil, errorAt(text, at+i, "a rule ends at its closing parenthesis: a condition holds one rule; for more, write an expression such as shell.runs('git') || shell.runs('npm')")
	}
	if strings.HasPrefix(name, "mcp__") {
		return nil, errorAt(text, at, "a rule about an MCP server's tool has no parentheses: write an expression about args")
	}
	if r.spec = strings.TrimSpace(spec); r.spec == "" {
		return nil, errorAt(text, at, "nothing stands in the parentheses: leave them out to mean every call of %s", name)
	}
	return r.parseSpec(text, at)
}

// unbalanced returns where a parenthesis closes that was not opened, or -1.
func unbalanced(s string) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '(':
			depth++
		case ')':
			if depth--; depth < 0 {
				return i
			}
		}
	}
	return -1
}

// parseSpec reads what stands in the parentheses, by the kind of the tool.
func (r *rule) parseSpec(text string, at int) (judge, error) {
	domain, isDomain := strings.CutPrefix(r.spec, "domain:")
	switch protocol.ToolKindOf(r.tool) {
	case protocol.ToolWeb:
		if r.domain = strings.ToLower(strings.TrimSpace(domain)); isDomain && r.domain != "" {
			return r, nil
		}
		if protocol.SameTool(r.tool, "WebFetch") {
			return nil, errorAt(text, at, "write which host is meant, as in %s(domain:example.com)", r.tool)
		}
	case protocol.ToolFileRead, protocol.ToolFileWrite, protocol.ToolFileEdit:
		p, err := newPathPattern(r.spec)
		if err != nil {
			return nil, errorAt(text, at, "the pattern can't be read: a [ is not closed")
		}
		r.path = p
	}
	return r, nil
}

func (r *rule) uses() []string {
	fields := []string{"tool"}
	switch kind := protocol.ToolKindOf(r.tool); {
	case r.spec == "":
	case kind == protocol.ToolShell:
		fields = append(fields, "command", "shell")
	case r.domain != "":
		fields = append(fields, "url")
	case r.path != nil:
		fields = append(fields, "paths", "cwd")
	default:
		fields = append(fields, "args")
	}
	return fields
}

// judge answers for a call. A rule never fails: where something is not known, it
// holds.
func (r *rule) judge(f *facts) (bool, string, error) {
	if f.tool == "" {
		return false, "this is no call of a tool", nil
	}
	if why, ok := r.means(f); !ok {
		return false, why, nil
	} else if r.spec == "" {
		return true, why, nil
	}
	var holds bool
	var why string
	switch kind := protocol.ToolKindOf(r.tool); {
	case kind == protocol.ToolShell:
		holds, why = r.meansCommand(f)
	case r.domain != "":
		holds, why = meansHost(r.domain, f.facts().URL)
	case r.path != nil:
		holds, why = r.meansPath(f)
	default:
		holds, why = r.meansText(f)
	}
	return holds, why, nil
}

// means reports whether the call's tool is the rule's.
func (r *rule) means(f *facts) (why string, ok bool) {
	switch {
	case strings.HasPrefix(r.tool, "mcp__"):
		ok = r.meansServer(f)
	case protocol.SameTool(r.tool, f.tool):
		ok = true
	case r.tool == "Edit": // means all tools that change files, as in Claude Code
		ok = f.facts().Kind == protocol.ToolFileEdit || f.facts().Kind == protocol.ToolFileWrite
	case r.tool == "Read":
		ok = f.facts().Kind == protocol.ToolFileRead
	}
	if !ok {
		return f.tool + " is not " + r.tool, false
	}
	return f.tool + " is " + r.tool, true
}

// meansServer reports whether the call's tool is of the rule's MCP server.
func (r *rule) meansServer(f *facts) bool {
	server, tool, _ := strings.Cut(strings.TrimPrefix(r.tool, "mcp__"), "__")
	if tool == "" {
		tool = "*"
	}
	names := append([]string{f.tool}, protocol.ToolAliases(f.tool)...)
	for _, name := range names {
		if protocol.Glob("mcp__"+server+"__"+tool, name) || protocol.Glob("mcp_"+server+"_"+tool, name) {
			return true
		}
	}
	facts := f.facts()
	if facts.Kind != protocol.ToolMCP {
		return false
	}
	if last, ok := strings.CutPrefix(f.tool, "MCP:"); ok { // the server is not said
		return protocol.Glob(tool, last)
	}
	if !protocol.Glob(server, facts.Server) || facts.Server == "" {
		return false
	}
	if tool == "*" || strings.HasSuffix(f.tool, tool) {
		return true
	}
	// A tool that calls the tools of servers names them in its arguments.
	return slices.ContainsFunc(f.arguments(), func(m protocol.Member) bool { return textMatches(tool, m.Value) })
}

// meansCommand reports whether a command of the call's shell line is meant. One
// is enough, wherever in the line it stands.
func (r *rule) meansCommand(f *facts) (bool, string) {
	line := f.shell()
	for i := range line.Commands {
		c := &line.Commands[i]
		plain := strings.Join(append([]string{c.Path}, c.Args...), " ")
		low := strings.ToLower(c.Name) + strings.TrimPrefix(c.Text, c.Name)
		for _, text := range []string{c.Text, c.Source, plain, low} {
			if commandMatches(r.spec, text) {
				return true, "it runs " + text
			}
		}
	}
	if command := f.facts().Command; command != "" && commandMatches(r.spec, strings.TrimSpace(command)) {
		return true, "it runs " + command
	}
	if line.Unresolved {
		return true, "it is not known what it runs: " + strings.Join(line.Why, "; ")
	}
	return false, "no command is like " + r.spec
}

// commandMatches compares a command with a pattern. "git *" and "git:*" also mean
// git alone, and not gitk.
func commandMatches(pattern, text string) bool {
	if head, ok := strings.CutSuffix(pattern, ":*"); ok {
		pattern = head + " *"
	}
	if head, ok := strings.CutSuffix(pattern, " *"); ok && protocol.Glob(head, text) {
		return true
	}
	return protocol.Glob(pattern, text)
}

// meansPath reports whether one of the call's files is meant.
func (r *rule) meansPath(f *facts) (bool, string) {
	paths, cwd := f.paths(), f.req.MetaString("cwd")
	if len(paths) == 0 {
		return true, "it is not known which file it means"
	}
	for _, p := range paths {
		if r.path.matches(p, cwd) {
			return true, p + " is meant"
		}
	}
	return false, "no file is like " + r.spec
}

// meansText reports whether one of the call's arguments is meant: the rule is
// about a tool whose arguments have no names in common.
func (r *rule) meansText(f *facts) (bool, string) {
	for _, m := range f.arguments() {
		if textMatches(r.spec, m.Value) {
			return true, m.Name + " is meant"
		}
	}
	return false, "no argument is like " + r.spec
}

func textMatches(pattern string, v jsontext.Value) bool {
	return v.Kind() == '"' && commandMatches(pattern, protocol.Unquote(v))
}

// clean makes a path comparable: slashes, no "..", and small letters, as many
// systems take them for the same.
func clean(p string) string {
	if len(p) > 2 && p[1] == ':' && p[2] == '\\' { // C:\…
		p = "/" + strings.ReplaceAll(p, `\`, "/")
	}
	return path.Clean(strings.ToLower(p))
}
