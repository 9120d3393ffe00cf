package daemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
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
	"github.com/hookd/hookd/hook"
	faults "github.com/hookd/hookd/internal/fault"
	"github.com/hookd/hookd/internal/invariant"
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

// orders are what a faulthook does with a call; they come in its context.
type orders = faults.Orders

// says are the orders to answer with this result.
func says(result string) orders { return faults.Says(result) }

// fault is one way in which a hook or an agent goes wrong.
type fault struct {
	// name is also that of the hook, a faulthook, and of the tool it is asked about.
	name string
	// mode of the hook, and what its entry says besides. In the mode FILE is a
	// file of this fault that is not there yet.
	mode  string
	entry map[string]any
	// waits: it takes seconds in which little happens, so it is played at the
	// same time as others.
	waits bool
	play  func(t *testing.T, p *patient)
}

// wardLimit is the longest message in the ward, in bytes.
const wardLimit = 256 << 10

// secret stands in the environment of every hook and in the arguments of every
// call, and nowhere else.
const secret = "open-sesame-8c1f"

// ward is a daemon in which hooks and agents go wrong, while one healthy hook,
// which is asked in every call, must not notice.
type ward struct {
	d     *runningDaemon
	dir   string
	books *books
	alone visits // before anything goes wrong
}

func newWard(t *testing.T, faults []fault) *ward {
	w := &ward{dir: shortDir(t), books: &books{records: map[string][]record{}}}
	self, err := os.Executable()
	require.NoError(t, err)
	entries := map[string]any{witness: hookEntry(t, "", map[string]any{
		"command": []string{self}, "env": map[string]any{asHook: "continue", "GORACE": "atexit_sleep_ms=0"}, "priority": 10,
	})}
	for _, f := range faults {
		entry := map[string]any{"match": map[string]any{"tools": []string{f.name}}}
		maps.Copy(entry, f.entry)
		entries[f.name] = hookEntry(t, strings.ReplaceAll(f.mode, "FILE", filepath.Join(w.dir, f.name)), entry)
	}
	w.d = startDaemonWith(t, daemon.Options{Recorder: w.books, ConfigPath: writeConfig(t, configOf(t, map[string]any{
		"limits": map[string]any{"max_message_bytes": wardLimit},
		"hooks":  map[string]any{"defaults": map[string]any{"chain_timeout_ms": 120_000}, "processes": entries},
	}))})
	w.d.visitFor(t, witness, 300, &w.alone)
	return w
}

func (w *ward) play(t *testing.T, f fault) {
	p := &patient{d: w.d, name: f.name, file: filepath.Join(w.dir, f.name), books: w.books}
	f.play(t, p)
	for _, c := range p.callers {
		c.conn.Close()
	}
}

// after checks what must hold when faults are over: nothing of them is left,
// nobody is sick, and no secret was told.
func (w *ward) after(t *testing.T, before invariant.Usage) {
	t.Helper()
	var sick []string
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if sick = invariant.Unwell(w.d.status(t)); sick == nil || time.Now().After(end) {
			break
		}
	}
	require.Empty(t, sick)
	w.books.balance(t)
	status, err := json.Marshal(w.d.status(t))
	require.NoError(t, err)
	written := map[string]string{"the log": w.d.log.String(), "the status": string(status)}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(w.d.sockets.Agents), "record.db*"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, path := range files {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		written[filepath.Base(path)] = string(text)
	}
	require.Empty(t, invariant.Secrets([]string{secret}, written))
	rested(t, before)
}

// TestFaults plays one fault after the other in one daemon. When one is over,
// all is as it was before.
func TestFaults(t *testing.T) {
	var quick []fault
	for _, f := range slices.Concat(childFaults(), outputFaults(), agentFaults(), configFaults()) {
		if !f.waits {
			quick = append(quick, f)
		}
	}
	w := newWard(t, quick)
	var beside visits
	for _, f := range quick {
		t.Run(f.name, func(t *testing.T) {
			before := measured(t)
			end := w.d.visit(t, witness, &beside)
			w.play(t, f)
			end()
			w.after(t, before)
		})
	}
	require.NoError(t, beside.besides(&w.alone))
}

