package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/hookd/hookd/console"
	"github.com/hookd/hookd/daemon"
	"github.com/hookd/hookd/mount"
)

// pollEvery is how often status --wait looks again.
const pollEvery = 50 * time.Millisecond

func (a *app) statusCommand() *cobra.Command {
	var p places
	var asJSON bool
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show how the daemon, its hooks and its agents fare",
		Long: `Shows the daemon's state. It is answered on a socket of its own, within a
second, also when every hook hangs.

With --wait it returns as soon as every hook is ready or has failed.`,
		Example: `  hookd status
  hookd status --wait 5s
  hookd status --json | jq '.hooks[] | {name, state, p99_us}'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.settled(cmd.Context(), p, wait)
			if err != nil {
				return err
			}
			if asJSON {
				return json.MarshalWrite(a.out, s, json.Deterministic(true), jsontext.WithIndent("  "), jsontext.SpaceAfterColon(true))
			}
			return a.printStatus(s)
		},
	}
	p.flags(cmd, true)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().DurationVar(&wait, "wait", 0, "wait so long for the daemon to come up and for every hook to be ready or failed")
	return cmd
}

// settled asks for the status, again and again until there is nothing to wait
// for or no time left.
func (a *app) settled(ctx context.Context, p places, wait time.Duration) (*daemon.Status, error) {
	end := time.Now().Add(wait)
	for {
		s := &daemon.Status{}
		err := a.control(ctx, p, daemon.MethodStatus, nil, s)
		if err == nil && (wait == 0 || s.Settled()) {
			return s, nil
		}
		if !time.Now().Before(end) {
			return s, err
		}
		select {
		case <-time.After(pollEvery):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (a *app) printStatus(s *daemon.Status) error {
	ready := a.paint(a.out, green, "ready")
	if !s.Ready {
		ready = a.paint(a.out, red, "not ready: a required hook is not there")
	}
	file := s.Config.Path
	if file == "" {
		file = "none, defaults hold"
	}
	fmt.Fprintf(a.out, "hookd %s, pid %d, generation %d, %s\nsocket   %s\ncontrol  %s\nconfig   %s\n", s.Version, s.PID, s.Generation, ready, s.Socket, s.Control, file)
	if s.Config.Error != "" {
		fmt.Fprintln(a.out, a.paint(a.out, red, "         the file as it is now was refused, the last good one holds:\n"+indent(s.Config.Error)))
	}
	if s.Config.Misfits != "" {
		fmt.Fprintln(a.out, a.paint(a.out, red, "         hooks can't be used as they greeted:\n"+indent(s.Config.Misfits)))
	}
	if s.Config.Polling {
		fmt.Fprintln(a.out, "         changes are found by polling")
	}
	a.printRecordStatus(&s.Record)
	fmt.Fprintln(a.out)
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "HOOK\tSOURCE\tSTATE\tPID\tSTAGES AND EVENTS\tCALLS\tFAILED\tMISSED\tP50\tP99")
	for _, h := range s.Hooks {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%s\t%s\n", h.Name, h.Source, state(h), number(h.PID), asked(h), h.Calls+h.Observed, h.Failures, h.Missed, micros(h.P50), micros(h.P99))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, h := range s.Hooks {
		if h.LastError != "" && h.State != string(mount.Ready) {
			fmt.Fprintf(a.out, "\n%s: %s\n", a.paint(a.out, red, h.Name), escapeLines(h.LastError))
			printTail(a.out, h.Stderr)
		}
	}
	if len(s.CodingAgents) > 0 {
		fmt.Fprintln(a.out)
		fmt.Fprintln(w, "CODING AGENT\tEVENTS\tLAST\tAT")
		for _, name := range slices.Sorted(maps.Keys(s.CodingAgents)) {
			g := s.CodingAgents[name]
			fmt.Fprintf(w, "%s\t%d\t%s\t%s\n", console.Escape(name), g.Events, console.Escape(g.Event), g.At.Local().Format(time.DateTime))
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	for _, h := range s.Hooks {
		if gaps := sandboxGaps(h); len(gaps) > 0 {
			fmt.Fprintf(a.out, "\n%s: its sandbox does not keep in: %s\n", a.paint(a.out, yellow, h.Name), strings.Join(gaps, "; "))
		}
	}
	if len(s.Agents) == 0 {
		return nil
	}
	fmt.Fprintln(a.out)
	fmt.Fprintln(w, "AGENT\tPID\tUID\tCALLS\tLAST")
	for _, g := range s.Agents {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%s\n", console.Escape(g.Name), g.PID, g.UID, g.Calls, console.Escape(g.LastEvent))
	}
	return w.Flush()
}

// printRecordStatus says what is wrong with the record; nothing when all is well.
func (a *app) printRecordStatus(r *daemon.RecordStatus) {
	if r.State != "ok" && r.State != "off" && r.State != "" {
		fate := "decisions go on without it"
		if r.OnFailure == "deny" {
			fate = "what can't be recorded is denied"
		}
		fmt.Fprintln(a.out, a.paint(a.out, red, fmt.Sprintf("record   %s: %s", r.State, r.Error)))
		fmt.Fprintf(a.out, "         %s (%s): %d wait, %d are missing, %d were denied; %s\n", r.Path, r.Mode, r.Queued, r.Missed, r.Refused, fate)
	}
	if r.MovedAside != "" {
		fmt.Fprintln(a.out, a.paint(a.out, yellow, "record   was damaged; the old file is "+r.MovedAside))
	}
	if !r.ReplacedAt.IsZero() {
		fmt.Fprintln(a.out, a.paint(a.out, yellow, "record   the file was deleted or replaced at "+r.ReplacedAt.Local().Format(time.TimeOnly)+"; begun anew"))
	}
}

// sandboxGaps is what of a hook's sandbox is not enforced.
func sandboxGaps(h daemon.HookStatus) (gaps []string) {
	if h.Limits == nil {
		return nil
	}
	for _, missing := range h.Limits.Missing {
		if gap, ok := strings.CutPrefix(missing, "sandbox: "); ok {
			gaps = append(gaps, gap)
		}
	}
	return gaps
}

func printTail(w io.Writer, lines []string) {
	for _, l := range lines {
		fmt.Fprintf(w, "  stderr: %s\n", console.Escape(l))
	}
}

// escapeLines escapes what is in lines of a text, which may hold what an agent
// has sent.
func escapeLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = console.Escape(l)
	}
	return strings.Join(lines, "\n")
}

// state is a hook's state, and an operator's word when that outranks the config.
func state(h daemon.HookStatus) string {
	switch {
	case h.Override == "":
		return h.State
	case h.Until.IsZero():
		return h.State + " (by hand)"
	}
	return h.State + " (by hand until " + h.Until.Local().Format("15:04:05") + ")"
}

func asked(h daemon.HookStatus) string {
	words := make([]string, 0, len(h.Stages)+len(h.Events))
	for _, s := range h.Stages {
		words = append(words, string(s))
	}
	return strings.Join(append(words, h.Events...), " ")
}

func number(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

func micros(us int64) string {
	if us == 0 {
		return "-"
	}
	return (time.Duration(us) * time.Microsecond).String()
}
