package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// asHook makes the test binary a hook, so that tests need no interpreter.
const asHook = "AGENT_TEST_HOOK"

func TestMain(m *testing.M) {
	if os.Getenv(asHook) != "" {
		scripted()
		return
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(built.dir)
		os.Exit(code)
	}))
}

// rule is one answer of the scripted hook: to a stage whose params hold all of
// Has.
type rule struct {
	Stage  string          `json:"stage"`
	Has    []string        `json:"has"`
	Answer json.RawMessage `json:"answer"`
}

// scripted is a hook that answers by the rules of its config, and {} where none
// fits.
func scripted() {
	var rules []rule
	for lines := bufio.NewReader(os.Stdin); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var request struct {
			ID     json.RawMessage
			Method string
			Params json.RawMessage
		}
		if err := json.Unmarshal(line, &request); err != nil || request.ID == nil {
			continue
		}
		answer := json.RawMessage(`{}`)
		if request.Method == "hook.hello" {
			var hello struct{ Config struct{ Rules []rule } }
			if err := json.Unmarshal(request.Params, &hello); err == nil {
				rules = hello.Config.Rules
			}
		}
		for _, r := range rules {
			if "hook."+r.Stage == request.Method && containsAll(string(request.Params), r.Has) {
				answer = r.Answer
				break
			}
		}
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", request.ID, answer)
	}
}

func containsAll(text string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

// scriptedHook is the config entry of a [scripted] hook.
func scriptedHook(t *testing.T, priority int, rules []rule) map[string]any {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	var stages []string
	seen := map[string]bool{}
	for _, r := range rules {
		if !seen[r.Stage] {
			seen[r.Stage] = true
			stages = append(stages, r.Stage)
		}
	}
	return map[string]any{
		"command": []string{self}, "env": map[string]string{asHook: "1"}, "intercept": stages, "priority": priority,
		"fail_policy": "deny", "timeout_ms": 30000, "may_respond": true, "config": map[string]any{"rules": rules},
	}
}

// built is hookd, built once for all tests.
var built struct {
	once sync.Once
	dir  string
	err  error
}

func hookdCommand(t *testing.T) string {
	t.Helper()
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "hookd"); built.err != nil {
			return
		}
		if out, err := exec.Command("go", "build", "-o", built.dir, "../../cmd/hookd").CombinedOutput(); err != nil {
			built.err = fmt.Errorf("%w: %s", err, out)
		}
	})
	require.NoError(t, built.err)
	return filepath.Join(built.dir, "hookd")
}

// daemon is a real hookd.
type daemon struct {
	socket string
	events string // file of events, a line each
	pid    int
}

// startDaemon starts hookd with the given hooks and waits until they are ready.
func startDaemon(t *testing.T, processes map[string]any) *daemon {
	t.Helper()
	dir := shortDir(t)
	d := &daemon{socket: filepath.Join(dir, "s"), events: filepath.Join(dir, "events.jsonl")}
	config, err := json.Marshal(map[string]any{"record": map[string]any{"mode": "off"}, "hooks": map[string]any{
		"processes": processes, "builtins": map[string]any{"log": map[string]any{"config": map[string]any{"path": d.events}}},
	}})
	require.NoError(t, err)
	file := filepath.Join(dir, "config.json")
	require.NoError(t, os.WriteFile(file, config, 0o600))

	var log bytes.Buffer
	cmd := exec.Command(hookdCommand(t), "serve", "--config", file, "--socket", d.socket)
	cmd.Stderr = &log
	require.NoError(t, cmd.Start())
	d.pid = cmd.Process.Pid
	ended := make(chan struct{})
	go func() { // reaps it at once, also when a test kills it
		defer close(ended)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-ended
		if t.Failed() {
			t.Logf("hookd: %s", log.String())
		}
	})
	out, err := exec.Command(hookdCommand(t), "status", "--wait", "30s", "--socket", d.socket).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return d
}

// shortDir is a new folder whose name leaves room for a socket's.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "agent")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// fakeHookd listens on a socket and answers every request with what answer makes
// of it: a line, "" for none, hangUp for the end of the connection.
func fakeHookd(t *testing.T, answer func(method, id, params string) string) (socket string) {
	t.Helper()
	socket = filepath.Join(shortDir(t), "s")
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer conn.Close()
				for lines := bufio.NewScanner(conn); lines.Scan(); {
					var request struct {
						ID, Params json.RawMessage
						Method     string
					}
					if json.Unmarshal(lines.Bytes(), &request) != nil || request.ID == nil {
						continue
					}
					text := answer(request.Method, string(request.ID), string(request.Params))
					if text == hangUp {
						return
					}
					if _, err := conn.Write([]byte(text)); err != nil {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		conns.Wait()
	})
	return socket
}

