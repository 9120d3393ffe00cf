package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookd/hookd/agent"
	"github.com/hookd/hookd/thin"
)

func (a *app) hookCommand() *cobra.Command {
	var o thin.Options
	var p places
	var timeout time.Duration
	away := ""
	cmd := &cobra.Command{
		Use:   "hook",
		Short: "Answer one event of a coding agent, in its own words",
		Long: `Reads the payload that a coding agent gives its hooks from standard input, asks
the daemon, and writes the answer as that agent reads it. It is what agents call
for every event; "hookd install" sets that up, with the program hookd-hook, which
does the same and starts several times faster.

When no daemon answers, --on-unavailable says what to answer, in the agent's own
words: deny (where the event can deny; the default), continue, or ask. The exit
status is never 1, which most agents take for "go on".

A question (ask) goes to the agent's own prompt. With --approve hookd's
approvers decide it.`,
		Example: `  hookd hook --agent claude --event PreToolUse < payload.json
  hookd agents        # which agents and events there are, and what each can do`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			choice, err := agent.ParseOnUnavailable(away)
			if err != nil {
				return usage(cmd, "--on-unavailable: %v", err)
			}
			if o.Agent != agent.Auto && agent.Find(o.Agent) == nil {
				return usage(cmd, "--agent %q: one of %s, or auto", o.Agent, strings.Join(agent.Names(), ", "))
			}
			o.OnUnavailable, o.Socket, o.TimeoutMS = string(choice), p.socket, int(timeout.Milliseconds())
			if self, err := os.Executable(); err == nil {
				o.Hookd = self
			}
			answer, why := thin.Run(o, a.getenv)
			if why != nil && len(answer.Stderr) == 0 {
				fmt.Fprintf(a.err, "hookd: %s\n", why)
			}
			_, _ = a.err.Write(answer.Stderr) // as below
			exit := max(answer.Exit, 0)
			if _, err := a.out.Write(answer.Stdout); err != nil {
				exit = answer.ExitUnsaid() // a no that nobody can read is none
			}
			if exit != 0 {
				return exitStatus(exit)
			}
			return nil
		},
	}
	p.flags(cmd, false)
	f := cmd.Flags()
	f.StringVar(&o.Agent, "agent", agent.Auto, "the agent, or auto: look at the payload")
	f.StringVar(&o.Event, "event", agent.Auto, "the agent's own name for the event, or auto: the payload says")
	f.StringVar(&away, "on-unavailable", "deny", "the answer when no daemon does: deny, continue or ask")
	f.BoolVar(&o.Approve, "approve", false, "let hookd's approvers decide what a hook asks about")
	f.BoolVar(&o.Autostart, "autostart", false, "start a daemon when there is none")
	f.BoolVar(&o.DryRun, "dry-run", false, "judge without any effect")
	f.DurationVar(&timeout, "timeout", 0, "how long it may take; keep it below the agent's own limit (default 25s)")
	f.IntVar(&o.MaxBytes, "max-bytes", thin.DefaultMaxBytes, "the largest payload")
	complete := func(flag string, words []string) {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	}
	complete("agent", append(slices.Clone(agent.Names()), agent.Auto))
	complete("on-unavailable", []string{"deny", "continue", "ask"})
	return cmd
}

// exitStatus ends a command that has said everything with a status of its own.
type exitStatus int

func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }
