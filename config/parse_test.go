package config

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

var update = flag.Bool("update", false, "write what the tests found as what they expect")

func TestMain(m *testing.M) {
	flag.Parse()
	// The tests with real files mostly wait, so they do it together.
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// onlyLog is the checker of these tests: it knows one built-in, whose config
// must have a path that is a text.
func onlyLog(e *Entry) []Problem {
	if e.Name != "log" {
		return []Problem{{Message: "there is no such built-in; there is: log"}}
	}
	if e.Config == nil {
		return nil
	}
	object, err := protocol.DecodeObject(e.Config, 0)
	if err != nil {
		return []Problem{{"/config", err.Error()}}
	}
	if path := object.Get("path"); path.Kind() != '"' {
		return []Problem{{"/config/path", "is missing or no text"}}
	}
	return nil
}

// golden compares text with a file, or writes the file.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "go test -update writes it")
	require.Equal(t, string(want), got, path)
}

func files(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	return paths
}

// Each file of testdata/bad is refused with the text beside it.
func TestBadFiles(t *testing.T) {
	paths := files(t, "testdata/bad/*.json")
	require.GreaterOrEqual(t, len(paths), 40)
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			c, err := Parse(filepath.Base(path), data, onlyLog)
			require.Nil(t, c)
			var load *LoadError
			require.ErrorAs(t, err, &load)
			golden(t, strings.TrimSuffix(path, "json")+"err", err.Error()+"\n")
		})
	}
}

func parseText(t *testing.T, text string) *Config {
	t.Helper()
	c, err := Parse("/etc/hookd/config.json", []byte(text), nil)
	require.NoError(t, err)
	return c
}

func parseFile(t *testing.T, path string) *Config {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	c, err := Parse("/etc/hookd/config.json", data, onlyLog)
	require.NoError(t, err)
	return c
}

func entry1(t *testing.T, c *Config, name string) *Entry {
	t.Helper()
	for i := range c.Hooks.Entries {
		if c.Hooks.Entries[i].Name == name {
			return &c.Hooks.Entries[i]
		}
	}
	t.Fatalf("no entry %q", name)
	return nil
}

func TestDefaults(t *testing.T) {
	c := parseText(t, `{}`)
	require.Equal(t, protocol.Limits{}.WithDefaults(), c.Limits)
	require.Equal(t, Listener{Mode: 0o600}, c.Socket)
	require.Equal(t, Listener{Mode: 0o600}, c.Control)
	require.Equal(t, Log{Level: "info", Format: "json"}, c.Log)
	require.Equal(t, Hooks{Enabled: true, Defaults: Defaults{
		ObserverTimeout: 500 * time.Millisecond, InterceptorTimeout: 5 * time.Second, ApprovalTimeout: time.Minute, ChainTimeout: 30 * time.Second,
		FailPolicy: hook.FailContinue, NoApprover: Approve,
	}}, c.Hooks)

	// The limits of the stages are the same ones.
	for _, s := range protocol.Stages() {
		want := c.Hooks.Defaults.InterceptorTimeout
		if s.Name == protocol.StageApproveTool {
			want = c.Hooks.Defaults.ApprovalTimeout
		}
		require.Equal(t, want, s.Timeout, s.Name)
	}
}

func TestDefaultsOfAnEntry(t *testing.T) {
	c := parseText(t, `{"hooks": {"processes": {"p": {"command": ["p", "x/y"], "observe": ["*"]}}, "builtins": {"b": {}}}}`)
	require.Equal(t, "b", c.Hooks.Entries[0].Name)
	eight := 8
	all, err := protocol.ParseSubscription("*")
	require.NoError(t, err)
	want := Entry{
		Name: "p", Source: hook.Process, Pointer: "/hooks/processes/p", Enabled: true,
		Command: []string{"p", "x/y"}, Dir: "/etc/hookd", Dialect: "hookd", Observe: []protocol.Subscription{all},
		Timeout: 5 * time.Second, ApprovalTimeout: time.Minute, ObserverTimeout: 500 * time.Millisecond,
		FailPolicy: hook.FailContinue, Mode: hook.Enforce, MaxRepeats: &eight,
	}
	require.Equal(t, want, c.Hooks.Entries[1])

	// A built-in has nothing of a process, and does all it can.
	want.Name, want.Source, want.Pointer = "b", hook.InProcess, "/hooks/builtins/b"
	want.Command, want.Dir, want.Dialect, want.Observe = nil, "", "", nil
	require.Equal(t, want, c.Hooks.Entries[0])
}

