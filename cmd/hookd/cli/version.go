package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/hookd/hookd/protocol"
)

func (a *app) versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				v, err := protocol.Marshal(map[string]any{"version": version(), "protocol": protocol.Version, "go": runtime.Version()})
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(a.out, "%s\n", v)
				return err
			}
			_, err := fmt.Fprintf(a.out, "hookd %s (protocol %d, %s)\n", version(), protocol.Version, runtime.Version())
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
