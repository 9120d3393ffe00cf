package shell

import (
	"path"
	"slices"
	"strings"
)

// starter follows programs that start others in a way of their own. It reports
// whether nothing else is to be looked at.
func (r *reader) starter(name string, c call) bool {
	args := c.args[1:]
	switch name {
	case "ip":
		if i := slices.IndexFunc(args, func(f field) bool { return f.text == "exec" }); i > 0 {
			if strings.HasPrefix(args[0].text, "-a") { // in all, so none is named
				r.run(call{args: args[i+1:], more: c.more, in: c.in})
			}
			r.run(call{args: args[min(i+2, len(args)):], more: c.more, in: c.in})
		}
	case "xterm", "uxterm", "rxvt", "urxvt", "konsole", "alacritty", "st", "foot", "lxterminal", "xfce4-terminal", "gnome-terminal", "mate-terminal",
		"terminator", "tilix", "kitty", "wezterm", "ghostty", "x-terminal-emulator":
		r.terminal(c)
	case "dotenv":
		_, rest, odd := options("e:c::v:of:p:q: --file= --quote= --override --export").read(args)
		if odd != "" {
			r.unresolvedWord("what stands behind an option is not known", odd)
		}
		if len(rest) > 0 && rest[0].text == "run" {
			_, rest, _ = options(" --override --no-override").read(rest[1:])
		}
		if len(rest) > 0 || c.more {
			r.run(call{args: rest, more: c.more, in: c.in})
		}
	case "coreutils":
		if len(args) > 0 && strings.HasPrefix(args[0].text, "--coreutils-prog") && strings.IndexByte(args[0].text, '=') > 0 {
			first := args[0].cutTo(strings.IndexByte(args[0].text, '=') + 1)
			r.run(call{args: append([]field{first}, args[1:]...), more: c.more, in: c.in})
		}
	case "adb":
		i := slices.IndexFunc(args, func(f field) bool { return hasWord("shell exec-out exec-in", f.text) })
		switch {
		case i < 0:
		case i+1 == len(args):
			r.fromInput(c.in, nil)
		default:
			r.joinedCode(skipDashes(args[i+1:]), c)
		}
	case "mpirun", "mpiexec", "orterun", "mpiexec.hydra":
		r.mpi(c)
	case "rename", "prename", "perl-rename", "file-rename":
		if slices.ContainsFunc(args, renames) {
			r.unresolvedWord("a program text of "+name, joinText(c.args))
		}
	case "dc":
		r.calculator(c)
	case "split", "gsplit", "csplit", "gcsplit":
		r.split(name, args)
	default:
		return r.alsoStarter(name, c)
	}
	return true
}

// alsoStarter follows those that can do so besides what else they do.
func (r *reader) alsoStarter(name string, c call) bool {
	args := c.args[1:]
	switch name {
	case "podman", "buildah":
		if firstWord(args) == "unshare" {
			for len(args) > 0 && args[0].text != "unshare" {
				args = args[1:]
			}
			r.unwrap(&wrapper{opts: " --rootless-netns --mount=", shell: true}, call{args: args[min(1, len(args)):], more: c.more, in: c.in})
			return true
		}
	case "just":
		for i, f := range args {
			if f.text == "-c" || f.text == "--command" {
				r.run(call{args: args[i+1:], more: c.more, in: c.in})
			}
		}
	case "deno":
		for _, f := range args {
			if isAddress(f.text) || f.text == "-" {
				r.unresolvedWord("a program comes from elsewhere", joinText(c.args))
			}
		}
	case "npm", "pnpm":
		r.packageScripts(args)
	case "sqlite3", "psql", "mysql", "mariadb", "gnuplot":
		if !c.in.known {
			break
		}
		marks := suspectsOf(name)
		if name == "sqlite3" {
			marks += " .shell"
		}
		for mark := range strings.FieldsSeq(marks) {
			if strings.Contains(c.in.text, mark) {
				r.unresolvedWord("a program runs what it is told", joinText(c.args))
			}
		}
	}
	return false
}

func isAddress(text string) bool {
	return strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "data:")
}

// terminal follows windows with a terminal, which are told what runs in them.
func (r *reader) terminal(c call) {
	for i, f := range c.args[1:] {
		if hasWord("-e -x -- --command --execute", f.text) {
			r.joinedCode(c.args[i+2:], c)
			return
		}
		if i == 0 && hasWord("--version --help", f.text) {
			return
		}
	}
	if len(c.args) > 1 {
		r.unresolvedWord("what runs in another terminal is not known", joinText(c.args))
	}
}

// mpi follows programs that start one many times.
func (r *reader) mpi(c call) {
	args := c.args[1:]
	for len(args) > 0 {
		switch t := args[0].text; {
		case args[0].mayBeOption():
			r.unresolvedWord("what stands behind an option is not known", t)
		case hasWord("-mca --mca -gmca -genv -env", t):
			args = args[min(2, len(args)-1):]
		case hasWord("-np -n -c -N -H -host --host -hosts -f -hostfile --hostfile -machinefile --machinefile -ppn -x -wdir -wd --wdir --map-by --bind-to --rank-by -np= --tag", t):
			args = args[min(1, len(args)-1):]
		case hasWord("--oversubscribe --allow-run-as-root -q --quiet -v --verbose --tag-output --report-bindings --use-hwthread-cpus", t):
		case hasWord("--version -V --help -h", t):
			return
		case strings.HasPrefix(t, "-"):
			r.unresolvedWord("what stands behind an option is not known", t)
		default:
			r.run(call{args: args, more: c.more, in: c.in})
			if next := slices.IndexFunc(args, func(f field) bool { return f.text == ":" }); next > 0 {
				args = args[next:]
			} else {
				return
			}
		}
		args = args[1:]
	}
}

