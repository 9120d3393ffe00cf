package rpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/hookd/hookd/protocol"
)

func TestRequestArrivesByteForByte(t *testing.T) {
	got := make(chan *Request, 1)
	_, w := start(t, Options{Handler: handlerFunc(func(r *Request) Work {
		got <- r
		return Work{Inline: true, Run: func(context.Context) ([]byte, error) { return r.Params, nil }}
	})})
	params := "{ \"n\":9007199254740993.10,\t\"z\":{\"b\":1,\"a\":\"<\\u003c\\/\"},\"\\u0061\" : [ ] }"
	line := `{"method":"m" , "params" : ` + params + `,"id":"x\u0079","jsonrpc":"2.0"}`
	w.send(line)
	require.Equal(t, `{"jsonrpc":"2.0","id":"xy","result":`+params+`}`, w.read())
	r := <-got
	require.Equal(t, "m", r.Method)
	require.Equal(t, StringID("xy"), r.ID)
	require.False(t, r.Notification())
	require.Equal(t, len(line), r.Size)
	require.Equal(t, params, string(r.Params))
	require.Equal(t, []string{"n", "z", "a"}, []string{r.Members[0].Name, r.Members[1].Name, r.Members[2].Name})
	require.Equal(t, "9007199254740993.10", string(r.Members.Get("n")))
	require.Equal(t, "[ ]", string(r.Members.Get("a")))
}

func TestParamsMayBeAbsentOrEmpty(t *testing.T) {
	got := make(chan *Request, 2)
	_, w := start(t, Options{Handler: handlerFunc(func(r *Request) Work {
		got <- r
		return Work{}
	})})
	w.send(`{"jsonrpc":"2.0","id":0,"method":"m"}`, request(1, "m", "{}"))
	r := <-got
	require.Nil(t, r.Params)
	require.Nil(t, r.Members)
	require.Equal(t, NumberID(0), r.ID)
	require.False(t, r.Notification(), "0 is an id")
	r = <-got
	require.Equal(t, "{}", string(r.Params))
	require.NotNil(t, r.Members)
	require.Empty(t, r.Members)
}

