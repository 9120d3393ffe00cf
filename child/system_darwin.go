package child

import (
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// zombie is SZOMB of sys/proc.h.
const zombie = 5

// ownGroup can't tie the child's life to hookd's here: a child sees the end of
// its stdin instead.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// growPipe has nothing to do: pipes grow on demand.
func growPipe(*os.File) {}

// preferForOOM has no counterpart here.
func preferForOOM(int) error { return nil }

// waitExit returns when the child has ended and leaves it a zombie, so that its
// process id stays taken. The kernel queue only wakes it: when that is not to
// be had, it looks every 20 ms.
func waitExit(pid int) {
	queue, err := unix.Kqueue()
	if err == nil {
		defer unix.Close(queue)
	}
	watch := make([]unix.Kevent_t, 1)
	unix.SetKevent(&watch[0], pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	watch[0].Fflags = unix.NOTE_EXIT
	for {
		info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
		if err != nil || info.Proc.P_stat == zombie {
			return
		}
		if _, err := unix.Kevent(queue, watch, make([]unix.Kevent_t, 1), &unix.Timespec{Sec: 1}); err != nil {
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// groupRuns reports whether a process of the group runs. Zombies don't count.
// If that can't be found out it says yes, and the caller's time limit decides.
func groupRuns(pgid int) bool {
	group, err := unix.SysctlKinfoProcSlice("kern.proc.pgrp", pgid)
	return err != nil || slices.ContainsFunc(group, func(info unix.KinfoProc) bool { return info.Proc.P_stat != zombie })
}

// adopt: only launchd inherits orphans here.
func adopt(bool) bool { return false }

func offspring(bool) []kin { return nil }

func hookOf(int) string { return "" }

func startOf(int) uint64 { return 0 }
