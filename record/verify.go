package record

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
)

// Report is what [Verify] found.
type Report struct {
	Path string
	// First and Last are the numbers of the oldest and the newest record, Records
	// how many there are.
	First, Last, Records uint64
	// Hash is that of the last record that fits, in hex.
	Hash string
	// Gaps counts the records that say that something is missing.
	Gaps uint64
	// Broken is the first place that does not fit; nil when all does.
	Broken *Break
}

// Break is a place where the chain does not fit.
type Break struct {
	Seq   uint64 // 0 = it is in no record
	Table string // "" = no table has such a record
	What  string
}

func (b *Break) String() string {
	if b.Seq == 0 {
		return b.What
	}
	if b.Table == "" {
		return fmt.Sprintf("record %d: %s", b.Seq, b.What)
	}
	return fmt.Sprintf("record %d in %s: %s", b.Seq, b.Table, b.What)
}

// Verify reads the whole record at path and checks its chain: that no record is
// missing, changed, added or out of place, and that the last record of which
// hookd's lock file beside it knows, if there is one, is there. It may be
// written meanwhile. The error says that the file could not be read at all; what is wrong in it stands
// in the report.
func Verify(ctx context.Context, path string) (*Report, error) {
	c, err := openForReading(path)
	if err != nil {
		return nil, fmt.Errorf("verify record %s: %w", path, err)
	}
	defer c.close()
	// The lock file is written after the records, so what it says, read first, is
	// in what is read then.
	marked := peekMark(path)
	if _, err := c.exec("BEGIN"); err != nil { // one view of the file, to the end
		return nil, fmt.Errorf("verify record %s: %w", path, err)
	}
	r := &Report{Path: path}
	v := verifier{c: c, tables: newTables(), chain: newChain(), rows: map[uint64]rowToVerify{}}
	if marked != nil {
		v.marked = marked.head()
	}
	if err := v.run(ctx, r); err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("verify record %s: %w", path, context.Cause(ctx))
		}
		r.Broken = &Break{Seq: v.at, What: "the file can't be read from here on: " + err.Error()}
	}
	return r, nil
}

// openForReading opens a file without ever changing it.
func openForReading(path string) (*conn, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: is not a file", fs.ErrInvalid)
	}
	c, err := connect(path, "mode=ro")
	if err != nil {
		return nil, err
	}
	err = c.script(fmt.Sprintf("PRAGMA busy_timeout=%d; PRAGMA trusted_schema=OFF; PRAGMA query_only=ON", openWait.Milliseconds()))
	if err == nil {
		var app int64
		if app, err = c.number("PRAGMA application_id"); err == nil && app != applicationID {
			err = errors.New("is not hookd's record")
		}
	}
	if err != nil {
		_ = c.close()
		return nil, err
	}
	return c, nil
}

// verifyRows is how many records are looked at at a time.
const verifyRows = 256

// rowToVerify is a record as the file has it.
type rowToVerify struct {
	table   string
	columns []string
	values  []driver.Value
	twice   bool // another table has one of the same number
}

type verifier struct {
	c      *conn
	tables *tables
	chain  *chain
	at     uint64
	rows   map[uint64]rowToVerify
	marked head // what the lock file knows; zero = nothing
}

