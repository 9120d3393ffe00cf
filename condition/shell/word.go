package shell

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

const (
	maxWords    = 512 // of one command
	defaultIFS  = " \t\n"
	quotedPlain = "\"\\$`" // what a backslash quotes in double quotes
	quotedDoc   = "\\$`"   // and in a here-document
)

// where says how a part of a word stands in it.
type where int

const (
	bare where = iota
	quoted
	document
)

// builder makes fields of the parts of a word.
type builder struct {
	r       *reader
	out     []field
	cur     field
	buf     []byte
	started bool // cur is a field, even if it is empty
	whole   bool // the value of an assignment: it stays one word
}

// words expands the words of a command.
func (r *reader) words(list []*syntax.Word) []field {
	out := make([]field, 0, len(list))
	for _, w := range list {
		if out = r.appendWord(out, w); len(out) > maxWords {
			r.unresolved("a command has too many words")
			return out[:maxWords]
		}
	}
	return out
}

func (r *reader) appendWord(out []field, w *syntax.Word) []field {
	if len(w.Parts) == 1 {
		switch part := w.Parts[0].(type) {
		case *syntax.Lit:
			if !strings.ContainsAny(part.Value, "\\{*?[") {
				return append(out, field{text: part.Value})
			}
		case *syntax.SglQuoted:
			if !part.Dollar {
				return append(out, field{text: part.Value})
			}
		}
	}
	split := *w // SplitBraces changes the list of parts
	if !syntax.SplitBraces(&split) {
		return r.build(out, w.Parts, false)
	}
	variants, ok := braces(split.Parts)
	if !ok {
		return append(out, field{text: r.source(w), unknown: true, blind: true, unsafe: true, splits: true})
	}
	for _, parts := range variants {
		out = r.build(out, parts, false)
	}
	return out
}

// single expands a word that stays one, such as the value of an assignment.
func (r *reader) single(w *syntax.Word) field {
	if w == nil {
		return field{}
	}
	if list := r.build(nil, w.Parts, true); len(list) > 0 {
		return list[0]
	}
	return field{}
}

func (r *reader) build(out []field, parts []syntax.WordPart, whole bool) []field {
	b := builder{r: r, out: out, whole: whole}
	for _, p := range parts {
		b.part(p, bare)
	}
	b.end()
	return b.out
}

// end ends the current field.
func (b *builder) end() {
	if b.started {
		b.cur.text = string(b.buf)
		b.out = append(b.out, b.cur)
	}
	b.cur, b.buf, b.started = field{}, b.buf[:0], false
}

func (b *builder) text(s string) {
	b.started = true
	if b.r.spend(len(s)) {
		b.buf = append(b.buf, s...)
	}
}

// unknown adds a part that is not known.
func (b *builder) unknown(source string, at where, unsafe bool) {
	b.started = true
	b.cur.blind = b.cur.blind || len(b.buf) == 0
	b.cur.unknown = true
	b.cur.unsafe = b.cur.unsafe || unsafe
	b.cur.splits = b.cur.splits || unsafe && at == bare && !b.whole
	b.text(source)
	b.cur.tail = len(b.buf)
}

func (b *builder) part(p syntax.WordPart, at where) {
	switch p := p.(type) {
	case *syntax.Lit:
		b.literal(p.Value, at)
	case *syntax.SglQuoted:
		if p.Dollar {
			b.text(unescapeC(p.Value))
		} else {
			b.text(p.Value)
		}
	case *syntax.DblQuoted:
		// Empty quotes are a word, "$@" of no words is none.
		b.started = b.started || len(p.Parts) == 0
		for _, q := range p.Parts {
			b.part(q, quoted)
		}
	case *syntax.ParamExp:
		b.param(p, at)
	case *syntax.ArithmExp:
		b.unknown(b.r.source(p), at, false)
	case *syntax.ProcSubst:
		b.unknown(b.r.source(p), quoted, false)
		b.cur.proc = true
	case *syntax.ExtGlob:
		b.text(b.r.source(p))
		b.cur.glob = true
	default: // a command substitution
		b.unknown(b.r.source(p), at, true)
	}
}

func (b *builder) literal(s string, at where) {
	switch at {
	case quoted:
		b.text(unescapeIn(s, quotedPlain))
	case document:
		b.text(unescapeIn(s, quotedDoc))
	default:
		b.text(unescape(s))
		b.cur.glob = b.cur.glob || !b.whole && isGlob(s)
	}
}

// isGlob reports whether text outside of quotes matches names of files.
func isGlob(s string) bool {
	bracket := false
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '*', '?':
			return true
		case '[':
			bracket = true
		case ']':
			if bracket {
				return true
			}
		}
	}
	return false
}

