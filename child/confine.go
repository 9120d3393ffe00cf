package child

import (
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// What a child may have at most.
const (
	maxOpenFiles = 1024
	maxFileSize  = 1 << 30 // bytes of a file that it writes
	oomScoreAdj  = 500     // the kernel kills it before hookd when memory runs out
	nice         = 10      // of a child that nobody waits for
)

// measure is one thing that the helper does to itself.
type measure struct {
	name string
	take func() error
}

// confine takes all measures. It runs in the helper, on the thread that stays.
// What can't be had is noted; an error is for what must not be gone without.
func confine(e *errand) (*Confinement, error) {
	c := &Confinement{Active: []string{}, Missing: []string{}}
	all := append(measures(), systemMeasures(e)...)
	if e.Background {
		all = append(all, measure{"nice=" + strconv.Itoa(nice), func() error { return unix.Setpriority(unix.PRIO_PROCESS, 0, nice) }})
	}
	for _, m := range all {
		if err := m.take(); err != nil {
			c.Missing = append(c.Missing, m.name+": "+err.Error())
			continue
		}
		c.Active = append(c.Active, m.name)
	}
	if e.Fence == nil {
		return c, nil
	}
	active, missing, err := e.Fence.enclose()
	c.Active, c.Missing = append(c.Active, active...), append(c.Missing, missing...)
	return c, err
}

// measures are those that every child gets on every system. The priority is not
// among them: an agent waits for most hooks, and on a busy machine those with a
// lower one would be the first to be late.
func measures() []measure {
	return []measure{
		{"close_fds", closeOnExec},
		{"umask=077", func() error { unix.Umask(0o077); return nil }},
		{"core=0", func() error { return lower(unix.RLIMIT_CORE, 0) }},
		{"nofile=" + strconv.Itoa(maxOpenFiles), func() error { return lower(unix.RLIMIT_NOFILE, maxOpenFiles) }},
		{"fsize=1GiB", func() error { return lower(unix.RLIMIT_FSIZE, maxFileSize) }},
	}
}

// lower lowers a limit for good. One that is lower already stays.
func lower(resource int, most uint64) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(resource, &limit); err != nil {
		return err
	}
	limit.Max = min(limit.Max, most)
	limit.Cur = min(limit.Cur, limit.Max)
	// The function of package syscall also makes the runtime forget the limit
	// that it would set again before it executes another program.
	return syscall.Setrlimit(resource, &limit)
}

// closeEach makes every open file close when the program is executed.
func closeEach() error {
	files, err := os.ReadDir("/dev/fd")
	if err != nil {
		return err
	}
	for _, file := range files {
		if fd, err := strconv.Atoi(file.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd) // one is that of the folder, which is closed by now
		}
	}
	return nil
}

// fence is a sandbox as the helper needs it.
type fence struct {
	Read   []string `json:"read"`   // must be there
	Write  []string `json:"write"`  // must be there
	Common []string `json:"common"` // read when it is there
	// Network false allows none.
	Network bool `json:"network"`
}