func (v *verifier) run(ctx context.Context, r *Report) (err error) {
	if err := v.checkTables(); err != nil {
		return err
	}
	first, last, err := v.bounds()
	if err != nil {
		return err
	}
	if v.marked.seq > last {
		defer func() { // unless something before that does not fit
			if err == nil && r.Broken == nil {
				r.Broken = &Break{Seq: last + 1, What: fmt.Sprintf("is missing, as are those up to %d, of which hookd's lock file knows", v.marked.seq)}
			}
		}()
	}
	if last == 0 {
		return nil
	}
	r.First, v.at = first, first
	h, err := v.before(first)
	if err != nil {
		return err
	}
	if h == nil {
		r.Broken = &Break{Seq: first, What: "what was before it is gone, and no anchor says so"}
		return nil
	}
	if r.Broken = v.checkMark(h); r.Broken != nil {
		return nil
	}
	for v.at <= last {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := v.read(v.at, v.at+verifyRows-1); err != nil {
			return err
		}
		for end := min(v.at+verifyRows-1, last); v.at <= end; v.at++ {
			if r.Broken = v.next(h); r.Broken != nil {
				return nil
			}
			if r.Broken = v.checkMark(h); r.Broken != nil {
				return nil
			}
			r.Last, r.Hash = h.seq, h.hex()
			r.Records++
			if v.rows[v.at].table == v.tables.gaps.name {
				r.Gaps++
			}
		}
	}
	if r.Broken, err = v.checkEnd(h); r.Broken != nil || err != nil {
		return err
	}
	odd, err := oddities(v.c)
	if len(odd) > 0 {
		r.Broken = &Break{What: odd[0].String()}
	}
	return err
}

// oddity is a view or a trigger that hookd has not made so, or one that is
// missing.
type oddity struct{ kind, name string }

func (o oddity) String() string {
	if o.kind == "" {
		return "the view " + o.name + " is missing"
	}
	return "the " + o.kind + " " + strconv.Quote(clip(o.name, maxID)) + " is not hookd's"
}

// oddities compares the views of a file of today's version with those that
// hookd makes. It makes no triggers. None are looked at in a file of another
// version.
func oddities(c *conn) ([]oddity, error) {
	if version, err := c.number("PRAGMA user_version"); err != nil || version != int64(len(migrations())) {
		return nil, err
	}
	missing := views()
	var list []oddity
	err := c.query(context.Background(), func(_ []string, row []driver.Value) error {
		kind, _ := row[0].(string)
		name, _ := row[1].(string)
		if want, ok := missing[name]; !ok || kind != "view" || row[2] != want {
			list = append(list, oddity{kind, name})
		}
		delete(missing, name)
		return nil
	}, "SELECT type, name, sql FROM sqlite_schema WHERE type IN ('view', 'trigger') ORDER BY type DESC, name")
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		list = append(list, oddity{"", name})
	}
	return list, err
}

// checkTables sees to it that what is read are tables.
func (v *verifier) checkTables() error {
	for _, t := range v.tables.all() {
		row, err := v.c.row("SELECT type FROM sqlite_schema WHERE name = ?", t.name)
		if err != nil {
			return err
		}
		if len(row) == 0 || row[0] != "table" {
			return fmt.Errorf("there is no table %s", t.name)
		}
	}
	return nil
}

func (v *verifier) bounds() (first, last uint64, err error) {
	for _, t := range v.tables.all() {
		row, err := v.c.row("SELECT min(seq), max(seq) FROM " + t.name)
		if err != nil {
			return 0, 0, err
		}
		if len(row) < 2 || row[0] == nil {
			continue
		}
		low, okLow := row[0].(int64)
		high, okHigh := row[1].(int64)
		if !okLow || !okHigh || low < 1 {
			return 0, 0, fmt.Errorf("%s holds a record with the number %v", t.name, row[0])
		}
		if first == 0 || uint64(low) < first {
			first = uint64(low)
		}
		last = max(last, uint64(high))
	}
	return first, last, nil
}

// before returns the end of the chain before the oldest record; nil when
// nothing vouches for it.
func (v *verifier) before(first uint64) (*head, error) {
	if first == 1 {
		return &head{}, nil
	}
	row, err := v.c.row("SELECT prev_hash FROM anchors WHERE kept_from = ? ORDER BY seq DESC LIMIT 1", int64(first))
	if err != nil || len(row) == 0 {
		return nil, err
	}
	h := &head{seq: first - 1}
	if !h.setHash(row[0]) {
		return nil, nil
	}
	return h, nil
}