// What shows later than in the file is said with its place in the file.
func TestProblemOfAnEntry(t *testing.T) {
	c := parseText(t, "{\"hooks\": {\"processes\": {\n  \"a.b\": {\"command\": [\"p\"], \"observe\": [\"*\"]}}}}")
	require.EqualError(t, c.Problem(&c.Hooks.Entries[0], "does not start"), `/etc/hookd/config.json:2:10: hooks.processes."a.b": does not start`)

	d := Default()
	require.Equal(t, []Positioned{{Path: "hooks.builtins.log", Message: "no"}}, d.Problem(&d.Hooks.Entries[0], "no").Problems)
}

func TestEveryKey(t *testing.T) {
	c := parseFile(t, "testdata/good/all-keys.json")
	require.Equal(t, Listener{Path: "/etc/hookd/run/hookd.sock", Mode: 0o660, Group: "agents", AllowUIDs: []int{1000, 1001}}, c.Socket)
	require.Equal(t, Listener{Path: "/run/hookd/control.sock", Mode: 0o600}, c.Control)
	require.Equal(t, Log{Level: "warn", Format: "console"}, c.Log)
	require.Equal(t, protocol.Limits{MaxMessageBytes: 1 << 20, MaxDepth: 64, MaxConnections: 10, MaxInFlight: 4, MaxBytesInFlight: 2 << 20}, c.Limits)
	require.False(t, c.Hooks.Enabled)
	require.Equal(t, Defaults{
		ObserverTimeout: time.Millisecond, InterceptorTimeout: 10 * time.Minute, ApprovalTimeout: 24 * time.Hour, ChainTimeout: time.Hour,
		FailPolicy: hook.FailDeny, NoApprover: Deny,
	}, c.Hooks.Defaults)

	log := entry1(t, c, "log")
	require.False(t, log.Enabled)
	require.Equal(t, -5, log.Priority)
	require.NotNil(t, log.Intercept, "an empty list is not the same as no list")
	require.Empty(t, log.Intercept)
	require.Equal(t, hook.FailDeny, log.FailPolicy)

	e := entry1(t, c, "all.of_it-1")
	require.Equal(t, []string{"/etc/hookd/bin/hook", "--flag", "rel/file"}, e.Command)
	require.Equal(t, "/etc/hookd/work", e.Dir)
	require.Equal(t, map[string]string{"A": "1", "B": ""}, e.Env)
	require.Equal(t, []string{"SSH_AUTH_SOCK"}, e.PassEnv)
	require.Equal(t, []protocol.Stage{protocol.StageBeforeTool, protocol.StageApproveTool}, e.Intercept, "a stage that stands twice counts once")
	require.Equal(t, "[turn_end tool_* x_mine * turn_end]", fmt.Sprint(e.Observe))
	require.Equal(t, []string{"bash", "Edit|Write", "mcp__*", "/^(get|list)_/"}, e.MatchTools)
	require.True(t, e.Match.Matches("Write", true, "anybody"))
	require.False(t, e.Match.Matches("WRITE", true, "anybody"))
	require.Equal(t, time.Millisecond, e.Timeout)
	require.Equal(t, 24*time.Hour, e.ApprovalTimeout)
	require.Equal(t, 10*time.Minute, e.ObserverTimeout)
	require.Equal(t, hook.FailContinue, e.FailPolicy)
	require.True(t, e.Required && e.Recheck && e.MayRespond)
	require.Equal(t, hook.IfAsked, e.When)
	require.Nil(t, e.MaxRepeats, "null is no limit")
	require.Equal(t, map[string]protocol.KeyStrategy{"notes": protocol.MergeList, "map": protocol.MergeMap, "last": protocol.LastWins}, e.KeyStrategies)
	require.Equal(t, 1024, e.MaxInFlight)
	require.Equal(t, `{"n":1.50,"deep":[{"a":null}]}`, string(e.Config), "digits stay")
	require.Equal(t, &Sandbox{Read: []string{"/etc/hookd/rules", "/srv/models"}, Write: []string{"/etc/hookd/cache"}, Network: true}, e.Sandbox)
	require.Equal(t, []Pin{
		{"/etc/hookd/bin/hook", strings.Repeat("0123456789abcdef", 4), e.Pointer + "/sha256/.~1bin~1hook"},
		{"/etc/hookd/lib/rules.json", strings.Repeat("2", 64), e.Pointer + "/sha256/lib~1rules.json"},
		{"/etc/hookd/work/rel/file", strings.Repeat("1", 64), e.Pointer + "/sha256/rel~1file"}, // where the command finds it
	}, e.Pins)
	require.Equal(t, protocol.ActionDeny, e.Canary.Expect)
	require.Equal(t, `{"tool":"bash","arguments":{"n":1.50},"dry_run":true}`, string(e.Canary.Request.AppendParams(nil, 0)))
}

