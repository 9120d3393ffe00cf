package shell

import (
	"path"
	"strings"
)

// special follows programs that fit none of the tables. It reports whether
// nothing is left to do about them.
func (r *reader) special(name string, c call) bool {
	switch name {
	case "parallel", "sem", "env_parallel":
		r.parallel(c)
	case "sg":
		r.sg(c)
	case "newgrp":
		r.fromInput(c.in, nil)
	case "capsh":
		r.capsh(c)
	case "wsl", "wsl.exe":
		r.wsl(c)
	case "kubectl", "oc", "k3s":
		r.kubectl(c)
	case "nix":
		return r.nix(c)
	case "flatpak":
		r.flatpak(c)
	case "distrobox", "distrobox-enter", "toolbox", "toolbx", "guix", "machinectl", "snap":
		r.box(name, c)
	case "nodemon":
		r.nodemon(c)
	case "vi", "vim", "nvim", "view", "vimdiff", "gvim", "rvim", "gview", "vimx", "vim.tiny", "vim.basic", "vim.nox", "vim.gtk", "vim.gtk3", "vim.athena", "vim.motif":
		r.vim(c)
	case "cmake":
		r.cmake(c)
	case "cargo":
		r.cargo(c)
	case "make", "gmake", "bmake":
		r.makes(c)
		return false // options are looked at as those of a language
	case "pip", "pip3", "pipx":
		r.pip(c)
	case "scp", "sftp":
		for i, f := range c.args {
			switch {
			case f.text == "-o" && i+1 < len(c.args):
				r.sshSetting(c.args[i+1], c.in)
			case strings.HasPrefix(f.text, "-o"):
				r.sshSetting(f.cutTo(2), c.in)
			}
		}
	default:
		if isCompiler(name) || name == "rustc" || name == "clippy-driver" {
			r.compiler(name, c)
			return true
		}
		return false
	}
	return true
}

const parallelOptions options = "kj:P:N:n:I:a:X0muqvtr:L:S:s:d:C: --keep-order --jobs= --max-procs= --halt= --bar --eta --tag --line-buffer --lb --verbose --will-cite --ungroup --group --joblog= --delay= --retries= --timeout= --colsep= --dry-run --no-notice --progress --arg-file= --pipe --block= --max-args= --no-run-if-empty --null --plus --resume --results= --shuf --load= --memfree= --fg --wait --id= --semaphore --help --version"

// parallel follows parallel, which adds arguments to a line for a shell. Without
// such a line the arguments are lines themselves.
func (r *reader) parallel(c call) {
	got, rest, odd := parallelOptions.read(c.args[1:])
	if odd != "" {
		r.unresolvedWord("what stands behind an option is not known", odd)
	}
	if _, ok := find(got, "help version wait"); ok {
		return
	}
	for i := range rest {
		if strings.HasPrefix(rest[i].text, ":::") {
			rest = rest[:i]
			break
		}
	}
	text, ok := codeText(rest)
	switch {
	case len(rest) == 0:
		r.unresolved("a command comes from input")
	case ok && !c.more && !strings.ContainsAny(text, "|&;<>()$`\\\"'\n"):
		words := make([]field, 0, len(rest))
		for w := range strings.FieldsSeq(text) {
			words = append(words, field{text: w})
		}
		more := true // behind the words, unless one of them says where
		for i, f := range replaced(words, "}") {
			if strings.IndexByte(f.text, '{') >= 0 {
				f.blind = f.text[0] == '{'
				words[i], more = f, false
			}
		}
		r.run(call{args: words, more: more, in: stdin{given: true}})
	default:
		r.joinedCode(rest, c)
	}
}

// sg follows sg, which runs a line as a member of a group.
func (r *reader) sg(c call) {
	rest := skipDashes(c.args[1:])
	if len(rest) > 0 && rest[0].text == "-" {
		rest = rest[1:]
	}
	if rest = rest[min(1, len(rest)):]; len(rest) > 0 && rest[0].text == "-c" {
		rest = rest[1:]
	}
	if len(rest) == 0 {
		r.fromInput(c.in, nil)
		return
	}
	r.joinedCode(rest, c)
}

// capsh follows capsh, which gives what stands behind two dashes to bash.
func (r *reader) capsh(c call) {
	shell := field{text: "bash"}
	for i, f := range c.args[1:] {
		if val, ok := strings.CutPrefix(f.text, "--shell="); ok {
			shell = field{text: val, unknown: f.unknown, unsafe: f.unsafe}
		}
		switch {
		case f.text == "--" || f.text == "==":
			r.run(call{args: append([]field{shell}, c.args[i+2:]...), more: c.more, in: c.in})
			return
		case f.mayBeOption():
			r.unresolvedWord("what a shell is given is not known", f.text)
			return
		}
	}
}

