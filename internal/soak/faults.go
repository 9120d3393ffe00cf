package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hookd/hookd/daemon"
	"github.com/hookd/hookd/internal/fault"
	"github.com/hookd/hookd/protocol"
)

// kind is a way to go wrong.
type kind struct {
	name string
	// hook: it needs a hook that is well, which is sick until it has recovered;
	// this one, or any.
	hook bool
	of   string
	// alone: no other one of these at the same time.
	alone bool
	// quiet: nothing in the status tells of it.
	quiet bool
	do    func(f *trouble) error
}

// trouble is one fault that is going on.
type trouble struct {
	soak *soak
	*house
	rand    *rand.Rand
	patient *patient
	was     daemon.HookStatus
	named   bool
}

// inCalls are the modes of single calls.
func inCalls() []kind {
	var kinds []kind
	for mode, quiet := range map[string]bool{
		"never": false, "late=1500ms": false, "crash": false, "segv": false, "kill": false, "sigstop": false, "forkhold": false, "setsid": false,
		"forks=50": true, "burn=300ms": true, "memory=64MiB": true, "dup": false, "wrongid": false, "stringid": false, "nullid": false,
		"noid": false, "garbage": false, "noise": false, "partial": false, "bigline=4MiB": false, "deep=10001": false, "badutf8": false,
		"surrogate": false, "control": false, "bom": false, "crlf": false, "dupkey": false, "caps": false, "unknownverb": false,
		"nullverb": false, "wrongtype": false, "error": false, "both": false, "twovalues": false, "pretty": false, "bignumber": true,
		"floodout=10000": false, "notifyflood=20000": false, "requests=100": false, "flooderr=4MiB": true, "ansi": true,
	} {
		kinds = append(kinds, kind{name: mode, hook: true, quiet: quiet, do: func(f *trouble) error { return f.askWith(mode) }})
	}
	return kinds
}

// kinds are all faults whose name holds a text, in one order.
func kinds(only string) []kind {
	all := inCalls()
	for _, p := range patients() {
		// The mode of a hook's life is that of its entry.
		all = append(all, kind{name: "life: " + p.mode, hook: true, of: p.name, do: (*trouble).liveWrongly})
	}
	for _, a := range fault.Agents("") {
		all = append(all, kind{name: "agent: " + a.Name, quiet: true, do: func(f *trouble) error { return f.playAgent(a.Name) }})
	}
	all = append(all,
		kind{name: "hook killed from outside", hook: true, do: func(f *trouble) error { return f.signalHook(syscall.SIGKILL) }},
		kind{name: "hook stopped from outside", hook: true, do: func(f *trouble) error { return f.signalHook(syscall.SIGSTOP) }},
		kind{name: "hook restarted", hook: true, quiet: true, do: (*trouble).restartHook},
		kind{name: "hook disabled", hook: true, quiet: true, do: (*trouble).disable},
		kind{name: "config cut off", alone: true, do: (*trouble).cutConfig},
		kind{name: "config with an unknown key", alone: true, do: (*trouble).misspellConfig},
		kind{name: "config removed", alone: true, do: (*trouble).removeConfig},
		kind{name: "config with a hook that does not start", alone: true, do: (*trouble).addBrokenHook},
		kind{name: "config changes a hook", alone: true, quiet: true, do: (*trouble).changeHook},
		kind{name: "a hundred SIGHUPs", quiet: true, do: (*trouble).hangUp},
	)
	slices.SortFunc(all, func(a, b kind) int { return strings.Compare(a.name, b.name) })
	return slices.DeleteFunc(all, func(k kind) bool { return !strings.Contains(k.name, only) })
}

