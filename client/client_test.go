package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/client"
	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/rpc"
)

// wait answers only when the agent no longer wants it; gone is told why.
func wait(gone chan<- error) rpc.Work {
	return rpc.Work{Run: func(ctx context.Context) ([]byte, error) {
		<-ctx.Done()
		gone <- context.Cause(ctx)
		return nil, context.Cause(ctx)
	}}
}

// silent never answers.
func silent(t *testing.T, o client.Options) *client.Client {
	return rude(t, o, func(string) string { return "" })
}

// How long the client waits for a daemon that says nothing.
func TestDeadlines(t *testing.T) {
	const decision, approval = 10 * time.Second, time.Minute
	for stage, ask := range asks() {
		synctest.Test(t, func(t *testing.T) {
			c := silent(t, client.Options{Deadline: decision, ApprovalDeadline: approval})
			want := decision
			switch stage {
			case protocol.StageBeforeTool:
				want = decision + approval
			case protocol.StageApproveTool:
				want = approval
			}
			want += time.Second // than hookd was told
			began := time.Now()
			o, err := ask(t.Context(), c)
			require.Equal(t, want, time.Since(began), "%s", stage)
			require.ErrorContains(t, err, "hookd did not answer within "+want.String())
			requireNo(t, stage, o)
			require.NoError(t, c.Close())
		})
	}
}

// A context that ends earlier counts, and hookd is told when there is enough
// time left for it to answer.
func TestContextDeadlines(t *testing.T) {
	tests := []struct {
		name  string
		own   time.Duration // Options.Deadline
		left  time.Duration // of the context; 0 = none
		told  string
		after time.Duration // the call ends; 0 = never
	}{
		{"none", 10 * time.Second, 0, ``, 11 * time.Second},
		{"later", 10 * time.Second, time.Minute, ``, 11 * time.Second},
		{"earlier", 10 * time.Second, 2500 * time.Millisecond, `"deadline_ms":2500`, 2500 * time.Millisecond},
		{"hardly any", 10 * time.Second, 299 * time.Millisecond, ``, 299 * time.Millisecond},
		{"only the context", -1, time.Hour, `"deadline_ms":3600000`, time.Hour},
		{"nothing at all", -1, 0, ``, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &hookd{}
				gone := make(chan error, 1)
				h.answer = func(*rpc.Request) rpc.Work { return wait(gone) }
				c := pipe(t, h, client.Options{Deadline: tt.own})
				ctx := t.Context()
				if tt.left > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tt.left)
					defer cancel()
				}
				began := time.Now()
				if tt.after == 0 {
					time.AfterFunc(1000*time.Hour, func() { _ = c.Close() })
					tt.after = 1000 * time.Hour
				}
				v, err := c.Output(ctx, client.Output{Content: "x"})
				require.Error(t, err)
				require.False(t, v.Allowed)
				require.Equal(t, tt.after, time.Since(began))
				params := h.seen("hook.output")[0]
				if tt.told == "" {
					require.NotContains(t, params, "deadline_ms")
				} else {
					require.Contains(t, params, tt.told)
				}
				require.NoError(t, c.Close())
				<-gone
			})
		})
	}
}

// The end of the agent's context is a no at once, and hookd hears of it.
func TestCancel(t *testing.T) {
	for stage, ask := range asks() {
		gone := make(chan error, 1)
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("the user pressed escape")
		h := &hookd{answer: func(*rpc.Request) rpc.Work {
			cancel(why)
			return wait(gone)
		}}
		c := dial(t, h, client.Options{})
		o, err := ask(ctx, c)
		require.ErrorIs(t, err, why)
		requireNo(t, stage, o)
		require.ErrorIs(t, <-gone, rpc.ErrCancelled)

		o, err = ask(ctx, c) // asked with a context that is over already
		require.ErrorIs(t, err, why)
		requireNo(t, stage, o)
		require.Len(t, h.seen("hook."+string(stage)), 1)
	}
}

