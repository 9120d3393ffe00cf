package cli

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
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
		Long: `Reads a call from standard input: the params of STAGE, or the payload of a coding
agent's event. Without STAGE and --agent it finds out which it is: params then hold
their "stage". Prints a line per hook of the config and of the files of command
hooks, in the order in which they would be asked, with what decided whether it is,
and the answer as far as it is known without running anything: built-ins that judge
by the call alone, such as policy, are asked. Nothing is started and nothing runs.

With --run the hooks are started as "hookd check" does and asked as a dry run, and
the answer is the real one. Command hooks are RUN for it, with all that they do: a
script does not know of dry runs. Those of a project only run when they are trusted.`,
		Example: `  hookd explain < payload.json
  echo '{"tool":"bash","arguments":{"command":"rm -rf /"}}' | hookd explain before_tool
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
			o := daemon.ExplainOptions{ConfigPath: path, Builtins: a.builtins, Getenv: a.getenv, Request: req}
			list, err := daemon.Explain(o)
			if err != nil {
				return err
			}
			if err := a.show(asJSON, list, func(w io.Writer) error { return a.printExplained(w, list) }); err != nil || asJSON && !run {
				return err
			}
			answer, err := o.Answer(cmd.Context(), run)
			if err != nil {
				return err
			}
			return a.printAnswer(answer, req, run)
		},
	}
	f := cmd.Flags()
	f.StringVar(&file, "config", "", "the config file (default: as serve finds it)")
	f.StringVar(&agentName, "agent", "", "the payload is that of this coding agent, or auto (default without STAGE: found out)")
	f.StringVar(&event, "event", "", "the agent's own name for the event (default: the payload says)")
	f.BoolVar(&run, "run", false, "start the hooks and ask them, and RUN the command hooks, for the real answer")
	f.BoolVar(&asJSON, "json", false, "print an array of {name, source, layer, priority, asked, why, role, ...}")
	return cmd
}

// explained reads the call.
func (a *app) explained(cmd *cobra.Command, args []string, agentName, event string) (*protocol.Request, error) {
	if agentName == "" && len(args) == 1 {
		stage, params, err := a.stageParams(cmd, args[0])
		if err != nil {
			return nil, err
		}
		members, err := protocol.DecodeObject(params, 0)
		if err != nil {
			return nil, fmt.Errorf("the params of %s: %w", args[0], err)
		}
		return requestOf(stage, members)
	}
	data, err := a.readInput("the payload", maxCallBytes)
	if err != nil {
		return nil, err
	}
	if agentName == "" {
		if stage, members := ownParams(data); stage != nil {
			return requestOf(stage, members)
		}
		agentName = agent.Auto
		if found, _ := agent.Detect(data, a.getenv); found == "" {
			return nil, usage(cmd, "can't tell what this is: name the STAGE whose params it holds, or the agent with --agent (%s)", strings.Join(agent.Names(), ", "))
		}
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
	return requestOf(protocol.NewStageTable().Stage(c.Stage), c.Params)
}

func requestOf(stage *protocol.StageInfo, members protocol.Object) (*protocol.Request, error) {
	req, bad := protocol.DecodeRequest(stage, members)
	if bad != nil {
		return nil, fmt.Errorf("the params of %s: %w", stage.Name, bad)
	}
	return req, nil
}

// ownParams reads hookd's own words: params that hold their stage, or a whole
// request. The stage is nil when it is something else.
func ownParams(data []byte) (*protocol.StageInfo, protocol.Object) {
	o, err := protocol.DecodeObject(bytes.TrimSpace(data), 0)
	if err != nil {
		return nil, nil
	}
	stages := protocol.NewStageTable()
	if method := protocol.MetaString(o, "method"); strings.HasPrefix(method, protocol.MethodPrefix) && o.Get("params").Kind() == '{' {
		members, err := protocol.ParseObject(o.Get("params"))
		if err != nil {
			return nil, nil
		}
		return stages.Method(method), members
	}
	stage := stages.Stage(protocol.Stage(protocol.MetaString(o, "stage")))
	return stage, slices.DeleteFunc(o, func(m protocol.Member) bool { return m.Name == "stage" })
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

// printAnswer says what the call is, or would be, answered.
func (a *app) printAnswer(answer *daemon.Answer, req *protocol.Request, run bool) error {
	for _, p := range answer.Problems {
		fmt.Fprintln(a.err, p)
	}
	if answer.Result == nil {
		if run {
			return errSilent
		}
		_, err := fmt.Fprintln(a.out, "\nThe answer is known only with --run.")
		return err
	}
	text := answer.Result.AppendJSON(nil, req.Stage, run)
	if len(answer.Open) == 0 {
		_, err := fmt.Fprintf(a.out, "\nanswer: %s\n", text)
		return err
	}
	_, err := fmt.Fprintf(a.out, "\nThe answer is known only with --run: %s would be asked and may decide.\nIf they have no opinion: %s\n", strings.Join(answer.Open, ", "), text)
	return err
}
