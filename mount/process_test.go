package mount

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/hookd/hookd/child"
	"github.com/hookd/hookd/config"
	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// The tests in this file run real children: the test binary itself with a
// fault (see faultHook), and shell scripts.

// patience is how long a test waits for what must come.
const patience = 30 * time.Second

// bench is what a test mounts hooks on.
type bench struct {
	*Mounter
	logs *observer.ObservedLogs
}

func newBench(t *testing.T, edit func(o *MounterOptions)) *bench {
	core, logs := observer.New(zap.DebugLevel)
	o := MounterOptions{Spawner: child.NewSpawner(), Log: zap.New(core), Server: protocol.Software{Name: "hookd", Version: "test"}}
	if edit != nil {
		edit(&o)
	}
	t.Cleanup(func() { o.Spawner.Close() })
	return &bench{NewMounter(o), logs}
}

func processEntry(name string, command ...string) *config.Entry {
	events, _ := subscriptions([]string{"*"})
	return &config.Entry{
		Name: name, Source: hook.Process, Enabled: true, Command: command, Dir: "/", MaxInFlight: 1, Dialect: "hookd",
		Observe: events, Intercept: []protocol.Stage{protocol.StageBeforeTool, protocol.StageApproveTool},
		Timeout: 5 * time.Second, ApprovalTimeout: time.Minute, ObserverTimeout: time.Second,
		FailPolicy: hook.FailDeny, Mode: hook.Enforce, When: hook.Always,
	}
}

func faultEntry(t *testing.T, mode string) *config.Entry {
	self, err := os.Executable()
	require.NoError(t, err)
	e := processEntry("faulty", self)
	// With the race detector a program sleeps for a second before it exits.
	e.Env = map[string]string{faultMode: mode, "GORACE": "atexit_sleep_ms=0"}
	return e
}

func (b *bench) mount(t *testing.T, e *config.Entry) *Mounted {
	m, err := b.Mount(t.Context(), e, 7)
	require.NoError(t, err)
	t.Cleanup(func() {
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		require.NoError(t, m.Close(gone))
		require.Equal(t, Stopped, m.Status().State)
	})
	return m
}

func (b *bench) mountReady(t *testing.T, e *config.Entry) *Mounted {
	m := b.mount(t, e)
	waitReady(t, m)
	return m
}

func waitReady(t *testing.T, m *Mounted) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		ctx, cancel := context.WithDeadline(t.Context(), deadline)
		err := m.Ready(ctx)
		cancel()
		if err == nil {
			return
		}
		require.True(t, time.Now().Before(deadline), "%v", err)
		time.Sleep(5 * time.Millisecond)
	}
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "%s", what)
	}
}

func intercept(t *testing.T, m *Mounted, timeout time.Duration) (protocol.Decision, error) {
	return m.process.Intercept(t.Context(), toolCall(timeout))
}

// requireFine checks that the hook answers.
func requireFine(t *testing.T, m *Mounted) {
	t.Helper()
	req := toolCall(patience)
	req.CallID = "fine"
	d, err := m.process.Intercept(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, "fine", d.Reason)
}

func TestFaultyAnswers(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(o *MounterOptions) { o.Limits.MaxMessageBytes = 64 << 10 })
	for mode, c := range map[string]struct {
		want protocol.Outcome // "": a deny that counts
		text string
	}{
		"noise-then-answer": {"", "still read"},
		"error":             {protocol.OutcomeHookError, "no model (-32000)"},
		"bothresult":        {protocol.OutcomeGarbage, ""},
		"broken":            {protocol.OutcomeGarbage, ""},
		"badutf8":           {protocol.OutcomeGarbage, ""},
		"deep=10001":        {protocol.OutcomeGarbage, ""},
		"dupkey":            {protocol.OutcomeBadAnswer, "twice"},
		"case":              {protocol.OutcomeBadAnswer, "Action"},
		"type":              {protocol.OutcomeBadAnswer, "reason"},
		"bigline=300000":    {protocol.OutcomeOversize, "65536 bytes"},
		"deep=100000":       {protocol.OutcomeOversize, "65536 bytes"},
		"garbage":           {protocol.OutcomeGarbage, "no answer within 3s, but wrote 1 lines"},
		"partial":           {protocol.OutcomeTimeout, "no answer within 300ms"},
		"wrongid":           {protocol.OutcomeTimeout, "no answer within 300ms"},
		"stringid":          {protocol.OutcomeTimeout, "no answer within 300ms"},
		"never":             {protocol.OutcomeTimeout, "no answer within 300ms"},
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			e := faultEntry(t, mode)
			e.MaxInFlight = 2
			m := b.mountReady(t, e)
			pid := m.Status().PID
			timeout := patience
			for _, limit := range []time.Duration{3 * time.Second, 300 * time.Millisecond} {
				if strings.Contains(c.text, limit.String()) {
					timeout = limit
				}
			}
			d, err := intercept(t, m, timeout)
			if c.want == "" {
				require.NoError(t, err)
				require.Equal(t, protocol.Decision{Action: protocol.ActionDeny, Reason: c.text}, d)
			} else {
				wantOutcome(t, err, c.want, c.text)
				require.Zero(t, d)
			}
			if mode != "partial" { // there the next answer is a part of the line
				requireFine(t, m)
			}
			require.Equal(t, pid, m.Status().PID, "it lives on")
		})
	}
}