// A broken connection ends the calls that wait, for good; the next call makes
// a new one.
func TestReconnect(t *testing.T) {
	h := &hookd{}
	h.answer = func(r *rpc.Request) rpc.Work {
		if len(h.seen(r.Method)) == 1 {
			r.Peer.Fail(errors.New("crash"))
			return rpc.Work{}
		}
		return say(yes(r))
	}
	c := dial(t, h, client.Options{SessionID: "s"})
	for stage, ask := range asks() {
		o, err := ask(t.Context(), c)
		require.ErrorIs(t, err, rpc.ErrClosed)
		requireNo(t, stage, o)
		_, err = ask(t.Context(), c)
		require.NoError(t, err)
		require.Len(t, h.seen("hook."+string(stage)), 2, "%s is never sent again", stage)
	}
	hellos := h.seen(protocol.MethodHello)
	require.Len(t, hellos, 1+len(asks()))
	require.Equal(t, hellos[0], hellos[1])
}

// A daemon that was restarted is found, also when it takes a moment.
func TestRestart(t *testing.T) {
	h := &hookd{}
	socket := serve(t, h) + "r"
	stop, err := serveOn(socket, h, nil)
	require.NoError(t, err)
	c, err := client.Dial(t.Context(), client.Options{Name: "tester", Socket: socket})
	require.NoError(t, err)
	defer c.Close()
	stop()
	var again sync.WaitGroup
	again.Go(func() {
		time.Sleep(100 * time.Millisecond) // a start takes its time
		var err error
		if stop, err = serveOn(socket, h, nil); err != nil {
			t.Error(err)
		}
	})
	require.Eventually(t, func() bool { // the end of the old connection may be met first
		v, _ := c.Output(t.Context(), client.Output{Content: "x"})
		return v.Allowed
	}, 10*time.Second, time.Millisecond)
	again.Wait()
	stop()
	require.LessOrEqual(t, len(h.seen(protocol.MethodHello)), 2)
}

// dialer connects to h, or fails as the test says.
type dialer struct {
	h     *hookd
	err   atomic.Pointer[error]
	hang  atomic.Bool // until the context ends
	tries atomic.Int32
	peers []*rpc.Peer
}

func (d *dialer) dial(ctx context.Context) (io.ReadWriteCloser, error) {
	d.tries.Add(1)
	if d.hang.Load() {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	if err := d.err.Load(); err != nil {
		return nil, *err
	}
	here, there := net.Pipe()
	d.peers = append(d.peers, rpc.NewPeer(context.Background(), there, rpc.Options{Handler: d.h}))
	return here, nil
}

// client connects, and closes both ends with the test.
func (d *dialer) client(t *testing.T, o client.Options) *client.Client {
	t.Helper()
	o.Name = "tester"
	c, err := client.DialWith(t.Context(), o, d.dial)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = c.Close()
		d.down(nil)
	})
	return c
}

// down breaks the connection, and all tries from now on fail with err.
func (d *dialer) down(err error) {
	d.err.Store(&err)
	for _, p := range d.peers {
		_ = p.Close()
	}
	synctest.Wait()
}

func TestRedial(t *testing.T) {
	refused := fmt.Errorf("connect: %w", syscall.ECONNREFUSED)
	tests := []struct {
		name   string
		redial time.Duration
		ctx    time.Duration // 0 = no deadline
		err    error
		back   time.Duration // when hookd is there again; 0 = never
		tries  int32
		took   time.Duration
		ok     bool
	}{
		{"gives up", 0, 0, refused, 0, 9, 4550 * time.Millisecond, false},
		{"one try", -1, 0, refused, 0, 1, 0, false},
		{"gives up sooner with the context", 0, 200 * time.Millisecond, refused, 0, 3, 200 * time.Millisecond, false},
		{"comes back", 0, 0, refused, 300 * time.Millisecond, 4, 350 * time.Millisecond, true},
		{"is not ours", 0, 0, fmt.Errorf("x: %w", client.ErrUntrusted), 0, 1, 0, false},
		{"speaks another version", 0, 0, protocol.Errorf(protocol.CodeVersionMismatch, "x"), 0, 1, 0, false},
		{"shuts down", time.Second, 0, protocol.Errorf(protocol.CodeShuttingDown, "x"), 0, 5, 750 * time.Millisecond, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &dialer{h: &hookd{}}
				c := d.client(t, client.Options{Redial: tt.redial})
				d.down(tt.err)
				d.tries.Store(0)
				ctx := t.Context()
				if tt.ctx > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tt.ctx)
					defer cancel()
				}
				if tt.back > 0 {
					time.AfterFunc(tt.back, func() { d.err.Store(nil) })
				}
				began := time.Now()
				v, err := c.Output(ctx, client.Output{Content: "x"})
				require.Equal(t, tt.ok, v.Allowed)
				require.Equal(t, tt.took, time.Since(began))
				require.Equal(t, tt.tries, d.tries.Load())
				if !tt.ok {
					require.ErrorIs(t, err, tt.err)
				}
			})
		})
	}
}

