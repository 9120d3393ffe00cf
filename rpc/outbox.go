package rpc

import (
	"bytes"
	"io"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hookd/hookd/protocol"
)

const (
	copyBelow    = 8 << 10  // a payload shorter than this is copied behind its envelope
	urgentBatch  = 64 << 10 // about so much is written at once
	patientBatch = 8 << 10  // of notifications less, since calls and answers wait for it
	batchLength  = 256      // messages; each may need three of the 1024 parts that writev takes
)

// message is one line to be written: head, and for a large payload also body
// and closing.
type message struct {
	head, body []byte
	patient    bool        // a notification: others overtake it
	done       chan error  // when set, told how it ended; it has room for that
	lost       func(error) // when set, called when it was not written
}

var closing = []byte("}\n")

func (m *message) size() int {
	if m.body == nil {
		return len(m.head)
	}
	return len(m.head) + len(m.body) + len(closing)
}

// ended tells the one that waits for the message, and lets go of its bytes. What
// it adds to later is to be called without a lock.
func (m *message) ended(err error, later []func()) []func() {
	m.head, m.body = nil, nil
	if m.done != nil {
		m.done <- err
	}
	if m.lost != nil && err != nil {
		later = append(later, func() { m.lost(err) })
	}
	return later
}

// encodeRequest makes the line of a call, or of a notification when id is zero.
func (m *message) encodeRequest(id ID, method string, params []byte) {
	m.head = slices.Grow(m.head, 64+len(method)+min(len(params), copyBelow))
	m.head = append(m.head, `{"jsonrpc":"2.0",`...)
	if id.set {
		m.head = append(m.head, `"id":`...)
		m.head = append(id.AppendJSON(m.head), ',')
	}
	m.head = append(m.head, `"method":`...)
	m.head = protocol.AppendString(m.head, method)
	if params == nil {
		m.head = append(m.head, closing...)
		return
	}
	m.head = append(m.head, `,"params":`...)
	m.payload(params)
}

// encodeNotifications makes the lines of several notifications.
func (m *message) encodeNotifications(method string, params [][]byte) {
	if len(params) > 1 {
		size := 0
		for _, p := range params {
			size += 64 + len(method) + len(p)
		}
		m.head = make([]byte, 0, size)
	}
	for _, p := range params {
		if m.body != nil { // only the last one may stand apart
			m.head, m.body = append(append(m.head, m.body...), closing...), nil
		}
		m.encodeRequest(ID{}, method, p)
	}
}

// encodeResult makes the line of an answer.
func (m *message) encodeResult(id ID, result []byte) {
	if len(result) == 0 {
		result = null
	}
	m.head = make([]byte, 0, 48+len(id.id.Str)+min(len(result), copyBelow))
	m.head = append(m.head, `{"jsonrpc":"2.0","id":`...)
	m.head = append(id.AppendJSON(m.head), `,"result":`...)
	m.payload(result)
}

// encodeError makes the line of an error; a zero id is null.
func (m *message) encodeError(id ID, e *protocol.Error) {
	m.head = append(m.head, `{"jsonrpc":"2.0","id":`...)
	m.head = append(id.AppendJSON(m.head), `,"error":{"code":`...)
	m.head = strconv.AppendInt(m.head, int64(e.Code), 10)
	m.head = append(m.head, `,"message":`...)
	m.head = protocol.AppendString(m.head, e.Message)
	if e.Data != nil {
		m.head = append(m.head, `,"data":`...)
		m.head = append(m.head, oneLine(e.Data)...)
	}
	m.head = append(m.head, "}}\n"...)
}

// payload ends the line with a JSON value.
func (m *message) payload(v []byte) {
	v = oneLine(v)
	if len(v) < copyBelow {
		m.head = append(append(m.head, v...), closing...)
	} else {
		m.body = v
	}
}

