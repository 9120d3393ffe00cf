package bench

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// UseOneCore keeps this process, and those that it starts from now on, on one
// core until back is called. On several, the kernel's choice which core to wake
// costs more than what is measured, and is another one each time. Where the
// system can't do that, nothing changes.
func UseOneCore() (back func() error, err error) {
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return nil, fmt.Errorf("ask for the cores: %w", err)
	}
	for core := range len(all) * strconv.IntSize {
		if all.IsSet(core) { // the last one, as the first has most interrupts
			one.Zero()
			one.Set(core)
		}
	}
	processors := runtime.GOMAXPROCS(1)
	return func() error {
		runtime.GOMAXPROCS(processors)
		return setCores(&all)
	}, setCores(&one)
}

// setCores is about each thread. It looks twice, because a thread that it has
// not seen yet may start one.
func setCores(set *unix.CPUSet) error {
	for range 2 {
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return fmt.Errorf("choose a core: %w", err)
		}
		for _, thread := range threads {
			id, err := strconv.Atoi(thread.Name())
			if err == nil {
				err = unix.SchedSetaffinity(id, set)
			}
			if err != nil && !errors.Is(err, unix.ESRCH) { // it has ended
				return fmt.Errorf("choose a core: %w", err)
			}
		}
	}
	return nil
}