// Many calls that find the connection broken make one new one.
func TestOneRedialForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dialer{h: &hookd{}}
		c := d.client(t, client.Options{})
		d.down(errors.New("gone"))
		d.err.Store(nil)
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				v, err := c.Output(t.Context(), client.Output{Content: "x"})
				require.NoError(t, err)
				require.True(t, v.Allowed)
			})
		}
		wg.Wait()
		require.Equal(t, int32(2), d.tries.Load())
	})
}

// A call whose time is up does not wait for another's try.
func TestRedialOfAnotherCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dialer{h: &hookd{}}
		c := d.client(t, client.Options{})
		d.down(errors.New("gone"))
		d.hang.Store(true)
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := c.Output(t.Context(), client.Output{Content: "x"})
			require.ErrorIs(t, err, client.ErrClosed)
		})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Output(ctx, client.Output{Content: "x"})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, c.Close(), "which ends the try")
		wg.Wait()
		require.Equal(t, int32(2), d.tries.Load())
	})
}

// Over a stream there is no second connection.
func TestNoReconnectOverAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := rude(t, client.Options{Redial: -1}, func(string) string { return "EOF" })
		for range 2 {
			v, err := c.Output(t.Context(), client.Output{Content: "x"})
			require.ErrorIs(t, err, rpc.ErrClosed)
			require.False(t, v.Allowed)
		}
		require.NoError(t, c.Close())
	})
}

// More calls than hookd serves at once wait for their turn instead of being
// refused.
func TestMoreCallsThanHookdServes(t *testing.T) {
	var open, most atomic.Int32
	h := &hookd{answer: func(r *rpc.Request) rpc.Work {
		n := open.Add(1)
		most.Store(max(most.Load(), n))
		return rpc.Work{Run: func(context.Context) ([]byte, error) {
			defer open.Add(-1)
			return []byte(yes(r)), nil
		}}
	}}
	c := dial(t, h, client.Options{})
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			for range 20 {
				v, err := c.BeforeTool(t.Context(), client.BeforeTool{Tool: "bash", Arguments: map[string]int{"n": i}})
				require.NoError(t, err)
				require.True(t, v.Allowed)
				require.Equal(t, fmt.Sprintf(`{"n":%d}`, i), string(v.Arguments))
			}
		})
	}
	wg.Wait()
	require.Len(t, h.seen("hook.before_tool"), 1000)
	// A call may be answered an instant before its place here is free.
	require.LessOrEqual(t, most.Load(), int32(2*4))
}

func TestWaitingForATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := make(chan error, 4)
		h := &hookd{answer: func(*rpc.Request) rpc.Work { return wait(gone) }}
		c := pipe(t, h, client.Options{})
		var wg sync.WaitGroup
		for range 4 { // as many as the welcome says
			wg.Go(func() { _, _ = c.Output(t.Context(), client.Output{Content: "x"}) })
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		v, err := c.Output(ctx, client.Output{Content: "x"})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.False(t, v.Allowed)
		require.Len(t, h.seen("hook.output"), 4)

		wg.Go(func() {
			v, err := c.Output(t.Context(), client.Output{Content: "x"})
			require.ErrorIs(t, err, rpc.ErrClosed)
			require.False(t, v.Allowed)
		})
		synctest.Wait()
		require.NoError(t, c.Close())
		wg.Wait()
	})
}

func TestClose(t *testing.T) {
	asked, gone := make(chan struct{}), make(chan error, 1)
	h := &hookd{answer: func(*rpc.Request) rpc.Work {
		close(asked)
		return wait(gone)
	}}
	c := dial(t, h, client.Options{})
	var wg sync.WaitGroup
	wg.Go(func() {
		<-asked
		_ = c.Close()
	})
	v, err := c.Output(t.Context(), client.Output{Content: "x"})
	require.ErrorIs(t, err, rpc.ErrClosed)
	require.False(t, v.Allowed)
	<-gone
	wg.Wait()
	require.NoError(t, c.Close())
	v, err = c.Output(t.Context(), client.Output{Content: "x"})
	require.ErrorIs(t, err, client.ErrClosed)
	require.False(t, v.Allowed)
	require.Len(t, h.seen("hook.output"), 1)
}
