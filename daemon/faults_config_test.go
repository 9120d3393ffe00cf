package daemon_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/daemon"
	"github.com/hookd/hookd/protocol"
)

// yesScript is a hook that says yes to everything.
const yesScript = `#!/bin/sh
while read -r line; do
	id=${line#*\"id\":}
	printf '{"jsonrpc":"2.0","id":%s,"result":{}}\n' "${id%%,*}"
done
`

// brokenStarts are commands that can't be started, each for another reason, and
// commands that end at once. What status says of them, and what agents are told.
var brokenStarts = []struct {
	name, script string
	mode         os.FileMode
	status, said string
}{
	{"missing", "", 0, "no such file or directory; correct the path in command", "no such file or directory"},
	{"a-folder", "", os.ModeDir, "is a directory; name a file in it", "is a directory"},
	{"not-executable", yesScript, 0o600, "permission denied; make it executable: chmod +x ", "permission denied"},
	{"bad-interpreter", "#!/no/such/python\n", 0o700, `bad interpreter "/no/such/python"`, "bad interpreter"},
	{"no-interpreter", "hello\n", 0o700, "add one such as #!/bin/sh", "exec format error"},
	{"busy", yesScript, os.ModeIrregular, "text file busy", "text file busy"},
	{"ends-with-0", "#!/bin/sh\nexit 0\n", 0o700, "before it answered the greeting, it ended with exit status 0", "it ended with exit status 0"},
	{"ends-with-2", "#!/bin/sh\necho blocked >&2\nexit 2\n", 0o700, "it ended with exit status 2; last on stderr: blocked", "it ended with exit status 2"},
}

// breakStarts makes the broken commands in a folder. mend repairs one of them.
func breakStarts(t *testing.T, dir string) (mend func(name string)) {
	t.Helper()
	var writer *os.File
	for _, b := range brokenStarts {
		path := filepath.Join(dir, b.name)
		switch {
		case b.mode == os.ModeDir:
			require.NoError(t, os.Mkdir(path, 0o700))
		case b.mode == os.ModeIrregular:
			require.NoError(t, os.WriteFile(path, []byte(b.script), 0o700))
			var err error
			writer, err = os.OpenFile(path, os.O_WRONLY, 0)
			require.NoError(t, err)
			t.Cleanup(func() { writer.Close() })
		case b.script != "":
			require.NoError(t, os.WriteFile(path, []byte(b.script), b.mode))
		}
	}
	return func(name string) {
		path := filepath.Join(dir, name)
		require.NoError(t, os.RemoveAll(path))
		require.NoError(t, os.WriteFile(path, []byte(yesScript), 0o700))
	}
}

// Hooks that can't be started are tried again and again, named in every answer
// and in status, each with its reason, and ready once they are mended.
func hooksThatCantBeStarted(t *testing.T) {
	dir := shortDir(t)
	mend := breakStarts(t, dir)
	entries := map[string]any{}
	var names []string
	for _, b := range brokenStarts {
		names = append(names, b.name)
		entries[b.name] = hookEntry(t, "", map[string]any{"command": []string{filepath.Join(dir, b.name)}, "fail_policy": "continue"})
	}
	slices.Sort(names)
	d := startDaemon(t, processes(t, entries))
	c := d.caller(t, "any", names...)
	v := c.ask(orders{})
	require.Equal(t, "continue", v.Action, v.text)
	require.Len(t, v.Degraded, len(names))
	for _, b := range brokenStarts {
		i := slices.IndexFunc(v.Degraded, func(s protocol.Degraded) bool { return s.Hook == b.name })
		// The breaker opens after a second and a half.
		require.Contains(t, []protocol.Outcome{protocol.OutcomeSpawnFailed, protocol.OutcomeBreakerOpen}, v.Degraded[i].Outcome, v.text)
		require.Contains(t, v.Degraded[i].Detail, b.said)
		until(t, b.name+" is tried again", func() bool { return d.hook(t, b.name).Restarts > 0 })
		require.Contains(t, d.hook(t, b.name).LastError, b.status)
	}
	require.NotContains(t, v.text, dir, "agents are told no paths")

	for _, name := range names {
		mend(name)
		d.restart(t, name)
		require.Equal(t, "ready", d.hook(t, name).State)
	}
	require.Equal(t, "continue", c.ask(orders{}).Action)
	c.done()
}

