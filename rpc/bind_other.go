//go:build !linux

package rpc

import (
	"net"
	"os"
	"sync"
	"syscall"
)

var umaskMu sync.Mutex

// bind makes a socket that has its mode from birth. The umask is that of the
// whole process, so it is changed only for this moment.
func bind(path string, mode os.FileMode) (*net.UnixListener, error) {
	umaskMu.Lock()
	defer umaskMu.Unlock()
	defer syscall.Umask(syscall.Umask(int(0o777 &^ mode)))
	return net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
}