const wslOptions options = "e:d:u:l --exec= --distribution= --user= --cd= --system --shell-type= --list --status --shutdown --terminate= --install --update --version --help --set-default= --export --import --unregister="

func (r *reader) wsl(c call) {
	got, rest, odd := wslOptions.read(c.args[1:])
	if odd != "" {
		r.unresolvedWord("what stands behind an option is not known", odd)
	}
	if _, ok := find(got, "l list status shutdown terminate install update version help set-default export import unregister"); ok {
		return
	}
	if first, ok := find(got, "e exec"); ok {
		r.run(call{args: append([]field{first}, rest...), more: c.more, in: c.in})
		return
	}
	if len(rest) == 0 {
		r.fromInput(c.in, nil)
		return
	}
	r.joinedCode(rest, c)
}

// kubectl follows kubectl, which runs what stands behind "--" somewhere else.
func (r *reader) kubectl(c call) {
	sub := -1
	for i := 1; i < len(c.args); i++ {
		switch t := c.args[i].text; {
		case sub < 0 && hasWord("exec run debug rsh", t):
			sub = i
		case sub > 0 && t == "--":
			r.run(call{args: c.args[i+1:], more: c.more, in: c.in})
			return
		}
	}
	if sub < 0 {
		return
	}
	words := 0
	for i := sub + 1; i < len(c.args); i++ {
		if !strings.HasPrefix(c.args[i].text, "-") {
			words++
		}
	}
	if t := c.args[sub].text; words > 1 && t != "run" && t != "debug" || t == "rsh" || words > 0 && anyWord(c.args, "--command") {
		r.unresolvedWord("what runs elsewhere is not known", joinText(c.args))
	}
}

// nix follows nix shell, develop and run.
func (r *reader) nix(c call) bool {
	sub := firstWord(c.args[1:])
	if !hasWord("shell develop run", sub) {
		return true
	}
	var installable string
	for i := 1; i < len(c.args); i++ {
		switch t := c.args[i].text; {
		case c.args[i].splits:
			r.unresolvedWord("what is run is not known", joinText(c.args))
			return true
		case (t == "-c" || t == "--command") && sub != "run":
			r.run(call{args: c.args[i+1:], more: c.more, in: c.in})
			return true
		case t == "--" && sub == "run":
			r.nixRun(installable, c.args[i+1:], c)
			return true
		case !strings.HasPrefix(t, "-") && t != sub:
			installable = t
		}
	}
	if sub == "run" {
		r.nixRun(installable, nil, c)
	} else {
		r.fromInput(c.in, nil)
	}
	return true
}

// nixRun follows the program of a package, whose name is the package's as a
// rule.
func (r *reader) nixRun(installable string, args []field, c call) {
	name := path.Base(installable[strings.LastIndexAny(installable, "#.")+1:])
	if name == "." || name == "/" {
		r.unresolvedWord("what is run is not known", joinText(c.args))
		return
	}
	r.run(call{args: append([]field{{text: name}}, args...), more: c.more, in: c.in})
}

func (r *reader) flatpak(c call) {
	if firstWord(c.args[1:]) != "run" {
		return
	}
	for i, f := range c.args {
		val, ok := strings.CutPrefix(f.text, "--command=")
		if !ok {
			continue
		}
		args := []field{{text: val, unknown: f.unknown, unsafe: f.unsafe, blind: f.unknown, splits: f.splits}}
		for rest := c.args[i+1:]; len(rest) > 0; rest = rest[1:] {
			if !strings.HasPrefix(rest[0].text, "-") { // the app, and its arguments
				args = append(args, rest[1:]...)
				break
			}
		}
		r.run(call{args: args, more: c.more, in: c.in})
	}
}

