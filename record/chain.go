package record

import (
	"crypto/sha256"
	"database/sql/driver"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"math"
)

// head is the end of a chain: the last record's number and hash. The zero
// value stands before the first record.
type head struct {
	seq  uint64
	hash [sha256.Size]byte
}

func (h head) hex() string { return hex.EncodeToString(h.hash[:]) }

// setHash takes over a hash from a file or a lock file; false when it is none.
func (h *head) setHash(v driver.Value) bool {
	b, ok := v.([]byte)
	if s, isText := v.(string); isText {
		var err error
		b, err = hex.DecodeString(s)
		ok = err == nil
	}
	if !ok || len(b) != len(h.hash) {
		return false
	}
	copy(h.hash[:], b)
	return true
}

// chain computes the hashes of records. It is used by one goroutine.
type chain struct {
	sha hash.Hash
	buf []byte
}

func newChain() *chain { return &chain{sha: sha256.New()} }

// start begins a record that follows one with the hash prev.
func (c *chain) start(prev [sha256.Size]byte, table string) {
	c.buf = append(c.buf[:0], prev[:]...)
	c.text(table)
}

// add takes one column in. Columns come in the order of the table, without
// hash.
func (c *chain) add(column string, value driver.Value) error {
	if value == nil {
		return nil
	}
	if v, ok := value.(int64); ok {
		c.number(column, v)
		return nil
	}
	c.text(column)
	switch v := value.(type) {
	case float64: // never written by hookd
		c.buf = binary.BigEndian.AppendUint64(append(c.buf, 'f'), math.Float64bits(v))
	case string:
		c.buf = append(c.buf, 't')
		c.text(v)
	case []byte:
		c.buf = binary.AppendUvarint(append(c.buf, 'b'), uint64(len(v)))
		c.buf = append(c.buf, v...)
	default:
		return fmt.Errorf("column %s holds a %T", column, value)
	}
	return nil
}

// number takes a column in that holds a whole number.
func (c *chain) number(column string, v int64) {
	c.text(column)
	c.buf = binary.BigEndian.AppendUint64(append(c.buf, 'i'), uint64(v))
}

func (c *chain) text(s string) {
	c.buf = binary.AppendUvarint(c.buf, uint64(len(s)))
	c.buf = append(c.buf, s...)
}

// sum ends the record.
func (c *chain) sum() (out [sha256.Size]byte) {
	c.sha.Reset()
	c.sha.Write(c.buf)
	c.sha.Sum(out[:0])
	return out
}
