package daemon

import "fmt"

// ancestors is how far up a process's family is looked at.
const ancestors = 64

// notAHook refuses a process that a hook has started, by the hook's name.
func (d *daemon) notAHook(pid int) error {
	hooks := d.hookPIDs()
	if len(hooks) == 0 {
		return nil
	}
	for range ancestors {
		if pid <= 1 {
			return nil
		}
		if name, ok := hooks[pid]; ok {
			return fmt.Errorf("hook %q, or a process that it started, may not ask hookd: it would be asked itself", name)
		}
		pid = parentOf(pid)
	}
	return nil
}
