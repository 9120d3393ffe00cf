package cli

import (
	"context"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/hookd/hookd/cmd/hookd/demo"
	"github.com/hookd/hookd/daemon"
)

func (a *app) demoCommand() *cobra.Command {
	var keep bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See hookd at work in a few seconds, without any setup",
		Long: `Starts a daemon with example hooks in a temporary folder, lets a scripted agent
with real tools ask it, kills a hook, edits the config, and says what happens.
Nothing outside of that folder is touched, and nothing stays.

It wants a POSIX shell. python3 and node are used where they are installed.`,
		Example: `  hookd demo
  hookd demo --keep    # leave the folder: config, hooks, log`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// Also a reader who goes away, as in "hookd demo | head", must not leave
			// the folder behind.
			signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return demo.Run(ctx, demo.Options{
				Out:   a.out,
				Paint: func(colour, text string) string { return a.paint(a.out, colour, text) },
				Status: func(ctx context.Context, controlSocket string) (*daemon.Status, error) {
					s := &daemon.Status{}
					return s, a.control(ctx, places{control: controlSocket}, daemon.MethodStatus, nil, s)
				},
				Program: typed(), Version: version(), Keep: keep,
			})
		},
	}
	cmd.Flags().BoolVar(&keep, "keep", false, "leave the folder, and say where it is")
	return cmd
}

// typed is what a person types to run this program, as far as can be seen.
func typed() string {
	if strings.Contains(os.Args[0], "/go-build") {
		return "go run ./cmd/hookd"
	}
	return os.Args[0]
}
