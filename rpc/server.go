package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/hookd/hookd/protocol"
)

// ErrServerClosed is returned by [Server.Serve] after Shutdown or Close.
var ErrServerClosed = errors.New("server closed")

// ServerOptions are the settings of a [Server].
type ServerOptions struct {
	// Open gives the settings of a new connection's peer. Required. It runs
	// before anything is read and conn.Peer is set; for several connections at once.
	Open func(conn *Conn) Options
	// Closed, when set, is told that a connection has ended and all its
	// requests with it; conn.Peer.Err says why.
	Closed func(conn *Conn)
	// Authorize, when set, decides about a connection before anything is read.
	// Its error's text is sent to the other side with code -32004. A connection
	// whose credentials can't be read is refused.
	Authorize func(Creds) error
	// MaxConnections is how many may be open at once; default 1024. When all
	// are taken, the oldest one that never said anything goes; when there is
	// none, the new one is refused with -32002.
	MaxConnections int
	// Log gets refused connections and failing accepts. nil means none.
	Log *zap.Logger
}

// Conn is one accepted connection.
type Conn struct {
	// Peer speaks with the other side.
	Peer *Peer
	// Creds are who the other side is, as the kernel says. Where it can't tell,
	// as for anything but a Unix socket, UID and GID are -1.
	Creds Creds
	// Since is when it was accepted.
	Since time.Time
}

// Server accepts connections and makes a [Peer] of each.
type Server struct {
	o       ServerOptions
	workers *workers
	done    chan struct{} // closed when nothing is accepted any more
	wg      sync.WaitGroup

	mu        sync.Mutex
	closed    bool
	listeners []net.Listener
	taken     int     // places, of MaxConnections
	conns     []*Conn // oldest first
}

// NewServer returns a Server. Somebody must call Shutdown or Close.
func NewServer(o ServerOptions) *Server {
	o.MaxConnections = cmp.Or(o.MaxConnections, protocol.Limits{}.WithDefaults().MaxConnections)
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	return &Server{o: o, workers: newWorkers(), done: make(chan struct{})}
}

// Serve accepts connections from l until the server closes, and returns
// [ErrServerClosed]; any other error means that l broke. It closes l. When ctx
// ends, the server closes and all its connections with it. Serve may run for
// several listeners.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		_ = l.Close()
		return ErrServerClosed
	}
	s.listeners = append(s.listeners, l)
	s.wg.Add(1)
	s.mu.Unlock()
	defer s.wg.Done()
	defer l.Close()
	defer context.AfterFunc(ctx, s.stopAccepting)()

	var delay time.Duration
	for {
		c, err := l.Accept()
		switch {
		case err == nil:
			delay = 0
			s.accepted(ctx, c)
		case s.isClosed():
			return ErrServerClosed
		case !temporary(err):
			return fmt.Errorf("accept: %w", err)
		default:
			delay = min(max(2*delay, 5*time.Millisecond), time.Second)
			s.o.Log.Warn("accept failed", zap.Error(err), zap.Duration("again_in", delay))
			select {
			case <-time.After(delay):
			case <-s.done:
			}
		}
	}
}

// temporary reports whether accepting may succeed later.
func temporary(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func (s *Server) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// accepted finds a place for a connection.
func (s *Server) accepted(ctx context.Context, c net.Conn) {
	s.mu.Lock()
	if s.taken >= s.o.MaxConnections {
		i := slices.IndexFunc(s.conns, (*Conn).silent)
		if i < 0 {
			s.mu.Unlock()
			s.refuse(c, overloaded(fmt.Sprintf("%d connections are open", s.o.MaxConnections)))
			return
		}
		s.conns[i].Peer.Fail(errMakeRoom)
		s.conns = slices.Delete(s.conns, i, i+1) // its place is the new one's
	} else {
		s.taken++
	}
	s.mu.Unlock()
	// Authorize and Open may take their time.
	s.wg.Go(func() { s.open(ctx, c) })
}

var errMakeRoom = errors.New("closed to make room: it never said anything")

// silent reports whether nothing has arrived on the connection so far.
func (c *Conn) silent() bool { return !c.Peer.heard.Load() }

func (s *Server) open(ctx context.Context, c net.Conn) {
	creds, err := PeerCreds(c)
	if err == nil && s.o.Authorize != nil {
		err = s.o.Authorize(creds)
	}
	if err != nil && s.o.Authorize != nil {
		s.refuse(c, protocol.Errorf(protocol.CodeUnauthorized, "%v", err))
		s.leave(nil)
		return
	}
	if err != nil {
		creds = Creds{UID: -1, GID: -1} // zero would be root
	}
	conn := &Conn{Creds: creds, Since: time.Now()}
	conn.Peer = newPeer(ctx, c, s.o.Open(conn), s.workers)
	s.mu.Lock()
	closed := s.closed
	s.conns = append(s.conns, conn)
	s.mu.Unlock()
	if closed { // after Shutdown and Close have looked who is there
		conn.Peer.Fail(ErrServerClosed)
	}
	conn.Peer.start()
	s.wg.Add(1)
	context.AfterFunc(conn.Peer.ctx, func() {
		defer s.wg.Done()
		_ = conn.Peer.Close()
		s.leave(conn)
		if s.o.Closed != nil {
			s.o.Closed(conn)
		}
	})
}

// leave gives a place back, of nil that of one that was never opened.
func (s *Server) leave(conn *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.conns)
	s.conns = slices.DeleteFunc(s.conns, func(c *Conn) bool { return c == conn })
	if conn == nil || len(s.conns) < before {
		s.taken--
	}
}

// refuse tells a connection why it is not served, in one line.
func (s *Server) refuse(c net.Conn, e *protocol.Error) {
	s.o.Log.Warn("connection refused", zap.String("reason", e.Message))
	var m message
	m.encodeError(ID{}, e)
	// A new socket takes a line at once.
	_ = c.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = c.Write(m.head)
	// What the other side has sent already would, unread, turn the close into a
	// reset, and the line above might never be read.
	if half, ok := c.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_ = c.SetReadDeadline(time.Now().Add(lingering))
		_, _ = io.Copy(io.Discard, io.LimitReader(c, lingerBytes))
	}
	_ = c.Close()
}

// A refused connection is read for a moment, so that its end is orderly.
const (
	lingering   = 200 * time.Millisecond
	lingerBytes = 1 << 20
)

// Conns returns the open connections, oldest first.
func (s *Server) Conns() []*Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.conns)
}

func (s *Server) stopAccepting() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	close(s.done)
	for _, l := range s.listeners {
		_ = l.Close()
	}
}

// Shutdown stops accepting, shuts every peer down (see [Peer.Shutdown]) and waits for
// them and for Serve. When ctx ends first, the rest is closed and its cause returned.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stopAccepting()
	conns := s.Conns()
	errs := make([]error, len(conns))
	var wg sync.WaitGroup
	for i, c := range conns {
		wg.Go(func() { errs[i] = c.Peer.Shutdown(ctx) })
	}
	wg.Wait()
	s.wg.Wait()
	s.workers.close()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Close stops accepting, closes every peer and waits for them and for Serve.
func (s *Server) Close() error {
	s.stopAccepting()
	for _, c := range s.Conns() {
		c.Peer.Fail(ErrShutdown)
	}
	s.wg.Wait()
	s.workers.close()
	return nil
}
