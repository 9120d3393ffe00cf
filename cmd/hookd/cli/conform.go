package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/hookd/hookd/conform"
	"github.com/hookd/hookd/protocol"
)

func (a *app) conformCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "conform",
		Short: "Test a hook or an agent of yours against the protocol",
		Long: `Starts your program, plays hookd, and reports what holds and what does not,
like a test runner. It needs no daemon and no config. The exit code is 0 when no
check failed, else 1.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.conformHookCommand(), a.conformAgentCommand())
	return cmd
}

func (a *app) conformHookCommand() *cobra.Command {
	var stages, events []string
	var config string
	var asJSON bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "hook [flags] -- COMMAND [ARGUMENT...]",
		Short: "Test a hook: greets it, asks it at every stage, and is unkind to it",
		Long: `Starts a hook as hookd would, with the same few environment variables, greets
it, and asks it at every stage that it takes. Then come values of other types,
odd text, several calls at once, cancelled calls, garbage, 4 MiB, the end of
stdin, SIGTERM and a new start.

All requests are dry runs. Name what your config will name in "intercept" and
"observe" with --stage and --event; without them the hook is offered all.`,
		Example: `  hookd conform hook -- python3 review_gate.py
  hookd conform hook --stage before_tool --config '{"deny":["rm"]}' -- ./my-hook`,
		Args: someCommand,
		RunE: func(cmd *cobra.Command, args []string) error {
			o := conform.HookOptions{Argv: args, Events: events, Timeout: timeout}
			for _, name := range stages {
				if protocol.NewStageTable().Stage(protocol.Stage(name)) == nil {
					return usage(cmd, "unknown stage %q%s", name, protocol.DidYouMean(name, protocol.StageNames()))
				}
				o.Stages = append(o.Stages, protocol.Stage(name))
			}
			for _, text := range events {
				if _, err := protocol.ParseSubscription(text); err != nil {
					return usage(cmd, "--event: %s", err)
				}
			}
			if config != "" {
				if _, err := protocol.DecodeObject([]byte(config), 0); err != nil {
					return usage(cmd, "--config: %s", err)
				}
				o.Config = protocol.Compact(jsontext.Value(config))
			}
			return a.conform(cmd, asJSON, func(ctx context.Context, show func(conform.Result)) ([]conform.Result, error) {
				o.Show = show
				return conform.Hook(ctx, o)
			})
		},
	}
	cmd.Flags().StringArrayVar(&stages, "stage", nil, "a stage to offer and ask at; may be given several times")
	cmd.Flags().StringArrayVar(&events, "event", nil, "events to offer and tell of: a kind, a pattern such as tool_*, or *; may be given several times")
	cmd.Flags().StringVar(&config, "config", "", "what the entry gives to the hook as \"config\", a JSON object")
	cmd.Flags().DurationVar(&timeout, "timeout", 5*time.Second, "how long the hook may take for one answer")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func (a *app) conformAgentCommand() *cobra.Command {
	var o conform.AgentOptions
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "agent [flags] -- COMMAND [ARGUMENT...]",
		Short: "Test an agent: plays a hookd that misbehaves, and sees whether it acts",
		Long: `Starts an agent once for each check, with HOOKD_SOCKET naming a hookd that
denies, hangs up, says nothing, answers in half or with nonsense. An agent may run
a tool only after a readable yes.

The command must make the agent ask for one tool call which creates the file that
` + conform.MarkerEnv + ` names, with that path in the call's arguments, and
then end. Whether it acts is seen by the file.`,
		Example: `  hookd conform agent -- sh -c './my-agent --prompt "run: touch $` + conform.MarkerEnv + `"'`,
		Args:    someCommand,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Argv = args
			return a.conform(cmd, asJSON, func(ctx context.Context, show func(conform.Result)) ([]conform.Result, error) {
				o.Show = show
				return conform.Agent(ctx, o)
			})
		},
	}
	cmd.Flags().StringVar(&o.Socket, "socket", "", "where to listen in place of hookd, for agents that do not read HOOKD_SOCKET")
	cmd.Flags().DurationVar(&o.Timeout, "timeout", 10*time.Second, "how long the agent may run for one check")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// someCommand wants a command to run.
func someCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 || args[0] == "" {
		return usage(cmd, "the command to test is missing: name it behind --")
	}
	return nil
}

// conformReport is what --json prints.
type conformReport struct {
	OK      bool             `json:"ok"`
	Passed  int              `json:"passed"`
	Failed  int              `json:"failed"`
	Warned  int              `json:"warned"`
	Skipped int              `json:"skipped"`
	Results []conform.Result `json:"results"`
}

// conform runs checks and shows them.
func (a *app) conform(cmd *cobra.Command, asJSON bool, run func(context.Context, func(conform.Result)) ([]conform.Result, error)) error {
	show := a.showResult
	if asJSON {
		show = nil
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	results, err := run(ctx, show)
	if err != nil {
		return err
	}
	r := conformReport{Results: results}
	for _, result := range results {
		switch result.Status {
		case conform.Pass:
			r.Passed++
		case conform.Fail:
			r.Failed++
		case conform.Warn:
			r.Warned++
		case conform.Skip:
			r.Skipped++
		}
	}
	r.OK = r.Failed == 0
	if asJSON {
		text, err := protocol.Marshal(r)
		if err != nil {
			return err
		}
		fmt.Fprintf(a.out, "%s\n", text)
	} else {
		fmt.Fprintf(a.out, "%d passed, %d failed, %d warned, %d skipped\n", r.Passed, r.Failed, r.Warned, r.Skipped)
	}
	if !r.OK {
		return errSilent
	}
	return nil
}

func (a *app) showResult(r conform.Result) {
	colour := map[conform.Status]string{conform.Pass: green, conform.Fail: red, conform.Warn: yellow, conform.Skip: grey}[r.Status]
	line := a.paint(a.out, colour, string(r.Status)) + "  " + r.Check
	if r.Detail != "" {
		line += ": " + strings.TrimSpace(r.Detail)
	}
	fmt.Fprintln(a.out, line)
	if r.Do != "" {
		fmt.Fprintln(a.out, "      "+r.Do)
	}
}
