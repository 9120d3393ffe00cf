package rpc

import (
	"errors"
	"fmt"
	"net"
)

// Creds are the identity of the process at the other end of a Unix socket
// when it connected, as the kernel says.
type Creds struct {
	// PID is 0 when the system does not tell it.
	PID int
	UID int
	GID int
}

// PeerCreds returns who is at the other end of a Unix socket. It is an error
// for any other connection.
func PeerCreds(c net.Conn) (Creds, error) {
	uc, ok := c.(*net.UnixConn)
	if !ok {
		return Creds{}, errors.New("read peer credentials: not a Unix socket")
	}
	raw, err := uc.SyscallConn()
	if err != nil {
		return Creds{}, fmt.Errorf("read peer credentials: %w", err)
	}
	var creds Creds
	var credsErr error
	err = raw.Control(func(fd uintptr) { creds, credsErr = socketCreds(int(fd)) })
	if err = errors.Join(err, credsErr); err != nil {
		return Creds{}, fmt.Errorf("read peer credentials: %w", err)
	}
	return creds, nil
}
