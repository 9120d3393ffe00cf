//go:build !linux

package daemon

import (
	"bytes"
	"encoding/binary"
	"time"

	"golang.org/x/sys/unix"
)

// commandOf returns the command of a process, or nil when it is not known.
func commandOf(pid int) []string {
	// The number of arguments, the program's path, zeros, then the arguments.
	raw, err := unix.SysctlRaw("kern.procargs2", pid)
	if err != nil || len(raw) < 4 {
		return nil
	}
	n := int(binary.NativeEndian.Uint32(raw))
	_, rest, found := bytes.Cut(raw[4:], []byte{0})
	if !found {
		return nil
	}
	var argv []string
	for _, arg := range bytes.Split(bytes.TrimLeft(rest, "\x00"), []byte{0}) {
		if len(argv) == n {
			break
		}
		argv = append(argv, string(arg))
	}
	return argv
}

// slept is for how long the machine has been asleep since it was started.
func slept() time.Duration {
	var awake, all unix.Timespec
	if unix.ClockGettime(unix.CLOCK_UPTIME_RAW, &awake) != nil || unix.ClockGettime(unix.CLOCK_MONOTONIC, &all) != nil {
		return 0
	}
	return time.Duration(all.Nano() - awake.Nano())
}
