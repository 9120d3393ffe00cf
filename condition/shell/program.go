package shell

import "strings"

const gitOptions options = "pPhvC:c: --git-dir= --work-tree= --namespace= --exec-path --super-prefix= --config-env= --attr-source= --paginate --no-pager --bare --no-replace-objects --no-optional-locks --literal-pathspecs --version --help --html-path"

// isShell reports whether a program, in lower case, reads the language of shells.
func isShell(name string) bool {
	switch name {
	case "sh", "bash", "zsh", "dash", "ksh", "ksh93", "mksh", "pdksh", "ash", "hush", "yash", "rbash", "rzsh", "oksh", "lksh", "posh",
		"bash.exe", "sh.exe":
		return true
	}
	return false
}

// shell follows a shell that is started.
func (r *reader) shell(c call) {
	args := c.args[1:]
	code, input := false, false
	if strings.HasSuffix(strings.ToLower(c.args[0].text), "zsh") || hasShort(args, 'i') || hasShort(args, 'l') || anyWord(args, "--login") {
		r.ownFiles(startFiles, c)
		if _, ok := r.state.vars["ENV"]; ok && hasShort(args, 'i') {
			r.unresolvedWord("commands come from the file in ENV", joinText(c.args))
		}
	}
	for len(args) > 0 {
		f := &args[0]
		t := f.text
		if f.mayBeOption() || f.proc {
			r.unresolvedWord("what a shell is given is not known", t)
			return
		}
		if len(t) < 2 || t[0] != '-' && t[0] != '+' {
			break
		}
		args = args[1:]
		switch {
		case t == "--":
		case t == "--version" || t == "--help":
			return
		case strings.HasPrefix(t, "--"):
			if (t == "--rcfile" || t == "--init-file") && len(args) > 0 {
				r.runsFile(&args[0])
				args = args[1:]
			}
			continue
		default:
			code = code || t[0] == '-' && strings.IndexByte(t, 'c') > 0
			input = input || t[0] == '-' && strings.IndexByte(t, 's') > 0
			if n := strings.Count(strings.ToLower(t), "o"); n > 0 {
				args = args[min(n, len(args)):]
			}
			continue
		}
		break
	}
	if len(args) > 0 && args[0].text == "-" && !code {
		args = args[1:]
	}
	switch {
	case code && len(args) > 0:
		r.childCode(args[0], c.in, args[1:])
	case code || c.more:
		if c.more {
			r.unresolved("what a shell is given comes from input")
		}
	case len(args) > 0 && !input:
		r.runsFile(&args[0])
	default:
		r.fromInput(c.in, args)
	}
}

// find follows find, which runs commands on what it finds.
func (r *reader) find(c call) {
	args := c.args[1:]
	for i := 0; i < len(args); i++ {
		switch args[i].text {
		case "-exec", "-execdir", "-ok", "-okdir":
			from := i + 1
			for i++; i < len(args) && args[i].text != ";" && (args[i].text != "+" || args[i-1].text != "{}"); {
				i++
			}
			r.run(call{args: replaced(args[from:min(i, len(args))], "{}"), in: c.in})
		case "-fprint", "-fprint0", "-fprintf", "-fls":
			if i+1 < len(args) {
				r.writes(args[i+1])
			}
		}
	}
}

// replaced marks the words in which a program puts what it read in the place of
// mark.
func replaced(words []field, mark string) []field {
	out := make([]field, len(words))
	for i, f := range words {
		if at := strings.LastIndex(f.text, mark); at >= 0 && mark != "" {
			f.blind = f.blind || strings.HasPrefix(f.text, mark)
			f.unknown, f.unsafe = true, true
			f.tail = max(f.tail, at+len(mark))
		}
		out[i] = f
	}
	return out
}

// fd follows fd, whose -x may stand in a bundle of letters.
func (r *reader) fd(c call) {
	args := c.args[1:]
	for i := range args {
		t := args[i].text
		words := args[i+1:]
		switch {
		case t == "--exec" || t == "--exec-batch":
		case strings.HasPrefix(t, "--exec=") || strings.HasPrefix(t, "--exec-batch="):
			words = append([]field{args[i].cutTo(strings.IndexByte(t, '=') + 1)}, words...)
		case len(t) > 1 && t[0] == '-' && t[1] != '-':
			at := strings.IndexAny(t, "xXtdeEScjo") // those with a value
			if at < 0 || t[at] != 'x' && t[at] != 'X' {
				continue
			}
			if at+1 < len(t) {
				words = append([]field{args[i].cutTo(at + 1)}, words...)
			}
		default:
			continue
		}
		for j := range words {
			if words[j].text == ";" {
				words = words[:j]
				break
			}
		}
		r.run(call{args: replaced(words, "{}"), in: c.in, more: true})
		return
	}
}

const xargsOptions options = "0a:d:E:e::I:i::J:L:l::n:oP:prR:S:s:tx --null --arg-file= --delimiter= --eof --replace --max-lines --max-args= --open-tty --max-procs= --interactive --process-slot-var= --no-run-if-empty --max-chars= --show-limits --verbose --exit --help --version"

