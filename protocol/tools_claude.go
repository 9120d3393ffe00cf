package protocol

import (
	"cmp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// ToolCall is a tool's name with its arguments.
type ToolCall struct {
	Name      string
	Arguments Object
}

// ClaudeToolCall translates a call into the shape that Claude Code uses, for
// scripts that were written for it: Bash{command}, Write{file_path, content},
// Edit{file_path, old_string, new_string, replace_all}, Read{file_path} and so
// on. Tools and arguments without a counterpart stay as they are. A patch of
// one file becomes a Write or an Edit; of several files it becomes an Edit of
// the first that still holds the patch, see [ClaudeToolCalls]. Arguments that
// say the same thing differently, such as "command" and "CommandLine", hold all
// that they say, a line each.
func ClaudeToolCall(name string, args Object) (string, Object) {
	row := toolNamed(name)
	plain, doubt := plainly(name, args, row != nil && row.kind != ToolMCP)
	if doubt && row != nil && row.name == "call_mcp_tool" && len(sayings(name, args)) > 0 {
		return name, args // which tool it calls is not known
	}
	args = plain
	switch {
	case row == nil:
		return claudeMCP(name), args
	case row.name == "call_mcp_tool":
		return claudeMCPCall(name, args)
	case row.name == "apply_patch":
		calls := ClaudeToolCalls(name, args)
		if len(calls) == 1 {
			return calls[0].Name, calls[0].Arguments
		}
		return "Edit", claudeFirst(args, "file_path", Quote(calls[0].Arguments.textOf("file_path")))
	}
	if target := editorTarget(name, args); target != "" {
		row = toolNamed(target)
	}
	if !row.claude {
		return name, args
	}
	out := row.toClaude(args)
	if row.name == "MultiEdit" {
		out = editsToClaude(out)
	}
	if name == "Task" {
		return name, out // what Claude Code called Agent before
	}
	return row.name, out
}

// ClaudeToolCalls is [ClaudeToolCall] for scripts that expect one file per
// call: a patch becomes a Write for every file it adds and an Edit for every
// other one. Every other tool gives one call.
func ClaudeToolCalls(name string, args Object) []ToolCall {
	if row := toolNamed(name); row == nil || row.name != "apply_patch" {
		claude, out := ClaudeToolCall(name, args)
		return []ToolCall{{claude, out}}
	}
	args, _ = plainly(name, args, true)
	member, text := patchMember(args)
	ops := parsePatch(text)
	switch {
	case len(ops) == 0 && args.Get("old_string") == nil:
		return []ToolCall{{name, args}}
	case len(ops) == 0: // a tool of this name that replaces a text
		return []ToolCall{{"Edit", toolNamed("Edit").toClaude(args)}}
	}
	rest := slices.DeleteFunc(slices.Clone(args), func(m Member) bool { return m.Name == member || patchOwn(m.Name) })
	calls := make([]ToolCall, len(ops))
	for i := range ops {
		calls[i] = ops[i].claudeCall(rest)
	}
	return calls
}

// NativeArguments translates arguments that were changed in Claude Code's shape
// back into the shape in which the call was made: native is what the call had,
// claude what became of [ClaudeToolCall]'s answer to it. What did not change
// keeps its bytes; what is gone from claude is taken out.
func NativeArguments(name string, native, claude Object) Object {
	target, before := ClaudeToolCall(name, native)
	if slices.EqualFunc(before, claude, func(a, b Member) bool { return a.Name == b.Name && SameValue(a.Value, b.Value) }) {
		return native
	}
	row := toolNamed(name)
	plain, _ := plainly(name, native, true)
	switch {
	case row == nil:
		return restored(name, native, before, claude)
	case row.name == "call_mcp_tool":
		if target == name {
			return claude
		}
		return nativeMCPArguments(native, restored(innerName(native), innerArguments(native), before, claude))
	case row.name == "apply_patch" && plain.Get("old_string") == nil:
		out := nativePatch(plain, before, claude)
		if member, _ := patchMember(plain); member != "" && before.Get(member) == nil {
			out = everywhere(name, native, out, member, out.Get(member))
		}
		return out
	}
	if row = toolNamed(target); row == nil || !row.claude {
		return restored(name, native, before, claude)
	}
	out := slices.Clone(native)
	for _, m := range before {
		if claude.Get(m.Name) == nil {
			out = everywhere(name, native, out, row.nativeName(plain, m.Name), nil)
		}
	}
	for _, m := range claude {
		if SameValue(before.Get(m.Name), m.Value) {
			continue
		}
		to := row.nativeName(plain, m.Name)
		out = everywhere(name, native, out, to, nativeValue(row, m.Name, look(plain, to), m.Value))
	}
	return out
}

// toClaude renames the arguments of a tool.
func (r *toolRow) toClaude(args Object) Object {
	out := args
	for column, name := range r.claudeNames() {
		from := r.spelling(args, column)
		if from == "" {
			continue
		}
		value := look(args, from)
		if name == "command" && value.Kind() == '[' {
			value = Quote(commandFact(args, []string{from}))
		}
		if at := slices.IndexFunc(out, func(m Member) bool { return m.Name == from }); at >= 0 {
			out = slices.Clone(out)
			out[at] = Member{name, value}
			continue
		}
		out = append(slices.Clone(out), Member{name, value})
	}
	// What was inside of an object stands beside it now.
	for _, shape := range r.shapes {
		for _, from := range shape {
			if outer, _, dotted := strings.Cut(from, "."); dotted && args.Get(outer).Kind() == '{' {
				out = without(out, outer)
			}
		}
	}
	return out
}

func (r *toolRow) claudeNames() []string {
	if len(r.shapes) == 0 {
		return nil
	}
	return r.shapes[0]
}

// spelling returns how args spell the argument of a column, or "". Claude
// Code's own name goes before all others.
func (r *toolRow) spelling(args Object, column int) string {
	for _, shape := range r.shapes {
		if from := shape[column]; from != "" && single(args, from) {
			return from
		}
	}
	return ""
}

// single reports whether a path leads to a value, and not into an array, which
// may hold more than one.
func single(args Object, path string) bool {
	outer, _, dotted := strings.Cut(path, ".")
	return look(args, path) != nil && (!dotted || args.Get(outer).Kind() == '{')
}

// nativeName returns how the call that had the arguments native spells Claude
// Code's argument name. One that the call did not have is spelled as in the
// shape which is most like it.
func (r *toolRow) nativeName(native Object, name string) string {
	column := slices.Index(r.claudeNames(), name)
	if column < 0 {
		return name
	}
	if from := r.spelling(native, column); from != "" {
		return from
	}
	best, most := name, 0
	for _, shape := range r.shapes {
		n := 0
		for _, from := range shape {
			if from != "" && single(native, from) {
				n++
			}
		}
		if n > most && shape[column] != "" {
			best, most = shape[column], n
		}
	}
	return best
}

// nativeValue gives a changed value the form in which the agent wrote it.
func nativeValue(row *toolRow, name string, old, value jsontext.Value) jsontext.Value {
	switch {
	case name == "command" && old.Kind() == '[' && value.Kind() == '"':
		argv, err := stringsValue(name, old, false)
		if _, ok := shellLine(argv); err != nil || !ok {
			argv = []string{"bash", "-c", ""}
		}
		argv[2] = Unquote(value)
		return quoteList(argv)
	case row.name == "MultiEdit" && name == "edits" && value.Kind() == '[':
		return nativeEdits(old, value)
	}
	return value
}

func quoteList(list []string) jsontext.Value {
	b := []byte{'['}
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendString(b, s)
	}
	return append(b, ']')
}