// param adds the value of a parameter.
func (b *builder) param(p *syntax.ParamExp, at where) {
	v, ok := b.r.param(p)
	if !ok {
		b.unknown(b.r.source(p), at, !p.Length && (p.Param == nil || !harmless(p.Param.Value) || b.r.touched(p)))
		return
	}
	separate := at == bare && !b.whole
	for i := range v.words {
		if i > 0 {
			if b.whole || at == document || v.joined && !separate {
				b.text(" ")
			} else {
				b.end()
			}
		}
		b.value(&v.words[i], separate)
	}
}

// value adds a word that a variable holds. Outside of quotes it is split.
func (b *builder) value(f *field, separate bool) {
	switch {
	case f.unknown:
		blind := len(b.buf) == 0 && f.blind
		b.cur.unknown, b.cur.blind = true, b.cur.blind || blind
		b.cur.unsafe = b.cur.unsafe || f.unsafe
		b.cur.splits = b.cur.splits || separate && f.unsafe
		b.cur.tail = len(b.buf) + f.tail
		b.text(f.text)
	case !separate:
		b.text(f.text)
	default:
		b.split(f.text)
	}
	if separate {
		b.cur.glob = b.cur.glob || f.glob || isGlob(f.text)
	}
	b.cur.proc = b.cur.proc || f.proc
}

func (b *builder) split(s string) {
	ifs, ok := b.r.ifs()
	if !ok {
		b.unknown(s, bare, true)
		return
	}
	for s != "" {
		if i := strings.IndexAny(s, ifs); i == 0 {
			b.end()
			s = s[1:]
		} else if i > 0 {
			b.text(s[:i])
			s = s[i:]
		} else {
			b.text(s)
			return
		}
	}
}

// ifs returns the characters that split words.
func (r *reader) ifs() (string, bool) {
	v, ok := r.state.vars["IFS"]
	if !ok {
		return defaultIFS, !r.state.wild
	}
	if len(v.values) == 1 && !v.open && len(v.values[0].words) == 1 && !v.values[0].words[0].unknown {
		return v.values[0].words[0].text, true
	}
	return "", false
}

// expansion is what a parameter stands for.
type expansion struct {
	words []field
	// joined says that in quotes the words are one, as in "$*".
	joined bool
}

// touched reports whether the line assigns the parameter, so that it need not
// be the harmless one of the environment.
func (r *reader) touched(p *syntax.ParamExp) bool {
	_, ok := r.state.vars[p.Param.Value]
	return ok || r.state.wild || p.Excl || p.Exp != nil || p.Repl != nil
}

// param looks a parameter up. It is not ok when the value is not known.
func (r *reader) param(p *syntax.ParamExp) (expansion, bool) {
	none := expansion{}
	if p.Param == nil || p.Flags != nil || p.Excl || p.Length || p.Width || p.IsSet || p.NestedParam != nil ||
		p.Modifiers != nil || p.Slice != nil || p.Repl != nil || p.Names != 0 {
		return none, false
	}
	v, ok := r.plainParam(p)
	if p.Exp == nil || !ok {
		return v, ok
	}
	set := len(v.words) > 0
	full := set && v.words[0].text != ""
	switch p.Exp.Op {
	case syntax.DefaultUnset, syntax.AssignUnset, syntax.ErrorUnset:
		return v, set
	case syntax.DefaultUnsetOrNull, syntax.AssignUnsetOrNull, syntax.ErrorUnsetOrNull:
		return v, full
	}
	return none, false
}

func (r *reader) plainParam(p *syntax.ParamExp) (expansion, bool) {
	name := p.Param.Value
	switch name {
	case "@", "*":
		return expansion{words: r.state.args, joined: name == "*"}, r.state.argsKnown
	case "IFS":
		if ifs, ok := r.ifs(); ok {
			return expansion{words: []field{{text: ifs}}}, true
		}
		return expansion{}, false
	}
	if name != "" && name[0] >= '1' && name[0] <= '9' {
		n, err := strconv.Atoi(name)
		if err != nil || !r.state.argsKnown {
			return expansion{}, false
		}
		if n > len(r.state.args) {
			return expansion{}, true
		}
		return expansion{words: r.state.args[n-1 : n]}, true
	}
	v, ok := r.lookup(name)
	if !ok {
		return expansion{}, false
	}
	return index(v, p.Index)
}

// index picks from a value what the index says.
func index(v value, at syntax.ArithmExpr) (expansion, bool) {
	word, ok := at.(*syntax.Word)
	switch {
	case at == nil:
		return expansion{words: v.words[:min(1, len(v.words))]}, true
	case !ok:
		return expansion{}, false
	}
	switch i := word.Lit(); i {
	case "@", "*":
		return expansion{words: v.words, joined: i == "*"}, true
	default:
		n, err := strconv.Atoi(i)
		if err != nil || n < 0 || n >= len(v.words) {
			return expansion{}, false
		}
		return expansion{words: v.words[n : n+1]}, true
	}
}
