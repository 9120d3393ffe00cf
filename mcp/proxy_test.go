package mcp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hookd/hookd/client"
	"github.com/hookd/hookd/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// asker judges by the tool's name.
type asker struct {
	asked chan string
	hold  chan struct{} // "slow" waits for it
}

func (a *asker) BeforeTool(ctx context.Context, p client.BeforeTool) (client.ToolVerdict, error) {
	arguments, _ := protocol.Marshal(p.Arguments)
	a.asked <- fmt.Sprintf("before %s %s %s", p.Tool, arguments, p.CallID)
	allow := client.ToolVerdict{Allowed: true, Tool: p.Tool, Arguments: arguments}
	_, tool, _ := strings.Cut(strings.TrimPrefix(p.Tool, "mcp__"), "__")
	switch tool {
	case "deny":
		return client.ToolVerdict{Answer: client.Answer{Reason: "not here"}}, nil
	case "away":
		return client.ToolVerdict{Answer: client.Answer{Reason: "hookd: gone"}}, errors.New("gone")
	case "respond":
		v := client.ToolVerdict{Result: jsontext.Value(`{"content":"from a hook","is_error":false}`)}
		v.Action = protocol.ActionRespond
		return v, nil
	case "modify":
		allow.Arguments = jsontext.Value(`{"n":9007199254740993}`)
	case "rename":
		allow.Tool = "mcp__fs__other"
	case "stray":
		allow.Tool = "Bash"
	case "context":
		allow.AddContext = []string{"mind the gap"}
	case "slow":
		select {
		case <-a.hold:
		case <-ctx.Done():
			return client.ToolVerdict{}, context.Cause(ctx)
		}
	}
	return allow, nil
}

func (a *asker) AfterTool(_ context.Context, p client.AfterTool) (client.ResultVerdict, error) {
	result := p.Result.(jsontext.Value)
	a.asked <- fmt.Sprintf("after %s %s", p.Tool, result)
	v := client.ResultVerdict{Allowed: true, Result: result}
	if strings.Contains(string(result), "secret") {
		v.Result = jsontext.Value(strings.ReplaceAll(string(result), "secret", "[gone]"))
	}
	if strings.Contains(string(result), "withhold") {
		v.Allowed, v.Result = false, jsontext.Value(`{"content":"withheld","is_error":true}`)
	}
	return v, nil
}

// stage is a proxy between a client and a server that the test plays.
type stage struct {
	t          *testing.T
	ask        *asker
	toProxy    io.WriteCloser
	atClient   *bufio.Reader
	atServer   *bufio.Reader
	fromServer io.WriteCloser
	done       chan error
}

func newStage(t *testing.T) *stage {
	s := &stage{t: t, ask: &asker{asked: make(chan string, 16), hold: make(chan struct{})}, done: make(chan error, 1)}
	clientIn, toProxy := io.Pipe()
	atClient, clientOut := io.Pipe()
	serverIn, fromServer := io.Pipe()
	atServer, serverOut := io.Pipe()
	s.toProxy, s.fromServer = toProxy, fromServer
	s.atClient, s.atServer = bufio.NewReader(atClient), bufio.NewReader(atServer)
	p := New(Options{Server: "fs", Ask: s.ask})
	go func() { s.done <- p.Run(t.Context(), clientIn, clientOut, serverIn, serverOut) }()
	return s
}

func (s *stage) end() {
	s.toProxy.Close()
	_, err := s.atServer.ReadString('\n')
	require.Equal(s.t, io.EOF, err, "the server's input ends with the client's")
	s.fromServer.Close()
	require.NoError(s.t, <-s.done)
}

func (s *stage) say(w io.Writer, line string) {
	_, err := io.WriteString(w, line+"\n")
	require.NoError(s.t, err)
}

func (s *stage) read(r *bufio.Reader) string {
	line, err := r.ReadString('\n')
	require.NoError(s.t, err)
	return strings.TrimSuffix(line, "\n")
}

func callLine(id, tool, arguments string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments + `,"_meta":{"progressToken":1}}}`
}

