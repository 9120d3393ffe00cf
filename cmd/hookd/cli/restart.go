package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/hookd/hookd/daemon"
)

func (a *app) restartCommand() *cobra.Command {
	var p places
	cmd := &cobra.Command{
		Use:   "restart HOOK",
		Short: "Start a hook's process anew",
		Long: `Starts a new process of the hook, greets it, and only then lets the old one go.
When the new one does not start, the old one stays.`,
		Args: oneArg("HOOK"), ValidArgsFunction: a.completeHooks(&p),
		RunE: func(cmd *cobra.Command, args []string) error {
			var res daemon.ReloadResult
			if err := a.control(cmd.Context(), p, daemon.MethodRestart, daemon.HookParams{Name: args[0]}, &res); err != nil {
				return err
			}
			fmt.Fprintf(a.out, "%s is ready, generation %d\n", args[0], res.Generation)
			return nil
		},
	}
	p.flags(cmd, true)
	return cmd
}
