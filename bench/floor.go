package bench

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/child"
)

// How an echoServer waits; see echoConnections.
const (
	blocking = "blocking"
	polling  = "polling"
)

// echoServer is a process that answers each line over a socket by a short one.
type echoServer struct {
	process *child.Process
	path    string
}

func (r *run) echoServer(how string) (*echoServer, error) {
	r.started++
	path := filepath.Join(r.folder, fmt.Sprintf("echo%d.sock", r.started))
	p, err := r.spawn("listen", how, path)
	if err != nil {
		return nil, err
	}
	e := &echoServer{p, path}
	if _, err := p.Stdout().Read(make([]byte, 8)); err != nil { // it listens
		e.stop()
		return nil, fmt.Errorf("start the echo: %w: %v", err, p.StderrTail())
	}
	return e, nil
}

func (e *echoServer) stop() {
	_ = e.process.Stop(expired())
	_ = e.process.Stdout().Close()
}

// socketFloor is F_sock: the line over a Unix socket, a short line back. Call
// stop when done.
func (r *run) socketFloor(line []byte) (s *series, stop func(), err error) {
	e, err := r.echoServer(blocking)
	if err != nil {
		return nil, nil, err
	}
	c, err := dial(e.path)
	if err != nil {
		e.stop()
		return nil, nil, err
	}
	return newSeries(c.asking(line, "ok")), func() { c.w.Close(); e.stop() }, nil
}

// pipeFloor is F_pipe: the same over a child's stdin and stdout.
func (r *run) pipeFloor(line []byte) (s *series, stop func(), err error) {
	p, err := r.spawn("echo")
	if err != nil {
		return nil, nil, err
	}
	c := newClient(p.Stdin(), p.Stdout())
	return newSeries(c.asking(line, "ok")), func() { _ = p.Stop(expired()); _ = p.Stdout().Close() }, nil
}

// scanFloor is F_scan: one strict pass of the tokenizer.
func scanFloor(data []byte) *series {
	return newSeries(func() error {
		_, err := jsontext.NewDecoder(bytes.NewBuffer(data)).ReadValue()
		return err
	})
}

// echoLines answers every line by a short one, until the end.
func echoLines(rd io.Reader, w io.Writer) error {
	r := bufio.NewReaderSize(rd, 64<<10)
	for {
		_, err := r.ReadSlice('\n')
		if err == bufio.ErrBufferFull {
			continue
		}
		if err == nil {
			_, err = w.Write([]byte("ok\n"))
		}
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// echoConnections serves echoLines at l until it is closed. When they block, a
// connection has a thread of its own that waits in the system calls. One of
// these is quicker than what the runtime must wake, and many are slower: a
// floor is the lower of the two.
func echoConnections(l *net.UnixListener, block bool) {
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			return
		}
		var rw io.ReadWriteCloser = conn
		if block {
			file, err := conn.File()
			conn.Close()
			if err != nil {
				return
			}
			file.Fd() // makes it blocking
			rw = file
		}
		go func() {
			defer rw.Close()
			_ = echoLines(rw, rw) // the other side sees it as well
		}()
	}
}
