package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/hookd/hookd/child"
	"github.com/hookd/hookd/daemon"
	"github.com/hookd/hookd/install"
)

// maxOutput is how much of what a program prints is looked at.
const maxOutput = 1 << 20

func (a *app) doctorCommand() *cobra.Command {
	var p places
	var project string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor [AGENT...]",
		Short: "Find out why a coding agent does not ask hookd, and what to do about it",
		Long: `Looks at the agents on this machine, or at those named: whether hookd stands in
their settings and is up to date, whether they trust it where that can be seen,
what switches their hooks off, what else runs beside it, and whether an event
goes through the program that they run to the daemon and back, as a dry run.

For every finding it says what to do. The exit code is 1 when there is a problem.`,
		Example: `  hookd doctor
  hookd doctor codex
  hookd doctor --json | jq '.agents[] | {name, installed, last_event}'`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			x, err := a.examination(cmd, p, project, args)
			if err != nil {
				return err
			}
			spawner := child.NewSpawner()
			defer spawner.Close()
			x.Run = func(ctx context.Context, argv []string, stdin []byte) (install.Output, error) {
				return runProgram(ctx, spawner, argv, stdin)
			}
			report, err := install.Examine(cmd.Context(), x)
			if err != nil {
				return asUsage(cmd, err)
			}
			if asJSON {
				err = json.MarshalWrite(a.out, report, json.Deterministic(true), jsontext.WithIndent("  "), jsontext.SpaceAfterColon(true))
			} else {
				a.printReport(report)
			}
			if err == nil && !report.OK {
				return errSilent
			}
			return err
		},
		ValidArgsFunction: cobra.FixedCompletions(install.Agents(), cobra.ShellCompDirectiveNoFileComp),
	}
	p.flags(cmd, true)
	cmd.Flags().StringVar(&project, "project", "", "look at the hooks of this project too (default: the folder you are in)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) examination(cmd *cobra.Command, p places, project string, agents []string) (install.Examination, error) {
	project, err := filepath.Abs(project)
	if err != nil {
		return install.Examination{}, err
	}
	place, err := a.agentPlace(project)
	if err != nil {
		return install.Examination{}, err
	}
	if place.Project == place.Home {
		place.Project = "" // the same files
	}
	x := install.Examination{Place: place, Agents: agents, Version: version()}
	x.Ask = func(ctx context.Context) (install.Daemon, error) {
		s := &daemon.Status{}
		if err := a.control(ctx, p, daemon.MethodStatus, nil, s); err != nil {
			return install.Daemon{}, err
		}
		last := map[string]install.Seen{}
		for name, seen := range s.CodingAgents {
			last[name] = install.Seen{Event: seen.Event, At: seen.At}
		}
		return install.Daemon{Version: s.Version, Ready: s.Ready, Last: last}, nil
	}
	self, err := os.Executable()
	if err != nil {
		return x, err
	}
	if x.Program, err = install.FindProgram(self, a.getenv); errors.Is(err, install.ErrNoProgram) {
		err = nil // that is a finding
	}
	return x, err
}

// runProgram runs a program of the user's: with all of their environment, and
// not longer than ctx.
func runProgram(ctx context.Context, spawner *child.Spawner, argv []string, stdin []byte) (install.Output, error) {
	env := map[string]string{}
	for _, v := range os.Environ() {
		name, value, _ := strings.Cut(v, "=")
		env[name] = value
	}
	var out install.Output
	process, err := spawner.Start(ctx, child.Spec{Argv: argv, Dir: "/", Env: env, Stderr: func(line []byte, _ int64) {
		if line != nil && len(out.Stderr) < maxOutput {
			out.Stderr = append(append(out.Stderr, line...), '\n')
		}
	}})
	if err != nil {
		return out, err
	}
	defer process.Stdout().Close()
	stop := context.AfterFunc(ctx, process.Kill)
	defer stop()
	var pipes sync.WaitGroup
	pipes.Go(func() {
		_, _ = process.Stdin().Write(stdin) // it need not read all, or any of it
		_ = process.Stdin().Close()
	})
	var stdout bytes.Buffer
	pipes.Go(func() {
		if _, err := io.Copy(&stdout, io.LimitReader(process.Stdout(), maxOutput)); err != nil || stdout.Len() == maxOutput {
			process.Kill()
		}
	})
	<-process.Done()
	pipes.Wait()
	out.Stdout = stdout.Bytes()
	exit := process.Exit()
	out.Exit = exit.Code
	switch {
	case ctx.Err() != nil:
		return out, fmt.Errorf("it did not end in time: %w", context.Cause(ctx))
	case exit.Signal != "" || exit.Err != nil:
		return out, errors.New(exit.How())
	}
	return out, nil
}

// printReport shows what was found to a person.
func (a *app) printReport(r *install.Report) {
	a.printFindings(r.Hookd)
	problems := 0
	for _, f := range r.Hookd {
		if f.Level == install.Problem {
			problems++
		}
	}
	for _, g := range r.Agents {
		title := g.Title
		if g.Version != "" {
			title += ", " + g.Version
		}
		fmt.Fprintf(a.out, "\n%s\n", title)
		a.printFindings(g.Findings)
		for _, f := range g.Findings {
			if f.Level == install.Problem {
				problems++
			}
		}
	}
	fmt.Fprintln(a.out)
	switch problems {
	case 0:
		fmt.Fprintln(a.out, "no problem")
	case 1:
		fmt.Fprintln(a.out, "1 problem")
	default:
		fmt.Fprintf(a.out, "%d problems\n", problems)
	}
}

func (a *app) printFindings(list []install.Finding) {
	for _, f := range list {
		colour := grey
		switch f.Level {
		case install.OK:
			colour = green
		case install.Warning:
			colour = yellow
		case install.Problem:
			colour = red
		}
		text := f.Text
		if f.File != "" {
			where := f.File
			if f.Line > 0 {
				where = fmt.Sprintf("%s:%d", f.File, f.Line)
			}
			if !strings.Contains(text, where) {
				text = where + ": " + text
			}
		}
		fmt.Fprintf(a.out, "  %s  %s\n", a.paint(a.out, colour, fmt.Sprintf("%-7s", f.Level)), text)
		if f.Fix != "" {
			fmt.Fprintf(a.out, "           %s\n", f.Fix)
		}
	}
}
