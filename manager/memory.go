package manager

import (
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/protocol"
)

const (
	// askedFor is how long hookd remembers whether a call was asked about.
	askedFor = 5 * time.Minute
	// askedCalls is how many calls of one connection are remembered. A call that
	// fell out counts as asked, which is the safe side.
	askedCalls = 1024
	// repeatSessions is how many sessions are counted for max_repeats.
	repeatSessions = 4096
)

// askedMemory remembers, for one connection, which tool calls an interceptor
// asked approval for, so that a later, separate approve_tool knows.
type askedMemory struct {
	mu    sync.Mutex
	calls map[string]askedCall
	order recent
}

type askedCall struct {
	asked bool
	why   asking
	at    time.Time
}

// asking is why approval is wanted: what the first interceptor that asked for it
// has said.
type asking struct{ reason, by string }

func (a *askedMemory) remember(digest string, asked bool, why asking, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.calls == nil {
		a.calls = map[string]askedCall{}
	}
	if _, known := a.calls[digest]; !known {
		if out, full := a.order.add(digest, askedCalls); full {
			delete(a.calls, out)
		}
	}
	// The same call again does not take a question back: an approval may still
	// be asked for under the first.
	if was := a.calls[digest]; was.asked && now.Sub(was.at) <= askedFor {
		if !asked {
			why = was.why
		}
		asked = true
	}
	a.calls[digest] = askedCall{asked, why, now}
}

// lookup says whether the call was asked about and why, and whether that is
// known.
func (a *askedMemory) lookup(digest string, now time.Time) (asked bool, why asking, known bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c, ok := a.calls[digest]
	if !ok || now.Sub(c.at) > askedFor {
		return false, asking{}, false
	}
	return c.asked, c.why, true
}

// repeats counts, per session and hook, how often inject had an effect.
type repeats struct {
	mu     sync.Mutex
	counts map[string]map[string]int
	order  recent
}

// allow counts one more effect unless limit (nil = none) is reached.
func (r *repeats) allow(session, hookName string, limit *int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counts == nil {
		r.counts = map[string]map[string]int{}
	}
	per := r.counts[session]
	if per == nil {
		if out, full := r.order.add(session, repeatSessions); full {
			delete(r.counts, out)
		}
		per = map[string]int{}
		r.counts[session] = per
	}
	if limit != nil && per[hookName] >= *limit {
		return false
	}
	per[hookName]++
	return true
}

// recent is the order in which keys came, for as many as are remembered.
type recent struct {
	keys   []string
	oldest int
}

// add notes a key and, when there was no room, returns the one that had to go.
func (r *recent) add(key string, limit int) (out string, full bool) {
	if len(r.keys) < limit {
		r.keys = append(r.keys, key)
		return "", false
	}
	out, r.keys[r.oldest] = r.keys[r.oldest], key
	r.oldest = (r.oldest + 1) % limit
	return out, true
}

// mergeState lays the values that one hook set over what is there, by the
// strategy of each key. Values of other types than a strategy wants replace.
func mergeState(state, set protocol.Object, strategies map[string]protocol.KeyStrategy) protocol.Object {
	return state.Merged(set, func(name string, old, value jsontext.Value) jsontext.Value {
		switch strategies[name] {
		case protocol.MergeList:
			return mergeLists(old, value)
		case protocol.MergeMap:
			return mergeMaps(old, value)
		}
		return value
	})
}