// editsToClaude renames the arguments of each of several edits.
func editsToClaude(args Object) Object {
	edits := args.Get("edits")
	if edits.Kind() != '[' {
		return args
	}
	items, _ := Items(edits)
	row, file := toolNamed("Edit"), jsontext.Value(nil)
	b := []byte{'['}
	for i, it := range items {
		if i > 0 {
			b = append(b, ',')
		}
		if it.Kind() != '{' {
			b = append(b, it...)
			continue
		}
		edit, _ := ParseObject(it)
		edit = row.toClaude(edit)
		if file == nil {
			file = edit.Get("file_path")
		}
		b = edit.AppendJSON(b)
	}
	args = args.With("edits", append(b, ']'))
	if args.Get("file_path") == nil && file != nil {
		args = claudeFirst(args, "file_path", file)
	}
	return args
}

// nativeEdits is the way back from editsToClaude.
func nativeEdits(old, edits jsontext.Value) jsontext.Value {
	var natives []jsontext.Value
	if old.Kind() == '[' {
		natives, _ = Items(old)
	}
	items, _ := Items(edits)
	b := []byte{'['}
	for i, it := range items {
		if i > 0 {
			b = append(b, ',')
		}
		if len(natives) == 0 || it.Kind() != '{' || natives[min(i, len(natives)-1)].Kind() != '{' {
			b = append(b, it...)
			continue
		}
		native, _ := ParseObject(natives[min(i, len(natives)-1)])
		edit, _ := ParseObject(it)
		b = NativeArguments("Edit", native, edit).AppendJSON(b)
	}
	return append(b, ']')
}

