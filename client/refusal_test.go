package client_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/client"
	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/rpc"
)

// Whatever hookd answers, when it is not a yes that can be read nothing is
// allowed, at every stage.
func TestNoVerdictIsANo(t *testing.T) {
	result := func(text string) string { return `{"jsonrpc":"2.0","id":2,"result":` + text + `}` + "\n" }
	fault := func(code int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"error":{"code":%d,"message":"so it is"}}`+"\n", code)
	}
	answers := map[string]string{
		"hangs up":             "EOF",
		"says nothing":         "",
		"error: parse":         fault(protocol.CodeParse),
		"error: no such stage": fault(protocol.CodeMethodNotFound),
		"error: params":        fault(protocol.CodeInvalidParams),
		"error: internal":      fault(protocol.CodeInternal),
		"error: cancelled":     fault(protocol.CodeCancelled),
		"error: overloaded":    fault(protocol.CodeOverloaded),
		"error: shutting down": fault(protocol.CodeShuttingDown),
		"error: unheard of":    fault(1),
		"error of nothing":     `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}` + "\n",
		"null":                 result(`null`),
		"an empty object":      result(`{}`),
		"a text":               result(`"continue"`),
		"an array":             result(`[{"action":"continue","approved":true}]`),
		"unknown verb":         result(`{"action":"proceed","approved":1}`),
		"another case":         result(`{"action":"Continue","Approved":true}`),
		"a verb with a space":  result(`{"action":"continue ","approved":"true"}`),
		"a name twice":         result(`{"action":"deny","approved":false,"action":"continue","approved":true}`),
		"null verb":            result(`{"action":null,"approved":null}`),
		"wrong type elsewhere": result(`{"action":"continue","approved":true,"warnings":7}`),
		"another id":           `{"jsonrpc":"2.0","id":3,"result":{"action":"continue","approved":true}}` + "\n",
		"id as text":           `{"jsonrpc":"2.0","id":"2","result":{"action":"continue","approved":true}}` + "\n",
		"no id":                `{"jsonrpc":"2.0","result":{"action":"continue","approved":true}}` + "\n",
		"result and error":     `{"jsonrpc":"2.0","id":2,"result":{"action":"continue","approved":true},"error":{"code":1,"message":""}}` + "\n",
		"not JSON":             "Traceback (most recent call last):\n",
		"half a line":          `{"jsonrpc":"2.0","id":2,"result":{"action":"continue","approved":true`,
		"two on a line":        `{"jsonrpc":"2.0","id":2,"result":{"action":"continue","approved":true}} {}` + "\n",
		"bad UTF-8":            result("{\"action\":\"continue\",\"approved\":true,\"reason\":\"\xff\"}"),
		"nested deeply":        result(`{"action":"continue","approved":true,"state":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`),
	}
	for name, answer := range answers {
		for stage, ask := range asks() {
			synctest.Test(t, func(t *testing.T) {
				c := rude(t, client.Options{Deadline: 2 * time.Second, ApprovalDeadline: 3 * time.Second}, func(string) string { return answer })
				o, err := ask(t.Context(), c)
				require.Error(t, err, "%s at %s", name, stage)
				require.Contains(t, err.Error(), "ask hookd: "+string(stage)+": ")
				requireNo(t, stage, o)
				require.Empty(t, o.Action)
				require.NoError(t, c.Close())
			})
		}
	}
}

// A yes about something that the agent did not ask is not one.
func TestAnswersThatCantBeActedOn(t *testing.T) {
	tests := []struct {
		name  string
		stage protocol.Stage
		text  string
		want  string
	}{
		{"modify without the change", protocol.StageUserMessage, `{"action":"modify"}`, `modify without "message"`},
		{"modify without the change, at tools", protocol.StageBeforeTool, `{"action":"modify","approval":{"approved":true,"digest":"DIGEST"}}`, `modify without "call"`},
		{"half a call", protocol.StageBeforeTool, `{"action":"modify","call":{"arguments":{}}}`, "call.tool is missing"},
		{"a call without arguments", protocol.StageBeforeTool, `{"action":"modify","call":{"tool":"rm"}}`, "call.arguments is missing"},
		{"a tool that is no name", protocol.StageBeforeTool, `{"action":"modify","call":{"tool":7,"arguments":{}}}`, "call.tool"},
		{"arguments as text", protocol.StageBeforeTool, `{"action":"modify","call":{"tool":"rm","arguments":"{}"}}`, "call.arguments"},
		{"more than a call", protocol.StageBeforeTool, `{"action":"modify","call":{"tool":"rm","arguments":{},"cmd":1}}`, "cmd"},
		{"messages as text", protocol.StageBeforeLLM, `{"action":"modify","request":{"messages":"x"}}`, "request.messages"},
		{"content of no type", protocol.StageOutput, `{"action":"modify","output":7}`, "output"},
		{"no approval", protocol.StageBeforeTool, `{"action":"continue"}`, "without an approval"},
		{"not approved", protocol.StageBeforeTool, `{"action":"allow","approval":{"approved":false,"digest":"DIGEST"}}`, "without an approval"},
		{"an approval for nothing", protocol.StageBeforeTool, `{"action":"continue","approval":{"approved":true}}`, "for another call"},
		{"an approval for the call before its change", protocol.StageBeforeTool, `{"action":"modify","call":{"tool":"rm","arguments":{}},"approval":{"approved":true,"digest":"DIGEST"}}`, "for another call"},
		{"an answer in its place that nobody approved", protocol.StageBeforeTool, `{"action":"respond","result":{"content":"x"}}`, "without an approval"},
		{"a question left open", protocol.StageBeforeTool, `{"action":"ask","approval":{"approved":true,"digest":"DIGEST"}}`, "left open"},
		{"an approval for another call", protocol.StageApproveTool, `{"approved":true,"digest":"00"}`, "for another call"},
		{"an approval for no call", protocol.StageApproveTool, `{"approved":true}`, "for another call"},
		{"respond without an answer", protocol.StageBeforeLLM, `{"action":"respond"}`, `respond without "response"`},
		{"inject without a message", protocol.StageStop, `{"action":"inject"}`, "inject without"},
		{"a verb that the stage does not have", protocol.StageAfterLLM, `{"action":"deny"}`, "not allowed at after_llm"},
		{"a decision where an approval belongs", protocol.StageApproveTool, `{"action":"allow"}`, "no verdict"},
		{"an approval where a decision belongs", protocol.StageOutput, `{"approved":true}`, "no verdict"},
		{"inject without content", protocol.StageStop, `{"action":"inject","inject":{"role":"user"}}`, "inject"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := dial(t, &hookd{answer: always(tt.text)}, client.Options{})
			o, err := asks()[tt.stage](t.Context(), c)
			require.ErrorContains(t, err, "its answer can't be acted on: ")
			require.ErrorContains(t, err, tt.want)
			requireNo(t, tt.stage, o)
		})
	}
}

// An answer over the limit costs one call, not the connection.
func TestHugeAnswer(t *testing.T) {
	huge := `{"action":"continue","reason":"` + strings.Repeat("x", 64<<20) + `"}`
	h := &hookd{}
	h.answer = func(r *rpc.Request) rpc.Work {
		if len(h.seen("hook.output")) == 1 {
			return say(huge)
		}
		return say(yes(r))
	}
	c := dial(t, h, client.Options{})
	v, err := c.Output(t.Context(), client.Output{Content: "x"})
	require.ErrorIs(t, err, rpc.ErrOversize)
	require.False(t, v.Allowed)
	v, err = c.Output(t.Context(), client.Output{Content: "x"})
	require.NoError(t, err)
	require.True(t, v.Allowed)
	require.Len(t, h.seen(protocol.MethodHello), 1)
}

// Lines without a meaning do not keep the answer from being read.
func TestNoiseBeforeTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := rude(t, client.Options{}, func(string) string {
			return "starting up\n" + `{"jsonrpc":"2.0","method":"hook.progress","params":{}}` + "\n\n" +
				`{"jsonrpc":"2.0","id":2,"result":{"action":"continue"}}` + "\n"
		})
		v, err := c.Output(t.Context(), client.Output{Content: "x"})
		require.NoError(t, err)
		require.True(t, v.Allowed)
		require.NoError(t, c.Close())
	})
}

func TestGreeting(t *testing.T) {
	h := &hookd{}
	c := dial(t, h, client.Options{
		Version: "1.2", SessionID: "s", Deadline: 1500 * time.Microsecond, ApprovalDeadline: -1, OwnEvents: true,
	})
	require.Equal(t, []string{`{"name":"tester","version":1,"client":{"name":"tester","version":"1.2"},"session_id":"s","deadline_ms":2,"events":true}`},
		h.seen(protocol.MethodHello))
	w := c.Welcome()
	require.Equal(t, uint64(7), w.Generation)
	require.Equal(t, 1000000, w.Limits.MaxMessageBytes)
	require.Equal(t, "9", w.Server.Version)
}

func TestDefaultDeadlines(t *testing.T) {
	h := &hookd{}
	dial(t, h, client.Options{})
	require.Contains(t, h.seen(protocol.MethodHello)[0], `"deadline_ms":60000,"approval_deadline_ms":600000`)
}

func TestNoWelcome(t *testing.T) {
	for answer, want := range map[string]string{
		`{"ok":false,"version":1}`:       "no welcome to version 1",
		`{"ok":true,"version":2}`:        "no welcome to version 1",
		`{"OK":true,"Version":1}`:        "no welcome to version 1",
		`{}`:                             "no welcome to version 1",
		`{"ok":"yes","version":1}`:       "can't be read",
		`[]`:                             "can't be read",
		`{"ok":true,"ok":1,"version":1}`: "holds a name twice",
	} {
		o := client.Options{Name: "tester", Socket: serve(t, &hookd{welcome: answer})}
		_, err := client.Dial(t.Context(), o)
		require.ErrorContains(t, err, "greet hookd: ", answer)
		require.ErrorContains(t, err, want, answer)
	}
}

// A daemon that can't hold more, or so it says, is believed within reason.
func TestOddLimits(t *testing.T) {
	for _, n := range []string{"-5", "0", "900000000000"} {
		h := &hookd{welcome: `{"ok":true,"version":1,"limits":{"max_in_flight":` + n + `}}`}
		c := dial(t, h, client.Options{})
		v, err := c.Output(t.Context(), client.Output{Content: "x"})
		require.NoError(t, err)
		require.True(t, v.Allowed)
	}
}

func TestGreetingThatIsNotAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, there) }()
		began := time.Now()
		_, err := client.New(t.Context(), here, client.Options{Name: "tester"})
		require.ErrorContains(t, err, "did not answer the greeting within 5s")
		require.Equal(t, 5*time.Second, time.Since(began))
		_, err = there.Write([]byte("x"))
		require.ErrorIs(t, err, io.ErrClosedPipe, "the stream is closed")
	})
}

// A daemon that turns the agent away says why before it hangs up.
func TestTurnedAway(t *testing.T) {
	socket := serve(t, &hookd{}) + "2"
	stop, err := serveOn(socket, &hookd{}, func(rpc.Creds) error { return errors.New("uid 4711 may not ask") })
	require.NoError(t, err)
	defer stop()
	_, err = client.Dial(t.Context(), client.Options{Name: "tester", Socket: socket})
	require.ErrorIs(t, err, rpc.ErrClosed)
	require.ErrorContains(t, err, "uid 4711 may not ask")
}

func TestNobodyThere(t *testing.T) {
	_, err := client.Dial(t.Context(), client.Options{Name: "tester", Socket: t.TempDir() + "/none"})
	require.ErrorContains(t, err, `start it with "hookd serve"`)
}

// A process of somebody else's is told nothing, not even the agent's name.
func TestForeignDaemon(t *testing.T) {
	h := &hookd{}
	o := client.Options{Name: "tester", Socket: serve(t, h)}
	foreign := func(net.Conn) (rpc.Creds, error) { return rpc.Creds{PID: 1, UID: 4711}, nil }

	_, err := client.Dial(t.Context(), o.WithCreds(foreign))
	require.ErrorIs(t, err, client.ErrUntrusted)
	require.ErrorContains(t, err, "uid 4711")
	_, err = client.Dial(t.Context(), o.WithCreds(func(net.Conn) (rpc.Creds, error) { return rpc.Creds{}, errors.New("not told") }))
	require.ErrorIs(t, err, client.ErrUntrusted)
	require.Empty(t, h.seen(protocol.MethodHello))

	o.AllowUIDs = []int{1, 4711}
	c, err := client.Dial(t.Context(), o.WithCreds(foreign))
	require.NoError(t, err)
	require.NoError(t, c.Close())
}

// Whatever the bytes are, a yes is read from nothing but a yes.
func FuzzToolAnswer(f *testing.F) {
	for _, s := range []string{
		`{"action":"continue"}`, `{"action":"modify","call":{"tool":"ls","arguments":{}}}`, `{"action":"ask"}`, `{"action":"deny_tool"}`,
		`{"action":"allow","approval":{"approved":true,"digest":"8ce2d8cf3d5b9be6e4d51ab4e4fca9e8d5a1f2a1"}}`,
		`{"action":"respond","result":{"content":"x"}}`, `{"action":"continue","action":"deny"}`, `null`, ``, `{"Action":"continue"}`,
	} {
		f.Add([]byte(s), true)
		f.Add([]byte(s), false)
	}
	f.Fuzz(func(t *testing.T, raw []byte, later bool) {
		v, err := client.ReadToolAnswer(raw, later)
		if err != nil {
			require.Empty(t, v.Action)
		}
		if !v.Allowed && !v.NeedsApproval {
			require.Empty(t, v.Tool)
			require.Nil(t, v.Arguments)
			require.NotEmpty(t, v.Result)
			return
		}
		require.NoError(t, err)
		require.Equal(t, later, v.NeedsApproval)
		require.Contains(t, []protocol.Action{"continue", "modify", "allow", "ask"}, v.Action)
		require.NotEmpty(t, v.Tool)
		require.Equal(t, "{", string(v.Arguments[:1]))
		require.Nil(t, v.Result)
		obj, err := protocol.DecodeObject(raw, 0)
		require.NoError(t, err)
		require.NotNil(t, obj.Get("action"))
		if v.Allowed {
			require.True(t, v.Approval.Approved)
			require.NotEqual(t, protocol.ActionAsk, v.Action)
		}
	})
}
