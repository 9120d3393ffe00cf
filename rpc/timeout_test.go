package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSlowLineCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, w := startPiped(t, Options{Handler: newHandler()})
		time.Sleep(time.Hour) // silence is fine
		require.NoError(t, p.Err())
		begin := time.Now()
		for _, c := range request(1, "echo", `{}`) {
			if _, err := w.Write([]byte(string(c))); err != nil {
				break
			}
			time.Sleep(time.Second)
		}
		<-p.Done()
		require.ErrorIs(t, p.Err(), ErrSlowLine)
		require.InDelta(t, 10*time.Second, time.Since(begin), float64(time.Second))
	})
}

func TestLineThatIsJustInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, w := startPiped(t, Options{Handler: newHandler()})
		line := request(1, "echo", `{}`) + "\n"
		for range 3 {
			_, err := w.Write([]byte(line[:5]))
			require.NoError(t, err)
			time.Sleep(10*time.Second - 1)
			_, err = w.Write([]byte(line[5:]))
			require.NoError(t, err)
			w.read()
			time.Sleep(time.Minute)
		}
		require.NoError(t, p.Err())
	})
}

func TestSlowOversizedLineCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := Options{Handler: newHandler()}
		o.Limits.MaxMessageBytes = 100
		p, w := startPiped(t, o)
		_, err := w.Write([]byte(strings.Repeat("x", 150)))
		require.NoError(t, err)
		require.Contains(t, w.read(), "-32001")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.ErrorIs(t, p.Err(), ErrSlowLine)
	})
}

func TestUnreadAnswersClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandler()
		p, w := startPiped(t, Options{Handler: h})
		w.send(request(1, "slow", `{}`), request(2, "echo", `{}`))
		time.Sleep(5*time.Second - 1)
		synctest.Wait()
		require.NoError(t, p.Err())
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.ErrorIs(t, p.Err(), ErrSlowReader)
		require.ErrorIs(t, <-h.causes, ErrSlowReader)
	})
}

func TestTooManyUnreadAnswersClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, w := startPiped(t, Options{Handler: newHandler(), MaxQueuedBytes: 1000})
		big := request(1, "echo", `{"a":"`+strings.Repeat("x", 2000)+`"}`)
		w.send(big) // is being written
		w.send(big) // may wait although it is larger than the limit
		synctest.Wait()
		require.NoError(t, p.Err())
		w.send(request(1, "echo", `{}`))
		<-p.Done()
		require.ErrorIs(t, p.Err(), ErrSlowReader)
		require.ErrorIs(t, p.Err(), ErrOverloaded)
	})
}

func TestTooManyUnreadErrorsClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, w := startPiped(t, Options{MaxQueuedBytes: 1000})
		for p.Err() == nil {
			_, _ = w.Write([]byte("garbage\n"))
			synctest.Wait()
		}
		require.ErrorIs(t, p.Err(), ErrSlowReader)
		require.ErrorIs(t, p.Err(), ErrOverloaded)
	})
}

func TestCallTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &noises{}
		p, w := startPiped(t, Options{OnNoise: n.add})
		budget := errors.New("hook budget")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Second, budget)
		defer cancel()
		done := make(chan error)
		go func() {
			_, err := p.Call(ctx, "m", nil)
			done <- err
		}()
		w.read()
		begin := time.Now()
		require.Equal(t, budget, <-done)
		require.Equal(t, 5*time.Second, time.Since(begin))
		require.Contains(t, w.read(), cancelMethod)
		require.Empty(t, p.calls, "nothing is left of it, without a line from the peer")
		time.Sleep(300 * time.Millisecond)
		w.send(`{"jsonrpc":"2.0","id":1,"result":{}}`)
		synctest.Wait()
		require.Equal(t, []NoiseKind{NoiseLateReply}, n.kinds())
	})
}

// A call may be given up while a line is half read.
func TestGivingUpKeepsTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, w := startPiped(t, Options{})
		kept := make(chan string)
		go func() {
			got, err := p.Call(t.Context(), "kept", nil)
			require.NoError(t, err)
			kept <- string(got)
		}()
		w.read()
		_, err := w.Write([]byte(`{"jsonrpc":"2.0","id":1,"res`))
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		go func() { _, _ = p.Call(ctx, "given up", nil) }()
		w.read()
		w.read() // its cancel
		w.send(`ult":"whole"}`)
		require.Equal(t, `"whole"`, <-kept)
	})
}

