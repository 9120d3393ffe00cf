package fault

import (
	"strconv"
	"strings"
)

// Expand replaces the words of a text that a hook is to write:
//
//	$RESULT  an answer up to its result: {"jsonrpc":"2.0","id":$ID,"result":
//	$ID      the id of the call
//	$EVENTS  how many events came
//	$ARGS    the arguments of the call, within a string
//	$PAD     o.Pad bytes
//	$DEEP    arrays within each other, o.Depth of them
//	$FF      a byte that is not UTF-8
//	$NUL     a control character
//	$BOM     a byte order mark
//	$CR      a carriage return
func (o Orders) Expand(text string, facts Facts) string {
	text = strings.ReplaceAll(text, "$RESULT", `{"jsonrpc":"2.0","id":$ID,"result":`)
	var words []string
	for _, w := range []struct {
		word string
		make func() string
	}{
		{"$ID", func() string { return facts.ID }},
		{"$EVENTS", func() string { return strconv.FormatInt(facts.Events, 10) }},
		{"$ARGS", func() string { quoted := strconv.Quote(facts.Arguments); return quoted[1 : len(quoted)-1] }},
		{"$PAD", func() string { return strings.Repeat("x", o.Pad) }},
		{"$DEEP", func() string { return strings.Repeat("[", o.Depth) + strings.Repeat("]", o.Depth) }},
		{"$FF", func() string { return "\xff" }},
		{"$NUL", func() string { return "\x00" }},
		{"$BOM", func() string { return "\ufeff" }},
		{"$CR", func() string { return "\r" }},
	} {
		if strings.Contains(text, w.word) {
			words = append(words, w.word, w.make())
		}
	}
	return strings.NewReplacer(words...).Replace(text)
}
