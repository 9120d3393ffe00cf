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
	write(2, a.Stderr)
	write(1, a.Stdout)
	return a.Exit
}

func write(fd int, b []byte) {
	for len(b) > 0 {
		n, err := syscall.Write(fd, b)
		if err == syscall.EINTR || err == syscall.EAGAIN {
			continue
		}
		if err != nil {
			return // nobody reads any more
		}
		b = b[n:]
	}
}
