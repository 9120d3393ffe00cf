package thin

import "syscall"

// Main is the program hookd-hook. It returns the exit status.
func Main() int {
	getenv := func(name string) string { value, _ := syscall.Getenv(name); return value }
	o, help, bad := Parse(Args())
	switch {
	case help:
		write(1, []byte(Usage))
		return 0
	case o.Version:
		write(1, []byte("hookd-hook "+version+"\n"))
		return 0
	case bad != "":
		// Exit status 1 means "go on" to most agents.
		write(2, []byte("hookd-hook: "+string(bad)+"\n"))
		return 2
	}
	a, why := Run(o, getenv)
	if why != nil && len(a.Stderr) == 0 {
		a.Stderr = []byte("hookd-hook: " + why.Error() + "\n")
	}
	return say(a, 1, 2)
}

// say writes an answer and returns the exit status.
func say(a Answer, stdout, stderr int) int {
	write(stderr, a.Stderr)
	if len(a.Stdout) > 0 && (closed(stdout) || !write(stdout, a.Stdout)) {
		write(stderr, []byte("hookd-hook: the answer can't be written to standard output\n"))
		return a.ExitUnsaid()
	}
	return a.Exit
}

// closed reports whether this program was started without a descriptor: the
// runtime puts /dev/null in its place, open for both ways, as no shell does.
func closed(fd int) bool {
	var is, null syscall.Stat_t
	return syscall.Fstat(fd, &is) == nil && is.Mode&syscall.S_IFMT == syscall.S_IFCHR &&
		syscall.Stat("/dev/null", &null) == nil && is.Rdev == null.Rdev && openBothWays(fd)
}

// write reports whether all of b was written.
func write(fd int, b []byte) bool {
	for len(b) > 0 {
		n, err := syscall.Write(fd, b)
		if err == syscall.EINTR || err == syscall.EAGAIN {
			continue
		}
		if err != nil {
			return false // nobody reads any more, or nobody ever did
		}
		b = b[n:]
	}
	return true
}
