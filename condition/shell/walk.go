package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

func (r *reader) stmts(list []*syntax.Stmt, in stdin) {
	for _, s := range list {
		r.stmt(s, in)
	}
}

func (r *reader) stmt(s *syntax.Stmt, in stdin) {
	if !r.step() {
		return
	}
	in = r.redirects(s.Redirs, in)
	if s.Background || s.Coprocess || s.Disown {
		r.maybe(func() { r.command(s.Cmd, in) })
	} else {
		r.command(s.Cmd, in)
	}
}

func (r *reader) command(cmd syntax.Command, in stdin) {
	switch c := cmd.(type) {
	case nil: // redirections only
	case *syntax.CallExpr:
		r.call(c, in)
	case *syntax.BinaryCmd:
		r.binary(c, in)
	case *syntax.Block:
		r.stmts(c.Stmts, in)
	case *syntax.Subshell:
		r.maybe(func() { r.stmts(c.Stmts, in) })
	case *syntax.IfClause:
		r.stmts(c.Cond, in)
		r.maybe(func() { r.stmts(c.Then, in) })
		if c.Else != nil {
			r.maybe(func() { r.command(c.Else, in) })
		}
	case *syntax.WhileClause:
		r.repeat(func() {
			r.stmts(c.Cond, in)
			r.stmts(c.Do, in)
		})
	case *syntax.ForClause:
		r.loop(c, in)
	case *syntax.CaseClause:
		r.nested(c.Word)
		for _, item := range c.Items {
			for _, p := range item.Patterns {
				r.nested(p)
			}
			r.maybe(func() { r.stmts(item.Stmts, in) })
		}
	case *syntax.FuncDecl:
		r.define(c)
	case *syntax.DeclClause:
		r.declare(c)
	case *syntax.TimeClause:
		if c.Stmt != nil {
			r.stmt(c.Stmt, in)
		}
	case *syntax.CoprocClause:
		r.maybe(func() { r.stmt(c.Stmt, stdin{given: true}) })
	case *syntax.ArithmCmd, *syntax.LetClause, *syntax.TestClause:
		r.nested(c)
	default:
		r.unresolved("the line holds a form that is not known here")
	}
}

func (r *reader) binary(c *syntax.BinaryCmd, in stdin) {
	if c.Op == syntax.Pipe || c.Op == syntax.PipeAll {
		r.maybe(func() { r.stmt(c.X, in) })
		r.maybe(func() { r.stmt(c.Y, stdin{given: true}) })
		return
	}
	r.stmt(c.X, in)
	r.maybe(func() { r.stmt(c.Y, in) })
}

func (r *reader) loop(c *syntax.ForClause, in stdin) {
	iter, ok := c.Loop.(*syntax.WordIter)
	if !ok {
		r.nested(c.Loop)
		r.repeat(func() { r.stmts(c.Do, in) })
		return
	}
	items, known := r.state.args, r.state.argsKnown
	if iter.InPos.IsValid() {
		for _, w := range iter.Items {
			r.nested(w)
		}
		items, known = r.words(iter.Items), true
	}
	v := variable{open: !known || c.Select}
	for _, item := range items {
		r.computed(item.text)
		if item.splits || item.glob || len(v.values) == maxValues {
			v.open = true
			continue
		}
		v.values = append(v.values, value{words: []field{item}})
	}
	r.repeat(func() {
		delete(r.chosen, iter.Name.Value)
		r.state.put(iter.Name.Value, v)
		r.stmts(c.Do, in)
	})
}

func (r *reader) define(c *syntax.FuncDecl) {
	names := c.Names
	if c.Name != nil {
		names = append(names, c.Name)
	}
	for _, name := range names {
		r.funcs = append(r.funcs, &function{name: name.Value, body: c.Body, src: r.src})
	}
	if len(names) == 0 { // it has no name and runs at once
		r.stmt(c.Body, stdin{given: true})
	}
}

// call follows a simple command.
func (r *reader) call(c *syntax.CallExpr, in stdin) {
	for _, a := range c.Assigns {
		r.nested(a)
	}
	for _, w := range c.Args {
		r.nested(w)
	}
	if len(c.Args) == 0 {
		for _, a := range c.Assigns {
			r.assignNode(a, false)
		}
		return
	}
	run := func() {
		args := r.words(c.Args) // before the assignments, which hold for what runs
		for _, a := range c.Assigns {
			r.assignNode(a, true)
		}
		if len(args) > 0 { // else no word was left
			r.run(call{args: args, in: in, source: r.span(c.Args[0].Pos(), c.End())})
		}
	}
	if len(c.Assigns) > 0 { // they hold for the command; some shells keep them
		alone := run
		run = func() { r.maybe(alone) }
	}
	r.choose(c.Args, run)
}

