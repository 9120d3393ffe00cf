package daemon

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// forgetStart takes the pages of the program's file out of this process's memory.
// The start has gone through most of them once, to prepare libraries of which an
// idle daemon needs little; what is needed again comes back from the page cache at
// the first touch. A part of the file of which this process has changed something,
// such as by relocation or a breakpoint, is left as it is. What can't be found out
// is left too: nothing depends on it.
func forgetStart() {
	path, err := os.Executable()
	if err != nil {
		return
	}
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return
	}
	for _, m := range unchanged(maps, path) {
		_ = unix.Madvise(m, unix.MADV_DONTNEED)
	}
}

// unchanged finds, in what /proc says of this process's memory, where it holds a
// file that it can't write to and has not written to.
func unchanged(smaps []byte, path string) (parts [][]byte) {
	var part []byte
	for lines := bufio.NewScanner(bytes.NewReader(smaps)); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) < 2 {
			continue
		}
		if len(words) >= 6 && strings.HasPrefix(words[1], "r") { // from-to rights offset device inode path
			part = nil
			if !strings.Contains(words[1], "w") && strings.HasSuffix(lines.Text(), " "+path) {
				part = memoryAt(words[0])
			}
		}
		switch {
		case part == nil:
		case words[0] == "Anonymous:" && words[1] != "0": // changed, and in memory
			part = nil
		case words[0] == "Swap:": // comes later
			if words[1] == "0" { // else changed, and written away
				parts = append(parts, part)
			}
			part = nil
		}
	}
	return parts
}

// memoryAt is what lies at addresses as /proc names them; nil when it does not.
func memoryAt(addresses string) []byte {
	low, high, _ := strings.Cut(addresses, "-")
	from, err := strconv.ParseUint(low, 16, 64)
	to, err2 := strconv.ParseUint(high, 16, 64)
	if err != nil || err2 != nil || from >= to {
		return nil
	}
	// The address is that of the program itself, which does not move.
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&from)), to-from)
}