// A hooks object as PicoClaw has it works as it is.
func TestPicoclaw(t *testing.T) {
	c := parseFile(t, "testdata/good/picoclaw.json")
	require.Len(t, c.Hooks.Entries, 7)
	require.Equal(t, 90*time.Second, c.Hooks.Defaults.ApprovalTimeout)

	gate := entry1(t, c, "shop_floor_gate")
	require.Len(t, gate.Observe, 19)
	require.Len(t, gate.Intercept, 5)
	require.Equal(t, 8*time.Second, gate.Timeout)
	require.Equal(t, 750*time.Millisecond, gate.ObserverTimeout)

	ledger := entry1(t, c, "ledger")
	require.Len(t, ledger.Observe, 31)
	require.True(t, ledger.Observe[9].Matches(protocol.EventToolExecEnd))
	for _, name := range []string{"firehose_star", "firehose_all", "firehose_empty"} {
		require.True(t, entry1(t, c, name).Observe[0].Matches(protocol.EventDecision), name)
	}
	// A built-in that is off may be one that hookd does not have.
	require.False(t, entry1(t, c, "quota_meter").Enabled)
	require.False(t, entry1(t, c, "parked").Enabled)
}

func TestTimeoutMSIsForWhatTheHookDoes(t *testing.T) {
	const def, set, other = 0, 7 * time.Second, 9 * time.Second
	for _, tt := range []struct {
		keys                          string
		intercept, approval, observer time.Duration
	}{
		{`"intercept": ["before_tool"]`, set, def, def},
		{`"intercept": ["before_tool", "approve_tool"], "observe": ["*"]`, set, def, def},
		{`"intercept": ["approve_tool"]`, def, set, def},
		{`"intercept": ["approve_tool"], "observe": ["*"]`, def, set, def},
		{`"intercept": ["approve_tool"], "approval_timeout_ms": 9000`, def, other, def},
		{`"observe": ["*"]`, def, def, set},
		{`"observe": ["*"], "observer_timeout_ms": 9000`, def, def, other},
		{`"intercept": ["stop"], "observe": ["*"], "observer_timeout_ms": 9000`, set, def, other},
	} {
		c := parseText(t, `{"hooks": {"processes": {"a": {"command": ["a"], "timeout_ms": 7000, `+tt.keys+`}}}}`)
		e, d := c.Hooks.Entries[0], c.Hooks.Defaults
		or := func(v, d time.Duration) time.Duration {
			if v == def {
				return d
			}
			return v
		}
		require.Equal(t, or(tt.intercept, d.InterceptorTimeout), e.Timeout, tt.keys)
		require.Equal(t, or(tt.approval, d.ApprovalTimeout), e.ApprovalTimeout, tt.keys)
		require.Equal(t, or(tt.observer, d.ObserverTimeout), e.ObserverTimeout, tt.keys)
	}
	c := parseText(t, `{"hooks": {"builtins": {"a": {"timeout_ms": 7000, "observe": ["*"]}}}}`)
	require.Equal(t, set, c.Hooks.Entries[0].Timeout, "it may intercept anywhere")
}

