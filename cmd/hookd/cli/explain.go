package cli

import (
	"bytes"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/hookd/hookd/agent"
	"github.com/hookd/hookd/config"
	"github.com/hookd/hookd/daemon"
	"github.com/hookd/hookd/protocol"
)

func (a *app) explainCommand() *cobra.Command {
	var file, agentName, event string
	var asJSON, run bool
	cmd := &cobra.Command{
		Use:   "explain [STAGE]",
		Short: "Show which hooks a call means, why, and in which order",
		Long: `Reads a call from standard input: the params of STAGE, or with --agent the
payload of a coding agent's event. Prints a line per hook of the config and of the
files of command hooks, in the order in which they would be asked, with what
decided whether it is. Nothing is started and nothing runs.

With --run the hooks are started as "hookd check" does, asked as a dry run, and the
answer is printed too. Command hooks are not run even then: a script does not know
of dry runs.`,
		Example: `  echo '{"tool":"bash","arguments":{"command":"rm -rf /"}}' | hookd explain before_tool
  hookd explain --agent claude --event PreToolUse < payload.json`,
		Args: cobra.MaximumNArgs(1), ValidArgs: protocol.StageNames(),
		RunE: func(cmd *cobra.Command, args []string) error {
			req, err := a.explained(cmd, args, agentName, event)
			if err != nil {
				return err
			}
			path, err := config.Find(file, a.getenv)
			if err != nil {
				return err
			}
			if path == "" {
				fmt.Fprintln(a.err, "There is no config file: what holds without one. Another is named by --config.")
			} else {
				fmt.Fprintf(a.err, "By %s; another is named by --config.\n", path)
			}
			list, err := daemon.Explain(daemon.ExplainOptions{ConfigPath: path, Builtins: a.builtins, Getenv: a.getenv, Request: req})
			if err != nil {
				return err
			}
			if err := a.show(asJSON, list, func(w io.Writer) error { return a.printExplained(w, list) }); err != nil || !run {
				return err
			}
			return a.tryCall(cmd, path, req)
		},
	}
	f := cmd.Flags()
	f.StringVar(&file, "config", "", "the config file (default: as serve finds it)")
	f.StringVar(&agentName, "agent", "", "the payload is that of this coding agent, or auto")
	f.StringVar(&event, "event", "", "the agent's own name for the event (default: the payload says)")
	f.BoolVar(&run, "run", false, "start the hooks and ask them, as a dry run")
	f.BoolVar(&asJSON, "json", false, "print an array of {name, source, layer, priority, asked, why, role, ...}")
	return cmd
}

// explained reads the call.
func (a *app) explained(cmd *cobra.Command, args []string, agentName, event string) (*protocol.Request, error) {
	if agentName == "" && len(args) == 0 {
		return nil, usage(cmd, "STAGE is missing, or --agent")
	}
	if agentName == "" {
		stage, params, err := a.stageParams(cmd, args[0])
		if err != nil {
			return nil, err
		}
		members, err := protocol.DecodeObject(params, 0)
		if err != nil {
			return nil, fmt.Errorf("the params of %s: %w", args[0], err)
		}
		req, bad := protocol.DecodeRequest(stage, members)
		if bad != nil {
			return nil, fmt.Errorf("the params of %s: %w", args[0], bad)
		}
		return req, nil
	}
	data, err := a.readInput("the payload", maxCallBytes)
	if err != nil {
		return nil, err
	}
	dialect, warning, err := agent.Pick(agentName, data, a.getenv)
	if err != nil {
		return nil, usage(cmd, "%v", err)
	}
	if warning != "" {
		fmt.Fprintf(a.err, "hookd: %s\n", warning)
	}
	c, err := dialect.Read(event, bytes.TrimSpace(data))
	if err != nil {
		return nil, err
	}
	if c.Stage == "" {
		return nil, fmt.Errorf("%s of %s is only observed (%s): no hook decides anything", c.Event, c.Agent, c.Kind)
	}
	req, bad := protocol.DecodeRequest(protocol.NewStageTable().Stage(c.Stage), c.Params)
	if bad != nil {
		return nil, bad
	}
	return req, nil
}

func (a *app) printExplained(w io.Writer, list []daemon.Explained) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "There are no hooks.")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\tHOOK\tLAYER\tAS\tPOLICY\tWHY")
	place := 0
	for _, e := range list {
		mark := "-"
		if e.Asked {
			place++
			mark = fmt.Sprint(place)
		}
		policy := e.FailPolicy
		if e.Mode != "" && e.Mode != "enforce" {
			policy += " (" + e.Mode + ")"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", mark, e.Name, e.Layer, e.Role, policy, e.Why)
	}
	return t.Flush()
}

// tryCall asks the hooks as a dry run and prints the answer.
func (a *app) tryCall(cmd *cobra.Command, path string, req *protocol.Request) error {
	if path == "" {
		fmt.Fprintln(a.err, "hookd: there is no config, so there is nobody to ask")
		return nil
	}
	req.Trail = true
	report, err := daemon.Check(cmd.Context(), daemon.CheckOptions{
		ConfigPath: path, Builtins: a.builtins, Version: version(), Stderr: io.Discard, Call: req,
	})
	if err != nil {
		return err
	}
	for _, p := range report.Problems {
		fmt.Fprintln(a.err, p)
	}
	if report.Result == nil {
		return errSilent
	}
	_, err = fmt.Fprintf(a.out, "\nanswer: %s\n", report.Result.AppendJSON(nil, req.Stage, true))
	return err
}
