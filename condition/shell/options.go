package shell

import "strings"

// options says which options a program has, as its own reader of options would
// be told: "ab:c::" are the letters, ":" behind those with a value and "::"
// behind those whose value is attached if there is one; long names follow, "="
// behind those with a value, as in "ab:c --all --block=".
type options string

// short reports whether a letter is known, whether it takes what is attached to
// it as its value, and else the next word.
func (o options) short(c byte) (known, attached, next bool) {
	letters, _, _ := strings.Cut(string(o), " ")
	i := strings.IndexByte(letters, c)
	if i < 0 || c == ':' {
		return false, false, false
	}
	behind := letters[i+1:]
	return true, strings.HasPrefix(behind, ":"), strings.HasPrefix(behind, ":") && !strings.HasPrefix(behind, "::")
}

// long does so for a name, which may be cut short.
func (o options) long(name string) (full string, known, value bool) {
	_, rest, _ := strings.Cut(string(o), " ")
	for word := range strings.FieldsSeq(rest) {
		long, hasValue := strings.CutSuffix(word[2:], "=")
		if long == name {
			return long, true, hasValue
		}
		if !known && strings.HasPrefix(long, name) {
			full, known, value = long, true, hasValue
		}
	}
	return full, known, value
}

// takesValue reports whether an option has its value in the next word.
func (o options) takesValue(arg string) bool {
	if name, ok := strings.CutPrefix(arg, "--"); ok {
		if strings.Contains(name, "=") {
			return false
		}
		_, _, value := o.long(name)
		return value
	}
	for i := 1; i < len(arg); i++ {
		if _, attached, next := o.short(arg[i]); attached {
			return next && i+1 == len(arg)
		}
	}
	return false
}

// option is one that was given, with its value.
type option struct {
	name  string // a letter, or a long name in full
	value field
}

// read takes the options from the start of args. odd is the first that is not
// known, whose value could be taken for what follows.
func (o options) read(args []field) (got []option, rest []field, odd string) {
	note := func(f *field) {
		if odd == "" {
			odd = f.text
		}
	}
	for len(args) > 0 {
		f := &args[0]
		t := f.text
		if f.unknown && f.blind || len(t) < 2 || t[0] != '-' {
			if f.splits {
				note(f)
			}
			break
		}
		args = args[1:]
		if t == "--" {
			break
		}
		if long, ok := strings.CutPrefix(t, "--"); ok {
			name, val, attached := strings.Cut(long, "=")
			full, known, value := o.long(name)
			opt := option{name: full}
			switch {
			case !known:
				note(f)
				continue
			case attached:
				opt.value = f.cutTo(len(t) - len(val))
			case value && len(args) > 0:
				opt.value, args = args[0], args[1:]
			}
			got = append(got, opt)
			continue
		}
		for i := 1; i < len(t); i++ {
			known, attached, next := o.short(t[i])
			if !known {
				note(f)
				continue
			}
			opt := option{name: t[i : i+1]}
			switch {
			case attached && i+1 < len(t):
				opt.value = f.cutTo(i + 1)
				i = len(t)
			case next && len(args) > 0:
				opt.value, args = args[0], args[1:]
			}
			got = append(got, opt)
		}
	}
	return got, args, odd
}

// permuted takes the options from wherever they stand among args.
func (o options) permuted(args []field) (got []option, operands []field) {
	for len(args) > 0 {
		opts, rest, _ := o.read(args)
		got = append(got, opts...)
		operands = append(operands, rest[:min(1, len(rest))]...)
		args = rest[min(1, len(rest)):]
	}
	return got, operands
}

// cutTo is the word from a place in its text on.
func (f *field) cutTo(from int) field {
	g := *f
	g.text, g.tail = f.text[from:], max(0, f.tail-from)
	if g.unknown && f.tail <= from {
		g.unknown, g.unsafe, g.splits = false, false, f.splits
	}
	g.blind = g.unknown
	return g
}

func find(got []option, names string) (field, bool) {
	for _, opt := range got {
		for name := range strings.FieldsSeq(names) {
			if opt.name == name {
				return opt.value, true
			}
		}
	}
	return field{}, false
}
