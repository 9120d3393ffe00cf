package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// running is a daemon that runs as a process of its own.
type running struct {
	t      *testing.T
	dir    string
	cmd    *exec.Cmd
	stderr bytes.Buffer
}

// serveProcess prepares a daemon with this config, in which $EXAMPLES, $SCRIPTS
// and $DIR stand for folders, and starts it.
func serveProcess(t *testing.T, config string) *running {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "hookd")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	d := &running{t: t, dir: dir}
	examples, err := filepath.Abs("../../../examples/hooks")
	require.NoError(t, err)
	scripts, err := filepath.Abs("../../../mount/testdata")
	require.NoError(t, err)
	config = strings.NewReplacer("$EXAMPLES", examples, "$SCRIPTS", scripts, "$DIR", dir).Replace(config)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600))
	t.Cleanup(func() {
		d.kill(syscall.SIGTERM)
		if t.Failed() {
			t.Logf("log of the daemon:\n%s", &d.stderr)
		}
	})
	d.start()
	return d
}

func (d *running) env() []string {
	return []string{"HOOKD_SOCKET=" + filepath.Join(d.dir, "a.sock"), "HOOKD_CONTROL_SOCKET=" + filepath.Join(d.dir, "c.sock"), "STATE_DIRECTORY=", "XDG_STATE_HOME=" + d.dir, "GORACE=atexit_sleep_ms=0"}
}

// hookd is a command that speaks to this daemon.
func (d *running) hookd(args ...string) *exec.Cmd {
	cmd := exec.Command("hookd", args...)
	cmd.Env = append(os.Environ(), d.env()...)
	return cmd
}

func (d *running) start() {
	d.t.Helper()
	d.cmd = d.hookd("serve", "--config", filepath.Join(d.dir, "config.json"))
	d.cmd.Stderr = &d.stderr
	require.NoError(d.t, d.cmd.Start())
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		out, err := d.hookd("status", "--wait", "10s").CombinedOutput()
		if err == nil {
			return
		}
		require.True(d.t, time.Now().Before(end), "%s", out)
	}
}

func (d *running) kill(s syscall.Signal) {
	if d.cmd == nil {
		return
	}
	_ = d.cmd.Process.Signal(s)
	_ = d.cmd.Wait() // how it ended is the signal's doing
	d.cmd = nil
}

// agentNames are the names of those who are connected.
func (d *running) agentNames() string {
	out, err := d.hookd("status", "--json").Output()
	require.NoError(d.t, err)
	var s struct{ Agents []struct{ Name string } }
	require.NoError(d.t, json.Unmarshal(out, &s))
	var names []string
	for _, a := range s.Agents {
		names = append(names, a.Name)
	}
	return strings.Join(names, " ")
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) {
		require.True(t, time.Now().Before(end), "still not so: %s", what)
	}
}

func needs(t *testing.T, interpreters ...string) {
	t.Helper()
	for _, name := range interpreters {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%s is not installed", name)
		}
	}
}

var allModes = []string{"observe", "llm", "tool", "approve"}

func says(text string) func(string, map[string]any) picoResult {
	return func(_ string, arguments map[string]any) picoResult {
		return picoResult{ForLLM: fmt.Sprint(text, " ", arguments), ForUser: text}
	}
}

