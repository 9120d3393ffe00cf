package record

import (
	"bufio"
	"cmp"
	"context"
	"database/sql/driver"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/hookd/hookd/protocol"
)

// Records returns the records of all tables with a number above after, in order.
// It stops after an error.
func (r *Reader) Records(ctx context.Context, after uint64) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		for {
			list, err := r.recordsAfter(ctx, after)
			if err != nil {
				yield(nil, fmt.Errorf("read record: %w", err))
				return
			}
			if len(list) == 0 {
				return
			}
			for _, rec := range list {
				if !yield(rec, nil) {
					return
				}
			}
			after = list[len(list)-1].Seq
		}
	}
}

// recordsAfter returns the next records, some at a time.
func (r *Reader) recordsAfter(ctx context.Context, after uint64) ([]*Record, error) {
	from, err := r.nextAfter(ctx, after)
	if err != nil || from == 0 {
		return nil, err
	}
	var list []*Record
	for _, t := range r.tables.all() {
		err := r.query(ctx, func(row []driver.Value) error {
			s := &scan{row: row}
			rec := &Record{Seq: uint64(s.number()), Table: t.name, Time: s.time()}
			var h head
			if h.setHash(s.next()) {
				rec.Hash = h.hex()
			}
			for _, name := range t.columns {
				if v := s.next(); v != nil {
					rec.Columns = append(rec.Columns, protocol.Member{Name: name, Value: column(name, v)})
				}
			}
			list = append(list, rec)
			return nil
		}, "SELECT seq, time, hash, "+strings.Join(t.columns, ", ")+" FROM "+t.name+" WHERE seq BETWEEN ? AND ?", int64(from), int64(from+queryRows-1))
		if err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(list, func(a, b *Record) int { return cmp.Compare(a.Seq, b.Seq) })
	return list, nil
}

// nextAfter returns the number of the first record after this one; 0 = none.
func (r *Reader) nextAfter(ctx context.Context, after uint64) (uint64, error) {
	next := uint64(0)
	for _, t := range r.tables.all() {
		err := r.query(ctx, func(row []driver.Value) error {
			if n, ok := row[0].(int64); ok && (next == 0 || uint64(n) < next) {
				next = uint64(n)
			}
			return nil
		}, "SELECT min(seq) FROM "+t.name+" WHERE seq > ?", int64(after))
		if err != nil {
			return 0, err
		}
		if next == after+1 {
			break
		}
	}
	return next, nil
}

// Export writes all records with a number above after to out, each as a line of
// JSON, and returns how many.
func (r *Reader) Export(ctx context.Context, out io.Writer, after uint64) (n int, err error) {
	b := bufio.NewWriterSize(out, 64<<10)
	var line []byte
	for rec, err := range r.Records(ctx, after) {
		if err != nil {
			return n, err
		}
		line = append(rec.AppendJSON(line[:0]), '\n')
		if _, err := b.Write(line); err != nil {
			return n, fmt.Errorf("export record: %w", err)
		}
		n++
	}
	if err := b.Flush(); err != nil {
		return n, fmt.Errorf("export record: %w", err)
	}
	return n, nil
}

// AppendJSON appends the decision as one line of JSON, without an end of line:
// for programs. Absent values are left out.
func (d *Decision) AppendJSON(b []byte) []byte {
	o := protocol.Object{
		{Name: "id", Value: fmt.Appendf(nil, "%d", d.ID)},
		{Name: "time", Value: protocol.Quote(d.Time.Format(time.RFC3339Nano))},
	}
	add := func(name string, value []byte) { o = append(o, protocol.Member{Name: name, Value: value}) }
	text := func(name, value string) {
		if value != "" {
			add(name, protocol.Quote(value))
		}
	}
	flag := func(name string, set bool) {
		if set {
			add(name, []byte("true"))
		}
	}
	list := func(name string, v []string) {
		if b, err := protocol.Marshal(v); err == nil && len(v) > 0 {
			add(name, b)
		}
	}
	text("session", d.Session)
	text("agent", d.Agent)
	text("user", d.User)
	text("model", d.Model)
	text("cwd", d.CWD)
	if d.PID >= 0 {
		add("pid", fmt.Appendf(nil, "%d", d.PID))
	}
	if d.UID >= 0 {
		add("uid", fmt.Appendf(nil, "%d", d.UID))
	}
	text("stage", string(d.Stage))
	text("tool", d.Tool)
	text("call_id", d.CallID)
	text("digest", d.Digest)
	text("action", string(d.Action))
	text("reason", d.Reason)
	text("decided_by", d.DecidedBy)
	text("permission", d.Permission)
	if a := d.Approval; a != nil {
		if v, err := protocol.Marshal(a); err == nil {
			add("approval", v)
		}
	}
	if d.Trail != nil {
		add("trail", protocol.AppendTrail(nil, &protocol.StageInfo{Name: d.Stage}, d.Trail))
	}
	if deg := protocol.AppendDegraded(nil, d.Degraded); deg != nil {
		add("degraded", deg[len(`,"degraded":`):])
	}
	list("warnings", d.Warnings)
	list("changed", d.Changed)
	for _, v := range []protocol.Member{{Name: "before", Value: d.Before}, {Name: "after", Value: d.After}, {Name: "params", Value: d.Params}} {
		if v.Value != nil {
			add(v.Name, protocol.Compact(v.Value))
		}
	}
	if d.ParamsBytes > 0 {
		add("params_bytes", fmt.Appendf(nil, "%d", d.ParamsBytes))
	}
	flag("masked", d.Masked)
	add("generation", fmt.Appendf(nil, "%d", d.Generation))
	add("duration_us", fmt.Appendf(nil, "%d", d.Duration.Microseconds()))
	flag("dry_run", d.DryRun)
	flag("undelivered", d.Undelivered)
	flag("unrecorded", d.Unrecorded)
	text("error", d.Error)
	text("hash", d.Hash)
	return o.AppendJSON(b)
}
