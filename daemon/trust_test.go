package daemon_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/daemon"
)

// moody is a hook that answers canaries with what stands in the file canary
// beside it, and calls with what stands in the file call.
const moody = `while read -r line; do
  id=${line#*\"id\":}; id=${id%%,*}
  case $line in
  *'"dry_run":true'*) read -r result <canary ;;
  *'"hook.before_tool"'*) read -r result <call ;;
  *) result={} ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
`

// mood is the folder of a moody hook.
type mood struct {
	*testing.T
	dir string
}

func newMood(t *testing.T) *mood {
	m := &mood{t, shortDir(t)}
	m.write("gate.sh", moody)
	m.write("call", "{}\n")
	return m
}

func (m *mood) write(name, text string) {
	m.Helper()
	require.NoError(m, os.WriteFile(m.path(name), []byte(text), 0o600))
}

func (m *mood) path(name string) string { return filepath.Join(m.dir, name) }

// config has the hook as gate; more goes into its entry.
func (m *mood) config(more string) string {
	return fmt.Sprintf("{\"hooks\": {\"processes\": {\n\"gate\": {\"command\": [\"sh\", \"gate.sh\"], \"dir\": %q, \"intercept\": [\"before_tool\"], \"fail_policy\": \"continue\"%s}}}}\n", m.dir, more)
}

const canary = `, "canary": {"stage": "before_tool", "params": {"tool": "rm", "arguments": {}}, "expect": "deny"}`

const denies, passes = `{"action":"deny","reason":"no"}` + "\n", `{"action":"continue"}` + "\n"

// At start a hook that answers its canary wrongly is asked, and only believed
// when it says no. At a reload it is refused.
func TestCanary(t *testing.T) {
	t.Parallel()
	m := newMood(t)
	m.write("canary", passes)
	d := startDaemon(t, m.config(canary))
	a := d.dial(t)
	until(t, "the canary was asked", func() bool { return d.hook(t, "gate").Canary.Got != "" })
	s := d.hook(t, "gate")
	require.Equal(t, "degraded", s.State)
	require.Equal(t, "its canary expects deny at before_tool and got continue", s.LastError)
	require.False(t, s.Canary.OK)
	require.Equal(t, "deny", s.Canary.Expect)
	require.Contains(t, d.log.String(), "hook answers its canary wrongly")

	answer := a.ask("hook.before_tool", lsCall)
	require.Contains(t, answer, `"action":"deny_tool"`)
	require.Contains(t, answer, "canary_failed: its canary expects deny at before_tool and got continue", "whatever the policy")
	m.write("call", denies)
	require.Contains(t, a.ask("hook.before_tool", lsCall), `"reason":"no"`)
	m.write("call", passes)

	// A reload that keeps the process asks it again, and refuses what is wrong.
	d.write(t, m.config(canary+`, "priority": 1`))
	err := d.control(t, daemon.MethodReload, nil, nil)
	require.ErrorContains(t, err, d.config+":2:")
	require.ErrorContains(t, err, "hooks.processes.gate.canary: its canary expects deny at before_tool and got continue")
	require.EqualValues(t, 1, d.status(t).Generation)
	require.NotEmpty(t, d.status(t).Config.Error)

	m.write("canary", denies)
	var res daemon.ReloadResult
	require.NoError(t, d.control(t, daemon.MethodReload, nil, &res))
	require.Equal(t, []string{"gate"}, res.Kept)
	s = d.hook(t, "gate")
	require.Equal(t, "ready", s.State)
	require.True(t, s.Canary.OK)
	require.Contains(t, a.ask("hook.before_tool", lsCall), `"action":"continue"`)

	// A new process that is wrong does not come in; the old one stays.
	m.write("canary", passes)
	old := d.hook(t, "gate").PID
	d.write(t, m.config(canary+`, "env": {"A": "1"}`))
	require.ErrorContains(t, d.control(t, daemon.MethodReload, nil, nil), "got continue")
	require.Equal(t, old, d.hook(t, "gate").PID)
	require.Equal(t, "ready", d.hook(t, "gate").State, "the old one has not been asked")
	require.ErrorContains(t, d.control(t, daemon.MethodRestart, daemon.HookParams{Name: "gate"}, nil), "got continue")
	require.Equal(t, old, d.hook(t, "gate").PID)

	// Without its canary it is believed.
	d.write(t, m.config(""))
	require.NoError(t, d.control(t, daemon.MethodReload, nil, nil))
	require.Nil(t, d.hook(t, "gate").Canary)
}