func TestBadLinesAreAnsweredAndTheConnectionLivesOn(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	tests := []struct {
		name, line string
		code       int
		id         string
		data       string
	}{
		{"not JSON", `hello`, -32700, "null", ""},
		{"broken object", `{bad}`, -32700, "null", ""},
		{"cut", `{"jsonrpc":"2.0","id":1,"method":"echo"`, -32700, "null", ""},
		{"NUL", "\x00", -32700, "null", ""},
		{"NUL inside", "{\"jsonrpc\":\"2.0\",\x00\"id\":1,\"method\":\"echo\"}", -32700, "null", ""},
		{"raw control character", request(1, "echo", "{\"a\":\"\x01\"}"), -32700, "null", ""},
		{"invalid UTF-8", request(1, "echo", "{\"a\":\"\xff\"}"), -32700, "null", ""},
		{"lone surrogate", request(1, "echo", `{"a":"\ud800"}`), -32700, "null", ""},
		{"byte order mark", "\ufeff" + request(1, "echo", `{}`), -32700, "null", ""},
		{"two values", request(1, "echo", `{}`) + request(2, "echo", `{}`), -32700, "null", ""},
		{"data behind", request(1, "echo", `{}`) + ` x`, -32700, "null", ""},
		{"name twice", `{"jsonrpc":"2.0","id":1,"id":2,"method":"echo"}`, -32700, "null", ""},
		{"name twice in params", request(1, "echo", `{"a":1,"a":2}`), -32700, "null", ""},
		{"name twice, escaped", request(1, "echo", `{"a":1,"\u0061":2}`), -32700, "null", ""},
		{"name twice deep in params", request(1, "echo", `{"x":[{"a":1,"a":2}]}`), -32700, "null", ""},
		{"too deep", request(1, "echo", `{"a":`+deep(127)+`}`), -32700, "null", ""},
		{"far too deep", deep(100000), -32700, "null", ""},

		{"batch", `[{"jsonrpc":"2.0","id":1,"method":"echo"},{"jsonrpc":"2.0","id":2,"method":"echo"}]`, -32600, "null", ""},
		{"empty batch", `[]`, -32600, "null", ""},
		{"number", `5`, -32600, "null", ""},
		{"empty object", `{}`, -32600, "null", `{"path":"jsonrpc"}`},
		{"no version", `{"id":7,"method":"echo"}`, -32600, "7", `{"path":"jsonrpc"}`},
		{"other version", `{"jsonrpc":"1.0","id":7,"method":"echo"}`, -32600, "7", `{"path":"jsonrpc"}`},
		{"version is a number", `{"jsonrpc":2.0,"id":7,"method":"echo"}`, -32600, "7", `{"path":"jsonrpc"}`},
		{"no method", `{"jsonrpc":"2.0","id":"a"}`, -32600, `"a"`, `{"path":"method"}`},
		{"method is a number", `{"jsonrpc":"2.0","id":7,"method":7}`, -32600, "7", `{"path":"method"}`},
		{"method is empty", `{"jsonrpc":"2.0","id":7,"method":""}`, -32600, "7", `{"path":"method"}`},
		{"method and result", `{"jsonrpc":"2.0","id":7,"method":"echo","result":{}}`, -32600, "7", `{"path":"method"}`},
		{"unknown member", `{"jsonrpc":"2.0","id":7,"method":"echo","Params":{}}`, -32600, "7", `{"path":"Params"}`},
		{"id null", `{"jsonrpc":"2.0","id":null,"method":"echo"}`, -32600, "null", `{"path":"id"}`},
		{"id fraction", `{"jsonrpc":"2.0","id":1.5,"method":"echo"}`, -32600, "null", `{"path":"id"}`},
		{"id 1.0", `{"jsonrpc":"2.0","id":1.0,"method":"echo"}`, -32600, "null", `{"path":"id"}`},
		{"id 1e0", `{"jsonrpc":"2.0","id":1e0,"method":"echo"}`, -32600, "null", `{"path":"id"}`},
		{"id negative", `{"jsonrpc":"2.0","id":-1,"method":"echo"}`, -32600, "null", `{"path":"id"}`},
		{"id over 2^53-1", `{"jsonrpc":"2.0","id":9007199254740992,"method":"echo"}`, -32600, "null", `{"path":"id"}`},
		{"id over 2^64", `{"jsonrpc":"2.0","id":18446744073709551617,"method":"echo"}`, -32600, "null", `{"path":"id"}`},
		{"id of 129 bytes", `{"jsonrpc":"2.0","id":"` + strings.Repeat("a", 129) + `","method":"echo"}`, -32600, "null", `{"path":"id"}`},
		{"id of 1 MiB", `{"jsonrpc":"2.0","id":"` + strings.Repeat("a", 1<<20) + `","method":"echo"}`, -32600, "null", `{"path":"id"}`},
		{"id object", `{"jsonrpc":"2.0","id":{},"method":"echo"}`, -32600, "null", `{"path":"id"}`},
		{"id true", `{"jsonrpc":"2.0","id":true,"method":"echo"}`, -32600, "null", `{"path":"id"}`},

		{"params array", request(7, "echo", `[1]`), -32602, "7", `{"path":"params"}`},
		{"params null", request(7, "echo", `null`), -32602, "7", `{"path":"params"}`},
		{"params string", request(7, "echo", `"x"`), -32602, "7", `{"path":"params"}`},
		{"unknown method", request(7, "nope", `{}`), -32601, "7", ""},
	}
	p, w := start(t, Options{Handler: newHandler()})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w.send(tt.line, request(`"next"`, "echo", `{"still":"alive"}`))
			answer := w.read()
			want := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":`, tt.id, tt.code)
			require.True(t, strings.HasPrefix(answer, want), "%s\n%s", want, answer)
			if tt.data != "" {
				require.True(t, strings.HasSuffix(answer, `,"data":`+tt.data+`}}`), answer)
			}
			require.Equal(t, `{"jsonrpc":"2.0","id":"next","result":{"still":"alive"}}`, w.read())
		})
	}
	require.NoError(t, p.Err())
	require.Zero(t, p.InFlight())
}

func TestGoodOddLines(t *testing.T) {
	n := &noises{}
	_, w := start(t, Options{Handler: newHandler(), OnNoise: n.add})
	w.send(
		request(0, "echo", `{}`)+"\r",
		"", "   ", "\t\r",
		" \t"+request("9007199254740991", "echo", `{}`)+" ",
		request(`"`+strings.Repeat("a", 128)+`"`, "echo", `{}`),
		request(`""`, "echo", `{}`),
		request(1, "echo", `{"a":`+strings.Repeat("[", 126)+strings.Repeat("]", 126)+`}`),
		`{"jsonrpc":"2.0","id":1,"\u006dethod":"ech\u006f","params":{}}`,
	)
	for range 6 {
		require.Contains(t, w.read(), `"result"`)
	}
	require.Equal(t, []NoiseKind{NoiseCRLF}, n.kinds())
}

