package protocol

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// ToolFacts is what is known of a tool call beyond its native name and
// arguments. A field that does not apply is empty.
type ToolFacts struct {
	Kind ToolKind
	// Command is the line that a shell would run, or the text that is typed into
	// one. An argument vector is written as a shell would have to be given it.
	Command string
	// Path is the file or folder, as the call names it: not made absolute, not
	// cleaned. Of several it is the first; [ToolPaths] has them all.
	Path string
	// URL is the address that is fetched.
	URL string
	// Server names the MCP server whose tool it is. It is empty where the call
	// does not say, and a guess for names such as mcp_server_tool.
	Server string
	// Opaque says that the call runs, or may run, something that Command does not
	// hold: code of another language than the shell's, or a part of a line that is
	// typed. It is also set where arguments that say the same thing say different
	// things, so that nobody knows which of them the agent takes: Command, Path and
	// URL then hold all, a line each. [ToolReadings] has them one by one.
	Opaque bool
}

// ReadToolFacts derives the facts of a call from a tool's name and arguments,
// whatever its agent calls them. args must have been checked already. A tool
// that nobody knows is of [ToolOther] or [ToolMCP], and its arguments are read
// by the usual names all the same.
func ReadToolFacts(name string, args Object) ToolFacts {
	plain, doubt := plainly(name, args, true)
	f := readFacts(name, plain)
	if doubt {
		f.Opaque = true
	}
	return f
}

func readFacts(name string, args Object) ToolFacts {
	f := ToolFacts{Kind: ToolKindOf(name)}
	row := toolNamed(name)
	switch f.Kind {
	case ToolShell:
		f.readRun(row, args)
	case ToolFileRead, ToolFileWrite, ToolFileEdit:
		if target := editorTarget(name, args); target != "" {
			f.Kind = ToolKindOf(target)
		}
		if paths := pathsOf(name, args); len(paths) > 0 {
			f.Path = paths[0]
		}
	case ToolWeb:
		f.URL = textFact(args, factTable.url)
		if f.URL == "" {
			f.URL = firstURL(textFact(args, []string{"prompt"}))
		}
		f.Path = textFact(args, factTable.path)
	case ToolMCP:
		f.Server = serverFact(name, args)
		tool := mcpTool(name)
		if row != nil {
			tool = toolNamed(textFact(args, factTable.tool))
			args = innerArguments(args)
		}
		f.readUsual(args)
		if tool != nil && tool.kind == ToolShell {
			f.readRun(tool, args)
		}
	case ToolOther:
		f.readUsual(args)
	}
	return f
}

// readRun reads what a tool of a shell's kind runs.
func (f *ToolFacts) readRun(row *toolRow, args Object) {
	switch row.name {
	case "write_stdin":
		f.readTyped(args)
	case "execute_code":
		f.Command = ""
		switch strings.ToLower(textFact(args, factTable.language)) {
		case "sh", "bash", "shell", "zsh":
			f.Command = textFact(args, factTable.code)
		}
		f.Opaque = f.Command == "" && len(args) > 0
	default:
		f.Command = commandFact(args, factTable.shell)
		// A shell's own tool without a line is for who reads the facts to judge.
		f.Opaque = f.Kind == ToolMCP && f.Command == "" && len(args) > 0
	}
}

// readTyped reads what is typed. Lines that end, and hold no keys but letters,
// are what runs; of another text nobody knows what it becomes.
func (f *ToolFacts) readTyped(args Object) {
	text := strings.ReplaceAll(textFact(args, factTable.typed), "{enter}", "\n")
	if strings.Trim(text, "\x03") == "" { // nothing, or what stops a program
		f.Command = ""
		f.Opaque = !typesNothing(args)
		return
	}
	f.Command = text
	whole := strings.HasSuffix(text, "\n") || strings.HasSuffix(text, "\r")
	keys := strings.ContainsFunc(text, func(c rune) bool { return c < ' ' && c != '\n' && c != '\r' || c == 0x7f })
	f.Opaque = !whole || keys || namesKey(text)
}

