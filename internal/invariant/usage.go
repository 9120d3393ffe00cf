package invariant

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
)

// Usage is what faults must not use up (I5), of one process.
type Usage struct {
	// Goroutines are those that [Goroutines] counts.
	Goroutines int
	// Files are open descriptors. Children are its processes that have not been
	// waited for, Zombies those among them that have ended.
	Files, Children, Zombies int
	// Memory is resident, in bytes; 0 where there is no /proc.
	Memory int64
}

// Counts reports whether there is a /proc to count children in.
const Counts = runtime.GOOS == "linux"

// Own returns the usage of this process.
func Own() (Usage, error) {
	u := Usage{Goroutines: Goroutines()}
	files, err := os.ReadDir("/dev/fd")
	if err != nil {
		return u, fmt.Errorf("count descriptors: %w", err)
	}
	u.Files = len(files)
	u.Children, u.Zombies = children(os.Getpid())
	u.Memory = Memory(os.Getpid())
	return u, nil
}

// Slack is by how much a usage may exceed another one.
func Slack() Usage { return Usage{Goroutines: 5, Files: 3, Memory: 32 << 20} }

// Beyond names what is more in u than before, by more than slack.
func (u Usage) Beyond(before, slack Usage) (what []string) {
	for _, c := range []struct {
		name             string
		is, was, allowed int64
	}{
		{"goroutines", int64(u.Goroutines), int64(before.Goroutines), int64(slack.Goroutines)},
		{"descriptors", int64(u.Files), int64(before.Files), int64(slack.Files)},
		{"children", int64(u.Children), int64(before.Children), int64(slack.Children)},
		{"zombies", int64(u.Zombies), int64(before.Zombies), int64(slack.Zombies)},
		{"bytes of memory", u.Memory, before.Memory, slack.Memory},
	} {
		if c.is > c.was+c.allowed {
			what = append(what, fmt.Sprintf("I5: %d %s, and %d before", c.is, c.name, c.was))
		}
	}
	return what
}

// Goroutines counts those of this process, but for hookd's workers that wait
// for a request: how many of them are kept is a matter of load.
func Goroutines() (n int) {
	var stacks strings.Builder
	if err := pprof.Lookup("goroutine").WriteTo(&stacks, 1); err != nil {
		return runtime.NumGoroutine()
	}
	for block := range strings.SplitSeq(stacks.String(), "\n\n") {
		count, stack, _ := strings.Cut(block, " @ ")
		_, at, _ := strings.Cut(stack, "#\t")
		leaf, _, _ := strings.Cut(at, "\n")
		if !strings.Contains(leaf, "rpc.(*workers).work+") {
			some, _ := strconv.Atoi(count[strings.LastIndexByte(count, '\n')+1:])
			n += some
		}
	}
	return n
}

// children counts the processes of a parent.
func children(parent int) (all, zombies int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// "PID (name) STATE PARENT …", where the name may hold anything.
		f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(f) < 2 || string(f[1]) != strconv.Itoa(parent) {
			continue
		}
		all++
		if f[0][0] == 'Z' {
			zombies++
		}
	}
	return all, zombies
}

// Memory is how much of a process is resident, in bytes; 0 when it is gone, or
// where there is no /proc.
func Memory(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, "VmRSS:"); found {
			n, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
			return n << 10
		}
	}
	return 0
}
