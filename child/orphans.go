package child

import (
	"syscall"
	"time"
)

const (
	// orphanPause is how often hookd looks for orphans that have ended.
	orphanPause = 3 * time.Second
	// orphanAge is how long a zombie must wait for whoever started it before it
	// counts as an orphan. An in-process hook may start programs too; it waits
	// for them as soon as they end.
	orphanAge = 10 * time.Second
)

// orphans reaps processes whose parents have ended and that hookd inherited, as
// the first process of a container does. Nobody else would, and each keeps its
// process id until then.
type orphans struct {
	age  time.Duration
	seen map[int]time.Time // zombies that nobody claims, and since when
}

// reap waits for the zombies that nobody has claimed for age. ours reports
// whether a Spawner will: those exits belong to os/exec, which must not miss
// them.
func (o *orphans) reap(now time.Time, ours func(pid int) bool) {
	seen := map[int]time.Time{}
	for _, pid := range zombies() {
		since, known := o.seen[pid]
		switch {
		case ours(pid):
		case !known:
			seen[pid] = now
		case now.Sub(since) < o.age:
			seen[pid] = since
		default:
			// It is a zombie, so this does not block; who claimed it meanwhile
			// leaves nothing to wait for.
			_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
		}
	}
	o.seen = seen
}