// namesKey reports whether a text names a key, such as {up}.
func namesKey(text string) bool {
	for {
		_, rest, ok := strings.Cut(text, "{")
		if !ok {
			return false
		}
		text = rest
		end := strings.IndexByte(text, '}')
		switch name := text[:max(0, end)]; {
		case end < 0:
		case slices.Contains([]string{"up", "down", "left", "right", "backspace", "tab", "delete", "home", "end"}, strings.ToLower(name)):
			return true
		}
	}
}

// typesNothing reports whether a call that types no text has no argument either
// which could be one.
func typesNothing(args Object) bool {
	for _, m := range args {
		if m.Value.Kind() == '"' && len(m.Value) > 2 && !slices.Contains(factTable.typed, m.Name) && !namesSession(m.Name) || m.Value.Kind() == '[' || m.Value.Kind() == '{' {
			return false
		}
	}
	return true
}

// namesSession reports whether an argument says which program it is.
func namesSession(name string) bool {
	name = strings.ToLower(name)
	return strings.HasSuffix(name, "id") || name == "session" || name == "terminal" || name == "explanation" || name == "description"
}

func (f *ToolFacts) readUsual(args Object) {
	f.Command = commandFact(args, factTable.command)
	f.Path = textFact(args, factTable.path)
	f.URL = textFact(args, factTable.url)
}

// ToolPaths returns every file that a call of a file tool names, in order and
// without repetition: a patch may change many, and a rule about files must see
// them all. It is nil where the tool is no file tool.
func ToolPaths(name string, args Object) []string {
	switch ToolKindOf(name) {
	case ToolFileRead, ToolFileWrite, ToolFileEdit:
	default:
		return nil
	}
	if sayings(name, args) == nil {
		return pathsOf(name, args)
	}
	readings, _ := ToolReadings(name, args)
	if readings == nil {
		plain, _ := plainly(name, args, true)
		return pathsOf(name, plain)
	}
	var list []string
	for _, reading := range append(readings, args) {
		for _, p := range pathsOf(name, reading) {
			if !slices.Contains(list, p) {
				list = append(list, p)
			}
		}
	}
	return list
}

// pathsOf is ToolPaths for a call with one reading.
func pathsOf(name string, args Object) []string {
	var list []string
	seen := map[string]bool{}
	add := func(path string) {
		if path != "" && !seen[path] {
			seen[path] = true
			list = append(list, path)
		}
	}
	if row := toolNamed(name); row.name == "apply_patch" {
		for _, op := range parsePatch(textFact(args, factTable.patch)) {
			add(op.path)
			add(op.moved)
		}
	}
	for _, from := range factTable.path {
		for _, v := range lookAnyCase(args, from) {
			if v.Kind() == '"' {
				add(Unquote(v))
			}
		}
	}
	return list
}

// lookAnyCase is lookAll for names whose case is another.
func lookAnyCase(args Object, path string) []jsontext.Value {
	name, rest, deeper := strings.Cut(path, ".")
	var list []jsontext.Value
	for _, m := range args {
		if !sameName(name, m.Name) {
			continue
		}
		values := []jsontext.Value{m.Value}
		if deeper && m.Value.Kind() == '[' {
			values, _ = Items(m.Value)
		}
		if !deeper || rest == "" {
			list = append(list, values...)
			continue
		}
		for _, v := range values {
			if v.Kind() == '{' {
				inner, _ := ParseObject(v)
				list = append(list, lookAnyCase(inner, rest)...)
			}
		}
	}
	return list
}

// textFact returns the first text under one of the names.
func textFact(args Object, names []string) string {
	for _, name := range names {
		for _, v := range lookAll(args, name) {
			if v.Kind() == '"' && len(v) > 2 {
				return Unquote(v)
			}
		}
	}
	return ""
}

// commandFact is textFact for command lines, which may also be argument
// vectors.
func commandFact(args Object, names []string) string {
	for _, name := range names {
		switch v := args.Get(name); v.Kind() {
		case '"':
			if len(v) > 2 {
				return Unquote(v)
			}
		case '[':
			if argv, err := stringsValue(name, v, false); err == nil && len(argv) > 0 {
				return argvText(argv)
			}
		}
	}
	return ""
}

