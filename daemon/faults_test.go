package daemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/daemon"
	"github.com/hookd/hookd/manager"
	"github.com/hookd/hookd/protocol"
)

// patience is how long a test waits for what must come, on a machine that may
// have much else to do. Only a failing test ever waits so long.
const patience = 30 * time.Second

// until waits until something is so. It is for what other processes do.
func until(t testing.TB, what string, so func() bool) {
	t.Helper()
	end := time.Now().Add(patience)
	for pause := 2 * time.Millisecond; !so(); pause = min(2*pause, 50*time.Millisecond) {
		require.True(t, time.Now().Before(end), "still not so: %s", what)
		time.Sleep(pause)
	}
}

// fault is one way in which a hook or an agent goes wrong. All of them happen
// at the same time in one daemon, each with a hook and agents of its own.
type fault struct {
	// name is also that of the hook, a puppet, and of the tool it is asked about.
	name string
	// how the puppet starts, and what its entry says besides.
	how   string
	entry map[string]any
	play  func(t *testing.T, p *patient)
}

// wardLimit is the longest message in the ward, in bytes.
const wardLimit = 256 << 10

// TestFaults is the ward: hooks and agents go wrong in every way, while one
// healthy hook, which is asked in every call, must not notice. Each fault ends,
// and then nothing of it is left.
func TestFaults(t *testing.T) {
	all := slices.Concat(childFaults(), outputFaults(), agentFaults(), configFaults())
	dir := shortDir(t)
	entries := map[string]any{witness: puppetEntry(t, "", map[string]any{"env": map[string]any{asHook: "continue"}, "priority": 10})}
	for _, f := range all {
		entry := map[string]any{"match": map[string]any{"tools": []string{f.name}}}
		maps.Copy(entry, f.entry)
		how := strings.ReplaceAll(f.how, "FILE", filepath.Join(dir, f.name))
		entries[f.name] = puppetEntry(t, how, entry)
	}
	books := &books{records: map[string][]record{}}
	d := startDaemonWith(t, daemon.Options{Recorder: books, ConfigPath: writeConfig(t, configOf(t, map[string]any{
		"limits": map[string]any{"max_message_bytes": wardLimit},
		"hooks":  map[string]any{"defaults": map[string]any{"chain_timeout_ms": 120_000}, "processes": entries},
	}))})
	before := measured(t)

	visits := d.visit(t, witness)
	t.Run("all", func(t *testing.T) {
		for _, f := range all {
			t.Run(f.name, func(t *testing.T) {
				t.Parallel()
				f.play(t, &patient{d: d, name: f.name, file: filepath.Join(dir, f.name), books: books})
			})
		}
		// These have daemons of their own, and their time costs nothing here.
		for name, play := range map[string]func(t *testing.T){
			"hooks-that-cannot-be-started": hooksThatCantBeStarted, "config-is-replaced": configIsReplaced,
			"old-daemon-and-new-one": oldDaemonAndNewOne, "descriptors-run-out": descriptorsRunOut,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				play(t)
			})
		}
	})
	visits()
	for _, h := range d.status(t).Hooks {
		require.Equal(t, "ready", h.State, h.Name)
	}
	require.True(t, d.status(t).Ready)
	books.balance(t)
	rested(t, before)
}

// witness is the hook that matches every call.
const witness = "witness"

// visit asks a healthy hook again and again, and fails when one of its calls
// does, or when it had a reason to be restarted.
func (d *runningDaemon) visit(t *testing.T, hook string) (end func()) {
	t.Helper()
	was := d.hook(t, hook)
	a := d.dial(t)
	done := make(chan struct{})
	var ended atomic.Bool
	bad := ""
	go func() {
		defer close(done)
		for !ended.Load() && bad == "" {
			if answer := a.ask("hook.before_tool", lsCall); !strings.HasPrefix(answer, `{"action":"continue"`) || strings.Contains(answer, "degraded") {
				bad = answer
			}
			time.Sleep(5 * time.Millisecond) // the others need the processor too
		}
	}()
	return func() {
		t.Helper()
		ended.Store(true)
		<-done
		a.conn.Close()
		require.Empty(t, bad, "the healthy hook has suffered")
		is := d.hook(t, hook)
		require.Equal(t, []any{was.PID, was.Restarts, was.Failures}, []any{is.PID, is.Restarts, is.Failures})
		require.Greater(t, is.Calls, was.Calls)
	}
}

