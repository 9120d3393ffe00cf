package rpc

import "golang.org/x/sys/unix"

func socketCreds(fd int) (Creds, error) {
	c, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return Creds{}, err
	}
	creds := Creds{UID: int(c.Uid), GID: int(c.Groups[0])}
	// The process is only for display; an old system does not tell it.
	creds.PID, _ = unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID)
	return creds, nil
}
