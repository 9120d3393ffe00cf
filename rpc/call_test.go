package rpc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/protocol"
)

func TestCallWritesOneLine(t *testing.T) {
	p, w := start(t, Options{FirstID: 41})
	big := []byte(`{"a":"` + strings.Repeat("x", 1<<20) + `"}`)
	for i, tt := range []struct {
		method string
		params []byte
		line   string
	}{
		{"hook.hello", nil, `{"jsonrpc":"2.0","id":41,"method":"hook.hello"}`},
		{"m", []byte(`{"n":1.50,"s":"<\u003c"}`), `{"jsonrpc":"2.0","id":42,"method":"m","params":{"n":1.50,"s":"<\u003c"}}`},
		{"m", []byte("{\r\n\t\"n\": 1\n}"), "{\"jsonrpc\":\"2.0\",\"id\":43,\"method\":\"m\",\"params\":{\r \t\"n\": 1 }}"},
		{"q\"\n", big, `{"jsonrpc":"2.0","id":44,"method":"q\"\n","params":` + string(big) + `}`},
	} {
		done := make(chan error)
		go func() {
			got, err := p.Call(t.Context(), tt.method, tt.params)
			if err == nil && string(got) != `{"ok": true}` {
				err = fmt.Errorf("result %s", got)
			}
			done <- err
		}()
		require.Equal(t, tt.line, w.read())
		w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result": {"ok": true}}`, 41+i))
		require.NoError(t, <-done)
	}
}

