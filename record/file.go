package record

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"modernc.org/sqlite"
)

// errDamaged: the file is a record, but what is in it can't be used.
var errDamaged = errors.New("the file is damaged")

// found is a file that has been opened for writing.
type found struct {
	conn    *conn
	file    fs.FileInfo
	log     fs.FileInfo // SQLite's write-ahead log, and
	shared  fs.FileInfo // the memory it shares with readers
	fresh   bool        // there was nothing in it
	head    head
	headRow int64     // what the row chain_head says
	first   uint64    // the oldest record; 0 = none
	last    time.Time // when the newest was made
	// movedAside is where a damaged file is now; damage what was wrong with it.
	movedAside string
	damage     error
	lostLog    bool   // there was a log, and nothing in it could be used
	repaired   string // what SQLite could repair
	broken     *Break // the chain does not fit near its end
	odd        []oddity
}

// openFile opens the file at path, or makes it. A damaged one is moved aside.
// check asks for every page to be looked at, which is not done for a large file;
// suspect says that SQLite has found damage already.
func (w *writer) openFile(check, suspect bool) (*found, error) {
	if large := size(w.opts.Path) > checkBytes; large && suspect {
		return w.openInstead(errDamaged)
	} else if large {
		check = false
	}
	hadLog := fileSize(w.opts.Path+"-wal") > 0
	if hadLog && fileSize(w.opts.Path) == 0 { // SQLite would delete it
		return w.openInstead(errOnlyLog)
	}
	f, err := w.tryOpen(check || suspect)
	if err == nil {
		f.lostLog = hadLog && f.fresh
		return f, nil
	}
	if troubleOf(err) != troubleCorrupt && !errors.Is(err, errDamaged) {
		return nil, err
	}
	return w.openInstead(err)
}

// errOnlyLog: a file is not there, but its log is.
var errOnlyLog = errors.New("the file is empty or not there, but its log is")

// openInstead moves a damaged file aside and opens a fresh one.
func (w *writer) openInstead(damage error) (*found, error) {
	aside, err := moveAside(w.opts.Path, w.opts.Now())
	if err != nil {
		return nil, errors.Join(damage, err)
	}
	f, err := w.tryOpen(false)
	if err != nil {
		return nil, err
	}
	f.movedAside, f.damage = aside, damage
	return f, nil
}

func (w *writer) tryOpen(check bool) (f *found, err error) {
	if err := ensureFile(w.opts.Path); err != nil {
		return nil, err
	}
	c, err := connect(w.opts.Path, "")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = c.close()
		}
	}()
	f = &found{conn: c}
	if err := f.prepare(w.opts.Mode == ModeStrict); err != nil {
		return nil, err
	}
	if check {
		if err := f.check(); err != nil {
			return nil, err
		}
	}
	if err := f.findHead(w.tables); err != nil {
		return nil, err
	}
	f.broken = verifyTail(f.conn, w.tables, f.head.seq)
	if f.file, err = os.Stat(w.opts.Path); err != nil {
		return nil, err
	}
	if f.log, err = os.Stat(w.opts.Path + "-wal"); err != nil {
		return nil, err
	}
	f.shared, err = os.Stat(w.opts.Path + "-shm")
	return f, err
}

// ensureFolder makes the folder of the file when it is missing, and refuses one
// in which others could put another file.
func ensureFolder(path string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make its folder: %w", err)
	}
	info, err := os.Stat(dir)
	if err == nil && info.Mode().Perm()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0 {
		err = fmt.Errorf("others may write to its folder: chmod go-w %s", dir)
	}
	return err
}

// ensureFile sees to it that there is a file that only we may read and write.
func ensureFile(path string) error {
	if err := ensureFolder(path); err != nil {
		return err
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
		if err != nil {
			return err
		}
		return f.Close()
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return errors.New("is not a file (a link is not followed): choose another record.path")
	case info.Mode().Perm()&0o077 != 0:
		return os.Chmod(path, 0o600)
	}
	return nil
}

// prepare makes a connection ready to write: today's schema, a write-ahead log.
func (f *found) prepare(strict bool) error {
	c := f.conn
	if err := c.script(fmt.Sprintf("PRAGMA busy_timeout=%d; PRAGMA trusted_schema=OFF; PRAGMA temp_store=MEMORY", busyTimeout.Milliseconds())); err != nil {
		return err
	}
	version, err := c.number("PRAGMA user_version")
	if err != nil {
		return err
	}
	app, err := c.number("PRAGMA application_id")
	if err != nil {
		return err
	}
	objects, err := c.number("SELECT count(*) FROM sqlite_schema")
	if err != nil {
		return err
	}
	f.fresh = objects == 0
	switch known := int64(len(migrations())); {
	case !f.fresh && app != applicationID:
		return errors.New("is a database, but not hookd's record: choose another record.path")
	case version > known:
		return fmt.Errorf("was written by a newer hookd (version %d, this one knows %d): use that one, or choose another record.path", version, known)
	}
	if f.fresh {
		if err := c.script("PRAGMA auto_vacuum=INCREMENTAL"); err != nil {
			return err
		}
	} else if f.odd, err = oddities(c); err != nil {
		return err
	}
	row, err := c.row("PRAGMA journal_mode=WAL")
	if err != nil {
		return err
	}
	if len(row) == 0 || row[0] != "wal" {
		return fmt.Errorf("this file system can't hold a write-ahead log (journal_mode is %v): choose another record.path", row)
	}
	level := "NORMAL"
	if strict {
		// As durable, and quicker; where the system does not have it, nothing
		// changes.
		_, _ = sqlite.Fdatasync(true)
		level = "FULL; PRAGMA fullfsync=ON; PRAGMA checkpoint_fullfsync=ON"
	}
	if err := c.script("PRAGMA journal_size_limit=16777216; PRAGMA synchronous=" + level); err != nil {
		return err
	}
	return f.migrate(version)
}