func TestFaultyStarts(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	script := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, []byte(text), mode))
		return path
	}
	command := func(path string) func(t *testing.T) *config.Entry {
		return func(*testing.T) *config.Entry { return processEntry("faulty", path) }
	}
	fault := func(mode string) func(t *testing.T) *config.Entry {
		return func(t *testing.T) *config.Entry { return faultEntry(t, mode) }
	}
	busy := script("busy", "#!/bin/sh\n", 0o700)
	writer, err := os.OpenFile(busy, os.O_WRONLY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { writer.Close() }) // parallel tests go on when this function has returned

	b, hasty := newBench(t, nil), newBench(t, nil)
	hasty.timing.greeting = time.Second
	for _, b := range []*bench{b, hasty} {
		b.timing.badRuns, b.timing.maxPause = 1000, 200*time.Millisecond
	}
	for name, c := range map[string]struct {
		entry          func(t *testing.T) *config.Entry
		full, forAgent string
	}{
		"missing":         {command(filepath.Join(folder, "gone")), "no such file or directory", "it could not be started: no such file or directory"},
		"a folder":        {command(folder + "/"), "is a directory", "it could not be started: is a directory"},
		"no permission":   {command(script("plain", "#!/bin/sh\n", 0o600)), "chmod +x", "it could not be started: permission denied"},
		"bad interpreter": {command(script("bad", "#!/nowhere/python\n", 0o700)), "/nowhere/python", "it could not be started: bad interpreter"},
		"no interpreter":  {command(script("none", "hello\n", 0o700)), "exec format error", "it could not be started: exec format error"},
		"text busy":       {command(busy), "text file busy", "it could not be started: text file busy"},
		"exit 0":          {fault("exit=0"), "exit status 0; last on stderr: I can't start", "it ended with exit status 0"},
		"exit 1":          {fault("exit=1"), "exit status 1; last on stderr: I can't start", "it ended with exit status 1"},
		"exit 2":          {fault("exit=2"), "exit status 2; last on stderr: I can't start", "it ended with exit status 2"},
		"exit 126":        {fault("exit=126"), "exit status 126; last on stderr: I can't start", "it ended with exit status 126"},
		"exit 127":        {fault("exit=127"), "exit status 127; last on stderr: I can't start", "it ended with exit status 127"},
		"never greets":    {fault("hello-never"), "did not answer the greeting within 1s", "did not answer the greeting within 1s"},
		"is stopped":      {fault("stop"), "did not answer the greeting within 1s", "did not answer the greeting within 1s"},
		"refuses":         {fault("hello-refuse"), "no licence", "it refused the greeting: no licence"},
		"version 99":      {fault("hello-v99"), "the hook speaks 99", "the hook speaks 99"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := b
			if strings.Contains(c.full, "within 1s") {
				b = hasty
			}
			m := b.mount(t, c.entry(t))
			err := m.Ready(t.Context())
			require.ErrorContains(t, err, `hook "faulty": `)
			require.ErrorContains(t, err, c.full)
			_, err = intercept(t, m, time.Minute)
			wantOutcome(t, err, protocol.OutcomeSpawnFailed, c.forAgent)
			require.NotContains(t, err.Error(), folder)
			s := m.Status()
			require.Contains(t, s.LastError, c.full)
			waitFor(t, "it is tried again", func() bool { return m.Status().Restarts > s.Restarts })
		})
	}
	t.Run("then it works", func(t *testing.T) {
		path := script("late", "", 0o600)
		m := b.mount(t, processEntry("late", path))
		require.ErrorContains(t, m.Ready(t.Context()), "chmod +x")
		script("late", shellHook, 0o600)
		require.NoError(t, os.Chmod(path, 0o700))
		waitReady(t, m)
		require.True(t, m.Status().Restarts > 0)
	})
}

