package daemon_test

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/hookd/hookd/daemon"
	"github.com/hookd/hookd/manager"
	"github.com/hookd/hookd/protocol"
	durable "github.com/hookd/hookd/record"
)

// recordOf is where the daemons of tests keep their record.
func (d *runningDaemon) recordPath() string {
	return filepath.Join(filepath.Dir(d.sockets.Agents), "record.db")
}

// readRecord returns all records, once this many are on the disk.
func readRecord(t testing.TB, path string) (list []*durable.Record) {
	t.Helper()
	r, err := durable.OpenReader(path)
	require.NoError(t, err)
	defer r.Close()
	for rec, err := range r.Records(t.Context(), 0) {
		require.NoError(t, err)
		list = append(list, rec)
	}
	return list
}

// rows returns the rows of one table as lines of JSON.
func rows(list []*durable.Record, table string) (lines []string) {
	for _, r := range list {
		if r.Table == table {
			lines = append(lines, string(r.AppendJSON(nil)))
		}
	}
	return lines
}

func verified(t testing.TB, path string) *durable.Report {
	t.Helper()
	report, err := durable.Verify(t.Context(), path)
	require.NoError(t, err)
	require.Nil(t, report.Broken)
	return report
}

// lockRecord takes the lock on writing away from the daemon until unlock.
func lockRecord(t testing.TB, path string) (unlock func()) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
	require.NoError(t, err)
	c, err := db.Conn(t.Context())
	require.NoError(t, err)
	_, err = c.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	require.NoError(t, err)
	return sync.OnceFunc(func() {
		_, err := c.ExecContext(context.Background(), "ROLLBACK")
		require.NoError(t, err)
		require.NoError(t, errors.Join(c.Close(), db.Close()))
	})
}

