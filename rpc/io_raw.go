//go:build linux && !race

package rpc

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// A descriptor that never blocks is read and written without telling the
// scheduler: it would get ready for a long wait, and after a short pause of the
// process wake its monitor each time, which is a thread more to run than the call
// itself needs. A call that can't block is over before the scheduler could use
// what it was told.

// readOnce is one read(2) of a descriptor that does not block.
func readOnce(fd int, b []byte) (int, error) {
	n, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// writeOnce is one write(2) or writev(2) to a descriptor that does not block.
func writeOnce(fd int, parts [][]byte) (int, error) {
	if len(parts) == 1 {
		b := parts[0]
		n, _, errno := unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
		if errno != 0 {
			return 0, errno
		}
		return int(n), nil
	}
	return unix.Writev(fd, parts) // of a large message: there the call is the least
}
