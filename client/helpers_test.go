package client_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hookd/hookd/client"
	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/rpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hookd is a daemon that answers as the test says.
type hookd struct {
	welcome string                        // "" = an ordinary one
	answer  func(r *rpc.Request) rpc.Work // nil = yes to everything

	mu  sync.Mutex
	got []*rpc.Request
}

// Accept implements [rpc.Handler].
func (h *hookd) Accept(r *rpc.Request) rpc.Work {
	h.mu.Lock()
	h.got = append(h.got, r)
	h.mu.Unlock()
	switch {
	case r.Method == protocol.MethodHello && h.welcome != "":
		return say(h.welcome)
	case r.Method == protocol.MethodHello:
		return say(welcome)
	case r.Notification():
		return rpc.Work{}
	case h.answer != nil:
		return h.answer(r)
	}
	return say(yes(r))
}

const welcome = `{"ok":true,"name":"hookd","version":1,"server":{"name":"hookd","version":"9"},"generation":7,"limits":{"max_message_bytes":1000000,"max_in_flight":4}}`

// seen returns the params of what arrived with this method.
func (h *hookd) seen(method string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []string
	for _, r := range h.got {
		if r.Method == method {
			list = append(list, string(r.Params))
		}
	}
	return list
}

// always answers everything with one text, in which DIGEST is the call's.
func always(answer string) func(*rpc.Request) rpc.Work {
	return func(r *rpc.Request) rpc.Work { return say(fill(r, answer)) }
}

func say(answer string) rpc.Work {
	return rpc.Work{Inline: true, Run: func(context.Context) ([]byte, error) { return []byte(answer), nil }}
}

func yes(r *rpc.Request) string {
	switch {
	case r.Method == "hook.approve_tool":
		return fill(r, `{"approved":true,"digest":"DIGEST"}`)
	case r.Members.Get("approve") != nil:
		return fill(r, `{"action":"continue","approval":{"approved":true,"digest":"DIGEST"}}`)
	}
	return `{"action":"continue"}`
}

// fill puts the digest of the call that was asked about into an answer.
func fill(r *rpc.Request, answer string) string {
	return strings.ReplaceAll(answer, "DIGEST", (&protocol.Request{Subject: r.Members}).Digest())
}

// serve listens on a Unix socket until the test ends.
func serve(t *testing.T, h *hookd) (socket string) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "h")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket = filepath.Join(dir, "s")
	stop, err := serveOn(socket, h, nil)
	require.NoError(t, err)
	t.Cleanup(stop)
	return socket
}

// serveOn listens until stop is called.
func serveOn(socket string, h *hookd, authorize func(rpc.Creds) error) (stop func(), err error) {
	l, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	s := rpc.NewServer(rpc.ServerOptions{
		Open:      func(*rpc.Conn) rpc.Options { return rpc.Options{Handler: h} },
		Authorize: authorize,
	})
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.Serve(context.Background(), l) })
	return func() { _ = s.Close(); wg.Wait() }, nil
}

