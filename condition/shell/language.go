package shell

import (
	"path"
	"slices"
	"strings"
)

// language is an interpreter of another language than the shell's. A text in
// that language can't be followed here.
type language struct {
	// inline are letters and long names of options whose value is such a text.
	inline string
	// values are letters and long names whose value is something else.
	values string
	// sub are first words behind which a text stands.
	sub string
	// quiet are options, letters too, and first words with which no text is read
	// from input.
	quiet string
	// reads says that without the name of a file it reads a text from its input.
	reads bool
	// modules says that -m names a module which is run.
	modules bool
	// preloads are those of values that name a text which is run first.
	preloads string
	// ends are endings which the name of a file may leave out.
	ends string
	// always says that a text is read, whatever else it is given.
	always bool
}

// languageOf returns the interpreter of a name in lower case, or nil.
func languageOf(name string) *language {
	switch name {
	case "python", "pypy":
		return &language{inline: "c", values: "W X Q check-hash-based-pycs", quiet: "V h version help help-all", modules: true, ends: "/__main__.py", reads: true}
	case "ipython", "bpython", "ptpython":
		return &language{inline: "c", modules: true, quiet: "V h version help", reads: true}
	case "octave", "octave-cli", "matlab":
		return &language{inline: "eval r batch", values: "p path", quiet: "v h version help", reads: true}
	case "gnuplot":
		return &language{inline: "e", values: "c", quiet: "V h version help", reads: true}
	case "perl":
		return &language{inline: "e E", values: "I", quiet: "v V h", reads: true}
	case "ruby", "jruby":
		return &language{inline: "e", values: "I r C E", preloads: "r", quiet: "v h version help", reads: true}
	case "irb", "iex", "ghci", "jshell":
		return &language{reads: true}
	case "node", "nodejs":
		return &language{inline: "e p eval print", values: "r require import loader experimental-loader C conditions title stack-trace-limit", preloads: "r require import loader experimental-loader", ends: ".js .mjs .cjs /index.js", quiet: "v h version help test run", reads: true}
	case "tsx", "ts-node":
		return &language{inline: "e p eval print", values: "r require import P project", preloads: "r require import", ends: ".ts .js", quiet: "v h version help", reads: true}
	case "bun":
		return &language{inline: "e p eval print", values: "r preload cwd", preloads: "r preload", quiet: "v h version help"}
	case "deno":
		return &language{sub: "eval repl", quiet: "V h version help"}
	case "php":
		return &language{inline: "r R B E F", values: "c d f S t z", quiet: "v m i h S version ini rf", reads: true}
	case "lua", "luajit", "texlua":
		return &language{inline: "e", values: "l", quiet: "v", reads: true}
	case "r":
		return &language{inline: "e", values: "f g d", quiet: "version help CMD", reads: true}
	case "rscript", "littler":
		return &language{inline: "e", quiet: "version"}
	case "julia":
		return &language{inline: "e E eval print", values: "C J t p L project", quiet: "v h version help"}
	case "elixir", "erl":
		return &language{inline: "e eval", values: "r S pa pz", quiet: "v h version help noshell"}
	case "osascript":
		return &language{inline: "e", values: "l s", reads: true}
	case "tclsh", "wish", "expect":
		return &language{inline: "c", reads: true}
	case "groovy", "scala", "kotlin", "racket", "guile", "sbcl", "clisp", "ocaml", "swift", "ghc", "raku", "rakudo", "nim", "crystal":
		return &language{inline: "e c eval x"}
	case "fish", "csh", "tcsh", "nu", "xonsh", "elvish":
		return &language{inline: "c C command commands", quiet: "v version help", reads: true}
	case "pwsh", "powershell", "cmd", "powershell.exe", "pwsh.exe", "cmd.exe":
		return &language{quiet: "version Version help", always: true}
	case "ex", "ed", "red":
		return &language{quiet: "version help", always: true}
	case "at", "batch":
		return &language{quiet: "l r d c V", always: true}
	case "crontab":
		return &language{quiet: "l r", reads: true}
	case "make", "gmake":
		return &language{}
	case "emacs", "emacsclient":
		return &language{inline: "eval execute f funcall batch l load script x"}
	case "gdb", "lldb":
		return &language{inline: "ex eval-command x o s source command"}
	}
	return nil
}

// interpreter follows an interpreter of the table.
func (r *reader) interpreter(name string, c call) bool {
	base := name
	if strings.HasPrefix(name, "python") || strings.HasPrefix(name, "pypy") || strings.HasPrefix(name, "ruby") || strings.HasPrefix(name, "perl") ||
		strings.HasPrefix(name, "php") || strings.HasPrefix(name, "ipython") || strings.HasPrefix(name, "lua") || strings.HasPrefix(name, "tclsh") {
		base = strings.TrimRight(name, "0123456789.-")
	}
	l := languageOf(base)
	if l == nil {
		return false
	}
	if why := l.text(r, c); why != "" {
		r.unresolvedWord("a program text of "+name, why)
	}
	return base != "bun" // which is also a wrapper
}

