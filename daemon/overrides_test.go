package daemon_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/daemon"
)

// When an override ends and the hook does not start, it is there all the same,
// under its policy: nothing passes because a guard is broken. The override of
// another hook is not touched.
func TestExpiredOverrideOfABrokenHook(t *testing.T) {
	dir := shortDir(t)
	script := filepath.Join(dir, "gate.sh")
	require.NoError(t, os.WriteFile(script, []byte(answersYes), 0o600))
	d := startDaemon(t, fmt.Sprintf(`{"hooks": {"processes": {
		"gate": {"command": ["sh", %q], "intercept": ["before_tool"], "required": true},
		"other": %s}}}`, script, process(t, "continue", `"intercept": ["before_tool"]`)))
	require.NoError(t, d.control(t, daemon.MethodDisable, daemon.HookParams{Name: "other", ForMS: 3_600_000}, nil))
	require.NoError(t, d.control(t, daemon.MethodDisable, daemon.HookParams{Name: "gate", ForMS: 200}, nil))
	require.False(t, d.status(t).Ready, "a required hook is off")
	require.Equal(t, "disabled", d.hook(t, "gate").Override)
	require.NoError(t, os.Remove(script))

	a := d.dial(t)
	require.Eventually(t, func() bool { return strings.Contains(a.ask("hook.before_tool", lsCall), "it is required") }, 10*time.Second, 20*time.Millisecond)
	require.Empty(t, d.hook(t, "gate").Override)
	require.False(t, d.status(t).Ready)
	require.Equal(t, "disabled", d.hook(t, "other").Override)
	require.Greater(t, time.Until(d.hook(t, "other").Until), 50*time.Minute)
}

const answersYes = "while read -r line; do id=${line#*\\\"id\\\":}; case $line in '{\"jsonrpc\":\"2.0\",\"id\":'*) printf '{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}\\n' \"${id%%,*}\" ;; esac; done\n"

// A command about one hook works although another one's file is broken.
func TestDisableTouchesOneHook(t *testing.T) {
	script := filepath.Join(shortDir(t), "s.sh")
	require.NoError(t, os.WriteFile(script, []byte(answersYes), 0o600))
	d := startDaemon(t, fmt.Sprintf(`{"hooks": {"processes": {
		"scripted": {"command": ["sh", %q], "intercept": ["before_tool"]}, "other": %s}}}`, script, process(t, "continue", "")))
	pid := d.hook(t, "scripted").PID
	require.NoError(t, os.WriteFile(script, []byte("exit 1\n"), 0o600))
	require.NoError(t, d.control(t, daemon.MethodDisable, daemon.HookParams{Name: "other"}, nil))
	require.Equal(t, pid, d.hook(t, "scripted").PID)
	require.Error(t, d.control(t, daemon.MethodRestart, daemon.HookParams{Name: "scripted"}, nil), "the new one does not start")
	require.Equal(t, pid, d.hook(t, "scripted").PID, "so the old one stays")
}

func TestOverridesThatMeanNothing(t *testing.T) {
	d := startDaemon(t, strings.Replace(one(t, "continue", ""), `"hooks": {`, `"hooks": {"enabled": false, `, 1))
	require.ErrorContains(t, d.control(t, daemon.MethodEnable, daemon.HookParams{Name: "gate"}, nil), "hooks.enabled is false")

	d = startDaemon(t, one(t, "continue", ""))
	require.NoError(t, d.control(t, daemon.MethodDisable, daemon.HookParams{Name: "gate"}, nil))
	d.write(t, `{}`)
	require.NoError(t, d.control(t, daemon.MethodReload, nil, nil))
	d.write(t, one(t, "continue", ""))
	require.NoError(t, d.control(t, daemon.MethodReload, nil, nil))
	require.Equal(t, "ready", d.hook(t, "gate").State, "an override ends with its entry")
}