// shellHook answers what it is asked, one line each.
const shellHook = `#!/bin/sh
while read -r line; do
	id=${line#*\"id\":}
	id=${id%%,*}
	echo '{"jsonrpc":"2.0","id":'$id',"result":{"reason":"fine"}}'
done
`

func TestChildThatEndsInACall(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	for mode, want := range map[string]string{
		"exit-in-call=0": "it ended with exit status 0", "exit-in-call=2": "it ended with exit status 2",
		fmt.Sprintf("signal-in-call=%d", syscall.SIGSEGV): "it ended with ", // the runtime turns it into an exit
		fmt.Sprintf("signal-in-call=%d", syscall.SIGKILL): "it was killed by SIGKILL",
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			m := b.mountReady(t, faultEntry(t, mode))
			pid := m.Status().PID
			begin := time.Now()
			_, err := intercept(t, m, time.Hour)
			require.Less(t, time.Since(begin), patience)
			wantOutcome(t, err, protocol.OutcomeCrash, "it ") // "it ended" when the exit comes late
			waitFor(t, "the reason is known", func() bool { return strings.HasPrefix(m.Status().LastError, want) })
			waitReady(t, m)
			require.NotEqual(t, pid, m.Status().PID)
			requireFine(t, m)
		})
	}
}

func TestHungChild(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.timing.stuck = 300 * time.Millisecond
	for _, mode := range []string{"never", fmt.Sprintf("signal-in-call=%d", syscall.SIGSTOP)} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			m := b.mountReady(t, faultEntry(t, mode))
			pid := m.Status().PID
			_, err := intercept(t, m, 200*time.Millisecond)
			wantOutcome(t, err, protocol.OutcomeTimeout)
			waitFor(t, "it is restarted", func() bool { s := m.Status(); return s.Restarts == 1 && s.State == Ready })
			require.Contains(t, m.Status().LastError, "were held by calls without an answer for 300ms")
			require.NotEqual(t, pid, m.Status().PID)
			require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH)
			requireFine(t, m)
		})
	}
}

func TestIdsThatDoNotMatch(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	for _, mode := range []string{"wrongid", "stringid", "nullid"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			e := faultEntry(t, mode)
			e.MaxInFlight = 4
			m := b.mountReady(t, e)
			for range 3 {
				_, err := intercept(t, m, 500*time.Millisecond)
				wantOutcome(t, err, protocol.OutcomeTimeout)
			}
			waitFor(t, "it is restarted", func() bool { s := m.Status(); return s.Restarts == 1 && s.State == Ready })
			require.Contains(t, m.Status().LastError, "3 calls in a row got no answer in time")
			require.Positive(t, m.Status().Noise["unknown_id"])
			requireFine(t, m)
		})
	}
}

func TestLateAnswerIsCounted(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	m := b.mountReady(t, faultEntry(t, "late=600"))
	_, err := intercept(t, m, 200*time.Millisecond)
	wantOutcome(t, err, protocol.OutcomeTimeout)
	waitFor(t, "the answer comes", func() bool { return m.Status().Noise["late_reply"] == 1 })
	require.Equal(t, 0, m.Status().InFlight)
	require.Equal(t, 0, m.Status().Restarts)
	requireFine(t, m)
}

func TestDuplicateAnswer(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	m := b.mountReady(t, faultEntry(t, "dup"))
	d, err := intercept(t, m, patience)
	require.NoError(t, err)
	require.Equal(t, protocol.Decision{Reason: "first"}, d)
	waitFor(t, "it is restarted", func() bool { s := m.Status(); return s.Restarts == 1 && s.State == Ready })
	require.Contains(t, m.Status().LastError, "it answered a call twice")
	requireFine(t, m)
}

