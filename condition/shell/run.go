package shell

import (
	"path"
	"strings"
	"unicode"

	"mvdan.cc/sh/v3/syntax"
)

// run follows a command that is about to run: it notes it, and looks for what
// the command itself runs.
func (r *reader) run(c call) {
	if !r.step() {
		return
	}
	if len(c.args) == 0 {
		if c.more {
			r.unresolved("a command comes from input")
		}
		return
	}
	name, file, ok := commandName(&c.args[0])
	if !ok {
		r.unresolvedWord("a command word is not known", c.args[0].text)
		return
	}
	name = windowsName(name)
	r.emit(name, file, &c)
	if strings.Contains(file, "/") {
		r.ran = append(r.ran, file)
	}
	if name == file && r.defined(name, c) {
		return
	}
	r.program(strings.ToLower(name), c)
}

// commandName returns the name of what a word runs.
func commandName(f *field) (name, file string, ok bool) {
	file = strings.TrimRight(f.text, "\r"+carriage)
	switch {
	case f.splits || f.glob || f.proc:
		return "", "", false
	case f.unknown:
		slash := strings.LastIndexByte(file, '/')
		if slash < f.tail { // the name itself is not known
			return "", "", false
		}
		name = file[slash+1:]
	default:
		// zsh takes =name as the path of the command.
		name = strings.TrimPrefix(file[strings.LastIndexByte(file, '/')+1:], "=")
	}
	for _, c := range name {
		if c != ' ' && (unicode.IsSpace(c) || unicode.IsControl(c) || unicode.Is(unicode.Cf, c) || unicode.Is(unicode.Co, c) || c == unicode.ReplacementChar) {
			return "", "", false
		}
	}
	return name, file, name != ""
}

// defined follows a function or alias of the line.
func (r *reader) defined(name string, c call) bool {
	if text, ok := r.alias[name]; ok {
		if words, ok := requote(c.args[1:]); ok {
			saved := r.alias
			r.alias = nil // an alias is not taken again in its own text
			r.code(text+words, c.in)
			r.alias = saved
		} else {
			r.unresolvedWord("what an alias is given is not known", name)
		}
	}
	found := false
	for i := 0; i < len(r.funcs); i++ { // more may come
		if r.funcs[i].name == name {
			found = true
			r.inFunction(r.funcs[i], c)
		}
	}
	return found
}

func (r *reader) inFunction(f *function, c call) {
	f.called = true
	for _, outer := range r.calls {
		if sameWords(outer.args, c.args) {
			return // it calls itself, and nothing new comes of it
		}
	}
	if len(r.calls) >= maxCalls {
		r.unresolved("functions call functions too deeply")
		return
	}
	args, known, src := r.state.args, r.state.argsKnown, r.src
	r.calls = append(r.calls, c)
	r.state.args, r.state.argsKnown, r.src = c.args[1:], !c.more && !anySplits(c.args), f.src
	r.stmt(f.body, c.in)
	r.calls = r.calls[:len(r.calls)-1]
	r.state.args, r.state.argsKnown, r.src = args, known, src
}

func sameWords(a, b []field) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func anySplits(args []field) bool {
	for i := range args {
		if args[i].splits {
			return true
		}
	}
	return false
}

// program follows what a program, or a command of the shell itself, runs.
func (r *reader) program(name string, c call) {
	r.writesOf(name, c.args[1:])
	r.bringsOf(name, c)
	r.recipes(name, c)
	r.compiles(name, c)
	switch name {
	case "test", "[", "unset", "let", "wait", "read", "printf", "getopts":
		if name != "printf" || hasShort(c.args[1:], 'v') {
			for _, f := range c.args[1:] {
				r.computed(f.text)
			}
		}
	}
	switch name {
	case "eval":
		r.eval(c)
	case ".", "source":
		r.unresolvedWord("commands come from a file", joinText(c.args))
	case "trap":
		if args := skipDashes(c.args[1:]); len(args) > 1 {
			r.later(args[0], "what trap runs")
		}
	case "alias":
		r.aliases(c.args[1:])
	case "set":
		r.setArgs(c.args[1:])
	case "shift":
		r.shift(c.args[1:])
	case "export", "declare", "typeset", "readonly", "local": // behind "command" or "builtin"
		exported := name == "export"
		for _, f := range c.args[1:] {
			r.declareWord(name, f, &exported)
		}
	case "read", "mapfile", "readarray", "getopts", "unset", "printf", "wait", "let":
		r.assignsArgs(name, c.args[1:])
	case "hash":
		if hasShort(c.args[1:], 'p') {
			r.unresolvedWord("a name is given another program", joinText(c.args))
		}
	case "enable":
		if hasShort(c.args[1:], 'f') {
			r.unresolvedWord("a command is taken from a file", joinText(c.args))
		}
	case "fc":
		r.unresolved("a command comes from the history")
	case "find", "gfind", "bfs":
		r.find(c)
	case "fd", "fdfind":
		r.fd(c)
	case "xargs", "gxargs":
		r.xargs(c)
	case "git":
		r.git(c)
	case "sed", "gsed":
		r.sed(c)
	case "awk", "gawk", "mawk", "nawk", "original-awk", "goawk", "frawk":
		r.awk(c)
	case "ssh", "autossh":
		r.ssh(name, c)
	case "su", "runuser":
		r.su(c)
	case "jobs":
		if len(c.args) > 1 && c.args[1].text == "-x" {
			r.run(call{args: c.args[2:], in: c.in, more: c.more})
		}
	case "tmux", "screen":
		r.multiplexer(c)
	default:
		r.carrier(name, c)
		switch {
		case r.starter(name, c):
		case strings.HasPrefix(name, "-") && len(name) > 1: // behind the word time
			r.unwrap(wrapperOf("time"), c)
		case r.special(name, c):
		case r.remote(name, c):
		case isShell(name):
			r.shell(c)
		case r.interpreter(name, c):
		default:
			r.wrapper(name, c)
		}
	}
}