func TestEverythingElsePassesAsItIs(t *testing.T) {
	s := newStage(t)
	defer s.end()
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"clientInfo":{"name":"x"}, "protocolVersion":"2025-06-18"}}`,
		`{ "jsonrpc" : "2.0", "method":"notifications/initialized" }`,
		`{"jsonrpc":"2.0","id":"a","method":"tools/list"}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}`,
		`{"jsonrpc":"2.0","id":5,"result":{"roots":[]}}`,
	} {
		s.say(s.toProxy, line)
		require.Equal(t, line, s.read(s.atServer))
	}
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":0,"result":{"capabilities":{}}}`,
		`{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{}}`,
		`{"jsonrpc":"2.0", "method":"notifications/message","params":{"data":"\ud800"}}`,
		`not even JSON`,
	} {
		s.say(s.fromServer, line)
		require.Equal(t, line, s.read(s.atClient))
	}
	require.Empty(t, s.ask.asked, "nobody was asked")
}

func TestCalls(t *testing.T) {
	for _, c := range []struct {
		name, tool, args string
		server           string // the line that the server must see; "" = none
		result           string // what it answers
		client           string // what the client must see
		after            string
	}{
		{
			name: "allowed", tool: "read", args: `{ "path": "/a" }`,
			server: callLine("1", "read", `{ "path": "/a" }`), result: `{"content":[{"type":"text","text":"hi"}],  "isError":false}`,
			after:  `after mcp__fs__read {"content":[{"type":"text","text":"hi"}],"is_error":false}`,
			client: `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hi"}],  "isError":false}}`,
		},
		{
			name: "denied", tool: "deny", args: `{}`,
			client: `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"not here"}],"isError":true}}`,
		},
		{
			name: "no verdict is a no", tool: "away", args: `{}`,
			client: `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hookd: gone"}],"isError":true}}`,
		},
		{
			name: "answered by a hook", tool: "respond", args: `{}`,
			client: `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"from a hook"}],"isError":false}}`,
		},
		{
			name: "other arguments", tool: "modify", args: `{"n":1}`,
			server: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"modify","arguments":{"n":9007199254740993},"_meta":{"progressToken":1}}}`,
			result: `{"content":[]}`, after: `after mcp__fs__modify {"content":[],"is_error":false}`,
			client: `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`,
		},
		{
			name: "another tool of this server", tool: "rename", args: `{}`,
			server: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"other","arguments":{},"_meta":{"progressToken":1}}}`,
			result: `{"content":[]}`, after: `after mcp__fs__other {"content":[],"is_error":false}`,
			client: `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`,
		},
		{
			name: "a tool that this server does not have", tool: "stray", args: `{}`,
			client: `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"a hook turned the call into one of \"Bash\", which this server does not have"}],"isError":true}}`,
		},
		{
			name: "context goes with the result", tool: "context", args: `{}`,
			server: callLine("1", "context", `{}`), result: `{"content":[{"type":"text","text":"hi"}]}`,
			after:  `after mcp__fs__context {"content":[{"type":"text","text":"hi"}],"is_error":false}`,
			client: `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hi"},{"type":"text","text":"mind the gap"}]}}`,
		},
		{
			name: "a changed result loses its structured twin", tool: "read", args: `{}`,
			server: callLine("1", "read", `{}`), result: `{"content":[{"type":"text","text":"a secret"}],"structuredContent":{"x":1}}`,
			after:  `after mcp__fs__read {"content":[{"type":"text","text":"a secret"}],"structuredContent":{"x":1},"is_error":false}`,
			client: `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"a [gone]"}],"isError":false}}`,
		},
		{
			name: "a withheld result", tool: "read", args: `{}`,
			server: callLine("1", "read", `{}`), result: `{"content":[{"type":"text","text":"withhold me"}],"isError":false}`,
			after:  `after mcp__fs__read {"content":[{"type":"text","text":"withhold me"}],"is_error":false}`,
			client: `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"withheld"}],"isError":true}}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t)
			defer s.end()
			s.say(s.toProxy, callLine("1", c.tool, c.args))
			require.Contains(t, <-s.ask.asked, "before mcp__fs__"+c.tool+" ")
			if c.server != "" {
				require.Equal(t, c.server, s.read(s.atServer))
				s.say(s.fromServer, `{"jsonrpc":"2.0","id":1,"result":`+c.result+`}`)
				require.Equal(t, c.after, <-s.ask.asked)
			}
			require.Equal(t, c.client, s.read(s.atClient))
		})
	}
}

func TestRefusedLines(t *testing.T) {
	s := newStage(t)
	defer s.end()
	for line, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call","params":{"name":"deny"}}`: `duplicate name`,
		`{"jsonrpc":"2.0","id":1,"Method":"tools/call","params":{"name":"deny"}}`:                       `"Method\" is \"method`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","Name":"deny"}}`:         `"Name\" is \"name`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","argumentſ":{"a":1}}}`:   `in other letters`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":[1]}}`:       `must be an object`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{}}}`:                      `params.name`,
		`[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"deny"}}]`:                     `no batch`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"deny"}} {"x":1}`:               `"code":-32700`,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"de\xffny\"}}":   `"code":-32700`,
	} {
		s.say(s.toProxy, line)
		require.Contains(t, s.read(s.atClient), strings.ReplaceAll(want, `"Method\"`, `\"Method\"`), line)
	}
	s.say(s.toProxy, `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"deny"}}`) // nobody could read the no
	s.say(s.toProxy, `{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	require.Equal(t, `{"jsonrpc":"2.0","id":2,"method":"ping"}`, s.read(s.atServer), "nothing else came through")
	require.Empty(t, s.ask.asked)
}

func TestCancelWhileAsked(t *testing.T) {
	s := newStage(t)
	defer s.end()
	s.say(s.toProxy, callLine(`"c"`, "slow", `{}`))
	require.Equal(t, `before mcp__fs__slow {} c`, <-s.ask.asked)
	s.say(s.toProxy, callLine(`"c"`, "read", `{}`))
	require.Contains(t, s.read(s.atClient), "a call with this id is open already")
	s.say(s.toProxy, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c"}}`)
	s.say(s.toProxy, `{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	require.Equal(t, `{"jsonrpc":"2.0","id":2,"method":"ping"}`, s.read(s.atServer), "neither the call nor its cancel came through")
}

func TestResultsThatCannotBeReadOrComeTwice(t *testing.T) {
	s := newStage(t)
	defer s.end()
	s.say(s.toProxy, callLine("1", "read", `{}`))
	s.read(s.atServer)
	s.say(s.fromServer, `{"jsonrpc":"2.0","id":1,"result":{"content":[],"content":[{"type":"text","text":"smuggled"}]}}`)
	require.Contains(t, s.read(s.atClient), "can't be read, so it was withheld")
	s.say(s.fromServer, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"late"}]}}`)
	s.say(s.fromServer, `{"jsonrpc":"2.0","id":9,"result":{}}`)
	require.Equal(t, `{"jsonrpc":"2.0","id":9,"result":{}}`, s.read(s.atClient), "the late one was dropped")
}