// A person may have longer than a hook.
func TestTimeoutOfPeople(t *testing.T) {
	c := parseText(t, `{"hooks": {"builtins": {"human": {"timeout_ms": 86400000}, "budget": {"intercept": ["before_tool"], "timeout_ms": 600000}}}}`)
	require.Equal(t, 10*time.Minute, c.Hooks.Entries[0].Timeout)
	require.Equal(t, 24*time.Hour, c.Hooks.Entries[1].OwnTimeout)
}

func TestEntriesAreSortedByName(t *testing.T) {
	c := parseText(t, `{"hooks": {
		"processes": {"c": {"command": ["x"], "observe": ["*"]}, "a": {"command": ["x"], "observe": ["*"]}},
		"builtins": {"d": {}, "b": {}}}}`)
	var names []string
	for _, e := range c.Hooks.Entries {
		names = append(names, e.Name)
	}
	require.Equal(t, []string{"a", "b", "c", "d"}, names)
}

// What is said about an entry never holds a value of its environment.
func TestErrorsKeepSecrets(t *testing.T) {
	for _, value := range []string{`12345678`, `"s3cr3t\u0000"`, `{"s3cr3t": 1}`, `"s3cr3t\x"`, `"s3cr3t`, `["s3cr3t"]`} {
		_, err := Parse("c", []byte(`{"hooks": {"processes": {"a": {"command": ["a"], "observe": ["*"], "env": {"TOKEN": `+value+`}}}}}`), nil)
		require.Error(t, err)
		require.NotContains(t, err.Error(), "s3cr3t")
		require.NotContains(t, err.Error(), "12345678")
	}
}

func TestProcessKey(t *testing.T) {
	key := func(keys string) string {
		c := parseText(t, `{"hooks": {"processes": {"a": {"command": ["a"], "intercept": ["before_tool"], `+keys+`}}}}`)
		return c.Hooks.Entries[0].ProcessKey()
	}
	base := key(``)
	require.Equal(t, base, key(`"config": null,`))
	for _, same := range []string{
		`"priority": 5`, `"match": {"tools": ["bash"]}`, `"timeout_ms": 5`, `"approval_timeout_ms": 5`, `"observer_timeout_ms": 5`,
		`"fail_policy": "deny"`, `"required": true`, `"recheck": true`, `"mode": "shadow"`, `"when": "asked"`, `"may_respond": true`,
		`"max_repeats": null`, `"key_strategies": {"a": "merge_list"}`,
		`"canary": {"stage": "before_tool", "params": {"tool": "a", "arguments": {}}, "expect": "deny"}`, `"enabled": false`, `/* a comment */ "max_in_flight": 0`,
	} {
		require.Equal(t, base, key(same), same)
	}
	seen := map[string]string{base: "nothing"}
	for _, other := range []string{
		`"dir": "x"`, `"env": {"A": "1"}`, `"env": {"A": "2"}`, `"pass_env": ["A"]`, `"observe": ["*"]`, `"observe": ["turn_end"]`,
		`"max_in_flight": 2`, `"config": {}`, `"config": {"a": 1}`, `"config": {"a": 1.0}`,
		`"sandbox": {}`, `"sandbox": {"read": ["x"]}`, `"sandbox": {"write": ["x"]}`, `"sandbox": {"network": true}`,
		`"sha256": "` + strings.Repeat("0", 64) + `"`, `"sha256": "` + strings.Repeat("1", 64) + `"`, `"sha256": {"x": "` + strings.Repeat("0", 64) + `"}`,
	} {
		k := key(other)
		require.NotContains(t, seen, k, other)
		seen[k] = other
	}
	for _, text := range []string{
		`{"hooks": {"processes": {"b": {"command": ["a"], "intercept": ["before_tool"]}}}}`,
		`{"hooks": {"processes": {"a": {"command": ["a", ""], "intercept": ["before_tool"]}}}}`,
		`{"hooks": {"processes": {"a": {"command": ["a"], "intercept": ["after_tool"]}}}}`,
		`{"hooks": {"builtins": {"a": {"intercept": ["before_tool"]}}}}`,
		`{"hooks": {"builtins": {"a": {"intercept": ["before_tool"], "observe": []}}}}`,
	} {
		k := parseText(t, text).Hooks.Entries[0].ProcessKey()
		require.NotContains(t, seen, k, text)
		seen[k] = text
	}
}