// A call that was never written needs no cancel, and its caller waits no
// longer than it wants to.
func TestCallToOneThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, w := startPiped(t, Options{WriteTimeout: time.Hour, MaxQueuedBytes: 200})
		go func() { _ = p.Notify(t.Context(), "first", nil) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		_, err := p.Call(ctx, "withdrawn", nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(begin))
		require.NoError(t, p.TryNotify("second", []byte(`{"a":"`+strings.Repeat("x", 300)+`"}`)))
		_, err = p.Call(t.Context(), "too much", nil)
		require.ErrorIs(t, err, ErrOverloaded)
		require.ErrorIs(t, p.TryNotify("too much", nil), ErrOverloaded)
		require.Contains(t, w.read(), "first")
		require.Contains(t, w.read(), "second")
		synctest.Wait()
		require.Empty(t, p.calls)
		require.NoError(t, p.Err())
	})
}

func TestCallsOvertakeNotifications(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, w := startPiped(t, Options{Handler: newHandler()})
		written := make(chan error, 3)
		notify := func(ctx context.Context, method string) {
			go func() { written <- p.Notify(ctx, method, []byte(`{"pad":"`+strings.Repeat("x", patientBatch)+`"}`)) }()
			synctest.Wait()
		}
		ctx, cancel := context.WithCancel(t.Context())
		notify(t.Context(), "one")
		notify(ctx, "withdrawn")
		notify(t.Context(), "two")
		go func() { _, _ = p.Call(t.Context(), "call", nil) }()
		synctest.Wait()
		w.send(request(1, "echo", `{}`))
		synctest.Wait()
		require.Empty(t, written)
		cancel()
		require.ErrorIs(t, <-written, context.Canceled)
		for _, want := range []string{"one", "call", `"result"`, "two"} {
			require.Contains(t, w.read(), want)
		}
		require.NoError(t, <-written)
		require.NoError(t, <-written)
	})
}

// What has begun is finished: half a line would end the stream.
func TestNotifyThatHasBegunIsNotWithdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, w := startPiped(t, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.Notify(ctx, "m", nil) }()
		_, err := io.ReadFull(w.Conn, make([]byte, 5))
		require.NoError(t, err)
		cancel()
		synctest.Wait()
		require.Empty(t, done)
		require.Equal(t, `nrpc":"2.0","method":"m"}`, w.read())
		require.NoError(t, <-done)
		require.ErrorIs(t, p.Notify(ctx, "m", nil), context.Canceled)
	})
}

func TestNotifyAll(t *testing.T) {
	p, w := start(t, Options{})
	large := []byte(`{"a":"` + strings.Repeat("x", copyBelow) + `"}`)
	done := make(chan error, 1)
	go func() { done <- p.NotifyAll(t.Context(), "m", []byte(`{"n":1}`), large, nil, large) }()
	for _, want := range []string{`,"params":{"n":1}`, `,"params":` + string(large), ``, `,"params":` + string(large)} {
		require.Equal(t, `{"jsonrpc":"2.0","method":"m"`+want+`}`, w.read())
	}
	require.NoError(t, <-done)
}

func TestNotificationFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &noises{}
		h := newHandler()
		_, w := startPiped(t, Options{Handler: h, OnNoise: n.add, MaxNotifications: 1000})
		for range 3 {
			for range 1500 {
				w.send(notification("hook.progress", `{}`))
			}
			w.send(request(1, "echo", `{}`))
			w.read()
			time.Sleep(time.Second)
		}
		require.Equal(t, []NoiseKind{NoiseNotificationFlood, NoiseNotificationFlood, NoiseNotificationFlood}, n.kinds())
		require.Len(t, h.all(), 3003)
	})
}

func TestCloseEndsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandler()
		p, w := startPiped(t, Options{Handler: h})
		w.send(request(1, "slow", `{}`))
		results := make(chan error, 3)
		go func() { results <- p.Notify(t.Context(), "being written", nil) }()
		synctest.Wait()
		go func() { results <- p.Notify(t.Context(), "queued", nil) }()
		go func() {
			_, err := p.Call(t.Context(), "m", nil)
			results <- err
		}()
		synctest.Wait()
		require.NoError(t, p.Close())
		for range 3 {
			require.ErrorIs(t, <-results, ErrClosed)
		}
		require.ErrorIs(t, <-h.causes, ErrShutdown)
		require.NoError(t, p.Close(), "again")
		require.NoError(t, p.Shutdown(t.Context()))
	})
}

func TestShutdownWaitsForTheWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, w := startPiped(t, Options{Handler: newHandler()})
		w.send(request(1, "echo", `{}`))
		synctest.Wait()
		done := make(chan error, 1)
		go func() { done <- p.Shutdown(t.Context()) }()
		time.Sleep(time.Second)
		require.Empty(t, done)
		require.Contains(t, w.read(), `"result"`)
		require.NoError(t, <-done)
	})
}

// failing is a listener whose accept fails so many times.
type failing struct {
	err   error
	times int
	ended chan struct{}
	when  []time.Time
}

func (f *failing) Accept() (net.Conn, error) {
	f.when = append(f.when, time.Now())
	if f.times--; f.times >= 0 {
		return nil, f.err
	}
	<-f.ended
	return nil, net.ErrClosed
}

func (f *failing) Close() error {
	select {
	case <-f.ended:
	default:
		close(f.ended)
	}
	return nil
}

func (f *failing) Addr() net.Addr { return nil }

// Whoever answers is told when the answer was not written, once, for whatever
// reason.
func TestUndelivered(t *testing.T) {
	for name, test := range map[string]struct {
		inline bool
		ends   func(p *Peer, w *wire, release func())
		lost   []int
		reason error
	}{
		"read":     {true, func(*Peer, *wire, func()) {}, nil, nil},
		"not read": {true, func(*Peer, *wire, func()) { time.Sleep(6 * time.Second) }, []int{1, 2, 3}, ErrSlowReader},
		"gone":     {false, func(_ *Peer, w *wire, release func()) { w.Close(); release() }, []int{1, 2, 3}, ErrClosed},
		"shut": {false, func(p *Peer, _ *wire, release func()) {
			p.Fail(ErrShutdown)
			synctest.Wait()
			release()
		}, []int{1, 2, 3}, ErrShutdown},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var lost []int
				release := make(chan struct{})
				p, w := startPiped(t, Options{Handler: handlerFunc(func(r *Request) Work {
					var n int
					_, err := fmt.Sscan(r.Method, &n)
					require.NoError(t, err)
					return Work{
						Inline: test.inline,
						Run: func(context.Context) ([]byte, error) {
							if !test.inline {
								<-release
							}
							return []byte(`{}`), nil
						},
						Undelivered: func(reason error) {
							mu.Lock()
							defer mu.Unlock()
							lost = append(lost, n)
							require.ErrorIs(t, reason, test.reason)
						},
					}
				})})
				for n := range 3 {
					w.send(request(n+1, fmt.Sprint(n+1), `{}`))
				}
				synctest.Wait()
				if test.lost == nil {
					for range 3 {
						w.read()
					}
				}
				test.ends(p, w, func() { close(release) })
				require.NoError(t, p.Close())
				synctest.Wait()
				mu.Lock()
				defer mu.Unlock()
				slices.Sort(lost)
				require.Equal(t, test.lost, lost)
			})
		})
	}
}

// Whoever reads an answer and leaves at once has had it.
func TestReadAndGoneIsDelivered(t *testing.T) {
	for range 200 {
		var lost atomic.Int64
		p, w := start(t, Options{Handler: handlerFunc(func(*Request) Work {
			return Work{
				Inline:      true,
				Run:         func(context.Context) ([]byte, error) { return []byte(`{}`), nil },
				Undelivered: func(error) { lost.Add(1) },
			}
		})})
		w.send(request(1, "m", `{}`))
		w.read()
		require.NoError(t, w.Close())
		<-p.Done()
		require.NoError(t, p.Close())
		require.Zero(t, lost.Load())
	}
}
