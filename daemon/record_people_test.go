package daemon_test

import (
	"database/sql"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/daemon"
	durable "github.com/hookd/hookd/record"
)

// Who changes the record between two starts makes no rule by that, and the
// rules that people gave hold no more. A cancelled session stays cancelled.
func TestNoRulesOfAChangedRecord(t *testing.T) {
	for name, change := range map[string]string{
		"a row": `INSERT INTO approval_rules (seq, time, hash, rule, what, scope, session, digest, tool, arguments, created, created_by)
			SELECT (SELECT seq FROM chain_head) + 1, time, randomblob(32), '77', what, scope, session, digest, tool, arguments, created, created_by
			FROM approval_rules WHERE rule = '1'`,
		"a view": "DROP VIEW active_approval_rules; CREATE VIEW active_approval_rules AS SELECT * FROM approval_rules WHERE what <> 'revoked'",
	} {
		t.Run(name, func(t *testing.T) {
			start := again(t)
			d := start()
			a := d.dial(t)
			a.ask("hook.hello", `{"name":"bot"}`)
			a.asks("hook.before_tool", pushCall)
			_, err := d.approve(t, daemon.ApprovalAnswerParams{ID: d.tickets(t, 1)[0].ID, Scope: "always"})
			require.NoError(t, err)
			require.Contains(t, string(a.read().Result), `"action":"continue"`)
			require.NoError(t, d.control(t, daemon.MethodSessionsCancel, daemon.SessionParams{Session: "s-1"}, nil))
			require.NoError(t, d.stop())

			db, err := sql.Open("sqlite", "file:"+d.recordPath())
			require.NoError(t, err)
			_, err = db.Exec(change)
			require.NoError(t, err)
			require.NoError(t, db.Close())
			report, err := durable.Verify(t.Context(), d.recordPath())
			require.NoError(t, err)
			require.NotNil(t, report.Broken)

			for range 2 {
				d = start()
				var rules []daemon.ApprovalRule
				require.NoError(t, d.control(t, daemon.MethodApprovalsRules, nil, &rules))
				require.Empty(t, rules)
				a = d.dial(t)
				a.ask("hook.hello", `{"name":"bot"}`)
				require.Contains(t, a.ask("hook.before_tool", pushCall), `"action":"abort_turn","reason":"the session was cancelled by `)
				require.NoError(t, d.stop())
			}
			require.NotEmpty(t, rows(readRecord(t, d.recordPath()), "gaps"))
		})
	}
}

// While the file is new because the old one was deleted, the status says so.
func TestStatusTellsOfAReplacedRecord(t *testing.T) {
	d := startDaemon(t, `{}`)
	require.Zero(t, d.status(t).Record.ReplacedAt)
	require.NoError(t, os.Remove(d.recordPath()))
	until(t, "it is told", func() bool { return !d.status(t).Record.ReplacedAt.IsZero() })
	require.Equal(t, "ok", d.status(t).Record.State)
	require.NoError(t, d.stop())
}
