package rpc

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	pageSize      = 4 << 10  // of the first buffer for a line
	chunkSize     = 64 << 10 // of those for a longer one
	maxBlankLines = 100      // in a row
	floodFactor   = 8        // a line this many times over the limit ends the stream
	peekBytes     = 4 << 10  // of a line over the limit, kept to find its id
)

// lineError is a line that is not read to its end. The stream goes on with the
// next line.
type lineError struct {
	start []byte // its first bytes
	full  bool   // the budget is used up; otherwise the line is too long
}

func (e *lineError) Error() string { return "line too long" }

type (
	page  [pageSize]byte
	chunk [chunkSize]byte
)

// The buffers for reading are shared: a peer has one only while there is
// something in it.
var (
	pages  = sync.Pool{New: func() any { return new(page) }}
	chunks = sync.Pool{New: func() any { return new(chunk) }}
)

// lineReader cuts a stream into lines. A long line is gathered in chunks and
// then put together once, in memory of exactly its size that belongs to the
// receiver.
type lineReader struct {
	r       io.Reader
	raw     syscall.RawConn // of r, nil when r must be read as it is
	max     int             // longest line, without its end
	budget  *Budget
	timeout time.Duration // from the first byte of a line to its end
	slow    func()        // called when it has passed
	crlf    bool          // the last line ended in \r\n

	buf    []byte   // what was read last
	page   *page    // what buf lies in: this,
	last   *chunk   // or this
	pos    int      // start of the line, or of its last part, in buf
	seen   int      // no newline in buf before this
	full   []*chunk // earlier parts of the line
	skip   int      // where the line begins in full[0]
	blanks int      // blank lines in a row
	drop   int      // bytes of the line that is being thrown away, 0 when none is
	timer  *time.Timer
	timed  bool // the timer runs for this line
	err    error
	try    func(fd uintptr) bool // for raw.Read
	tried  error                 // what it ended with
}

// next returns the next line that is not blank, without its end.
func (l *lineReader) next() ([]byte, error) {
	for {
		end := bytes.IndexByte(l.buf[l.seen:], '\n')
		if end < 0 {
			l.seen = len(l.buf)
			if err := l.outgrown(); err != nil {
				return nil, err
			}
			if l.err != nil {
				return l.rest()
			}
			if err := l.fill(); err != nil {
				return nil, err
			}
			continue
		}
		end += l.seen
		if l.timed {
			l.timer.Stop()
			l.timed = false
		}
		if l.drop > 0 {
			l.drop = 0
			l.advance(end + 1)
			continue
		}
		line, err := l.take(end)
		l.advance(end + 1)
		if line != nil || err != nil {
			return line, err
		}
	}
}

// size is how much of the current line has been read and kept.
func (l *lineReader) size() int { return len(l.full)*chunkSize - l.skip + len(l.buf) - l.pos }

// outgrown begins to throw the current line away when it is too long. One byte
// more than the limit is kept, since it may be a carriage return.
func (l *lineReader) outgrown() error {
	if l.drop > 0 {
		l.drop += len(l.buf) - l.pos
		l.pos = len(l.buf)
		if l.drop > floodFactor*l.max {
			return ErrFlood
		}
		return nil
	}
	if l.size() <= l.max+1 {
		return nil
	}
	return l.discard(false)
}

// discard throws away what was read of the current line, and with it the rest
// that is still to come.
func (l *lineReader) discard(full bool) error {
	e := &lineError{start: l.head(), full: full}
	l.drop = l.size()
	l.free()
	l.pos = len(l.buf)
	return e
}

// head copies the first bytes of the current line.
func (l *lineReader) head() []byte {
	if len(l.full) > 0 {
		return bytes.Clone(l.full[0][l.skip:min(chunkSize, l.skip+peekBytes)])
	}
	return bytes.Clone(l.buf[l.pos:min(len(l.buf), l.pos+peekBytes)])
}

// take returns the current line, which ends at end in buf; nil when it is blank.
func (l *lineReader) take(end int) ([]byte, error) {
	last := l.buf[l.pos:end]
	l.crlf = false
	if len(last) > 0 && last[len(last)-1] == '\r' {
		l.crlf = true
		last = last[:len(last)-1]
	}
	n := len(l.full)*chunkSize - l.skip + len(last)
	if n > l.max {
		start := l.head()
		l.free()
		return nil, &lineError{start: start[:min(len(start), n)]}
	}
	line := last
	if len(l.full) > 0 {
		parts := make([][]byte, 0, len(l.full)+1)
		for _, c := range l.full {
			parts = append(parts, c[:])
		}
		parts[0] = parts[0][l.skip:]
		line = bytes.Join(append(parts, last), nil)
		l.free()
	}
	if blank(line) {
		if l.blanks++; l.blanks > maxBlankLines {
			return nil, ErrFlood
		}
		return nil, nil
	}
	l.blanks = 0
	if n == len(last) { // it lies in the buffer
		line = bytes.Clone(line)
	}
	return line, nil
}