// TestFaultsThatTakeTime plays those at the same time that wait for a deadline.
func TestFaultsThatTakeTime(t *testing.T) {
	var slow []fault
	for _, f := range slices.Concat(childFaults(), outputFaults(), agentFaults(), configFaults()) {
		if f.waits {
			slow = append(slow, f)
		}
	}
	w := newWard(t, slow)
	before := measured(t)
	var beside visits
	end := w.d.visit(t, witness, &beside)
	t.Run("ward", func(t *testing.T) {
		for _, f := range slow {
			t.Run(f.name, func(t *testing.T) {
				t.Parallel()
				w.play(t, f)
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
	end()
	w.after(t, before)
	require.NoError(t, beside.besides(&w.alone))
}

// witness is the hook that matches every call.
const witness = "witness"

// visits are calls that have nothing to do with what goes wrong.
type visits struct {
	took invariant.Latencies
	lag  time.Duration // of the machine, at its worst
}

// besides compares visits beside faults with those before them (I6).
func (v *visits) besides(alone *visits) error {
	lag := 4 * max(v.lag, alone.lag) // a call waits for a processor four times: agent, hookd, hook, hookd, agent
	if raced {
		lag += 10 * invariant.MayCost
	}
	return invariant.Beside(&alone.took, &v.took, lag)
}

// visit asks a healthy hook again and again until end is called, which fails
// when one of its calls does, or when it had a reason to be restarted.
func (d *runningDaemon) visit(t *testing.T, hook string, v *visits) (end func()) {
	t.Helper()
	was := d.hook(t, hook)
	a := d.dial(t)
	done := make(chan struct{})
	var ended atomic.Bool
	t.Cleanup(func() { ended.Store(true); <-done })
	bad := ""
	go func() {
		defer close(done)
		for !ended.Load() && bad == "" {
			begin := time.Now()
			if answer := a.ask("hook.before_tool", lsCall); !strings.HasPrefix(answer, `{"action":"continue"`) || strings.Contains(answer, "degraded") {
				bad = answer
			}
			v.took.Add(time.Since(begin))
			v.lag = max(v.lag, invariant.Nap(5*time.Millisecond)) // the others need the processor too
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

// visitFor visits so many times.
func (d *runningDaemon) visitFor(t *testing.T, hook string, n int, v *visits) {
	t.Helper()
	end := d.visit(t, hook, v)
	until(t, "there were enough visits", func() bool { return v.took.Count() >= n })
	end()
}

// hookEntry is a config entry for a faulthook in a mode, which may be followed
// by flags of it; patient and with a policy of deny unless the edit says
// something else.
func hookEntry(t testing.TB, mode string, edit map[string]any) map[string]any {
	t.Helper()
	command := []string{program(t, "internal/faulthook")}
	if mode != "" {
		command = append(command, append([]string{"-mode"}, strings.Fields(mode)...)...)
	}
	entry := map[string]any{
		"command": command, "env": map[string]any{"TOKEN": secret},
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

	callers []*caller
}

// caller returns an agent that asks about the patient's tool.
func (p *patient) caller(t testing.TB) *caller {
	t.Helper()
	c := p.d.caller(t, p.name, p.name, witness)
	c.matched[0].Denies = p.status(t).FailPolicy == hook.FailDeny
	p.callers = append(p.callers, c)
	return c
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
	matched  []invariant.Hook // in order
	calls    invariant.Ledger
	lastCall string // its call_id
}

// callIDs tells calls of all agents apart.
var callIDs atomic.Int64

// caller returns an agent that asks about a tool which concerns these hooks.
func (d *runningDaemon) caller(t testing.TB, tool string, matched ...string) *caller {
	t.Helper()
	c := &caller{agent: d.dial(t), stage: "before_tool", tool: tool}
	for _, name := range matched {
		c.matched = append(c.matched, invariant.Hook{Name: name})
	}
	t.Cleanup(func() { c.conn.Close() })
	return c
}

// begin sends a call and does not wait.
func (c *caller) begin(o orders) { c.t.Helper(); c.beginLarge(o, 0) }

// beginLarge does so with so many bytes of argument.
func (c *caller) beginLarge(o orders, size int) {
	c.t.Helper()
	c.asked()
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"hook.%s","params":%s}`, c.id, c.stage, c.params(o, size)))
}

// asked takes a new id for a call that is about to be sent.
func (c *caller) asked() {
	c.id++
	c.calls.Asked(c, strconv.Itoa(c.id), time.Now().Add(patience))
}

// params are those of a call.
func (c *caller) params(o orders, size int) string {
	c.t.Helper()
	text, err := json.Marshal(o)
	require.NoError(c.t, err)
	c.lastCall = fmt.Sprintf("c%06d", callIDs.Add(1))
	return fmt.Sprintf(`{"tool":%q,"arguments":{"pad":%q,"password":%q},"trail":true,"call_id":%q,"context":%s}`,
		c.tool, strings.Repeat("x", size), secret, c.lastCall, text)
}

// answer returns the answer to one of the calls that have begun.
func (c *caller) answer() *verdict {
	c.t.Helper()
	a := c.read()
	c.answered(a)
	require.Nil(c.t, a.Error, "%+v", a.Error)
	v, err := invariant.Answer(a.Result, c.matched)
	require.NoError(c.t, err)
	return &verdict{Verdict: v, t: c.t, text: string(a.Result)}
}

// answered takes note of an answer.
func (c *caller) answered(a answer) {
	c.t.Helper()
	id, ok := a.ID.(float64)
	require.True(c.t, ok, "%+v", a)
	require.NoError(c.t, c.calls.Answered(c, strconv.Itoa(int(id))))
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
	require.Empty(c.t, c.calls.Open(c))
	require.Contains(c.t, c.agent.ask("hook.nothing", `{}`), "error -32601")
	c.conn.Close()
}

// verdict is the answer to a call.
type verdict struct {
	*invariant.Verdict
	t    testing.TB
	text string
}

// outcome is what became of a hook's turn.
func (v *verdict) outcome(hook string) protocol.Outcome { return v.Outcome(hook) }

// continues checks that the hook said yes and nothing was passed over.
func (v *verdict) continues(hook string) *verdict {
	v.t.Helper()
	require.Equal(v.t, "continue", v.Action, v.text)
	require.Equal(v.t, protocol.OutcomeContinue, v.outcome(hook), v.text)
	require.Empty(v.t, v.Degraded, v.text)
	return v
}

// denies checks that the call was denied for what became of this hook, with a
// reason that says so.
func (v *verdict) denies(hook string, outcome protocol.Outcome, texts ...string) *verdict {
	v.t.Helper()
	require.Equal(v.t, "deny_tool", v.Action, v.text)
	require.Equal(v.t, hook, v.DecidedBy, v.text)
	require.Equal(v.t, outcome, v.outcome(hook), v.text)
	for _, text := range append(texts, string(outcome), hook) {
		require.Contains(v.t, v.Reason, text)
	}
	return v
}

// passes checks that the call goes on without the hook, which is named.
func (v *verdict) passes(hook string, outcome protocol.Outcome, texts ...string) *verdict {
	v.t.Helper()
	require.Equal(v.t, "continue", v.Action, v.text)
	require.Equal(v.t, outcome, v.outcome(hook), v.text)
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

// measured returns what is in use as soon as that stays the same for a moment.
func measured(t testing.TB) invariant.Usage {
	t.Helper()
	var last invariant.Usage
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

// inUse is what faults must not use up. Memory is the test's too, so it is left
// out.
func inUse(t testing.TB) invariant.Usage {
	t.Helper()
	u, err := invariant.Own()
	require.NoError(t, err)
	u.Memory = 0
	return u
}

// rested waits until no more is in use than before a fault.
func rested(t testing.TB, before invariant.Usage) {
	t.Helper()
	var more []string
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if more = inUse(t).Beyond(before, invariant.Usage{}); more == nil {
			return
		}
		if time.Now().After(end) {
			break
		}
	}
	var stacks bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&stacks, 1)
	t.Fatalf("%s\n%s", strings.Join(more, ", "), &stacks)
}