// editorTarget says what a call of an editor tool does, as the name of Claude
// Code's tool, or "" where the tool is not such an editor.
func editorTarget(name string, args Object) string {
	fallback := "Edit"
	switch row := toolNamed(name); {
	case name == "fs_write":
		fallback = "Write"
	case row == nil || row.name != "str_replace_editor":
		return ""
	}
	plain, _ := plainly(name, args, true)
	verbs := strings.Split(textFact(plain, factTable.editor), "\n")
	if len(verbs) == 1 {
		return cmp.Or(editorVerb(verbs[0]), fallback)
	}
	// Which of them it does is not known: one that its name does not say, and
	// that changes the file.
	for _, verb := range verbs {
		if does := editorVerb(verb); does != "" && does != "Read" && does != fallback {
			return does
		}
	}
	return fallback
}

// editorVerb says what a command of an editor tool does, or "".
func editorVerb(verb string) string {
	switch verb {
	case "view", "read":
		return "Read"
	case "create", "write", "append":
		return "Write"
	case "str_replace", "insert", "replace", "undo_edit", "edit_file", "diff":
		return "Edit"
	}
	return ""
}

// claudeMCP writes the name of an MCP server's tool as Claude Code does, where
// it says for sure which part is the server.
func claudeMCP(name string) string {
	if strings.HasPrefix(name, mcpGemini) || strings.HasPrefix(name, mcpCursor) {
		return name
	}
	if server, tool, ok := splitMCP(name); ok && tool != "" {
		return mcpClaude + server + "__" + tool
	}
	return name
}

func claudeMCPCall(name string, args Object) (string, Object) {
	server, tool := textFact(args, factTable.server), textFact(args, []string{"tool_name", "toolName", "ToolName", "mcp_tool_name"})
	if server == "" || tool == "" {
		return name, args
	}
	return mcpClaude + server + "__" + tool, innerArguments(args)
}

func nativeMCPArguments(native, claude Object) Object {
	for _, name := range factTable.inner {
		switch v := native.Get(name); v.Kind() {
		case '{':
			return native.With(name, claude.AppendJSON(nil))
		case '"':
			return native.With(name, Quote(string(claude.AppendJSON(nil))))
		}
	}
	return claude
}

// textOf returns a text member, or "".
func (o Object) textOf(name string) string { return MetaString(o, name) }

// claudeFirst puts a member before all others, or over the one that is there.
func claudeFirst(o Object, name string, value jsontext.Value) Object {
	if o.Get(name) != nil {
		return o.With(name, value)
	}
	return append(Object{{name, value}}, o...)
}

// without takes a member out; a dotted name out of an object.
func without(o Object, path string) Object {
	name, rest, dotted := strings.Cut(path, ".")
	if dotted && o.Get(name).Kind() == '{' {
		inner, _ := ParseObject(o.Get(name))
		return o.With(name, without(inner, rest).AppendJSON(nil))
	}
	return slices.DeleteFunc(slices.Clone(o), func(m Member) bool { return m.Name == name })
}

// put sets a member; a dotted name in an object.
func put(o Object, path string, value jsontext.Value) Object {
	name, rest, dotted := strings.Cut(path, ".")
	if dotted {
		var inner Object
		if v := o.Get(name); v.Kind() == '{' {
			inner, _ = ParseObject(v)
		}
		return o.With(name, put(inner, rest, value).AppendJSON(nil))
	}
	return o.With(name, value)
}
