package serve

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/rpc"
)

// asHook makes the test binary a hook of this name.
const asHook = "SERVE_TEST_HOOK"

func TestMain(m *testing.M) {
	switch os.Getenv(asHook) {
	case "chatty":
		Main(chatty{}, Options{Name: "chatty", MaxInFlight: 3})
	case "none":
		Main(struct{}{})
	case "meeting":
		Main(meeting{all: runtime.GOMAXPROCS(0), met: make(chan struct{})})
	}
	goleak.VerifyTestMain(m)
}

// chatty prints where answers belong.
type chatty struct{ hook.NoTool }

func (chatty) BeforeTool(_ context.Context, call *hook.ToolCall) (protocol.Decision, error) {
	fmt.Println("debug: asked about", call.Tool)
	return hook.Deny("not %s", call.Tool), nil
}

func (chatty) Observe(context.Context, *hook.Event) error { return nil }

// program runs the test binary as a hook.
func program(t *testing.T, name string, stdin []byte) (code int, stdout, stderr string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asHook+"="+name, "GORACE=atexit_sleep_ms=0")
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &out, &errs
	if stdin == nil {
		tty, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
		require.NoError(t, err)
		defer tty.Close()
		cmd.Stdin = tty
	}
	if err := cmd.Run(); err != nil {
		require.ErrorAs(t, err, new(*exec.ExitError))
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

func TestMainServesUntilStdinEnds(t *testing.T) {
	code, stdout, stderr := program(t, "chatty", []byte(`{"jsonrpc":"2.0","id":1,"method":"hook.hello","params":{"name":"x","version":1,"modes":["tool"]}}
{"jsonrpc":"2.0","id":2,"method":"hook.before_tool","params":{"tool":"rm","arguments":{}}}
`))
	require.Zero(t, code)
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":{"ok":true,"name":"chatty","version":1,"stages":["before_tool","after_tool"],"max_in_flight":3}}
{"jsonrpc":"2.0","id":2,"result":{"action":"deny_tool","reason":"not rm"}}
`, stdout)
	require.Equal(t, "debug: asked about rm\n", stderr, "a stray print goes to stderr")
}

func TestMainOfNoHook(t *testing.T) {
	code, stdout, stderr := program(t, "none", []byte{})
	require.Equal(t, 1, code)
	require.Empty(t, stdout)
	require.Contains(t, stderr, "serve hook: struct {} fills no role")
}

func TestMainOnATerminalSaysWhatToDo(t *testing.T) {
	code, stdout, stderr := program(t, "chatty", nil)
	require.Equal(t, 2, code)
	require.Empty(t, stdout)
	require.Contains(t, stderr, "chatty is a hook. hookd starts it")
	require.Contains(t, stderr, `"chatty": { "command": [`)
	require.Contains(t, stderr, `"intercept": ["before_tool", "after_tool"], "observe": ["*"] }`)

	code, _, stderr = program(t, "none", nil)
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "fills no role")
}

// meeting says on how many processors it runs. Two of its calls wait for each other.
type meeting struct {
	hook.NoTool
	all int
	met chan struct{}
}

func (m meeting) BeforeTool(_ context.Context, call *hook.ToolCall) (protocol.Decision, error) {
	switch call.Tool {
	case "romeo":
		<-m.met
	case "juliet":
		m.met <- struct{}{}
	}
	return hook.Deny("all: %t, %d", runtime.GOMAXPROCS(0) == m.all, runtime.GOMAXPROCS(0)), nil
}

func TestMainUsesOneProcessorUntilCallsMeet(t *testing.T) {
	for processors, want := range map[string]string{"": "1", "3": "3"} {
		theirIn, out, err := os.Pipe()
		require.NoError(t, err)
		in, theirOut, err := os.Pipe()
		require.NoError(t, err)
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), asHook+"=meeting", "GORACE=atexit_sleep_ms=0", "GOMAXPROCS="+processors)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = theirIn, theirOut, os.Stderr
		require.NoError(t, cmd.Start())
		require.NoError(t, theirIn.Close())
		require.NoError(t, theirOut.Close())
		p := rpc.NewPeer(t.Context(), rpc.Stdio(in, out), rpc.Options{})
		tool := func(name string) string { return ask(t, p, beforeTool, `{"tool":"`+name+`","arguments":{}}`) }

		require.Contains(t, tool("alone"), " "+want+`"`)
		var wg sync.WaitGroup
		for _, name := range []string{"romeo", "juliet"} {
			wg.Go(func() { require.Contains(t, tool(name), "all: true") })
		}
		wg.Wait()
		require.NoError(t, p.Close())
		require.NoError(t, cmd.Wait())
	}
}

// recorder keeps what a served hook writes.
type recorder struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *recorder) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *recorder) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// start serves v and returns the caller's end of the stream.
func start(t *testing.T, v any, o Options) *rpc.Peer { return connect(t, v, o, rpc.Options{}) }

func connect(t *testing.T, v any, o Options, caller rpc.Options) *rpc.Peer {
	near, far := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- Serve(context.Background(), far, v, o) }()
	peer := rpc.NewPeer(context.Background(), near, caller)
	t.Cleanup(func() {
		require.NoError(t, peer.Close())
		require.NoError(t, <-served)
	})
	return peer
}

func ask(t *testing.T, p *rpc.Peer, method, params string) string {
	t.Helper()
	answer, err := p.Call(t.Context(), method, []byte(params))
	require.NoError(t, err)
	return string(answer)
}

func refused(t *testing.T, p *rpc.Peer, method, params string) *protocol.Error {
	t.Helper()
	answer, err := p.Call(t.Context(), method, []byte(params))
	require.Nil(t, answer)
	var e *protocol.Error
	require.ErrorAs(t, err, &e)
	return e
}

// intercept is an interceptor at all stages.
type intercept func(context.Context, *protocol.Request) (protocol.Decision, error)

func (f intercept) Intercept(ctx context.Context, req *protocol.Request) (protocol.Decision, error) {
	return f(ctx, req)
}

// observe is an observer.
type observe func(context.Context, *hook.Event) error

func (f observe) Observe(ctx context.Context, ev *hook.Event) error { return f(ctx, ev) }

const (
	beforeTool = "hook.before_tool"
	bash       = `{"tool":"bash","arguments":{}}`
)
