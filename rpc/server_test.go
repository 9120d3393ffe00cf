package rpc

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// serve starts a server on a socket of its own.
func serve(t *testing.T, o ServerOptions) (*Server, string) {
	t.Helper()
	l, err := Listen(ListenConfig{Path: socketPath(t)})
	require.NoError(t, err)
	if o.Open == nil {
		o.Open = func(*Conn) Options { return Options{Handler: newHandler()} }
	}
	s := NewServer(o)
	done := make(chan error, 1)
	go func() { done <- s.Serve(context.Background(), l) }()
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		require.Equal(t, ErrServerClosed, <-done)
	})
	return s, l.Addr().String()
}

// socketPath is short, unlike t.TempDir.
func socketPath(t testing.TB) string {
	dir, err := os.MkdirTemp("", "rpc")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

func dial(t testing.TB, path string) *wire {
	t.Helper()
	c, err := net.Dial("unix", path)
	require.NoError(t, err)
	return newWire(t, c)
}

func TestServerKnowsItsConnections(t *testing.T) {
	var mu sync.Mutex
	var opened, closed []*Conn
	s, path := serve(t, ServerOptions{
		Open: func(c *Conn) Options {
			mu.Lock()
			defer mu.Unlock()
			opened = append(opened, c)
			return Options{Handler: newHandler()}
		},
		Closed: func(c *Conn) {
			mu.Lock()
			defer mu.Unlock()
			closed = append(closed, c)
		},
	})
	a := dial(t, path)
	a.send(request(1, "echo", `{}`))
	a.read()
	b := dial(t, path)
	b.send(request(1, "echo", `{}`))
	b.read()
	require.Equal(t, opened, s.Conns())
	require.Equal(t, Creds{PID: os.Getpid(), UID: os.Getuid(), GID: os.Getgid()}, opened[0].Creds)
	require.WithinDuration(t, time.Now(), opened[0].Since, time.Minute)

	theirs, err := PeerCreds(a.Conn)
	require.NoError(t, err)
	require.Equal(t, os.Getuid(), theirs.UID, "a client can check the daemon")

	require.NoError(t, a.Close())
	require.Eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(closed) == 1 && closed[0] == opened[0]
	}, 10*time.Second, time.Millisecond)
	require.Error(t, opened[0].Peer.Err())
	require.Equal(t, opened[1:], s.Conns())
}

func TestServerRefusesBeforeReading(t *testing.T) {
	_, path := serve(t, ServerOptions{
		Open: func(*Conn) Options { panic("opened") },
		Authorize: func(c Creds) error {
			if c.UID != os.Getuid() {
				return errors.New("wrong creds")
			}
			return errors.New("uid 1234 may not use this socket")
		},
	})
	w := dial(t, path)
	require.Equal(t, `{"jsonrpc":"2.0","id":null,"error":{"code":-32004,"message":"uid 1234 may not use this socket"}}`, w.read())
	w.ended()
}

func TestServerDoesNotAuthorizeWhatItCantName(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := NewServer(ServerOptions{Authorize: func(Creds) error { return nil }})
	go func() { _ = s.Serve(t.Context(), l) }()
	defer s.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	w := newWire(t, c)
	require.Contains(t, w.read(), "-32004")
	w.ended()
}

func TestServerMakesRoom(t *testing.T) {
	s, path := serve(t, ServerOptions{MaxConnections: 3})
	dialed := func(n int) *wire {
		w := dial(t, path)
		require.Eventually(t, func() bool { return len(s.Conns()) == n }, 10*time.Second, time.Millisecond)
		return w
	}
	speaker := dialed(1)
	speaker.send(request(1, "echo", `{}`))
	speaker.read()
	silent1 := dialed(2)
	silent2 := dialed(3)

	late := dial(t, path)
	silent1.ended()
	late.send(request(1, "slow", `{}`))
	late2 := dial(t, path)
	silent2.ended()
	late2.send(request(1, "echo", `{}`))
	late2.read()
	require.Eventually(t, func() bool { return !s.Conns()[1].silent() }, 10*time.Second, time.Millisecond)

	refused := dial(t, path)
	require.Equal(t, `{"jsonrpc":"2.0","id":null,"error":{"code":-32002,"message":"overloaded: 3 connections are open"}}`, refused.read())
	refused.ended()
	speaker.send(request(2, "echo", `{}`))
	speaker.read()
	require.NoError(t, speaker.Close())
	require.Eventually(t, func() bool { return len(s.Conns()) == 2 }, 10*time.Second, time.Millisecond)
	last := dial(t, path)
	last.send(request(1, "echo", `{}`))
	last.read()
}