// oneLine returns JSON without line breaks. They can only stand between its
// tokens, where a space does as well.
func oneLine(v []byte) []byte {
	if bytes.IndexByte(v, '\n') < 0 {
		return v
	}
	return bytes.ReplaceAll(v, []byte{'\n'}, []byte{' '})
}

// outbox writes messages in order, calls and answers before notifications, and
// keeps what the stream does not take at once within a bound. At any time one
// goroutine writes, without a lock: the one that queued a message when the
// stream takes it at once, or else one that is started for it and ends when
// nothing is left.
type outbox struct {
	w       io.Writer
	raw     syscall.RawConn // nil when w must be written to as it is
	timeout time.Duration
	max     int
	closed  func(error) // told once why nothing is written any more

	mu      sync.Mutex
	wg      sync.WaitGroup
	urgent  []*message
	patient []*message
	queued  int // bytes in both
	busy    bool
	err     error    // set when closed
	idle    []func() // called when everything is written, or never will be

	// Of the one that is busy:
	batch []*message
	iov   [][]byte
	left  [][]byte // what of iov is not written yet
	wrote error    // why that failed
	timer *time.Timer
	try   func(fd uintptr) bool // for raw.Write: one system call
}

// descriptor returns the file descriptor of a stream, or nil.
func descriptor(stream any) syscall.RawConn {
	if c, ok := stream.(syscall.Conn); ok {
		if raw, err := c.SyscallConn(); err == nil {
			return raw
		}
	}
	return nil
}

// nonblocking reports whether reading and writing a descriptor never blocks a thread.
func nonblocking(raw syscall.RawConn) bool {
	if raw == nil {
		return false
	}
	flags := 0
	err := raw.Control(func(fd uintptr) { flags, _ = unix.FcntlInt(fd, unix.F_GETFL, 0) })
	return err == nil && flags&unix.O_NONBLOCK != 0
}

// put queues a message. kick must follow.
func (o *outbox) put(m *message) error {
	n := m.size()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return o.err
	}
	if o.queued > 0 && o.queued+n > o.max {
		return ErrOverloaded
	}
	o.queued += n
	if m.patient {
		o.patient = append(o.patient, m)
	} else {
		o.urgent = append(o.urgent, m)
	}
	return nil
}

// withdraw takes a message back, and reports whether nothing of it was written.
func (o *outbox) withdraw(m *message) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	queue := &o.urgent
	if m.patient {
		queue = &o.patient
	}
	i := slices.Index(*queue, m)
	if i < 0 {
		return false
	}
	*queue = slices.Delete(*queue, i, i+1)
	o.queued -= m.size()
	return true
}

// kick writes what the stream takes without waiting, unless somebody writes
// already, and leaves the rest to a goroutine.
func (o *outbox) kick() {
	o.mu.Lock()
	if o.busy || !o.take() {
		o.mu.Unlock()
		return
	}
	o.busy = true
	o.mu.Unlock()
	if o.raw != nil {
		if o.try == nil {
			o.try = func(fd uintptr) bool {
				o.write(int(fd))
				return true
			}
		}
		o.ended(o.raw.Write(o.try))
		if len(o.left) == 0 && !o.finish() {
			return
		}
	}
	o.mu.Lock()
	closed := o.err != nil
	if !closed {
		o.wg.Go(o.drain)
	}
	o.mu.Unlock()
	if closed {
		o.finish()
	}
}

// drain writes until nothing is left.
func (o *outbox) drain() {
	for more := true; more; more = o.finish() {
		if o.timer == nil {
			o.timer = time.AfterFunc(o.timeout, func() { o.close(ErrSlowReader) })
		} else {
			o.timer.Reset(o.timeout)
		}
		if o.raw != nil {
			o.ended(o.raw.Write(o.writeAll))
		} else {
			b := o.left[0]
			if len(o.left) > 1 {
				b = bytes.Join(o.left, nil)
			}
			_, err := o.w.Write(b)
			o.ended(err)
		}
		o.timer.Stop()
	}
}

