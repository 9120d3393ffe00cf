package serve

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/rpc"
)

func TestCalls(t *testing.T) {
	p := start(t, &configured{}, Options{})
	require.Equal(t, `{"action":"continue"}`, ask(t, p, "hook.after_tool", `{"tool":"bash","arguments":{},"result":{"content":"x"},"unknown":[1]}`))

	e := refused(t, p, "hook.before_llm", `{"messages":[]}`)
	require.Equal(t, protocol.CodeMethodNotFound, e.Code, "a stage that the hook does not handle")
	require.Equal(t, protocol.CodeMethodNotFound, refused(t, p, "tools/call", `{}`).Code)
	require.Equal(t, protocol.CodeMethodNotFound, refused(t, p, protocol.MethodEvent, `{}`).Code, "an event has no answer")

	e = refused(t, p, beforeTool, `{"tool":"bash","arguments":[]}`)
	require.Equal(t, protocol.CodeInvalidParams, e.Code)
	require.JSONEq(t, `{"path":"arguments"}`, string(e.Data))
}

// A stage that is sent as a notification is not judged: nobody could read the
// answer.
func TestStageWithoutAnID(t *testing.T) {
	var calls atomic.Int32
	p := start(t, intercept(func(context.Context, *protocol.Request) (protocol.Decision, error) {
		calls.Add(1)
		return hook.Continue(), nil
	}), Options{})
	require.NoError(t, p.Notify(t.Context(), beforeTool, []byte(bash)))
	ask(t, p, beforeTool, bash)
	require.EqualValues(t, 1, calls.Load())
}

func TestUnreadableLinesCostNothing(t *testing.T) {
	near, far := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- Serve(context.Background(), far, &configured{}, Options{}) }()
	go func() {
		_, _ = io.WriteString(near, "{bad}\n"+`{"jsonrpc":"2.0","id":7,"method":"hook.before_tool","params":`+bash+"}\n")
	}()
	answers := make([]byte, 4096)
	n, err := near.Read(answers)
	require.NoError(t, err)
	require.Contains(t, string(answers[:n]), "-32700")
	n, err = near.Read(answers)
	require.NoError(t, err)
	require.Equal(t, `{"jsonrpc":"2.0","id":7,"result":{"action":"continue"}}`+"\n", string(answers[:n]))
	require.NoError(t, near.Close())
	require.NoError(t, <-served)
}

func TestErrorsAndPanicsAreAnswered(t *testing.T) {
	l := &recorder{}
	p := start(t, intercept(func(_ context.Context, req *protocol.Request) (protocol.Decision, error) {
		switch req.Tool() {
		case "fail":
			return hook.Continue(), errors.New("no database")
		case "panic":
			panic("boom")
		}
		return hook.Ask("sure?"), nil
	}), Options{Log: l})
	e := refused(t, p, beforeTool, `{"tool":"fail","arguments":{}}`)
	require.Equal(t, &protocol.Error{Code: protocol.CodeInternal, Message: "no database"}, e)
	require.Empty(t, l.String())

	e = refused(t, p, beforeTool, `{"tool":"panic","arguments":{}}`)
	require.Equal(t, &protocol.Error{Code: protocol.CodeInternal, Message: "panic: boom"}, e)
	require.Contains(t, l.String(), "panic in before_tool: boom\n")
	require.Contains(t, l.String(), "call_test.go", "the stack")

	require.Equal(t, `{"action":"ask","reason":"sure?"}`, ask(t, p, beforeTool, bash))
}

// What a hook gives as JSON of many lines must not become many messages.
func TestAnAnswerIsOneLine(t *testing.T) {
	p := start(t, intercept(func(context.Context, *protocol.Request) (protocol.Decision, error) {
		return protocol.Decision{Action: protocol.ActionModify, Subject: jsontext.Value("{\n  \"tool\": \"ls\",\r\n  \"arguments\": {\"n\": 1.0}\n}")}, nil
	}), Options{})
	require.Equal(t, `{"action":"modify","call":{"tool":"ls","arguments":{"n":1.0}}}`, ask(t, p, beforeTool, bash))
}

// waiter is a hook that waits for the end of its context and says why it came.
type waiter struct {
	entered chan struct{} // gets a value per call
	causes  chan error
}

func newWaiter() *waiter {
	return &waiter{make(chan struct{}, 16), make(chan error, 16)}
}