// migrate leads the schema to today's version, and proves on the way that the
// file can be written.
func (f *found) migrate(version int64) error {
	sql := "BEGIN IMMEDIATE;\n"
	for n, m := range migrations() {
		if int64(n) >= version {
			sql += m
		}
	}
	sql += f.setRight()
	sql += fmt.Sprintf("PRAGMA application_id=%d; PRAGMA user_version=%d; UPDATE sessions_upto SET opened = %d; COMMIT",
		applicationID, len(migrations()), time.Now().UnixMicro())
	if err := f.conn.script(sql); err != nil {
		_ = f.conn.script("ROLLBACK")
		return damagedIfSQL(err)
	}
	return nil
}

// setRight takes out views and triggers that are not hookd's, and makes its own.
func (f *found) setRight() string {
	var sql strings.Builder
	made := views()
	for _, o := range f.odd {
		if o.kind != "" {
			fmt.Fprintf(&sql, "DROP %s IF EXISTS \"%s\";\n", o.kind, strings.ReplaceAll(o.name, `"`, `""`))
		}
	}
	for _, o := range f.odd {
		if view, ours := made[o.name]; ours {
			sql.WriteString(view + ";\n")
			delete(made, o.name)
		}
	}
	return sql.String()
}

// damagedIfSQL marks errors that say that tables are not as they should be.
func damagedIfSQL(err error) error {
	const codeError = 1
	var coded interface{ Code() int }
	if errors.As(err, &coded) && coded.Code()&0xff == codeError {
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	return err
}

// check looks at every page and index, and lets SQLite repair what it can: indexes.
func (f *found) check() error {
	problem, err := integrity(f.conn)
	if err != nil || problem == "" {
		return err
	}
	if f.conn.script("REINDEX") == nil {
		if again, err := integrity(f.conn); err == nil && again == "" {
			f.repaired = problem
			return nil
		}
	}
	return fmt.Errorf("%w: %s", errDamaged, problem)
}

func integrity(c *conn) (problem string, err error) {
	row, err := c.row("PRAGMA integrity_check(1)")
	if err != nil {
		return "", err
	}
	if len(row) == 1 && row[0] == "ok" {
		return "", nil
	}
	return clip(fmt.Sprint(row), 200), nil
}

// findHead finds the end of the chain, as the rows have it.
func (f *found) findHead(t *tables) error {
	for _, t := range t.all() {
		row, err := f.conn.row("SELECT seq, hash, time FROM " + t.name + " ORDER BY seq DESC LIMIT 1")
		if err != nil {
			return damagedIfSQL(err)
		}
		if err := f.seen(row); err != nil {
			return fmt.Errorf("%w: the last row of %s: %w", errDamaged, t.name, err)
		}
		first, err := f.conn.number("SELECT min(seq) FROM " + t.name)
		if err != nil {
			return damagedIfSQL(err)
		}
		if n := uint64(first); n > 0 && (f.first == 0 || n < f.first) {
			f.first = n
		}
	}
	// What was cut off at the end leaves its trace here, and in the chain.
	row, err := f.conn.row("SELECT seq, hash FROM chain_head")
	if err != nil {
		return damagedIfSQL(err)
	}
	if err := f.seen(row); err != nil {
		return fmt.Errorf("%w: chain_head: %w", errDamaged, err)
	}
	if len(row) > 0 {
		f.headRow = row[0].(int64)
	}
	return nil
}

func (f *found) seen(row []driver.Value) error {
	if len(row) == 0 {
		return nil
	}
	seq, ok := row[0].(int64)
	var h head
	if !ok || seq < 0 || seq > 0 && !h.setHash(row[1]) {
		return errors.New("number or hash can't be read")
	}
	if h.seq = uint64(seq); h.seq > f.head.seq {
		f.head = h
	}
	if len(row) > 2 && h.seq == f.head.seq {
		if at, ok := row[2].(int64); ok {
			f.last = time.UnixMicro(at)
		}
	}
	return nil
}

// moveAside renames a file that can't be used, with its log, and returns its
// new name.
func moveAside(path string, now time.Time) (string, error) {
	stem := path + ".damaged-" + now.UTC().Format("20060102T150405Z")
	aside := stem
	for n := 2; ; n++ {
		if _, err := os.Lstat(aside); errors.Is(err, fs.ErrNotExist) {
			break
		}
		aside = fmt.Sprintf("%s-%d", stem, n)
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Rename(path+suffix, aside+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("move the damaged file aside: %w", err)
		}
	}
	return aside, nil
}

// size is how much room the file takes with its log.
func size(path string) int64 { return fileSize(path) + fileSize(path+"-wal") }

func fileSize(path string) int64 {
	if info, err := os.Stat(path); err == nil {
		return info.Size()
	}
	return 0
}