// read fetches the records with these numbers from all tables.
func (v *verifier) read(from, to uint64) error {
	clear(v.rows)
	for _, t := range v.tables.all() {
		err := v.c.query(context.Background(), func(columns []string, row []driver.Value) error {
			seq, ok := row[0].(int64)
			if !ok {
				return fmt.Errorf("%s holds a record with the number %v", t.name, row[0])
			}
			_, twice := v.rows[uint64(seq)]
			v.rows[uint64(seq)] = rowToVerify{t.name, columns, slices.Clone(row), twice}
			return nil
		}, "SELECT * FROM "+t.name+" WHERE seq BETWEEN ? AND ?", int64(from), int64(to))
		if err != nil {
			return err
		}
	}
	return nil
}

// next checks the record that should follow h, and moves h on to it.
func (v *verifier) next(h *head) *Break {
	seq := h.seq + 1
	row, ok := v.rows[seq]
	if !ok {
		return &Break{Seq: seq, What: "is missing"}
	}
	if row.twice {
		return &Break{Seq: seq, Table: row.table, What: "another table has a record of the same number"}
	}
	v.chain.start(h.hash, row.table)
	var stored driver.Value
	for i, name := range row.columns {
		if name == "hash" {
			stored = row.values[i]
			continue
		}
		if err := v.chain.add(name, row.values[i]); err != nil {
			return &Break{Seq: seq, Table: row.table, What: err.Error()}
		}
	}
	want := head{seq: seq, hash: v.chain.sum()}
	got := head{seq: seq}
	if !got.setHash(stored) || got != want {
		return &Break{Seq: seq, Table: row.table, What: "its hash does not fit: it, or the one before it, was changed"}
	}
	*h = want
	return nil
}

// checkMark compares a record with the lock file, if that knows it.
func (v *verifier) checkMark(h *head) *Break {
	if v.marked.seq == 0 || v.marked.seq != h.seq || v.marked == *h {
		return nil
	}
	return &Break{Seq: h.seq, Table: v.rows[h.seq].table, What: "is not the one that was written, of which hookd's lock file knows"}
}

// checkEnd compares the last record with what the file says is the last.
func (v *verifier) checkEnd(h *head) (*Break, error) {
	row, err := v.c.row("SELECT seq, hash FROM chain_head")
	if err != nil {
		return nil, err
	}
	var end head
	if len(row) == 2 && end.setHash(row[1]) {
		if seq, ok := row[0].(int64); ok {
			end.seq = uint64(seq)
		}
	}
	switch {
	case end.seq > h.seq:
		return &Break{Seq: h.seq + 1, What: fmt.Sprintf("is missing, as are those up to %d", end.seq)}, nil
	case end.seq == h.seq && end != *h:
		return &Break{Seq: h.seq, What: "is not the one that was written"}, nil
	case end != *h:
		return &Break{Seq: end.seq + 1, What: "was not written by hookd"}, nil
	}
	return nil, nil
}

// verifyTail checks the last records before a file is written on; nil when they
// fit.
func verifyTail(c *conn, t *tables, last uint64) *Break {
	v := verifier{c: c, tables: t, chain: newChain(), rows: map[uint64]rowToVerify{}}
	first, _, err := v.bounds()
	if err != nil {
		return &Break{What: err.Error()}
	}
	if first == 0 {
		return nil
	}
	from := first
	if last > tailRows {
		from = max(first, last-tailRows)
	}
	if err := v.read(from, last); err != nil {
		return &Break{Seq: from, What: err.Error()}
	}
	h := &head{seq: from}
	if row, ok := v.rows[from]; !ok || len(row.values) < 3 || !h.setHash(row.values[2]) {
		return &Break{Seq: from, What: "is missing"}
	}
	for h.seq < last {
		if b := v.next(h); b != nil {
			return b
		}
	}
	b, err := v.checkEnd(h)
	if err != nil {
		return &Break{Seq: last, What: err.Error()}
	}
	return b
}