// assignNode follows name=value, name+=value and name=(values).
func (r *reader) assignNode(a *syntax.Assign, exported bool) {
	if a.Name == nil {
		return
	}
	name := a.Name.Value
	if a.Naked {
		return
	}
	var v value
	switch {
	case a.Index != nil:
		r.forget(name)
		return
	case a.Array != nil:
		v.array = true
		for _, e := range a.Array.Elems {
			if e.Index != nil || e.Value == nil {
				r.forget(name)
				return
			}
			v.words = r.appendWord(v.words, e.Value)
		}
	default:
		v.words = []field{r.single(a.Value)}
		r.computed(v.words[0].text)
	}
	if a.Append {
		old, ok := r.lookup(name)
		switch {
		case !ok:
			r.forget(name)
			return
		case v.array || old.array:
			v.words = append(old.words[:len(old.words):len(old.words)], v.words...)
			v.array = true
		case len(old.words) > 0:
			b := builder{r: r, whole: true}
			b.value(&old.words[0], false)
			b.value(&v.words[0], false)
			b.end()
			v.words = b.out
		}
	}
	r.assign(name, v, exported)
}

// declare follows export, declare and the like.
func (r *reader) declare(c *syntax.DeclClause) {
	exported := c.Variant.Value == "export"
	for _, a := range c.Args {
		r.nested(a)
		switch {
		case a.Name != nil && a.Naked:
			if v, ok := r.state.vars[a.Name.Value]; ok && exported {
				v.exported = true
				r.state.put(a.Name.Value, v)
			}
		case a.Name != nil:
			r.assignNode(a, exported)
		case a.Value != nil:
			r.declareWord(c.Variant.Value, r.single(a.Value), &exported)
		}
	}
	if c.Variant.Value == "nameref" {
		r.unresolved("a variable stands for another")
	}
}

// declareWord follows an option of declare, or a word that is not known.
func (r *reader) declareWord(command string, f field, exported *bool) {
	switch {
	case f.unknown:
		r.state.forgetAll()
		r.chosen = nil
	case strings.HasPrefix(f.text, "-"):
		*exported = *exported || strings.Contains(f.text, "x")
		if strings.Contains(f.text, "n") && command != "export" {
			r.unresolved("a variable stands for another")
		}
	default:
		r.assignWord(f, *exported)
	}
}

// assignWord follows a word of the form name=value.
func (r *reader) assignWord(f field, exported bool) {
	r.computed(f.text)
	name, text, ok := strings.Cut(f.text, "=")
	if !ok || !syntax.ValidName(name) || f.unknown && f.tail <= len(name) {
		return
	}
	v := f
	v.text, v.tail, v.splits, v.blind = text, max(0, f.tail-len(name)-1), false, f.unknown
	r.assign(name, value{words: []field{v}}, exported)
}

// redirects follows redirections and returns what the command reads.
func (r *reader) redirects(list []*syntax.Redirect, in stdin) stdin {
	for _, d := range list {
		r.nested(d.Word)
		if d.Hdoc != nil {
			r.nested(d.Hdoc)
		}
		first := d.N == nil || d.N.Value == "0"
		switch d.Op {
		case syntax.RdrIn, syntax.RdrInOut, syntax.DplIn:
			if d.Op == syntax.RdrInOut {
				r.writes(r.single(d.Word))
			}
			if first {
				in = stdin{given: true}
			}
		case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
			if first {
				in = r.document(d)
			}
		case syntax.DplOut:
			if f := r.single(d.Word); strings.Trim(f.text, "0123456789-") != "" {
				r.writes(f)
			}
		default:
			r.writes(r.single(d.Word))
		}
	}
	return in
}

// document returns a here-document or here-string.
func (r *reader) document(d *syntax.Redirect) stdin {
	if d.Op == syntax.WordHdoc {
		f := r.single(d.Word)
		r.computed(f.text)
		return stdin{given: true, text: f.text, known: !f.unsafe}
	}
	if d.Hdoc == nil {
		return stdin{given: true, known: true}
	}
	b := builder{r: r, whole: true, started: true}
	for _, p := range d.Hdoc.Parts {
		if lit, ok := p.(*syntax.Lit); ok && isQuoted(d.Word) {
			b.text(lit.Value)
		} else {
			b.part(p, document)
		}
	}
	b.end()
	text := b.out[0].text
	for d.Op == syntax.DashHdoc && strings.Contains("\n"+text, "\n\t") {
		text = strings.ReplaceAll("\n"+text, "\n\t", "\n")[1:]
	}
	return stdin{given: true, text: text, known: !b.out[0].unsafe}
}

// isQuoted reports whether the end mark of a here-document is quoted, so that
// the text is not expanded.
func isQuoted(mark *syntax.Word) bool {
	for _, p := range mark.Parts {
		if lit, ok := p.(*syntax.Lit); !ok || strings.IndexByte(lit.Value, '\\') >= 0 {
			return true
		}
	}
	return false
}
