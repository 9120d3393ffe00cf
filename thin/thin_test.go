package thin

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/client"
	"github.com/hookd/hookd/protocol"
)

// TestSocketPath: the thin client looks where every other client looks.
func TestSocketPath(t *testing.T) {
	dir := t.TempDir()
	for _, env := range []map[string]string{
		{},
		{"HOME": "/home/ann"},
		{"HOOKD_SOCKET": "/x/y.sock", "XDG_RUNTIME_DIR": dir},
		{"XDG_RUNTIME_DIR": dir},
		{"XDG_RUNTIME_DIR": dir + "/"},
		{"XDG_RUNTIME_DIR": dir + "/missing", "XDG_STATE_HOME": "/state"},
		{"XDG_STATE_HOME": "/state/", "HOME": "/home/ann"},
	} {
		getenv := func(name string) string { return env[name] }
		require.Equal(t, client.SocketPath("", getenv), filepath.Clean(socketPath("", getenv)), "%v", env)
	}
	require.Equal(t, "named", socketPath("named", nil))
}

// fromPipe reads what is written to a pipe that stays open.
func fromPipe(t *testing.T, limit int, within time.Duration, parts ...string) ([]byte, Failure) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	defer w.Close()
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		for _, p := range parts {
			if _, err := w.WriteString(p); err != nil {
				return
			}
		}
	}()
	payload, failure := readPayload(int(r.Fd()), limit, nowMS()+within.Milliseconds())
	<-wrote
	return payload, failure
}

func TestPayloadNeedsNoEnd(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`{"a":1}`, `{"a":1}`},
		{"  {\"a\":\"}\\\"{\"}\nrest", "  {\"a\":\"}\\\"{\"}"},
		{"\xEF\xBB\xBF{}", "{}"},
		{`[[],{}]`, `[[],{}]`},
		{`"text"`, `"text"`},
		{"17 ", "17"},
		{`}`, `}`}, // the daemon says what is wrong
	} {
		payload, failure := fromPipe(t, 1000, 10*time.Second, c.in)
		require.Empty(t, failure, c.in)
		require.Equal(t, c.want, string(payload))
	}
	big := `{"x":"` + strings.Repeat("y", 300_000) + `"}`
	payload, failure := fromPipe(t, 1<<20, 10*time.Second, big[:100_000], big[100_000:])
	require.Empty(t, failure)
	require.Equal(t, big, string(payload))
}

func TestPayloadThatIsNone(t *testing.T) {
	_, failure := fromPipe(t, 1000, 50*time.Millisecond, `{"a":`)
	require.Equal(t, Failure("the agent's payload did not come to its end in time"), failure)
	_, failure = fromPipe(t, 10, 10*time.Second, `{"a":"0123456789"}`)
	require.Equal(t, Failure("the agent's payload is larger than the limit"), failure)

	empty, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer empty.Close()
	_, failure = readPayload(int(empty.Fd()), 100, nowMS()+1000)
	require.Equal(t, Failure("the agent sent no payload"), failure)

	cut := filepath.Join(t.TempDir(), "cut")
	require.NoError(t, os.WriteFile(cut, []byte(`{"a":1`), 0o600))
	f, err := os.Open(cut)
	require.NoError(t, err)
	defer f.Close()
	_, failure = readPayload(int(f.Fd()), 100, nowMS()+1000)
	require.Equal(t, Failure("the agent's payload ends in the middle"), failure)
}

