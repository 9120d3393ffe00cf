package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookd/hookd/client"
	"github.com/hookd/hookd/daemon"
	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/rpc"
)

// dialTimeout is how long a command tries to reach the daemon.
const dialTimeout = 5 * time.Second

// places are the flags that say which daemon is meant.
type places struct{ socket, control string }

func (p *places) flags(cmd *cobra.Command, control bool) {
	cmd.Flags().StringVar(&p.socket, "socket", "", "the daemon's socket for agents (default $HOOKD_SOCKET, or where hookd serve puts it)")
	if control {
		cmd.Flags().StringVar(&p.control, "control-socket", "", "the daemon's control socket (default $HOOKD_CONTROL_SOCKET, or beside the other)")
	}
}

// dialControl connects to the control socket. The caller closes the peer.
func (a *app) dialControl(ctx context.Context, p places, h rpc.Handler) (*rpc.Peer, error) {
	return dial(ctx, client.ControlSocketPath(p.control, client.SocketPath(p.socket, a.getenv), a.getenv), h)
}

// dialAgents connects to the socket for agents. The caller closes the peer.
func (a *app) dialAgents(ctx context.Context, p places) (*rpc.Peer, error) {
	return dial(ctx, client.SocketPath(p.socket, a.getenv), nil)
}

func dial(ctx context.Context, path string, h rpc.Handler) (*rpc.Peer, error) {
	conn, err := dialSocket(ctx, path)
	if err != nil {
		return nil, err
	}
	return rpc.NewPeer(ctx, conn, rpc.Options{Handler: h}), nil
}

// dialSocket connects to a daemon and makes sure that it is one's own.
func dialSocket(ctx context.Context, path string) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTimeout}
	conn, err := d.DialContext(ctx, "unix", path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, hint(fmt.Errorf("no hookd answers at %s", path), "Start one with hookd serve, or name another place with --socket.")
	}
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	creds, err := rpc.PeerCreds(conn)
	if err == nil && creds.UID != os.Geteuid() && creds.UID != 0 {
		err = fmt.Errorf("the daemon at %s belongs to user %d", path, creds.UID)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// control makes one call of the control socket and reads its result into out.
func (a *app) control(ctx context.Context, p places, method string, params, out any) error {
	peer, err := a.dialControl(ctx, p, nil)
	if err != nil {
		return err
	}
	defer peer.Close()
	return callPeer(ctx, peer, method, params, out)
}

func callPeer(ctx context.Context, peer *rpc.Peer, method string, params, out any) error {
	var raw []byte
	if params != nil {
		var err error
		if raw, err = protocol.Marshal(params); err != nil {
			return err
		}
	}
	result, err := peer.Call(ctx, method, raw)
	if err != nil {
		if e, ok := errors.AsType[*protocol.Error](err); ok {
			return &refusedError{e.Message}
		}
		return fmt.Errorf("%s: %w", method, err)
	}
	if out == nil {
		return nil
	}
	if err := protocol.Unmarshal(result, out); err != nil {
		return fmt.Errorf("%s: unreadable answer: %w", method, err)
	}
	return nil
}

// refusedError is what the daemon answered to a call that it did not serve. The
// code is for programs.
type refusedError struct{ text string }

func (e *refusedError) Error() string { return e.text }

// completeHooks offers the names of the daemon's hooks to the shell.
func (a *app) completeHooks(p *places) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var s daemon.Status
		if len(args) > 0 || a.control(cmd.Context(), *p, daemon.MethodStatus, nil, &s) != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []cobra.Completion
		for _, h := range s.Hooks {
			names = append(names, cobra.CompletionWithDesc(h.Name, h.State))
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