func (w *waiter) Intercept(ctx context.Context, _ *protocol.Request) (protocol.Decision, error) {
	w.entered <- struct{}{}
	<-ctx.Done()
	w.causes <- context.Cause(ctx)
	return hook.Continue(), ctx.Err()
}

func (w *waiter) Approve(ctx context.Context, req *protocol.Request) (protocol.Approval, error) {
	_, err := w.Intercept(ctx, req)
	return protocol.Approval{Approved: true}, err
}

func TestDeadline(t *testing.T) {
	for _, method := range []string{beforeTool, "hook.approve_tool"} {
		synctest.Test(t, func(t *testing.T) {
			w := newWaiter()
			p := start(t, w, Options{})
			begin := time.Now()
			answered := make(chan error, 1)
			go func() {
				_, err := p.Call(t.Context(), method, []byte(`{"tool":"bash","arguments":{},"deadline_ms":5000}`))
				answered <- err
			}()
			require.ErrorIs(t, <-w.causes, errDeadline)
			require.Equal(t, 5*time.Second, time.Since(begin))
			require.Equal(t, &protocol.Error{Code: protocol.CodeCancelled, Message: errDeadline.Error()}, <-answered)
		})
	}
}

// A hook that gives up at the deadline must not be quicker than the caller: it
// would be blamed for an error where it is a timeout.
func TestGivingUpDoesNotOvertakeTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := make(chan rpc.NoiseKind, 1)
		p := connect(t, newWaiter(), Options{}, rpc.Options{OnNoise: func(n rpc.Noise) { late <- n.Kind }})
		// What is less than a millisecond is cut off on the way to the hook.
		const limit = 5*time.Second + 999*time.Microsecond
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		begin := time.Now()
		_, err := p.Call(ctx, beforeTool, []byte(`{"tool":"bash","arguments":{},"deadline_ms":5000}`))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		// Then it comes at once: the caller learns that there is room for a call.
		require.Equal(t, rpc.NoiseLateReply, <-late)
		require.Equal(t, limit, time.Since(begin))
	})
}

// The hook sees the same request as inside hookd: its time is Timeout.
func TestTimeoutIsTheDeadline(t *testing.T) {
	var seen *protocol.Request
	p := start(t, intercept(func(ctx context.Context, req *protocol.Request) (protocol.Decision, error) {
		seen = req
		_, limited := ctx.Deadline()
		return protocol.Decision{Warnings: []string{map[bool]string{true: "limited", false: "unlimited"}[limited]}}, nil
	}), Options{})
	require.Contains(t, ask(t, p, beforeTool, `{"tool":"bash","arguments":{},"deadline_ms":1500}`), `"limited"`)
	require.Equal(t, 1500*time.Millisecond, seen.Timeout)
	require.Zero(t, seen.DeadlineMS)
	require.Contains(t, ask(t, p, beforeTool, bash), `"unlimited"`)
	require.Zero(t, seen.Timeout)
}

func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaiter()
		p := start(t, w, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-w.entered; cancel() }()
		_, err := p.Call(ctx, beforeTool, []byte(bash))
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, <-w.causes, rpc.ErrCancelled)
	})
}

func TestNoMoreCallsAtOnceThanSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaiter()
		p := start(t, w, Options{MaxInFlight: 2})
		ctx, cancel := context.WithCancel(t.Context())
		for range 2 {
			go func() { _, _ = p.Call(ctx, beforeTool, []byte(bash)) }()
		}
		<-w.entered
		<-w.entered
		// The third waits, and its deadline holds while it does.
		e := refused(t, p, beforeTool, `{"tool":"bash","arguments":{},"deadline_ms":300}`)
		require.Equal(t, protocol.CodeCancelled, e.Code)
		require.Empty(t, w.entered)
		cancel()
		synctest.Wait()
		e = refused(t, p, beforeTool, `{"tool":"bash","arguments":{},"deadline_ms":300}`)
		require.Equal(t, protocol.CodeCancelled, e.Code)
		require.Len(t, w.entered, 1)
	})
}

// quick is a hook that answers on the read loop.
type quick struct{ goroutines chan string }

func (quick) Quick() {}

func (q quick) Intercept(context.Context, *protocol.Request) (protocol.Decision, error) {
	stack := make([]byte, 64)
	q.goroutines <- string(stack[:runtime.Stack(stack, false)])
	return hook.Continue(), nil
}