// eval follows eval, whose words are joined and read once more.
func (r *reader) eval(c call) {
	args := c.args[1:]
	if len(args) > 0 && args[0].text == "--" {
		args = args[1:]
	}
	if text, ok := codeText(args); ok && !c.more {
		r.code(text, c.in)
	} else {
		r.unresolvedWord("what eval runs is not known", joinText(c.args))
	}
}

// codeText joins words that are read as code. It is not ok when a word that is
// not known could be any code.
func codeText(args []field) (string, bool) {
	for i := range args {
		if args[i].unsafe || args[i].glob || args[i].proc {
			return "", false
		}
	}
	return joinText(args), true
}

func joinText(args []field) string {
	var b strings.Builder
	for i := range args {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(args[i].text)
	}
	return b.String()
}

// skipDashes skips options that are only looked at.
func skipDashes(args []field) []field {
	for len(args) > 0 && !args[0].unknown && len(args[0].text) > 1 && args[0].text[0] == '-' {
		args = args[1:]
	}
	return args
}

func hasShort(args []field, letter byte) bool {
	for i := range args {
		if t := args[i].text; len(t) > 1 && t[0] == '-' && t[1] != '-' && strings.IndexByte(t, letter) > 0 {
			return true
		}
	}
	return false
}

func (r *reader) aliases(args []field) {
	for _, f := range skipDashes(args) {
		name, text, ok := strings.Cut(f.text, "=")
		switch {
		case f.unknown && f.unsafe:
			r.unresolvedWord("an alias is not known", f.text)
		case ok:
			if r.alias == nil {
				r.alias = map[string]string{}
			}
			r.alias[name] = text
			r.later(field{text: text, unknown: f.unknown}, "alias")
		}
	}
}

// setArgs follows set, which may give new positional parameters.
func (r *reader) setArgs(args []field) {
	for len(args) > 0 {
		t := args[0].text
		if args[0].unknown || len(t) == 0 || t[0] != '-' && t[0] != '+' {
			break
		}
		args = args[1:]
		if t == "--" {
			r.state.args, r.state.argsKnown = args, !anySplits(args)
			return
		}
		if strings.HasSuffix(t, "o") && len(args) > 0 { // -o name
			args = args[1:]
		}
	}
	if len(args) > 0 {
		r.state.args, r.state.argsKnown = args, !anySplits(args)
	}
}

func (r *reader) shift(args []field) {
	if len(args) == 0 && r.state.argsKnown && len(r.state.args) > 0 {
		r.state.args = r.state.args[1:]
		return
	}
	r.state.args, r.state.argsKnown = nil, false
}

// assignsArgs follows commands that give values to variables which they are
// told by name.
func (r *reader) assignsArgs(name string, args []field) {
	for i, f := range args {
		switch {
		case f.unknown && (name != "printf" || i > 0 && args[i-1].text == "-v"):
			r.state.forgetAll()
			r.chosen = nil
		case name == "let":
			if n, _, ok := strings.Cut(f.text, "="); ok && syntax.ValidName(strings.TrimRight(n, "+-*/%<>&|^")) {
				r.forget(strings.TrimRight(n, "+-*/%<>&|^"))
			}
		case name == "printf" && (i == 0 || args[i-1].text != "-v"):
		case name == "wait" && (i == 0 || args[i-1].text != "-p"):
		default:
			n, _, _ := strings.Cut(f.text, "[")
			if syntax.ValidName(n) {
				r.forget(n)
			}
		}
	}
	switch name {
	case "read":
		r.forget("REPLY")
	case "mapfile", "readarray":
		r.forget("MAPFILE")
		r.carrier(name, call{args: append([]field{{text: name}}, args...)})
	}
}

