package record

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/protocol"
)

// ErrNotFound: there is no such record.
var ErrNotFound = errors.New("no such record")

// ErrCut: the params were too long to be kept whole.
var ErrCut = errors.New("its params were too long and are not kept whole")

// Reader reads a record, also while it is written, in this process or another.
// Make one with [OpenReader] and close it. It is safe for concurrent use; what
// it returns belongs to the caller.
type Reader struct {
	path   string
	tables *tables
	stages *protocol.StageTable

	mu   sync.Mutex
	c    *conn
	info fs.FileInfo
}

// OpenReader opens the record at path for reading. It never changes it.
func OpenReader(path string) (*Reader, error) {
	r := &Reader{path: path, tables: newTables(), stages: protocol.NewStageTable()}
	if err := r.open(); err != nil {
		return nil, fmt.Errorf("read record %s: %w", path, err)
	}
	return r, nil
}

func (r *Reader) open() error {
	c, err := openForReading(r.path)
	if err != nil {
		return err
	}
	version, err := c.number("PRAGMA user_version")
	if known := int64(len(migrations())); err == nil && version != known {
		err = fmt.Errorf("has version %d, and this hookd reads version %d: start hookd once, or use the one that wrote it", version, known)
	}
	info, statErr := os.Stat(r.path)
	if err = errors.Join(err, statErr); err != nil {
		return errors.Join(err, c.close())
	}
	r.c, r.info = c, info
	return nil
}

// Close ends reading.
func (r *Reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.c == nil {
		return nil
	}
	err := r.c.close()
	r.c = nil
	return err
}

// query runs one query to its end, so that no view of the file is held open
// while the caller looks at the rows.
func (r *Reader) query(ctx context.Context, each func(row []driver.Value) error, sql string, args ...driver.Value) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.c == nil {
		return ErrClosed
	}
	return r.c.query(ctx, func(_ []string, row []driver.Value) error { return each(row) }, sql, args...)
}

// follow opens the file anew when another is at its path.
func (r *Reader) follow() error {
	info, err := os.Stat(r.path)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil || r.c == nil || os.SameFile(info, r.info) {
		return nil // gone for the moment, or as it was
	}
	old := r.c
	if err := r.open(); err != nil {
		return nil // not ready yet: we come again
	}
	old.keepLog()
	return old.close()
}

// scan takes values out of a row, one after the other.
type scan struct {
	row []driver.Value
	at  int
}

func (s *scan) next() driver.Value {
	v := s.row[s.at]
	s.at++
	return v
}

func (s *scan) text() string {
	t, _ := s.next().(string)
	return t
}

func (s *scan) number() int64 {
	n, _ := s.next().(int64)
	return n
}

func (s *scan) flag() bool { return s.number() == 1 }

// id reads a process's or a user's id; -1 = unknown.
func (s *scan) id() int {
	if n, ok := s.next().(int64); ok {
		return int(n)
	}
	return -1
}

func (s *scan) time() time.Time {
	if n, ok := s.next().(int64); ok {
		return time.UnixMicro(n).UTC()
	}
	return time.Time{}
}

func (s *scan) json() jsontext.Value {
	t, ok := s.next().(string)
	if !ok {
		return nil
	}
	v := jsontext.Value(t)
	if !v.IsValid() {
		return protocol.Quote(t)
	}
	return v
}

func (s *scan) list(into any) {
	if t, ok := s.next().(string); ok {
		_ = protocol.Unmarshal([]byte(t), into) // what can't be read is left out
	}
}

func (s *scan) strings() []string {
	var list []string
	s.list(&list)
	return list
}
