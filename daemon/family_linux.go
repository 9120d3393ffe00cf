package daemon

import (
	"bytes"
	"os"
	"strconv"
)

// parentOf returns the parent of a process, or 0 when it is not known.
func parentOf(pid int) int {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	// The command may hold anything, also spaces and brackets; what follows its
	// last bracket is state and parent.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0
	}
	ppid, err := strconv.Atoi(string(fields[1]))
	if err != nil {
		return 0
	}
	return ppid
}
