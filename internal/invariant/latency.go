package invariant

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// Latencies are how long calls took (I6). The zero value is empty, and safe for
// several goroutines.
type Latencies struct {
	mu   sync.Mutex
	took []time.Duration
}

// Add notes one.
func (l *Latencies) Add(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.took = append(l.took, d)
}

// AddAll notes those of others.
func (l *Latencies) AddAll(others *Latencies) {
	others.mu.Lock()
	took := slices.Clone(others.took)
	others.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.took = append(l.took, took...)
}

// Count is how many there are.
func (l *Latencies) Count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.took)
}

// P returns the smallest one that is not below the part q of all; 0 when there
// are none.
func (l *Latencies) P(q float64) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.took) == 0 {
		return 0
	}
	slices.Sort(l.took)
	at := int(q*float64(len(l.took))+0.999999) - 1
	return l.took[min(max(at, 0), len(l.took)-1)]
}

// MayCost is how much later an answer may come because of what goes wrong
// elsewhere.
const MayCost = 50 * time.Millisecond

// Beside holds the p99 beside faults against that alone: it may be twice as
// long, or MayCost longer. lag is for how long the machine kept those who measure
// from running (see [Nap]), which is not hookd's doing: it is granted on top.
func Beside(alone, beside *Latencies, lag time.Duration) error {
	was, is := alone.P(0.99), beside.P(0.99)
	if most := max(2*was, was+MayCost) + lag; is > most {
		return fmt.Errorf("I6: p99 is %s beside faults and %s alone, and may be %s", is, was, most)
	}
	return nil
}

// Nap sleeps and returns by how much it was longer than that, which says how
// busy the machine is.
func Nap(d time.Duration) (lag time.Duration) {
	begin := time.Now()
	time.Sleep(d)
	return time.Since(begin) - d
}
