package child

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownGroup also makes the kernel kill the child when hookd dies, however it
// does.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// growPipe asks for a larger pipe. The kernel may refuse when this user has
// many; the usual size works too.
func growPipe(file *os.File) {
	if raw, err := file.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeSize) })
	}
}

// preferForOOM asks the kernel to sacrifice the child rather than hookd when
// memory runs out. Nothing depends on it.
func preferForOOM(pid int) {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte("500"), 0)
}

// waitExit returns when the child has ended and leaves it a zombie, so that its
// process id stays taken.
func waitExit(pid int) {
	for unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
}

// groupRuns reports whether a process of the group runs. Zombies don't count.
// If that can't be found out it says yes, and the caller's time limit decides.
func groupRuns(pgid int) bool {
	proc, err := os.Open("/proc")
	if err != nil {
		return true
	}
	defer proc.Close()
	names, err := proc.Readdirnames(-1)
	if err != nil {
		return true
	}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if group, err := unix.Getpgid(pid); err != nil || group != pgid {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue // it ended meanwhile
		}
		// "PID (name) STATE …", where the name may hold anything.
		after := stat[bytes.LastIndexByte(stat, ')')+1:]
		if state := bytes.TrimSpace(after); len(state) > 0 && state[0] != 'Z' && state[0] != 'X' {
			return true
		}
	}
	return false
}