// While nothing can be written, a strict daemon denies and a daemon that is to
// go on does. Both say so at once, and write on when they can.
func TestRecordCantBeWritten(t *testing.T) {
	for name, c := range map[string]struct{ config, answer string }{
		"strict":            {`"mode": "strict"`, `"action":"deny_tool","reason":"the decision could not be recorded: record_timeout: `},
		"batch-that-denies": {`"mode": "batch", "on_failure": "deny"`, `"action":"deny_tool","reason":"the decision could not be recorded: record_failing: `},
		"batch":             {`"mode": "batch"`, `"action":"continue"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := startDaemon(t, `{"record": {`+c.config+`}}`)
			a := d.dial(t)
			require.Contains(t, a.ask("hook.before_tool", lsCall), `"action":"continue"`)
			require.Equal(t, "ok", d.status(t).Record.State)
			unlock := lockRecord(t, d.recordPath())
			defer unlock()
			until(t, "the answer is what the config says", func() bool { return strings.Contains(a.ask("hook.before_tool", lsCall), c.answer) })
			until(t, "status says so", func() bool {
				s := d.status(t).Record
				return s.State != "ok" && s.Error != "" && s.Queued > 0 && (name == "batch") == (s.Refused == 0)
			})
			unlock()
			until(t, "it is well again", func() bool { return d.status(t).Record.State == "ok" })
			require.Contains(t, a.ask("hook.before_tool", lsCall), `"action":"continue"`)
			refused := d.status(t).Record.Refused
			require.NoError(t, d.stop())
			verified(t, d.recordPath())
			denied := 0
			for _, line := range rows(readRecord(t, d.recordPath()), "decisions") {
				if strings.Contains(line, `"unrecorded":true`) {
					denied++
					require.Contains(t, line, `"action":"deny"`)
				}
			}
			for _, line := range rows(readRecord(t, d.recordPath()), "amendments") {
				require.Contains(t, line, `"what":"denied"`) // a yes that was written too late
				denied++
			}
			require.EqualValues(t, refused, denied, "what was denied is recorded as such")
		})
	}
}

// A recorder of somebody's own stands beside the record, and what it refuses is
// recorded as refused.
type refusing struct{ manager.Recorder }

func (refusing) Record(context.Context, *manager.Record) error {
	return errors.New("the archive is shut")
}

func TestOwnRecorderBesideTheRecord(t *testing.T) {
	d := startDaemonWith(t, daemon.Options{ConfigPath: writeConfig(t, `{}`), Recorder: refusing{}})
	const why = "the decision could not be recorded: the archive is shut"
	require.Contains(t, d.dial(t).ask("hook.before_tool", lsCall), `"action":"deny_tool","reason":"`+why+`"`)
	require.NoError(t, d.stop())
	lines := rows(readRecord(t, d.recordPath()), "decisions")
	require.Len(t, lines, 1)
	require.Contains(t, lines[0], `"action":"deny","reason":"`+why+`"`)
}

// TestWhatIsRecorded looks for everything that is recorded beside decisions.
func TestWhatIsRecorded(t *testing.T) {
	config := func(level string) string {
		return `{"log": {"level": "` + level + `"}, "hooks": {"builtins": {"audit": {"config": {"anything": 1}}, "security_events": {}, "cancel": {}}}}`
	}
	d := startDaemon(t, config("info"))
	a := d.dial(t)
	a.ask("hook.hello", `{"name":"bot","session_id":"s-1","events":true}`)
	a.ask("hook.event", `{"kind":"session_start"}`)
	a.ask("hook.user_message", fmt.Sprintf(`{"message":{"role":"user","content":"call 13812345678 with password=hunter2secret %s"}}`, strings.Repeat("字", 300)))
	a.ask("hook.before_tool", lsCall)
	a.ask("hook.event", `{"kind":"tool_exec_end","payload":{"tool":"grep","call_id":"c7","duration_ms":12,"preview":"found","is_error":false}}`)
	a.ask("hook.event", `{"kind":"agent_error","payload":{"message":"the model is gone"}}`)
	require.NoError(t, d.control(t, daemon.MethodSessionsCancel, daemon.SessionParams{Session: "s-1", Reason: "enough"}, nil))
	require.NoError(t, d.control(t, daemon.MethodSessionsResume, daemon.SessionParams{Session: "s-1"}, nil))
	require.NoError(t, d.control(t, daemon.MethodDisable, daemon.HookParams{Name: "audit"}, nil))
	require.NoError(t, os.WriteFile(d.config, []byte(config("nonsense")), 0o600))
	require.Error(t, d.control(t, daemon.MethodReload, nil, nil))
	require.NoError(t, os.WriteFile(d.config, []byte(config("warn")), 0o600))
	require.NoError(t, d.control(t, daemon.MethodReload, nil, nil))
	a.ask("hook.event", `{"kind":"session_end","payload":{"reason":"done"}}`)
	b := d.dial(t)
	b.ask("hook.hello", `{"name":"other","session_id":"s-2"}`)
	b.ask("hook.before_tool", lsCall)
	b.conn.Close()
	path := d.recordPath()
	until(t, "all is recorded", func() bool {
		list := readRecord(t, path)
		return len(rows(list, "session_events")) == 6 && len(rows(list, "security_events")) == 2 && len(rows(list, "tool_runs")) == 1
	})
	require.NoError(t, d.stop())
	verified(t, path)
	list := readRecord(t, path)

	for table, want := range map[string][]string{
		"tool_runs": {`"session":"s-1","agent":"bot","tool":"grep","call_id":"c7","status":"ok","duration_ms":12,"preview":"found"`},
		"session_events": {
			`"session":"s-1","what":"start","agent":"bot"`, `"what":"cancel"`, `"what":"resume"`, `"session":"s-1","what":"stop","agent":"bot"`,
			`"session":"s-2","what":"start","agent":"other"`, `"session":"s-2","what":"stop","agent":"other"`,
		},
		"security_events": {`"what":"user_message"`, `"what":"agent_error","severity":"error"`},
	} {
		got := rows(list, table)
		require.Len(t, got, len(want), table)
		for i := range want {
			require.Contains(t, got[i], want[i])
		}
	}
	said := rows(list, "security_events")[0]
	require.Contains(t, said, "call [手机号] with password=[masked]")
	require.NotContains(t, said, strings.Repeat("字", 201))
	stop := rows(list, "session_events")[3]
	require.Contains(t, stop, `"counts":{"calls":2,"denied":0,"asked":0,"degraded":0},"reason":"done"`)
	by := fmt.Sprintf(`(uid %d)"`, os.Getuid())
	var changes []string
	for _, line := range rows(list, "config_changes") {
		switch {
		case strings.Contains(line, "hook audit disabled by hand"), strings.Contains(line, `"error":`):
			require.Contains(t, line, by)
		}
		changes = append(changes, line)
	}
	require.True(t, slices.ContainsFunc(changes, func(l string) bool { return strings.Contains(l, "started") }))
	require.True(t, slices.ContainsFunc(changes, func(l string) bool { return strings.Contains(l, "hook audit disabled by hand") }))
	require.True(t, slices.ContainsFunc(changes, func(l string) bool { return strings.Contains(l, "nonsense") }))
	require.NotContains(t, strings.Join(rows(list, "decisions"), "\n"), "hunter2secret")
}

// What people have said outlives hookd: rules, cancelled sessions, and that a
// ticket that nobody has answered is a no.
// An agent that leaves without its answers does not pass for one that got them.
func TestUndeliveredIsRecorded(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, `{"limits": {"max_in_flight": 4096}, "hooks": {"builtins": {"policy": {"config": {"default": "auto"}}}}}`)
	got := d.dial(t)
	got.ask("hook.before_tool", `{"tool":"bash","call_id":"got","arguments":{"command":"ls"}}`)
	deaf, err := net.Dial("unix", d.sockets.Agents)
	require.NoError(t, err)
	for i := range 800 { // more answers than the socket takes
		_, err = fmt.Fprintf(deaf, `{"jsonrpc":"2.0","id":%d,"method":"hook.before_tool","params":{"tool":"bash","call_id":"c%d","arguments":{"command":"ls"}}}`+"\n", i, i)
		require.NoError(t, err)
	}
	require.NoError(t, deaf.Close())
	path := d.recordPath()
	until(t, "it is recorded", func() bool {
		if d.status(t).Record.Queued > 0 {
			return false
		}
		r, err := durable.OpenReader(path)
		require.NoError(t, err)
		defer r.Close()
		lost := false
		for dec, err := range r.Query(t.Context(), durable.Filter{}) {
			require.NoError(t, err)
			lost = lost || dec.Undelivered && dec.Error != ""
			require.False(t, dec.CallID == "got" && dec.Undelivered)
		}
		return lost
	})
	require.NoError(t, d.stop())
	verified(t, path)
}

// again returns what starts a daemon with people in the same folder each time.
func again(t *testing.T) (start func() *runningDaemon) {
	config := writeConfig(t, people(""))
	where := filepath.Dir(config)
	return func() *runningDaemon {
		return startDaemonWith(t, daemon.Options{ConfigPath: config, Socket: filepath.Join(where, "a.sock"), ControlSocket: filepath.Join(where, "c.sock")})
	}
}

func TestPeoplesWordIsKept(t *testing.T) {
	start := again(t)
	d := start()
	a := d.dial(t)
	a.ask("hook.hello", `{"name":"bot"}`)
	a.asks("hook.before_tool", pushCall)
	done, err := d.approve(t, daemon.ApprovalAnswerParams{ID: d.tickets(t, 1)[0].ID, Scope: "always", Reason: "it is mine"})
	require.NoError(t, err)
	require.Contains(t, string(a.read().Result), `"action":"continue"`)
	require.NoError(t, d.control(t, daemon.MethodSessionsCancel, daemon.SessionParams{Session: "s-1", Reason: "it loops"}, nil))
	require.NoError(t, d.stop())

	d = start()
	a = d.dial(t)
	a.ask("hook.hello", `{"name":"bot"}`)
	require.Contains(t, a.ask("hook.before_tool", pushCall), `"action":"abort_turn","reason":"the session was cancelled by `)
	require.NoError(t, d.control(t, daemon.MethodSessionsResume, daemon.SessionParams{Session: "s-1"}, nil))
	answer := a.ask("hook.before_tool", pushCall)
	require.Contains(t, answer, `"approved":true,"reason":"it is mine","by":"rule 1 (made by `+done.By)
	require.NoError(t, d.control(t, daemon.MethodApprovalsRevoke, daemon.ApprovalRevokeParams{Rule: 1}, nil))
	require.NoError(t, d.stop())

	d = start()
	a = d.dial(t)
	a.ask("hook.hello", `{"name":"bot"}`)
	a.asks("hook.before_tool", pushCall) // is asked about again, and no rule has a number twice
	next, err := d.approve(t, daemon.ApprovalAnswerParams{ID: d.tickets(t, 1)[0].ID, Scope: "always"})
	require.NoError(t, err)
	require.Greater(t, next.Rule.Rule, 1)
	require.Contains(t, string(a.read().Result), `"action":"continue"`)
	require.NoError(t, d.stop())
	verified(t, d.recordPath())
	answers := rows(readRecord(t, d.recordPath()), "approvals")
	require.Len(t, answers, 4)
	require.Contains(t, answers[1], fmt.Sprintf(`"answered_pid":%d,"answered_uid":%d`, os.Getpid(), os.Getuid()))
	require.NotContains(t, answers[0], "answered_uid")
}

// killedService is a daemon in a process of its own, to be killed.
func killedService(t *testing.T, config string) (*runningDaemon, *exec.Cmd) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), asHook+"=daemon", asDaemon+"="+config, "GORACE=atexit_sleep_ms=0")
	log := &logBuffer{}
	cmd.Stderr = log
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("log of the daemon:\n%s", log)
		}
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err, "%s", log)
	require.Equal(t, "serving\n", line)
	return &runningDaemon{sockets: beside(config), config: config, log: log}, cmd
}