// A PicoClaw process mounts hookd as one of its hooks, and all of hookd's judge
// what it does.
func TestPicoclawMountsConnect(t *testing.T) {
	t.Parallel()
	needs(t, "python3", "node")
	d := serveProcess(t, `{"hooks": {"processes": {
		"review-gate": {"command": ["python3", "$EXAMPLES/review_gate.py"], "intercept": ["before_tool", "approve_tool"], "fail_policy": "deny"},
		"redact": {"command": ["node", "$EXAMPLES/redact.mjs"], "intercept": ["before_llm", "after_tool"], "fail_policy": "deny"},
		"rewriter": {"command": ["node", "$SCRIPTS/picoclaw_rewriter.mjs"], "intercept": ["after_llm"], "dialect": "picoclaw", "fail_policy": "deny"},
		"watcher": {"command": ["python3", "$SCRIPTS/picoclaw_gate.py"], "observe": ["agent.tool.*"], "dialect": "picoclaw", "env": {"PICOCLAW_HOOK_LOG_FILE": "$DIR/events"}}
	}}}`)
	p := mountHook(t, d.env(), allModes, "hookd", "connect")
	require.Equal(t, "hookd", d.agentNames())

	bash := func(command string) string {
		return p.tool("bash", map[string]any{"command": command}, says("token AKIAIOSFODNN7EXAMPLE"))
	}
	require.Equal(t, `bash said "token [redacted AWS key id] map[command:ls <x> & y]" to the model and "token [redacted AWS key id]" to the user`, bash("ls <x> & y"))
	require.Equal(t, "denied by hook: deletes a system or home folder; name what you mean inside it", bash("rm -rf /"))
	// The gate asks for approval. Asked, it has no person to ask and says no.
	require.Contains(t, bash("git push origin feature"), "denied by approval hook: denied by review-gate: publishes")
	require.Equal(t, `m(max_tokens 4096, session s-1) was asked "my key is [redacted AWS key id]" and said "yours is ***"`,
		p.model("my key is AKIAIOSFODNN7EXAMPLE", "yours is sk-1"))

	eventually(t, "the PicoClaw observer is told", func() bool {
		text, _ := os.ReadFile(filepath.Join(d.dir, "events")) // not there before the first event
		return strings.Contains(string(text), `agent.tool.exec_start s-1 {"Arguments": {"command": "ls <x> & y"}, "Tool": "bash"}`)
	})
	// What can't be a request is a no, not an error after which it would go on.
	result, err := p.call("hook.before_tool", map[string]any{"tool": "", "arguments": map[string]any{}}, 5*time.Second)
	require.NoError(t, err)
	require.JSONEq(t, `{"action":"deny_tool","reason":"tool: is empty"}`, string(result))
	require.NoError(t, p.unmount())
	require.Empty(t, p.log.String())
}

func TestPicoclawWithoutApprover(t *testing.T) {
	t.Parallel()
	needs(t, "python3")
	d := serveProcess(t, `{"hooks": {"processes": {
		"review-gate": {"command": ["python3", "$EXAMPLES/review_gate.py"], "intercept": ["before_tool"], "fail_policy": "deny"},
		"pico": {"command": ["python3", "$SCRIPTS/picoclaw_gate.py"], "intercept": ["before_tool"], "dialect": "picoclaw", "fail_policy": "deny", "may_respond": true}
	}}}`)
	p := mountHook(t, d.env(), allModes, "hookd", "connect")
	// Nobody could be asked, so what needs approval is denied at once.
	require.Equal(t, "denied by hook: publishes commits or a package", p.tool("bash", map[string]any{"command": "npm publish"}, nil))
	// The host encodes what it was given anew before it asks for the approval.
	// hookd knows the call all the same, and that nobody asked.
	require.Equal(t, `fetch said "ok map[safe:true url:<u>]" to the model and "ok" to the user`, p.tool("fetch", map[string]any{"url": "<u>"}, says("ok")))
	require.Equal(t, "responded: sunny", p.tool("weather", nil, nil))
	require.Equal(t, "denied by hook: no rm in s-1/c-1/turn.tool.before", p.tool("rm", nil, nil))
	require.NoError(t, p.unmount())
}

// connect outlives the daemon. What was open when it ended, and what comes
// until it is back, is answered: each request once.
func TestConnectOutlivesTheDaemon(t *testing.T) {
	t.Parallel()
	d := serveProcess(t, `{"hooks": {"processes": {"slow": {"command": ["sh", "$DIR/slow.sh"], "intercept": ["approve_tool"]}}}}`)
	require.NoError(t, os.WriteFile(filepath.Join(d.dir, "slow.sh"), []byte(slowHook), 0o600))
	_, err := d.hookd("restart", "slow").CombinedOutput()
	require.NoError(t, err)
	p := mountHook(t, d.env(), allModes, "hookd", "connect")
	const open = 50
	var answers []chan picoAnswer
	for i := range open {
		answers = append(answers, p.send("hook.approve_tool", picoCall{Meta: meta("turn.tool.approve"), Tool: "t", Arguments: map[string]any{"i": i}}))
	}
	eventually(t, "the approver is asked", func() bool {
		_, err := os.Stat(filepath.Join(d.dir, "asked"))
		return err == nil
	})
	d.kill(syscall.SIGKILL)
	const away = "hookd is not available (hookd serve starts it)"
	for _, a := range answers {
		require.JSONEq(t, `{"approved":false,"reason":"`+away+`"}`, string((<-a).result))
	}
	p.event("agent.turn.start", map[string]any{"UserMessage": "hi"})
	require.Equal(t, "denied by hook: "+away, p.tool("t", nil, nil))
	require.Equal(t, "abort_turn", p.model("hi", "ho"))

	d.start()
	eventually(t, "it has greeted the new daemon", func() bool { return d.agentNames() == "hookd" })
	require.NoError(t, p.unmount())
	for id := range p.id {
		require.Equal(t, 1, p.answers[id+1], "request %d", id+1)
	}
	require.Contains(t, p.log.String(), "answering in its place (--on-unavailable deny)")
	require.Contains(t, p.log.String(), "connected to hookd again; events dropped meanwhile: 1")
}

