package record

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
)

// markBytes is the length of a lock file. It is written over in place, so that
// it can be written on a full disk too.
const markBytes = 1024

// States of a record, as its lock file tells them to the next start.
const markOpen, markFailing, markClosed = "open", "failing", "closed"

// mark is what a lock file says: how far the record went, and whether it was
// closed.
type mark struct {
	State string    `json:"state"`
	PID   int       `json:"pid"`
	Mode  Mode      `json:"mode"`
	Seq   uint64    `json:"seq"`
	Hash  string    `json:"hash"`
	Time  time.Time `json:"time"`
	// Missed counts what the next gap record would have told, with what waited.
	Missed map[string]uint64 `json:"missed,omitzero"`
}

// head returns the last record of which the mark knows.
func (m *mark) head() (h head) {
	if h.setHash(m.Hash) {
		h.seq = m.Seq
	}
	return h
}

// lockFile keeps other writers away. The kernel gives it free when hookd dies.
type lockFile struct {
	f *os.File
}

// lock takes the lock beside the file at path, and returns what the last
// holder left in it; nil when it left nothing that can be read.
func lock(path string) (*lockFile, *mark, error) {
	f, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("lock: %w", err)
	}
	last := readMark(f)
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			who := ""
			if last != nil {
				who = fmt.Sprintf(" (process %d)", last.PID)
			}
			return nil, nil, fmt.Errorf("another hookd%s writes this record: stop it, or give this one another record.path", who)
		}
		return nil, nil, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return &lockFile{f}, readMark(f), nil
}

func readMark(f *os.File) *mark {
	buf := make([]byte, markBytes)
	n, _ := f.ReadAt(buf, 0)
	m := &mark{}
	if json.Unmarshal(bytes.TrimSpace(buf[:n]), m) != nil || m.State == "" {
		return nil
	}
	return m
}

// peekMark reads the mark beside the file at path without taking the lock; nil
// when there is none that can be read, such as beside a copy of the file.
func peekMark(path string) *mark {
	f, err := os.OpenFile(path+".lock", os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	// It may be written meanwhile: what was read twice was not read in between.
	last := readMark(f)
	for range 8 {
		now := readMark(f)
		if last != nil && now != nil && last.head() == now.head() {
			return now
		}
		last = now
	}
	return nil
}

// write replaces the mark.
func (l *lockFile) write(m *mark) error {
	b, err := json.Marshal(m, json.Deterministic(true))
	if err != nil || len(b) >= markBytes {
		return errors.Join(err, errors.New("write mark: too long"))
	}
	line := append(b, bytes.Repeat([]byte{' '}, markBytes-1-len(b))...)
	_, err = l.f.WriteAt(append(line, '\n'), 0)
	return err
}

// close gives the lock free, with the last mark on the disk.
func (l *lockFile) close() error { return errors.Join(l.f.Sync(), l.f.Close()) }
