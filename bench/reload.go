package bench

import (
	"fmt"
	"strconv"
	"time"

	"github.com/hookd/hookd/daemon"
)

// manyHooks is how many a daemon has in T9, and hookTimeout what each may take.
const (
	manyHooks   = 8
	hookTimeout = time.Second
)

// eightHooks are "hooks" of which the last one differs by version.
func (r *run) eightHooks(version int) object {
	entries := object{}
	for i := range manyHooks {
		more := object{"timeout_ms": hookTimeout.Milliseconds(), "fail_policy": "deny"}
		if i == manyHooks-1 {
			more["env"] = object{"VERSION": strconv.Itoa(version)}
		}
		entries["hook"+strconv.Itoa(i)] = r.hook("continue", more)
	}
	return object{"processes": entries}
}

// startAndReload is T9.
func startAndReload(r *run) ([]Row, error) {
	starts := newSeries(nil)
	var h *house
	for range r.share(2000, 2) {
		if h != nil {
			h.stop()
		}
		var err error
		if h, err = r.start(r.eightHooks(0)); err != nil {
			return nil, err
		}
		starts.took = append(starts.took, h.waitedForReady)
	}
	defer h.stop()
	calls, reloads, err := h.reloads(r.share(2000, 2))
	if err != nil {
		return nil, err
	}
	limit := hookTimeout.Seconds() * 1e6
	slowest := calls.p(1)
	return []Row{
		{Work: "start to ready, 8 Go hooks", P50: round(starts.p(0.5), 0), P99: round(starts.p(0.99), 0),
			Ratio: round(starts.p(0.5)/1e6, 2), Unit: "s", Target: 1},
		{Work: "slowest call while 1 hook of 8 is reloaded; none failed", Floor: limit, P50: round(calls.p(0.5), 1), P99: round(calls.p(0.99), 1),
			Ratio: round(slowest/limit, 3), Unit: "× the hook's timeout", Target: 1},
		{Work: "a reload of 1 hook of 8, from the call to the swap", P50: round(reloads.p(0.5), 0), P99: round(reloads.p(0.99), 0),
			Ratio: round(reloads.p(0.5)/1e6, 2), Unit: "s", Target: 1},
	}, nil
}

// reloads changes one hook n times while an agent asks all of them. A call that
// fails is an error, and so is an unchanged hook in another process.
func (h *house) reloads(n int) (calls, reloads *series, err error) {
	before, err := h.status()
	if err != nil {
		return nil, nil, err
	}
	c, err := h.dial()
	if err != nil {
		return nil, nil, err
	}
	defer c.w.Close()
	calls = newSeries(c.asking(toolLine("bash"), continues))
	version := 0
	reloads = newSeries(func() error {
		version++
		if err := h.write(h.run.eightHooks(version)); err != nil {
			return err
		}
		return h.ask(daemon.MethodReload, object{}, &daemon.ReloadResult{})
	})
	done := make(chan error, 1)
	go func() { done <- reloads.some(h.run.ctx, n) }()
	for ended := false; !ended; {
		if err = calls.some(h.run.ctx, 20); err != nil {
			break
		}
		select {
		case err = <-done:
			ended = true
			done <- nil
		default:
		}
	}
	if other := <-done; err == nil {
		err = other
	}
	if err != nil {
		return nil, nil, err
	}
	after, err := h.status()
	if err != nil {
		return nil, nil, err
	}
	return calls, reloads, unchanged(before, after)
}

// unchanged makes sure that all hooks but the last kept their process.
func unchanged(before, after *daemon.Status) error {
	was, is := processes(before), processes(after)
	for i := range manyHooks {
		name := "hook" + strconv.Itoa(i)
		if same := was[name] == is[name]; same != (i < manyHooks-1) {
			return fmt.Errorf("%s had pid %d and has %d after the reload", name, was[name], is[name])
		}
	}
	return nil
}

// processes are the process ids of hooks, by name.
func processes(s *daemon.Status) map[string]int {
	pids := map[string]int{}
	for _, hook := range s.Hooks {
		pids[hook.Name] = hook.PID
	}
	return pids
}
