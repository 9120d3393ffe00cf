package child

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"
)

const (
	maxStderrLine  = 4 << 10          // bytes of a line that are kept
	stderrRate     = 64 << 10         // bytes handed over per second
	dropReportWait = 10 * time.Second // between two reports of dropped bytes
	tailLines      = 20               // last lines kept for status
)

// stderrLog reads a child's standard error to its end, whatever comes and how
// fast, in constant memory.
type stderrLog struct {
	hand func(line []byte, dropped int64) // Spec.Stderr, may be nil

	dropped int64     // not yet reported
	second  time.Time // begin of the second that handed counts
	handed  int

	mu   sync.Mutex
	tail [][]byte // a ring of raw lines once it is full
	next int      // the oldest line of a full ring
}

// stderrSource is an *Output, and a net.Pipe in tests.
type stderrSource interface {
	io.Reader
	SetReadDeadline(time.Time) error
}

// drain returns when src ends. The read deadline is its clock: it is set while
// a report of dropped bytes is due, so that the report also comes when the
// child has fallen silent.
func (l *stderrLog) drain(src stderrSource) {
	chunk := make([]byte, 32<<10)
	line := make([]byte, 0, maxStderrLine)
	for {
		n, err := src.Read(chunk)
		for rest := chunk[:n]; len(rest) > 0; {
			part, after, ended := bytes.Cut(rest, []byte("\n"))
			fits := min(len(part), maxStderrLine-len(line))
			line = append(line, part[:fits]...)
			l.drop(src, len(part)-fits)
			if ended {
				l.keep(src, line)
				line = line[:0]
			}
			rest = after
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			l.report()
			err = src.SetReadDeadline(time.Time{})
		}
		if err != nil {
			break
		}
	}
	l.keep(src, line)
	l.report()
}

// keep puts a line into the tail and hands it over if the rate allows. Blank
// lines say nothing and are left out.
func (l *stderrLog) keep(src stderrSource, line []byte) {
	line = bytes.TrimSuffix(line, []byte("\r"))
	if len(line) == 0 {
		return
	}
	l.remember(line)
	if l.hand == nil {
		return
	}
	if now := time.Now(); now.Sub(l.second) >= time.Second {
		l.second, l.handed = now, 0
	}
	// The raw length is tried first, so that a flood is not cleaned in vain.
	if l.handed+len(line) <= stderrRate {
		clean := printable(line)
		if l.handed+len(clean) <= stderrRate {
			l.handed += len(clean)
			l.hand(clean, 0)
			return
		}
	}
	l.drop(src, len(line))
}

func (l *stderrLog) drop(src stderrSource, n int) {
	if n > 0 && l.dropped == 0 {
		// It fails only when src is closed, and then the report at the end is next.
		_ = src.SetReadDeadline(time.Now().Add(dropReportWait))
	}
	l.dropped += int64(n)
}

func (l *stderrLog) report() {
	if l.dropped > 0 && l.hand != nil {
		l.hand(nil, l.dropped)
	}
	l.dropped = 0
}

func (l *stderrLog) remember(line []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.tail) < tailLines {
		l.tail = append(l.tail, bytes.Clone(line))
		return
	}
	l.tail[l.next] = append(l.tail[l.next][:0], line...)
	l.next = (l.next + 1) % tailLines
}

// last returns the kept lines, oldest first.
func (l *stderrLog) last() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := make([]string, len(l.tail))
	for i := range lines {
		lines[i] = string(printable(l.tail[(l.next+i)%len(l.tail)]))
	}
	return lines
}

// printable escapes everything in line that could move a terminal's cursor,
// begin a new line in a log or reorder text, and all that is not UTF-8.
func printable(line []byte) []byte {
	clean := make([]byte, 0, len(line))
	for len(line) > 0 {
		r, size := utf8.DecodeRune(line)
		switch {
		case r == utf8.RuneError && size == 1:
			clean = fmt.Appendf(clean, `\x%02x`, line[0])
		case strconv.IsPrint(r):
			clean = append(clean, line[:size]...)
		default:
			quoted := strconv.QuoteRune(r)
			clean = append(clean, quoted[1:len(quoted)-1]...)
		}
		line = line[size:]
	}
	return clean
}