func TestBlankLines(t *testing.T) {
	p, w := start(t, Options{Handler: newHandler()})
	blank := strings.Repeat("\n", maxBlankLines-1)
	w.send(blank, request(1, "echo", `{}`), blank, request(2, "echo", `{}`))
	w.read()
	w.read()
	w.send(blank, "")
	w.ended()
	require.ErrorIs(t, p.Err(), ErrFlood)
}

func TestLineLimit(t *testing.T) {
	const limit = 200 << 10
	line := func(n int) string {
		head := `{"jsonrpc":"2.0","id":"big","method":"echo","params":{"a":"`
		return head + strings.Repeat("x", n-len(head)-3) + `"}}`
	}
	hidden := `{"params":{"a":"` + strings.Repeat("x", 2*limit) + `"},"id":1,"method":"echo","jsonrpc":"2.0"}`
	tooLong := func(id string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32001,"message":"the message is longer than %d bytes"}}`, id, limit)
	}
	n := &noises{}
	p, w := start(t, Options{Handler: newHandler(), Limits: protocol.Limits{MaxMessageBytes: limit}, OnNoise: n.add})
	next := func() {
		t.Helper()
		w.send(request(1, "echo", `{}`))
		require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":{}}`, w.read())
	}
	send := func(s string) { // the answer may come before all is sent
		go func() { _, _ = w.Write([]byte(s)) }()
	}

	send(line(limit) + "\n")
	require.Contains(t, w.read(), `"result"`)
	send(line(limit) + "\r\n")
	require.Contains(t, w.read(), `"result"`)
	next()
	for _, size := range []int{limit + 1, limit + 2, 4 * limit, floodFactor * limit} {
		send(line(size) + "\n")
		require.Equal(t, tooLong(`"big"`), w.read(), size)
		next()
	}
	send(hidden + "\n")
	require.Equal(t, tooLong("null"), w.read())
	next()
	send("[" + line(limit) + "]\n")
	require.Equal(t, tooLong("null"), w.read(), "of a batch no id can be told")
	next()
	require.Len(t, n.list(), 7)
	require.NoError(t, p.Err())

	send(line((floodFactor+1)*limit) + "\n")
	require.Equal(t, tooLong(`"big"`), w.read())
	w.ended()
	require.ErrorIs(t, p.Err(), ErrFlood)
}

func TestDuplicateIDInFlight(t *testing.T) {
	h := newHandler()
	p, w := start(t, Options{Handler: h})
	w.send(request(7, "slow", `{}`), request(7, "echo", `{}`))
	require.Equal(t, `{"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"id 7 is in flight already","data":{"reason":"duplicate_id"}}}`, w.read())
	w.send(request(`"7"`, "echo", `{"another":"id"}`))
	require.Contains(t, w.read(), "another")
	require.Equal(t, 1, p.InFlight())
	close(h.release)
	require.Equal(t, `{"jsonrpc":"2.0","id":7,"result":null}`, w.read())
	w.send(request(7, "echo", `{}`))
	require.Equal(t, `{"jsonrpc":"2.0","id":7,"result":{}}`, w.read(), "an answered id may be used again")
}