// A call that is under way during two reloads still finds its guard.
func TestTwoReloadsDuringOneCall(t *testing.T) {
	config := func(guard string) string {
		return fmt.Sprintf(`{"hooks": {"processes": {"first": %s, "guard": %s}}}`,
			process(t, "slow-continue", `"intercept": ["before_tool"], "priority": 1`),
			process(t, "deny", `"intercept": ["before_tool"], "priority": 2`+guard))
	}
	d := startDaemon(t, config(""))
	a := d.dial(t)
	a.send(`{"jsonrpc":"2.0","id":1,"method":"hook.before_tool","params":` + lsCall + `}`)
	require.Eventually(t, func() bool { return d.hook(t, "first").InFlight == 1 }, 10*time.Second, time.Millisecond)
	for _, guard := range []string{`, "timeout_ms": 4000`, `, "config": {"n": 1}`} {
		d.write(t, config(guard))
		require.NoError(t, d.control(t, daemon.MethodReload, nil, nil))
	}
	answer := string(a.read().Result)
	require.Contains(t, answer, `"action":"deny_tool","reason":"scripted","generation":1`)
}

// A refused file is refused once, whatever else is written beside it, and the
// refusal ends when the file is good again.
func TestRefusedFileIsReadOnce(t *testing.T) {
	d := startDaemon(t, one(t, "continue", ""))
	good := d.status(t).Config
	d.write(t, `{"hoks": {}}`)
	require.Eventually(t, func() bool { return d.status(t).Config.Error != "" }, 10*time.Second, 20*time.Millisecond)
	for i := range 8 { // each event makes the watcher look
		require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(d.config), "events.jsonl"), fmt.Appendf(nil, "%d", i), 0o600))
		time.Sleep(100 * time.Millisecond) // longer than a look takes to settle, all together
	}
	require.Equal(t, 1, strings.Count(d.log.String(), "reload refused"))
	require.NoError(t, d.control(t, daemon.MethodDisable, daemon.HookParams{Name: "gate"}, nil))
	require.NotEmpty(t, d.status(t).Config.Error, "a command about a hook mends no file")
	require.NoError(t, d.control(t, daemon.MethodEnable, daemon.HookParams{Name: "gate"}, nil))
	d.write(t, one(t, "continue", ""))
	require.Eventually(t, func() bool { return d.status(t).Config.Error == "" }, 10*time.Second, 20*time.Millisecond)
	require.Equal(t, good.SHA256, d.status(t).Config.SHA256)
	require.Equal(t, good.LoadedAt, d.status(t).Config.LoadedAt)
}

// Who may not ask is known also when the process that started it is gone.
func TestHookMayNotAskThroughAnOrphan(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	said := filepath.Join(shortDir(t), "said")
	d := startDaemonWith(t, daemon.Options{ConfigPath: writeConfig(t, fmt.Sprintf(`{"hooks": {"processes": {"gate": {
		"command": ["sh", "-c", %q, "hook", %q, %q], "intercept": ["before_tool"]}}}}`,
		`while read -r line; do
		   case $line in *hook.before_tool*) socket=${line#*socket\":\"}; (`+python+` -c "$1" "${socket%%\"*}" "$2" &) ;; esac
		   id=${line#*\"id\":}; case $line in '{"jsonrpc":"2.0","id":'*) echo '{"jsonrpc":"2.0","id":'"${id%%,*}"',"result":{}}' ;; esac
		 done`,
		`import os, socket, sys, time
while os.getppid() != 1: time.sleep(0.01)
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])
open(sys.argv[2] + ".new", "wb").write(s.recv(4096)); os.rename(sys.argv[2] + ".new", sys.argv[2])`, said))})
	require.Contains(t, d.dial(t).ask("hook.before_tool", fmt.Sprintf(`{"tool":"bash","arguments":{"socket":%q}}`, d.sockets.Agents)), `"action":"continue"`)
	var text []byte
	require.Eventually(t, func() bool { text, err = os.ReadFile(said); return err == nil }, 10*time.Second, 10*time.Millisecond)
	require.Contains(t, string(text), "may not ask hookd")
}
