package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookd/hookd/builtin/cancel"
	"github.com/hookd/hookd/console"
	"github.com/hookd/hookd/daemon"
	"github.com/hookd/hookd/protocol"
)

func (a *app) sessionsCommand() *cobra.Command {
	var p places
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "sessions",
		Short: "See what agents are doing, and stop one",
		Long: `Lists the sessions of agents, those first that were heard of last. It needs the
built-in cancel in the config:

  "hooks": {"builtins": {"cancel": {"priority": 10}}}

A session is running, waiting_approval (a call of it waits for a person), or
cancelled. It is known by the id that its agent gives it; an agent that gives
none is known by its name, as @NAME. It leaves the list when the agent says that
it has ended, or when nothing was heard of it for an hour.

With the built-in metrics, --json and show have figures of each session: steps
(calls of models), tool calls, tokens in and out, errors, and denials.`,
		Example: `  hookd sessions
  hookd sessions show s-81
  hookd sessions cancel s-81 --reason 'it runs in circles'
  hookd sessions resume s-81
  hookd sessions --json | jq '.[] | select(.state == "waiting_approval")'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var list []daemon.SessionStatus
			if err := a.control(cmd.Context(), p, daemon.MethodSessionsList, nil, &list); err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(list)
			}
			return a.printSessions(list)
		},
	}
	p.flags(cmd, true)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON: an array of sessions")
	cmd.AddCommand(a.showSessionCommand(), a.cancelCommand(), a.resumeCommand())
	return cmd
}

func (a *app) printSessions(list []daemon.SessionStatus) error {
	if len(list) == 0 {
		fmt.Fprintln(a.out, "No session is known.")
		return nil
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SESSION\tAGENT\tSTATE\tSINCE\tLAST\tCALLS\tTOKENS\tERRORS")
	for _, s := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%d\n", console.Escape(s.Session), dash(s.Agent), s.State, ago(s.Since),
			lastOf(&s), s.Calls, tokens(s.Tokens), s.Errors)
	}
	return w.Flush()
}

// lastOf says what was heard last, and when.
func lastOf(s *daemon.SessionStatus) string { return console.Escape(s.LastEvent) + " " + ago(s.LastAt) }

func tokens(n *int64) string {
	if n == nil {
		return "-"
	}
	return strconv.FormatInt(*n, 10)
}

// ago says how long something is past.
func ago(t time.Time) string {
	switch d := time.Since(t); {
	case d < time.Minute:
		return fmt.Sprintf("%d s ago", max(int(d/time.Second), 0))
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d/time.Minute))
	}
	return t.Local().Format("2006-01-02 15:04")
}

func (a *app) showSessionCommand() *cobra.Command {
	var p places
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show SESSION",
		Short: "Show what hookd knows of one session",
		Args:  oneArg("SESSION"), ValidArgsFunction: a.completeSessions(&p),
		RunE: func(cmd *cobra.Command, args []string) error {
			var s daemon.SessionDetails
			if err := a.control(cmd.Context(), p, daemon.MethodSessionsShow, daemon.SessionParams{Session: args[0]}, &s); err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(&s)
			}
			return a.printSession(&s)
		},
	}
	p.flags(cmd, true)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) printSession(s *daemon.SessionDetails) error {
	state := string(s.State)
	switch s.State {
	case cancel.Cancelled:
		state = a.paint(a.out, red, state) + " by " + console.Escape(s.CancelledBy) + ", " + ago(s.CancelledAt)
		if s.Reason != "" {
			state += ": " + console.Escape(s.Reason)
		}
	case cancel.WaitingApproval:
		state = a.paint(a.out, yellow, state)
	}
	fmt.Fprintf(a.out, "session  %s\nagent    %s\nstate    %s\nsince    %s\nlast     %s\ncalls    %d, aborted %d\ntokens   %s\nerrors   %d\n",
		console.Escape(s.Session), dash(s.Agent), state, s.Since.Local().Format(time.DateTime), lastOf(&s.SessionStatus), s.Calls, s.Aborted, tokens(s.Tokens), s.Errors)
	a.printFigures(s.Figures)
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	if len(s.Stages) > 0 {
		fmt.Fprintln(w, "\nSTAGE\tASKED")
		order := protocol.StageNames()
		for _, stage := range slices.SortedFunc(maps.Keys(s.Stages), func(x, y protocol.Stage) int {
			return cmp.Compare(slices.Index(order, string(x)), slices.Index(order, string(y)))
		}) {
			fmt.Fprintf(w, "%s\t%d\n", stage, s.Stages[stage])
		}
	}
	if len(s.Recent) > 0 {
		fmt.Fprintln(w, "\nTIME\tWHAT")
		for _, m := range s.Recent {
			fmt.Fprintf(w, "%s\t%s\n", m.At.Local().Format("15:04:05.000"), console.Escape(m.What))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, t := range s.Approvals {
		fmt.Fprintf(a.out, "\n%s waits for an answer: %s, %s\n", a.paint(a.out, yellow, t.ID), console.Escape(t.Tool), console.Left(time.Until(t.Expires)))
	}
	return nil
}

// printFigures prints what the built-in metrics has counted of a session.
func (a *app) printFigures(f *daemon.SessionFigures) {
	switch {
	case f == nil:
		fmt.Fprintln(a.out, `figures  none: add "metrics": {} to hooks.builtins in the config`)
		return
	case f.Started.IsZero():
		fmt.Fprintln(a.out, "figures  none yet")
		return
	}
	unsplit := ""
	if f.TokensUnsplit > 0 {
		unsplit = fmt.Sprintf(", %d not told apart", f.TokensUnsplit)
	}
	fmt.Fprintf(a.out, "figures  since %s, last %s\n         steps %d, tool calls %d, tokens in %d, out %d%s, errors %d, denials %d\n",
		f.Started.Local().Format(time.DateTime), ago(f.Last), f.Steps, f.ToolCalls, f.TokensIn, f.TokensOut, unsplit, f.Errors, f.Denials)
}

func (a *app) cancelCommand() *cobra.Command {
	var p places
	var reason string
	cmd := &cobra.Command{
		Use:   "cancel SESSION",
		Short: "Stop a session: every further step of it is aborted",
		Long: `Stops a session until it is resumed, or ends: every further stage of it answers
abort_turn, every approval no, and calls of it that wait for a person are denied.
The reason goes to the agent.

hookd can stop what an agent asks about. What an agent does without asking, and
a tool that runs already, goes on.`,
		Example: `  hookd sessions cancel s-81 --reason 'it runs in circles'`,
		Args:    oneArg("SESSION"), ValidArgsFunction: a.completeSessions(&p),
		RunE: func(cmd *cobra.Command, args []string) error {
			var done daemon.SessionChanged
			if err := a.control(cmd.Context(), p, daemon.MethodSessionsCancel, daemon.SessionParams{Session: args[0], Reason: reason}, &done); err != nil {
				return err
			}
			fmt.Fprintf(a.out, "cancelled %s", console.Escape(done.Session))
			if done.Denied > 0 {
				fmt.Fprintf(a.out, ", calls that waited and were denied: %d", done.Denied)
			}
			fmt.Fprintln(a.out)
			a.warnIf(done.Warning)
			return nil
		},
	}
	p.flags(cmd, true)
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the agent and the log")
	return cmd
}

func (a *app) resumeCommand() *cobra.Command {
	var p places
	cmd := &cobra.Command{
		Use:     "resume SESSION",
		Short:   "Let a cancelled session go on",
		Example: `  hookd sessions resume s-81`,
		Args:    oneArg("SESSION"), ValidArgsFunction: a.completeSessions(&p),
		RunE: func(cmd *cobra.Command, args []string) error {
			var done daemon.SessionChanged
			if err := a.control(cmd.Context(), p, daemon.MethodSessionsResume, daemon.SessionParams{Session: args[0]}, &done); err != nil {
				return err
			}
			fmt.Fprintf(a.out, "resumed %s\n", console.Escape(done.Session))
			a.warnIf(done.Warning)
			return nil
		},
	}
	p.flags(cmd, true)
	return cmd
}

func (a *app) warnIf(warning string) {
	if warning != "" {
		fmt.Fprintln(a.err, "warning: "+warning)
	}
}

// completeSessions offers the ids of the sessions.
func (a *app) completeSessions(p *places) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) (ids []cobra.Completion, _ cobra.ShellCompDirective) {
		var list []daemon.SessionStatus
		if len(args) == 0 && a.control(cmd.Context(), *p, daemon.MethodSessionsList, nil, &list) == nil {
			for _, s := range list {
				ids = append(ids, cobra.CompletionWithDesc(s.Session, string(s.State)))
			}
		}
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
}
