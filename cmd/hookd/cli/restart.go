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
		Long:  `Lets the hook's calls in flight finish, stops its process and waits until a new one has greeted.`,
		Args:  oneArg("HOOK"), ValidArgsFunction: a.completeHooks(&p),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.control(cmd.Context(), p, daemon.MethodRestart, daemon.HookParams{Name: args[0]}, nil); err != nil {
				return err
			}
			fmt.Fprintf(a.out, "%s is ready\n", args[0])
			return nil
		},
	}
	p.flags(cmd, true)
	return cmd
}