func TestQuickHooksAnswerOnTheReadLoop(t *testing.T) {
	q := quick{make(chan string, 2)}
	p := start(t, q, Options{})
	for range 2 {
		ask(t, p, beforeTool, `{"tool":"bash","arguments":{},"deadline_ms":1}`)
	}
	number := func(stack string) string { return strings.Fields(stack)[1] }
	require.Equal(t, number(<-q.goroutines), number(<-q.goroutines))
}

func TestTheEndOfTheContextEndsServe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		reason := errors.New("enough")
		ctx, cancel := context.WithCancelCause(context.Background())
		w := newWaiter()
		served := make(chan error, 1)
		go func() { served <- Serve(ctx, far, w, Options{}) }()
		p := rpc.NewPeer(context.Background(), near, rpc.Options{})
		defer p.Close()
		go func() { _, _ = p.Call(context.Background(), beforeTool, []byte(bash)) }()
		<-w.entered
		cancel(reason)
		require.ErrorIs(t, <-served, reason)
		require.ErrorIs(t, <-w.causes, reason)
	})
}

func TestServeOfWhatCannotBeServedClosesTheStream(t *testing.T) {
	near, far := net.Pipe()
	require.ErrorContains(t, Serve(t.Context(), far, 7, Options{}), "serve hook: int fills no role")
	_, err := near.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)

	_, far = net.Pipe()
	require.ErrorContains(t, Serve(t.Context(), far, &configured{}, Options{MaxInFlight: -1}), "MaxInFlight is -1")
}

// largeRequest is a model request of a megabyte.
func largeRequest(t testing.TB) protocol.Object {
	params := `{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat(`lorem \"ipsum\" `, 70_000) + `"}],"deadline_ms":5000}`
	members, err := protocol.DecodeObject([]byte(params), 0)
	require.NoError(t, err)
	return members
}

type noModel struct{ hook.NoLLM }

// A hook that lets a model request pass costs as much for a megabyte as for
// nothing: what it does not look at is not decoded.
func TestALargeRequestIsNotDecoded(t *testing.T) {
	s, err := newServer(noModel{}, Options{})
	require.NoError(t, err)
	members := largeRequest(t)
	call := func() {
		answer, err := s.call(t.Context(), s.table.Stage(protocol.StageBeforeLLM), members)
		require.NoError(t, err)
		require.Equal(t, `{"action":"continue"}`, string(answer))
	}
	const runs = 100
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		call()
	}
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(runs*8<<10), "bytes for %d calls", runs)
}

func BenchmarkLargeRequest(b *testing.B) {
	s, err := newServer(noModel{}, Options{})
	require.NoError(b, err)
	members := largeRequest(b)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = s.call(context.Background(), s.table.Stage(protocol.StageBeforeLLM), members)
	}
}

// Whatever arrives, the server does not break, and answers with one line of
// JSON or an error.
func FuzzAccept(f *testing.F) {
	for _, stage := range protocol.Stages() {
		f.Add(stage.Method(), `{"tool":"bash","arguments":{"a":1},"messages":[],"message":{},"request":{},"prompt":{},"response":{},"result":{},"output":{},"meta":{"cwd":"/"},"deadline_ms":1}`)
	}
	f.Add(protocol.MethodHello, `{"name":"x","version":1,"stages":["stop"],"events":["*"],"config":{"a":1},"limits":{}}`)
	f.Add(protocol.MethodEvent, `{"kind":"decision","meta":{"a":1},"time":"2026-01-02T15:04:05Z","payload":{},"seq":1,"missed":2}`)
	f.Fuzz(func(t *testing.T, method, params string) {
		members, err := protocol.DecodeObject([]byte(params), 0)
		if err != nil {
			return // params that would not come through
		}
		s, err := newServer(struct {
			*configured
			observe
		}{&configured{}, func(context.Context, *hook.Event) error { return nil }}, Options{Log: io.Discard})
		require.NoError(t, err)
		r := &rpc.Request{Method: method, Members: members, Params: jsontext.Value(params)}
		if method != protocol.MethodEvent {
			r.ID = rpc.NumberID(1)
		}
		if w := s.Accept(r); w.Run != nil {
			answer, err := w.Run(t.Context())
			if err == nil {
				require.NoError(t, protocol.CheckValue(answer, 0))
				require.NotContains(t, string(answer), "\n")
			}
		}
		close(s.events.queue)
		s.events.run(t.Context())
	})
}