// assigned follows variables that name what other programs run.
func (r *reader) assigned(name string, f field) {
	if f.text == "" {
		return
	}
	switch name {
	case "BASH_ENV", "ZDOTDIR", "LD_PRELOAD", "LD_AUDIT", "VIMINIT", "GVIMINIT", "EXINIT", "LUA_INIT", "DYLD_INSERT_LIBRARIES", "PYTHONSTARTUP", "GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS",
		"GIT_EXEC_PATH", "GIT_TEMPLATE_DIR", "RIPGREP_CONFIG_PATH", "CARGO_ENCODED_RUSTFLAGS", "MAKEFILES":
		r.unresolvedWord("commands come from a file", name+"="+f.text)
	case "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG":
		if f.text != "/dev/null" {
			r.unresolvedWord("commands come from a file", name+"="+f.text)
		}
	case "PS0", "PS1", "PS2", "PS4":
		if strings.Contains(f.text, "$(") || strings.Contains(f.text, "`") || f.unsafe {
			r.unresolvedWord("a prompt may run something", name+"="+f.text)
		}
	case "PATH":
		r.searchPath(f)
	case "SHELL":
		if !isShell(path.Base(f.text)) {
			r.later(f, "what "+name+" runs")
		}
	case "PROMPT_COMMAND", "EDITOR", "VISUAL", "PAGER", "BROWSER", "LESSOPEN", "LESSCLOSE", "RSYNC_RSH", "CVS_RSH",
		"GIT_SSH", "GIT_EXTERNAL_DIFF", "GIT_ASKPASS", "SSH_ASKPASS", "SUDO_ASKPASS", "MANPAGER", "GIT_PAGER", "GIT_EDITOR",
		"GIT_SEQUENCE_EDITOR", "GIT_SSH_COMMAND", "GIT_PROXY_COMMAND", "SYSTEMD_PAGER", "SYSTEMD_EDITOR", "SUDO_EDITOR", "FCEDIT",
		"CC", "CXX", "LD", "AR", "RUSTC", "RUSTDOC", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "RUSTC_LINKER", "CARGO_BUILD_RUSTC",
		"CARGO_BUILD_RUSTC_WRAPPER", "CARGO_BUILD_RUSTC_WORKSPACE_WRAPPER", "CMAKE_C_COMPILER_LAUNCHER", "CMAKE_CXX_COMPILER_LAUNCHER",
		"FZF_DEFAULT_COMMAND", "BAT_PAGER", "DELTA_PAGER", "KUBE_EDITOR", "AWS_PAGER", "GH_PAGER", "GH_EDITOR", "GH_BROWSER":
		r.later(f, "what "+name+" runs")
	default:
		if strings.HasPrefix(name, "LUA_INIT_") {
			r.unresolvedWord("a program runs what a variable holds", name+"="+f.text)
		}
		if strings.HasPrefix(name, "BASH_FUNC_") {
			r.unresolvedWord("a variable is a function", name+"="+f.text)
		}
		if strings.HasPrefix(name, "CARGO_TARGET_") && (strings.HasSuffix(name, "_RUNNER") || strings.HasSuffix(name, "_LINKER")) {
			r.later(f, "what "+name+" runs")
		}
		for mark := range strings.FieldsSeq(dangerIn(name)) {
			if strings.Contains(f.text, mark) || f.unsafe {
				r.unresolvedWord("options may name what runs", name+"="+f.text)
				return
			}
		}
	}
}

// dangerIn returns what in a variable, which holds options for a program, makes
// it run something.
func dangerIn(name string) string {
	switch name {
	case "NODE_OPTIONS":
		return "-r require import loader"
	case "RUBYOPT":
		return "-r"
	case "PERL5OPT":
		return "-M -m -d"
	case "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "MAVEN_OPTS", "GRADLE_OPTS":
		return "agent Xbootclasspath OnError OnOutOfMemoryError"
	case "GOFLAGS":
		return "exec vettool"
	case "RUSTFLAGS", "RUSTDOCFLAGS":
		return "linker"
	case "MAKEFLAGS", "GNUMAKEFLAGS", "MFLAGS":
		return "eval -f SHELL -E"
	case "TAR_OPTIONS":
		return "command action program script -I -F"
	case "FZF_DEFAULT_OPTS":
		return "preview execute become reload transform"
	}
	return ""
}

// searchPath follows PATH: where anybody may write, a name is not what it says.
func (r *reader) searchPath(f field) {
	r.searched = true
	for dir := range strings.SplitSeq(f.text, ":") {
		switch clean := path.Clean(dir); {
		case clean == ".", clean == "$PWD", clean == "/tmp", clean == "/var/tmp", clean == "/dev/shm",
			strings.HasPrefix(clean, "/tmp/"), strings.HasPrefix(clean, "/var/tmp/"), strings.HasPrefix(clean, "/dev/shm/"):
			r.unresolvedWord("commands are looked for where anybody may write", dir)
			return
		}
	}
}

// runsFile notes a file whose text is run.
func (r *reader) runsFile(f *field) {
	switch clean := path.Clean(f.text); {
	case f.proc || f.mayBeOption() || f.unknown && f.blind && f.unsafe:
		r.unresolvedWord("commands come from a file that is not known", f.text)
	case clean == "/dev/stdin" || strings.HasPrefix(clean, "/dev/fd/") || strings.HasPrefix(clean, "/proc/"):
		r.unresolvedWord("commands come from input", f.text)
	default:
		r.ran = append(r.ran, f.text)
		if f.unknown && f.tail > strings.LastIndexByte(f.text, '/') {
			r.ranAny = f.text
		}
	}
}
