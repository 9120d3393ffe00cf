package thin

import (
	"strconv"
	"syscall"
)

// maxAnswerBytes is the longest answer that is read.
const maxAnswerBytes = 64 << 20

// socketPath is where the daemon listens. The order is that of
// client.SocketPath; a test holds the two together.
func socketPath(named string, getenv func(string) string) string {
	if named != "" {
		return named
	}
	if path := getenv("HOOKD_SOCKET"); path != "" {
		return path
	}
	for _, dir := range [...]string{getenv("XDG_RUNTIME_DIR"), "/run/user/" + strconv.Itoa(syscall.Getuid())} {
		if dir != "" && isDir(dir) {
			return join(dir, "hookd/hookd.sock")
		}
	}
	if state := getenv("XDG_STATE_HOME"); state != "" {
		return join(state, "hookd/hookd.sock")
	}
	return join(getenv("HOME"), ".local/state/hookd/hookd.sock")
}

func join(dir, name string) string {
	for len(dir) > 1 && dir[len(dir)-1] == '/' {
		dir = dir[:len(dir)-1]
	}
	switch dir {
	case "", "/":
		return dir + name
	}
	return dir + "/" + name
}

func isDir(path string) bool {
	var st syscall.Stat_t
	return syscall.Stat(path, &st) == nil && st.Mode&syscall.S_IFMT == syscall.S_IFDIR
}

// conn is a connection to the daemon.
type conn struct {
	fd       int
	deadline int64
}

// dial connects and makes sure whose process is at the other end.
func dial(path string, deadline int64) (*conn, Failure) {
	if len(path) >= len(syscall.RawSockaddrUnix{}.Path) {
		return nil, Failure("the path of the daemon's socket is too long: " + path)
	}
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return nil, Failure("make a socket: " + err.Error())
	}
	syscall.CloseOnExec(fd)
	c := &conn{fd, deadline}
	c.arm()
	for {
		err = syscall.Connect(fd, &syscall.SockaddrUnix{Name: path})
		if err != syscall.EINTR {
			break
		}
	}
	if err != nil {
		c.close()
		hint := " (is hookd running? start it with: hookd serve)"
		if err == syscall.EAGAIN {
			hint = " (it takes no more connections)"
		}
		return nil, Failure("no daemon answers at " + path + ": " + err.Error() + hint)
	}
	if uid, err := peerUID(fd); err != nil || uid != 0 && uid != syscall.Getuid() && uid != syscall.Geteuid() {
		c.close()
		return nil, Failure("what listens at " + path + " belongs to another user: refusing to speak with it")
	}
	return c, ""
}

// arm makes reads and writes end in time.
func (c *conn) arm() bool {
	left := c.deadline - nowMS()
	if left <= 0 {
		return false
	}
	tv := syscall.NsecToTimeval(left * 1_000_000)
	// A socket without a time limit would still be answered by the daemon's own.
	_ = syscall.SetsockoptTimeval(c.fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &tv)
	_ = syscall.SetsockoptTimeval(c.fd, syscall.SOL_SOCKET, syscall.SO_SNDTIMEO, &tv)
	return true
}

func (c *conn) close() { _ = syscall.Close(c.fd) }

func (c *conn) write(b []byte) Failure {
	for len(b) > 0 {
		n, err := syscall.Write(c.fd, b)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			return "the daemon did not take the payload in time"
		case err != nil:
			return Failure("send to the daemon: " + err.Error())
		}
		b = b[n:]
		if len(b) > 0 && !c.arm() {
			return "the daemon did not take the payload in time"
		}
	}
	return ""
}

// readLine reads the one line that the daemon sends.
func (c *conn) readLine() ([]byte, Failure) {
	buf := make([]byte, 0, 4<<10)
	for {
		if len(buf) == cap(buf) {
			bigger := make([]byte, len(buf), 2*cap(buf))
			copy(bigger, buf)
			buf = bigger
		}
		n, err := syscall.Read(c.fd, buf[len(buf):cap(buf)])
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			return nil, "the daemon did not answer in time"
		case err != nil:
			return nil, Failure("read from the daemon: " + err.Error())
		case n == 0:
			return nil, "the daemon closed the connection without an answer"
		}
		from := len(buf)
		buf = buf[:from+n]
		for i := from; i < len(buf); i++ {
			if buf[i] == '\n' {
				return buf[:i], ""
			}
		}
		if len(buf) > maxAnswerBytes {
			return nil, "the daemon's answer is too long"
		}
		if !c.arm() {
			return nil, "the daemon did not answer in time"
		}
	}
}