func TestChildrenThatFlood(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	for mode, want := range map[string]string{
		"request=100":     "it sent 100 requests within 1m0s",
		"floodout=100000": "it sent more than 1000 notifications in a second",
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			m := b.mountReady(t, faultEntry(t, mode))
			// The answer may come before the end.
			_, _ = intercept(t, m, patience)
			waitFor(t, "it is restarted", func() bool { s := m.Status(); return s.Restarts == 1 && s.State == Ready })
			require.Contains(t, m.Status().LastError, want)
			requireFine(t, m)
		})
	}
}

func TestChildThatClosesItsStdin(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	m := b.mountReady(t, faultEntry(t, "closestdin"))
	_, err := intercept(t, m, patience)
	wantOutcome(t, err, protocol.OutcomeCrash)
	waitFor(t, "it is started again", func() bool { return m.Status().Restarts > 0 })
	require.Contains(t, m.Status().LastError, "it closed its standard input and went on running")
}

func TestChildThatDoesNotRead(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	e := faultEntry(t, "noread")
	e.MaxInFlight = 64
	deaf := b.mountReady(t, e)
	fine := b.mountReady(t, faultEntry(t, "never"))
	req := toolCall(time.Second)
	req.Subject = req.Subject.With("arguments", []byte(`{"text":"`+strings.Repeat("x", 200<<10)+`"}`))
	var wg sync.WaitGroup
	var mu sync.Mutex
	count := map[protocol.Outcome]int{}
	for range 64 {
		wg.Go(func() {
			_, err := deaf.process.Intercept(t.Context(), req)
			var f *hook.Failure
			require.ErrorAs(t, err, &f)
			mu.Lock()
			defer mu.Unlock()
			count[f.Outcome]++
		})
	}
	for range 50 {
		requireFine(t, fine)
	}
	wg.Wait()
	require.Equal(t, 64, count[protocol.OutcomeTimeout]+count[protocol.OutcomeOverloaded]+count[protocol.OutcomeCrash], "%v", count)
	require.Positive(t, count[protocol.OutcomeOverloaded], "%v", count)
}

func TestCrashLoopAndHungHookBesideAHealthyOne(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.timing.firstPause, b.timing.maxPause = 5*time.Millisecond, 20*time.Millisecond
	healthy := b.mountReady(t, faultEntry(t, "never"))
	hung := b.mountReady(t, faultEntry(t, "never"))
	loop := b.mount(t, faultEntry(t, "crashloop"))
	done := make(chan error)
	go func() {
		_, err := intercept(t, hung, time.Hour)
		done <- err
	}()
	begin := time.Now()
	for range 300 {
		requireFine(t, healthy)
		_, _ = intercept(t, loop, time.Hour)
	}
	require.Less(t, time.Since(begin), patience)
	require.Equal(t, 0, healthy.Status().Restarts)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, hung.Close(gone))
	wantOutcome(t, <-done, protocol.OutcomeCrash, "it was closed")

	waitFor(t, "the breaker opens", func() bool { return loop.Status().State == Failed })
	require.Equal(t, 4, loop.Status().Restarts)
	begin = time.Now()
	_, err := loop.process.Approve(t.Context(), approval(time.Minute))
	wantOutcome(t, err, protocol.OutcomeBreakerOpen, "exit status 3")
	require.Less(t, time.Since(begin), time.Second)
}

func TestSerialChild(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	m := b.mountReady(t, faultEntry(t, "serial=250"))
	var wg sync.WaitGroup
	var mu sync.Mutex
	count := map[protocol.Outcome]int{}
	for range 12 {
		wg.Go(func() {
			d, err := intercept(t, m, time.Second)
			outcome := protocol.Outcome(d.Reason)
			if err != nil {
				var f *hook.Failure
				require.ErrorAs(t, err, &f)
				outcome = f.Outcome
			}
			mu.Lock()
			defer mu.Unlock()
			count[outcome]++
		})
	}
	wg.Wait()
	// On a busy machine the child itself may take longer than its second.
	require.Equal(t, 12, count["in the end"]+count[protocol.OutcomeOverloaded]+count[protocol.OutcomeTimeout], "%v", count)
	require.Positive(t, count["in the end"])
	require.GreaterOrEqual(t, count[protocol.OutcomeOverloaded], 7)
	require.Equal(t, 0, m.Status().Restarts)
}

