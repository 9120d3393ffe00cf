package demo

import (
	"fmt"
	"strings"
	"time"

	"github.com/hookd/hookd/client"
)

// Colours, as SGR numbers.
const (
	bold   = "1"
	red    = "31"
	green  = "32"
	yellow = "33"
	grey   = "90"
)

// print writes a line. A reader who has gone ends the demo.
func (d *demo) print(format string, args ...any) {
	if _, err := fmt.Fprintf(d.Out, format+"\n", args...); err != nil {
		d.cancel(err)
	}
}

func (d *demo) title(text string) { d.print("\n%s", d.Paint(bold, text)) }

// say writes who says or does what; more lines of it stand below.
func (d *demo) say(who, what string) {
	for line := range strings.SplitSeq(strings.TrimRight(what, "\n"), "\n") {
		d.print("  %s %s", d.Paint(grey, fmt.Sprintf("%-6s", who)), line)
		who = ""
	}
}

// answer writes what hookd decided, and how it came to that.
func (d *demo) answer(a client.Answer) {
	colour := green
	if a.Action.Stops() {
		colour = red
	}
	text := d.Paint(colour, string(a.Action))
	if a.DecidedBy != "" {
		text += " by " + a.DecidedBy
	}
	if a.Reason != "" {
		text += ": " + a.Reason
	}
	d.say("hookd", text)
	for _, g := range a.Degraded {
		d.say("", d.Paint(yellow, fmt.Sprintf("degraded: %s, %s: %s", g.Hook, g.Outcome, g.Detail)))
	}
	var trail strings.Builder
	for _, s := range a.Trail {
		fmt.Fprintf(&trail, "%-11s %s", s.Hook, strings.Join(append([]string{string(s.Outcome)}, s.Changed...), " "))
		if s.Recheck {
			trail.WriteString(" to what it has become")
		}
		if s.Duration > 0 {
			fmt.Fprintf(&trail, " (%s)", s.Duration.Round(10*time.Microsecond))
		}
		trail.WriteString("\n")
	}
	d.say("trail", trail.String())
}

// farewell says what to do next.
func (d *demo) farewell() {
	d.title("Your turn")
	if d.Keep {
		d.print("  The folder stays: %s", d.folder)
		if len(d.plan.StandIns) == 0 {
			d.print("    %s serve --config %s", d.Program, d.path("config.json"))
		}
	} else {
		d.print("  Hooks, daemon and folder are gone; with --keep the folder stays.")
	}
	d.print("  A config and a first hook of your own, in python, node, go or sh:")
	d.print("    %s init --for python my-hooks", d.Program)
}