func blank(line []byte) bool {
	for _, c := range line {
		if c != ' ' && c != '\t' && c != '\r' {
			return false
		}
	}
	return true
}

// rest returns what stands after the last newline when the stream has ended,
// once: a program that answers and exits may leave its newline out.
func (l *lineReader) rest() ([]byte, error) {
	if l.err == io.EOF && l.drop == 0 && l.size() > 0 {
		line, err := l.take(len(l.buf))
		l.advance(len(l.buf))
		if line != nil || err != nil {
			return line, err
		}
	}
	l.stop()
	return nil, l.err
}

// advance goes on behind a line that ended.
func (l *lineReader) advance(pos int) { l.pos, l.seen = pos, pos }

// fill reads more into buf, and makes room before.
func (l *lineReader) fill() error {
	switch {
	case l.pos == len(l.buf) && len(l.full) == 0:
		if l.drop > 0 {
			l.buf = l.buf[:0]
			l.advance(0)
		} else {
			l.release()
		}
	case len(l.buf) < cap(l.buf):
	case l.pos >= cap(l.buf)/2:
		l.buf = l.buf[:copy(l.buf, l.buf[l.pos:])]
		l.pos, l.seen = 0, len(l.buf)
	default:
		if !l.budget.take(chunkSize) {
			return l.discard(true)
		}
		c := chunks.Get().(*chunk)
		n := 0
		if l.last != nil {
			if len(l.full) == 0 {
				l.skip = l.pos
			}
			l.full = append(l.full, l.last)
		} else {
			n = copy(c[:], l.buf[l.pos:])
			l.release()
		}
		l.last, l.buf = c, c[:n]
		l.pos, l.seen = 0, n
	}
	if (l.size() > 0 || l.drop > 0) && !l.timed {
		l.timed = true
		if l.timer == nil {
			l.timer = time.AfterFunc(l.timeout, l.slow)
		} else {
			l.timer.Reset(l.timeout)
		}
	}
	l.err = l.read()
	return nil
}

// read reads once, into a page when there is no buffer.
func (l *lineReader) read() error {
	if l.raw == nil {
		n, err := l.r.Read(l.room())
		l.got(n)
		return err
	}
	if l.try == nil {
		l.try = func(fd uintptr) bool {
			var n int
			n, l.tried = readDescriptor(int(fd), l.room())
			l.got(n)
			return l.tried != unix.EAGAIN
		}
	}
	err := l.raw.Read(l.try)
	if errors.Is(err, os.ErrDeadlineExceeded) { // what it means is known to the one who has set it
		n, err := l.r.Read(l.room())
		l.got(n)
		return err
	}
	return cmp.Or(err, l.tried)
}

// room returns where to read to.
func (l *lineReader) room() []byte {
	if l.buf == nil {
		l.page = pages.Get().(*page)
		l.buf = l.page[:0]
	}
	return l.buf[len(l.buf):cap(l.buf)]
}

// got notes that n bytes were read. A buffer with nothing in it is not kept
// while the stream is silent.
func (l *lineReader) got(n int) {
	l.buf = l.buf[:len(l.buf)+n]
	if len(l.buf) == 0 && l.drop == 0 {
		l.release()
	}
}

// readDescriptor is read(2) as an io.Reader.
func readDescriptor(fd int, b []byte) (int, error) {
	for {
		n, err := readOnce(fd, b)
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN:
			return 0, err
		case err != nil:
			return 0, os.NewSyscallError("read", err)
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

// release gives the buffer back, which holds nothing of use.
func (l *lineReader) release() {
	if l.page != nil {
		pages.Put(l.page)
	}
	if l.last != nil {
		l.budget.give(chunkSize)
		chunks.Put(l.last)
	}
	l.page, l.last, l.buf = nil, nil, nil
	l.advance(0)
}

// free gives the chunks of the current line back but the one being read into.
func (l *lineReader) free() {
	for i, c := range l.full {
		l.budget.give(chunkSize)
		chunks.Put(c)
		l.full[i] = nil
	}
	l.full, l.skip = l.full[:0], 0
	if cap(l.full) > 64 {
		l.full = nil
	}
}

// stop gives everything back. Nothing may be read after it.
func (l *lineReader) stop() {
	l.free()
	l.release()
	if l.timer != nil {
		l.timer.Stop()
	}
}
