package mount

import "time"

// timing holds every time and count by which a supervisor judges a child.
type timing struct {
	greeting time.Duration // from the start of the child to its answer to the greeting

	firstPause, maxPause time.Duration // before a new start, doubled after each bad run
	badRuns              int           // so many of them
	badWindow            time.Duration // in this time open the breaker,
	probe                time.Duration // and then one start is tried per this time
	proven               time.Duration // a run that lasts so long is good
	untrusted            time.Duration // between two looks at a pinned file that has changed

	stuck    time.Duration // all slots are held by calls that are overdue
	timeouts int           // calls in a row without an answer in time
	oversize int           // lines in a row over the limit

	garbage, requests burstLimit // unreadable lines, requests to hookd

	drain time.Duration // for calls in flight, before the child is restarted for what it did
	exit  time.Duration // how long a failing call waits to learn how the child ended

	canary      time.Duration // between two canaries
	canaryLimit time.Duration // for the answer to one, whatever the hook may take else
}

type burstLimit struct {
	count  int
	window time.Duration
}

func defaultTiming() timing {
	return timing{
		greeting:   5 * time.Second,
		firstPause: 100 * time.Millisecond, maxPause: 30 * time.Second,
		badRuns: 5, badWindow: time.Minute, probe: time.Minute, proven: time.Minute, untrusted: 30 * time.Second,
		stuck: 2 * time.Second, timeouts: 3, oversize: 3,
		garbage: burstLimit{20, time.Minute}, requests: burstLimit{100, time.Minute},
		drain: time.Minute, exit: 20 * time.Millisecond,
		canary: time.Minute, canaryLimit: 30 * time.Second,
	}
}

// burst notices when something happens too often.
type burst struct {
	limit burstLimit
	times []time.Time // of the last events, a ring
	next  int
}

// hit counts an event and reports whether it is the last of limit.count within
// the window.
func (b *burst) hit(now time.Time) bool {
	if len(b.times) < b.limit.count {
		b.times = append(b.times, now)
		return len(b.times) == b.limit.count && now.Sub(b.times[0]) < b.limit.window
	}
	b.times[b.next] = now
	b.next = (b.next + 1) % b.limit.count
	return now.Sub(b.times[b.next]) < b.limit.window
}
