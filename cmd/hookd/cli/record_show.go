package cli

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/hookd/hookd/console"
	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/record"
)

func (a *app) recordShowCommand() *cobra.Command {
	var f recordFile
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Explain one decision: who asked what, what each hook said, and what became of it",
		Long: `Prints all that is recorded of one decision: who asked, with what, the turn of
every hook with its answer and how long it took, what was changed, who approved,
and what the agent was told. ID is the number in the first column of hookd record.`,
		Example: "  hookd record show 4711\n  hookd record show 4711 --json | jq .trail",
		Args:    oneArg("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := recordID(cmd, args[0])
			if err != nil {
				return err
			}
			r, err := a.openRecord(&f)
			if err != nil {
				return err
			}
			defer r.Close()
			d, err := r.Get(cmd.Context(), id)
			if errors.Is(err, record.ErrNotFound) {
				return hint(fmt.Errorf("there is no decision %d in the record", id), "See hookd record; other kinds of records are in hookd record export.")
			}
			if err != nil {
				return err
			}
			if asJSON {
				_, err := fmt.Fprintf(a.out, "%s\n", d.AppendJSON(nil))
				return err
			}
			return a.printDecision(d)
		},
	}
	f.flags(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func recordID(cmd *cobra.Command, text string) (uint64, error) {
	id, err := strconv.ParseUint(text, 10, 63)
	if err != nil || id == 0 {
		return 0, usage(cmd, "%q is no ID: it is the number in the first column of hookd record", text)
	}
	return id, nil
}

func (a *app) printDecision(d *record.Decision) error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(w, "%s\t%s\n", name, text)
		}
	}
	about := string(d.Stage)
	if d.Tool != "" {
		about += " of " + console.Escape(d.Tool)
	}
	line("decision", fmt.Sprintf("%d: %s", d.ID, about))
	line("time", d.Time.Local().Format("2006-01-02 15:04:05.000")+", took "+d.Duration.String())
	line("agent", who(d))
	line("session", console.Escape(d.Session))
	line("user", console.Escape(d.User))
	line("model", console.Escape(d.Model))
	line("folder", console.Escape(d.CWD))
	line("call", console.Escape(d.CallID))
	line("digest", d.Digest)
	line("verdict", a.verdictLine(d))
	line("reason", console.Escape(d.Reason))
	if p := d.Approval; p != nil {
		word := "no"
		if p.Approved {
			word = "yes"
		}
		line("approval", strings.TrimSpace(word+behind(" by ", p.By)+behind(": ", p.Reason)))
	}
	line("permission", console.Escape(d.Permission))
	line("error", console.Escape(d.Error))
	line("generation", strconv.FormatUint(d.Generation, 10))
	line("hash", d.Hash)
	if err := w.Flush(); err != nil {
		return err
	}
	if err := printTrail(a.out, d.Trail); err != nil {
		return err
	}
	for _, g := range d.Degraded {
		fmt.Fprintf(a.out, "\n%s %s was passed over: %s%s\n", a.paint(a.out, yellow, "degraded:"), console.Escape(g.Hook), g.Outcome, behind(": ", g.Detail))
	}
	for _, text := range d.Warnings {
		fmt.Fprintf(a.out, "\n%s %s\n", a.paint(a.out, yellow, "warning:"), console.Escape(text))
	}
	a.printParams(d)
	return nil
}

func behind(before, text string) string {
	if text == "" {
		return ""
	}
	return before + console.Escape(text)
}

func who(d *record.Decision) string {
	words := []string{dash(d.Agent)}
	if d.PID > 0 {
		words = append(words, fmt.Sprintf("process %d", d.PID))
	}
	if d.UID >= 0 {
		words = append(words, fmt.Sprintf("uid %d", d.UID))
	}
	return strings.Join(words, ", ")
}

func (a *app) verdictLine(d *record.Decision) string {
	colour := green
	if d.Action.Stops() {
		colour = red
	}
	text := a.paint(a.out, colour, string(d.Action)) + behind(" by ", d.DecidedBy)
	switch {
	case d.Unrecorded:
		text += ", because it could not be recorded in time"
	case d.Undelivered:
		text += ", which did not reach the agent"
	case d.DryRun:
		text += ", in a dry run"
	}
	return text
}

func printTrail(out io.Writer, trail []protocol.Step) error {
	if len(trail) == 0 {
		_, err := fmt.Fprintln(out, "\nNo hook was asked.")
		return err
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "HOOK\tSAID\tTOOK\tCHANGED\tWHY")
	for _, s := range trail {
		said := string(s.Outcome)
		if s.Action != "" && string(s.Action) != said {
			said += " (" + string(s.Action) + ")"
		}
		if s.Recheck {
			said += ", second look"
		}
		took := "-"
		if s.Duration > 0 {
			took = s.Duration.Round(time.Microsecond).String()
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", console.Escape(s.Hook), said, took, dash(strings.Join(s.Changed, " ")), console.Escape(s.Detail))
	}
	return w.Flush()
}

func (a *app) printParams(d *record.Decision) {
	if d.Params != nil {
		fmt.Fprintf(a.out, "\nasked with%s:\n%s\n", paramsNote(d), pretty(d.Params))
	}
	switch {
	case len(d.Changed) == 0:
	case d.Before == nil && d.After == nil:
		fmt.Fprintf(a.out, "\nchanged: %s (record.before_after true in the config keeps the values)\n", console.Escape(strings.Join(d.Changed, ", ")))
	default:
		fmt.Fprintf(a.out, "\nchanged: %s\nbefore:\n%s\nafter:\n%s\n", console.Escape(strings.Join(d.Changed, ", ")), pretty(d.Before), pretty(d.After))
	}
}

func paramsNote(d *record.Decision) string {
	var notes []string
	if d.Masked {
		notes = append(notes, "secrets and personal data are masked")
	}
	if d.ParamsBytes > 0 {
		notes = append(notes, fmt.Sprintf("cut, of %d bytes", d.ParamsBytes))
	}
	if notes == nil {
		return ""
	}
	return " (" + strings.Join(notes, "; ") + ")"
}

// pretty writes JSON over several lines, with nothing in it that a terminal
// would obey.
func pretty(v jsontext.Value) string {
	out := v.Clone()
	if v == nil || out.Indent(jsontext.WithIndentPrefix("  "), jsontext.WithIndent("  ")) != nil {
		return "  " + console.Escape(string(v))
	}
	lines := strings.Split(string(out), "\n")
	for i, l := range lines {
		lines[i] = console.Escape(l)
	}
	return "  " + strings.Join(lines, "\n")
}