// mcpTool returns the row of what the tool of an MCP server is called there, or
// nil.
func mcpTool(name string) *toolRow {
	_, tool, ok := splitMCP(name)
	if !ok || toolNamed(name) != nil {
		return nil
	}
	if row := toolNamed(tool); row != nil || !strings.HasPrefix(name, mcpGemini) || strings.HasPrefix(name, mcpClaude) {
		return row
	}
	for i := 0; i < len(tool); i++ { // where the server's name ends is a guess
		if tool[i] == '_' {
			if row := toolNamed(tool[i+1:]); row != nil {
				return row
			}
		}
	}
	return nil
}

func serverFact(name string, args Object) string {
	if toolNamed(name) != nil {
		return textFact(args, factTable.server)
	}
	server, _, _ := splitMCP(name)
	return server
}

// innerArguments returns the arguments for the tool of an MCP server, which
// agents write as an object or as JSON in a string.
func innerArguments(args Object) Object {
	for _, name := range factTable.inner {
		v := args.Get(name)
		if v.Kind() == '"' {
			text := jsontext.Value(Unquote(v))
			if CheckValue(text, 0) != nil {
				continue
			}
			v = text
		}
		if v.Kind() == '{' {
			inner, _ := ParseObject(v)
			return inner
		}
	}
	return args
}

// look returns the value at a dotted path, or nil. Arrays give their first item.
func look(args Object, path string) jsontext.Value {
	if list := lookAll(args, path); len(list) > 0 {
		return list[0]
	}
	return nil
}

// lookAll returns the values at a dotted path: one, or one per item where it
// leads through an array.
func lookAll(args Object, path string) []jsontext.Value {
	name, rest, deeper := strings.Cut(path, ".")
	v := args.Get(name)
	switch {
	case v == nil:
		return nil
	case !deeper:
		return []jsontext.Value{v}
	}
	values := []jsontext.Value{v}
	if v.Kind() == '[' {
		values, _ = Items(v)
	}
	if rest == "" {
		return values
	}
	var list []jsontext.Value
	for _, v := range values {
		if v.Kind() == '{' {
			inner, _ := ParseObject(v)
			list = append(list, lookAll(inner, rest)...)
		}
	}
	return list
}

// argvText writes an argument vector as a command line. Of a shell that is
// given its line as an argument, that line is what runs.
func argvText(argv []string) string {
	if line, ok := shellLine(argv); ok {
		return line
	}
	var b strings.Builder
	for i, arg := range argv {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(shellQuote(arg))
	}
	return b.String()
}

// shellLine returns the line of an argument vector such as bash -lc LINE.
func shellLine(argv []string) (string, bool) {
	if len(argv) != 3 {
		return "", false
	}
	switch argv[0][strings.LastIndexByte(argv[0], '/')+1:] {
	case "sh", "bash", "zsh", "dash", "ksh":
		if argv[1] == "-c" || argv[1] == "-lc" {
			return argv[2], true
		}
	case "powershell", "pwsh", "powershell.exe", "pwsh.exe":
		if strings.EqualFold(argv[1], "-command") || strings.EqualFold(argv[1], "-c") {
			return argv[2], true
		}
	}
	return "", false
}

// shellQuote quotes what is not plain for a POSIX shell.
func shellQuote(s string) string {
	plain := s != ""
	for i := 0; i < len(s) && plain; i++ {
		c := s[i]
		plain = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("@%_+=:,./-", c) >= 0
	}
	if plain {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// firstURL returns the first web address in a text.
func firstURL(text string) string {
	at := -1
	for _, scheme := range []string{"https://", "http://"} {
		if i := strings.Index(text, scheme); i >= 0 && (at < 0 || i < at) {
			at = i
		}
	}
	if at < 0 {
		return ""
	}
	text = text[at:]
	if end := strings.IndexAny(text, " \t\r\n\"'<>`"); end >= 0 {
		text = text[:end]
	}
	return strings.TrimRight(text, ".,;:!?)]}")
}