func TestCancel(t *testing.T) {
	h := newHandler()
	_, w := start(t, Options{Handler: h})
	_, other := start(t, Options{Handler: newHandler()})
	cancel := func(id string) string { return notification("$/cancelRequest", `{"id":`+id+`}`) }
	w.send(request(1, "slow", `{}`), request(`"b"`, "stubborn", `{}`))
	other.send(cancel("1"), request(1, "echo", `{}`))
	other.read()
	w.send(cancel("2"), cancel(`"1"`), cancel("null"), notification("$/cancelRequest", `{}`), cancel("1"))
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"error":{"code":-32800,"message":"cancelled"}}`, w.read())
	require.ErrorIs(t, <-h.causes, ErrCancelled)
	w.send(cancel("1"), cancel(`"b"`), request(2, "echo", `{}`))
	require.Contains(t, w.read(), `"id":2,"result"`)
	close(h.release)
	require.Equal(t, `{"jsonrpc":"2.0","id":"b","result":null}`, w.read(), "what is finished in spite of a cancel is answered")
	require.Equal(t, []string{"slow{}", "stubborn{}", "echo{}"}, h.all(), "cancels are not the handler's business")
}

func TestTooManyRequests(t *testing.T) {
	h := newHandler()
	p, w := start(t, Options{Handler: h, Limits: protocol.Limits{MaxInFlight: 64}})
	var lines strings.Builder
	for i := range 10000 {
		lines.WriteString(request(i, "slow", `{}`) + "\n")
	}
	lines.WriteString(notification("$/cancelRequest", `{"id":5}`) + "\n")
	go func() { _, _ = w.Write([]byte(lines.String())) }()
	for i := 64; i < 10000; i++ {
		require.Equal(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"code":-32002,"message":"overloaded: 64 requests are in flight"}}`, i), w.read())
	}
	require.Contains(t, w.read(), `"id":5,"error":{"code":-32800`)
	require.Len(t, h.all(), 64)
	require.Equal(t, 63, p.InFlight())
}

func TestBytesInFlight(t *testing.T) {
	h := newHandler()
	small, big := request(1, "slow", `{}`), request(2, "echo", `{"a":"`+strings.Repeat("x", 1000)+`"}`)
	huge := request(3, "echo", `{"a":"`+strings.Repeat("x", 1<<20)+`"}`)
	budget := NewBudget(int64(len(small) + len(big) - 1))
	_, w := start(t, Options{Handler: h, Bytes: budget})
	_, other := start(t, Options{Handler: newHandler(), Bytes: budget})
	w.send(small)
	other.send(request(9, "echo", `{}`))
	other.read()
	require.Eventually(t, func() bool { return budget.Used() == int64(len(small)) }, 10*time.Second, time.Millisecond)
	other.send(big)
	require.Contains(t, other.read(), `"id":2,"error":{"code":-32002,"message":"overloaded: too many bytes are in flight"`)
	go func() { _, _ = other.Write([]byte(huge + "\n")) }()
	require.Contains(t, other.read(), `"id":3,"error":{"code":-32002,"message":"overloaded: too many bytes are in flight"`)
	close(h.release)
	w.read()
	other.send(big)
	require.Contains(t, other.read(), `"id":2,"result"`)
	require.Eventually(t, func() bool { return budget.Used() == 0 }, 10*time.Second, time.Millisecond)
}

