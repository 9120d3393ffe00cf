package text

import "context"

// Masker returns a function that replaces what these scrubbers find, each in what
// the one before has left, in texts that are about to be stored: a value of JSON,
// several of them one behind the other, or plain text. JSON stays valid, and what
// is blocked is replaced by its label. The function is safe for concurrent use; it
// does not change its argument and may return it.
func Masker(list ...*Scrubber) func(text []byte) []byte {
	return func(text []byte) []byte { return scrub(list, text) }
}

func scrub(list []*Scrubber, b []byte) []byte {
	edit := func(p *Part) (out string, changed bool) { return scrubPart(list, p) }
	r := rewriter{edit: edit}
	if out, _ := r.values(b); !r.broken { // JSON, or blank
		return out
	}
	if out, changed := edit(&Part{Text: string(b), Media: isMedia(string(b))}); changed {
		return []byte(out)
	}
	return b
}

// scrubPart lets each scrubber see a part.
func scrubPart(list []*Scrubber, p *Part) (out string, changed bool) {
	at := *p
	for _, s := range list {
		edited, hit, err := s.part(context.Background(), &at, &Report{})
		if err != nil { // can't be: the context never ends
			return "[…]", true
		}
		if hit {
			at.Text, changed = edited, true
			if at.Form == Number { // it has become a string
				at.Form = String
			}
		}
	}
	return at.Text, changed
}
