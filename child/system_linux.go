package child

import (
	"bytes"
	"fmt"
	"os"
	"slices"
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
	pids, err := processes()
	return err != nil || slices.ContainsFunc(pids, func(pid int) bool {
		if group, err := unix.Getpgid(pid); err != nil || group != pgid {
			return false
		}
		state, _ := stat(pid)
		return state != "" && state != "Z" && state != "X"
	})
}

// zombies returns the processes that have ended and that hookd may wait for.
func zombies() []int {
	// One call tells that there is none, which is nearly always so.
	var any unix.Siginfo
	if err := unix.Waitid(unix.P_ALL, 0, &any, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil); err != nil || any.Signo == 0 {
		return nil
	}
	pids, _ := processes() // without /proc none is found
	return slices.DeleteFunc(pids, func(pid int) bool {
		state, parent := stat(pid)
		return state != "Z" || parent != os.Getpid()
	})
}

func processes() (pids []int, err error) {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer proc.Close()
	names, err := proc.Readdirnames(-1)
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, err
}

// stat returns the state and the parent of a process; "" when it is gone.
func stat(pid int) (state string, parent int) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", 0
	}
	// "PID (name) STATE PARENT …", where the name may hold anything.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 2 {
		return "", 0
	}
	parent, err = strconv.Atoi(string(fields[1]))
	if err != nil {
		return "", 0
	}
	return string(fields[0]), parent
}
