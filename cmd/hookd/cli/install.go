package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hookd/hookd/install"
)

// here is what --project without a folder means.
const here = "."

// scopeFlags say for whom hooks are installed.
type scopeFlags struct {
	project string
	user    bool
	dryRun  bool
}

func (s *scopeFlags) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.project, "project", "", "for all who work in this folder (default: the one you are in), instead of for you")
	f.Lookup("project").NoOptDefVal = here
	f.BoolVar(&s.user, "user", false, "for you, in all folders; this is the default")
	f.BoolVar(&s.dryRun, "dry-run", false, "show what would change and write nothing")
}

// place finds out which files are meant. A folder may follow --project as a word
// of its own.
func (s *scopeFlags) place(cmd *cobra.Command, a *app, args []string) (install.Place, install.Scope, error) {
	p, err := a.agentPlace("")
	if err != nil {
		return p, "", err
	}
	project := s.project
	switch {
	case len(args) == 2 && project == here:
		project = args[1]
	case len(args) > 1:
		return p, "", usage(cmd, "unexpected argument %q", args[1])
	case s.user && project != "":
		return p, "", usage(cmd, "--user and --project exclude each other")
	}
	if project == "" {
		return p, install.User, nil
	}
	if p.Project, err = filepath.Abs(project); err != nil {
		return p, "", err
	}
	return p, install.Project, nil
}

// agentPlace is where agents keep their files.
func (a *app) agentPlace(project string) (install.Place, error) {
	home := a.getenv("HOME")
	if home == "" {
		return install.Place{}, hint(errors.New("where your agents keep their files is not known"), "Set HOME.")
	}
	home, err := filepath.Abs(home)
	return install.Place{Home: home, Project: project, Getenv: a.getenv}, err
}

func agentArgs(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return usage(cmd, "AGENT is missing: one of %s", strings.Join(install.Agents(), ", "))
	case len(args) > 2:
		return usage(cmd, "unexpected argument %q", args[2])
	}
	return nil
}

