package daemon_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
)

// The targets are ratios to floors that are measured in the same run, because
// absolute figures say more about the machine than about hookd. A floor is a
// bare exchange of lines of the same size: over a Unix socket, over a child's
// stdio, and one strict pass of the JSON tokenizer.

// BenchmarkTargetT0 is a call that no hook matches: p50 ≤ 2.5 × F_sock.
func BenchmarkTargetT0(b *testing.B) {
	onOneCore(b)
	params := toolParams(200)
	d := startDaemon(b, benchConfig(b, `"match": {"tools": ["another"]}`, "before_tool"))
	measure(b, d, "hook.before_tool", params, 2.5, socketFloor(b, len(params)))
}

// BenchmarkTargetT2 is one Go child that continues: p50 ≤ 3 × (F_sock + F_pipe).
func BenchmarkTargetT2(b *testing.B) {
	onOneCore(b)
	params := toolParams(200)
	d := startDaemon(b, benchConfig(b, `"match": {}`, "before_tool"))
	measure(b, d, "hook.before_tool", params, 3, socketFloor(b, len(params))+pipeFloor(b, len(params)))
}

// BenchmarkTargetT4 is a model request of 1 MB and one child that continues:
// p50 ≤ 3 × (F_sock + F_pipe + F_scan).
func BenchmarkTargetT4(b *testing.B) {
	onOneCore(b)
	params := modelParams(1 << 20)
	d := startDaemon(b, benchConfig(b, `"match": {}`, "before_llm"))
	measure(b, d, "hook.before_llm", params, 3, socketFloor(b, len(params))+pipeFloor(b, len(params))+scanFloor(b, params))
}

func benchConfig(b *testing.B, match, stage string) string {
	self, err := os.Executable()
	require.NoError(b, err)
	return fmt.Sprintf(`{"record": {"mode": "off"}, "hooks": {"processes": {"gate": {
		"command": [%q], "env": {%q: "continue"}, "intercept": [%q], "max_in_flight": 16, %s}}}}`, self, asHook, stage, match)
}

// toolParams are params of before_tool of about n bytes.
func toolParams(n int) []byte {
	head := `{"tool":"bash","arguments":{"command":"`
	return []byte(head + strings.Repeat("x", max(n-len(head)-4, 0)) + `"}}`)
}

// modelParams are params of before_llm of about n bytes, in messages of the
// size that a conversation has.
func modelParams(n int) []byte {
	text := strings.Repeat("The quick brown fox jumps over the lazy dog. ", 40)
	var b bytes.Buffer
	b.WriteString(`{"model":"m","messages":[{"role":"system","content":"be kind"}`)
	for b.Len() < n {
		fmt.Fprintf(&b, `,{"role":"user","content":%q}`, text)
	}
	b.WriteString(`],"options":{"temperature":0.2}}`)
	return b.Bytes()
}

// measure makes the call again and again and reports the median beside the
// floor and the target.
func measure(b *testing.B, d *runningDaemon, method string, params []byte, target float64, floor time.Duration) {
	conn, err := net.Dial("unix", d.sockets.Agents)
	require.NoError(b, err)
	defer conn.Close()
	line := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`+"\n", method, params)
	r := bufio.NewReader(conn)
	answer := exchange(b, conn, r, line)
	require.Contains(b, string(answer), `"action":"continue"`)
	require.NotContains(b, string(answer), "degraded", "the hook must have answered")
	var took []time.Duration
	b.ReportAllocs()
	for b.Loop() {
		start := time.Now()
		exchange(b, conn, r, line)
		took = append(took, time.Since(start))
	}
	p50 := median(took)
	b.ReportMetric(float64(p50.Nanoseconds())/1e3, "p50-µs")
	b.ReportMetric(float64(floor.Nanoseconds())/1e3, "floor-µs")
	b.ReportMetric(float64(p50)/float64(floor), "ratio")
	b.ReportMetric(target, "target")
}

func exchange(b *testing.B, w io.Writer, r *bufio.Reader, line []byte) []byte {
	_, err := w.Write(line)
	require.NoError(b, err)
	answer, err := r.ReadSlice('\n')
	require.NoError(b, err)
	return answer
}

func median(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)/2]
}

// floorRounds is how often a floor is measured: its median is steady then.
const floorRounds = 2000

func floor(b *testing.B, w io.Writer, rd io.Reader, n int) time.Duration {
	line := append(bytes.Repeat([]byte{'x'}, n), '\n')
	r := bufio.NewReader(rd)
	rounds := max(floorRounds*200/(n+200), 100)
	took := make([]time.Duration, rounds)
	for i := range took {
		start := time.Now()
		exchange(b, w, r, line)
		took[i] = time.Since(start)
	}
	return median(took)
}

// socketFloor is F_sock: n bytes over a Unix socket, a short line back.
func socketFloor(b *testing.B, n int) time.Duration {
	l, err := net.Listen("unix", filepath.Join(shortDir(b), "floor.sock"))
	require.NoError(b, err)
	defer l.Close()
	served := make(chan struct{})
	go func() {
		defer close(served)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		echoLines(c, c)
	}()
	c, err := net.Dial("unix", l.Addr().String())
	require.NoError(b, err)
	d := floor(b, c, c, n)
	c.Close()
	<-served
	return d
}

// pipeFloor is F_pipe: the same over a child's stdin and stdout.
func pipeFloor(b *testing.B, n int) time.Duration {
	self, err := os.Executable()
	require.NoError(b, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), asHook+"=echo")
	in, err := cmd.StdinPipe()
	require.NoError(b, err)
	out, err := cmd.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, cmd.Start())
	d := floor(b, in, out, n)
	in.Close()
	require.NoError(b, cmd.Wait())
	return d
}

// scanFloor is F_scan: one strict pass of the tokenizer.
func scanFloor(b *testing.B, data []byte) time.Duration {
	took := make([]time.Duration, 50)
	for i := range took {
		start := time.Now()
		_, err := jsontext.NewDecoder(bytes.NewBuffer(data)).ReadValue()
		took[i] = time.Since(start)
		require.NoError(b, err)
	}
	return median(took)
}

// echoLines answers every line by a short one.
func echoLines(rd io.Reader, w io.Writer) {
	r := bufio.NewReaderSize(rd, 64<<10)
	for {
		_, err := r.ReadSlice('\n')
		if err == bufio.ErrBufferFull {
			continue
		}
		if err != nil {
			return
		}
		if _, err := w.Write([]byte("ok\n")); err != nil {
			return
		}
	}
}
