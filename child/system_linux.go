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
// memory runs out.
func preferForOOM(pid int) error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte(strconv.Itoa(oomScoreAdj)), 0)
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
		p, there := stat(pid)
		return there && !p.zombie
	})
}

// adopt makes hookd the parent of orphans among its descendants, or not, and
// reports whether that is so.
func adopt(on bool) bool {
	flag := uintptr(0)
	if on {
		flag = 1
	}
	return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, flag, 0, 0, 0) == nil
}

// offspring returns the children of hookd, those that it inherited too. The
// quick way may miss one when another ends at the same time.
func offspring(quick bool) (found []kin) {
	pids, err := []int(nil), os.ErrNotExist
	if quick {
		pids, err = childPIDs()
	}
	if err != nil { // or the kernel keeps no lists of children
		pids, _ = processes() // without /proc none is found
	}
	for _, pid := range pids {
		if p, there := stat(pid); there && p.parent == os.Getpid() {
			found = append(found, p)
		}
	}
	return found
}

// childPIDs reads the lists of children, one per thread.
func childPIDs() (pids []int, err error) {
	const tasks = "/proc/self/task"
	threads, err := numbersIn(tasks)
	lists := 0
	for _, thread := range threads {
		text, err := os.ReadFile(fmt.Sprintf("%s/%d/children", tasks, thread))
		if err != nil {
			continue // the thread has ended, and others have its children
		}
		lists++
		for word := range bytes.FieldsSeq(text) {
			if pid, err := strconv.Atoi(string(word)); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	if err == nil && lists == 0 {
		err = os.ErrNotExist
	}
	return pids, err
}

// hookOf returns the HOOKD_HOOK that a process was started with, or "".
func hookOf(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)) // another user's can't be read
	for variable := range bytes.SplitSeq(text, []byte{0}) {
		if name, ok := bytes.CutPrefix(variable, []byte("HOOKD_HOOK=")); ok {
			return string(name)
		}
	}
	return ""
}

// startOf returns when a process was started.
func startOf(pid int) uint64 {
	p, _ := stat(pid)
	return p.start
}

func processes() (pids []int, err error) { return numbersIn("/proc") }

// numbersIn returns the names in a folder that are numbers.
func numbersIn(path string) (numbers []int, err error) {
	folder, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	names, err := folder.Readdirnames(-1)
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil {
			numbers = append(numbers, n)
		}
	}
	return numbers, err
}

// stat describes a process, and reports whether it is there.
func stat(pid int) (kin, bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return kin{}, false
	}
	// "PID (name) STATE PARENT GROUP …", where the name may hold anything. The
	// start is the 22nd field of all.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 20 {
		return kin{}, false
	}
	number := func(i int) uint64 {
		n, _ := strconv.ParseUint(string(fields[i]), 10, 64) // the kernel writes numbers there
		return n
	}
	state := fields[0][0]
	return kin{pid, int(number(1)), int(number(2)), state == 'Z' || state == 'X', number(19)}, true
}
