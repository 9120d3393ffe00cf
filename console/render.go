package console

import (
	"fmt"
	"strings"
	"time"
)

// The smallest terminal on which an answer is possible.
const (
	minWidth  = 40
	minHeight = 10
)

// chrome is how many lines the page needs beside the content.
const chrome = 6

func (p *Page) tooSmall() bool { return p.width < minWidth || p.height < minHeight }

// Render returns the page: at most as many lines as the terminal has, none
// wider than it is.
func (p *Page) Render() []Line {
	p.see()
	var out []Line
	switch t := p.ticket(); {
	case p.tooSmall():
		out = []Line{{{fmt.Sprintf("The terminal has %d×%d characters.", p.width, p.height), Caution}}, {{fmt.Sprintf("This page needs %d×%d.", minWidth, minHeight), Plain}}}
	case p.help:
		out = p.renderHelp()
	case t == nil:
		out = p.renderEmpty()
	default:
		out = p.renderTicket(t)
	}
	for i := range out {
		out[i] = cut(out[i], p.width)
	}
	return out[:min(len(out), p.height)]
}

func (p *Page) title() Line {
	right := "nothing waits"
	if n := len(p.tickets); n == 1 {
		right = "1 call waits"
	} else if n > 1 {
		right = fmt.Sprintf("%d of %d calls that wait", p.index(p.shown)+1, n)
	}
	left := "hookd approvals"
	gap := max(p.width-columns(left)-columns(right), 1)
	return Line{{left, Bold}, {strings.Repeat(" ", gap), Plain}, {right, Plain}}
}

func (p *Page) rule(text Span) Line {
	if text.Text == "" {
		return Line{{strings.Repeat("─", p.width), Dim}}
	}
	rest := max(p.width-columns(text.Text)-4, 0)
	return Line{{"── ", Dim}, text, {" " + strings.Repeat("─", rest), Dim}}
}

func (p *Page) renderTicket(t *Ticket) []Line {
	left := t.Expires.Sub(p.now)
	time := Span{Left(left), Good}
	if left < 15*second {
		time.Style = Bad
	} else if left < 60*second {
		time.Style = Caution
	}
	head := append(Line{{Escape(t.ID), Bold}, {"  ", Plain}, time, {"  ", Plain}}, pieces(t.Tool)...)
	out := []Line{p.title(), head, p.rule(Span{})}
	all := p.lines()
	p.scroll(0)
	end := min(p.top+p.room(), len(all))
	out = append(out, all[p.top:end]...)
	for len(out) < p.height-3 {
		out = append(out, nil)
	}
	return append(out, p.rule(p.more(end, len(all))), p.bottom(), p.keys())
}

const second = time.Second

// more says what of the content is not on the page.
func (p *Page) more(end, all int) Span {
	switch {
	case end < all:
		return Span{moreLines(all-end) + ", press space", Caution}
	case p.top > 0:
		return Span{"the end; b goes back", Plain}
	}
	return Span{}
}

func moreLines(n int) string {
	if n == 1 {
		return "1 more line"
	}
	return fmt.Sprintf("%d more lines", n)
}

// bottom is the line for what the page has to say, and for a reason.
func (p *Page) bottom() Line {
	switch {
	case p.typing:
		text := Escape(string(p.reason))
		for columns(text) > p.width-10 {
			text = string([]rune(text)[1:])
		}
		return Line{{"reason: ", Bold}, {text, Plain}, {"█", Plain}}
	case p.trouble != "":
		return Line{{p.trouble, Bad}}
	case p.note.Text != "":
		return Line{p.note}
	case len(p.reason) > 0:
		return Line{{"reason: ", Bold}, {Escape(string(p.reason)), Plain}}
	}
	return nil
}

func (p *Page) keys() Line {
	if p.typing {
		return Line{{"Enter keeps the reason, Esc drops it", Dim}}
	}
	long := "y allow once  n deny  s allow for this session  a always allow  r reason  v raw  ? help  q quit"
	for _, text := range []string{long, "y once  n deny  s session  a always  r reason  ? help  q quit", "y n s a  r reason  ? help  q quit"} {
		if columns(text) <= p.width {
			return Line{{text, Dim}}
		}
	}
	return Line{{"y n s a  ? help  q quit", Dim}}
}

func (p *Page) renderEmpty() []Line {
	out := []Line{p.title(), p.rule(Span{}), {{"Nothing waits for an answer. This page shows the next call as soon as it comes.", Plain}}, nil}
	if len(p.history) > 0 {
		out = append(out, Line{{"Before:", Dim}})
		out = append(out, p.history[max(0, len(p.history)-max(p.height-len(out)-3, 0)):]...)
	}
	for len(out) < p.height-2 {
		out = append(out, nil)
	}
	return append(out, p.bottom(), Line{{"? help  q quit", Dim}})
}

func (p *Page) renderHelp() []Line {
	out := []Line{p.title(), p.rule(Span{})}
	for _, row := range [][2]string{
		{"y", "allow this call, once"},
		{"n", "deny it"},
		{"s", "allow exactly this call until the session ends"},
		{"a", "always allow exactly this call (hookd approvals rules)"},
		{"r", "write a reason, which goes with the answer"},
		{"space b", "a page on, a page back; also ↑ ↓ g G"},
		{"tab", "the next call that waits; also ← →"},
		{"v", "the arguments as they are, or edits as changes"},
		{"q", "quit; what waits goes on waiting"},
		{"", ""},
		{bar, "stands before what the agent has written"},
		{wrapBar, "before the rest of a long line"},
		{"‹U+202E›", "is a character that can't be seen; " + string(markTab) + " a tab"},
	} {
		out = append(out, Line{{fmt.Sprintf("  %-9s", row[0]), Bold}, {row[1], Plain}})
	}
	return append(out, nil, Line{{"Any key goes back.", Dim}})
}
