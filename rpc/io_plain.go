//go:build !linux || race

package rpc

import "golang.org/x/sys/unix"

// readOnce is one read(2) of a descriptor that does not block. The race detector
// wants to see it.
func readOnce(fd int, b []byte) (int, error) { return unix.Read(fd, b) }

// writeOnce is one write(2) or writev(2) to a descriptor that does not block.
func writeOnce(fd int, parts [][]byte) (int, error) {
	if len(parts) == 1 {
		return unix.Write(fd, parts[0])
	}
	return unix.Writev(fd, parts)
}
