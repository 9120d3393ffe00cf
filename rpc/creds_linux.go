package rpc

import "golang.org/x/sys/unix"

func socketCreds(fd int) (Creds, error) {
	c, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return Creds{}, err
	}
	return Creds{PID: int(c.Pid), UID: int(c.Uid), GID: int(c.Gid)}, nil
}
