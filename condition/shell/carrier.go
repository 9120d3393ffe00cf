package shell

import "strings"

// carrierOf returns the options, by letter or long name, whose value a program
// gives to a shell; name is in lower case.
func carrierOf(name string) string {
	switch name {
	case "tar", "gtar", "bsdtar":
		return "I F to-command use-compress-program rsh-command rmt-command info-script new-volume-script checkpoint-action"
	case "rsync":
		return "e rsh rsync-path"
	case "scp", "sftp":
		return "S"
	case "split", "gsplit":
		return "filter"
	case "sort", "gsort":
		return "compress-program"
	case "man":
		return "P H pager html"
	case "zip":
		return "TT unzip-command"
	case "go":
		return "exec toolexec vettool"
	case "nc", "ncat", "netcat":
		return "e c exec sh-exec"
	case "mapfile", "readarray", "complete", "compgen":
		return "C"
	case "gcloud":
		return "command"
	case "wget":
		return "use-askpass"
	case "rg":
		return "pre hostname-bin"
	case "ag", "ack", "bat", "batcat", "delta":
		return "pager"
	case "fzf", "sk":
		return "preview"
	case "npm", "pnpm":
		return "script-shell"
	case "nano":
		return "s speller"
	case "mosh":
		return "ssh server"
	case "chokidar":
		return "c command"
	case "rustc", "clippy-driver":
		return "rustc-wrapper"
	}
	return ""
}

// suspectsOf returns what in the arguments of a program, which has a language
// of its own, lets it run others.
func suspectsOf(name string) string {
	switch name {
	case "sqlite3":
		return ".sh .system"
	case "psql", "mysql", "mariadb":
		return `\! system PROGRAM program`
	case "socat":
		return "exec: EXEC: system: SYSTEM: shell: SHELL:"
	case "less", "more", "most":
		return "+!"
	case "apt", "apt-get", "dpkg":
		return "Invoke invoke"
	case "bind":
		return "-x"
	case "java", "javac":
		return "-javaagent: -agentlib: -agentpath: -Xbootclasspath OnError OnOutOfMemoryError"
	case "sshfs":
		return "ssh_command"
	case "php":
		return "auto_prepend_file auto_append_file"
	case "fzf", "sk":
		return "execute become( reload( transform("
	case "ld", "ld.lld", "ld.gold", "ld.bfd":
		return "-plugin"
	case "ssh-keygen":
		return "-D"
	case "ssh-add":
		return "-s"
	case "gnuplot":
		return "! system"
	case "rpm", "rpmspec", "rpmbuild":
		return "%( %{lua"
	}
	return ""
}

// carrier follows programs that run what an option or argument holds.
func (r *reader) carrier(name string, c call) {
	if opts := carrierOf(name); opts != "" {
		r.carries(opts, c)
	}
	marks := suspectsOf(name)
	if marks == "" {
		return
	}
	for _, f := range c.args[1:] {
		for mark := range strings.FieldsSeq(marks) {
			if strings.Contains(f.text, mark) {
				r.unresolvedWord("a program runs what it is told", joinText(c.args))
			}
		}
	}
}

func (r *reader) carries(opts string, c call) {
	args := c.args[1:]
	for i := range args {
		t := args[i].text
		if len(t) < 2 || t[0] != '-' {
			continue
		}
		name, val, attached := strings.Cut(strings.TrimLeft(t, "-"), "=")
		value := field{text: val, unsafe: args[i].unsafe}
		if strings.HasPrefix(t, "--") {
			name = fullName(opts, name)
		}
		at := -1
		if t[1] != '-' && !hasWord(opts, name) {
			at = carriedAt(letters(opts), t)
		}
		switch {
		case at > 0 && at+1 < len(t): // -Ivalue
			value.text = t[at+1:]
		case at > 0 && i+1 < len(args):
			value = args[i+1]
		case !hasWord(opts, name):
			continue
		case !attached && i+1 < len(args):
			value = args[i+1]
		}
		if name == "checkpoint-action" {
			text, ok := strings.CutPrefix(value.text, "exec=")
			if !ok {
				continue
			}
			value.text = text
		}
		r.childCode(value, stdin{}, nil)
	}
}

// fullName returns the long option that a name is, which may be cut short.
func fullName(opts, name string) string {
	if hasWord(opts, name) || len(name) < 2 {
		return name
	}
	for w := range strings.FieldsSeq(opts) {
		if strings.HasPrefix(w, name) {
			return w
		}
	}
	return name
}

// carriedAt returns where in a bundle of letters, such as -avze, one stands whose
// value is a command; -1 for nowhere.
func carriedAt(letters, bundle string) int {
	if len(bundle) < 2 || bundle[0] != '-' || bundle[1] == '-' {
		return -1
	}
	for i := 1; i < len(bundle); i++ {
		switch c := bundle[i]; {
		case strings.IndexByte(letters, c) >= 0:
			return i
		case c < 'A' || c > 'Z' && c < 'a' || c > 'z' || strings.IndexByte("fbCKLNVXMBTp", c) >= 0: // what follows is a value
			return -1
		}
	}
	return -1
}
