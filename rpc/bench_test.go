package rpc

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sys/unix"
)

// answers is a handler that answers every request with the same bytes.
type answers struct {
	result []byte
	inline bool
}

func (a answers) Accept(*Request) Work {
	return Work{Inline: a.inline, Run: func(context.Context) ([]byte, error) { return a.result, nil }}
}

// params returns a params object of about n bytes that looks like a model request.
func params(n int) []byte {
	if n < 1000 {
		return fmt.Appendf(nil, `{"tool":"bash","arguments":{"command":%q},"meta":{"session_id":"s-1"}}`, bytes.Repeat([]byte("x"), max(1, n-120)))
	}
	var b bytes.Buffer
	b.WriteString(`{"model":"m","messages":[`)
	for i := 0; b.Len() < n; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"role":"user","content":[{"type":"text","text":"%s\n\"quoted\""}]}`, bytes.Repeat([]byte("word "), 150))
	}
	b.WriteString(`]}`)
	return b.Bytes()
}

func line(n int) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"hook.before_tool","params":%s}`+"\n", params(n))
}

// exchange sends a line and reads the answer with the least a client can do.
type exchange struct {
	c    net.Conn
	r    *bufio.Reader
	line []byte
}

func (x exchange) do() error {
	if _, err := x.c.Write(x.line); err != nil {
		return err
	}
	_, err := x.r.ReadSlice('\n')
	return err
}

// echo answers each line with a short one: the floor of any server.
func echo(c net.Conn) {
	r := bufio.NewReaderSize(c, 1<<20)
	answer := []byte(`{"jsonrpc":"2.0","id":1,"result":{}}` + "\n")
	for {
		for {
			_, err := r.ReadSlice('\n')
			if err == nil {
				break
			}
			if err != bufio.ErrBufferFull {
				return
			}
		}
		if _, err := c.Write(answer); err != nil {
			return
		}
	}
}

// median runs f n times and returns the median of its time.
func median(b testing.TB, n int, f func() error) time.Duration {
	all := make([]time.Duration, n)
	for i := range all {
		start := time.Now()
		if err := f(); err != nil {
			b.Fatal(err)
		}
		all[i] = time.Since(start)
	}
	slices.Sort(all)
	return all[n/2]
}

var sizes = []struct {
	name string
	n    int
}{{"200B", 200}, {"100KB", 100 << 10}, {"1MB", 1 << 20}}

// BenchmarkCall measures one call over a Unix socket from a bare client, or
// from a peer, and in the same run the floor: a line echo by the bare client.
func BenchmarkCall(b *testing.B) {
	for _, size := range sizes {
		for _, kind := range []string{"inline", "goroutine", "peer"} {
			b.Run(size.name+"/"+kind, func(b *testing.B) {
				ours, theirs := sockets(b)
				p := NewPeer(b.Context(), ours, Options{Handler: answers{[]byte("{}"), kind != "goroutine"}})
				defer p.Close()
				x := exchange{theirs, bufio.NewReader(theirs), line(size.n)}
				do := x.do
				if kind == "peer" { // our side calls as well
					c := NewPeer(b.Context(), theirs, Options{})
					defer c.Close()
					ps := params(size.n)
					do = func() error {
						_, err := c.Call(b.Context(), "hook.before_tool", ps)
						return err
					}
				}
				b.ReportAllocs()
				var all []time.Duration
				for b.Loop() {
					start := time.Now()
					if err := do(); err != nil {
						b.Fatal(err)
					}
					all = append(all, time.Since(start))
				}
				b.StopTimer()
				slices.Sort(all)
				p50 := all[len(all)/2]
				floor := floor(b, x.line, len(all))
				b.ReportMetric(float64(p50.Nanoseconds()), "p50-ns")
				b.ReportMetric(float64(floor.Nanoseconds()), "floor-ns")
				b.ReportMetric(float64(p50)/float64(floor), "x-floor")
				if size.n > 1<<10 {
					b.ReportMetric(float64(p50)/float64(scan(b, x.line, len(all))), "x-scan")
				}
			})
		}
	}
}

