package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/hookd/hookd/config"
	"github.com/hookd/hookd/daemon"
	"github.com/hookd/hookd/protocol"
)

func (a *app) checkCommand() *cobra.Command {
	var noStart, asJSON bool
	var callStage string
	cmd := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Validate a config, start and greet every hook, and say what is active",
		Long: `Reads a config as the daemon would, starts and greets every hook, says what is
active and what limits each process, and stops them again. It needs no daemon. The exit code is 1 when
anything is wrong; every problem is named with its place in the file.

Without FILE it checks the file that hookd serve would use.`,
		Example: `  hookd check config.json
  hookd check --no-start config.json       # the file only, for CI
  hookd check --json config.json | jq '.hooks[] | {name, limits}'
  echo '{"tool":"bash","arguments":{"command":"rm -rf /"}}' | hookd check --call before_tool config.json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage(cmd, "unexpected argument %q", args[1])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := "", error(nil)
			if len(args) == 1 {
				path = args[0]
			} else if path, err = config.Find("", a.getenv); err != nil {
				return err
			} else if path == "" {
				return usage(cmd, "there is no config file to check: name one")
			}
			o := daemon.CheckOptions{ConfigPath: path, NoStart: noStart, Builtins: a.builtins, Helper: a.helper, Version: version()}
			if callStage != "" {
				if noStart {
					return usage(cmd, "--call needs started hooks: leave --no-start out")
				}
				if o.Call, err = a.dryRun(cmd, callStage); err != nil {
					return err
				}
			}
			return a.check(cmd, o, asJSON)
		},
	}
	cmd.Flags().BoolVar(&noStart, "no-start", false, "do not start hooks, only judge the file")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().StringVar(&callStage, "call", "", "run a call of this stage, with params from standard input, as a dry run through the hooks")
	return cmd
}

// dryRun reads the call that check is to try.
func (a *app) dryRun(cmd *cobra.Command, name string) (*protocol.Request, error) {
	stage, params, err := a.stageParams(cmd, name)
	if err != nil {
		return nil, err
	}
	members, err := protocol.DecodeObject(params, 0)
	if err != nil {
		return nil, fmt.Errorf("the params of %s: %w", name, err)
	}
	req, bad := protocol.DecodeRequest(stage, members)
	if bad != nil {
		return nil, fmt.Errorf("the params of %s: %s", name, bad.Message)
	}
	return req, nil
}

func (a *app) check(cmd *cobra.Command, o daemon.CheckOptions, asJSON bool) error {
	report, err := daemon.Check(cmd.Context(), o)
	if asJSON && (err == nil || isLoadError(err)) {
		return a.checkJSON(o, report, err)
	}
	if load, ok := errors.AsType[*config.LoadError](err); ok {
		fmt.Fprintln(a.err, load.Error())
		return a.problems(len(load.Problems))
	}
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for _, h := range report.Hooks {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", h.Name, h.Source, a.verdict(o, h), strings.Join(h.Active, " "), strings.Join(append(h.Rules, guarded(h)...), ", "))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	a.printLimits(report)
	for _, f := range report.CommandFiles {
		fmt.Fprintf(a.out, "%s (%s): %d command hooks, asked in this order: %s\n", f.Path, f.Layer, len(f.Hooks), strings.Join(f.Hooks, ", "))
	}
	for _, warning := range report.Warnings {
		fmt.Fprintf(a.err, "%s: %s\n", a.paint(a.err, yellow, "warning"), warning)
	}
	for _, p := range report.Problems {
		fmt.Fprintln(a.err, p)
	}
	for _, h := range report.Hooks {
		if h.Error != "" {
			printTail(a.err, h.Stderr)
		}
	}
	if len(report.Problems) > 0 {
		return a.problems(len(report.Problems))
	}
	if report.Result != nil {
		fmt.Fprintf(a.out, "%s\n", report.Result.AppendJSON(nil, o.Call.Stage, true))
	}
	fmt.Fprintf(a.err, "%s: ok\n", o.ConfigPath)
	return nil
}

// guarded says what holds one hook to its word, beyond what all processes have.
func guarded(h daemon.CheckedHook) (words []string) {
	if h.Limits != nil && h.Started {
		words = slices.DeleteFunc(slices.Clone(h.Limits.Active), common)
	}
	if h.Canary != nil && h.Canary.OK {
		words = append(words, "canary says "+h.Canary.Got)
	}
	return words
}

// common reports whether a limit is one that every process has.
func common(limit string) bool { return limit != "sha256" && !strings.HasPrefix(limit, "landlock=") }

// printLimits prints, once, what limits all processes.
func (a *app) printLimits(report *daemon.CheckReport) {
	var said []string
	for _, h := range report.Hooks {
		if h.Limits == nil || !h.Started {
			continue
		}
		limits := slices.DeleteFunc(slices.Clone(h.Limits.Active), func(l string) bool { return !common(l) })
		if line := strings.Join(limits, " "); line != "" && !slices.Contains(said, line) {
			said = append(said, line)
			fmt.Fprintf(a.out, "processes run with %s\n", line)
		}
	}
}

func isLoadError(err error) bool {
	_, ok := errors.AsType[*config.LoadError](err)
	return ok
}

// checkJSON prints what a check found for programs.
func (a *app) checkJSON(o daemon.CheckOptions, report *daemon.CheckReport, err error) error {
	if report == nil {
		report = &daemon.CheckReport{}
		if load, ok := errors.AsType[*config.LoadError](err); ok {
			report.Problems = strings.Split(load.Error(), "\n")
		}
	}
	all := struct {
		OK bool `json:"ok"`
		*daemon.CheckReport
		Result jsontext.Value `json:"result,omitzero"`
	}{OK: len(report.Problems) == 0, CheckReport: report}
	if report.Result != nil {
		all.Result = report.Result.AppendJSON(nil, o.Call.Stage, true)
	}
	if err := json.MarshalWrite(a.out, all, json.Deterministic(true), jsontext.WithIndent("  "), jsontext.SpaceAfterColon(true)); err != nil {
		return err
	}
	if fmt.Fprintln(a.out); !all.OK {
		return errSilent
	}
	return nil
}

// verdict says in a few words how one hook's check went.
func (a *app) verdict(o daemon.CheckOptions, h daemon.CheckedHook) string {
	switch {
	case h.Disabled:
		return "disabled"
	case h.Error != "":
		return a.paint(a.out, red, "failed")
	case o.NoStart:
		return "not started"
	case h.Greeted != "" && h.Greeted != h.Name:
		return fmt.Sprintf("started, greeted as %q in %s", h.Greeted, h.Took.Round(time.Millisecond))
	case h.Source == "process":
		return fmt.Sprintf("started, greeted in %s", h.Took.Round(time.Millisecond))
	}
	return "started"
}

func (a *app) problems(n int) error {
	if n == 1 {
		fmt.Fprintln(a.err, "1 problem")
	} else {
		fmt.Fprintf(a.err, "%d problems\n", n)
	}
	return errSilent
}