func TestAnswersOfOnePeer(t *testing.T) {
	const id = "<id>" // of the call
	long := strings.Repeat("x", 5000)
	tests := []struct {
		name, line string
		result     string
		err        error
		noise      []NoiseKind
	}{
		{"null", `{"jsonrpc":"2.0","id":<id>,"result":null}`, "null", nil, nil},
		{"version is missing", `{"id":<id>,"result":{}}`, "{}", nil, nil},
		{"digits stay", `{"jsonrpc":"2.0","id":<id>,"result":{"a":9007199254740993}}`, `{"a":9007199254740993}`, nil, nil},
		{"unknown member", `{"jsonrpc":"2.0","id":<id>,"result":{},"action":"deny"}`, "", ErrGarbage, []NoiseKind{NoiseGarbage}},
		{"result in other letters", `{"jsonrpc":"2.0","id":<id>,"result":{},"Result":{"action":"deny"}}`, "", ErrGarbage, []NoiseKind{NoiseGarbage}},
		{"another version", `{"jsonrpc":"1.0","id":<id>,"result":{}}`, "", ErrGarbage, []NoiseKind{NoiseGarbage}},
		{"error is null", `{"jsonrpc":"2.0","id":<id>,"result":{},"error":null}`, "{}", nil, nil},
		{"carriage return", `{"jsonrpc":"2.0","id":<id>,"result":{}}` + "\r", "{}", nil, []NoiseKind{NoiseCRLF}},
		{"error", `{"jsonrpc":"2.0","id":<id>,"error":{"code":-32601,"message":"no\n","data":{"x":1}}}`, "",
			&protocol.Error{Code: -32601, Message: "no\n", Data: []byte(`{"x":1}`)}, nil},
		{"error beside a null result", `{"jsonrpc":"2.0","id":<id>,"result":null,"error":{"code":1,"message":"x"}}`, "", &protocol.Error{Code: 1, Message: "x"}, nil},

		{"result and error", `{"jsonrpc":"2.0","id":<id>,"result":{},"error":{"code":1,"message":"x"}}`, "", ErrGarbage, []NoiseKind{NoiseGarbage}},
		{"both null", `{"jsonrpc":"2.0","id":<id>,"result":null,"error":null}`, "", ErrGarbage, []NoiseKind{NoiseGarbage}},
		{"error is a string", `{"jsonrpc":"2.0","id":<id>,"error":"x"}`, "", ErrGarbage, []NoiseKind{NoiseGarbage}},
		{"error without code", `{"jsonrpc":"2.0","id":<id>,"error":{"message":"x"}}`, "", ErrGarbage, []NoiseKind{NoiseGarbage}},
		{"error code is a string", `{"jsonrpc":"2.0","id":<id>,"error":{"code":"1","message":"x"}}`, "", ErrGarbage, []NoiseKind{NoiseGarbage}},
		{"neither", `{"jsonrpc":"2.0","id":<id>}`, "", ErrGarbage, []NoiseKind{NoiseGarbage}},
		{"broken", `{"jsonrpc":"2.0","id":<id>,"result":{bad}}`, "", ErrGarbage, []NoiseKind{NoiseGarbage}},
		{"cut", `{"jsonrpc":"2.0","id":<id>,"result":{"a":`, "", ErrGarbage, []NoiseKind{NoiseGarbage}},
		{"two values", `{"jsonrpc":"2.0","id":<id>,"result":{}}{"jsonrpc":"2.0","id":<id>,"result":{}}`, "", ErrGarbage, []NoiseKind{NoiseGarbage}},
		{"invalid UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":<id>,\"result\":\"\xff\"}", "", ErrGarbage, []NoiseKind{NoiseGarbage}},
		{"lone surrogate", `{"jsonrpc":"2.0","id":<id>,"result":"\udc00"}`, "", ErrGarbage, []NoiseKind{NoiseGarbage}},
		{"byte order mark", "\ufeff" + `{"jsonrpc":"2.0","id":<id>,"result":{}}`, "", ErrGarbage, []NoiseKind{NoiseGarbage}},
		{"too deep", `{"jsonrpc":"2.0","result":` + strings.Repeat("[", 128) + strings.Repeat("]", 128) + `,"id":<id>}`, "", ErrGarbage, []NoiseKind{NoiseGarbage}},
		{"name twice", `{"jsonrpc":"2.0","id":<id>,"result":{"action":"deny","action":"continue"}}`, "", ErrDuplicateMember, []NoiseKind{NoiseGarbage}},
		{"result twice", `{"jsonrpc":"2.0","id":<id>,"result":{},"result":{}}`, "", ErrDuplicateMember, []NoiseKind{NoiseGarbage}},
		{"name twice and broken", `{"jsonrpc":"2.0","id":<id>,"result":{"a":1,"a":2},}`, "", ErrGarbage, []NoiseKind{NoiseGarbage}},
		{"name twice and invalid UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":<id>,\"result\":{\"a\":1,\"a\":\"\xff\"}}", "", ErrGarbage, []NoiseKind{NoiseGarbage}},
		{"too long", `{"jsonrpc":"2.0","id":<id>,"result":"` + long + `"}`, "", ErrOversize, []NoiseKind{NoiseOversize}},
		{"too long, id can't be told", `{"jsonrpc":"2.0","result":"` + long + `","id":<id>}`, "", ErrOversize, []NoiseKind{NoiseOversize}},
		{"too long, no JSON", long, "", ErrOversize, []NoiseKind{NoiseOversize}},
	}
	n := &noises{}
	p, w := start(t, Options{Silent: true, OnNoise: n.add, Limits: protocol.Limits{MaxMessageBytes: 4500}})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := len(n.list())
			type outcome struct {
				result string
				err    error
			}
			done := make(chan outcome)
			go func() {
				result, err := p.Call(t.Context(), "m", nil)
				done <- outcome{string(result), err}
			}()
			called := w.read()
			number := strings.TrimSuffix(strings.TrimPrefix(called, `{"jsonrpc":"2.0","id":`), `,"method":"m"}`)
			w.send(strings.ReplaceAll(tt.line, id, number))
			got := <-done
			if tt.err == nil {
				require.NoError(t, got.err)
			} else if want, ok := tt.err.(*protocol.Error); ok {
				require.Equal(t, want, got.err)
			} else {
				require.ErrorIs(t, got.err, tt.err)
			}
			require.Equal(t, tt.result, got.result)
			require.ElementsMatch(t, tt.noise, n.kinds()[before:])
		})
	}
	require.NoError(t, p.Err())
}