// goWrong lets something go wrong again and again, and returns when all of it
// is over.
func (s *soak) goWrong(ctx context.Context, samples *sampler) error {
	all := kinds(s.only)
	var order []int // of those that have not been played in this round
	r := rand.New(rand.NewPCG(s.seed, 0))
	var running sync.WaitGroup
	defer running.Wait()
	var config sync.Mutex
	tick := time.NewTicker(s.every)
	defer tick.Stop()
	shown := time.Now()
	for end := time.Now().Add(s.length); time.Now().Before(end); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if len(order) == 0 {
			order = r.Perm(len(all))
		}
		k := all[order[0]]
		f := &trouble{soak: s, house: s.house, rand: rand.New(rand.NewPCG(r.Uint64(), 0))}
		if k.hook {
			if f.patient = s.take(r, k.of); f.patient == nil { // who is needed is sick: it comes later
				order = append(order[1:], order[0])
				continue
			}
		}
		if k.alone && !config.TryLock() {
			order = append(order[1:], order[0])
			continue
		}
		order = order[1:]
		running.Go(func() {
			f.play(k)
			if k.alone {
				config.Unlock()
			}
		})
		if time.Since(shown) >= 10*time.Second {
			shown = time.Now()
			fmt.Fprintf(s.progress, "%s to go, %d answers, memory %s\n", time.Until(end).Round(time.Second), s.ledger.Count(), mib(samples.median(0.99, 1)))
		}
	}
	fmt.Fprintln(s.progress, "waiting until all that went wrong is over")
	return nil
}

// play lets one thing go wrong and waits until it is over (I8).
func (f *trouble) play(k kind) {
	began := time.Now()
	err := f.try(k)
	took := time.Since(began)
	if err != nil {
		f.soak.violated(fmt.Errorf("%s: %w", k.name, err))
	}
	f.soak.count(func(c *counts) {
		c.faults[k.name]++
		c.recovery[k.name] = max(c.recovery[k.name], took)
	})
	if f.patient != nil {
		f.soak.recovered(f.patient)
	}
}

func (f *trouble) try(k kind) error {
	var err error
	if f.patient != nil {
		if f.was, err = f.statusOf(f.patient.name); err != nil {
			return err
		}
	}
	if err := k.do(f); err != nil {
		return err
	}
	if f.patient == nil {
		return nil
	}
	over := time.Now()
	return f.until("I8: "+f.patient.name+" has recovered and status has named what was wrong", func() bool {
		is, err := f.statusOf(f.patient.name)
		f.named = f.named || k.quiet || err == nil && f.tells(is)
		if f.named && is.State == "degraded" && time.Since(over) > owed {
			over = time.Now()
			f.soak.count(func(c *counts) { c.byHand++ })
			_, _ = f.restart(f.patient.name) // what is wrong then shows in the state
		}
		return f.named && err == nil && is.State == "ready" && time.Since(over) > shows && f.answers()
	})
}

// owed is how long a hook may owe an answer that will never come, before it is
// restarted as its operator would do it.
const owed = 5 * time.Second

// shows is how long it takes until it is known that an answer will not come.
const shows = (hookTimeout + 300) * time.Millisecond

// tells reports whether a status says more against the hook than before.
func (f *trouble) tells(is daemon.HookStatus) bool {
	noise := func(h daemon.HookStatus) (n int64) {
		for _, count := range h.Noise {
			n += count
		}
		return n
	}
	return is.State != "ready" || is.Failures > f.was.Failures || is.Restarts > f.was.Restarts || is.LastError != f.was.LastError || noise(is) != noise(f.was)
}

// answers reports whether the hook answers as it should.
func (f *trouble) answers() bool {
	a, err := f.soak.dial(0)
	if err != nil {
		return false
	}
	defer a.conn.Close()
	failed := func() int64 {
		is, err := f.statusOf(f.patient.name)
		if err != nil {
			return -1
		}
		return is.Failures
	}
	before := failed()
	return before >= 0 && a.ask(protocol.StageBeforeTool, f.patient, 0, fault.Orders{}) == nil && failed() == before
}

// askWith makes calls in which the hook goes wrong.
func (f *trouble) askWith(mode string) error {
	m, err := fault.ParseMode(mode)
	if err != nil {
		return err
	}
	a, err := f.soak.dial(0)
	if err != nil {
		return err
	}
	defer a.conn.Close()
	for range 1 + f.rand.IntN(3) {
		if err := a.ask(protocol.StageBeforeTool, f.patient, 0, m.Calls); err != nil {
			return err
		}
	}
	return nil
}

