package record

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"

	"modernc.org/sqlite"
)

// conn is one connection to a file. It belongs to one goroutine at a time, and
// keeps the statements that it has prepared. The driver is used without
// database/sql, whose pool is of no use to a single writer and costs as much as
// the insert.
type conn struct {
	c     driver.Conn
	stmts map[string]driver.Stmt
	args  []driver.NamedValue
}

// connect opens a file with URI parameters such as "mode=ro".
func connect(path, params string) (*conn, error) {
	u := url.URL{Scheme: "file", Path: path, RawQuery: params}
	connector, err := sqlite.NewConnector(u.String())
	if err != nil {
		return nil, err
	}
	c, err := connector.Connect(context.Background())
	if err != nil {
		return nil, err
	}
	return &conn{c: c, stmts: map[string]driver.Stmt{}}, nil
}

func (c *conn) close() error {
	var errs error
	for _, s := range c.stmts {
		errs = errors.Join(errs, s.Close())
	}
	return errors.Join(errs, c.c.Close())
}

func (c *conn) prepare(sql string) (driver.Stmt, error) {
	if s := c.stmts[sql]; s != nil {
		return s, nil
	}
	s, err := c.c.Prepare(sql)
	if err != nil {
		return nil, err
	}
	c.stmts[sql] = s
	return s, nil
}

// named makes the driver's arguments; they are valid until the next call.
func (c *conn) named(args []driver.Value) []driver.NamedValue {
	c.args = c.args[:0]
	for i, v := range args {
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: v})
	}
	return c.args
}

// exec runs a statement and returns how many rows it changed.
func (c *conn) exec(sql string, args ...driver.Value) (int64, error) {
	s, err := c.prepare(sql)
	if err != nil {
		return 0, err
	}
	res, err := s.(driver.StmtExecContext).ExecContext(context.Background(), c.named(args))
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// script runs statements that return nothing, once.
func (c *conn) script(sql string) error {
	_, err := c.c.(driver.ExecerContext).ExecContext(context.Background(), sql, nil)
	return err
}

// query calls each for every row; its slice is valid during the call.
func (c *conn) query(ctx context.Context, each func(columns []string, row []driver.Value) error, sql string, args ...driver.Value) (err error) {
	s, err := c.prepare(sql)
	if err != nil {
		return err
	}
	rows, err := s.(driver.StmtQueryContext).QueryContext(ctx, c.named(args))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	columns := rows.Columns()
	row := make([]driver.Value, len(columns))
	for {
		switch err := rows.Next(row); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		if err := each(columns, row); err != nil {
			return err
		}
	}
}

// row returns the first row, or nil.
func (c *conn) row(sql string, args ...driver.Value) ([]driver.Value, error) {
	var first []driver.Value
	err := c.query(context.Background(), func(_ []string, row []driver.Value) error {
		if first == nil {
			first = append(first, row...)
		}
		return nil
	}, sql, args...)
	return first, err
}

// number returns the first column of the first row; 0 when it is NULL.
func (c *conn) number(sql string, args ...driver.Value) (int64, error) {
	row, err := c.row(sql, args...)
	if err != nil || len(row) == 0 || row[0] == nil {
		return 0, err
	}
	n, ok := row[0].(int64)
	if !ok {
		return 0, fmt.Errorf("%s: not a number: %v", sql, row[0])
	}
	return n, nil
}

// keepLog leaves the file's log where it is when the connection closes. It may
// belong to another file by now.
func (c *conn) keepLog() {
	if f, ok := c.c.(sqlite.FileControl); ok {
		_, _ = f.FileControlPersistWAL("main", 1)
	}
}

// trouble is what kind of error writing met.
type trouble int

const (
	troubleOther   trouble = iota
	troubleBusy            // another process has locked the file
	troubleFull            // no room
	troubleCorrupt         // what is in the file can't be read
)

// SQLite's primary result codes.
const (
	codeBusy, codeLocked, codeCorrupt, codeFull, codeNotADB = 5, 6, 11, 13, 26
)

func troubleOf(err error) trouble {
	var coded interface{ Code() int }
	if !errors.As(err, &coded) {
		return troubleOther
	}
	switch coded.Code() & 0xff {
	case codeBusy, codeLocked:
		return troubleBusy
	case codeFull:
		return troubleFull
	case codeCorrupt, codeNotADB:
		return troubleCorrupt
	}
	return troubleOther
}
