package daemon_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/daemon"
	"github.com/hookd/hookd/hook"
)

// eight is a config with eight hooks; extra goes into the entry of the first.
func eight(t testing.TB, extra string) string {
	var entries []string
	for i := range 8 {
		more := ""
		if i == 0 {
			more = extra
		}
		entries = append(entries, fmt.Sprintf(`"h%d": %s`, i, process(t, "continue", `"intercept": ["before_tool"], "fail_policy": "deny", "max_in_flight": 16`+more)))
	}
	return `{"hooks": {"processes": {` + strings.Join(entries, ", ") + `}}}`
}

func (d *runningDaemon) write(t testing.TB, config string) {
	t.Helper()
	require.NoError(t, os.WriteFile(d.config+".new", []byte(config), 0o600))
	require.NoError(t, os.Rename(d.config+".new", d.config))
}

func pids(s *daemon.Status) map[string]int {
	m := map[string]int{}
	for _, h := range s.Hooks {
		if h.Source == hook.Process {
			m[h.Name] = h.PID
		}
	}
	return m
}

// load keeps agents asking until stop is called, which returns what was not
// answered by a continue.
func (d *runningDaemon) load(t testing.TB, agents int) (stop func() (calls int64, failed []string)) {
	t.Helper()
	var wg sync.WaitGroup
	var ended atomic.Bool
	var calls atomic.Int64
	var mu sync.Mutex
	var failed []string
	for range agents {
		a := d.dial(t)
		wg.Go(func() {
			for !ended.Load() {
				if answer := a.ask("hook.before_tool", lsCall); !strings.Contains(answer, `"action":"continue"`) || strings.Contains(answer, "degraded") {
					mu.Lock()
					failed = append(failed, answer)
					mu.Unlock()
				}
				calls.Add(1)
			}
		})
	}
	return func() (int64, []string) {
		ended.Store(true)
		wg.Wait()
		return calls.Load(), failed
	}
}

// One hook among eight changes while agents ask: no call fails, and seven
// processes stay.
func TestReloadUnderLoad(t *testing.T) {
	d := startDaemon(t, eight(t, ""))
	before := pids(d.status(t))
	stop := d.load(t, 4)
	for i := range 5 {
		seen := d.hook(t, "h7").Calls
		require.Eventually(t, func() bool { return d.hook(t, "h7").Calls >= seen+200 }, 30*time.Second, time.Millisecond)
		d.write(t, eight(t, fmt.Sprintf(`, "config": {"n": %d}`, i)))
		var res daemon.ReloadResult
		require.NoError(t, d.control(t, daemon.MethodReload, nil, &res))
		require.Equal(t, []string{"h0"}, res.Started)
		require.Len(t, res.Kept, 7)
	}
	calls, failed := stop()
	require.Empty(t, failed)
	require.Greater(t, calls, int64(1000))
	after := pids(d.status(t))
	for name, pid := range before {
		if name == "h0" {
			require.NotEqual(t, pid, after[name])
		} else {
			require.Equal(t, pid, after[name], name)
		}
	}
	require.EqualValues(t, 6, d.status(t).Generation)
}

// Reloads that are refused change nothing, and say why to who asked, in status
// and in the log.
func TestRefusedReloadChangesNothing(t *testing.T) {
	d := startDaemon(t, eight(t, ""))
	before := d.status(t)
	for _, bad := range []struct{ name, config, want string }{
		{"empty", ``, "the file is empty"},
		{"cut off", eight(t, "")[:200], d.config + ":1:"},
		{"unknown key", strings.Replace(eight(t, ""), `"fail_policy"`, `"fail_polcy"`, 1), `did you mean "fail_policy"`},
		{"a hook that does not start", eight(t, `, "dir": "/no/such/folder"`), `hook "h0"`},
		{"a hook that refuses", strings.Replace(eight(t, `, "config": {}`), `"continue"`, `"refuse"`, 1), `not today`},
		{"a key of state merged in two ways", `{"hooks": {"processes": {"a": ` +
			process(t, "continue", `"intercept": ["stop"], "key_strategies": {"k": "merge_list"}`) + `, "b": ` +
			process(t, "continue", `"intercept": ["stop"], "key_strategies": {"k": "merge_map"}`) + `}}}`, `key_strategies.k: merge_map here, but merge_list in "a"`},
	} {
		t.Run(bad.name, func(t *testing.T) {
			d.write(t, bad.config)
			err := d.control(t, daemon.MethodReload, nil, nil)
			require.ErrorContains(t, err, bad.want)
			s := d.status(t)
			require.Equal(t, before.Generation, s.Generation)
			require.Equal(t, pids(before), pids(s))
			require.Contains(t, s.Config.Error, bad.want)
			require.Equal(t, before.Config.SHA256, s.Config.SHA256)
			require.Contains(t, d.log.String(), "reload refused, the last good config stays")
		})
	}
	// A removed file is no config either, and a file that comes back is read.
	require.NoError(t, os.Remove(d.config))
	require.Error(t, d.control(t, daemon.MethodReload, nil, nil))
	d.write(t, eight(t, `, "priority": 3`))
	require.Eventually(t, func() bool { s := d.status(t); return s.Generation == before.Generation+1 && s.Config.Error == "" }, 10*time.Second, 20*time.Millisecond)
	require.Equal(t, pids(before), pids(d.status(t)), "a changed priority keeps the process")
}

