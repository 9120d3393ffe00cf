package agent

import (
	"strings"
)

// Markdown returns the table of all agents and events as a Markdown document
// without a title: one section per agent, and the declared policy.
func Markdown() string {
	var b strings.Builder
	for _, d := range All() {
		b.WriteString("### `" + d.Name() + "`\n\n")
		b.WriteString("| event | hookd's word | can | note |\n|---|---|---|---|\n")
		for _, r := range d.Rows() {
			b.WriteString("| `" + r.Event + "` | " + words(r, "`") + " | " + orDash(strings.Join(Capabilities(r), ", ")) + " | " + r.Note + " |\n")
		}
		b.WriteString("\n")
	}
	b.WriteString("### Without a native form\n\n| stage | part of the answer | what is done | |\n|---|---|---|---|\n")
	for _, g := range Gaps() {
		stage := "any other"
		if g.Stage != "" {
			stage = "`" + string(g.Stage) + "`"
		}
		b.WriteString("| " + stage + " | " + g.Part + " | " + string(g.Default) + " | " + g.Note + " |\n")
	}
	return b.String()
}

// Text returns the tables of some agents for a terminal.
func Text(agents ...Dialect) string {
	head := [...]string{"AGENT", "EVENT", "STAGE OR EVENT", "CAN", "NOTE"}
	lines := [][5]string{head}
	for _, d := range agents {
		for _, r := range d.Rows() {
			lines = append(lines, [5]string{d.Name(), r.Event, words(r, ""), orDash(strings.Join(Capabilities(r), ", ")), r.Note})
		}
	}
	var widths [5]int
	for _, l := range lines {
		for i, cell := range l {
			widths[i] = max(widths[i], len(cell))
		}
	}
	var b strings.Builder
	for _, l := range lines {
		var line strings.Builder
		for i, cell := range l {
			line.WriteString(cell)
			line.WriteString(strings.Repeat(" ", widths[i]-len(cell)+2))
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}

// words names what an event is to hookd: a stage, an event, or both.
func words(r Row, quote string) string {
	switch {
	case r.Stage == "":
		return quote + string(r.Kind) + quote + " (observed)"
	case r.Kind == "":
		return quote + string(r.Stage) + quote
	}
	return quote + string(r.Stage) + quote + ", " + quote + string(r.Kind) + quote
}

// Capabilities names what an agent lets a hook do at an event.
func Capabilities(r Row) []string {
	var list []string
	for _, c := range [...]struct {
		can  bool
		name string
	}{
		{r.Block, "deny"}, {r.Ask, "ask"}, {r.Allow, "allow"}, {r.Modify, "modify"}, {r.Respond, "respond"}, {r.Context, "add_context"},
		{r.Inject, "inject"}, {r.Abort, "abort_turn"}, {r.Quit, "hard_abort"}, {r.Notify, "warnings"},
	} {
		if c.can {
			list = append(list, c.name)
		}
	}
	return list
}

func orDash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}