// slowHook greets and never answers anything else.
const slowHook = `while read -r line; do
  case $line in
  *hook.hello*) id=${line#*\"id\":}; printf '{"jsonrpc":"2.0","id":%s,"result":{}}\n' "${id%%,*}" ;;
  *hook.approve_tool*) : >"$(dirname "$0")/asked" ;;
  esac
done
`

// A daemon that hangs is as good as none: the host would go on after 5 s.
func TestConnectAnswersBeforeTheHostGoesOn(t *testing.T) {
	t.Parallel()
	d := serveProcess(t, `{"hooks": {}}`)
	p := mountHook(t, d.env(), allModes, "hookd", "connect")
	require.NoError(t, d.cmd.Process.Signal(syscall.SIGSTOP))
	defer d.cmd.Process.Signal(syscall.SIGCONT)
	var state syscall.WaitStatus // the signal takes a moment
	_, err := syscall.Wait4(d.cmd.Process.Pid, &state, syscall.WUNTRACED, nil)
	require.NoError(t, err)
	require.True(t, state.Stopped())
	result, err := p.call("hook.before_tool", picoCall{Meta: meta("turn.tool.before"), Tool: "t"}, patience)
	require.NoError(t, err)
	require.JSONEq(t, `{"action":"deny_tool","reason":"hookd did not answer in time"}`, string(result))
}

// Without a daemon from the start, in both dialects and for all policies.
func TestConnectWithoutDaemon(t *testing.T) {
	t.Parallel()
	const away = `hookd is not available (hookd serve starts it)`
	native := func(method, params string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"hook.%s","params":%s}`, method, params)
	}
	call := native("before_tool", `{"tool":"t","arguments":{}}`)
	picoCall := native("before_tool", `{"meta":{"SessionKey":"s"},"tool":"t","arguments":{}}`)
	for _, c := range []struct{ policy, request, wanted string }{
		{"deny", call, `{"action":"deny_tool","reason":"` + away + `","generation":0}`},
		{"deny", native("before_llm", `{"messages":[]}`), `{"action":"deny","reason":"` + away + `","generation":0}`},
		{"deny", native("after_llm", `{"response":{}}`), `{"action":"abort_turn","reason":"` + away + `","generation":0}`},
		{"deny", native("stop", `{}`), `{"action":"continue","warnings":["` + away + `, so nothing was checked"],"generation":0}`},
		{"deny", native("approve_tool", `{"tool":"t","arguments":{}}`), `{"approved":false,"reason":"` + away + `","generation":0}`},
		{"deny", picoCall, `{"action":"deny_tool","reason":"` + away + `"}`},
		{"deny", native("before_llm", `{"meta":{"SessionKey":"s"},"messages":[]}`), `{"action":"abort_turn","reason":"` + away + `"}`},
		{"ask", call, `{"action":"ask","reason":"` + away + `","generation":0}`},
		{"ask", native("before_tool", `{"tool":"t","arguments":{},"approve":true}`), `{"action":"deny_tool","reason":"` + away + `","approval":{"approved":false,"reason":"` + away + `"},"generation":0}`},
		{"ask", native("before_llm", `{"messages":[]}`), `{"action":"deny","reason":"` + away + `","generation":0}`},
		{"ask", native("approve_tool", `{"tool":"t","arguments":{}}`), `{"approved":false,"reason":"` + away + `","generation":0}`},
		{"ask", picoCall, `{"action":"deny_tool","reason":"` + away + `"}`},
		{"continue", call, `{"action":"continue","warnings":["` + away + `, so nothing was checked"],"generation":0}`},
		{"continue", native("after_tool", `{"result":{}}`), `{"action":"continue","warnings":["` + away + `, so nothing was checked"],"generation":0}`},
		{"continue", native("approve_tool", `{"tool":"t","arguments":{}}`), `{"approved":true,"reason":"` + away + `","generation":0}`},
		{"continue", picoCall, `{"action":"continue"}`},
		{"deny", native("event", `{"kind":"turn_start"}`), `null`},
	} {
		t.Run(c.policy+" "+c.request, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command("hookd", "connect", "--on-unavailable", c.policy, "--socket", filepath.Join(t.TempDir(), "none"))
			cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
			cmd.Stdin = strings.NewReader(c.request + "\n")
			out, err := cmd.Output()
			require.NoError(t, err)
			require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":`+c.wanted+"}\n", string(out))
		})
	}
}
