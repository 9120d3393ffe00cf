package record

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ruled returns a closed record with a rule, a cancelled session and so many
// decisions after them.
func ruled(t *testing.T, n int) string {
	path := recordPath(t)
	s := openStore(t, Options{Path: path}, faults{})
	require.NoError(t, s.AddRule(t.Context(), &Rule{ID: "1", Scope: "always", Digest: "ab", Created: time.Now()}))
	require.NoError(t, s.AddRule(t.Context(), &Rule{ID: "cancel:s", Scope: ScopeCancelled, Session: "s", Created: time.Now()}))
	for i := range n {
		require.NoError(t, s.Record(t.Context(), toolCall(t, i)))
	}
	closeStore(t, s)
	return path
}

const madeUpRule = `INSERT INTO approval_rules (seq, time, hash, rule, what, scope, digest, created)
	SELECT seq + 1, 1, randomblob(32), '77', 'created', 'always', 'cd', 1 FROM chain_head`

const otherView = `DROP VIEW active_approval_rules; CREATE VIEW active_approval_rules AS
	SELECT 9 AS seq, 1 AS time, x'00' AS hash, '78' AS rule, 'created' AS what, 'always' AS scope, NULL AS session,
	'ef' AS digest, 'bash' AS tool, '{}' AS arguments, 1 AS created, 'root' AS created_by, NULL AS reason`

// After a start that does not find the record as hookd left it, no standing
// rule holds: not then, and at no later start. Sessions stay cancelled.
func TestNoRulesOfARecordThatDoesNotVerify(t *testing.T) {
	for name, tamper := range map[string]func(t *testing.T, path string){
		"a row with a made-up hash": func(t *testing.T, path string) { sabotage(t, path, madeUpRule) },
		"and an end that fits it": func(t *testing.T, path string) {
			sabotage(t, path, madeUpRule+"; UPDATE chain_head SET seq = seq + 1, hash = (SELECT hash FROM approval_rules WHERE rule = '77')")
		},
		"another view": func(t *testing.T, path string) { sabotage(t, path, otherView) },
		"a trigger": func(t *testing.T, path string) {
			sabotage(t, path, "CREATE TRIGGER t AFTER INSERT ON decisions BEGIN DELETE FROM gaps; END")
		},
		"a changed rule": func(t *testing.T, path string) {
			sabotage(t, path, "UPDATE approval_rules SET digest = 'cd' WHERE rule = '1'")
		},
		"the newest are cut off": func(t *testing.T, path string) {
			sabotage(t, path, `DELETE FROM decisions WHERE seq > 50; UPDATE chain_head SET seq = 50, hash = (SELECT hash FROM decisions WHERE seq = 50)`)
		},
		"an older copy": func(t *testing.T, path string) {
			edit(t, path, func([]byte) []byte { b, _ := os.ReadFile(ruled(t, 7)); return b })
		},
		"an older copy without a lock": func(t *testing.T, path string) {
			require.NoError(t, os.Remove(path+".lock"))
			edit(t, path, func([]byte) []byte { b, _ := os.ReadFile(ruled(t, 7)); return b })
		},
		"another as long, after a kill": func(t *testing.T, path string) {
			edit(t, path, func([]byte) []byte { b, _ := os.ReadFile(ruled(t, 200)); return b })
			l, m, err := lock(path)
			require.NoError(t, err)
			m.State = markOpen
			require.NoError(t, l.write(m))
			require.NoError(t, l.close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := ruled(t, 200)
			tamper(t, path)
			for range 2 {
				s := openStore(t, Options{Path: path}, faults{})
				for i := range 2 * tailRows {
					require.NoError(t, s.Record(t.Context(), toolCall(t, i)))
				}
				closeStore(t, s)
				rules, err := openReader(t, path).Rules(t.Context())
				require.NoError(t, err)
				require.Len(t, rules, 1)
				require.Equal(t, ScopeCancelled, rules[0].Scope)
			}
			require.NotEmpty(t, gaps(t, path), "it is said")
			require.Contains(t, gaps(t, path)[len(gaps(t, path))-1].Reason, "standing rules of it do not hold")
		})
	}
}