func TestAnswers(t *testing.T) {
	for line, want := range map[string]Answer{
		`{"jsonrpc":"2.0","id":1,"result":{"stdout":"{\"a\":\"\u00e4\\n\"}","stderr":"","exit_code":0,"warnings":["x"]}}`: {Stdout: []byte(`{"a":"ä\n"}`), Stderr: []byte{}},
		`{"id":1,"jsonrpc":"2.0","result":{"stdout":"","stderr":"no \ud83d\ude00","exit_code":2,"warnings":[]}}`:          {Stdout: []byte{}, Stderr: []byte("no 😀"), Exit: 2},
	} {
		a, failure := readAnswer([]byte(line))
		require.Empty(t, failure, line)
		require.Equal(t, want, a)
	}
	for line, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"agent: \"x\" is unknown"}}`:      `the daemon says: agent: "x" is unknown`,
		`{"jsonrpc":"2.0","id":1,"result":{"stdout":"","stderr":"","exit_code":1,"warnings":[]}}`:   "can't be read",
		`{"jsonrpc":"2.0","id":1,"result":{"stdout":"","stderr":"","exit_code":512,"warnings":[]}}`: "can't be read",
		`{"jsonrpc":"2.0","id":1,"result":{"action":"continue"}}`:                                   "can't be read",
		`{"jsonrpc":"2.0","id":1,"result":{"stdout":"a`:                                             "can't be read",
		``: "can't be read",
	} {
		_, failure := readAnswer([]byte(line))
		require.Contains(t, string(failure), want, line)
	}
}

func TestDialRefusesLongPathsAndSilence(t *testing.T) {
	_, failure := dial("/"+strings.Repeat("x", 200), nowMS()+1000)
	require.Contains(t, string(failure), "too long")
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	defer l.Close()
	c, failure := dial(path, nowMS()+60)
	require.Empty(t, failure)
	defer c.close()
	_, failure = c.readLine()
	require.Equal(t, Failure("the daemon did not answer in time"), failure)
}

func TestParse(t *testing.T) {
	o, help, bad := Parse([]string{
		"--agent", "claude", "--event=PreToolUse", "--on-unavailable", "allow", "--approve", "--autostart=false",
		"--timeout", "900ms", "--max-bytes", "100", "--socket=/s", "--dry-run",
	})
	require.Empty(t, bad)
	require.False(t, help)
	require.Equal(t, Options{
		Agent: "claude", Event: "PreToolUse", OnUnavailable: "continue", Approve: true, TimeoutMS: 900, MaxBytes: 100, Socket: "/s", DryRun: true,
	}, o)
	_, help, _ = Parse([]string{"--help"})
	require.True(t, help)
	for _, args := range []string{"--agent", "--nope x", "--on-unavailable perhaps", "--timeout 5", "--timeout 0s", "--timeout 99999999m", "--max-bytes -1", "x", "--approve=maybe"} {
		_, _, bad := Parse(strings.Fields(args))
		require.NotEmpty(t, bad, args)
	}
	for text, ms := range map[string]int{"25s": 25_000, "2m": 120_000, "1ms": 1} {
		got, ok := duration(text)
		require.True(t, ok)
		require.Equal(t, ms, got)
	}
}

// FuzzValueEnd holds the scanner to the strict reader: where that one finds a
// whole value, the scanner ends behind it, whatever follows.
func FuzzValueEnd(f *testing.F) {
	f.Add(`{"a":[1,"x\"}"]}`)
	f.Add(`"text"`)
	f.Add(`12`)
	f.Add("{\n}")
	f.Fuzz(func(t *testing.T, text string) {
		if !jsontext.Value(text).IsValid() {
			var s scanner
			s.scan([]byte(text), 0) // no panic
			return
		}
		want := len(strings.TrimRight(text, " \t\r\n"))
		var s scanner
		require.Equal(t, want, s.scan([]byte(text+"\n{"), 0))
		var parts scanner // in two parts it is the same
		half := len(text) / 2
		end := parts.scan([]byte(text[:half]), 0)
		if end < 0 {
			end = parts.scan([]byte(text+"\n{"), half)
		}
		require.Equal(t, want, end)
	})
}

// FuzzStrings holds the writer and the reader of strings to those of a library.
func FuzzStrings(f *testing.F) {
	f.Add("a\"\\\n\x00\x7f\xff\xed\xa0\x80é😀")
	f.Fuzz(func(t *testing.T, text string) {
		quoted := appendString(nil, []byte(text))
		require.NoError(t, protocol.CheckValue(quoted, 0), "%q", text)
		want := string([]rune(text)) // U+FFFD for each bad byte
		require.Equal(t, want, protocol.Unquote(jsontext.Value(quoted)))
		r := reader{b: quoted}
		require.Equal(t, want, string(r.text()))
		require.False(t, r.bad)

		std, err := json.Marshal(text) // with other escapes
		require.NoError(t, err)
		r = reader{b: std}
		require.Equal(t, strings.ToValidUTF8(want, "\uFFFD"), string(r.text()))
		require.True(t, utf8.Valid(quoted))
		r = reader{b: []byte(text)}
		r.text() // no panic, whatever it is
		_, _ = readAnswer([]byte(text))
	})
}

