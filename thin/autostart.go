package thin

import "syscall"

// start starts a daemon and waits until it listens at path. When several
// agents find no daemon at once, one of them starts it and the rest wait.
func start(o *Options, path string, deadline int64, getenv func(string) string) Failure {
	dir, _ := split(path)
	if err := syscall.Mkdir(dir, 0o700); err != nil && err != syscall.EEXIST {
		// Its parents may be missing too; the daemon makes them.
		return startAndWait(o, path, deadline, getenv)
	}
	lock, err := syscall.Open(dir+"/autostart.lock", syscall.O_CREAT|syscall.O_RDWR|syscall.O_CLOEXEC|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return Failure("start the daemon: lock: " + err.Error())
	}
	defer syscall.Close(lock) // and with it the lock
	for {
		err := syscall.Flock(lock, syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			break
		}
		if nowMS() >= deadline {
			return "another client starts the daemon and did not finish in time"
		}
		sleepMS(10)
	}
	if c, failure := dial(path, deadline); failure == "" {
		c.close() // somebody was faster
		return ""
	}
	return startAndWait(o, path, deadline, getenv)
}

func startAndWait(o *Options, path string, deadline int64, getenv func(string) string) Failure {
	program := findHookd(o.Hookd, getenv)
	if program == "" {
		return "start the daemon: no hookd beside this program or in PATH"
	}
	argv := []string{program, "serve"}
	if o.Socket != "" {
		argv = append(argv, "--socket", o.Socket)
	}
	null, err := syscall.Open("/dev/null", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		return Failure("start the daemon: " + err.Error())
	}
	defer syscall.Close(null)
	fd := uintptr(null)
	// In a session of its own: it outlives the agent, and its terminal.
	pid, err := syscall.ForkExec(program, argv, &syscall.ProcAttr{
		Dir: "/", Env: syscall.Environ(), Files: []uintptr{fd, fd, fd}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return Failure("start the daemon: " + program + ": " + err.Error())
	}
	for {
		if c, failure := dial(path, deadline); failure == "" {
			c.close()
			return ""
		}
		var status syscall.WaitStatus
		if done, _ := syscall.Wait4(pid, &status, syscall.WNOHANG, nil); done == pid {
			return "the daemon was started and ended at once: see why with: hookd serve"
		}
		if nowMS() >= deadline-minDeadlineMS-marginMS {
			return "the daemon was started and does not listen yet"
		}
		sleepMS(5)
	}
}

func findHookd(named string, getenv func(string) string) string {
	if named != "" {
		return named
	}
	dir, _ := split(self())
	if program := dir + "/hookd"; executable(program) {
		return program
	}
	path := getenv("PATH")
	for len(path) > 0 {
		end := 0
		for end < len(path) && path[end] != ':' {
			end++
		}
		// A relative entry would let the agent's folder choose the daemon.
		if program := path[:end] + "/hookd"; program[0] == '/' && executable(program) {
			return program
		}
		path = path[min(end+1, len(path)):]
	}
	return ""
}

func executable(path string) bool {
	var st syscall.Stat_t
	return syscall.Stat(path, &st) == nil && st.Mode&syscall.S_IFMT == syscall.S_IFREG && st.Mode&0o111 != 0
}

// split cuts a path at its last slash.
func split(path string) (dir, name string) {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '/' {
			return path[:i], path[i+1:]
		}
	}
	return ".", path
}
