package invariant

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// Ledger keeps account of requests (I1). The zero value is ready for use, and
// safe for several goroutines.
type Ledger struct {
	mu       sync.Mutex
	open     map[call]entry
	wrong    []string
	answered int64
	late     time.Duration
}

type call struct {
	conn any
	id   string
}

type entry struct {
	due time.Time
}

// Asked notes that a request was sent over a connection, and when its time is
// over.
func (l *Ledger) Asked(conn any, id string, due time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		l.open = map[call]entry{}
	}
	if _, twice := l.open[call{conn, id}]; twice {
		l.wrong = append(l.wrong, fmt.Sprintf("the id %s was used while it was open", id))
	}
	l.open[call{conn, id}] = entry{due}
}

// Answered notes an answer. The error says that nothing was asked.
func (l *Ledger) Answered(conn any, id string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.open[call{conn, id}]
	if !ok {
		err := fmt.Errorf("I1: an answer to %s, which is not open", id)
		l.wrong = append(l.wrong, err.Error())
		return err
	}
	delete(l.open, call{conn, id})
	l.answered++
	l.late = max(l.late, time.Since(e.due))
	return nil
}

// Closed notes that a connection is closed, which answers what was open.
func (l *Ledger) Closed(conn any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		if c.conn == conn {
			delete(l.open, c)
		}
	}
}

// Open returns the ids that are not answered, of one connection.
func (l *Ledger) Open(conn any) (ids []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		if c.conn == conn {
			ids = append(ids, c.id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Count is how many answers came.
func (l *Ledger) Count() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.answered
}

// Late is by how much the slowest answer came after its time; 0 when none was
// late.
func (l *Ledger) Late() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.late
}

// Wrong returns what is not as it must be: answers to nothing, and requests
// that are open though their time is over by more than grace.
func (l *Ledger) Wrong(grace time.Duration) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	wrong := slices.Clone(l.wrong)
	for c, e := range l.open {
		if over := time.Since(e.due); over > grace {
			wrong = append(wrong, fmt.Sprintf("I1: %s has no answer %s after its time", c.id, over.Round(time.Millisecond)))
		}
	}
	return wrong
}