// dial connects to h over a Unix socket.
func dial(t *testing.T, h *hookd, o client.Options) *client.Client {
	t.Helper()
	o.Name, o.Socket = "tester", serve(t, h)
	c, err := client.Dial(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// pipe connects to h without a socket, for use in a bubble of synctest.
func pipe(t *testing.T, h *hookd, o client.Options) *client.Client {
	t.Helper()
	here, there := net.Pipe()
	p := rpc.NewPeer(context.Background(), there, rpc.Options{Handler: h})
	t.Cleanup(func() { _ = p.Close() })
	o.Name = "tester"
	c, err := client.New(t.Context(), here, o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// rude connects to a daemon that greets, then writes back what answer returns
// for each line, and hangs up when that is "EOF".
func rude(t *testing.T, o client.Options, answer func(line string) string) *client.Client {
	t.Helper()
	here, there := net.Pipe()
	var wg sync.WaitGroup
	wg.Go(func() { rudeLoop(there, answer) })
	t.Cleanup(wg.Wait)
	o.Name = "tester"
	c, err := client.New(t.Context(), here, o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func rudeLoop(rw io.ReadWriteCloser, answer func(line string) string) {
	defer rw.Close()
	in := bufio.NewReader(rw)
	for n := 0; ; n++ {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		out := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"result":%s}`+"\n", welcome)
		if n > 0 {
			out = answer(line)
		}
		if out == "EOF" {
			return
		}
		if _, err := io.WriteString(rw, out); err != nil {
			return
		}
	}
}

// outcome is what any verdict comes down to.
type outcome struct {
	client.Answer
	allowed bool
	goOn    []jsontext.Value // what to go on with
	instead jsontext.Value   // what to tell the model in its place
}

// asks is one way to ask at every stage.
func asks() map[protocol.Stage]func(context.Context, *client.Client) (outcome, error) {
	plain := func(v client.Verdict) outcome {
		return outcome{Answer: v.Answer, allowed: v.Allowed, goOn: []jsontext.Value{v.Final}}
	}
	tool := func(v client.ToolVerdict) outcome {
		goOn := []jsontext.Value{v.Arguments}
		if v.Tool != "" || v.NeedsApproval {
			goOn = append(goOn, jsontext.Value(v.Tool))
		}
		return outcome{v.Answer, v.Allowed, goOn, v.Result}
	}
	return map[protocol.Stage]func(context.Context, *client.Client) (outcome, error){
		protocol.StageUserMessage: func(ctx context.Context, c *client.Client) (outcome, error) {
			v, err := c.UserMessage(ctx, client.UserMessage{Content: "hi"})
			return plain(v), err
		},
		protocol.StageBeforeAgent: func(ctx context.Context, c *client.Client) (outcome, error) {
			v, err := c.BeforeAgent(ctx, client.BeforeAgent{Request: map[string]any{"input": "hi"}})
			return outcome{v.Answer, v.Allowed, []jsontext.Value{v.Request, v.Response}, nil}, err
		},
		protocol.StageSystemPrompt: func(ctx context.Context, c *client.Client) (outcome, error) {
			v, err := c.SystemPrompt(ctx, client.SystemPrompt{Content: "be good"})
			return plain(v), err
		},
		protocol.StageInjectInstructions: func(ctx context.Context, c *client.Client) (outcome, error) {
			v, err := c.InjectInstructions(ctx, client.InjectInstructions{})
			return plain(v), err
		},
		protocol.StageBeforeLLM: func(ctx context.Context, c *client.Client) (outcome, error) {
			v, err := c.BeforeLLM(ctx, client.BeforeLLM{Model: "m", Messages: []any{}})
			return outcome{v.Answer, v.Allowed, []jsontext.Value{v.Messages, v.Tools, v.Options, v.Response, jsontext.Value(v.Model)}, nil}, err
		},
		protocol.StageAfterLLM: func(ctx context.Context, c *client.Client) (outcome, error) {
			v, err := c.AfterLLM(ctx, client.AfterLLM{Response: map[string]any{"content": "hi"}})
			return plain(v), err
		},
		protocol.StageBeforeTool: func(ctx context.Context, c *client.Client) (outcome, error) {
			v, err := c.BeforeTool(ctx, client.BeforeTool{Tool: "bash", Arguments: map[string]any{"n": 1}})
			return tool(v), err
		},
		protocol.StageApproveTool: func(ctx context.Context, c *client.Client) (outcome, error) {
			v, err := c.ApproveTool(ctx, client.ApproveTool{Tool: "bash", Arguments: map[string]any{"n": 1}})
			return tool(v), err
		},
		protocol.StageAfterTool: func(ctx context.Context, c *client.Client) (outcome, error) {
			v, err := c.AfterTool(ctx, client.AfterTool{Tool: "bash", Result: client.Result{Content: "secret"}})
			o := outcome{Answer: v.Answer, allowed: v.Allowed, instead: v.Result}
			if v.Allowed {
				o.goOn, o.instead = []jsontext.Value{v.Result}, nil
			}
			return o, err
		},
		protocol.StageBeforeCompact: func(ctx context.Context, c *client.Client) (outcome, error) {
			v, err := c.BeforeCompact(ctx, client.BeforeCompact{})
			return plain(v), err
		},
		protocol.StageStop: func(ctx context.Context, c *client.Client) (outcome, error) {
			v, err := c.Stop(ctx, client.Stop{})
			return outcome{v.Answer, v.Again, v.Inject, nil}, err
		},
		protocol.StageOutput: func(ctx context.Context, c *client.Client) (outcome, error) {
			v, err := c.Output(ctx, client.Output{Content: "done"})
			return plain(v), err
		},
	}
}

// requireNo makes sure that nothing in the outcome lets an agent go on.
func requireNo(t *testing.T, stage protocol.Stage, o outcome) {
	t.Helper()
	require.False(t, o.allowed, "%s", stage)
	for _, v := range o.goOn {
		require.Empty(t, string(v), "%s", stage)
	}
	require.NotEmpty(t, o.Reason, "%s", stage)
	switch stage {
	case protocol.StageBeforeTool, protocol.StageApproveTool, protocol.StageAfterTool:
		var r client.Result
		require.NoError(t, protocol.Unmarshal(o.instead, &r), "%s", stage)
		require.True(t, r.IsError)
		require.Equal(t, o.Reason, r.Content)
		require.NotContains(t, string(o.instead), "secret")
	}
}