func TestWhatIsNotTheAnswer(t *testing.T) {
	n := &noises{}
	p, w := start(t, Options{Silent: true, OnNoise: n.add, Limits: protocol.Limits{MaxMessageBytes: 4500}})
	w.send(`{"jsonrpc":"2.0","id":1,"result":"early"}`)
	n.wait(t, NoiseUnknownID, 1)
	done := make(chan error, 1)
	go func() {
		got, err := p.Call(t.Context(), "m", nil)
		if err == nil && string(got) != `"right"` {
			err = fmt.Errorf("result %s", got)
		}
		done <- err
	}()
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"method":"m"}`, w.read())
	for _, tt := range []struct {
		line string
		kind NoiseKind
	}{
		{`debug`, NoiseGarbage},
		{`{`, NoiseGarbage},
		{`  "id": 1,`, NoiseGarbage},
		{`{"id":1,"id":1,"result":{}}`, NoiseGarbage},
		{`{"id":1,"id":2,"result":{}}`, NoiseGarbage},
		{`{"id":1`, NoiseGarbage},
		{`{"id":1,"method":"m","result":{}}`, NoiseGarbage},
		{`{"id":1,"method":"m",bad`, NoiseGarbage},
		{`{"jsonrpc":"2.0","id":1,"method":7}`, NoiseGarbage},
		{`{"jsonrpc":"2.0","id":2,"result":{}}`, NoiseUnknownID},
		{`{"jsonrpc":"2.0","id":0,"result":{}}`, NoiseUnknownID},
		{`{"id":9007199254740993,"result":{}}`, NoiseUnknownID},
		{`{"jsonrpc":"2.0","id":"1","result":1}`, NoiseUnknownID},
		{`{"jsonrpc":"2.0","id":1.0,"result":1}`, NoiseUnknownID},
		{`{"jsonrpc":"2.0","id":[1],"result":1}`, NoiseUnknownID},
		{`{"jsonrpc":"2.0","id":null,"result":1}`, NoiseUnknownID},
		{`{"jsonrpc":"2.0","result":1}`, NoiseUnknownID},
		{`{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}`, NoiseUnknownID},
		{`{"jsonrpc":"2.0","id":1,"method":"echo"}`, NoiseRequest},
		{`{"id":3,"result":"` + strings.Repeat("x", 5000) + `"}`, NoiseOversize},
		{`{"id":1,"method":"` + strings.Repeat("x", 5000) + `"}`, NoiseOversize},
		{`{"id":null,"method":"m","x":"` + strings.Repeat("x", 5000) + `"}`, NoiseOversize},
	} {
		before := len(n.list())
		w.send(tt.line)
		require.Eventually(t, func() bool { return len(n.list()) > before }, 10*time.Second, 100*time.Microsecond, tt.line)
		require.Equal(t, []NoiseKind{tt.kind}, n.kinds()[before:], tt.line)
		require.Empty(t, done, tt.line)
	}
	for _, want := range []string{"-32601", "-32001", "-32001"} { // requests are answered
		require.Contains(t, w.read(), want)
	}
	w.send(`{"jsonrpc":"2.0","id":1,"result":"right"}`)
	require.NoError(t, <-done)
	w.send(`{"jsonrpc":"2.0","id":1,"result":"again"}`)
	n.wait(t, NoiseDuplicateReply, 1)
}

func TestOversizeWithoutIDFailsAllCalls(t *testing.T) {
	p, w := start(t, Options{Silent: true, Limits: protocol.Limits{MaxMessageBytes: 4500}})
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			_, err := p.Call(t.Context(), "m", nil)
			require.ErrorIs(t, err, ErrOversize)
		})
	}
	for range 5 {
		w.read()
	}
	go func() { _, _ = w.Write([]byte(strings.Repeat("x", 9000) + "\n")) }()
	wg.Wait()
	require.NoError(t, p.Err())
}

func TestAbandonedCall(t *testing.T) {
	n := &noises{}
	p, w := start(t, Options{OnNoise: n.add})
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("hook budget")
	done := make(chan error)
	go func() {
		_, err := p.Call(ctx, "m", nil)
		done <- err
	}()
	w.read()
	cancel(reason)
	require.Equal(t, reason, <-done)
	require.Equal(t, `{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}`, w.read())
	w.send(`{"id":1,"error":{"code":-32800,"message":"cancelled"}}`)
	n.wait(t, NoiseLateReply, 1)
	w.send(`{"id":1,"result":1}`)
	n.wait(t, NoiseDuplicateReply, 1)
	_, err := p.Call(ctx, "m", nil)
	require.ErrorIs(t, err, reason)
	require.ErrorIs(t, err, ErrNotSent, "a context that has ended sends nothing")
	go func() { _, _ = p.Call(t.Context(), "n", nil) }()
	require.Equal(t, `{"jsonrpc":"2.0","id":2,"method":"n"}`, w.read())
}

// A peer that reads and never answers must cost nothing, however often it is asked.
func TestAbandonedCallsLeaveNothing(t *testing.T) {
	const calls = 100_000
	p, w := start(t, Options{})
	go func() { _, _ = io.Copy(io.Discard, w) }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	payload := []byte(`{"a":"` + strings.Repeat("x", 500) + `"}`)
	abandon := func(n int64) {
		var wg sync.WaitGroup
		var given atomic.Int64
		for range 3 {
			wg.Go(func() {
				for given.Load() < n {
					_, err := p.Call(&lateContext{Context: ctx}, "m", payload)
					switch {
					case errors.Is(err, context.Canceled):
						given.Add(1)
					case errors.Is(err, ErrOverloaded):
						time.Sleep(50 * time.Microsecond)
					default:
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		idle := make(chan struct{})
		p.out.whenIdle(func() { close(idle) })
		<-idle
	}
	abandon(calls / 10)
	before := heap()
	abandon(calls)
	require.Less(t, int64(heap())-int64(before), int64(1<<20))
	p.mu.Lock()
	require.Empty(t, p.calls)
	require.LessOrEqual(t, len(p.late), maxLate)
	p.mu.Unlock()
	require.NoError(t, p.Err())
}

// lateContext ends after it was asked the first time, so that a call begins
// and nobody waits for it.
type lateContext struct {
	context.Context
	asked bool
}

func (c *lateContext) Err() error {
	if !c.asked {
		c.asked = true
		return nil
	}
	return c.Context.Err()
}

func TestCallsFailWhenThePeerIsGone(t *testing.T) {
	p, w := start(t, Options{})
	done := make(chan error)
	go func() {
		_, err := p.Call(t.Context(), "m", nil)
		done <- err
	}()
	w.read()
	require.NoError(t, w.Close())
	err := <-done
	require.ErrorIs(t, err, ErrClosed)
	require.ErrorIs(t, err, io.EOF)
	_, err = p.Call(t.Context(), "m", nil)
	require.ErrorIs(t, err, ErrClosed)
	require.ErrorIs(t, p.Notify(t.Context(), "m", nil), ErrClosed)
	require.ErrorIs(t, p.TryNotify("m", nil), ErrClosed)
	require.ErrorIs(t, p.Err(), io.EOF)
}

// A program that answers, without a newline even, and exits must not lose its
// answer, whoever notices its end first.
func TestAnswerAndExit(t *testing.T) {
	for range 1000 {
		in, theirOut, err := os.Pipe()
		require.NoError(t, err)
		theirIn, out, err := os.Pipe()
		require.NoError(t, err)
		p := NewPeer(t.Context(), Stdio(in, out), Options{})
		var wg sync.WaitGroup
		wg.Go(func() {
			for r := bufio.NewReader(theirIn); ; {
				if line, err := r.ReadString('\n'); err != nil || strings.Contains(line, `"id":1`) {
					break
				}
			}
			_, _ = theirOut.WriteString(`{"jsonrpc":"2.0","id":1,"result":"done"}`)
			_ = theirIn.Close()
			_ = theirOut.Close()
		})
		wg.Go(func() { // finds the pipe broken
			for p.TryNotify("event", nil) == nil {
				runtime.Gosched()
			}
		})
		got, err := p.Call(t.Context(), "m", nil)
		require.NoError(t, err)
		require.Equal(t, `"done"`, string(got))
		wg.Wait()
		require.NoError(t, p.Close())
	}
}

func TestClosedStdinEndsThePeer(t *testing.T) {
	in, theirOut, err := os.Pipe()
	require.NoError(t, err)
	defer theirOut.Close()
	theirIn, out, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, theirIn.Close())
	p := NewPeer(t.Context(), Stdio(in, out), Options{})
	defer p.Close()
	_, err = p.Call(t.Context(), "m", nil)
	require.ErrorIs(t, err, ErrClosed)
	require.ErrorContains(t, err, "broken pipe")
}

func TestPeersCallEachOther(t *testing.T) {
	a, b := sockets(t)
	h := handlerFunc(func(r *Request) Work {
		return Work{Run: func(ctx context.Context) ([]byte, error) {
			if string(r.Params) == `{"n":0}` {
				return []byte("0"), nil
			}
			var n int
			_, _ = fmt.Sscanf(string(r.Params), `{"n":%d}`, &n)
			return r.Peer.Call(ctx, "down", fmt.Appendf(nil, `{"n":%d}`, n-1))
		}}
	})
	pa := NewPeer(t.Context(), a, Options{Handler: h})
	defer pa.Close()
	pb := NewPeer(t.Context(), b, Options{Handler: h})
	defer pb.Close()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			got, err := pa.Call(t.Context(), "down", []byte(`{"n":10}`))
			require.NoError(t, err)
			require.Equal(t, "0", string(got))
		})
	}
	wg.Wait()
}

func TestManyCallsAtOnce(t *testing.T) {
	a, b := sockets(t)
	pa := NewPeer(t.Context(), a, Options{MaxQueuedBytes: 64 << 20})
	defer pa.Close()
	pb := NewPeer(t.Context(), b, Options{Handler: newHandler(), MaxQueuedBytes: 64 << 20})
	defer pb.Close()
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			pad := strings.Repeat("x", 1<<(i/2))
			for j := range 50 {
				params := fmt.Sprintf(`{"i":%d,"j":%d,"pad":%q}`, i, j, pad)
				got, err := pa.Call(t.Context(), "echo", []byte(params))
				if err != nil || string(got) != params {
					t.Errorf("%s: %s, %v", params[:20], got, err)
				}
			}
		})
	}
	wg.Wait()
}

// The caller and the read loop may both want to end a call: it has one end,
// and never an empty one.
func TestAnswerRacesTheDeadline(t *testing.T) {
	a, b := sockets(t)
	n := &noises{}
	pa := NewPeer(t.Context(), a, Options{OnNoise: n.add})
	defer pa.Close()
	pb := NewPeer(t.Context(), b, Options{Handler: newHandler()})
	defer pb.Close()
	var answered, late atomic.Int64
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range 1000 {
				params := fmt.Sprintf(`{"call":"%d-%d"}`, i, j)
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(j%50)*2*time.Microsecond)
				got, err := pa.Call(ctx, "echo", []byte(params))
				cancel()
				switch {
				case err == nil && string(got) == params:
					answered.Add(1)
				case errors.Is(err, context.DeadlineExceeded):
					late.Add(1)
				default:
					t.Errorf("%s: %s, %v", params, got, err)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d answered, %d late", answered.Load(), late.Load())
	_, err := pa.Call(t.Context(), "echo", nil) // everything before it has arrived
	require.NoError(t, err)
	require.Empty(t, pa.calls)
	for _, kind := range n.kinds() {
		require.Equal(t, NoiseLateReply, kind)
	}
}

// A huge answer costs the limit and no more, and only the one call.
func TestHugeAnswer(t *testing.T) {
	p, w := start(t, Options{Silent: true})
	for range 2 {
		done := make(chan error, 1)
		go func() {
			_, err := p.Call(t.Context(), "m", nil)
			done <- err
		}()
		called := w.read()
		piece := []byte(strings.Repeat("x", 64<<10))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := w.Write([]byte(strings.TrimSuffix(called, `,"method":"m"}`) + `,"result":"`))
		require.NoError(t, err)
		for range 64 << 20 / len(piece) {
			_, err := w.Write(piece)
			require.NoError(t, err)
		}
		require.ErrorIs(t, <-done, ErrOversize)
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(20<<20))
		w.send(`"}`)
	}
	require.NoError(t, p.Err())
}

