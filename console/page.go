package console

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// settle is how long keys that answer are not taken after another call has come
// to the front, so that nobody answers what he has not seen.
const settle = 500 * time.Millisecond

// maxReason is how long a reason may be, in characters.
const maxReason = 500

// maxHistory is how many ended calls the empty page shows.
const maxHistory = 8

// Scope says how far an answer reaches.
type Scope string

// The scopes.
const (
	Once    Scope = ""
	Session Scope = "session"
	Always  Scope = "always"
)

// Answer is what a person wants to be said.
type Answer struct {
	ID, Digest string
	Approve    bool
	Scope      Scope
	Reason     string
}

// Wish is what a key asks for, beyond another look of the page.
type Wish struct {
	Quit   bool
	Answer *Answer
}

// Page is what is shown, and what keys mean to it. It has no terminal and no
// clock of its own. Make one with [NewPage].
type Page struct {
	readFile      func(path string) ([]byte, error)
	width, height int
	now           time.Time

	tickets []Ticket // oldest first
	shown   string   // id; "" when there is none
	calm    time.Time
	top     int // the first line of the content on the page
	read    int // how many lines have been on the page
	raw     bool
	armed   string // the key that needs to be pressed once more
	typing  bool   // a reason
	reason  []rune
	help    bool
	note    Span
	trouble string // why the tickets can't be had; "" = they can
	history []Line

	content  []Line // of the shown ticket, for this width and form
	changes  []change
	compared bool // changes are known
}

// NewPage returns an empty page. readFile reads files for comparison; nil means
// [ReadFile].
func NewPage(readFile func(path string) ([]byte, error)) *Page {
	if readFile == nil {
		readFile = ReadFile
	}
	return &Page{readFile: readFile, width: 80, height: 24}
}

// Resize tells the size of the terminal.
func (p *Page) Resize(width, height int) {
	if p.width != width {
		p.content, p.read = nil, 0
	}
	p.width, p.height = width, height
	p.scroll(0)
}

// Tick tells the time.
func (p *Page) Tick(now time.Time) { p.now = now }

// Trouble tells why the tickets can't be had; nil: they can again.
func (p *Page) Trouble(err error) {
	p.trouble = ""
	if err != nil {
		p.trouble = Escape(err.Error())
	}
}

// Known returns the ids of the tickets that the page has.
func (p *Page) Known() []string {
	ids := make([]string, len(p.tickets))
	for i, t := range p.tickets {
		ids[i] = t.ID
	}
	return ids
}

// Update tells which tickets are open. Those in ids that the page knows need
// not be among fresh.
func (p *Page) Update(ids []string, fresh []Ticket) {
	for _, t := range fresh {
		if p.index(t.ID) < 0 {
			p.tickets = append(p.tickets, t)
		}
	}
	p.tickets = slices.DeleteFunc(p.tickets, func(t Ticket) bool {
		gone := !slices.Contains(ids, t.ID)
		if gone {
			p.remember(&t, "ended without you: "+p.fate(&t))
		}
		return gone
	})
	slices.SortStableFunc(p.tickets, func(a, b Ticket) int { return a.Opened.Compare(b.Opened) })
	if p.shown != "" && p.index(p.shown) < 0 {
		p.note = Span{p.shown + " has ended without you", Caution}
		p.show("")
	}
	if p.shown == "" && len(p.tickets) > 0 {
		p.show(p.tickets[0].ID)
	}
}

func (p *Page) fate(t *Ticket) string {
	if !p.now.Before(t.Expires) {
		return "its time is over"
	}
	return "somebody else answered, or the agent went away"
}

// Answered tells what has become of an answer; said is for people.
func (p *Page) Answered(id, said string, err error) {
	p.note = Span{Escape(said), Good}
	if err != nil {
		p.note = Span{Escape(err.Error()), Bad}
		said = err.Error()
	}
	i := p.index(id)
	if i < 0 {
		return
	}
	p.armed = ""
	if err != nil {
		return // the next update tells whether it is open
	}
	p.remember(&p.tickets[i], said)
	p.tickets = slices.Delete(p.tickets, i, i+1)
	p.show("")
	if len(p.tickets) > 0 {
		p.show(p.tickets[min(i, len(p.tickets)-1)].ID)
	}
}

func (p *Page) remember(t *Ticket, what string) {
	p.history = append(p.history, Line{{p.now.Format("15:04:05") + "  ", Dim}, {t.OneLine(60) + "  ", Plain}, {Escape(what), Dim}})
	if len(p.history) > maxHistory {
		p.history = p.history[1:]
	}
}

// show brings another ticket to the front.
func (p *Page) show(id string) {
	if id == p.shown {
		return
	}
	p.shown, p.calm = id, p.now.Add(settle)
	p.top, p.read, p.raw, p.armed = 0, 0, false, ""
	p.typing, p.reason, p.help = false, nil, false
	p.content, p.changes, p.compared = nil, nil, false
}

