package thin

import (
	"syscall"
	"unsafe"
)

// nowMS is a clock that nobody sets.
func nowMS() int64 {
	const monotonic = 1
	var ts syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, monotonic, uintptr(unsafe.Pointer(&ts)), 0)
	return ts.Nano() / 1_000_000
}

// readable waits until fd has something, or its end, to be read.
func readable(fd int, waitMS int64) bool {
	deadline := nowMS() + waitMS
	for {
		var set syscall.FdSet
		set.Bits[fd/64] |= 1 << (uint(fd) % 64)
		tv := syscall.NsecToTimeval(max(deadline-nowMS(), 0) * 1_000_000)
		n, err := syscall.Select(fd+1, &set, nil, nil, &tv)
		if err == syscall.EINTR {
			continue
		}
		// What can't be waited for can be read.
		return n > 0 || err != nil
	}
}

func peerUID(fd int) (int, error) {
	cred, err := syscall.GetsockoptUcred(fd, syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	if err != nil {
		return -1, err
	}
	return int(cred.Uid), nil
}

// openBothWays reports whether fd can be read and written.
func openBothWays(fd int) bool {
	flags, _, failed := syscall.RawSyscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_GETFL, 0)
	return failed == 0 && flags&syscall.O_ACCMODE == syscall.O_RDWR
}

// sleepMS waits a little.
func sleepMS(ms int64) {
	ts := syscall.NsecToTimespec(ms * 1_000_000)
	_ = syscall.Nanosleep(&ts, nil) // cut short: the caller looks at the clock
}

// Args returns the command line without the program. Package os knows it too,
// for a price.
func Args() []string {
	fd, err := syscall.Open("/proc/self/cmdline", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer syscall.Close(fd)
	buf := make([]byte, 0, 4<<10)
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, make([]byte, len(buf))...)[:len(buf)]
		}
		n, err := syscall.Read(fd, buf[len(buf):cap(buf)])
		if err == syscall.EINTR {
			continue
		}
		if n <= 0 {
			break
		}
		buf = buf[:len(buf)+n]
	}
	var args []string
	for len(buf) > 0 {
		end := 0
		for end < len(buf) && buf[end] != 0 {
			end++
		}
		args = append(args, string(buf[:end]))
		buf = buf[min(end+1, len(buf)):]
	}
	if len(args) == 0 {
		return nil
	}
	return args[1:]
}

// self is the path of the running program.
func self() string {
	buf := make([]byte, 4<<10)
	n, err := syscall.Readlink("/proc/self/exe", buf)
	if err != nil {
		return ""
	}
	return string(buf[:n])
}
