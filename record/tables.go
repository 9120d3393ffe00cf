package record

import (
	"database/sql/driver"
	_ "embed"
	"strings"
	"time"
)

// migrations turn an empty file into one of today's version: the n-th leads to
// version n. They are never changed once released, and only ever add columns
// at the end of a table, or tables.
func migrations() []string { return []string{schema1} }

//go:embed schema/1.sql
var schema1 string

// views are what the migrations make beside tables, by name, in their words.
// SQLite keeps these words as they are.
func views() map[string]string {
	made := map[string]string{}
	for _, m := range migrations() {
		for _, part := range strings.Split(m, "CREATE VIEW ")[1:] {
			body, _, _ := strings.Cut(part, ";")
			name, _, _ := strings.Cut(body, " ")
			made[name] = "CREATE VIEW " + body
		}
	}
	return made
}

// activeRules are the rows of rules that hold. It says what the view
// active_approval_rules says, and does not depend on it: whoever can write the
// file can put another there.
const activeRules = `(SELECT * FROM approval_rules AS r
	WHERE what <> 'revoked' AND seq = (SELECT max(seq) FROM approval_rules AS l WHERE l.rule = r.rule))`

// applicationID marks a file as hookd's ("hkrd").
const applicationID = 0x686b7264

// table is one kind of record.
type table struct {
	name    string
	columns []string // after seq, time and hash, in the order of the file
	insert  string
	short   map[uint64]string // the same for rows in which only these columns are not NULL; the writer's
}

// maxShort is how many kinds of rows get an insert of their own.
const maxShort = 128

// insertFor returns an insert for the values that are not NULL, of which most rows
// have few, and appends these to args. To bind a NULL takes SQLite as long as to
// bind a number. A table may have 64 columns.
func (t *table) insertFor(row, args []driver.Value) (string, []driver.Value) {
	var set uint64
	for i, v := range row {
		if v != nil {
			set |= 1 << i
		}
	}
	sql, known := t.short[set]
	if !known {
		if len(t.short) >= maxShort {
			return t.insert, append(args, row...)
		}
		var columns []string
		for i, name := range t.columns {
			if row[i] != nil {
				columns = append(columns, name)
			}
		}
		sql = insertInto(t.name, columns)
		t.short[set] = sql
	}
	for _, v := range row {
		if v != nil {
			args = append(args, v)
		}
	}
	return sql, args
}

// tables are the kinds there are. There is one set per store.
type tables struct {
	decisions, amendments, approvals, rules, sessions, failures,
	config, security, toolRuns, gaps, anchors *table
}

func newTables() *tables {
	return &tables{
		decisions: newTable("decisions", `session agent user model cwd pid uid stage tool call_id digest action reason decided_by permission
			approved approval_reason approved_by trail degraded warnings changed value_before value_after params params_bytes masked
			generation duration_us dry_run undelivered unrecorded error tool_status tool_ms preview`),
		amendments: newTable("amendments", "decision what reason session stage call_id pid"),
		approvals: newTable("approvals", `ticket what digest tool arguments session agent user task node pid uid opened expires timeout_ms
			approved outcome reason answered_by answered_pid answered_uid rule`),
		rules:    newTable("approval_rules", "rule what scope session digest tool arguments created created_by reason"),
		sessions: newTable("session_events", "session what agent user model cwd pid uid duration_us counts reason caused_by"),
		failures: newTable("hook_failures", "hook stage outcome detail decision session agent"),
		config:   newTable("config_changes", "generation path sha256 old_sha256 what warnings caused_by error"),
		security: newTable("security_events", "what severity session agent user pid uid tool message detail"),
		toolRuns: newTable("tool_runs", "session agent tool call_id status duration_ms preview"),
		gaps:     newTable("gaps", "what from_time to_time missed total at_most_ms reason"),
		anchors:  newTable("anchors", "kept_from prev_hash deleted reason"),
	}
}

// all returns every table, the fullest first.
func (t *tables) all() []*table {
	return []*table{
		t.decisions, t.toolRuns, t.security, t.failures, t.approvals, t.sessions,
		t.amendments, t.rules, t.config, t.gaps, t.anchors,
	}
}

func newTable(name, columns string) *table {
	t := &table{name: name, columns: strings.Fields(columns), short: map[uint64]string{}}
	t.insert = insertInto(name, t.columns)
	return t
}

func insertInto(table string, columns []string) string {
	return "INSERT INTO " + table + " (" + strings.Join(append([]string{"seq", "time", "hash"}, columns...), ", ") + ") VALUES (?, ?, ?" +
		strings.Repeat(", ?", len(columns)) + ")"
}

// What is absent is NULL in the file. These turn zero values into it.

func textOrNull(s string) driver.Value {
	if s == "" {
		return nil
	}
	return s
}

func numberOrNull[T ~int | ~int64 | ~uint64](n T) driver.Value {
	if n == 0 {
		return nil
	}
	return int64(n)
}

// idOrNull is for process and user ids, where -1 is the unknown one.
func idOrNull(id int) driver.Value {
	if id < 0 {
		return nil
	}
	return int64(id)
}

func flagOrNull(set bool) driver.Value {
	if !set {
		return nil
	}
	return int64(1)
}

func timeOrNull(t time.Time) driver.Value {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}