func (p *Page) index(id string) int {
	return slices.IndexFunc(p.tickets, func(t Ticket) bool { return t.ID == id })
}

func (p *Page) ticket() *Ticket {
	if i := p.index(p.shown); i >= 0 && p.shown != "" {
		return &p.tickets[i]
	}
	return nil
}

// lines returns the content of the shown ticket.
func (p *Page) lines() []Line {
	t := p.ticket()
	if t == nil {
		return nil
	}
	if !p.compared {
		p.changes, p.compared = changesOf(t, p.readFile), true
	}
	if p.content == nil {
		p.content = contentOf(t, p.changes, p.raw, max(p.width, minWidth))
	}
	return p.content
}

// room is how many lines of the content fit on the page.
func (p *Page) room() int { return max(p.height-chrome, 1) }

// scroll moves the content by so many lines.
func (p *Page) scroll(by int) {
	p.top = max(min(p.top+by, len(p.lines())-p.room()), 0)
}

// see notes which lines are on the page, when it is drawn. Only those count that
// follow what was seen before.
func (p *Page) see() {
	if p.tooSmall() || p.help {
		return
	}
	if p.top <= p.read {
		p.read = max(p.read, min(p.top+p.room(), len(p.lines())))
	}
}

func (p *Page) unread() int { return len(p.lines()) - p.read }

// Key tells that a key was pressed.
func (p *Page) Key(k Key) Wish {
	if k.Name == "ctrl-c" {
		return Wish{Quit: true}
	}
	if p.typing {
		p.typeReason(k)
		return Wish{}
	}
	if k.Name == "paste" {
		p.note = Span{"pasted text is taken only as a reason: press r first", Caution}
		return Wish{}
	}
	armed := p.armed
	p.armed = ""
	if p.help {
		p.help = false
		return Wish{}
	}
	p.note = Span{}
	switch k.Name {
	case "q":
		return Wish{Quit: true}
	case "?":
		p.help = true
	case " ", "pgdn", "ctrl-f":
		p.scroll(p.room())
	case "b", "pgup", "ctrl-b":
		p.scroll(-p.room())
	case "down", "j", "enter":
		p.scroll(1)
	case "up", "k":
		p.scroll(-1)
	case "home", "g":
		p.scroll(-len(p.lines()))
	case "end", "G":
		p.scroll(len(p.lines()))
	case "tab", "right", "l":
		p.step(1)
	case "shift-tab", "left", "h":
		p.step(-1)
	case "v":
		p.raw = !p.raw
		p.content, p.top, p.read = nil, 0, 0
	case "r":
		p.typing = p.ticket() != nil
	case "y", "n", "s", "a":
		return Wish{Answer: p.answer(k.Name, armed)}
	}
	return Wish{}
}

func (p *Page) step(by int) {
	if n := len(p.tickets); n > 1 {
		p.show(p.tickets[(p.index(p.shown)+by+n)%n].ID)
	}
}

func (p *Page) typeReason(k Key) {
	switch {
	case k.Name == "enter":
		p.typing = false
		if len(p.reason) > 0 {
			p.note = Span{"the reason goes with your answer: now y, n, s or a", Plain}
		}
	case k.Name == "esc":
		p.typing, p.reason = false, nil
	case k.Name == "backspace":
		p.reason = p.reason[:max(len(p.reason)-1, 0)]
	case k.Name == "ctrl-u":
		p.reason = nil
	case k.Text != "":
		for _, r := range k.Text {
			if len(p.reason) < maxReason && r >= ' ' && r != 0x7f {
				p.reason = append(p.reason, r)
			}
		}
	}
}

// answer says what a key answers; nil = nothing yet, and why is on the page.
func (p *Page) answer(key, armed string) *Answer {
	t := p.ticket()
	ask := func(format string, args ...any) *Answer {
		p.note = Span{fmt.Sprintf(format, args...), Caution}
		return nil
	}
	switch {
	case t == nil:
		return nil
	case p.tooSmall():
		return ask("the terminal is too small to see what you answer")
	case p.now.Before(p.calm):
		return ask("another call has come to the front: look at it, then answer")
	case key == "s" && t.Session == "":
		return ask("the agent names no session: y allows this call, a always")
	case key != "n" && p.unread() > 0 && armed != key:
		p.armed = key
		return ask("%s unseen: %s again allows all the same, space reads on", lines(p.unread()), key)
	case key == "a" && armed != key:
		p.armed = key
		return ask("always allow exactly this call, until the rule is revoked? Press a again")
	}
	return &Answer{
		ID: t.ID, Digest: t.Digest, Approve: key != "n", Reason: strings.TrimSpace(string(p.reason)),
		Scope: map[string]Scope{"s": Session, "a": Always}[key],
	}
}

func lines(n int) string {
	if n == 1 {
		return "1 line"
	}
	return fmt.Sprintf("%d lines", n)
}