func (a *app) installCommand() *cobra.Command {
	var s scopeFlags
	var o install.Options
	cmd := &cobra.Command{
		Use:   "install AGENT",
		Short: "Make a coding agent ask hookd, by adding to its settings",
		Long: `Adds hookd to the hooks in an agent's own settings, and shows what changes. All
else in the file stays as it is, with its order and its comments. Doing it again
brings the entries up to date; hookd uninstall takes them out.

What is added runs hookd-hook, a small program that hands the agent's event to
the daemon and its answer back. When no daemon answers, the agent is told no
where the event can be denied; --on-unavailable says otherwise.

A question of a hook (ask) goes to the agent's own prompt. With --approve hookd's
approvers decide it instead.

Agents: ` + strings.Join(install.Agents(), ", ") + `.
See what hookd does at which of their events with hookd agents.`,
		Example: `  hookd install claude --dry-run
  hookd install codex
  hookd install cursor --project . --on-unavailable continue
  hookd install gemini --events BeforeTool,AfterTool`,
		Args: agentArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			place, scope, err := s.place(cmd, a, args)
			if err != nil {
				return err
			}
			o.Agent, o.Scope = args[0], scope
			self, err := os.Executable()
			if err != nil {
				return err
			}
			if o.Program, err = install.FindProgram(self, a.getenv); err != nil {
				return err
			}
			plan, err := install.Install(place, o)
			if err != nil {
				return asUsage(cmd, err)
			}
			return a.carryOut(plan, s.dryRun, "hookd is installed for "+plan.Title+" already")
		},
		ValidArgsFunction: cobra.FixedCompletions(install.Agents(), cobra.ShellCompDirectiveNoFileComp),
	}
	s.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&o.OnUnavailable, "on-unavailable", "", "the answer when no daemon does: deny, continue or ask (default deny, where the event can deny)")
	f.BoolVar(&o.Approve, "approve", false, "let hookd's approvers decide what a hook asks about")
	f.BoolVar(&o.Autostart, "autostart", false, "start a daemon when there is none")
	f.DurationVar(&o.Timeout, "timeout", 0, "how long the agent waits where the answer counts (default 1m, with --approve 5m)")
	f.StringSliceVar(&o.Events, "events", nil, "only these events, by the agent's own names (default: all that hookd can do something at)")
	f.StringVar(&o.Socket, "socket", "", "the daemon's socket, when it is not in the usual place")
	// It fails only for a flag that is not there.
	_ = cmd.RegisterFlagCompletionFunc("on-unavailable", cobra.FixedCompletions([]string{"deny", "continue", "ask"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) uninstallCommand() *cobra.Command {
	var s scopeFlags
	cmd := &cobra.Command{
		Use:   "uninstall AGENT",
		Short: "Take hookd out of a coding agent's settings",
		Long: `Takes out what hookd install has added, and nothing else. A file that was not
changed since becomes what it was before, to the byte; one that hookd has made
goes away.`,
		Example: `  hookd uninstall claude --dry-run
  hookd uninstall cursor --project .`,
		Args: agentArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			place, scope, err := s.place(cmd, a, args)
			if err != nil {
				return err
			}
			plan, err := install.Uninstall(place, args[0], scope)
			if err != nil {
				return asUsage(cmd, err)
			}
			return a.carryOut(plan, s.dryRun, "hookd is not installed for "+plan.Title)
		},
		ValidArgsFunction: cobra.FixedCompletions(install.Agents(), cobra.ShellCompDirectiveNoFileComp),
	}
	s.flags(cmd)
	return cmd
}

// asUsage turns mistakes on the command line into what they are.
func asUsage(cmd *cobra.Command, err error) error {
	_, badAgent := errors.AsType[*install.UnknownAgentError](err)
	_, badOption := errors.AsType[*install.OptionError](err)
	if badAgent || badOption {
		return usage(cmd, "%s", err)
	}
	if bad, ok := errors.AsType[*install.FileError](err); ok {
		return hint(bad, "Nothing was changed.")
	}
	return err
}

// carryOut shows a plan and does what it says.
func (a *app) carryOut(p *install.Plan, dryRun bool, nothing string) error {
	a.printDiff(p.Diff())
	switch {
	case len(p.Changes) == 0:
		fmt.Fprintf(a.out, "nothing to do: %s\n", nothing)
	case dryRun:
		fmt.Fprintln(a.out, "\nnothing was written (--dry-run)")
	default:
		if err := p.Apply(); err != nil {
			return err
		}
		fmt.Fprintln(a.out)
		for _, c := range p.Changes {
			fmt.Fprintln(a.out, done(c))
		}
	}
	for _, w := range p.Warnings {
		fmt.Fprintf(a.err, "%s: %s\n", a.paint(a.err, yellow, "warning"), w)
	}
	if len(p.Events) > 0 && len(p.LeftOut) > 0 {
		fmt.Fprintf(a.out, "\nNot installed unless named with --events:\n%s\n", indent(strings.Join(p.LeftOut, "\n")))
	}
	if len(p.Todo) > 0 && !dryRun {
		fmt.Fprintf(a.out, "\nWhat is left to you:\n%s\n\nSee whether it works: %s doctor %s\n", indent(strings.Join(p.Todo, "\n")), typed(), p.Agent)
	}
	return nil
}

// done says what became of a file.
func done(c install.Change) string {
	switch {
	case c.After == nil:
		return "removed " + c.Path
	case c.Before == nil:
		return "made " + c.Path
	case c.Backup != "":
		return "changed " + c.Path + ", as it was before: " + c.Backup
	}
	return "changed " + c.Path
}

// printDiff shows a unified diff, in colours to a person.
func (a *app) printDiff(text string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"):
		case strings.HasPrefix(line, "+"):
			line = a.paint(a.out, green, line)
		case strings.HasPrefix(line, "-"):
			line = a.paint(a.out, red, line)
		case strings.HasPrefix(line, "@@"):
			line = a.paint(a.out, grey, line)
		}
		fmt.Fprintln(a.out, line)
	}
}
