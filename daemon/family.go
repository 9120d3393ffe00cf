package daemon

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// ancestors is how far up a process's family is looked at.
const ancestors = 64

// notAHook refuses a process that a hook has started, by the hook's name.
func (d *daemon) notAHook(pid int) error {
	hooks := d.hookPIDs()
	if len(hooks) == 0 {
		return nil
	}
	refuse := func(pid int) error {
		if name, ok := hooks[pid]; ok {
			return fmt.Errorf("hook %q, or a process that it started, may not ask hookd: it would be asked itself", name)
		}
		return nil
	}
	// A hook leads a process group of its own, which its processes stay in also
	// when their parent is gone.
	if group, err := unix.Getpgid(pid); err == nil {
		if err := refuse(group); err != nil {
			return err
		}
	}
	for range ancestors {
		if pid <= 1 {
			return nil
		}
		if err := refuse(pid); err != nil {
			return err
		}
		pid = parentOf(pid)
	}
	return nil
}