// A limit ends a call with its own cause, and leaves no trace in the next one.
func TestCallWithinALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		p := NewPeer(t.Context(), ours, Options{})
		defer p.Close()
		w := bufio.NewReader(theirs)
		go func() {
			for {
				line, err := w.ReadString('\n')
				switch {
				case err != nil:
					return
				case strings.Contains(line, `"quick"`):
					var id int
					_, _ = fmt.Sscanf(line, `{"jsonrpc":"2.0","id":%d`, &id)
					_, _ = fmt.Fprintf(theirs, `{"jsonrpc":"2.0","id":%d,"result":{}}`+"\n", id)
				}
			}
		}()
		late, gone := errors.New("the hook's time is over"), errors.New("the agent went away")
		for range 3 { // the timer is used again
			began := time.Now()
			_, err := p.CallWithin(t.Context(), 5*time.Second, late, "slow", nil)
			require.Equal(t, late, err)
			require.Equal(t, 5*time.Second, time.Since(began))

			answer, err := p.CallWithin(t.Context(), 5*time.Second, late, "quick", nil)
			require.NoError(t, err)
			require.Equal(t, "{}", string(answer))
			time.Sleep(10 * time.Second) // longer than its limit

			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, gone)
			_, err = p.CallWithin(ctx, 5*time.Second, late, "slow", nil)
			require.Equal(t, gone, err, "what ends first counts")
			_, err = p.CallWithin(ctx, 5*time.Second, late, "slow", nil)
			require.ErrorIs(t, err, gone)
			require.ErrorIs(t, err, ErrNotSent)
			cancel()
		}
		require.NoError(t, theirs.Close())
	})
}