func TestFiles(t *testing.T) {
	dir, bin := t.TempDir(), t.TempDir()
	write := func(path string, mode os.FileMode) string {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, nil, mode))
		return path
	}
	tool := write(filepath.Join(bin, "tool"), 0o755)
	write(filepath.Join(dir, "not-first", "tool"), 0o644)
	own := write(filepath.Join(dir, "own"), 0o755)
	script := write(filepath.Join(dir, "hooks", "gate.py"), 0o644)
	rules := write(filepath.Join(dir, "hooks", "rules.json"), 0o644)
	t.Setenv("PATH", strings.Join([]string{"", "relative", filepath.Join(dir, "not-first"), bin}, ":"))

	for _, tt := range []struct {
		command, dir string
		want         []string
	}{
		{`["tool", "-u", "hooks/gate.py", "hooks/rules.json", "hooks", "missing", ""]`, ``, []string{tool, script, rules}},
		{`["tool", "gate.py"]`, `hooks`, []string{tool, script}},
		{`["./own", "` + rules + `"]`, `hooks`, []string{own, rules}},
		{`["no-such-tool", "own"]`, ``, []string{own}},
		{`["own"]`, ``, nil},
	} {
		c, err := Parse(filepath.Join(dir, "config.json"), []byte(`{"hooks": {"processes": {"a": {"observe": ["*"], "command": `+tt.command+`, "dir": "`+tt.dir+`"}}}}`), nil)
		require.NoError(t, err)
		require.Equal(t, tt.want, c.Hooks.Entries[0].Files(), tt.command)
	}
	require.Nil(t, Default().Hooks.Entries[0].Files())
}

func TestDefaultConfig(t *testing.T) {
	c := Default()
	require.Empty(t, c.Path+c.SHA256, "there is no file")
	require.Equal(t, parseText(t, `{}`).Limits, c.Limits)
	require.Len(t, c.Hooks.Entries, 1)
	log := c.Hooks.Entries[0]
	require.Equal(t, "log", log.Name)
	require.Equal(t, hook.InProcess, log.Source)
	require.True(t, log.Enabled)
	require.Nil(t, log.Config, "it writes to standard error")
}

// The example is what people start from: it loads, and its gates deny.
func TestExample(t *testing.T) {
	data, err := os.ReadFile("../config.example.json")
	require.NoError(t, err)
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	c, err := Parse("../config.example.json", data, nil)
	require.NoError(t, err)
	var names []string
	for _, e := range c.Hooks.Entries {
		names = append(names, e.Name)
		if e.Source == hook.Process && len(e.Intercept) > 0 {
			require.Equal(t, hook.FailDeny, e.FailPolicy, e.Name)
		}
		require.Equal(t, e.Name != "guard", e.Enabled, e.Name)
		if e.Source == hook.Process {
			require.Equal(t, root, e.Dir)
		}
	}
	require.Equal(t, []string{"guard", "log", "notify", "redact", "review-gate"}, names)
}

