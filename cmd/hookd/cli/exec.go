package cli

import (
	"github.com/spf13/cobra"
)

// execCommand is how hookd starts a hook process: a copy of hookd limits itself
// and becomes the hook. That has happened in [Main] before any command is
// looked at, so here are only people who have typed it.
func (a *app) execCommand() *cobra.Command {
	return &cobra.Command{
		Use: "__exec", Short: "Become a hook process", Hidden: true, DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usage(cmd, "this is how hookd starts hooks; it is of no other use")
		},
	}
}
