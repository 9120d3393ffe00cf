package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookd/hookd/daemon"
)

func (a *app) enableCommand() *cobra.Command {
	return a.switchCommand("enable", daemon.MethodEnable, "Switch a hook on that the config has switched off",
		`Outranks the config until --for has passed, or until hookd ends.`)
}

func (a *app) disableCommand() *cobra.Command {
	return a.switchCommand("disable", daemon.MethodDisable, "Switch a hook off for a while",
		`Outranks the config until --for has passed, or until hookd ends. It is written
to the log and told to observers: a guard that was taken off should be seen.`)
}

func (a *app) switchCommand(word, method, short, long string) *cobra.Command {
	var p places
	var duration time.Duration
	cmd := &cobra.Command{
		Use: word + " HOOK", Short: short, Long: long,
		Example: fmt.Sprintf("  hookd %s review-gate --for 10m", word),
		Args:    oneArg("HOOK"), ValidArgsFunction: a.completeHooks(&p),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("for") && duration < time.Millisecond {
				return usage(cmd, "--for %s is no time, such as 10m", duration)
			}
			var res daemon.ReloadResult
			if err := a.control(cmd.Context(), p, method, daemon.HookParams{Name: args[0], ForMS: duration.Milliseconds()}, &res); err != nil {
				return err
			}
			a.printReload(&res)
			return nil
		},
	}
	p.flags(cmd, true)
	cmd.Flags().DurationVar(&duration, "for", 0, "for how long, such as 10m (default: until hookd ends)")
	return cmd
}
