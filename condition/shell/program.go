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

func (r *reader) fd(c call) {
	args := c.args[1:]
	for i := range args {
		switch args[i].text {
		case "-x", "--exec", "-X", "--exec-batch":
			words := args[i+1:]
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
func (r *reader) ssh(c call) {
	got, rest, odd := sshOptions.read(c.args[1:])
	var more []option
	if len(rest) > 0 {
		rest = rest[1:] // the host
		var odd2 string
		if more, rest, odd2 = sshOptions.read(rest); odd == "" {
			odd = odd2
		}
	}
	if odd != "" {
		r.unresolvedWord("what stands behind an option is not known", odd)
	}
	for _, opt := range append(got, more...) {
		setting := strings.TrimSpace(opt.value.text)
		end := strings.IndexAny(setting, " =") // both stand between a name and a value
		if opt.name != "o" || end < 0 || !strings.HasSuffix(strings.ToLower(setting[:end]), "command") {
			continue
		}
		if val := strings.TrimLeft(setting[end:], " ="); val != "none" {
			r.childCode(field{text: val, unsafe: opt.value.unsafe}, c.in, nil)
		}
	}
	switch {
	case len(rest) > 0:
		r.joinedCode(rest, c)
	case c.more || c.in.given:
		r.fromInput(c.in, nil)
	}
}

// behindDashes follows programs that run what stands behind "--".
func (r *reader) behindDashes(c call, sub string) {
	found := false
	for i := range c.args {
		if c.args[i].text == sub || c.args[i].text == "run" {
			found = true
		}
		if found && c.args[i].text == "--" {
			r.run(call{args: c.args[i+1:], more: c.more, in: c.in})
			return
		}
	}
}

// multiplexer follows tmux and screen, which give lines to shells of theirs.
func (r *reader) multiplexer(c call) {
	const quiet = "ls list-sessions attach attach-session a kill-session kill-server kill-window kill-pane capture-pane capturep has-session has list-windows lsw list-panes lsp show-options show display-message detach detach-client select-window select-pane rename-session rename-window -V -ls -list -r -x -wipe -d -RR"
	for _, f := range c.args[1:] {
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
		if opt.name == "config-env" {
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
		switch name {
		case "--upload-pack", "--receive-pack", "--extcmd", "--exec", "--open-files-in-pager",
			"--index-filter", "--tree-filter", "--msg-filter", "--env-filter", "--commit-filter", "--tag-name-filter", "--parent-filter", "--subdirectory-filter":
			if name != "--subdirectory-filter" && (attached || i+1 < len(args)) {
				r.childCode(value, c.in, nil)
			}
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
		for i := range args[:max(0, len(args)-1)] {
			if args[i].text == "-x" {
				r.childCode(args[i+1], c.in, nil)
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
	case key == "core.hookspath" && val.text != "/dev/null":
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
	case hasWord("pager editor command sshcommand gitproxy external textconv clean smudge process driver helper program askpass fsmonitor cmd packobjectshook uploadpack receivepack proxycommand", last),
		section == "pager" || section == "sequence":
		r.childCode(field{text: strings.TrimPrefix(val.text, "!"), unsafe: val.unsafe}, stdin{}, nil)
	}
}
