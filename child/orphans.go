package child

import (
	"maps"
	"slices"
	"sync"
	"syscall"
	"time"
)

const (
	// orphanPause is how often hookd looks for processes that it inherited.
	orphanPause = time.Second
	// orphanAge is how long a zombie must wait for whoever started it before it
	// counts as an orphan. An in-process hook may start programs too; it waits
	// for them as soon as they end.
	orphanAge = 10 * time.Second
	// killPause and killLimit are how often, and how long, the end of what a
	// child left behind is waited for.
	killPause, killLimit = 2 * time.Millisecond, 200 * time.Millisecond
)

// orphans are processes whose parents have ended and that hookd inherited. Dead
// ones are reaped: nobody else would, and each keeps its process id until then.
// Those that have left the group of the child which they come from, and so
// escaped its end, are killed when no such child is left.
//
// Where a process comes from is told by HOOKD_HOOK in its environment. One that
// has thrown it away is let alone until it ends.
type orphans struct {
	age   time.Duration
	owner owner

	mu      sync.Mutex
	zombies map[int]time.Time // that nobody claims, and since when
	escaped map[int]escapee   // that run, by process id
	count   map[string]int64  // of those that ever escaped, by hook
}

// owner knows the children that os/exec waits for.
type owner interface {
	// owns reports whether a process is one of them: its exit is not ours.
	owns(pid int) bool
	// serves reports whether one of a hook's children was there already when a
	// process was started.
	serves(hook string, start uint64) bool
	// named reports whether a hook has had a child at all.
	named(hook string) bool
}

type escapee struct {
	hook  string
	start uint64
}

// kin is a process as the system describes it.
type kin struct {
	pid, parent, group int
	zombie             bool
	start              uint64 // when it was started, in the system's own count
}

func newOrphans(age time.Duration, o owner) *orphans {
	return &orphans{age: age, owner: o, zombies: map[int]time.Time{}, escaped: map[int]escapee{}, count: map[string]int64{}}
}

// look reaps the dead, takes note of those that escaped, and kills those whose
// hook is gone. It returns how many of the latter are left. A quick look may
// miss somebody, who is seen by a later one.
func (o *orphans) look(now time.Time, quick bool) (left int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	zombies, escaped := map[int]time.Time{}, map[int]escapee{}
	for _, p := range offspring(quick) {
		switch {
		case o.owner.owns(p.pid):
		case p.zombie:
			if since, dead := o.bury(p, now); !dead {
				zombies[p.pid] = since
			}
		case p.group != syscall.Getpgrp() && !o.owner.owns(p.group):
			if e, ok := o.recognise(p); ok {
				escaped[p.pid] = e
			}
		}
	}
	o.zombies, o.escaped = zombies, escaped
	for pid, e := range escaped {
		if !o.owner.serves(e.hook, e.start) {
			// It is our child until we reap it, so the number is still its own.
			_ = syscall.Kill(pid, syscall.SIGKILL)
			left++
		}
	}
	return left
}

// bury reaps a zombie that is nobody else's to reap. Of one that may be it
// returns since when it has been seen.
func (o *orphans) bury(p kin, now time.Time) (since time.Time, dead bool) {
	since, seen := o.zombies[p.pid]
	if !seen {
		since = now
	}
	age := o.age
	if p.group != syscall.Getpgrp() { // it most likely comes from a child
		age /= 4
	}
	if _, escapee := o.escaped[p.pid]; escapee || o.owner.owns(p.group) { // it does
		age = 0
	}
	if now.Sub(since) < age {
		return since, false
	}
	// It is a zombie, so this does not block; who claimed it meanwhile leaves
	// nothing to wait for.
	_, _ = syscall.Wait4(p.pid, nil, syscall.WNOHANG, nil)
	return since, true
}

// recognise tells which hook a process comes from.
func (o *orphans) recognise(p kin) (escapee, bool) {
	if e, known := o.escaped[p.pid]; known && e.start == p.start {
		return e, true
	}
	hook := hookOf(p.pid)
	if hook == "" || !o.owner.named(hook) {
		return escapee{}, false
	}
	o.count[hook]++
	return escapee{hook, p.start}, true
}

// sweep kills what has escaped from hooks that are gone, and what comes to
// light when that has died.
func (o *orphans) sweep() {
	for end := time.Now().Add(killLimit); o.look(time.Now(), false) > 0 && time.Now().Before(end); {
		time.Sleep(killPause)
	}
}

// Escaped returns how many processes have left the group of a child of this
// name, over all its lives, so that stopping the child did not end them.
func (s *Spawner) Escaped(name string) int64 {
	if s.orphans == nil {
		return 0
	}
	s.orphans.mu.Lock()
	defer s.orphans.mu.Unlock()
	return s.orphans.count[name]
}

// Strays returns the processes that have left their child's group and run, with
// the name of that child, by process id.
func (s *Spawner) Strays() map[int]string {
	strays := map[int]string{}
	if s.orphans == nil {
		return strays
	}
	s.orphans.mu.Lock()
	defer s.orphans.mu.Unlock()
	for pid, e := range s.orphans.escaped {
		strays[pid] = e.hook
	}
	return strays
}

// owns reports whether a process is a child that os/exec has yet to reap.
func (s *Spawner) owns(pid int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unreaped[pid] != nil
}

func (s *Spawner) serves(hook string, start uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(slices.Collect(maps.Values(s.unreaped)), func(p *Process) bool {
		return p.name == hook && p.began <= start
	})
}

func (s *Spawner) named(hook string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.names[hook]
}