func TestRemovingARequiredHookIsSaidAloud(t *testing.T) {
	d := startDaemon(t, one(t, "continue", `"intercept": ["before_tool"], "required": true`))
	d.write(t, `{}`)
	var res daemon.ReloadResult
	require.NoError(t, d.control(t, daemon.MethodReload, nil, &res))
	require.Len(t, res.Warnings, 1)
	require.Contains(t, res.Warnings[0], `required hook "gate" is no longer required`)
	require.Contains(t, d.log.String(), `reload: required hook \"gate\" is no longer required`)
}

// hookd is not ready before a required hook is, and until then denies.
func TestRequiredHookThatDoesNotStart(t *testing.T) {
	d := startDaemonWith(t, daemon.Options{ConfigPath: writeConfig(t, `{"hooks": {"processes": {"gate": {
		"command": ["/no/such/program"], "intercept": ["before_tool"], "required": true}}}}`)})
	require.False(t, d.status(t).Ready)
	answer := d.dial(t).ask("hook.before_tool", lsCall)
	require.Contains(t, answer, `"action":"deny_tool"`)
	require.Contains(t, answer, "it is required")
	require.Contains(t, d.status(t).Hooks[0].LastError, "/no/such/program")
}

func TestConfigErrorRefusesTheStart(t *testing.T) {
	err := daemon.Run(t.Context(), daemon.Options{ConfigPath: writeConfig(t, `{"hoks": {}}`), Stderr: &logBuffer{}, Getenv: noEnv})
	require.ErrorContains(t, err, `did you mean "hooks"`)
}

// A hundred signals are a few reloads.
func TestManySignalsAreFewReloads(t *testing.T) {
	signals := make(chan os.Signal, 1)
	d := startDaemonWith(t, daemon.Options{ConfigPath: writeConfig(t, eight(t, "")), Reload: signals})
	stop := d.load(t, 2)
	for range 100 {
		select {
		case signals <- syscall.SIGHUP:
		default:
		}
	}
	d.write(t, eight(t, `, "priority": 3`))
	select {
	case signals <- syscall.SIGHUP:
	default:
	}
	require.Eventually(t, func() bool { return d.status(t).Generation == 2 }, 10*time.Second, 10*time.Millisecond)
	_, failed := stop()
	require.Empty(t, failed)
}

// A script that changed on disk is another hook, although the file that names
// it is the same.
func TestReloadRestartsAHookWhoseFileChanged(t *testing.T) {
	dir := shortDir(t)
	script := dir + "/hook.sh"
	body := "while read -r line; do id=${line#*\\\"id\\\":}; printf '{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}\\n' \"${id%%,*}\"; done\n"
	require.NoError(t, os.WriteFile(script, []byte(body), 0o600))
	d := startDaemon(t, fmt.Sprintf(`{"hooks": {"processes": {"s": {"command": ["sh", %q], "intercept": ["before_tool"]}}}}`, script))
	before := pids(d.status(t))["s"]
	require.NoError(t, os.WriteFile(script, []byte("# new\n"+body), 0o600))
	var res daemon.ReloadResult
	require.NoError(t, d.control(t, daemon.MethodReload, nil, &res))
	require.Equal(t, []string{"s"}, res.Started)
	require.NotEqual(t, before, pids(d.status(t))["s"])
}
