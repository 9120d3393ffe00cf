package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookd/hookd/client"
	"github.com/hookd/hookd/daemon"
)

func (a *app) pingCommand() *cobra.Command {
	var p places
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "ping",
		Short: "Find out whether the daemon does its work, for health checks",
		Long: `Greets the daemon over the socket for agents, as an agent does, and asks for its
status over the control socket. The exit code is 0 when both answered in time
and every required hook has greeted, else 1.

No hook is asked anything: a hook that hangs is the business of its fail policy
and of hookd status, and no reason to start hookd anew.`,
		Example: `  hookd ping
  hookd ping --timeout 1s || echo 'not healthy'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeoutCause(cmd.Context(), timeout, fmt.Errorf("not within %s", timeout))
			defer cancel()
			sockets := daemon.Sockets{Agents: client.SocketPath(p.socket, a.getenv)}
			sockets.Control = client.ControlSocketPath(p.control, sockets.Agents, a.getenv)
			s, err := daemon.Ping(ctx, sockets)
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
				return hint(fmt.Errorf("no hookd answers: %w", err), "Start one with hookd serve, or name another place with --socket.")
			}
			if err != nil {
				return err
			}
			if !s.Ready {
				return hint(errors.New("not ready: a required hook is not there"), "See which and why with hookd status.")
			}
			_, err = fmt.Fprintf(a.out, "ok: hookd %s, pid %d, generation %d, %d hooks\n", s.Version, s.PID, s.Generation, len(s.Hooks))
			return err
		},
	}
	p.flags(cmd, true)
	cmd.Flags().DurationVar(&timeout, "timeout", 3*time.Second, "how long the daemon may take")
	return cmd
}