func TestVersionIsPrinted(t *testing.T) {
	for _, args := range [][]string{{"--version"}, {"--agent", "claude", "--version"}} {
		o, help, bad := Parse(args)
		require.Empty(t, bad)
		require.False(t, help)
		require.True(t, o.Version)
	}
	o, _, _ := Parse([]string{"--agent", "--version"})
	require.False(t, o.Version, "it is the value of another flag")
	require.Contains(t, Usage, "--version")
}

// TestAnswerThatNobodyGets: a no that can't be said is still a no.
func TestAnswerThatNobodyGets(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("this system has no /dev/full")
	}
	defer full.Close()
	gone, err := os.Open(os.DevNull) // can't be written to
	require.NoError(t, err)
	defer gone.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer null.Close()
	both, err := os.OpenFile(os.DevNull, os.O_RDWR, 0) // as the runtime does for a closed one
	require.NoError(t, err)
	defer both.Close()
	deny := []byte(`{"hookSpecificOutput":{"permissionDecision":"deny"}}`)
	for _, c := range []struct {
		agent, event, payload string
		exit, want            int
	}{
		{"claude", "PreToolUse", `{}`, 0, 2},
		{"auto", "auto", `{"hook_event_name":"PreToolUse"}`, 0, 2},
		{"claude", "PreToolUse", `{"cursor_version":"1","hook_event_name":"preToolUse"}`, 0, 2},
		{"claude", "SessionEnd", `{}`, 0, 0}, // there is nothing to block
		{"claude", "SessionEnd", `{}`, 3, 3},
		{"unheard", "of", `{}`, 0, 2},
	} {
		a := Answer{Stdout: deny, Exit: c.exit, agent: c.agent, event: c.event, payload: []byte(c.payload)}
		for _, out := range []int{int(full.Fd()), int(gone.Fd()), int(both.Fd()), -1} {
			require.Equal(t, c.want, say(a, out, int(null.Fd())), "%+v", c)
			require.Equal(t, c.want, say(a, out, -1), "%+v", c)
		}
		require.Equal(t, c.exit, say(a, int(null.Fd()), -1))
		a.Stdout = nil
		require.Equal(t, c.exit, say(a, -1, -1), "nothing was to be said")
	}
}

// TestFolderOfAPayload: an agent that does not say where it works has started
// this program there.
func TestFolderOfAPayload(t *testing.T) {
	here, err := os.Getwd()
	require.NoError(t, err)
	for payload, want := range map[string]string{
		`{"agent_action_name":"pre_read_code","tool_info":{"file_path":"a"}}`: `{"cwd":"` + here + `","agent_action_name":"pre_read_code","tool_info":{"file_path":"a"}}`,
		` { "agent_action_name":"x"}`:                                         ` {"cwd":"` + here + `", "agent_action_name":"x"}`,
		`{"agent_action_name":"x","cwd":"/w"}`:                                `{"agent_action_name":"x","cwd":"/w"}`,
		`{"hook_event_name":"PreToolUse"}`:                                    `{"hook_event_name":"PreToolUse"}`,
		`["agent_action_name"]`:                                               `["agent_action_name"]`,
	} {
		got := withFolder("auto", []byte(payload))
		require.Equal(t, want, string(got))
	}
	require.Equal(t, `{"cwd":"`+here+`"}`, string(withFolder("windsurf", []byte("{}"))))
	require.Equal(t, `{"cwd":"`+here+`" }`, string(withFolder("windsurf", []byte("{ }"))))
	require.Equal(t, `7`, string(withFolder("windsurf", []byte("7"))))
	require.Equal(t, ``, string(withFolder("windsurf", nil)))
}
