package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/hookd/hookd/config"
	"github.com/hookd/hookd/daemon"
	"github.com/hookd/hookd/rpc"
)

func (a *app) serveCommand() *cobra.Command {
	var o daemon.Options
	var stdio bool
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the daemon",
		Long: `Runs the daemon until SIGTERM or SIGINT; a second signal ends it at once.
SIGHUP and changes of the config file reload the config.

The config is the file of --config, else $HOOKD_CONFIG, else
$XDG_CONFIG_HOME/hookd/config.json (~/.config/hookd/config.json), else
/etc/hookd/config.json. Without any, hookd serves with its defaults and logs
events to standard error.

systemd, and what speaks like it, is told when every required hook has greeted,
and may hand over the sockets, named agents and control.`,
		Example: `  hookd serve --config config.json
  hookd serve --socket /tmp/h/hookd.sock   # the control socket goes beside it
  hookd serve --stdio                      # as the child of an agent`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			path, err := config.Find(o.ConfigPath, a.getenv)
			if err != nil {
				return hint(err, "Name an existing file, or leave --config and $HOOKD_CONFIG out to serve with defaults.")
			}
			o.ConfigPath = path
			o.Helper, o.Alone = a.helper, true
			o.Version, o.Builtins, o.Stderr, o.Getenv = version(), a.builtins, a.err, a.getenv
			if stdio {
				o.Stdio = rpc.Stdio(os.Stdin, os.Stdout)
			}
			return serve(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.ConfigPath, "config", "", "config file")
	f.StringVar(&o.Socket, "socket", "", "socket for agents (default $HOOKD_SOCKET, or the config's, or in the runtime folder)")
	f.StringVar(&o.ControlSocket, "control-socket", "", "socket for status and control (default $HOOKD_CONTROL_SOCKET, or beside the other)")
	f.BoolVar(&stdio, "stdio", false, "serve an agent on standard input and output too, and end when it does")
	return cmd
}

// serve runs a daemon under the signals of a process.
func serve(ctx context.Context, o daemon.Options) error {
	// A closed stderr must not kill the daemon. Ignoring the signal would be
	// inherited by every hook.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	reload := make(chan os.Signal, 1) // one slot: a hundred signals are one reload
	signal.Notify(reload, syscall.SIGHUP)
	defer signal.Stop(reload)
	ends := make(chan os.Signal, 2)
	signal.Notify(ends, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(ends)

	ctx, cancel := context.WithCancelCause(ctx)
	hurry := make(chan struct{})
	done := make(chan struct{})
	watched := make(chan struct{})
	go func() { // ends with the daemon
		defer close(watched)
		for first := true; ; first = false {
			select {
			case s := <-ends:
				if !first {
					close(hurry)
					return
				}
				cancel(fmt.Errorf("signal: %s", s))
			case <-done:
				return
			}
		}
	}()
	o.Reload, o.Hurry = reload, hurry
	err := daemon.Run(ctx, o)
	close(done)
	<-watched
	cancel(nil)
	if errors.Is(err, rpc.ErrAlreadyRunning) {
		return hint(err, "Look at it with hookd status, or serve at another place with --socket.")
	}
	return err
}