func TestErrorsOfHandlers(t *testing.T) {
	core, logs := observer.New(zap.ErrorLevel)
	refused := &protocol.Error{Code: -32005, Message: "no", Data: []byte("{\n\"a\":1}")}
	_, w := start(t, Options{Log: zap.New(core), Handler: handlerFunc(func(r *Request) Work {
		if r.Method == "accept_panics" {
			panic("in accept")
		}
		return Work{Inline: r.ID == NumberID(1), Run: func(context.Context) ([]byte, error) {
			switch r.Method {
			case "typed":
				return nil, fmt.Errorf("wrapped: %w", refused)
			case "plain":
				return nil, errors.New("secret text")
			case "panics":
				panic("secret panic")
			}
			return []byte("{\n  \"pretty\": 1\n}"), nil
		}}
	})})
	for _, id := range []int{1, 2} { // inline and not
		for method, want := range map[string]string{
			"typed":         `"error":{"code":-32005,"message":"no","data":{ "a":1}}}`,
			"plain":         `"error":{"code":-32603,"message":"internal error"}}`,
			"panics":        `"error":{"code":-32603,"message":"internal error"}}`,
			"accept_panics": `"error":{"code":-32603,"message":"internal error"}}`,
			"pretty":        `"result":{   "pretty": 1 }}`,
		} {
			w.send(request(id, method, "{}"))
			require.Equal(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%s`, id, want), w.read())
		}
	}
	require.Equal(t, 2, logs.FilterField(zap.Error(errors.New("secret text"))).Len())
	require.Equal(t, 4, logs.FilterMessage("request panicked").Len())
}

func TestNotificationsKeepTheirOrderAndGetNoAnswer(t *testing.T) {
	n := &noises{}
	h := newHandler()
	_, w := start(t, Options{Handler: h, OnNoise: n.add})
	var want []string
	for i := range 500 {
		p := fmt.Sprintf(`{"n":%d}`, i)
		w.send(notification("event", p))
		want = append(want, "event"+p)
	}
	w.send(notification("echo", `{}`), notification("slow", `[]`), notification("panic", `{}`), request(1, "echo", `{}`))
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":{}}`, w.read())
	require.Equal(t, append(want, "echo{}", "panic{}", "echo{}"), h.all())
	require.Equal(t, []NoiseKind{NoiseGarbage}, n.kinds(), "params that are no object")
}

func TestNilHandlerServesNothing(t *testing.T) {
	n := &noises{}
	_, w := start(t, Options{OnNoise: n.add})
	w.send(request(1, "m", `{}`), notification("m", `{}`), request(2, "m", `{}`))
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"unknown method \"m\""}}`, w.read())
	require.Contains(t, w.read(), `"id":2,"error"`)
	require.Equal(t, []Noise{{NoiseRequest, NumberID(1), "m"}, {NoiseRequest, ID{}, "m"}, {NoiseRequest, NumberID(2), "m"}}, n.list())
}

func TestSilentPeerDoesNotAnswerGarbage(t *testing.T) {
	n := &noises{}
	_, w := start(t, Options{Silent: true, OnNoise: n.add, Limits: protocol.Limits{MaxMessageBytes: 1000}})
	long := strings.Repeat("x", 2000)
	w.send("debug: hello\x1b[31m", `{"jsonrpc":"2.0","id":1,"method":7}`, `{}`, `[]`, long, `{"id":1,"`+long+`"}`, request(2, "m", `{}`))
	require.Contains(t, w.read(), `"id":2,"error":{"code":-32601`)
	require.Equal(t, []NoiseKind{NoiseGarbage, NoiseGarbage, NoiseGarbage, NoiseGarbage, NoiseOversize, NoiseOversize, NoiseRequest}, n.kinds())
	require.Contains(t, n.list()[0].Detail, `"debug: hello\x1b[31m"`)
	require.Less(t, len(n.list()[4].Detail), 300)
}

func TestHalfCloseStillGetsItsAnswers(t *testing.T) {
	h := newHandler()
	p, w := start(t, Options{Handler: h})
	w.send(request(1, "slow", `{}`), request(2, "echo", `{}`))
	require.NoError(t, w.Conn.(*net.UnixConn).CloseWrite())
	require.Contains(t, w.read(), `"id":2`)
	time.Sleep(2 * pollHangup) // for a wrong decision to show
	close(h.release)
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":null}`, w.read())
	w.ended()
	require.Empty(t, h.causes)
	require.Error(t, p.Err())
}

func TestFullCloseCancelsAtOnce(t *testing.T) {
	for _, how := range []string{"close", "half close, then close"} {
		t.Run(how, func(t *testing.T) {
			h := newHandler()
			p, w := start(t, Options{Handler: h})
			w.send(request(1, "slow", `{}`))
			require.Eventually(t, func() bool { return p.InFlight() == 1 }, 10*time.Second, time.Millisecond)
			if how != "close" {
				require.NoError(t, w.Conn.(*net.UnixConn).CloseWrite())
				time.Sleep(pollHangup)
				require.NoError(t, p.Err())
			}
			start := time.Now()
			require.NoError(t, w.Close())
			require.ErrorIs(t, <-h.causes, ErrClosed)
			require.Less(t, time.Since(start), time.Second)
			<-p.Done()
		})
	}
}

// goroutine is the number of the one that calls it.
func goroutine() []byte {
	b := make([]byte, 64)
	return bytes.Fields(b[:runtime.Stack(b, false)])[1]
}

func TestRequestsReuseGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		meet := make(chan struct{})
		p, w := startPiped(t, Options{Handler: handlerFunc(func(r *Request) Work {
			return Work{Run: func(context.Context) ([]byte, error) {
				if r.Method == "meet" {
					<-meet
				}
				return goroutine(), nil
			}}
		})})
		var numbers []string
		for range 100 {
			w.send(request(1, "m", `{}`))
			numbers = append(numbers, w.read())
			synctest.Wait()
		}
		require.Len(t, slices.Compact(numbers), 1)

		const crowd = 3 * maxIdle // each needs one, and only a few of them stay
		for i := range crowd {
			w.send(request(i, "meet", `{}`))
		}
		synctest.Wait()
		require.Zero(t, p.workers.idle.Load())
		close(meet)
		for range crowd {
			w.read()
		}
		synctest.Wait()
		require.EqualValues(t, maxIdle, p.workers.idle.Load())
	})
}