// box follows programs that enter a container or another environment of this
// machine.
func (r *reader) box(name string, c call) {
	const enters = "enter run shell environment ephemeral"
	sub := firstWord(c.args[1:])
	if name == "distrobox-enter" {
		sub = "enter"
	}
	if !hasWord(enters, sub) {
		return
	}
	rest := c.args[1:]
	for i, f := range rest {
		switch {
		case f.text == "--", (f.text == "-e" || f.text == "--exec") && strings.HasPrefix(name, "distrobox"):
			r.run(call{args: rest[i+1:], more: c.more, in: c.in})
			return
		}
	}
	for len(rest) > 0 && rest[0].text != sub {
		rest = rest[1:]
	}
	rest = rest[min(1, len(rest)):]
	switch {
	case strings.HasPrefix(name, "toolb") && sub == "run":
		_, rest, odd := options("c:d:r: --container= --distro= --release= --preserve-fds= --assumeyes").read(rest)
		if odd != "" {
			r.unresolvedWord("what stands behind an option is not known", odd)
		}
		r.run(call{args: rest, more: c.more, in: c.in})
	case name == "snap" && !anyWord(rest, "--shell"):
		r.run(call{args: skipDashes(rest), more: c.more, in: c.in})
	case name == "machinectl" && len(rest) > 1:
		r.run(call{args: rest[1:], more: true, in: c.in})
	default:
		r.fromInput(c.in, nil)
	}
}

const nodemonOptions options = "x:e:w:i:d:qVLICvh --exec= --ext= --watch= --ignore= --delay= --signal= --config= --quiet --verbose --legacy-watch --inspect --on-change-only --no-stdin --spawn --version --help"

func (r *reader) nodemon(c call) {
	got, rest, odd := nodemonOptions.read(c.args[1:])
	if odd != "" {
		r.unresolvedWord("what stands behind an option is not known", odd)
	}
	code := false
	for _, opt := range got {
		if opt.name == "x" || opt.name == "exec" {
			code = true
			r.childCode(opt.value, c.in, nil)
		}
	}
	if len(rest) > 0 && !code {
		r.run(call{args: append([]field{{text: "node"}}, rest...), more: c.more, in: c.in})
	}
}

// vim follows editors of vi's kind, which are told commands by options.
func (r *reader) vim(c call) {
	args := c.args[1:]
	for i := 0; i < len(args); i++ {
		t := args[i].text
		switch {
		case (t == "-c" || t == "--cmd") && i+1 < len(args):
			i++
			r.vimCommand(args[i])
		case strings.HasPrefix(t, "-c") && len(t) > 2:
			r.vimCommand(args[i].cutTo(2))
		case strings.HasPrefix(t, "+"):
			r.vimCommand(args[i].cutTo(1))
		case (t == "-S" || t == "-s" || t == "-u") && i+1 < len(args):
			i++
			r.runsFile(&args[i])
		case strings.HasPrefix(t, "-S") && len(t) > 2:
			f := args[i].cutTo(2)
			r.runsFile(&f)
		case args[i].splits:
			r.unresolvedWord("what an editor is told is not known", t)
		}
	}
	if c.in.given || c.more {
		r.unresolvedWord("an editor reads what it does from its input", joinText(c.args))
	}
}

// vimCommand follows a command of vi. Few do nothing but move and show.
func (r *reader) vimCommand(f field) {
	text := strings.TrimLeft(f.text, ": ")
	first, rest, _ := strings.Cut(text, " ")
	first = strings.TrimRight(first, "!")
	switch {
	case f.unsafe && f.unknown:
	case strings.ContainsAny(first, "!|`=\n") || strings.ContainsAny(rest, "!|`\n"):
	case strings.Trim(first, "0123456789$") == "" && rest == "":
		return
	case strings.HasPrefix(text, "/"):
		return
	case hasWord("q qa qall quit x xa wq wqa w wa write e edit sp vs split vsplit tabe tabnew n next syntax syn noh hi colorscheme filetype", first):
		return
	case (first == "set" || first == "se" || first == "setlocal") && !strings.Contains(rest, "prg") && !strings.Contains(rest, "sh") && !strings.Contains(rest, "exp") && !strings.Contains(rest, "func"):
		return
	}
	r.unresolvedWord("a program runs what it is told", f.text)
}

// cmake follows cmake -E, which runs a command, and settings that name programs.
func (r *reader) cmake(c call) {
	args := c.args[1:]
	if len(args) > 0 && args[0].text == "-E" {
		r.cmakeTool(args[1:], c)
		return
	}
	for i, f := range args {
		name, val, ok := strings.Cut(f.text, "=")
		if name, _, _ = strings.Cut(name, ":"); ok && strings.HasPrefix(name, "-D") && namesProgram(name) {
			r.childCode(field{text: strings.ReplaceAll(val, ";", " "), unsafe: f.unsafe}, c.in, nil)
		}
		if (f.text == "-P" || f.text == "-C") && i+1 < len(args) {
			r.runsFile(&args[i+1])
		}
	}
}