// renames reports whether an argument of rename is a text that does more than
// replace.
func renames(f field) bool {
	t := f.text
	for _, verb := range []string{"s", "tr", "y"} {
		rest, ok := strings.CutPrefix(t, verb)
		if !ok || rest == "" || isNameByte(rest[0]) || rest[0] == '.' || rest[0] == '-' || rest[0] == ' ' {
			continue
		}
		s := &sedScript{text: rest}
		mark := s.next()
		if strings.IndexByte("{([<", mark) >= 0 || !s.until(mark) || !s.until(mark) {
			return true
		}
		return strings.Trim(s.text[s.at:], "gimsxrdc") != "" || strings.Contains(t, "(?{") || strings.Contains(t, "(??{")
	}
	return strings.ContainsAny(t, "`;") || strings.Contains(t, "system") || strings.Contains(t, "exec") || strings.Contains(t, "qx")
}

// calculator follows dc, of which a line that begins with ! is a command.
func (r *reader) calculator(c call) {
	runs := c.in.given && (!c.in.known || strings.Contains(c.in.text, "!"))
	for i := 1; i < len(c.args); i++ {
		f := &c.args[i]
		runs = runs || strings.Contains(f.text, "!") || f.unknown && f.unsafe
		if !strings.HasPrefix(f.text, "-") && c.args[i-1].text != "-e" && c.args[i-1].text != "--expression" {
			r.runsFile(f)
		}
	}
	if runs {
		r.unresolvedWord("a program runs what it is told", joinText(c.args))
	}
}

// split notes the files that split and csplit write, whose names begin alike.
func (r *reader) split(name string, args []field) {
	opts := options("a:b:C:dn:l:t:uxe --suffix-length= --additional-suffix= --bytes= --line-bytes= --numeric-suffixes --hex-suffixes --lines= --number= --filter= --separator= --verbose --elide-empty-files")
	csplit := strings.HasSuffix(name, "csplit")
	if csplit {
		opts = "f:b:n:kszq --prefix= --suffix-format= --digits= --keep-files --quiet --silent --elide-empty-files"
	}
	got, operands := opts.permuted(args)
	prefix := field{text: "x"}
	if csplit {
		prefix.text = "xx"
		if v, ok := find(got, "f prefix"); ok {
			prefix = v
		}
	} else if _, ok := find(got, "filter"); ok {
		return
	} else if len(operands) > 1 {
		prefix = operands[1]
	}
	prefix.text += "*"
	r.writes(prefix)
}

// packageScripts follows npm pkg set, which puts lines into package.json.
func (r *reader) packageScripts(args []field) {
	switch sub := firstWord(args); {
	case sub == "set-script" && len(args) > 2:
		r.childCode(args[2], stdin{}, nil)
	case sub == "pkg" && anyWord(args, "set"):
		for i := range args {
			if key, _, ok := strings.Cut(args[i].text, "="); ok && (strings.HasPrefix(key, "scripts") || args[i].unknown && args[i].tail <= len(key)) {
				r.childCode(args[i].cutTo(len(key)+1), stdin{}, nil)
			}
		}
	}
}

// awkWrites notes the files to which a text of awk prints.
func (r *reader) awkWrites(text string) {
	prints, depth := false, 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			i = awkEnd(text, i+1, '"')
		case strings.IndexByte("([", c) >= 0:
			depth++
		case strings.IndexByte(")]", c) >= 0:
			depth--
		case strings.IndexByte(";{}\n", c) >= 0:
			prints, depth = false, 0
		case c == '>' && prints && depth <= 0:
			to := strings.TrimLeft(strings.TrimLeft(text[i:], ">"), " \t")
			prints = false
			if rest, ok := strings.CutPrefix(to, `"`); ok {
				if end := awkEnd(rest, 0, '"'); end < len(rest) && strings.Trim(rest[end+1:], " \t") == "" || end+1 < len(rest) && strings.IndexByte(";}\n", strings.TrimLeft(rest[end+1:], " \t")[0]) >= 0 {
					r.writes(field{text: rest[:end]})
					break
				}
			}
			r.brings(here()) // the name is worked out
		case isNameByte(c) && (c < '0' || c > '9'):
			from := i
			for i+1 < len(text) && isNameByte(text[i+1]) {
				i++
			}
			prints = prints || hasWord("print printf", text[from:i+1])
		}
	}
}

// windowsName returns the name of a program without the ending that Windows
// gives it, and without folders as they are written there.
func windowsName(name string) string {
	low := strings.ToLower(name)
	if len(low) > 2 && low[1] == ':' && low[2] == '\\' {
		low, name = path.Base(strings.ReplaceAll(low, `\`, "/")), path.Base(strings.ReplaceAll(name, `\`, "/"))
	}
	if base, ok := strings.CutSuffix(low, ".exe"); ok && base != "" {
		return base
	}
	return name
}
