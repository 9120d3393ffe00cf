package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hookd/hookd/daemon"
)

func (a *app) reloadCommand() *cobra.Command {
	var p places
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "Read the config again and, when it is good, use it",
		Long: `Reads the config again, starts and greets new and changed hooks, and only then
switches over. When anything is wrong nothing changes, the reason is printed,
and the exit code is 1. Hooks that did not change keep their process, unless
their program or script changed on disk.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var res daemon.ReloadResult
			if err := a.control(cmd.Context(), p, daemon.MethodReload, nil, &res); err != nil {
				if refused, ok := errors.AsType[*refusedError](err); ok {
					return hint(fmt.Errorf("reload refused, the last good config stays:\n%s", indent(refused.text)), "Check the file with hookd check.")
				}
				return err
			}
			a.printReload(&res)
			return nil
		},
	}
	p.flags(cmd, true)
	return cmd
}

func (a *app) printReload(res *daemon.ReloadResult) {
	if !res.Changed {
		fmt.Fprintf(a.out, "nothing changed, generation %d\n", res.Generation)
		return
	}
	fmt.Fprintf(a.out, "generation %d", res.Generation)
	for _, part := range []struct {
		what  string
		names []string
	}{{"started", res.Started}, {"kept", res.Kept}, {"stopped", res.Stopped}} {
		if len(part.names) > 0 {
			fmt.Fprintf(a.out, ", %s %s", part.what, strings.Join(part.names, " "))
		}
	}
	fmt.Fprintln(a.out)
	for _, w := range res.Warnings {
		fmt.Fprintln(a.err, "warning: "+w)
	}
}