// xargs follows xargs, which adds what it reads to a command.
func (r *reader) xargs(c call) {
	got, words, odd := xargsOptions.read(c.args[1:])
	if odd != "" {
		r.unresolvedWord("what stands behind an option is not known", odd)
	}
	mark := ""
	if v, ok := find(got, "I J i replace"); ok {
		if mark = v.text; mark == "" {
			mark = "{}"
		}
	}
	if len(words) == 0 && !c.more {
		return // it prints what it reads
	}
	r.run(call{args: replaced(words, mark), more: mark == "" || c.more, in: stdin{given: true}})
}

const suOptions options = "lmpPfwc:s:g:G:u:T: --command= --session-command= --login --shell= --group= --supp-group= --user= --preserve-environment --fast --pty"

// su follows su and runuser, whose options may stand anywhere.
func (r *reader) su(c call) {
	args := c.args[1:]
	coded := false
	for len(args) > 0 {
		got, rest, odd := suOptions.read(args)
		if odd != "" {
			r.unresolvedWord("what stands behind an option is not known", odd)
		}
		if code, ok := find(got, "c command session-command"); ok {
			coded = true
			r.childCode(code, c.in, nil)
		}
		if _, ok := find(got, "u user"); ok {
			r.run(call{args: rest, more: c.more, in: c.in})
			return
		}
		args = rest[min(1, len(rest)):]
	}
	if !coded {
		r.fromInput(c.in, nil)
	}
}

const sshOptions options = "46AaCfGgKkMNnqsTtVvXxYyB:b:c:D:E:e:F:I:i:J:L:l:m:O:o:P:p:Q:R:S:W:w:"

// ssh follows ssh: what runs on another machine runs, too.
func (r *reader) ssh(name string, c call) {
	opts := sshOptions
	if name == "autossh" {
		opts = "M:f" + opts[:strings.IndexByte(string(opts), 'M')] + opts[strings.IndexByte(string(opts), 'M')+1:]
	}
	got, rest, odd := opts.read(c.args[1:])
	var more []option
	if len(rest) > 0 {
		rest = rest[1:] // the host
		var odd2 string
		if more, rest, odd2 = opts.read(rest); odd == "" {
			odd = odd2
		}
	}
	if odd != "" {
		r.unresolvedWord("what stands behind an option is not known", odd)
	}
	for _, opt := range append(got, more...) {
		switch opt.name {
		case "o":
			r.sshSetting(opt.value, c.in)
		case "F":
			r.runsFile(&opt.value)
		case "I":
			r.unresolvedWord("a program runs what it is told", opt.value.text)
		}
	}
	switch {
	case len(rest) > 0:
		r.joinedCode(rest, c)
	case c.more || c.in.given:
		r.fromInput(c.in, nil)
	}
}

// sshSetting follows a setting of ssh that is a command.
func (r *reader) sshSetting(f field, in stdin) {
	setting := strings.TrimSpace(f.text)
	end := strings.IndexAny(setting, " =") // both stand between a name and a value
	if end < 0 {
		return
	}
	name := strings.ToLower(setting[:end])
	if strings.HasSuffix(name, "provider") && strings.Contains(setting[end:], "/") {
		r.unresolvedWord("a program runs what it is told", setting)
	}
	if !strings.HasSuffix(name, "command") {
		return
	}
	if val := strings.TrimLeft(setting[end:], " ="); val != "none" {
		r.childCode(field{text: val, unsafe: f.unsafe}, in, nil)
	}
}

// multiplexer follows tmux and screen, which give lines to shells of theirs.
func (r *reader) multiplexer(c call) {
	const quiet = "ls list-sessions attach attach-session a kill-session kill-server kill-window kill-pane capture-pane capturep has-session has list-windows lsw list-panes lsp show-options show display-message detach detach-client select-window select-pane rename-session rename-window -V -ls -list -r -x -wipe -d -RR"
	const types = "-X stuff send-keys send run-shell run if-shell new-window neww new-session new respawn-pane respawnp split-window splitw pipe-pane pipep source-file source"
	told := anyWord(c.args[1:], types)
	for _, f := range c.args[1:] {
		if told {
			break
		}
		if hasWord(quiet, f.text) {
			return
		}
		if !strings.HasPrefix(f.text, "-") {
			break
		}
	}
	if len(c.args) > 1 {
		r.unresolvedWord("what runs in another terminal is not known", joinText(c.args))
	}
}