// mixedCall is the nth call of an agent that works on something: models, tools,
// also some that the policy denies, and its user.
func mixedCall(n int, id string) (method, params string) {
	switch n % 6 {
	case 0:
		return "hook.user_message", fmt.Sprintf(`{"call_id":%q,"message":{"role":"user","content":"go on %d"}}`, id, n)
	case 1:
		return "hook.before_llm", fmt.Sprintf(`{"call_id":%q,"model":"m","messages":[{"role":"user","content":"go on"}]}`, id)
	case 2:
		return "hook.after_llm", fmt.Sprintf(`{"call_id":%q,"response":{"content":"ls it is"}}`, id)
	case 3:
		return "hook.before_tool", fmt.Sprintf(`{"call_id":%q,"tool":"rm","arguments":{"path":"/"}}`, id)
	case 4:
		return "hook.after_tool", fmt.Sprintf(`{"call_id":%q,"tool":"bash","arguments":{"command":"ls"},"result":{"content":"a b"}}`, id)
	}
	return "hook.before_tool", fmt.Sprintf(`{"call_id":%q,"tool":"bash","arguments":{"command":"ls"}}`, id)
}

// A strict daemon that is killed, 20 times during 10,000 calls of all kinds, has
// every yes in its record that an agent has seen, and every ticket that was open
// becomes a no.
func TestKilledInStrict(t *testing.T) {
	kills, enough := 20, 550 // calls before each
	if testing.Short() || raced {
		kills, enough = 5, 40
	}
	const agents = 8
	config := writeConfig(t, `{"record": {"mode": "strict"}, "hooks": {"builtins": {
		"human": {"priority": 20, "intercept": ["approve_tool"]},
		"policy": {"config": {"default": "auto", "rules": [{"tools": ["rm"], "action": "deny"}]}}}}}`)
	var mu sync.Mutex
	seen := map[string]bool{}
	path := filepath.Join(filepath.Dir(config), "record.db")
	for kill := range kills {
		before := len(seen)
		after := enough/2 + rand.IntN(enough) // so many on average
		d, cmd := killedService(t, config)
		patient := d.dial(t)
		patient.asks("hook.approve_tool", fmt.Sprintf(`{"tool":"bash","arguments":{"command":"push %d"}}`, kill))
		d.tickets(t, 1)
		plenty := make(chan struct{})
		var busy sync.WaitGroup
		for n := range agents {
			conn, err := net.Dial("unix", d.sockets.Agents)
			require.NoError(t, err)
			busy.Go(func() { // until the daemon is killed
				defer conn.Close()
				lines := bufio.NewReader(conn)
				for i := 0; ; i++ {
					id := fmt.Sprintf("c-%d-%d-%d", kill, n, i)
					method, params := mixedCall(i, id)
					if _, err := fmt.Fprintf(conn, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", i, method, params); err != nil {
						return
					}
					line, err := lines.ReadString('\n')
					if err != nil {
						return
					}
					mu.Lock()
					seen[id] = strings.Contains(line, `"action":"continue"`)
					if len(seen) == before+after {
						close(plenty)
					}
					mu.Unlock()
				}
			})
		}
		select {
		case <-plenty:
		case <-time.After(patience):
			t.Error("too few answers")
		}
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait()
		busy.Wait()
	}
	d, cmd := killedService(t, config) // says what the last kill has left
	r, err := durable.OpenReader(path)
	require.NoError(t, err)
	defer r.Close()
	recorded := map[string]protocol.Action{}
	for dec, err := range r.Query(t.Context(), durable.Filter{}) {
		require.NoError(t, err)
		recorded[dec.CallID] = dec.Action
	}
	gaps, err := r.Gaps(t.Context())
	require.NoError(t, err)
	require.Len(t, gaps, kills, "each kill is told")
	yes := 0
	for id, allowed := range seen {
		if allowed {
			yes++
			require.Equal(t, protocol.ActionContinue, recorded[id], id)
		}
	}
	require.Greater(t, len(seen), kills*enough/2)
	require.Greater(t, yes, len(seen)/2)
	require.Less(t, yes, len(seen)*9/10, "some were denied")
	open, err := r.Approvals(t.Context(), durable.ApprovalFilter{})
	require.NoError(t, err)
	require.Len(t, open, kills)
	for _, a := range open {
		require.Equal(t, durable.OutcomeAbandoned, a.Outcome)
		require.False(t, a.Approved)
	}
	require.Empty(t, d.status(t).Record.Error)
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	report := verified(t, path)
	text, err := json.Marshal(report)
	require.NoError(t, err)
	t.Logf("%d kills, %d answers, %d of them a yes; %s", kills, len(seen), yes, text)
}

// Of two daemons with one record the second waits for the first, and leaves when
// that one stays.
func TestRecordOfAnother(t *testing.T) {
	first := startDaemon(t, `{}`)
	config := writeConfig(t, fmt.Sprintf(`{"record": {"path": %q}}`, first.recordPath()))
	started := make(chan daemon.Sockets, 1)
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	log := &logBuffer{}
	go func() {
		ended <- daemon.Run(ctx, daemon.Options{
			ConfigPath: config, Socket: beside(config).Agents, ControlSocket: beside(config).Control, Stderr: log, Getenv: noEnv,
			Serving: func(s daemon.Sockets) { started <- s },
		})
	}()
	until(t, "it waits", func() bool { return strings.Contains(log.String(), "another hookd still writes the record") })
	require.Empty(t, started)
	require.NoError(t, first.stop())
	select {
	case <-started:
	case err := <-ended:
		require.NoError(t, err, "it goes on where the first ended")
	}
	cancel()
	require.NoError(t, <-ended)
	require.Len(t, rows(readRecord(t, first.recordPath()), "config_changes"), 2)
}