func TestConnectionsShareGoroutines(t *testing.T) {
	s, path := serve(t, ServerOptions{Open: func(*Conn) Options {
		return Options{Handler: handlerFunc(func(*Request) Work {
			return Work{Run: func(context.Context) ([]byte, error) { return goroutine(), nil }}
		})}
	}})
	var numbers []string
	for range 20 {
		w := dial(t, path)
		w.send(request(1, "m", `{}`))
		numbers = append(numbers, w.read())
		require.Eventually(t, func() bool { return s.workers.idle.Load() == 1 }, 10*time.Second, time.Millisecond)
	}
	slices.Sort(numbers)
	require.Less(t, len(slices.Compact(numbers)), 10, "it may not wait yet when the next one is needed")
}

func TestServerShutdown(t *testing.T) {
	h := newHandler()
	s, path := serve(t, ServerOptions{Open: func(*Conn) Options { return Options{Handler: h} }})
	busy, idle := dial(t, path), dial(t, path)
	busy.send(request(1, "slow", `{}`))
	idle.send(request(1, "echo", `{}`))
	idle.read()
	require.Eventually(t, func() bool { return len(h.all()) == 2 }, 10*time.Second, time.Millisecond)
	done := make(chan error)
	go func() { done <- s.Shutdown(t.Context()) }()
	idle.ended()
	_, err := net.Dial("unix", path)
	require.Error(t, err)
	require.NoFileExists(t, path)
	close(h.release)
	require.Contains(t, busy.read(), `"result"`)
	require.NoError(t, <-done)
	busy.ended()
	require.Equal(t, ErrServerClosed, s.Serve(t.Context(), &failing{ended: make(chan struct{})}))
}

func TestServerShutdownEndsWithItsContext(t *testing.T) {
	h := newHandler()
	s, path := serve(t, ServerOptions{Open: func(*Conn) Options { return Options{Handler: h} }})
	busy := dial(t, path)
	busy.send(request(1, "slow", `{}`))
	require.Eventually(t, func() bool { return len(h.all()) == 1 }, 10*time.Second, time.Millisecond)
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	require.ErrorIs(t, s.Shutdown(ctx), enough)
	require.ErrorIs(t, <-h.causes, ErrShutdown)
}

func TestServeEndsWithItsContext(t *testing.T) {
	l, err := Listen(ListenConfig{Path: socketPath(t)})
	require.NoError(t, err)
	s := NewServer(ServerOptions{Open: func(*Conn) Options { return Options{Handler: newHandler()} }})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Serve(ctx, l) }()
	w := dial(t, l.Addr().String())
	w.send(request(1, "echo", `{}`))
	w.read()
	cancel()
	require.Equal(t, ErrServerClosed, <-done)
	w.ended()
	require.NoError(t, s.Close())
	require.Empty(t, s.Conns())
}

func TestServerBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewServer(ServerOptions{})
		l := &failing{err: os.NewSyscallError("accept", syscall.EMFILE), times: 12, ended: make(chan struct{})}
		done := make(chan error)
		go func() { done <- s.Serve(t.Context(), l) }()
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Len(t, l.when, 13)
		var waits []time.Duration
		for i := range l.when[1:] {
			waits = append(waits, l.when[i+1].Sub(l.when[i]))
		}
		const ms = time.Millisecond
		require.Equal(t, []time.Duration{5 * ms, 10 * ms, 20 * ms, 40 * ms, 80 * ms, 160 * ms, 320 * ms, 640 * ms, 1000 * ms, 1000 * ms, 1000 * ms, 1000 * ms}, waits)
		require.NoError(t, s.Close())
		require.Equal(t, ErrServerClosed, <-done)
	})
}

func TestServerGivesUpOnABrokenListener(t *testing.T) {
	s := NewServer(ServerOptions{})
	defer s.Close()
	err := s.Serve(t.Context(), &failing{err: syscall.EINVAL, times: 1, ended: make(chan struct{})})
	require.ErrorIs(t, err, syscall.EINVAL)
}

func TestServerUnderManyConnections(t *testing.T) {
	s, path := serve(t, ServerOptions{})
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			w := dial(t, path)
			for range 20 {
				w.send(request(1, "echo", `{"a":"`+strings.Repeat("x", 3000)+`"}`))
				w.read()
			}
			w.Close()
		})
	}
	wg.Wait()
	require.Eventually(t, func() bool { return len(s.Conns()) == 0 }, 10*time.Second, time.Millisecond)
}