func TestAnswerOfAHookThatEndsAtOnceIsNotLost(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "once.sh")
	require.NoError(t, os.WriteFile(script, []byte(strings.Replace(shellHook, "while read -r line; do", "for turn in hello call; do\n\tread -r line", 1)), 0o700))
	for part := range 4 {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			ready := make(chan struct{}, 1)
			b := newBench(t, func(o *MounterOptions) {
				o.OnState = func(_ string, s Status) {
					if s.State == Ready {
						ready <- struct{}{}
					}
				}
			})
			b.timing.firstPause = time.Microsecond
			m := b.mount(t, processEntry("once", script))
			for i := range 250 {
				<-ready
				d, err := intercept(t, m, time.Minute)
				require.NoError(t, err, "run %d", i)
				require.Equal(t, "fine", d.Reason)
			}
			require.GreaterOrEqual(t, m.Status().Restarts, 249)
		})
	}
}

func TestCloseKillsWhatDoesNotEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	m := b.mountReady(t, faultEntry(t, "ignoreterm"))
	pid := m.Status().PID
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	require.NoError(t, m.Close(ctx))
	require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH)
	require.Equal(t, Stopped, m.Status().State)
}

func TestCloseEndsAHealthyChildQuietly(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	m := b.mountReady(t, faultEntry(t, "serial=300"))
	var wg sync.WaitGroup
	wg.Go(func() {
		d, err := intercept(t, m, patience)
		require.NoError(t, err)
		require.Equal(t, "in the end", d.Reason)
	})
	waitFor(t, "the call is under way", func() bool { return m.Status().InFlight == 1 })
	require.NoError(t, m.Close(t.Context()))
	wg.Wait()
	require.Empty(t, m.Status().LastError)
	require.Zero(t, m.Status().PID)
}

func TestRestartOfARealChild(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	m := b.mountReady(t, faultEntry(t, "never"))
	pid := m.Status().PID
	require.NoError(t, m.Restart(t.Context()))
	require.NotEqual(t, pid, m.Status().PID)
	require.Equal(t, 1, m.Status().Restarts)
	requireFine(t, m)
}

func TestStderrGoesToLogAndStatus(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	m := b.mountReady(t, faultEntry(t, "stderr"))
	waitFor(t, "the lines are logged", func() bool { return b.logs.FilterMessage("hook says on stderr").Len() == 2 })
	require.Equal(t, []string{`one\x1b[31m`, "two"}, m.Status().StderrTail)
	line := b.logs.FilterMessage("hook says on stderr").All()[0]
	require.Equal(t, zap.WarnLevel, line.Level)
	require.Equal(t, map[string]any{"hook": "faulty", "line": `one\x1b[31m`}, line.ContextMap())
}

func TestChangedFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "hook.sh")
	require.NoError(t, os.WriteFile(path, []byte(shellHook), 0o700))
	b := newBench(t, nil)
	m := b.mountReady(t, processEntry("script", path))
	require.False(t, m.Changed())
	require.NoError(t, os.WriteFile(path, []byte(shellHook), 0o700))
	require.False(t, m.Changed(), "saved as it was")
	require.NoError(t, os.WriteFile(path, []byte(shellHook+"\n# more\n"), 0o700))
	require.True(t, m.Changed())
	require.NoError(t, m.Restart(t.Context()))
	require.False(t, m.Changed())
	require.NoError(t, os.Remove(path))
	require.True(t, m.Changed())
}

