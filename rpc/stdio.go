package rpc

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Stdio makes one stream of two files: of a process's own stdin and stdout, or
// of the pipes to a child. The files belong to the stream; closing it closes
// both, also while one is read or written.
func Stdio(in, out *os.File) io.ReadWriteCloser {
	s := &stdio{in: in, out: out, files: []*os.File{in, out}}
	s.in = s.unblocked(in, os.O_RDONLY)
	s.out = s.unblocked(out, os.O_WRONLY)
	return s
}

type stdio struct {
	in, out *os.File
	files   []*os.File // all that must be closed
}

// unblocked returns f in a form whose reads and writes can be interrupted,
// which inherited files can't be. Where possible that is a description of its
// own, because the flag on f itself would also hold for the other processes that
// have it: a terminal is shared with the shell.
func (s *stdio) unblocked(f *os.File, flag int) *os.File {
	info, err := f.Stat()
	raw := descriptor(f)
	if err != nil || raw == nil || info.Mode().IsRegular() || nonblocking(raw) {
		return f
	}
	var own *os.File
	err = raw.Control(func(fd uintptr) {
		if info.Mode()&fs.ModeSocket == 0 {
			own, err = os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", fd), flag|unix.O_NONBLOCK, 0)
			if err == nil {
				return
			}
		}
		dup, err := unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0)
		if err == nil && unix.SetNonblock(dup, true) == nil {
			own = os.NewFile(uintptr(dup), f.Name())
		}
	})
	if err != nil || own == nil {
		return f
	}
	s.files = append(s.files, own)
	return own
}

func (s *stdio) Read(b []byte) (int, error)  { return s.in.Read(b) }
func (s *stdio) Write(b []byte) (int, error) { return s.out.Write(b) }

// SyscallConn gives the descriptor that is written to.
func (s *stdio) SyscallConn() (syscall.RawConn, error) { return s.out.SyscallConn() }

// ReadConn gives the descriptor that is read.
func (s *stdio) ReadConn() (syscall.RawConn, error) { return s.in.SyscallConn() }

func (s *stdio) Close() error {
	var errs []error
	for _, f := range s.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
