//go:build !linux

package thin

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

var processStart = time.Now()

func nowMS() int64 { return time.Since(processStart).Milliseconds() }

func readable(fd int, waitMS int64) bool {
	for {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, int(waitMS))
		if err == syscall.EINTR {
			continue
		}
		return n > 0 || err != nil
	}
}

func peerUID(fd int) (int, error) {
	cred, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return -1, err
	}
	return int(cred.Uid), nil
}

func openBothWays(fd int) bool {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	return err == nil && flags&unix.O_ACCMODE == unix.O_RDWR
}

func sleepMS(ms int64) { time.Sleep(time.Duration(ms) * time.Millisecond) }

// Args returns the command line without the program.
func Args() []string { return os.Args[1:] }

func self() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	return path
}
