package console

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/protocol"
)

// Bars stand before every line that an agent has written, so that none of them
// can look like a part of the page. wrapBar stands before what of a line did
// not fit on the one above.
const (
	bar     = "│ "
	wrapBar = "┊ "
)

// content writes everything there is to know about a ticket.
type content struct {
	limit int // columns
	lines []Line
}

// contentOf returns the lines of a ticket. In raw form the arguments stand as
// they are; else edits of files are shown as what they change. changes are
// those of the ticket.
func contentOf(t *Ticket, changes []change, raw bool, limit int) []Line {
	c := &content{limit: limit}
	if t.Message != "" || t.AskedBy != "" {
		by := ""
		if t.AskedBy != "" {
			by = Escape(t.AskedBy) + ": "
		}
		c.field("why", append(Line{{by, Plain}}, pieces(t.Message)...))
	}
	c.field("agent", Line{{t.Who(), Plain}})
	if t.CWD != "" {
		c.field("folder", pieces(t.CWD))
	}
	c.add(nil)
	c.arguments(t, changes, raw)
	c.add(nil)
	for _, f := range [][2]string{
		{"tool", t.Tool}, {"session", t.Session}, {"task", t.Task}, {"user", t.User}, {"node", t.Node}, {"model", t.Model},
	} {
		if f[1] != "" {
			c.field(f[0], pieces(f[1]))
		}
	}
	return c.lines
}

func (c *content) arguments(t *Ticket, changes []change, raw bool) {
	args, err := protocol.ParseObject(t.Arguments)
	if err != nil {
		c.text(string(t.Arguments))
		return
	}
	if len(args) == 0 {
		c.add(Line{{"The call has no arguments.", Dim}})
	}
	hidden := map[string]bool{}
	if !raw {
		for _, ch := range changes {
			c.change(&ch)
			for _, name := range ch.members {
				hidden[name] = true
			}
		}
	}
	for _, m := range args {
		if !hidden[m.Name] {
			c.member(m)
		}
	}
	if len(hidden) > 0 {
		c.add(Line{{strings.Join(escaped(names(args, hidden)), ", ") + ": shown as a change; v shows it as it is", Dim}})
	}
}

func escaped(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = Escape(s)
	}
	return out
}

// names returns those of the members that are hidden, in their order.
func names(args protocol.Object, hidden map[string]bool) (list []string) {
	for _, m := range args {
		if hidden[m.Name] {
			list = append(list, m.Name)
		}
	}
	return list
}

func (c *content) add(l Line) { c.lines = append(c.lines, wrap(l, Span{}, Span{}, c.limit)...) }

// field writes what is known about the call, with its name.
func (c *content) field(name string, value Line) {
	const indent = 9
	c.lines = append(c.lines, wrap(value, Span{fmt.Sprintf("%-*s", indent, name), Dim}, Span{strings.Repeat(" ", indent-2) + wrapBar, Dim}, c.limit)...)
}

// member writes one argument.
func (c *content) member(m protocol.Member) {
	name := append(slices.Clone(pieces(m.Name)), Span{":", Plain})
	for i := range name {
		if name[i].Style == Plain {
			name[i].Style = Bold
		}
	}
	switch m.Value.Kind() {
	case '"':
		text := protocol.Unquote(m.Value)
		if lines := strings.Count(text, "\n") + 1; lines > 1 {
			name = append(name, Span{fmt.Sprintf(" %d lines, %d bytes", lines, len(text)), Dim})
		}
		c.add(name)
		c.text(text)
	case '{', '[':
		c.add(name)
		for _, l := range pretty(nil, m.Value, "") {
			c.barred(l)
		}
	default: // numbers keep their digits
		c.add(append(name, append(Line{{" ", Plain}}, pieces(string(m.Value))...)...))
	}
}

// text writes a text as it is, line by line.
func (c *content) text(s string) {
	if s == "" {
		c.barred(Line{{string(markBegin) + "empty" + string(markEnd), Marked}})
		return
	}
	for line := range strings.SplitSeq(s, "\n") {
		c.barred(spread(line, Plain))
	}
}

func (c *content) barred(l Line) {
	c.lines = append(c.lines, wrap(l, Span{bar, Dim}, Span{wrapBar, Dim}, c.limit)...)
}

// tabWidth is how far tabs reach.
const tabWidth = 4

// spread makes a line of a text without line ends: tabs reach to the next stop.
func spread(s string, style Style) Line {
	var out Line
	used := 0
	for i, part := range strings.Split(s, "\t") {
		if i > 0 {
			n := tabWidth - used%tabWidth
			out = append(out, Span{string(markTab) + strings.Repeat(" ", n-1), Dim})
			used += n
		}
		for _, p := range pieces(part) {
			if p.Style == Plain {
				p.Style = style
			}
			out = append(out, p)
			used += columns(p.Text)
		}
	}
	return out
}

// pretty writes a checked value over several lines.
func pretty(out []Line, v jsontext.Value, indent string) []Line {
	if len(out) == 0 {
		out = []Line{{{indent, Plain}}}
	}
	last := func(spans ...Span) { out[len(out)-1] = append(out[len(out)-1], spans...) }
	list := func(begin, end string, n int, item func(i int)) {
		last(Span{begin, Plain})
		for i := range n {
			out = append(out, Line{{indent + "  ", Plain}})
			item(i)
			if i < n-1 {
				last(Span{",", Plain})
			}
		}
		if n > 0 {
			out = append(out, Line{{indent, Plain}})
		}
		last(Span{end, Plain})
	}
	switch v.Kind() {
	case '{':
		members, _ := protocol.ParseObject(v) // it has been checked
		list("{", "}", len(members), func(i int) {
			last(quoted(members[i].Name)...)
			last(Span{": ", Plain})
			out = pretty(out, members[i].Value, indent+"  ")
		})
	case '[':
		items, _ := protocol.Items(v) // it has been checked
		list("[", "]", len(items), func(i int) { out = pretty(out, items[i], indent+"  ") })
	case '"':
		last(quoted(protocol.Unquote(v))...)
	default:
		last(pieces(string(v))...)
	}
	return out
}

// inline writes a checked value on one line.
func inline(v jsontext.Value) Line {
	var out Line
	for i, l := range pretty(nil, v, "") {
		if i > 0 && l[0].Text != "" { // the indentation is not needed
			l = l[1:]
		}
		if n := len(out); n > 0 && out[n-1].Text == "," {
			out = append(out, Span{" ", Plain})
		}
		out = append(out, l...)
	}
	return out
}

var inQuotes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`)

// quoted writes a text in quotes on one line.
func quoted(s string) Line { return pieces(`"` + inQuotes.Replace(s) + `"`) }