// A reload whose new hook does not start or greet changes nothing, and nothing
// is left of what it has begun.
func TestReloadWithAHookThatDoesNotStart(t *testing.T) {
	dir := shortDir(t)
	breakStarts(t, dir)
	gate := hookEntry(t, "", nil)
	d := startDaemon(t, processes(t, map[string]any{"gate": gate}))
	c := d.caller(t, "any", "gate")
	c.ask(orders{}).continues("gate")
	was, before := d.status(t), measured(t)
	refused := func(name string, entry map[string]any, want string) {
		d.write(t, processes(t, map[string]any{"gate": gate, name: entry}))
		err := d.control(t, daemon.MethodReload, nil, nil)
		require.ErrorContains(t, err, fmt.Sprintf("hook %q: ", name))
		require.ErrorContains(t, err, want)
		s := d.status(t)
		require.Equal(t, was.Generation, s.Generation)
		require.Equal(t, pids(was), pids(s))
		require.Contains(t, s.Config.Error, want)
		require.Equal(t, 1, c.ask(orders{}).continues("gate").Generation)
		rested(t, before)
	}
	for _, b := range brokenStarts {
		refused(b.name, hookEntry(t, "", map[string]any{"command": []string{filepath.Join(dir, b.name)}}), b.status)
	}
	refused("refuses", hookEntry(t, "hello-refuse", nil), "no licence")
	refused("speaks-another-version", hookEntry(t, "version99", nil), "99")
	refused("ends-at-once", hookEntry(t, "exit=127", nil), "exit status 127")
	c.done()
}

// Files that are wrong in any way are refused with the place or with what to
// do, also when a hundred hooks are right.
func TestConfigsThatAreRefused(t *testing.T) {
	gate := hookEntry(t, "", nil)
	good := processes(t, map[string]any{"gate": gate})
	d := startDaemon(t, good)
	was, before := d.status(t), measured(t)
	c := d.caller(t, "any", "gate")

	hundred := map[string]any{}
	for i := range 100 {
		hundred[fmt.Sprintf("h%02d", i)] = gate
	}
	hundred["h57"] = hookEntry(t, "", map[string]any{"timeout_ms": -1})
	folder := filepath.Dir(d.config)
	for _, bad := range []struct {
		name, config string
		harm         func() error
		want         []string
		place        bool
	}{
		{name: "empty", config: "", want: []string{"the file is empty"}},
		{name: "cut off", config: good[:len(good)/2], place: true},
		{name: "an unknown key", config: strings.Replace(good, `"timeout_ms"`, `"timout_ms"`, 1), want: []string{"hooks.processes.gate.timout_ms", `did you mean "timeout_ms"`}, place: true},
		{name: "an unknown stage", config: strings.Replace(good, `"before_tool"`, `"beforeTool"`, 1), want: []string{`"beforeTool"`, `did you mean "before_tool"`}, place: true},
		{name: "an unknown event", config: strings.Replace(good, `"intercept"`, `"observe":["beforeShellExec"],"intercept"`, 1), want: []string{`"beforeShellExec"`}, place: true},
		{name: "one of a hundred", config: processes(t, hundred), want: []string{"hooks.processes.h57.timeout_ms"}, place: true},
		{name: "a file that others can write", config: good, harm: func() error { return os.Chmod(d.config, 0o666) }, want: []string{"run: chmod go-w " + d.config}},
		{name: "a folder that others can write", config: good, harm: func() error { return os.Chmod(folder, 0o777) }, want: []string{"run: chmod go-w " + folder}},
		{name: "a file of somebody else", config: good, harm: func() error { return os.Chown(d.config, 12345, -1) }, want: []string{"belongs to user 12345", "run: chown "}},
	} {
		t.Run(bad.name, func(t *testing.T) {
			d.write(t, bad.config)
			if bad.harm != nil {
				if err := bad.harm(); err != nil && os.Getuid() != 0 {
					t.Skipf("only root can do this: %v", err)
				}
			}
			err := d.control(t, daemon.MethodReload, nil, nil)
			require.Error(t, err)
			s := d.status(t)
			if bad.place {
				require.Regexp(t, `^`+d.config+`:[0-9]+:[0-9]+: `, s.Config.Error)
			}
			for _, want := range bad.want {
				require.ErrorContains(t, err, want)
				require.Contains(t, s.Config.Error, want)
			}
			require.Equal(t, was.Generation, s.Generation)
			require.Equal(t, was.Config.SHA256, s.Config.SHA256)
			require.Equal(t, pids(was), pids(s))
			require.Equal(t, 1, c.ask(orders{}).continues("gate").Generation)
			// Nor would hookd start with it.
			err = daemon.Run(t.Context(), daemon.Options{ConfigPath: d.config, Socket: d.sockets.Agents, Stderr: &logBuffer{}, Getenv: noEnv})
			require.Error(t, err)
			require.Equal(t, s.Config.Error, err.Error())
			require.NoError(t, os.Chmod(folder, 0o700))
		})
	}
	d.write(t, good)
	require.NoError(t, d.control(t, daemon.MethodReload, nil, nil))
	require.Empty(t, d.status(t).Config.Error, "what was wrong is over")
	c.done()
	rested(t, before)
}

