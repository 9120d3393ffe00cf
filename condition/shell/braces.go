package shell

import (
	"strconv"

	"mvdan.cc/sh/v3/syntax"
)

const maxBraces = 128 // words that one word with braces becomes

// braces writes out the words that {a,b} and {1..3} stand for.
func braces(parts []syntax.WordPart) ([][]syntax.WordPart, bool) {
	out := [][]syntax.WordPart{nil}
	for _, p := range parts {
		exp, ok := p.(*syntax.BraceExp)
		if !ok {
			for i := range out {
				out[i] = append(out[i], p)
			}
			continue
		}
		choices, ok := braceChoices(exp)
		if !ok || len(choices)*len(out) > maxBraces {
			return nil, false
		}
		var next [][]syntax.WordPart
		for _, head := range out {
			for _, tail := range choices {
				next = append(next, append(head[:len(head):len(head)], tail...))
			}
		}
		out = next
	}
	return out, true
}

func braceChoices(exp *syntax.BraceExp) (choices [][]syntax.WordPart, ok bool) {
	if exp.Sequence {
		return sequence(exp)
	}
	for _, elem := range exp.Elems {
		list, ok := braces(elem.Parts)
		if !ok || len(choices)+len(list) > maxBraces {
			return nil, false
		}
		choices = append(choices, list...)
	}
	return choices, true
}

// sequence writes out {a..c} and {1..9..2}.
func sequence(exp *syntax.BraceExp) (choices [][]syntax.WordPart, ok bool) {
	from, to := exp.Elems[0].Lit(), exp.Elems[1].Lit()
	a, errA := strconv.Atoi(from)
	z, errZ := strconv.Atoi(to)
	letters := errA != nil || errZ != nil
	if letters {
		if len(from) != 1 || len(to) != 1 {
			return nil, false
		}
		a, z = int(from[0]), int(to[0])
	}
	step := 1
	if len(exp.Elems) > 2 {
		n, err := strconv.Atoi(exp.Elems[2].Lit())
		if err != nil || n == 0 || n < -maxWords || n > maxWords {
			return nil, false
		}
		step = max(n, -n)
	}
	if a > z {
		step = -step
	}
	for i := a; step > 0 && i <= z || step < 0 && i >= z; i += step {
		text := strconv.Itoa(i)
		if letters {
			text = string(rune(i))
		}
		if choices = append(choices, []syntax.WordPart{&syntax.Lit{Value: text}}); len(choices) > maxBraces {
			return nil, false
		}
	}
	return choices, true
}
