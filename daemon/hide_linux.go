package daemon

import "golang.org/x/sys/unix"

// hideMemory keeps other processes of the same user from reading hookd's memory
// and environment and from tracing it, or lets them. hookd itself still reads
// what it needs of /proc.
func hideMemory(hide bool) error {
	dumpable := uintptr(1)
	if hide {
		dumpable = 0
	}
	return unix.Prctl(unix.PR_SET_DUMPABLE, dumpable, 0, 0, 0)
}