// puppetEntry is a config entry for a puppet, patient and with a policy of
// deny unless the edit says something else.
func puppetEntry(t testing.TB, how string, edit map[string]any) map[string]any {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	entry := map[string]any{
		"command": []string{self}, "env": map[string]any{asHook: "puppet", asPuppet: how, "GORACE": "atexit_sleep_ms=0"},
		"intercept": []string{"before_tool"}, "timeout_ms": 60_000, "fail_policy": "deny",
	}
	maps.Copy(entry, edit)
	return entry
}

func configOf(t testing.TB, config map[string]any) string {
	t.Helper()
	text, err := json.Marshal(config)
	require.NoError(t, err)
	return string(text)
}

// processes is a config with these entries.
func processes(t testing.TB, entries map[string]any) string {
	return configOf(t, map[string]any{"hooks": map[string]any{"processes": entries}})
}

// hook is the status of one hook.
func (d *runningDaemon) hook(t testing.TB, name string) daemon.HookStatus {
	t.Helper()
	hooks := d.status(t).Hooks
	i := slices.IndexFunc(hooks, func(h daemon.HookStatus) bool { return h.Name == name })
	require.GreaterOrEqual(t, i, 0, "status does not know %s", name)
	return hooks[i]
}

// restart starts a hook anew. It tries again while hookd is busy with a reload,
// or when the new one is down before it was seen to be up.
func (d *runningDaemon) restart(t testing.TB, name string) {
	t.Helper()
	var err error
	defer func() { require.NoError(t, err) }()
	until(t, name+" is started anew", func() bool {
		err = d.control(t, daemon.MethodRestart, daemon.HookParams{Name: name}, nil)
		return err == nil
	})
}

// patient is the hook of a fault.
type patient struct {
	d     *runningDaemon
	name  string
	file  string // that does not exist yet
	books *books
}

// caller returns an agent that asks about the patient's tool.
func (p *patient) caller(t testing.TB) *caller {
	t.Helper()
	return p.d.caller(t, p.name, p.name, witness)
}

func (p *patient) status(t testing.TB) daemon.HookStatus {
	t.Helper()
	return p.d.hook(t, p.name)
}

// mark makes the file that the patient looks for.
func (p *patient) mark(t testing.TB) {
	t.Helper()
	require.NoError(t, os.WriteFile(p.file, nil, 0o600))
}

// named waits until status says what is wrong with the hook.
func (p *patient) named(t testing.TB, text string) {
	t.Helper()
	until(t, "status names the fault", func() bool { return strings.Contains(p.status(t).LastError, text) })
}

// noisy waits until status has counted so much of a kind of noise.
func (p *patient) noisy(t testing.TB, kind string, n int64) {
	t.Helper()
	until(t, "status counts "+kind, func() bool { return p.status(t).Noise[kind] >= n })
}

// recovered waits until the hook is well, after this many restarts, and then
// asks it.
func (p *patient) recovered(t testing.TB, restarts int) {
	t.Helper()
	until(t, "the hook has recovered", func() bool { s := p.status(t); return s.State == "ready" && s.Restarts >= restarts })
	require.Equal(t, restarts, p.status(t).Restarts)
	p.caller(t).ask(orders{}).continues(p.name)
}

// caller is an agent that keeps account of its calls: each gets exactly one
// answer, with one outcome for each hook that was to be asked.
type caller struct {
	*agent
	stage    string
	tool     string
	matched  []string // hooks, in order
	open     map[int]bool
	lastCall string // its call_id
}

// callIDs tells calls of all agents apart.
var callIDs atomic.Int64

// caller returns an agent that asks about a tool which concerns these hooks.
func (d *runningDaemon) caller(t testing.TB, tool string, matched ...string) *caller {
	t.Helper()
	c := &caller{agent: d.dial(t), stage: "before_tool", tool: tool, matched: matched, open: map[int]bool{}}
	t.Cleanup(func() { c.conn.Close() })
	return c
}