const (
	hangUp = "hang up"
	// goOn is a welcome to a greeting and a yes to everything else.
	goOn = `{"ok":true,"name":"hookd","version":1,"action":"continue","approval":{"approved":true},"generation":1}`
)

// result is an answer line.
func result(id, json string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"result":` + json + "}\n"
}

// failure is an error line.
func failure(id string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32603,"message":"trouble"}}` + "\n"
}

// example is one of the agents.
type example struct {
	name string
	run  func(t *testing.T, o options) (out string, err error)
}

// examples are those that can run here.
func examples(t *testing.T) []example {
	t.Helper()
	list := []example{{"agent.go", func(t *testing.T, o options) (string, error) {
		var out bytes.Buffer
		err := run(t.Context(), o, &out)
		return out.String(), err
	}}}
	if _, err := exec.LookPath("python3"); err == nil {
		list = append(list, example{"agent.py", program("python3", "agent.py")})
	}
	if _, err := exec.LookPath("node"); err == nil {
		list = append(list, example{"agent.ts", program("node", typescript(t)...)})
	}
	return list
}

// program runs an agent that is a program.
func program(command string, args ...string) func(*testing.T, options) (string, error) {
	return func(t *testing.T, o options) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, command, append(args[:len(args):len(args)], o.script, o.folder)...)
		cmd.Env = append(os.Environ(), "HOOKD_SOCKET="+o.socket, fmt.Sprint("AGENT_PATIENCE_MS=", o.patience.Milliseconds()), "NODE_NO_WARNINGS=1")
		cmd.WaitDelay = time.Second
		var out, problems bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &problems
		err := cmd.Run()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, problems.String())
		}
		return out.String(), err
	}
}

// typescript is what to give to node so that it runs agent.ts: the file itself,
// or a copy without types for a node that does not know them.
func typescript(t *testing.T) []string {
	t.Helper()
	const flag = "--experimental-strip-types"
	out, err := exec.Command("node", "-p",
		`process.features.typescript ? "yes" : process.allowedNodeEnvironmentFlags.has("`+flag+`") ? "flag" : "no"`).Output()
	require.NoError(t, err)
	switch strings.TrimSpace(string(out)) {
	case "yes":
		return []string{"agent.ts"}
	case "flag":
		return []string{flag, "agent.ts"}
	}
	ts, err := os.ReadFile("agent.ts")
	require.NoError(t, err)
	js := filepath.Join(shortDir(t), "agent.mjs")
	require.NoError(t, os.WriteFile(js, []byte(withoutTypes(string(ts))), 0o600))
	return []string{js}
}

// withoutTypes takes the types out of agent.ts, which has them at two places
// only: in lines that start with "type", and between a constant's name and its
// value. Anything else would be a syntax error for node.
func withoutTypes(ts string) string {
	var js strings.Builder
	for line := range strings.Lines(ts) {
		declared, rest, annotated := strings.Cut(line, ": ")
		name, constant := strings.CutPrefix(declared, "const ")
		if strings.HasPrefix(line, "type ") {
			line = "\n"
		} else if constant && annotated && !strings.Contains(name, " ") {
			_, value, _ := strings.Cut(rest, " = ")
			line = declared + " = " + value
		}
		js.WriteString(line)
	}
	return js.String()
}

// writeScript writes a script for the agents.
func writeScript(t *testing.T, turns ...turn) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "script.json")
	require.NoError(t, os.WriteFile(file, []byte(encode(script{Model: "scripted-1", System: "You do what you are told.", Turns: turns})), 0o600))
	return file
}

// says is a model's answer that calls tools, and one that does not with none.
func says(text string, calls ...toolCall) response {
	for i := range calls {
		calls[i].ID = fmt.Sprint("call-", i+1)
	}
	return response{Content: []byte(encode(text)), ToolCalls: calls}
}

func bash(command string) toolCall {
	return toolCall{Name: "bash", Arguments: []byte(encode(map[string]string{"command": command}))}
}

func writeFile(path, content string) toolCall {
	arguments := struct {
		Path    string `json:"path"`
		Content string `json:"content"`
	}{path, content}
	return toolCall{Name: "write_file", Arguments: []byte(encode(arguments))}
}
