package shell

import "strings"

// carrierOf returns the options, by letter or long name, whose value a program
// gives to a shell; name is in lower case.
func carrierOf(name string) string {
	switch name {
	case "tar", "gtar", "bsdtar":
		return "I F to-command use-compress-program rsh-command info-script new-volume-script checkpoint-action"
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
	}
	return ""
}

// suspectsOf returns what in the arguments of a program, which has a language
// of its own, lets it run others.
func suspectsOf(name string) string {
	switch name {
	case "vi", "vim", "nvim", "view", "vimdiff", "gvim", "rvim":
		return "! system( :te lua py :so ruby"
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
	if strings.Contains(marks, ":so") && c.in.given {
		r.unresolvedWord("an editor reads what it does from its input", joinText(c.args))
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
		switch {
		case t[1] != '-' && len(name) > 1 && strings.Contains(letters(opts), name[:1]) && !hasWord(opts, name): // -Ivalue
			value.text = t[2:]
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