// git follows git, whose settings and some of whose commands run others.
func (r *reader) git(c call) {
	got, rest, _ := gitOptions.read(c.args[1:])
	for _, opt := range got {
		if opt.name == "c" {
			key, val, _ := strings.Cut(opt.value.text, "=")
			r.gitSetting(key, field{text: val, unsafe: opt.value.unsafe})
		}
		if opt.name == "config-env" || opt.name == "exec-path" && opt.value.text != "" {
			r.unresolvedWord("a setting of git is not known", opt.value.text)
		}
	}
	if len(rest) == 0 {
		return
	}
	args := rest[1:]
	for i := range args {
		name, val, attached := strings.Cut(args[i].text, "=")
		value := field{text: val, unsafe: args[i].unsafe}
		if !attached && i+1 < len(args) {
			value = args[i+1]
		}
		if long, ok := strings.CutPrefix(name, "--"); ok && len(long) > 5 {
			name = "--" + fullName("upload-pack receive-pack extcmd open-files-in-pager template", long)
		}
		switch name {
		case "--upload-pack", "--receive-pack", "--extcmd", "--exec", "--open-files-in-pager", "--access-hook", "--sendmail-cmd", "--to-cmd", "--cc-cmd", "--header-cmd",
			"--index-filter", "--tree-filter", "--msg-filter", "--env-filter", "--commit-filter", "--tag-name-filter", "--parent-filter", "--subdirectory-filter":
			if name != "--subdirectory-filter" && (attached || i+1 < len(args)) {
				r.childCode(value, c.in, nil)
			}
		}
		switch {
		case name == "--template" && value.text != "" && (rest[0].text == "clone" || rest[0].text == "init"):
			r.unresolvedWord("commands come from files", args[i].text)
		case name == "--smtp-server" && strings.Contains(value.text, "/"):
			r.childCode(value, c.in, nil)
		}
		if strings.HasPrefix(name, "ext::") {
			r.unresolvedWord("git runs a command for an address", args[i].text)
		}
	}
	switch rest[0].text {
	case "bisect":
		if len(args) > 0 && args[0].text == "run" {
			r.run(call{args: args[1:], in: c.in, more: c.more})
		}
	case "submodule":
		if args = skipDashes(args); len(args) > 0 && args[0].text == "foreach" {
			r.joinedCode(skipDashes(args[1:]), c)
		}
	case "rebase":
		r.gitCode("x:ims:X:C:qvnf", "x", args, c)
	case "difftool":
		r.gitCode("gydt:x:U:S:G:O:", "x", args, c)
	case "grep":
		r.gitCode("aIiwvhHLlcznopEGPFqWrO::A:B:C:e:f:m:", "O", args, c)
	case "instaweb":
		r.gitCode("lb:d:p:m:", "b d", args, c)
	case "clone":
		got, _ := gitClone.permuted(args)
		for _, opt := range got {
			switch key, val, _ := strings.Cut(opt.value.text, "="); opt.name {
			case "u":
				r.childCode(opt.value, c.in, nil)
			case "c", "config":
				r.gitSetting(key, field{text: val, unsafe: opt.value.unsafe})
			}
		}
	case "config":
		if args = skipDashes(args); len(args) > 1 {
			if args[0].text == "set" || args[0].text == "add" {
				args = skipDashes(args[1:])
			}
			if len(args) > 1 {
				r.gitSetting(args[0].text, args[1])
			}
		}
	}
}

const gitClone options = "lsqvn46b:o:j:c:u: --branch= --origin= --jobs= --config= --upload-pack= --template= --depth= --reference= --separate-git-dir= --filter= --server-option= --shallow-since= --shallow-exclude= --reference-if-able= --bundle-uri= --recurse-submodules --recursive --bare --mirror --quiet --verbose --no-checkout --single-branch --no-single-branch --no-tags --sparse --local --shared"

// gitCode follows options of one letter, of a command of git, that hold a line.
func (r *reader) gitCode(opts options, names string, args []field, c call) {
	got, _ := opts.permuted(args)
	for _, opt := range got {
		if hasWord(names, opt.name) && opt.value.text != "" {
			r.childCode(opt.value, c.in, nil)
		}
	}
}

// gitSetting follows settings of git that are commands.
func (r *reader) gitSetting(key string, val field) {
	key = strings.ToLower(key)
	switch {
	case strings.HasPrefix(key, "alias."):
		if text, ok := strings.CutPrefix(val.text, "!"); ok {
			r.childCode(field{text: text, unsafe: val.unsafe}, stdin{}, nil)
		} else {
			r.childCode(field{text: "git " + val.text, unsafe: val.unsafe}, stdin{}, nil)
		}
		return
	case key == "core.hookspath" && val.text != "/dev/null", key == "include.path", strings.HasPrefix(key, "includeif."):
		r.unresolvedWord("commands come from files", key+"="+val.text)
		return
	case val.text == "" || val.text == "true" || val.text == "false":
		return
	}
	section, last := key, key
	if i := strings.LastIndexByte(key, '.'); i >= 0 {
		section, last = key[:i], key[i+1:]
	}
	switch {
	case last == "helper" && !strings.HasPrefix(val.text, "!") && !strings.HasPrefix(val.text, "/"):
	case hasWord("pager editor command sshcommand gitproxy external textconv clean smudge process driver helper program askpass fsmonitor cmd packobjectshook uploadpack receivepack proxycommand difffilter", last),
		section == "pager" || section == "sequence":
		r.childCode(field{text: strings.TrimPrefix(val.text, "!"), unsafe: val.unsafe}, stdin{}, nil)
	}
}