// text returns the words that are, or hold, a text which is run; "" for none.
func (l *language) text(r *reader, c call) string {
	args := c.args[1:]
	quiet := false
	for i := 0; i < len(args); i++ {
		f := &args[i]
		t := f.text
		if f.mayBeOption() || f.proc {
			return t
		}
		switch {
		case t == "-" || t == "--" && i+1 == len(args):
			return joinText(c.args)
		case t == "--":
			r.runsFile(&args[i+1])
			return ""
		case l.always && !hasWord(l.quiet, strings.TrimLeft(t, "-")):
			return joinText(c.args)
		case !strings.HasPrefix(t, "-"):
			if i == 0 && hasWord(l.sub, t) {
				return joinText(c.args)
			}
			if !hasWord(l.quiet, t) && l.reads {
				r.runsFile(f)
				l.also(r, t)
			}
			return ""
		case l.isInline(t):
			return joinText(c.args)
		}
		word := strings.TrimLeft(t, "-")
		if at := strings.IndexByte(word, 'm'); at >= 0 && l.modules && !strings.HasPrefix(t, "--") {
			if word = word[at+1:]; word == "" && i+1 < len(args) {
				word = args[i+1].text
			}
			if hasWord("timeit code asyncio pdb", word) {
				return joinText(c.args)
			}
			l.module(r, word, c)
			return ""
		}
		if l.preloads != "" && l.preloaded(t, args[i+1:]) {
			return joinText(c.args)
		}
		quiet = quiet || hasWord(l.quiet, word) || !strings.HasPrefix(t, "--") && strings.ContainsAny(word[len(word)-1:], letters(l.quiet))
		if hasWord(l.values, word) || !strings.HasPrefix(t, "--") && strings.Contains(letters(l.values), word[len(word)-1:]) && len(word) == 1 {
			i++
		}
	}
	if (l.reads || l.always) && !quiet || c.more {
		return joinText(c.args)
	}
	return ""
}

// also notes the files that the name of one without its ending may mean.
func (l *language) also(r *reader, name string) {
	if strings.Contains(path.Base(name), ".") && name != "." && name != ".." {
		return
	}
	for end := range strings.FieldsSeq(l.ends) {
		r.ran = append(r.ran, name+end)
	}
}

// module follows python -m.
func (l *language) module(r *reader, name string, c call) {
	switch {
	case hasWord("pytest unittest tox nox nose2 behave doctest coverage", name):
		r.project(recipeOf("pytest").files, c)
	case hasWord("pip", name):
		if i := slices.IndexFunc(c.args, func(f field) bool { return f.text == "pip" || strings.HasSuffix(f.text, "mpip") }); i >= 0 {
			r.pip(call{args: c.args[i:]})
		}
	case hasWord("zipfile tarfile", name) && (anyWord(c.args, "-e --extract")):
		r.brings(field{})
	case hasWord("venv virtualenv ensurepip http.server json.tool zipfile tarfile gzip compileall py_compile site sysconfig black ruff isort mypy flake8 pylint build twine this", name):
	default:
		file := strings.ReplaceAll(name, ".", "/")
		r.ran = append(r.ran, file+".py", file+"/__main__.py", file+"/__init__.py")
	}
}

// preloaded reports whether an option names a file, by its path, that is run
// before the program. Those of packages are left alone.
func (l *language) preloaded(t string, next []field) bool {
	name, val, attached := strings.Cut(strings.TrimLeft(t, "-"), "=")
	switch {
	case hasWord(l.preloads, name):
		if !attached && len(next) > 0 {
			val = next[0].text
		}
	case !strings.HasPrefix(t, "--") && len(name) > 1 && strings.Contains(letters(l.preloads), name[:1]): // -r./file
		val = t[2:]
	default:
		return false
	}
	return val != "" && (strings.ContainsAny(val[:1], "./~$") || strings.HasPrefix(val, "data:") || strings.HasPrefix(val, "file:"))
}

// isInline reports whether an option holds a text: by its name, or by a letter
// in a bundle such as -pe.
func (l *language) isInline(t string) bool {
	word := strings.TrimLeft(t, "-")
	name, _, _ := strings.Cut(word, "=")
	if name == "" {
		return false
	}
	if hasWord(l.inline, name) {
		return true
	}
	if strings.HasPrefix(t, "--") {
		return false
	}
	for i := 0; i < len(word); i++ {
		letter := word[i : i+1]
		if strings.Contains(letters(l.inline), letter) {
			return true
		}
		// What stands behind a letter with a value is that value.
		if strings.Contains(letters(l.values), letter) || letter == "m" || letter == "M" { // a module
			return false
		}
	}
	return false
}

// letters returns the single letters among words.
func letters(words string) string {
	var b strings.Builder
	for w := range strings.FieldsSeq(words) {
		if len(w) == 1 {
			b.WriteString(w)
		}
	}
	return b.String()
}
