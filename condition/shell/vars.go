package shell

import (
	"maps"
	"slices"
	"strings"
)

// field is one word after expansion. The zero value is an empty word that is
// known.
type field struct {
	// text is the value. What is not known of it stands as it is written.
	text string
	// unknown says that text holds such a part; tail is where the last one ends.
	unknown bool
	tail    int
	// blind says that the unknown part is at the start.
	blind bool
	// unsafe says that the unknown part may be any text. Otherwise it is a number
	// or a path, and means nothing to a shell that reads it once more.
	unsafe bool
	// splits says that it may become no word, or several.
	splits bool
	// glob says that it may become names of files.
	glob bool
	// proc says that it is the file of a process substitution.
	proc bool
}

// mayBeOption reports whether the word may begin with a dash without showing it.
func (f *field) mayBeOption() bool {
	return f.splits || f.blind && f.unsafe || f.glob && f.text != "" && strings.IndexByte("*?[", f.text[0]) >= 0
}

// value is what a variable may hold: a word, or the words of an array.
type value struct {
	words []field
	array bool
}

func (v value) equal(w value) bool { return v.array == w.array && slices.Equal(v.words, w.words) }

const (
	maxVars      = 64
	maxValues    = 8        // of one variable; with more it is not known
	maxValueText = 16 << 10 // bytes of one value; with more it is not known
)

// variable is what a variable may hold at a point of the line. A variable that
// the line does not touch has no entry.
type variable struct {
	values []value
	// open says that it may hold something else, too.
	open     bool
	exported bool
}

func (v variable) equal(w variable) bool {
	return v.open == w.open && v.exported == w.exported && slices.EqualFunc(v.values, w.values, value.equal)
}

// state is what is known of a shell at a point of the line.
type state struct {
	vars map[string]variable
	// args are the positional parameters from $1 on, when argsKnown.
	args      []field
	argsKnown bool
	// wild says that variables may have been assigned whose names are not known.
	wild bool
}

func (s *state) clone() state {
	c := *s
	if len(s.vars) > 0 {
		c.vars = maps.Clone(s.vars)
	} else {
		c.vars = nil
	}
	return c
}

func (s *state) equal(o *state) bool {
	return s.wild == o.wild && s.argsKnown == o.argsKnown && slices.Equal(s.args, o.args) && maps.EqualFunc(s.vars, o.vars, variable.equal)
}

// join makes s what is known when the shell may be in s or in o.
func (s *state) join(o *state) {
	s.wild = s.wild || o.wild
	if !s.argsKnown || !o.argsKnown || !slices.Equal(s.args, o.args) {
		s.args, s.argsKnown = nil, false
	}
	for name, v := range s.vars {
		w, ok := o.vars[name]
		if !ok {
			w.open = true
		}
		s.vars[name] = joined(v, w)
	}
	for name, w := range o.vars {
		if _, ok := s.vars[name]; !ok {
			w.open = true
			s.put(name, w)
		}
	}
}

func joined(v, w variable) variable {
	out := variable{values: slices.Clip(v.values), open: v.open || w.open, exported: v.exported || w.exported}
	for _, x := range w.values {
		if !slices.ContainsFunc(out.values, x.equal) {
			out.values = append(out.values, x)
		}
	}
	if len(out.values) > maxValues {
		return variable{open: true, exported: out.exported}
	}
	return out
}

func (s *state) put(name string, v variable) {
	if s.vars == nil {
		s.vars = map[string]variable{}
	}
	if _, ok := s.vars[name]; !ok && len(s.vars) >= maxVars {
		// What has no entry is not known either.
		s.vars, s.wild = nil, true
		return
	}
	s.vars[name] = v
}

// set assigns a value.
func (s *state) set(name string, v value, exported bool) {
	size := 0
	for i := range v.words {
		size += len(v.words[i].text)
	}
	exported = exported || s.vars[name].exported
	if size > maxValueText {
		s.put(name, variable{open: true, exported: exported})
		return
	}
	s.put(name, variable{values: []value{v}, exported: exported})
}

// forget makes a variable unknown.
func (s *state) forget(name string) {
	s.put(name, variable{open: true, exported: s.vars[name].exported})
}

// forgetAll makes every variable unknown.
func (s *state) forgetAll() {
	for name := range s.vars {
		s.forget(name)
	}
	s.wild = true
}

// child is the state of another shell that this one starts.
func (s *state) child() state {
	c := state{wild: s.wild}
	for name, v := range s.vars {
		if v.exported && name != "IFS" {
			c.put(name, v)
		}
	}
	return c
}

// harmless reports whether a variable that the line does not touch holds a path
// or a number, and so nothing that would be read as words or code.
func harmless(name string) bool {
	switch name {
	case "HOME", "PWD", "OLDPWD", "USER", "LOGNAME", "UID", "EUID", "PPID", "TMPDIR", "HOSTNAME", "SHLVL", "LINENO", "RANDOM", "SECONDS",
		"BASHPID", "PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "NODE_PATH", "SHELL", "COLUMNS", "LINES", "OSTYPE", "MACHTYPE", "HOSTTYPE",
		"GOPATH", "GOROOT", "GOBIN", "CARGO_HOME", "RUSTUP_HOME", "JAVA_HOME", "NVM_DIR", "PNPM_HOME", "VIRTUAL_ENV", "CONDA_PREFIX",
		"#", "?", "$", "!", "-":
		return true
	}
	return strings.HasPrefix(name, "XDG_") && strings.HasSuffix(name, "_HOME")
}
