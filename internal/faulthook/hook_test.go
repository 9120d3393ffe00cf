package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// asHook in the environment makes the test binary this program.
const asHook = "FAULTHOOK_TEST"

func TestMain(m *testing.M) {
	if os.Getenv(asHook) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

const (
	hello = `{"jsonrpc":"2.0","id":1,"method":"hook.hello","params":{"version":1}}`
	call  = `{"jsonrpc":"2.0","id":7,"method":"hook.before_tool","params":{"tool":"bash","arguments":{"a":1},"context":{"write":"$RESULT{\"reason\":\"$ARGS\"}}"}}}`
	ok    = `{"jsonrpc":"2.0","id":1,"result":{"ok":true}}` + "\n"
	yes   = `{"jsonrpc":"2.0","id":7,"result":{}}` + "\n"
)

// talk says lines to the program in a mode and returns what it writes until it
// ends, or until as much came as is wanted.
func talk(t *testing.T, want string, args []string, lines ...string) (out, stderr string, state *os.ProcessState) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asHook+"=1", "GORACE=atexit_sleep_ms=0")
	var told bytes.Buffer
	cmd.Stderr = &told
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	late := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	_, _ = io.WriteString(stdin, strings.Join(lines, "\n")+"\n") // it may have ended
	got := make([]byte, len(want))
	n, _ := io.ReadFull(stdout, got)
	stdin.Close()
	rest, _ := io.ReadAll(stdout)
	_ = cmd.Wait() // how it ended stands in its state
	return string(got[:n]) + string(rest), told.String(), cmd.ProcessState
}

func TestModes(t *testing.T) {
	result := func(text string) string { return `{"jsonrpc":"2.0","id":7,"result":` + text + "}\n" }
	for mode, want := range map[string]string{
		"obey":          ok + result(`{"reason":"{\"a\":1}"}`),
		"well":          ok + yes,
		"hello-refuse":  `{"jsonrpc":"2.0","id":1,"result":{"ok":false,"reason":"no licence"}}` + "\n",
		"version99":     `{"jsonrpc":"2.0","id":1,"result":{"version":99}}` + "\n",
		"late=10ms":     ok + yes,
		"burn=1ms":      ok + yes,
		"memory=1MiB":   ok + yes,
		"dup":           ok + yes + result(`{"action":"deny"}`),
		"stringid":      ok + `{"jsonrpc":"2.0","id":"7","result":{}}` + "\n",
		"partial":       ok + `{"jsonrpc":"2.0","id":7,"res`,
		"bigline=10":    ok + result(`{"reason":"xxxxxxxxxx"}`),
		"deep=3":        ok + result(`{"state":{"x":[[[]]]}}`),
		"badutf8":       ok + result("{\"reason\":\"\xff\"}"),
		"crlf":          ok + strings.TrimSuffix(yes, "\n") + "\r\n",
		"twovalues":     ok + strings.TrimSuffix(yes, "\n") + " " + yes,
		"noise":         ok + "debug: got a call\n" + yes,
		"floodout=3":    ok + "noise\nnoise\nnoise\n" + yes,
		"notifyflood=2": ok + strings.Repeat(`{"jsonrpc":"2.0","method":"hook.progress","params":{}}`+"\n", 2) + yes,
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			lines := []string{hello, call}
			if !strings.HasPrefix(want, ok) {
				lines = lines[:1]
			}
			out, _, state := talk(t, want, []string{"-mode", mode}, lines...)
			require.Equal(t, want, out)
			require.True(t, state.Success(), "%s", state)
		})
	}
}

func TestEnds(t *testing.T) {
	for mode, want := range map[string]string{
		"exit=127": "exit status 127", "crash": "exit status 3", "crashloop=1ms": "exit status 3",
		"segv": "signal: segmentation fault", "kill": "signal: killed", "no-such-mode": "exit status 64",
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			_, _, state := talk(t, strings.Repeat("more than comes", 1000), []string{"-mode", mode}, hello, call)
			require.Equal(t, want, strings.TrimSuffix(state.String(), " (core dumped)"))
		})
	}
}

// A mode holds only while, or until, a file is there.
func TestWhileAndUntil(t *testing.T) {
	there, missing := filepath.Join(t.TempDir(), "file"), filepath.Join(t.TempDir(), "none")
	require.NoError(t, os.WriteFile(there, nil, 0o600))
	for flag, wrong := range map[string]bool{"-while=" + there: true, "-while=" + missing: false, "-until=" + there: false, "-until=" + missing: true} {
		out, stderr, state := talk(t, ok, []string{"-mode=exit=9", flag}, hello)
		if wrong {
			require.Equal(t, 9, state.ExitCode(), flag)
			require.Contains(t, stderr, "I can't start")
		} else {
			require.Equal(t, ok, out, flag)
		}
	}
}

// Orders of a call are carried out in their order.
func TestOrders(t *testing.T) {
	order := func(o string) string {
		return `{"jsonrpc":"2.0","id":7,"method":"hook.before_tool","params":{"tool":"bash","context":` + o + `}}`
	}
	out, stderr, _ := talk(t, ok+yes, nil, hello,
		`{"jsonrpc":"2.0","method":"hook.event","params":{}}`, `{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":3}}`,
		`{"jsonrpc":"2.0","id":4,"error":{"code":-32601,"message":"no"}}`,
		order(`{"stderr":2000,"say":"last\n","write":"$RESULT{\"reason\":\"$EVENTS\"}}","pad":1}`))
	require.Equal(t, ok+`{"jsonrpc":"2.0","id":7,"result":{"reason":"1"}}`+"\n", out)
	require.Contains(t, stderr, "cancelled 3\n")
	require.Contains(t, stderr, `hookd says {"code":-32601,"message":"no"}`)
	require.Contains(t, stderr, strings.Repeat("!", 999)+"\nlast\n")

	approve := `{"jsonrpc":"2.0","id":7,"method":"hook.approve_tool","params":{"tool":"bash"}}`
	want := ok + `{"jsonrpc":"2.0","id":7,"result":{"approved":true}}` + "\n"
	out, _, _ = talk(t, want, nil, hello, approve)
	require.Equal(t, want, out)
}

// What it leaves behind lives on, and holds its files.
func TestLeave(t *testing.T) {
	told, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	require.NoError(t, err)
	defer told.Close()
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), asHook+"=1", "GORACE=atexit_sleep_ms=0"), told
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = io.WriteString(stdin, hello+"\n"+`{"jsonrpc":"2.0","id":7,"method":"hook.before_tool","params":{"context":{"leave":"escape","silent":true,"exit":5}}}`+"\n")
	require.NoError(t, err)
	require.Error(t, cmd.Wait())
	require.Equal(t, 5, cmd.ProcessState.ExitCode())
	text, err := os.ReadFile(told.Name())
	require.NoError(t, err)
	_, id, _ := strings.Cut(string(text), "left ")
	pid, err := strconv.Atoi(strings.TrimSpace(id))
	require.NoError(t, err, "%s", text)
	require.NoError(t, syscall.Kill(pid, 0))
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
}
