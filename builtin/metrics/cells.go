package metrics

import (
	"maps"
	"sync"
	"sync/atomic"
)

// cells finds what belongs to a key without a lock and without garbage. Keys
// are few, and their texts are not those of a request.
type cells[K comparable, V any] struct {
	fresh func(K) V
	known atomic.Pointer[map[K]V]
	mu    sync.Mutex // orders those who add
}

func newCells[K comparable, V any](fresh func(K) V) *cells[K, V] {
	c := &cells[K, V]{fresh: fresh}
	c.known.Store(&map[K]V{})
	return c
}

// of returns what belongs to a key, and makes it the first time.
func (c *cells[K, V]) of(key K) V {
	if v, ok := (*c.known.Load())[key]; ok {
		return v
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	known := *c.known.Load()
	if v, ok := known[key]; ok {
		return v
	}
	more := maps.Clone(known)
	more[key] = c.fresh(key)
	c.known.Store(&more)
	return more[key]
}

// other is the label of what would be one too many.
const other = "other"

// names lets so many different names through as they are. Those that come later
// are [other].
type names struct {
	most  int
	known atomic.Pointer[map[string]struct{}]
	mu    sync.Mutex // orders those who add
}

func newNames(most int) *names {
	n := &names{most: most}
	n.known.Store(&map[string]struct{}{})
	return n
}

func (n *names) of(name string) string {
	known := *n.known.Load()
	if _, ok := known[name]; ok {
		return name
	}
	if len(known) >= n.most {
		return other
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if known = *n.known.Load(); len(known) >= n.most {
		return other
	}
	more := maps.Clone(known)
	more[name] = struct{}{}
	n.known.Store(&more)
	return name
}
