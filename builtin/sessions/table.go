// Package sessions keeps what built-ins remember of sessions, in bounded memory
// and across reloads of the config.
package sessions

import (
	"container/list"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync"

	"github.com/hookd/hookd/protocol"
)

// Most is how many sessions a table remembers when it was not told.
const Most = 10_000

// Table remembers a T per session. When it is full, the session that was not
// used for longest is forgotten. It is safe for concurrent use. Make it with
// [New].
type Table[T any] struct {
	mu    sync.Mutex
	most  int
	byKey map[string]*list.Element
	order *list.List // of *row; the last used stands in front
}

type row[T any] struct {
	key   string
	value T
}

// New returns a table of at most this many sessions; 0 means [Most].
func New[T any](most int) *Table[T] {
	if most <= 0 {
		most = Most
	}
	return &Table[T]{most: most, byKey: map[string]*list.Element{}, order: list.New()}
}

// Do calls f with what is remembered of a session, a zero T when that is
// nothing. No other call for any session runs meanwhile, so f must be short. It
// must not keep the pointer.
func (t *Table[T]) Do(key string, f func(*T)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.byKey[key]
	if e == nil {
		if len(t.byKey) >= t.most {
			last := t.order.Back()
			delete(t.byKey, last.Value.(*row[T]).key)
			t.order.Remove(last)
		}
		key = strings.Clone(key) // it may share the memory of a request
		e = t.order.PushFront(&row[T]{key: key})
		t.byKey[key] = e
	} else {
		t.order.MoveToFront(e)
	}
	f(&e.Value.(*row[T]).value)
}

// Look calls f with what is remembered of a session, if anything is, and reports
// that. It leaves no trace. The rules of [Table.Do] hold.
func (t *Table[T]) Look(key string, f func(*T)) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.byKey[key]
	if e != nil {
		f(&e.Value.(*row[T]).value)
	}
	return e != nil
}

// Each calls f with every session, the last used first. The rules of
// [Table.Do] hold.
func (t *Table[T]) Each(f func(key string, value *T)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for e := t.order.Front(); e != nil; e = e.Next() {
		r := e.Value.(*row[T])
		f(r.key, &r.value)
	}
}

// Drop forgets a session.
func (t *Table[T]) Drop(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.byKey[key]; e != nil {
		delete(t.byKey, key)
		t.order.Remove(e)
	}
}

// Len returns how many sessions are remembered.
func (t *Table[T]) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byKey)
}

// maxKey is how many bytes a key has at most; agents choose what they send.
const maxKey = 256

// Key returns the key of the session that a call or an event belongs to: its
// session_id and the kind of agent. Calls without a session_id share one key per
// kind of agent.
func Key(meta protocol.Object) string {
	return key(protocol.MetaString(meta, "agent"), protocol.MetaString(meta, "session_id"))
}

func key(parts ...string) string {
	k := strings.Join(parts, "\x00")
	if len(k) <= maxKey {
		return k
	}
	sum := sha256.Sum256([]byte(k))
	return hex.EncodeToString(sum[:])
}