// begin sends a call and does not wait.
func (c *caller) begin(o orders) { c.t.Helper(); c.beginLarge(o, 0) }

// beginLarge does so with so many bytes of argument.
func (c *caller) beginLarge(o orders, size int) {
	c.t.Helper()
	c.id++
	c.open[c.id] = true
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"hook.%s","params":%s}`, c.id, c.stage, c.params(o, size)))
}

// params are those of a call.
func (c *caller) params(o orders, size int) string {
	c.t.Helper()
	text, err := json.Marshal(o)
	require.NoError(c.t, err)
	c.lastCall = fmt.Sprintf("c%06d", callIDs.Add(1))
	return fmt.Sprintf(`{"tool":%q,"arguments":{"pad":%q},"trail":true,"call_id":%q,"context":%s}`,
		c.tool, strings.Repeat("x", size), c.lastCall, text)
}

// answer returns the answer to one of the calls that have begun.
func (c *caller) answer() *verdict {
	c.t.Helper()
	a := c.read()
	id := int(a.ID.(float64))
	require.Contains(c.t, c.open, id, "an answer to nothing that is open")
	delete(c.open, id)
	require.Nil(c.t, a.Error, "%+v", a.Error)
	v := &verdict{t: c.t, text: string(a.Result)}
	require.NoError(c.t, json.Unmarshal(a.Result, v))
	v.check(c.matched)
	return v
}

// ask makes one call.
func (c *caller) ask(o orders) *verdict {
	c.t.Helper()
	c.begin(o)
	return c.answer()
}

// done checks that nothing is open and that nothing was answered twice.
func (c *caller) done() {
	c.t.Helper()
	require.Empty(c.t, c.open)
	require.Contains(c.t, c.agent.ask("hook.nothing", `{}`), "error -32601")
	c.conn.Close()
}

// verdict is the answer to a before_tool.
type verdict struct {
	t          testing.TB
	text       string
	Action     string
	Reason     string
	DecidedBy  string `json:"decided_by"`
	Generation int
	Warnings   []string
	Degraded   []step
	Trail      []step
}

type step struct{ Hook, Outcome, Detail string }

// check holds what is true of every answer: one outcome per matched hook, from
// the closed list, in order; and nothing failed that is not named.
func (v *verdict) check(matched []string) {
	v.t.Helper()
	var asked []string
	stops := v.Action == "deny_tool" || v.Action == "abort_turn" || v.Action == "hard_abort"
	for _, s := range v.Trail {
		asked = append(asked, s.Hook)
		require.Contains(v.t, protocol.Outcomes(), protocol.Outcome(s.Outcome), v.text)
		if s.Outcome == string(protocol.OutcomeNotRun) {
			require.True(v.t, stops, v.text)
		}
		if protocol.Outcome(s.Outcome).Failed() && !stops {
			require.True(v.t, slices.ContainsFunc(v.Degraded, func(d step) bool { return d.Hook == s.Hook && d.Outcome == s.Outcome }), v.text)
		}
	}
	require.Equal(v.t, matched, asked, v.text)
	require.Positive(v.t, v.Generation, v.text)
}

// outcome is what became of a hook's turn.
func (v *verdict) outcome(hook string) string {
	i := slices.IndexFunc(v.Trail, func(s step) bool { return s.Hook == hook })
	return v.Trail[i].Outcome
}

// continues checks that the hook said yes and nothing was passed over.
func (v *verdict) continues(hook string) *verdict {
	v.t.Helper()
	require.Equal(v.t, "continue", v.Action, v.text)
	require.Equal(v.t, "continue", v.outcome(hook), v.text)
	require.Empty(v.t, v.Degraded, v.text)
	return v
}

// denies checks that the call was denied for what became of this hook, with a
// reason that says so.
func (v *verdict) denies(hook string, outcome protocol.Outcome, texts ...string) *verdict {
	v.t.Helper()
	require.Equal(v.t, "deny_tool", v.Action, v.text)
	require.Equal(v.t, hook, v.DecidedBy, v.text)
	require.Equal(v.t, string(outcome), v.outcome(hook), v.text)
	for _, text := range append(texts, string(outcome), hook) {
		require.Contains(v.t, v.Reason, text)
	}
	return v
}

// passes checks that the call goes on without the hook, which is named.
func (v *verdict) passes(hook string, outcome protocol.Outcome, texts ...string) *verdict {
	v.t.Helper()
	require.Equal(v.t, "continue", v.Action, v.text)
	require.Equal(v.t, string(outcome), v.outcome(hook), v.text)
	require.Len(v.t, v.Degraded, 1, v.text)
	for _, text := range texts {
		require.Contains(v.t, v.Degraded[0].Detail, text)
	}
	return v
}

// books are a recorder: what was decided, by the call's id.
type books struct {
	mu      sync.Mutex
	records map[string][]record
}

type record struct {
	allowed bool
	err     error
}

func (b *books) Record(_ context.Context, r *manager.Record) error {
	action := protocol.Decision{Action: r.Result.Action}
	rec := record{allowed: !action.Decided().Stops(), err: r.Err}
	if r.Result.Approval != nil {
		rec.allowed = r.Result.Approval.Approved
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.Request.CallID != "" {
		b.records[r.Request.CallID] = append(b.records[r.Request.CallID], rec)
	}
	return nil
}

// balance checks that each call came to one end, and that none which got no
// answer counts as allowed.
func (b *books) balance(t testing.TB) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, list := range b.records {
		require.Len(t, list, 1, id)
		require.False(t, list[0].err != nil && list[0].allowed, "%s: allowed, and then %v", id, list[0].err)
	}
}

// ended waits until a call has come to its end.
func (b *books) ended(t testing.TB, callID string) (rec record) {
	t.Helper()
	until(t, "the call is recorded", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		if list := b.records[callID]; len(list) > 0 {
			rec = list[0]
		}
		return len(b.records[callID]) > 0
	})
	return rec
}

// countsChildren: elsewhere there is no /proc to count them in.
const countsChildren = runtime.GOOS == "linux"

// resources are what faults must not use up.
type resources struct{ goroutines, files, children, zombies int }

// measured returns what is in use as soon as that stays the same for a moment.
func measured(t testing.TB) resources {
	t.Helper()
	var last resources
	until(t, "nothing changes", func() bool {
		now := inUse(t)
		same := now == last
		last = now
		if same {
			time.Sleep(50 * time.Millisecond)
			same = inUse(t) == last
		}
		return same
	})
	return last
}

func inUse(t testing.TB) resources {
	t.Helper()
	r := resources{goroutines: goroutines(t)}
	files, err := os.ReadDir("/dev/fd")
	require.NoError(t, err)
	r.files = len(files)
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(f) < 2 || string(f[1]) != strconv.Itoa(os.Getpid()) {
			continue
		}
		r.children++
		if f[0][0] == 'Z' {
			r.zombies++
		}
	}
	return r
}

// goroutines counts them, but for those that are kept for the next request.
func goroutines(t testing.TB) (n int) {
	t.Helper()
	var stacks strings.Builder
	require.NoError(t, pprof.Lookup("goroutine").WriteTo(&stacks, 1))
	for block := range strings.SplitSeq(stacks.String(), "\n\n") {
		count, stack, _ := strings.Cut(block, " @ ")
		_, at, _ := strings.Cut(stack, "#\t")
		leaf, _, _ := strings.Cut(at, "\n")
		if !strings.Contains(leaf, "rpc.(*workers).work+") {
			some, _ := strconv.Atoi(count[strings.LastIndexByte(count, '\n')+1:])
			n += some
		}
	}
	return n
}

// rested waits until as much is in use as before a fault.
func rested(t testing.TB, before resources) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); inUse(t) != before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			var stacks bytes.Buffer
			_ = pprof.Lookup("goroutine").WriteTo(&stacks, 1)
			t.Fatalf("before %+v, now %+v\n%s", before, inUse(t), &stacks)
		}
	}
}