// ended notes that writing failed.
func (o *outbox) ended(err error) {
	if err != nil && o.wrote == nil {
		o.wrote = err
	}
	if o.wrote != nil {
		o.left = nil
	}
}

// writeAll is for RawConn.Write, which calls it again when the stream takes more.
func (o *outbox) writeAll(fd uintptr) bool {
	for len(o.left) > 0 && o.wrote == nil {
		if !o.write(int(fd)) {
			return false
		}
	}
	return true
}

// write makes one system call. It reports false when the stream takes nothing
// at the moment.
func (o *outbox) write(fd int) bool {
	var n int
	err := error(unix.EINTR)
	for err == unix.EINTR {
		n, err = writeOnce(fd, o.left)
	}
	switch err {
	case nil:
	case unix.EAGAIN:
		return false
	default:
		o.wrote = os.NewSyscallError("write", err)
		return true
	}
	for len(o.left) > 0 && n >= len(o.left[0]) {
		n -= len(o.left[0])
		o.left = o.left[1:]
	}
	if n > 0 {
		o.left[0] = o.left[0][n:]
	}
	return true
}

// take makes the next batch. It reports false when there is none.
func (o *outbox) take() bool {
	queue, limit := &o.urgent, urgentBatch
	if len(*queue) == 0 {
		queue, limit = &o.patient, patientBatch
	}
	size, n := 0, 0
	for _, m := range *queue {
		if n > 0 && size+m.size() > limit || n == batchLength {
			break
		}
		n++
		size += m.size()
		o.iov = append(o.iov, m.head)
		if m.body != nil {
			o.iov = append(o.iov, m.body, closing)
		}
	}
	o.left = o.iov
	o.batch = append(o.batch, (*queue)[:n]...)
	if n == len(*queue) {
		*queue = emptied(*queue)
	} else {
		*queue = slices.Delete(*queue, 0, n)
	}
	o.queued -= size
	return n > 0
}

// emptied returns s without its elements, and without its memory if that is
// more than is usual.
func emptied[T any](s []T) []T {
	if cap(s) > 64 {
		return nil
	}
	clear(s)
	return s[:0]
}

// finish ends the batch that was written and takes the next. It reports
// whether there is one.
func (o *outbox) finish() bool {
	if o.wrote != nil {
		o.close(o.wrote)
	}
	o.mu.Lock()
	var later []func()
	err := o.err
	if o.wrote == nil && len(o.left) == 0 {
		err = nil // it was written, whatever has happened since
	}
	for _, m := range o.batch {
		later = m.ended(err, later)
	}
	o.batch, o.iov = emptied(o.batch), emptied(o.iov)
	more := o.err == nil && o.take()
	if !more {
		o.busy = false
		later = append(later, o.idle...)
		o.idle = nil
	}
	o.mu.Unlock()
	for _, f := range later {
		f()
	}
	return more
}

// whenIdle calls f as soon as everything is written, or never will be.
func (o *outbox) whenIdle(f func()) {
	o.mu.Lock()
	idle := o.err != nil || !o.busy && o.queued == 0
	if !idle {
		o.idle = append(o.idle, f)
	}
	o.mu.Unlock()
	if idle {
		f()
	}
}

// close refuses all that is queued and all that comes. Only the first reason counts.
func (o *outbox) close(reason error) {
	o.mu.Lock()
	if o.err != nil {
		o.mu.Unlock()
		return
	}
	o.err = closedBy(reason)
	var later []func()
	for _, m := range slices.Concat(o.urgent, o.patient) {
		later = m.ended(o.err, later)
	}
	o.urgent, o.patient, o.queued = nil, nil, 0
	if !o.busy { // else the one that is tells them
		later, o.idle = append(later, o.idle...), nil
	}
	o.mu.Unlock()
	for _, f := range later {
		f()
	}
	o.closed(reason)
}
