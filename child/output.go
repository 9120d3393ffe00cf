package child

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// pipeSize is the size of the pipes for messages, in bytes: the most that an
// unprivileged process may ask for, so that a large message is one write.
const pipeSize = 1 << 20

// Output is the end that hookd reads of a pipe that a child writes. Everything
// the child wrote before it ended can be read, then comes io.EOF, even when a
// process that outlived the child keeps the other end open. Read is for one
// goroutine at a time; the other methods may be called from any.
type Output struct {
	file *os.File
	raw  syscall.RawConn

	mu   sync.Mutex
	ends bool // only what is in the pipe may still be read
	rest int  // and at most this many bytes of it
}

// newOutput takes over a pipe's read end.
func newOutput(file *os.File) (*Output, error) {
	raw, err := file.SyscallConn()
	if err != nil {
		return nil, err
	}
	return &Output{file: file, raw: raw, rest: pipeSize}, nil
}

// Read reads what the child wrote. It returns io.EOF when all was read,
// os.ErrDeadlineExceeded after the read deadline, and os.ErrClosed after Close.
func (o *Output) Read(b []byte) (int, error) {
	if !o.ending() {
		n, err := o.file.Read(b)
		if !errors.Is(err, os.ErrDeadlineExceeded) || !o.ending() {
			return n, err
		}
	}
	return o.readRest(b)
}

// SetReadDeadline sets when a blocked Read gives up; the zero time is never. It
// has no effect once the child ended, because Read blocks no more.
func (o *Output) SetReadDeadline(t time.Time) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ends {
		return nil
	}
	return o.file.SetReadDeadline(t)
}

// SyscallConn gives access to the pipe's descriptor.
func (o *Output) SyscallConn() (syscall.RawConn, error) { return o.file.SyscallConn() }

// Close closes the pipe and wakes a blocked Read.
func (o *Output) Close() error { return o.file.Close() }

// cut makes Read end with what is in the pipe now.
func (o *Output) cut() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ends = true
	// Wakes a blocked Read. It fails only on a closed file, where none is.
	_ = o.file.SetReadDeadline(time.Unix(1, 0))
}

func (o *Output) ending() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ends
}

// readRest reads past the deadline that cut has set. The pipe never blocks, and
// a writer that is still there can't add more than one pipe full.
func (o *Output) readRest(b []byte) (n int, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(b) == 0 {
		return 0, nil
	}
	if o.rest == 0 {
		return 0, io.EOF
	}
	b = b[:min(len(b), o.rest)]
	control := o.raw.Control(func(fd uintptr) { n, err = unix.Read(int(fd), b) })
	switch {
	case control != nil:
		return 0, control
	case n > 0:
		o.rest -= n
		return n, nil
	case err == nil || err == unix.EAGAIN:
		return 0, io.EOF
	}
	return 0, os.NewSyscallError("read", err)
}