func TestRegistrationOfAProcess(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	e := faultEntry(t, "hello-stages")
	e.MaxInFlight, e.FailPolicy = 0, hook.FailContinue
	e.KeyStrategies = map[string]protocol.KeyStrategy{"other": protocol.MergeMap}
	m := b.mount(t, e)
	waitReady(t, m)
	require.Equal(t, 4, m.Status().Capacity)
	require.Equal(t, "picky", m.Status().Greeted)

	r, err := m.Registration(e)
	require.NoError(t, err)
	require.Equal(t, []protocol.Stage{protocol.StageBeforeTool}, r.Stages)
	require.Equal(t, map[string]protocol.KeyStrategy{"seen": protocol.MergeList, "other": protocol.MergeMap}, r.KeyStrategies)
	require.True(t, r.Roles.Remote)
	require.Equal(t, hook.FailContinue, r.FailPolicy)

	guard := *e
	guard.FailPolicy = hook.FailDeny
	_, err = m.Registration(&guard)
	require.ErrorContains(t, err, "it left out approve_tool when it was greeted, and its entry makes it a guard there")

	later := *e
	later.Priority, later.Timeout = 50, time.Hour
	r, err = m.Registration(&later)
	require.NoError(t, err)
	require.Equal(t, 50, r.Priority)
	require.Equal(t, time.Hour, r.Timeout)

	later.KeyStrategies = map[string]protocol.KeyStrategy{"seen": protocol.LastWins}
	_, err = m.Registration(&later)
	require.ErrorContains(t, err, `mount "faulty": the hook merges the key "seen" of state by merge_list, its entry by last_wins`)
	later.Command = []string{"/bin/true"}
	_, err = m.Registration(&later)
	require.ErrorContains(t, err, "mount it anew")

	only := faultEntry(t, "hello-stages")
	only.Observe, only.FailPolicy = nil, hook.FailContinue
	other := b.mount(t, only)
	r, err = other.Registration(only)
	if err == nil && !slices.Equal(r.Stages, only.Intercept) { // it may have greeted already
		require.Equal(t, []protocol.Stage{protocol.StageBeforeTool}, r.Stages)
	}
}

func TestStatesAreTold(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var seen []State
	b := newBench(t, func(o *MounterOptions) {
		o.OnState = func(name string, s Status) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, s.State)
		}
	})
	m := b.mountReady(t, faultEntry(t, "exit-in-call=1"))
	_, err := intercept(t, m, patience)
	wantOutcome(t, err, protocol.OutcomeCrash)
	waitFor(t, "it is back", func() bool { s := m.Status(); return s.Restarts == 1 && s.State == Ready })
	require.NoError(t, m.Close(t.Context()))
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, []State{Ready, Stopping, Backoff, Starting, Ready, Stopping, Stopped}, seen)
}

func TestVariablesThatAreWithheldAreNamed(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	e := faultEntry(t, "never")
	e.PassEnv = []string{"PATH", "LD_PRELOAD"}
	b.mountReady(t, e)
	logged := b.logs.FilterMessageSnippet("pass_env").All()
	require.Len(t, logged, 1)
	require.Equal(t, []any{"LD_PRELOAD"}, logged[0].ContextMap()["names"])
}

func TestFingerprint(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "a")
	require.Empty(t, FileFingerprint(nil))
	missing := FileFingerprint([]string{path})
	require.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
	small := FileFingerprint([]string{path})
	require.NotEqual(t, missing, small)
	require.NoError(t, os.Chtimes(path, time.Time{}, time.Now().Add(time.Hour)))
	require.Equal(t, small, FileFingerprint([]string{path}))
	require.NoError(t, os.Chmod(path, 0o700))
	require.NotEqual(t, small, FileFingerprint([]string{path}))
	require.NoError(t, os.Truncate(path, hashedWhole+1))
	large := FileFingerprint([]string{path})
	require.NoError(t, os.Chtimes(path, time.Time{}, time.Now().Add(2*time.Hour)))
	require.NotEqual(t, large, FileFingerprint([]string{path}))
}

// BenchmarkProcessCall is the way to a child and back.
func BenchmarkProcessCall(b *testing.B) {
	self, err := os.Executable()
	require.NoError(b, err)
	e := processEntry("bench", self)
	e.Env = map[string]string{faultMode: "none"}
	spawner := child.NewSpawner()
	defer spawner.Close()
	m, err := NewMounter(MounterOptions{Spawner: spawner}).Mount(b.Context(), e, 1)
	require.NoError(b, err)
	defer m.Close(context.Background())
	require.NoError(b, m.Ready(b.Context()))
	req := toolCall(time.Minute)
	req.CallID = "fine"
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.process.Intercept(b.Context(), req); err != nil {
			b.Fatal(err)
		}
	}
}