// A pinned file that is replaced: the hook that runs goes on, a reload is
// refused, and after a crash nothing passes until the file is back.
func TestPinnedFileIsReplaced(t *testing.T) {
	t.Parallel()
	m := newMood(t)
	pin := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return hex.EncodeToString(sum[:])
	}
	pins := fmt.Sprintf(`, "sha256": {"gate.sh": %q}`, pin(moody))
	d := startDaemon(t, m.config(pins))
	a := d.dial(t)
	require.Contains(t, a.ask("hook.before_tool", lsCall), `"action":"continue"`)

	const other = moody + "# changed\n"
	m.write("gate.sh", other)
	require.Contains(t, a.ask("hook.before_tool", lsCall), `"action":"continue"`)
	err := d.control(t, daemon.MethodReload, nil, nil)
	require.ErrorContains(t, err, d.config+":2:")
	require.ErrorContains(t, err, `hooks.processes.gate.sha256."gate.sh": trust `+m.path("gate.sh")+": its SHA-256 is "+pin(other)+", not "+pin(moody))
	require.EqualValues(t, 1, d.status(t).Generation)

	require.NoError(t, syscall.Kill(d.hook(t, "gate").PID, syscall.SIGKILL))
	until(t, "it is not trusted", func() bool { return d.hook(t, "gate").State == "untrusted" })
	answer := a.ask("hook.before_tool", lsCall)
	require.Contains(t, answer, `"action":"deny_tool"`)
	require.Contains(t, answer, "untrusted_changed")
	require.NotContains(t, answer, m.dir, "agents need no paths")
	require.Contains(t, d.hook(t, "gate").LastError, pin(other))
	require.Contains(t, d.log.String(), "hook is not started: a pinned file is not what it was")

	m.write("gate.sh", moody)
	require.NoError(t, d.control(t, daemon.MethodRestart, daemon.HookParams{Name: "gate"}, nil))
	require.Equal(t, "ready", d.hook(t, "gate").State)
	require.Contains(t, a.ask("hook.before_tool", lsCall), `"action":"continue"`)

	// The new file with its new digest is a change like any other.
	m.write("gate.sh", other)
	d.write(t, m.config(fmt.Sprintf(`, "sha256": {"gate.sh": %q}`, pin(other))))
	require.NoError(t, d.control(t, daemon.MethodReload, nil, nil))
	require.NoError(t, d.stop())
	require.NoError(t, os.Remove(m.path("gate.sh")))
	err = daemon.Run(context.Background(), daemon.Options{ConfigPath: d.config, Socket: m.path("a.sock"), ControlSocket: m.path("c.sock"), Stderr: &logBuffer{}, Getenv: noEnv})
	require.ErrorContains(t, err, d.config+":2:")
	require.ErrorContains(t, err, "no such file")
}

// A check tries canaries, compares pins, and says what is asked for and not in
// force.
func TestCheckOfWhatIsTrusted(t *testing.T) {
	t.Parallel()
	m := newMood(t)
	m.write("canary", denies)
	zero := strings.Repeat("0", 64)
	check := func(more string, noStart bool) *daemon.CheckReport {
		report, err := daemon.Check(context.Background(), daemon.CheckOptions{ConfigPath: writeConfig(t, m.config(more)), NoStart: noStart})
		require.NoError(t, err)
		return report
	}
	good := check(canary, false)
	require.Empty(t, good.Problems)
	require.True(t, good.Hooks[0].Canary.OK)
	require.Equal(t, "deny", good.Hooks[0].Canary.Got)
	require.Len(t, good.Warnings, 1)
	require.Contains(t, good.Warnings[0], "not in force on this system: limits", "this test has no helper")

	m.write("canary", passes)
	wrong := check(canary, false)
	require.Len(t, wrong.Problems, 1)
	require.Contains(t, wrong.Problems[0], "hooks.processes.gate.canary: its canary expects deny at before_tool and got continue")
	require.False(t, wrong.Hooks[0].Canary.OK)

	changed := check(`, "sha256": {"sh": "`+zero+`", "gate.sh": "`+zero+`"}`, false)
	require.Len(t, changed.Problems, 2)
	require.Contains(t, changed.Problems[0], "not "+zero)
	require.False(t, changed.Hooks[0].Started)

	// Only the file is judged here, and the pins not: they may be of another machine.
	file := check(`, "sandbox": {}, "sha256": "`+zero+`"`, true)
	require.Empty(t, file.Problems)
	require.Equal(t, []string{"sh"}, file.Hooks[0].Pins)
	require.Contains(t, strings.Join(file.Warnings, "\n"), "not in force on this system: sandbox: ")
	require.Contains(t, strings.Join(file.Warnings, "\n"), "only the program is pinned, not "+m.path("gate.sh"))
}