func TestErrorOfACall(t *testing.T) {
	s := newStage(t)
	defer s.end()
	s.say(s.toProxy, callLine("1", "read", `{}`))
	s.read(s.atServer)
	<-s.ask.asked
	line := `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no such tool"}}`
	s.say(s.fromServer, line)
	require.Equal(t, `after mcp__fs__read {"content":"no such tool","is_error":true}`, <-s.ask.asked)
	require.Equal(t, line, s.read(s.atClient))
}

func TestServerEndsFirst(t *testing.T) {
	s := newStage(t)
	s.fromServer.Close()
	select {
	case err := <-s.done:
		require.NoError(t, err)
	case <-time.After(10 * time.Second):
		t.Fatal("Run does not end with the server")
	}
	s.toProxy.Close()
}

func FuzzClientLine(f *testing.F) {
	f.Add(callLine("1", "read", `{"a":1}`))
	f.Add(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	f.Fuzz(func(t *testing.T, line string) {
		m, err := readMessage([]byte(line))
		if err != nil || m.method != "tools/call" {
			return
		}
		name, arguments, err := m.toolCall()
		if err != nil {
			return
		}
		again, err := readMessage(m.withCall(name, arguments))
		require.NoError(t, err)
		name2, arguments2, err := again.toolCall()
		require.NoError(t, err)
		require.Equal(t, name, name2)
		require.Equal(t, string(arguments), string(arguments2))
	})
}

// TestFolder: a client of MCP does not say where it works; it has started the
// proxy there.
func TestFolder(t *testing.T) {
	dir, err := os.Getwd()
	require.NoError(t, err)
	p := New(Options{Server: "fs", Ask: &asker{}})
	require.Equal(t, dir, p.question(&call{id: jsontext.Value("1")}).Meta.CWD)
}
