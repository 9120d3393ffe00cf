package rpc

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// hungUp reports whether the other side has closed its end for reading too. An
// end of file alone does not tell. A stream without a descriptor has no half.
func hungUp(raw syscall.RawConn) bool {
	if raw == nil {
		return true
	}
	gone := true
	err := raw.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd)}}
		_, err := unix.Poll(fds, 0)
		gone = err != nil && err != unix.EINTR || fds[0].Revents != 0
	})
	return err != nil || gone
}
