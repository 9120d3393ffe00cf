package rpc

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(racerEnv); path != "" {
		racer(path)
		return
	}
	goleak.VerifyTestMain(m)
}

// handlerFunc is a Handler of one function.
type handlerFunc func(*Request) Work

func (f handlerFunc) Accept(r *Request) Work { return f(r) }

// wire is the bare other end of a peer.
type wire struct {
	t testing.TB
	net.Conn
	r *bufio.Reader
}

func newWire(t testing.TB, c net.Conn) *wire {
	t.Cleanup(func() { c.Close() })
	return &wire{t, c, bufio.NewReaderSize(c, 1<<20)}
}

// send writes lines.
func (w *wire) send(lines ...string) {
	w.t.Helper()
	_, err := w.Write([]byte(strings.Join(lines, "\n") + "\n"))
	require.NoError(w.t, err)
}

// read returns the next line.
func (w *wire) read() string {
	w.t.Helper()
	require.NoError(w.t, w.SetReadDeadline(time.Now().Add(20*time.Second)))
	line, err := w.r.ReadString('\n')
	require.NoError(w.t, err, "read %q", line)
	return strings.TrimSuffix(line, "\n")
}

// ended waits until the peer closes, and says nothing before.
func (w *wire) ended() {
	w.t.Helper()
	require.NoError(w.t, w.SetReadDeadline(time.Now().Add(20*time.Second)))
	line, err := w.r.ReadString('\n')
	require.Error(w.t, err)
	require.NotErrorIs(w.t, err, context.DeadlineExceeded)
	require.Empty(w.t, line)
}

// sockets returns both ends of a real Unix socket.
func sockets(t testing.TB) (a, b *net.UnixConn) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "s"), Net: "unix"})
	require.NoError(t, err)
	defer l.Close()
	a, err = net.DialUnix("unix", nil, l.Addr().(*net.UnixAddr))
	require.NoError(t, err)
	b, err = l.AcceptUnix()
	require.NoError(t, err)
	t.Cleanup(func() {
		a.Close()
		b.Close()
	})
	return a, b
}

// start makes a peer on one end of a real Unix socket.
func start(t testing.TB, o Options) (*Peer, *wire) {
	t.Helper()
	ours, theirs := sockets(t)
	p := NewPeer(context.Background(), ours, o)
	t.Cleanup(func() { p.Close() })
	return p, newWire(t, theirs)
}

// startPiped is start over net.Pipe, for synctest.
func startPiped(t testing.TB, o Options) (*Peer, *wire) {
	t.Helper()
	ours, theirs := net.Pipe()
	p := NewPeer(context.Background(), ours, o)
	t.Cleanup(func() { p.Close() })
	return p, newWire(t, theirs)
}

// noises collects noise.
type noises struct {
	mu  sync.Mutex
	all []Noise
}

func (n *noises) add(x Noise) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, x)
}

func (n *noises) list() []Noise {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]Noise(nil), n.all...)
}

func (n *noises) kinds() []NoiseKind {
	var kinds []NoiseKind
	for _, x := range n.list() {
		kinds = append(kinds, x.Kind)
	}
	return kinds
}

// wait waits until a kind of noise was heard n times.
func (n *noises) wait(t testing.TB, kind NoiseKind, times int) {
	t.Helper()
	require.Eventually(t, func() bool {
		heard := 0
		for _, k := range n.kinds() {
			if k == kind {
				heard++
			}
		}
		return heard == times
	}, 10*time.Second, time.Millisecond, "%s ×%d, heard %v", kind, times, n.kinds())
}

// testHandler serves a few methods.
//
//	echo      answers its params, inline
//	slow      answers null when release is closed or its context ends
//	stubborn  answers null when release is closed
type testHandler struct {
	release chan struct{}
	mu      sync.Mutex
	seen    []string // methods of notifications and requests, in order
	causes  chan error
}

func newHandler() *testHandler {
	return &testHandler{release: make(chan struct{}), causes: make(chan error, 100)}
}

func (h *testHandler) Accept(r *Request) Work {
	h.mu.Lock()
	h.seen = append(h.seen, r.Method+string(r.Params))
	h.mu.Unlock()
	switch r.Method {
	case "echo":
		return Work{Inline: true, Run: func(context.Context) ([]byte, error) { return r.Params, nil }}
	case "slow":
		return Work{Run: func(ctx context.Context) ([]byte, error) {
			select {
			case <-h.release:
				return nil, nil
			case <-ctx.Done():
				h.causes <- context.Cause(ctx)
				return nil, fmt.Errorf("slow: %w", ctx.Err())
			}
		}}
	case "stubborn":
		return Work{Run: func(context.Context) ([]byte, error) {
			<-h.release
			return nil, nil
		}}
	}
	return Work{}
}

func (h *testHandler) all() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.seen...)
}

// request makes the line of a request.
func request(id any, method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"method":%q,"params":%s}`, id, method, params)
}

// notification makes the line of a notification.
func notification(method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params)
}
