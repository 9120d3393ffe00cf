package rpc

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/gofrs/flock"
)

// ErrAlreadyRunning is wrapped by the error of [Listen] when another process
// serves this path.
var ErrAlreadyRunning = errors.New("already running")

// ListenConfig says where and for whom to listen.
type ListenConfig struct {
	// Path of the socket. Its folder is made when it is missing: 0700, or with
	// Group 0750 and of that group.
	Path string
	// Mode of the socket; 0 means 0600.
	Mode os.FileMode
	// Group that shall own the socket, by name or number; empty leaves it.
	Group string
}

// Listener is a Unix socket that belongs to this process alone. Somebody must
// close it.
type Listener struct {
	*net.UnixListener
	path string
	info os.FileInfo // of the socket as it was made
	lock *flock.Flock
	once sync.Once
	err  error // of Close
}

// Listen makes the socket. PATH.lock beside it keeps a second daemon out
// ([ErrAlreadyRunning]), so a socket that is still there under the lock and does
// not answer is a dead one and is replaced. Anything else at the path is left as
// it is, and is an error. The folder must belong to this user or root, and others
// must not be able to write to it.
func Listen(c ListenConfig) (*Listener, error) {
	l, err := listen(c)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", cmp.Or(c.Path, `""`), err)
	}
	return l, nil
}

func listen(c ListenConfig) (_ *Listener, err error) {
	most := len(syscall.RawSockaddrUnix{}.Path) - 1
	switch {
	case c.Path == "" || strings.HasPrefix(c.Path, "@"):
		return nil, errors.New("the path of a file is needed")
	case len(c.Path) > most:
		return nil, fmt.Errorf("the path is %d bytes long and the system allows %d: choose a shorter one", len(c.Path), most)
	}
	gid := -1
	if c.Group != "" {
		if gid, err = lookupGroup(c.Group); err != nil {
			return nil, err
		}
	}
	if err := prepareFolder(filepath.Dir(c.Path), gid); err != nil {
		return nil, err
	}

	l := &Listener{path: c.Path, lock: flock.New(c.Path + ".lock")}
	ok, err := l.lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	if !ok {
		return nil, fmt.Errorf("%w%s", ErrAlreadyRunning, holder(l.lock.Path()))
	}
	defer func() {
		if err != nil {
			_ = l.lock.Unlock()
		}
	}()
	if err := os.WriteFile(l.lock.Path(), fmt.Appendln(nil, os.Getpid()), 0o600); err != nil {
		return nil, err
	}
	switch info, err := os.Lstat(c.Path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case info.Mode().Type() != fs.ModeSocket:
		return nil, fmt.Errorf("there is a %s, not a socket: it was left as it is; choose another path or remove it", typeName(info.Mode()))
	default:
		if err := mustBeDead(c.Path); err != nil {
			return nil, err
		}
		if err := os.Remove(c.Path); err != nil {
			return nil, err
		}
	}

	mode := cmp.Or(c.Mode.Perm(), 0o600)
	birth := mode
	if gid >= 0 {
		birth &= 0o700 // until the group is the right one
	}
	if l.UnixListener, err = bind(c.Path, birth); err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	defer func() {
		if err != nil {
			_ = l.Close()
		}
	}()
	if l.info, err = os.Lstat(c.Path); err != nil {
		return nil, err
	}
	if gid >= 0 {
		if err := os.Lchown(c.Path, -1, gid); err != nil {
			return nil, err
		}
	}
	// The umask may have taken bits away at birth.
	if err := os.Chmod(c.Path, mode); err != nil {
		return nil, err
	}
	return l, nil
}

// Close stops listening and removes the socket when it is still this one.
func (l *Listener) Close() error {
	l.once.Do(func() { l.err = l.close() })
	return l.err
}

func (l *Listener) close() error {
	// While this socket is open its inode can't be that of another one.
	if now, err := os.Lstat(l.path); err == nil && l.info != nil && os.SameFile(now, l.info) {
		_ = os.Remove(l.path)
	}
	return errors.Join(l.UnixListener.Close(), l.lock.Unlock())
}

// mustBeDead fails when somebody listens who does not hold the lock: a service
// manager keeps sockets open that it hands to its own hookd.
func mustBeDead(path string) error {
	c, err := net.Dial("unix", path)
	switch {
	case err == nil:
		_ = c.Close()
		return fmt.Errorf("%w: a socket answers there, perhaps one that a service manager holds for hookd", ErrAlreadyRunning)
	case errors.Is(err, syscall.ECONNREFUSED):
		return nil
	}
	return fmt.Errorf("there is a socket, and whether it is in use can't be told: %w", err)
}

func lookupGroup(name string) (int, error) {
	if gid, err := strconv.Atoi(name); err == nil {
		return gid, nil
	}
	g, err := user.LookupGroup(name)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(g.Gid)
}

// prepareFolder makes the folder of a socket, or checks that nobody else can
// put something in the place of the socket.
func prepareFolder(dir string, gid int) error {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		if gid >= 0 {
			return errors.Join(os.Chown(dir, -1, gid), os.Chmod(dir, 0o750))
		}
		return nil
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder", dir)
	}
	if uid := int(info.Sys().(*syscall.Stat_t).Uid); uid != os.Geteuid() && uid != 0 {
		return fmt.Errorf("folder %s belongs to uid %d: choose another one or run: chown %d %s", dir, uid, os.Geteuid(), dir)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("others may write to folder %s: choose one of its own for the socket or run: chmod go-w %s", dir, dir)
	}
	return nil
}

// holder says who holds a lock file, if it can be read.
func holder(path string) string {
	b, err := os.ReadFile(path)
	if pid := strings.TrimSpace(string(b)); err == nil && pid != "" {
		return " as process " + pid
	}
	return ""
}

func typeName(m fs.FileMode) string {
	switch {
	case m.IsRegular():
		return "file"
	case m.IsDir():
		return "folder"
	case m&fs.ModeSymlink != 0:
		return "symbolic link"
	}
	return "device or pipe"
}
