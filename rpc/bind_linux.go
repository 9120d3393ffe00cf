package rpc

import (
	"context"
	"net"
	"os"
	"syscall"
)

// bind makes a socket that has its mode from birth: on Linux the file gets the
// mode of the descriptor, less the umask.
func bind(path string, mode os.FileMode) (*net.UnixListener, error) {
	c := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var chmodErr error
		err := raw.Control(func(fd uintptr) { chmodErr = syscall.Fchmod(int(fd), uint32(mode)) })
		if err != nil {
			return err
		}
		return chmodErr
	}}
	l, err := c.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	return l.(*net.UnixListener), nil
}