// However a new file comes to stand there, it is found without being told.
func configIsReplaced(t *testing.T) {
	write := func(t *testing.T, path, text string) {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	relink := func(t *testing.T, target, link string) {
		require.NoError(t, os.Symlink(target, link+".new"))
		require.NoError(t, os.Rename(link+".new", link))
	}
	dir := shortDir(t)
	path := filepath.Join(dir, "config.json")
	priority := func(n int) string {
		return processes(t, map[string]any{"gate": hookEntry(t, "", map[string]any{"priority": n})})
	}
	write(t, path, priority(0))
	d := startDaemonWith(t, daemon.Options{ConfigPath: path})
	pid := pids(d.status(t))["gate"]
	for i, replace := range []func(t *testing.T, text string){
		func(t *testing.T, text string) { write(t, path, text) },
		func(t *testing.T, text string) { // as vim does
			require.NoError(t, os.Rename(path, path+"~"))
			write(t, path, text)
			require.NoError(t, os.Remove(path+"~"))
		},
		func(t *testing.T, text string) { d.write(t, text) }, // renamed over
		func(t *testing.T, text string) { // removed, and back as a link through a link, as a ConfigMap is mounted
			require.NoError(t, os.Remove(path))
			require.NoError(t, os.Mkdir(filepath.Join(dir, "..v1"), 0o700))
			write(t, filepath.Join(dir, "..v1", "config.json"), text)
			relink(t, "..v1", filepath.Join(dir, "..data"))
			relink(t, "..data/config.json", path)
		},
		func(t *testing.T, text string) { // and exchanged as that is
			require.NoError(t, os.Mkdir(filepath.Join(dir, "..v2"), 0o700))
			write(t, filepath.Join(dir, "..v2", "config.json"), text)
			relink(t, "..v2", filepath.Join(dir, "..data"))
			require.NoError(t, os.RemoveAll(filepath.Join(dir, "..v1")))
		},
	} {
		replace(t, priority(i+1))
		until(t, "the change is found", func() bool { return d.hook(t, "gate").Priority == i+1 })
		s := d.status(t)
		require.Empty(t, s.Config.Error)
		require.EqualValues(t, i+2, s.Generation)
		require.Equal(t, pid, pids(s)["gate"])
	}
}

// Calls that are under way when a reload changes their hook finish with the
// old one, and new ones are answered by the new one meanwhile.
func TestReloadWithCallsUnderWay(t *testing.T) {
	release := filepath.Join(shortDir(t), "release")
	config := func(n int) string {
		return processes(t, map[string]any{"gate": hookEntry(t, "", map[string]any{"max_in_flight": 64, "config": map[string]any{"n": n}})})
	}
	d := startDaemon(t, config(1))
	before := measured(t)
	old := d.hook(t, "gate").PID
	c := d.caller(t, "any", "gate")
	for range 50 {
		c.begin(orders{After: release})
	}
	until(t, "they are under way", func() bool { return d.hook(t, "gate").InFlight == 50 })
	d.write(t, config(2))
	require.NoError(t, d.control(t, daemon.MethodReload, nil, nil))
	require.NotEqual(t, old, d.hook(t, "gate").PID)
	newer := d.caller(t, "any", "gate")
	for range 10 {
		require.Equal(t, 2, newer.ask(orders{}).continues("gate").Generation)
	}
	require.NoError(t, syscall.Kill(old, 0), "its calls are not done")
	require.NoError(t, os.WriteFile(release, nil, 0o600))
	for range 50 {
		require.Equal(t, 1, c.answer().continues("gate").Generation)
	}
	until(t, "the old process is gone", func() bool { return syscall.Kill(old, 0) == syscall.ESRCH })
	s := d.hook(t, "gate")
	require.Zero(t, s.Failures)
	require.Empty(t, s.LastError)
	require.EqualValues(t, 60, s.Calls)
	require.NotContains(t, d.log.String(), "hook is down")
	c.done()
	newer.done()
	rested(t, before)
}

// configFaults are those of a config that take their time.
func configFaults() []fault {
	return []fault{{name: "new-hook-never-runs", waits: true, play: reloadWithAStoppedHook}}
}

// reloadWithAStoppedHook adds a hook that never runs to the config of the ward.
func reloadWithAStoppedHook(t *testing.T, p *patient) {
	was := p.d.status(t)
	text, err := os.ReadFile(p.d.config)
	require.NoError(t, err)
	var config map[string]any
	require.NoError(t, json.Unmarshal(text, &config))
	config["hooks"].(map[string]any)["processes"].(map[string]any)["never-runs"] = hookEntry(t, "stop", nil)
	p.d.write(t, configOf(t, config))
	until(t, "the reload is refused", func() bool {
		return strings.Contains(p.d.status(t).Config.Error, `hook "never-runs": it did not answer the greeting within 5s`)
	})
	s := p.d.status(t)
	require.Equal(t, was.Config.SHA256, s.Config.SHA256)
	p.caller(t).ask(orders{}).continues(p.name)
	p.d.write(t, string(text))
	until(t, "what was wrong is over", func() bool { return p.d.status(t).Config.Error == "" })
	p.recovered(t, 0)
}