// While hookd writes, a row that another has added does not become a rule of
// the next start.
func TestNoRulesOfAnotherWriter(t *testing.T) {
	path := ruled(t, 1)
	s := openStore(t, Options{Path: path}, faults{})
	onDisk(t, s)
	sabotage(t, path, madeUpRule)
	for i := range 2 * tailRows {
		require.NoError(t, s.Record(t.Context(), toolCall(t, i)))
		if i == 0 {
			eventually(t, func() bool { return s.Status().Queued == 0 && s.Status().State == StateOK }, "it goes on")
		}
	}
	closeStore(t, s)
	closeStore(t, openStore(t, Options{Path: path}, faults{}))
	rules, err := openReader(t, path).Rules(t.Context())
	require.NoError(t, err)
	require.Len(t, rules, 1)
	require.Equal(t, ScopeCancelled, rules[0].Scope)
}

// What is as hookd left it keeps its rules, also after a kill.
func TestRulesStay(t *testing.T) {
	path := ruled(t, 100)
	for range 3 {
		closeStore(t, openStore(t, Options{Path: path}, faults{}))
		l, m, err := lock(path)
		require.NoError(t, err)
		m.State = markOpen
		require.NoError(t, l.write(m))
		require.NoError(t, l.close())
	}
	rules, err := openReader(t, path).Rules(t.Context())
	require.NoError(t, err)
	require.Len(t, rules, 2)
	requireWhole(t, path)
}

// Views and triggers that are not hookd's are found, and made anew by a start.
func TestVerifyLooksAtViews(t *testing.T) {
	for _, sql := range []string{otherView, "CREATE TRIGGER t AFTER INSERT ON gaps BEGIN DELETE FROM decisions; END", "DROP VIEW agent_audit_log"} {
		path := written(t, 5)
		sabotage(t, path, sql)
		rep, err := Verify(t.Context(), path)
		require.NoError(t, err)
		require.NotNil(t, rep.Broken, sql)
		closeStore(t, openStore(t, Options{Path: path}, faults{}))
		require.EqualValues(t, 6, requireWhole(t, path).Records)
	}
}

// Records that were cut off at the end, with the row that says where the end
// is, are known from the lock file beside the record.
func TestVerifyKnowsTheLockFile(t *testing.T) {
	cut := func(n string) string {
		return "DELETE FROM decisions WHERE seq > " + n + "; DELETE FROM chain_head; INSERT INTO chain_head SELECT 1, seq, hash FROM decisions WHERE seq = " + n
	}
	for name, c := range map[string]struct {
		tamper func(t *testing.T, path string)
		seq    uint64
	}{
		"some":     {func(t *testing.T, path string) { sabotage(t, path, cut("15")) }, 16},
		"the last": {func(t *testing.T, path string) { sabotage(t, path, cut("19")) }, 20},
		"all":      {func(t *testing.T, path string) { sabotage(t, path, cut("0")) }, 1},
		"another record": {func(t *testing.T, path string) {
			edit(t, path, func([]byte) []byte { b, _ := os.ReadFile(written(t, 20)); return b })
		}, 20},
		"a longer one": {func(t *testing.T, path string) {
			edit(t, path, func([]byte) []byte { b, _ := os.ReadFile(written(t, 40)); return b })
		}, 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := written(t, 20)
			requireWhole(t, path)
			c.tamper(t, path)
			rep, err := Verify(t.Context(), path)
			require.NoError(t, err)
			require.NotNil(t, rep.Broken)
			require.Equal(t, c.seq, rep.Broken.Seq, rep.Broken.String())
			require.Contains(t, rep.Broken.What, "lock file")
			require.NoError(t, os.Remove(path+".lock"))
			if name != "all" {
				requireWhole(t, path) // a copy without it says less
			}
		})
	}
}

// A lock file that can't be read says nothing, and one that lags behind, as a
// kill leaves it, is no alarm.
func TestVerifyWithAnOldLockFile(t *testing.T) {
	path := written(t, 20)
	old, err := os.ReadFile(path + ".lock")
	require.NoError(t, err)
	s := openStore(t, Options{Path: path}, faults{})
	require.NoError(t, s.Record(t.Context(), toolCall(t, 1)))
	closeStore(t, s)
	for _, b := range [][]byte{old, nil, []byte("x"), []byte(`{"state":"closed","seq":99,"hash":"zz"}`)} {
		require.NoError(t, os.WriteFile(path+".lock", b, 0o600))
		requireWhole(t, path)
	}
}