// liveWrongly starts the hook anew in its wrong way of life, and later in the
// right one.
func (f *trouble) liveWrongly() error {
	file := f.file(f.patient)
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		return err
	}
	refused, err := f.restart(f.patient.name)
	f.named = refused || f.patient.mode == "ignoreterm" // that one is like any other until it shall end
	for range 20 {                                      // so long that hookd notices, and agents ask
		time.Sleep(100 * time.Millisecond)
		if is, err := f.statusOf(f.patient.name); err == nil && f.tells(is) {
			f.named = true
		}
	}
	return errors.Join(err, os.Remove(file), f.restartHook())
}

func (f *trouble) restartHook() error {
	_, err := f.restart(f.patient.name)
	return err
}

func (f *trouble) signalHook(s syscall.Signal) error {
	if f.was.PID == 0 {
		return fmt.Errorf("%s has no process", f.patient.name)
	}
	err := syscall.Kill(f.was.PID, s)
	if s == syscall.SIGSTOP && err == nil { // it must be asked to be found out
		return f.askWith("obey")
	}
	return err
}

func (f *trouble) disable() error {
	f.soak.switchOff(f.patient.name)
	if err := f.call(daemon.MethodDisable, daemon.HookParams{Name: f.patient.name}, nil); err != nil {
		return err
	}
	time.Sleep(300 * time.Millisecond)
	return f.call(daemon.MethodEnable, daemon.HookParams{Name: f.patient.name}, nil)
}

// playAgent runs an agent that goes wrong, and waits for its end.
func (f *trouble) playAgent(mode string) error {
	tool := f.soak.patients[f.rand.IntN(len(f.soak.patients))].name
	p, err := os.StartProcess(f.agent, []string{f.agent, "-socket", f.agents, "-mode", mode, "-tool", tool}, &os.ProcAttr{Files: []*os.File{nil, nil, os.Stderr}})
	if err != nil {
		return err
	}
	state, err := p.Wait()
	if err == nil && !state.Success() && mode != "dies" {
		err = fmt.Errorf("the agent ended with %s", state)
	}
	return err
}

// refused writes a config that is wrong, waits until status says so, and puts
// the good one back.
func (f *trouble) refused(spoil func(good []byte) error) error {
	good, err := os.ReadFile(f.config)
	if err != nil {
		return err
	}
	if err := spoil(good); err != nil {
		return err
	}
	wrong := f.until("I8: status tells that the config is refused", func() bool {
		s, err := f.status()
		return err == nil && s.Config.Error != ""
	})
	return errors.Join(wrong, f.replace(good), f.until("I8: the good config is accepted", func() bool {
		s, err := f.status()
		return err == nil && s.Config.Error == ""
	}))
}

func (f *trouble) cutConfig() error {
	return f.refused(func(good []byte) error { return f.replace(good[:len(good)/2]) })
}

func (f *trouble) misspellConfig() error {
	return f.refused(func(good []byte) error {
		return f.replace(bytes.Replace(good, []byte(`"timeout_ms"`), []byte(`"timout_ms"`), 1))
	})
}

func (f *trouble) removeConfig() error {
	return f.refused(func([]byte) error { return os.Remove(f.config) })
}

func (f *trouble) addBrokenHook() error {
	return f.refused(func([]byte) error {
		entries := f.entries(f.rand.Int())
		entries["broken"] = object{"command": []string{f.hook, "-mode", "exit=127"}, "intercept": []string{"before_tool"}}
		return f.write(entries)
	})
}

// changeHook loads a config in which one hook is another one.
func (f *trouble) changeHook() error {
	before, err := f.status()
	if err != nil {
		return err
	}
	if err := f.write(f.entries(f.rand.Int())); err != nil {
		return err
	}
	return f.until("the new config holds", func() bool {
		s, err := f.status()
		return err == nil && s.Generation > before.Generation && s.Config.Error == "" && s.Config.SHA256 != before.Config.SHA256
	})
}

func (f *trouble) hangUp() error {
	for range 100 {
		if err := f.process.Signal(syscall.SIGHUP); err != nil {
			return err
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}