// namesProgram reports whether a variable of cmake holds one.
func namesProgram(name string) bool {
	for _, end := range []string{"_COMPILER", "_LAUNCHER", "_PROGRAM", "_LINKER", "_EXECUTABLE"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}

func (r *reader) cmakeTool(args []field, c call) {
	if len(args) == 0 {
		return
	}
	switch args[0].text {
	case "env":
		// Its options are close enough to those of env.
	case "chdir":
		r.moved = true
		args = args[min(2, len(args)):]
	case "remove", "remove_directory":
		args = append([]field{{text: "rm"}}, args[1:]...)
	case "copy", "copy_directory", "copy_if_different":
		args = append([]field{{text: "cp"}}, args[1:]...)
	case "rename":
		args = append([]field{{text: "mv"}}, args[1:]...)
	case "capabilities", "environment", "server", "make_directory", "compare_files", "md5sum", "sha1sum", "sha256sum", "sha512sum", "create_symlink", "create_hardlink", "true", "false":
		return
	}
	r.run(call{args: args, more: c.more, in: c.in})
}

// cargo follows settings that name programs, and cargo watch.
func (r *reader) cargo(c call) {
	args := c.args[1:]
	watch := firstWord(args) == "watch"
	for i := range args {
		name, val, attached := strings.Cut(args[i].text, "=")
		value := field{text: val, unknown: args[i].unknown, unsafe: args[i].unsafe}
		if !attached && i+1 < len(args) {
			value = args[i+1]
		}
		switch {
		case name == "--config":
			for mark := range strings.FieldsSeq("rustc rustdoc wrapper linker runner alias helper credential rustflags") {
				if strings.Contains(value.text, mark) || value.unsafe || !strings.Contains(value.text, "=") {
					r.unresolvedWord("a setting may name what runs", value.text)
					break
				}
			}
		case watch && (name == "-s" || name == "--shell"):
			r.childCode(value, c.in, nil)
		case watch && (name == "-x" || name == "--exec"):
			r.childCode(field{text: "cargo " + value.text, unsafe: value.unsafe}, c.in, nil)
		case watch && name == "--":
			r.run(call{args: args[i+1:], more: c.more, in: c.in})
			return
		}
	}
}

// toolNames are variables of makefiles that hold the name of a program.
const toolNames = "CC CXX CPP LD AR AS NM RANLIB STRIP OBJCOPY OBJDUMP FC F77 RM MV CP LN MKDIR INSTALL SED AWK GREP PYTHON PYTHON3 PERL RUBY NODE NPM GO GOCMD CARGO RUSTC JAVA JAVAC YACC BISON LEX FLEX SHELL MAKE CMAKE TAR CURL WGET GIT DOCKER SUDO PAGER EDITOR"

// makes follows make, whose variables may name programs, and whose options may
// hold its text.
func (r *reader) makes(c call) {
	args := c.args[1:]
	for i := range args {
		f := &args[i]
		name, val, ok := strings.Cut(f.text, "=")
		name = strings.TrimRight(name, "?:+!")
		switch {
		case strings.HasPrefix(name, "--ev") && strings.HasPrefix("--eval", name) || carriedAt("E", f.text) > 0:
			r.unresolvedWord("a program text of make", joinText(c.args))
		case (f.text == "-f" || f.text == "--file" || f.text == "--makefile") && i+1 < len(args):
			if args[i+1].text != "-" {
				r.runsFile(&args[i+1])
			}
		case carriedAt("f", f.text) > 0:
			if at := carriedAt("f", f.text) + 1; at < len(f.text) {
				file := f.cutTo(at)
				r.runsFile(&file)
			} else if i+1 < len(args) && args[i+1].text != "-" {
				r.runsFile(&args[i+1])
			}
		case len(name) > 3 && (strings.HasPrefix("--file", name) || strings.HasPrefix("--makefile", name)):
			r.runsFile(&field{text: val, unknown: f.unknown, unsafe: f.unsafe})
		case !ok || strings.HasPrefix(f.text, "-"):
		case name == "SHELL" && isShell(path.Base(val)):
		case hasWord(toolNames, name), strings.HasSuffix(name, "_CC"), strings.HasSuffix(name, "_LAUNCHER"), strings.HasSuffix(name, "_CMD"), strings.HasSuffix(name, "_COMMAND"), strings.HasSuffix(name, "_WRAPPER"):
			r.childCode(field{text: val, unsafe: f.unsafe}, c.in, nil)
		case strings.ContainsAny(neutral(*f), "`;|&\n") || strings.Contains(neutral(*f), "$(") || strings.Contains(neutral(*f), "${"), hasWord("MAKEFLAGS GNUMAKEFLAGS MAKEFILES .SHELLFLAGS", name):
			r.unresolvedWord("a variable of make may run something", f.text)
		}
	}
}

// pip follows pip, which runs what a folder says that it installs from.
func (r *reader) pip(c call) {
	sub := firstWord(c.args[1:])
	if !hasWord("install wheel download", sub) {
		return
	}
	words := 0
	for _, f := range c.args[1:] {
		if t := f.text; t != sub && (t == "." || strings.HasPrefix(t, ".[") || strings.HasPrefix(t, "./") || strings.HasPrefix(t, "/") || strings.HasSuffix(t, "/")) {
			words++
		}
	}
	if words > 0 {
		r.project("setup.py pyproject.toml setup.cfg", c)
	}
}

// compiler follows options of compilers that name programs or libraries which
// they run.
func (r *reader) compiler(name string, c call) {
	args := c.args[1:]
	for i := range args {
		t := args[i].text
		val := ""
		switch {
		case t == "-wrapper" && i+1 < len(args):
			words := []field{}
			for w := range strings.SplitSeq(args[i+1].text, ",") {
				words = append(words, field{text: w})
			}
			if args[i+1].unsafe {
				r.unresolvedWord("what a compiler runs is not known", t)
				continue
			}
			r.run(call{args: words, more: true, in: c.in})
			continue
		case strings.HasPrefix(t, "-fplugin=") || strings.HasPrefix(t, "-specs=") || strings.HasPrefix(t, "--specs=") && !strings.HasSuffix(t, ".specs") || t == "-load" || t == "-plugin" ||
			strings.HasPrefix(t, "-B") && strings.IndexByte(name, '-') < 0 && t != "-Bstatic" && t != "-Bdynamic" && t != "-Bsymbolic":
			r.unresolvedWord("a program runs what it is told", joinText(c.args))
			continue
		case strings.HasPrefix(t, "-fuse-ld="):
			if val = t[len("-fuse-ld="):]; hasWord("lld gold bfd mold", val) {
				continue
			}
		case strings.HasPrefix(t, "-Clinker="):
			val = t[len("-Clinker="):]
		case strings.HasPrefix(t, "linker=") && i > 0 && (args[i-1].text == "-C" || args[i-1].text == "--codegen"):
			val = t[len("linker="):]
		default:
			continue
		}
		r.childCode(field{text: val, unsafe: args[i].unsafe}, c.in, nil)
	}
}

// remoteOf returns the words behind which a program runs things on other
// machines or in containers; "*" = it always does, "" = it never does.
func remoteOf(name string) string {
	switch name {
	case "crictl", "runc", "crun", "nomad", "fly", "flyctl", "heroku", "multipass", "devcontainer", "ctr", "youki", "railway", "render":
		return "exec run ssh console shell"
	case "limactl", "colima", "orb", "orbctl":
		return "shell ssh run"
	case "apptainer", "singularity", "enroot", "udocker":
		return "exec run shell start"
	case "lima", "pdsh", "pssh", "parallel-ssh", "prsync", "clush", "dsh", "cssh", "mussh", "lxc-attach", "psexec", "winrs", "rsh", "rexec",
		"docker-machine", "host-spawn", "schroot", "arch-chroot", "systemd-nspawn", "pct", "jexec", "ansible":
		return "*"
	case "salt", "salt-call", "salt-ssh":
		return "cmd.run cmd.run_all cmd.shell cmd.script state.apply state.single"
	case "gcloud":
		return "ssh"
	case "aws":
		return "send-command start-session execute-command"
	case "az":
		return "run-command invoke"
	case "buildah":
		return "run"
	case "minikube":
		return "ssh"
	}
	return ""
}

// remote follows them. Where what is run does not stand behind "--" it is not
// followed.
func (r *reader) remote(name string, c call) bool {
	sub := remoteOf(name)
	switch {
	case sub == "":
		return false
	case sub != "*" && !anyWord(c.args[1:], sub) || len(c.args) == 1 || hasWord("--version --help -h", c.args[1].text):
		return true
	}
	for i := range c.args {
		if c.args[i].text == "--" {
			r.run(call{args: c.args[i+1:], more: c.more, in: c.in})
			return true
		}
	}
	if name != "gcloud" || !anyPrefix(c.args, "--command") { // which is looked at already
		r.unresolvedWord("what runs elsewhere is not known", joinText(c.args))
	}
	return true
}

func anyPrefix(args []field, prefix string) bool {
	for i := range args {
		if strings.HasPrefix(args[i].text, prefix) {
			return true
		}
	}
	return false
}
