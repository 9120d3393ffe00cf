package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// nested follows the commands within a node: substitutions, and what else
// expanding it does.
func (r *reader) nested(n syntax.Node) {
	if w, ok := n.(*syntax.Word); ok && plain(w) {
		return
	}
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			r.maybe(func() { r.stmts(n.Stmts, stdin{given: true}) })
			return false
		case *syntax.ProcSubst:
			r.maybe(func() { r.stmts(n.Stmts, stdin{given: true}) })
			return false
		case *syntax.ParamExp:
			r.expands(n)
		case *syntax.BinaryArithm:
			r.computes(n.X)
		case *syntax.UnaryArithm:
			r.computes(n.X)
		case *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.LetClause:
			r.quotedIn(n)
		case *syntax.BinaryTest:
			if n.Op >= syntax.TsEql && n.Op <= syntax.TsGtr {
				for _, side := range []syntax.TestExpr{n.X, n.Y} {
					if w, ok := side.(*syntax.Word); ok {
						r.computed(r.single(w).text)
					}
				}
			}
		case *syntax.UnaryTest:
			if w, ok := n.X.(*syntax.Word); ok && (n.Op == syntax.TsVarSet || n.Op == syntax.TsRefVar) {
				r.computed(r.single(w).text)
			}
		case *syntax.ExtGlob:
			// zsh takes *(e:code:) and *(+command) as conditions on files.
			if p := n.Pattern.Value; strings.HasPrefix(p, "+") || strings.HasPrefix(p, "e") && len(p) > 1 && strings.IndexByte(":'\"|{", p[1]) >= 0 {
				r.unresolvedWord("a pattern that some shells run", p)
			}
		}
		return true
	})
}

// plain reports whether nothing happens when a word is expanded.
func plain(w *syntax.Word) bool {
	for _, p := range w.Parts {
		switch p.(type) {
		case *syntax.Lit, *syntax.SglQuoted:
		default:
			return false
		}
	}
	return true
}

// expands follows what expanding a parameter does beside giving a value.
func (r *reader) expands(p *syntax.ParamExp) {
	if p.Exp == nil || p.Param == nil {
		return
	}
	switch p.Exp.Op {
	case syntax.AssignUnset, syntax.AssignUnsetOrNull:
		r.forget(p.Param.Value)
	case syntax.OtherParamOps:
		if p.Exp.Word != nil && strings.HasPrefix(p.Exp.Word.Lit(), "P") {
			r.unresolvedWord("the text of a variable is run", r.source(p))
		}
	}
}

// computed notes a text which arithmetic would run when it is a variable's: the
// index in it is expanded.
func (r *reader) computed(text string) {
	if strings.Contains(text, "[$(") || strings.Contains(text, "[`") {
		r.unresolvedWord("arithmetic may run what is in a text", text)
	}
}

// quotedIn looks at the texts in quotes within arithmetic.
func (r *reader) quotedIn(n syntax.Node) {
	syntax.Walk(n, func(n syntax.Node) bool {
		if q, ok := n.(*syntax.SglQuoted); ok {
			r.computed(q.Value)
		}
		_, isCmd := n.(*syntax.CmdSubst)
		return !isCmd
	})
}

// computes notes that arithmetic may assign a variable.
func (r *reader) computes(x syntax.ArithmExpr) {
	if w, ok := x.(*syntax.Word); ok {
		if name := w.Lit(); name != "" {
			if _, ok := r.state.vars[name]; ok {
				r.forget(name)
			}
		}
	}
}
