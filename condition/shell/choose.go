package shell

import (
	"slices"

	"mvdan.cc/sh/v3/syntax"
)

// lookup returns what a variable holds.
func (r *reader) lookup(name string) (value, bool) {
	v, ok := r.state.vars[name]
	if !ok {
		return value{}, false
	}
	if c, ok := r.chosen[name]; ok {
		if c == nil {
			return value{}, false
		}
		return *c, true
	}
	if len(v.values) == 1 && !v.open {
		return v.values[0], true
	}
	return value{}, false
}

// assign lets a variable hold a value from here on.
func (r *reader) assign(name string, v value, exported bool) {
	delete(r.chosen, name)
	r.state.set(name, v, exported)
	if len(v.words) == 1 {
		r.assigned(name, v.words[0])
	}
}

func (r *reader) forget(name string) {
	delete(r.chosen, name)
	r.state.forget(name)
}

// choose follows f once for each way in which the variables of the nodes can be
// read.
func (r *reader) choose(words []*syntax.Word, f func()) {
	names := r.severalIn(words)
	if len(names) == 0 {
		f()
		return
	}
	ways := 1
	for i, name := range names {
		v := r.state.vars[name]
		n := len(v.values)
		if v.open {
			n++
		}
		if ways*n > maxChoices {
			names = names[:i] // the rest is not known
			break
		}
		ways *= n
	}
	before, outer := r.state, r.chosen
	after, first := state{}, true
	for way := range ways {
		r.state = before.clone()
		r.chosen = map[string]*value{}
		for name, v := range outer {
			r.chosen[name] = v
		}
		for _, name := range names {
			v := r.state.vars[name]
			n := len(v.values)
			if v.open {
				n++
			}
			if r.chosen[name] = nil; way%n < len(v.values) {
				r.chosen[name] = &v.values[way%n]
			}
			way /= n
		}
		f()
		if first {
			after, first = r.state, false
		} else {
			after.join(&r.state)
		}
	}
	r.state, r.chosen = after, outer
}

// severalIn returns the variables in words that may hold several values and are
// not chosen yet.
func (r *reader) severalIn(words []*syntax.Word) (names []string) {
	several := false
	for _, v := range r.state.vars {
		several = several || len(v.values) > 1 || len(v.values) == 1 && v.open
	}
	if !several {
		return nil
	}
	for _, w := range words {
		syntax.Walk(w, func(n syntax.Node) bool {
			if _, ok := n.(*syntax.CmdSubst); ok {
				return false
			}
			p, ok := n.(*syntax.ParamExp)
			if !ok || p.Param == nil {
				return true
			}
			v := r.state.vars[p.Param.Value]
			_, chosen := r.chosen[p.Param.Value]
			if !chosen && len(v.values) > 0 && (v.open || len(v.values) > 1) && !slices.Contains(names, p.Param.Value) {
				names = append(names, p.Param.Value)
			}
			return true
		})
	}
	return names
}