func TestLastAnswerCloses(t *testing.T) {
	for _, inline := range []bool{true, false} {
		p, w := start(t, Options{Handler: handlerFunc(func(*Request) Work {
			return Work{Inline: inline, Last: true, Run: func(context.Context) ([]byte, error) {
				return nil, protocol.Errorf(protocol.CodeVersionMismatch, "no")
			}}
		})})
		w.send(request(1, "hook.hello", `{}`))
		require.Contains(t, w.read(), `-32005`)
		w.ended()
		<-p.Done()
	}
}

func TestShutdownFinishesWhatIsOpen(t *testing.T) {
	h := newHandler()
	p, w := start(t, Options{Handler: h})
	w.send(request(1, "slow", `{}`), request(2, "echo", `{}`))
	w.read()
	done := make(chan error)
	go func() { done <- p.Shutdown(t.Context()) }()
	require.Eventually(t, func() bool {
		w.send(request(3, "echo", `{}`))
		return strings.Contains(w.read(), `"id":3,"error":{"code":-32003,"message":"shutting down"`)
	}, 10*time.Second, time.Millisecond)
	close(h.release)
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":null}`, w.read())
	require.NoError(t, <-done)
	w.ended()
	require.ErrorIs(t, p.Err(), ErrShutdown)
}

func TestShutdownEndsWithItsContext(t *testing.T) {
	h := newHandler()
	p, w := start(t, Options{Handler: h})
	w.send(request(1, "slow", `{}`))
	require.Eventually(t, func() bool { return p.InFlight() == 1 }, 10*time.Second, time.Millisecond)
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	time.AfterFunc(10*time.Millisecond, func() { cancel(enough) })
	require.ErrorIs(t, p.Shutdown(ctx), enough)
	require.ErrorIs(t, <-h.causes, ErrShutdown)
}

func TestContextEndClosesThePeer(t *testing.T) {
	h := newHandler()
	ours, theirs := sockets(t)
	w := newWire(t, theirs)
	ctx, cancel := context.WithCancelCause(t.Context())
	p := NewPeer(ctx, ours, Options{Handler: h})
	defer p.Close()
	w.send(request(1, "slow", `{}`))
	require.Eventually(t, func() bool { return p.InFlight() == 1 }, 10*time.Second, time.Millisecond)
	reason := errors.New("the house burns")
	cancel(reason)
	require.ErrorIs(t, <-h.causes, reason)
	w.ended()
	require.ErrorIs(t, p.Err(), reason)
	require.ErrorIs(t, p.Err(), ErrClosed)
}

func TestAnswersOnAFile(t *testing.T) {
	in, feed, err := os.Pipe()
	require.NoError(t, err)
	out, err := os.Create(t.TempDir() + "/out")
	require.NoError(t, err)
	h := newHandler()
	p := NewPeer(t.Context(), Stdio(in, out), Options{Handler: h})
	_, err = feed.WriteString(request(1, "slow", `{}`) + "\n" + request(2, "echo", `{}`))
	require.NoError(t, err)
	require.NoError(t, feed.Close())
	require.Eventually(t, func() bool { return len(h.all()) == 2 }, 10*time.Second, time.Millisecond)
	close(h.release)
	<-p.Done()
	require.NoError(t, p.Close())
	got, err := os.ReadFile(out.Name())
	require.NoError(t, err)
	require.ElementsMatch(t, []string{`{"jsonrpc":"2.0","id":1,"result":null}`, `{"jsonrpc":"2.0","id":2,"result":{}}`, ""}, strings.Split(string(got), "\n"))
}

// Answers that have to wait are written in batches, which writev bounds.
func TestManySmallAnswersWait(t *testing.T) {
	_, w := start(t, Options{Handler: newHandler(), MaxQueuedBytes: 64 << 20})
	const n = 20_000
	var lines strings.Builder
	for i := range n {
		lines.WriteString(request(i, "echo", `{}`) + "\n")
	}
	_, err := w.Write([]byte(lines.String()))
	require.NoError(t, err)
	for i := range n {
		require.Equal(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, i), w.read())
	}
}
