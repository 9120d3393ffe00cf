package rpc

import "sync/atomic"

// Budget bounds the bytes that several peers hold together. A nil Budget has
// no bound.
type Budget struct {
	max  int64
	used atomic.Int64
}

// NewBudget returns a Budget of max bytes.
func NewBudget(max int64) *Budget { return &Budget{max: max} }

// Used returns how many bytes are taken.
func (b *Budget) Used() int64 {
	if b == nil {
		return 0
	}
	return b.used.Load()
}

// take takes n bytes, or none and reports false.
func (b *Budget) take(n int) bool {
	if b == nil {
		return true
	}
	if b.used.Add(int64(n)) > b.max {
		b.used.Add(-int64(n))
		return false
	}
	return true
}

// give returns n bytes that were taken.
func (b *Budget) give(n int) {
	if b != nil {
		b.used.Add(-int64(n))
	}
}