func floor(b testing.TB, line []byte, n int) time.Duration {
	ours, theirs := sockets(b)
	go echo(ours)
	return median(b, min(n, 20000), exchange{theirs, bufio.NewReader(theirs), line}.do)
}

// scan is one strict pass of the tokenizer.
func scan(b testing.TB, line []byte, n int) time.Duration {
	return median(b, min(n, 500), func() error {
		_, err := jsontext.NewDecoder(bytes.NewBuffer(line)).ReadValue()
		return err
	})
}

// BenchmarkThroughput measures 64 clients at once against a line echo of the
// same shape.
func BenchmarkThroughput(b *testing.B) {
	const clients = 64
	rate := func(serve func(net.Conn)) float64 {
		var wg sync.WaitGroup
		var calls atomic.Int64
		done := make(chan struct{})
		for range clients {
			ours, theirs := sockets(b)
			serve(ours)
			wg.Go(func() {
				x := exchange{theirs, bufio.NewReader(theirs), line(200)}
				for {
					select {
					case <-done:
						return
					default:
					}
					if err := x.do(); err != nil {
						b.Error(err)
						return
					}
					calls.Add(1)
				}
			})
		}
		const window = time.Second
		time.Sleep(window)
		close(done)
		wg.Wait()
		return float64(calls.Load()) / window.Seconds()
	}
	for _, inline := range []bool{true, false} {
		b.Run(map[bool]string{true: "inline", false: "goroutine"}[inline], func(b *testing.B) {
			for b.Loop() {
				floor := rate(func(c net.Conn) { go echo(c) })
				got := rate(func(c net.Conn) {
					p := NewPeer(b.Context(), c, Options{Handler: answers{[]byte("{}"), inline}})
					b.Cleanup(func() { p.Close() })
				})
				b.ReportMetric(got, "calls/s")
				b.ReportMetric(got/floor, "x-floor")
			}
		})
	}
}

// BenchmarkParse measures the strict pass over a line, of which a call may
// cost two.
func BenchmarkParse(b *testing.B) {
	for _, size := range sizes {
		b.Run(size.name, func(b *testing.B) {
			l := bytes.TrimSpace(line(size.n))
			b.SetBytes(int64(len(l)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := parse(l, 128); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkIdleConnection measures what a connection costs on our side, heap
// and stacks: one that never said anything, and one that has asked something.
func BenchmarkIdleConnection(b *testing.B) {
	const conns = 500
	for _, kind := range []string{"silent", "after a call"} {
		b.Run(kind, func(b *testing.B) {
			for b.Loop() {
				var theirs [conns]int // bare descriptors cost us nothing
				var ours [conns]net.Conn
				for i := range ours {
					fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
					if err != nil {
						b.Fatal(err)
					}
					f := os.NewFile(uintptr(fds[0]), "")
					ours[i], err = net.FileConn(f)
					if err != nil {
						b.Fatal(err)
					}
					f.Close()
					theirs[i] = fds[1]
				}
				before := memory()
				var peers [conns]*Peer
				ws := newWorkers() // as of a server
				for i, c := range ours {
					peers[i] = newPeer(b.Context(), c, Options{Handler: answers{[]byte("{}"), false}}, ws)
					peers[i].start()
				}
				if kind != "silent" {
					l, answer := line(200), make([]byte, 100)
					for _, fd := range theirs {
						_, err := unix.Write(fd, l)
						if err == nil {
							_, err = unix.Read(fd, answer)
						}
						if err != nil {
							b.Fatal(err)
						}
					}
				}
				b.ReportMetric(float64(memory()-before)/conns, "B/conn")
				for i, p := range peers {
					p.Close()
					unix.Close(theirs[i])
				}
				ws.close()
			}
		})
	}
}

func memory() int64 {
	var m runtime.MemStats
	for range 3 { // stacks shrink by half each time
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
