package rpc

import (
	"bufio"
	"context"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// inherited makes a descriptor look as one does that another process has made:
// it blocks.
func inherited(t *testing.T, fd int) *os.File {
	t.Helper()
	require.NoError(t, unix.SetNonblock(fd, false))
	return os.NewFile(uintptr(fd), "inherited")
}

func TestStdio(t *testing.T) {
	pipes := func(t *testing.T) (in, out, theirIn, theirOut *os.File) {
		var a, b [2]int
		require.NoError(t, unix.Pipe(a[:]))
		require.NoError(t, unix.Pipe(b[:]))
		return inherited(t, a[0]), inherited(t, b[1]), os.NewFile(uintptr(b[0]), ""), os.NewFile(uintptr(a[1]), "")
	}
	sockets := func(t *testing.T) (in, out, theirIn, theirOut *os.File) { // as Node makes them
		a, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		require.NoError(t, err)
		b, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		require.NoError(t, err)
		return inherited(t, a[0]), inherited(t, b[0]), os.NewFile(uintptr(b[1]), ""), os.NewFile(uintptr(a[1]), "")
	}
	for name, open := range map[string]func(*testing.T) (in, out, theirIn, theirOut *os.File){"pipes": pipes, "sockets": sockets} {
		t.Run(name, func(t *testing.T) {
			in, out, theirIn, theirOut := open(t)
			defer theirIn.Close()
			defer theirOut.Close()
			p := NewPeer(t.Context(), Stdio(in, out), Options{Handler: newHandler()})
			big := `{"a":"` + strings.Repeat("x", 1<<20) + `"}`
			go func() { _, _ = io.WriteString(theirOut, request(1, "echo", big)+"\n") }()
			got, err := io.ReadAll(io.LimitReader(theirIn, int64(len(big)+len(`{"jsonrpc":"2.0","id":1,"result":}`)+1)))
			require.NoError(t, err)
			require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":`+big+"}\n", string(got))
			if name == "pipes" {
				require.False(t, nonblocking(descriptor(in)), "others have it too")
			}

			// A call that is given up while the other side is silent.
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan error, 1)
			go func() {
				_, err := p.Call(ctx, "m", nil)
				done <- err
			}()
			asked := `{"jsonrpc":"2.0","id":1,"method":"m"}` + "\n"
			got, err = io.ReadAll(io.LimitReader(theirIn, int64(len(asked))))
			require.NoError(t, err)
			require.Equal(t, asked, string(got))
			cancel()
			require.ErrorIs(t, <-done, context.Canceled)
			require.Empty(t, p.calls)

			require.NoError(t, p.Close(), "while it reads")
			rest, err := io.ReadAll(theirIn)
			require.NoError(t, err)
			require.Contains(t, string(rest), cancelMethod)
		})
	}
}

func TestStdioOfAFileAndNothing(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	require.NoError(t, err)
	defer null.Close()
	path := t.TempDir() + "/in"
	require.NoError(t, os.WriteFile(path, []byte(request(1, "echo", `{}`)+"\n"), 0o600))
	in, err := os.Open(path)
	require.NoError(t, err)
	out, err := os.Create(path + ".out")
	require.NoError(t, err)
	for _, files := range [][2]*os.File{{in, out}, {null, null}} {
		p := NewPeer(t.Context(), Stdio(files[0], files[1]), Options{Handler: newHandler()})
		<-p.Done()
		require.ErrorIs(t, p.Err(), io.EOF)
		require.NoError(t, p.Close())
	}
	got, err := os.ReadFile(path + ".out")
	require.NoError(t, err)
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":{}}`+"\n", string(got))
}

// duplex is a stream that can do nothing but what it must.
type duplex struct {
	io.Reader
	io.Writer
	close func() error
}

func (d duplex) Close() error { return d.close() }

func TestPlainStream(t *testing.T) {
	in, theirOut := io.Pipe()
	theirIn, out := io.Pipe()
	go func() { _, _ = io.Copy(io.Discard, theirIn) }()
	p := NewPeer(t.Context(), duplex{in, out, func() error {
		in.Close()
		return out.Close()
	}}, Options{FrameTimeout: 10 * time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := theirOut.Write([]byte("\n"))
	require.NoError(t, err)
	for range 2 * maxLate {
		_, err = p.Call(&lateContext{Context: ctx}, "m", nil)
		require.ErrorIs(t, err, context.Canceled)
	}
	require.Empty(t, p.calls)
	require.LessOrEqual(t, len(p.late), maxLate)
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = theirOut.Write([]byte("{\"half")) })
	<-p.Done()
	require.ErrorIs(t, p.Err(), ErrSlowLine)
	require.NoError(t, p.Close())
	require.NoError(t, theirIn.Close())
	wg.Wait()
}

// joined is a stream of two files whose reader does more than read.
type joined struct {
	duplex
	out *os.File
}

func (j joined) SyscallConn() (syscall.RawConn, error) { return j.out.SyscallConn() }

func TestStreamThatGivesItsDescriptorForWriting(t *testing.T) {
	in, theirOut, err := os.Pipe()
	require.NoError(t, err)
	theirIn, out, err := os.Pipe()
	require.NoError(t, err)
	p := NewPeer(t.Context(), joined{duplex{in, out, func() error {
		out.Close()
		return in.Close()
	}}, out}, Options{})
	require.NotNil(t, p.out.raw)
	require.Nil(t, p.stream.lines.raw)
	go func() {
		_, _ = bufio.NewReader(theirIn).ReadString('\n')
		_, _ = theirOut.WriteString(`{"id":1,"result":"ok"}` + "\n")
	}()
	got, err := p.Call(t.Context(), "m", nil)
	require.NoError(t, err)
	require.Equal(t, `"ok"`, string(got))
	require.NoError(t, p.Close())
	require.NoError(t, theirIn.Close())
	require.NoError(t, theirOut.Close())
}

func TestPipeThatIsNotRead(t *testing.T) {
	for _, params := range [][]byte{
		[]byte(`{"a":"` + strings.Repeat("x", 500_000) + `"}`), // ends in the middle of a line
		[]byte(`{"a":"` + strings.Repeat("x", 3000) + `"}`),
	} {
		in, theirOut, err := os.Pipe()
		require.NoError(t, err)
		theirIn, out, err := os.Pipe()
		require.NoError(t, err)
		p := NewPeer(t.Context(), Stdio(in, out), Options{WriteTimeout: 50 * time.Millisecond})
		for err == nil {
			err = p.Notify(t.Context(), "event", params)
		}
		require.ErrorIs(t, err, ErrSlowReader)
		require.ErrorIs(t, p.Err(), ErrSlowReader)
		require.NoError(t, p.Close())
		require.NoError(t, theirIn.Close())
		require.NoError(t, theirOut.Close())
	}
}

func TestSocketThatIsNotRead(t *testing.T) {
	h := newHandler()
	p, w := start(t, Options{Handler: h, WriteTimeout: 50 * time.Millisecond, MaxQueuedBytes: 1 << 30})
	line := request(1, "echo", `{"a":"`+strings.Repeat("x", 100_000)+`"}`) + "\n"
	for {
		if _, err := io.WriteString(w, line); err != nil {
			break
		}
	}
	<-p.Done()
	require.ErrorIs(t, p.Err(), ErrSlowReader)
}