// largeFile returns a file of exactly the size that is allowed, at least with
// this many hooks in it.
func largeFile(hooks int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"hooks": {"processes": {`)
	for i := range hooks {
		fmt.Fprintf(&b, `"p%d":{"command":["c"],"observe":["*"]},`, i)
	}
	b.WriteString(`}}} //`)
	return append(b.Bytes(), bytes.Repeat([]byte("-"), maxFileBytes-b.Len())...)
}

func TestLargeFile(t *testing.T) {
	data := largeFile(1000)
	c, err := Parse("c", data, nil)
	require.NoError(t, err)
	require.Len(t, c.Hooks.Entries, 1000)

	_, err = Parse("c", append(data, '-'), nil)
	require.EqualError(t, err, "c: the file is larger than 1 MiB")
}

// The largest file, full of hooks, must load in less than a second.
func BenchmarkParseLargeFile(b *testing.B) {
	data := largeFile(20000)
	for b.Loop() {
		if _, err := Parse("c", data, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// Input that is made to hurt costs no more than a large file.
func TestHostileInput(t *testing.T) {
	for name, text := range map[string]string{
		"brackets":     strings.Repeat("[", maxFileBytes),
		"objects":      strings.Repeat(`{"":`, maxFileBytes/4),
		"hidden":       `{"a":"` + strings.Repeat("[", 1000) + `", /*` + strings.Repeat("[", 1000) + "*/ // \" " + strings.Repeat("[", 1000) + "\n" + strings.Repeat("[", 1000),
		"long key":     `{"` + strings.Repeat("k", maxFileBytes-10) + `":1}`,
		"long word":    `{"log":{"level":"` + strings.Repeat("w", maxFileBytes-30) + `"}}`,
		"long event":   `{"hooks":{"processes":{"a":{"command":["a"],"observe":["` + strings.Repeat("w", maxFileBytes-80) + `"]}}}}`,
		"long pattern": `{"hooks":{"processes":{"a":{"command":["a"],"observe":["*"],"match":{"tools":["` + strings.Repeat("w", maxFileBytes-100) + `|"]}}}}}`,
		"keys":         `{` + strings.Repeat(`"k":1,`, maxFileBytes/24) + `}`,
		"items":        `{"hooks":{"processes":{"a":{"command":[` + strings.Repeat("1,", maxFileBytes/8) + `]}}}}`,
		"entries":      `{"hooks":{"processes":{` + strings.Repeat(`"":{},`, maxFileBytes/24) + `}}}`,
		"quotes":       `{"a": "` + strings.Repeat(`\"`, maxFileBytes/2-10),
		"slash":        `/`,
		"block":        `/*`,
		"half block":   `/*/`,
		"surrogate":    `{"` + strings.Repeat(`\ud800`, 1000) + `":1}`,
	} {
		t.Run(name, func(t *testing.T) {
			require.LessOrEqual(t, len(text), maxFileBytes)
			_, err := Parse("c", []byte(text), nil)
			var load *LoadError
			require.ErrorAs(t, err, &load)
			require.Less(t, len(err.Error()), 64<<10)
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/*/*.json", "../config.example.json"} {
		paths, err := filepath.Glob(pattern)
		require.NoError(f, err)
		for _, path := range paths {
			data, err := os.ReadFile(path)
			require.NoError(f, err)
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("c.json", data, nil)
		if err != nil {
			var load *LoadError
			require.ErrorAs(t, err, &load)
			require.NotEmpty(t, load.Problems)
			lines := bytes.Count(data, []byte("\n")) + 1
			for _, p := range load.Problems {
				require.LessOrEqual(t, p.Line, lines)
				require.NotEmpty(t, p.Message)
			}
			return
		}
		for i := range c.Hooks.Entries {
			e := &c.Hooks.Entries[i]
			require.True(t, e.Timeout > 0 && e.ApprovalTimeout > 0 && e.ObserverTimeout > 0)
			require.NotEmpty(t, e.FailPolicy)
			require.True(t, e.Config == nil || jsontext.Value(e.Config).IsValid())
			require.Equal(t, e.Source == hook.Process, len(e.Command) > 0)
			require.NotEmpty(t, e.ProcessKey())
		}
	})
}
