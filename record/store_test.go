package record

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/protocol"
)

func TestDecisionRoundTrip(t *testing.T) {
	for _, mode := range []Mode{ModeBatch, ModeStrict} {
		t.Run(string(mode), func(t *testing.T) {
			path := recordPath(t)
			s := openStore(t, Options{Path: path, Mode: mode, BeforeAfter: true}, faults{})
			rec := call(t, protocol.StageBeforeTool,
				`{"meta":{"session_id":"s1","user_id":"ann","model":"m-1","cwd":"/src","n":1.50},"call_id":"c1","tool":"bash",
				  "arguments":{"command":"rm -rf build","n":12345678901234567890},"state":{"a":1},"deadline_ms":5000,"approve":true,"x":[1, 2]}`,
				protocol.Result{
					Action: protocol.ActionModify, Reason: "narrowed", DecidedBy: "narrow", Generation: 7, Warnings: []string{"careful"},
					Approval: &protocol.ApprovalResult{Approved: true, Reason: "ok", By: "ann"},
					Degraded: []protocol.Degraded{{Hook: "slow", Outcome: protocol.OutcomeTimeout, Detail: "5 s"}},
					Trail: []protocol.Step{
						{Hook: "slow", Outcome: protocol.OutcomeTimeout, Duration: 5 * time.Second, Detail: "5 s"},
						{Hook: "narrow", Outcome: protocol.OutcomeModify, Action: protocol.ActionModify, Duration: 3 * time.Millisecond, Changed: []string{"arguments"}},
					},
				})
			rec.Final = rec.Request.Subject.With("arguments", raw(`{"command":"rm -rf build/tmp"}`))
			rec.Result.Subject = rec.Request.Stage.SubjectValue(rec.Final)
			want := rec.Request.Digest()
			require.NoError(t, s.Record(t.Context(), rec))
			closeStore(t, s)

			r := openReader(t, path)
			d, err := r.Get(t.Context(), 1)
			require.NoError(t, err)
			require.Len(t, d.Hash, 64)
			require.WithinDuration(t, rec.Started, d.Time, time.Minute)
			require.NotEqual(t, want, d.Digest, "the digest is of the final call")
			final := *rec.Request
			final.Subject = rec.Final
			require.Equal(t, final.Digest(), d.Digest)
			d.Time, d.Hash, d.Digest, d.Approval.Digest = time.Time{}, "", "", ""
			require.Equal(t, &Decision{
				ID: 1, Session: "s1", Agent: "bot", User: "ann", Model: "m-1", CWD: "/src", PID: 4711, UID: 1000,
				Stage: protocol.StageBeforeTool, Tool: "bash", CallID: "c1",
				Action: protocol.ActionModify, Reason: "narrowed", DecidedBy: "narrow", Generation: 7, Duration: 1500 * time.Microsecond,
				Approval: rec.Result.Approval, Degraded: rec.Result.Degraded, Trail: []protocol.Step{
					{Hook: "slow", Outcome: protocol.OutcomeTimeout, Duration: 5 * time.Second, Detail: "5 s"},
					{Hook: "narrow", Outcome: protocol.OutcomeModify, Action: protocol.ActionModify, Duration: 3 * time.Millisecond, Changed: []string{"arguments"}},
				},
				Warnings: []string{"careful"}, Changed: []string{"arguments"},
				Before: raw(`{"arguments":{"command":"rm -rf build","n":12345678901234567890}}`), After: raw(`{"arguments":{"command":"rm -rf build/tmp"}}`),
				Params: raw(`{"meta":{"session_id":"s1","user_id":"ann","model":"m-1","cwd":"/src","n":1.50},"call_id":"c1","state":{"a":1},` +
					`"tool":"bash","arguments":{"command":"rm -rf build","n":12345678901234567890},"x":[1, 2],"approve":true}`),
			}, d)
			require.NoError(t, protocol.CheckValue(d.AppendJSON(nil), 0))

			// What was asked can be asked again.
			again, err := r.Replayable(t.Context(), 1)
			require.NoError(t, err)
			obj, err := protocol.DecodeObject(again.Params, 0)
			require.NoError(t, err)
			req, refused := protocol.DecodeRequest(rec.Request.Stage, obj)
			require.Nil(t, refused)
			require.Equal(t, want, req.Digest())
			require.True(t, req.Approve)
			_, err = r.Get(t.Context(), 99)
			require.ErrorIs(t, err, ErrNotFound)

			// The failed hook has a record of its own, in the same chain.
			require.EqualValues(t, 2, requireWhole(t, path).Records)
		})
	}
}

// At approve_tool the verdict is the approval's, and a call that got no answer
// says so.
func TestDecisionVerdicts(t *testing.T) {
	const tool = `{"tool":"bash","arguments":{}}`
	for _, c := range []struct {
		name   string
		stage  protocol.Stage
		params string
		res    protocol.Result
		err    error
		action protocol.Action
		audit  string // status in the audit log
	}{
		{"nothing said", protocol.StageBeforeTool, tool, protocol.Result{}, nil, protocol.ActionContinue, ""},
		{"approved", protocol.StageApproveTool, tool, protocol.Result{Approval: &protocol.ApprovalResult{Approved: true}}, nil, protocol.ActionAllow, ""},
		{"refused", protocol.StageApproveTool, tool, protocol.Result{Approval: &protocol.ApprovalResult{Reason: "no"}}, nil, protocol.ActionDeny, "denied"},
		{"denied", protocol.StageBeforeTool, tool, protocol.Result{Action: protocol.ActionDeny}, nil, protocol.ActionDeny, "denied"},
		{"gone", protocol.StageBeforeTool, tool, protocol.Result{Action: protocol.ActionDeny}, errors.New("the agent went away"), protocol.ActionDeny, "denied"},
		{
			"ran", protocol.StageAfterTool, `{"tool":"bash","arguments":{},"duration_ms":12.7,"result":{"content":"hello"}}`,
			protocol.Result{}, nil, protocol.ActionContinue, "ok",
		},
		{
			"ran badly", protocol.StageAfterTool, `{"tool":"bash","arguments":{},"result":{"is_error":true,"content":[{"type":"text","text":"oops"}]}}`,
			protocol.Result{}, nil, protocol.ActionContinue, "error",
		},
		{"an empty subject", protocol.StageStop, `{}`, protocol.Result{}, nil, protocol.ActionContinue, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := recordPath(t)
			s := openStore(t, Options{Path: path}, faults{})
			rec := call(t, c.stage, c.params, c.res)
			rec.Err = c.err
			require.NoError(t, s.Record(t.Context(), rec))
			closeStore(t, s)
			r := openReader(t, path)
			d, err := r.Get(t.Context(), 1)
			require.NoError(t, err)
			require.Equal(t, c.action, d.Action)
			require.Equal(t, c.err != nil, d.Undelivered)
			rows, err := r.AuditLog(t.Context(), "", 0)
			require.NoError(t, err)
			status := ""
			for _, row := range rows {
				status = row.Status
			}
			require.Equal(t, c.audit, status)
			if c.name == "ran" {
				require.Equal(t, AuditRow{ID: 1, Time: rows[0].Time, Agent: "bot", Tool: "bash", Status: "ok", Duration: 12 * time.Millisecond, Preview: "hello"}, rows[0])
				require.Len(t, rows[0].Time, len("2026-01-02T03:04:05.678Z"))
			}
		})
	}
}

func TestChangesOfAWrappedSubject(t *testing.T) {
	path := recordPath(t)
	s := openStore(t, Options{Path: path, BeforeAfter: true}, faults{})
	rec := call(t, protocol.StageUserMessage, `{"message":{"role":"user","content":"call 13800138000","x":1}}`, protocol.Result{Action: protocol.ActionModify})
	rec.Final = protocol.Object{{Name: "message", Value: raw(`{"role":"user","content":"call …"}`)}}
	rec.Result.Subject = rec.Final[0].Value
	require.NoError(t, s.Record(t.Context(), rec))
	closeStore(t, s)
	d, err := openReader(t, path).Get(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, []string{"content", "x"}, d.Changed)
	require.Equal(t, `{"content":"call 13800138000","x":1}`, string(d.Before))
	require.Equal(t, `{"content":"call …"}`, string(d.After))
}

func TestFilesAreOursAlone(t *testing.T) {
	path := recordPath(t)
	s := openStore(t, Options{Path: path}, faults{})
	require.NoError(t, s.Record(t.Context(), toolCall(t, 1)))
	onDisk(t, s)
	info, err := os.Stat(filepath.Dir(path))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o700), info.Mode().Perm())
	for _, suffix := range []string{"", "-wal", "-shm", ".lock"} {
		info, err := os.Stat(path + suffix)
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o600), info.Mode().Perm(), suffix)
	}
	closeStore(t, s)
	_, err = os.Stat(path + "-wal")
	require.ErrorIs(t, err, fs.ErrNotExist, "after Close all is in one file")
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "other.db")
	sabotage(t, text, "CREATE TABLE notes (x)")
	newer := filepath.Join(dir, "newer.db")
	sabotage(t, newer, fmt.Sprintf("CREATE TABLE x (y); PRAGMA application_id=%d; PRAGMA user_version=99", applicationID))
	loose := filepath.Join(dir, "loose")
	require.NoError(t, os.Mkdir(loose, 0o700))
	require.NoError(t, os.Chmod(loose, 0o777))
	link := filepath.Join(dir, "link.db")
	require.NoError(t, os.Symlink(text, link))
	busy := recordPath(t)
	openStore(t, Options{Path: busy}, faults{})

	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{}, "no path"},
		{Options{Path: "x", Mode: "fast"}, `unknown mode "fast"`},
		{Options{Path: "x", OnFailure: "panic"}, `unknown on_failure "panic"`},
		{Options{Path: "x", KeepDays: -1}, "negative"},
		{Options{Path: filepath.Join(text, "sub", "record.db")}, "make its folder"},
		{Options{Path: filepath.Join(loose, "record.db")}, "chmod go-w " + loose},
		{Options{Path: text}, "not hookd's record"},
		{Options{Path: newer}, "newer hookd"},
		{Options{Path: dir}, "is not a file"},
		{Options{Path: link}, "a link is not followed"},
		{Options{Path: busy}, fmt.Sprintf("another hookd (process %d) writes this record", os.Getpid())},
	} {
		_, err := Open(c.o)
		require.ErrorContains(t, err, c.want)
	}
	b, err := os.ReadFile(text)
	require.NoError(t, err)
	require.NotEmpty(t, b, "what is not ours is left alone")
}

func TestUnwritableFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	require.NoError(t, os.Mkdir(dir, 0o500))
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere")
	}
	_, err := Open(Options{Path: filepath.Join(dir, "record.db")})
	require.ErrorIs(t, err, fs.ErrPermission)
}

func TestOff(t *testing.T) {
	s, err := Open(Options{Mode: ModeOff})
	require.NoError(t, err)
	require.NoError(t, s.Record(t.Context(), toolCall(t, 1)))
	require.NoError(t, s.Session(&SessionEvent{Session: "s", What: "start"}))
	require.ErrorIs(t, s.AddRule(t.Context(), &Rule{ID: "r"}), ErrOff)
	require.Equal(t, StateOff, s.Status().State)
	require.NoError(t, s.Close(t.Context()))
}

func TestOtherRecords(t *testing.T) {
	path := recordPath(t)
	s := openStore(t, Options{Path: path}, faults{})
	ctx := t.Context()
	opened := time.Now().Truncate(time.Microsecond).UTC()
	a := Approval{
		Ticket: "t1", Digest: "ab", Tool: "bash", Arguments: raw(`{"command":"deploy","password":"hunter2"}`), Session: "s1", Agent: "bot", User: "ann",
		Task: "k", Node: "n", PID: 7, UID: 0, Opened: opened, Expires: opened.Add(time.Minute), Timeout: time.Minute,
	}
	require.NoError(t, s.ApprovalRequested(ctx, &a))
	open := Approval{Ticket: "t2", Tool: "bash", PID: -1, UID: -1}
	require.NoError(t, s.ApprovalRequested(ctx, &open))
	a.Approved, a.Outcome, a.Reason, a.By, a.ByPID, a.ByUID, a.Rule = true, "answered", "looks good", "ann", 8, 1000, "r1"
	require.NoError(t, s.ApprovalAnswered(ctx, &a))
	require.NoError(t, s.Session(&SessionEvent{Session: "s1", What: "start", Agent: "bot"}))
	require.NoError(t, s.Session(&SessionEvent{Session: "s1", What: "stop", Agent: "bot", Duration: 3 * time.Second, Counts: raw(`{"steps":4}`), Reason: "done"}))
	require.NoError(t, s.Failure(&Failure{Hook: "gate", Outcome: protocol.OutcomeSpawnFailed, Detail: "no such file"}))
	require.NoError(t, s.ConfigChange(&ConfigChange{Generation: 2, Path: "/etc/x", SHA256: "aa", OldSHA256: "bb", What: "gate removed", Warnings: []string{"gate was required"}}))
	require.NoError(t, s.Security(&SecurityEvent{What: "user_message", Session: "s1", Message: strings.Repeat("long ", 5000)}))
	require.NoError(t, s.ToolRun(&ToolRun{Session: "s1", Tool: "edit", CallID: "c9", Status: "ok", Duration: 12 * time.Millisecond, Preview: "done"}))
	rec := toolCall(t, 1)
	rec.Call = 7
	require.NoError(t, s.Record(ctx, rec))
	require.NoError(t, s.Undelivered(&Undelivered{Call: 7, Session: "s1", Stage: protocol.StageBeforeTool, CallID: "c1", PID: 4711, Reason: "the agent does not read"}))
	require.NoError(t, s.Undelivered(&Undelivered{Call: 8, Session: "unknown", Stage: protocol.StageBeforeTool}))
	closeStore(t, s)
	requireWhole(t, path)

	r := openReader(t, path)
	list, err := r.Approvals(ctx, ApprovalFilter{})
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.True(t, list[0].Answered.IsZero())
	require.Equal(t, -1, list[0].PID)
	a.Answered, a.Arguments = list[1].Answered, raw(`{"command":"deploy","password":"[masked]"}`)
	require.Equal(t, a, list[1])
	list, err = r.Approvals(ctx, ApprovalFilter{Open: true})
	require.NoError(t, err)
	require.Len(t, list, 1)

	all := decisions(t, r, Filter{})
	require.Len(t, all, 1)
	require.True(t, all[0].Undelivered)
	require.Equal(t, "the agent does not read", all[0].Error)

	rows, err := r.AuditLog(ctx, "s1", 0)
	require.NoError(t, err)
	require.Len(t, rows, 2)
	require.Equal(t, "edit", rows[0].Tool)
	require.Equal(t, []string{"SESSION_STOP", "done", `{"steps":4}`}, []string{rows[1].Tool, rows[1].Status, rows[1].Preview})
	require.Equal(t, 3*time.Second, rows[1].Duration)

	sessions, err := r.Sessions(ctx, 0)
	require.NoError(t, err)
	require.Len(t, sessions, 1)
	require.EqualValues(t, 1, sessions[0].Calls)

	var out bytes.Buffer
	n, err := r.Export(ctx, &out, 0)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, n)
	for i, line := range lines {
		obj, err := protocol.DecodeObject([]byte(line), 0)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(i+1), string(obj.Get("seq")), "in order, without holes")
		require.NotContains(t, line, "hunter2")
	}
	require.Contains(t, out.String(), `"table":"config_changes"`)

	// An approval that was open at the end is a no at the next start.
	s = openStore(t, Options{Path: path}, faults{})
	list, err = r.Approvals(ctx, ApprovalFilter{Ticket: "t2"})
	require.NoError(t, err)
	require.Equal(t, OutcomeAbandoned, list[0].Outcome)
	require.False(t, list[0].Answered.IsZero())
	require.False(t, list[0].Approved)
	closeStore(t, s)
	requireWhole(t, path)
	require.Empty(t, gaps(t, path), "hookd was closed each time")
}

func TestRules(t *testing.T) {
	path := recordPath(t)
	s := openStore(t, Options{Path: path}, faults{})
	r := openReader(t, path)
	rules := func() (ids []string) {
		list, err := r.Rules(t.Context())
		require.NoError(t, err)
		for _, rule := range list {
			ids = append(ids, rule.ID)
		}
		return ids
	}
	always := Rule{ID: "r1", Scope: "always", Digest: "ab", Tool: "bash", Created: time.Now(), By: "ann"}
	require.NoError(t, s.AddRule(t.Context(), &always))
	require.Equal(t, []string{"r1"}, rules(), "on the disk when AddRule returns")
	require.NoError(t, s.AddRule(t.Context(), &Rule{ID: "r2", Scope: "session", Session: "s1", Created: time.Now()}))
	require.NoError(t, s.RevokeRule(t.Context(), &always))
	require.Equal(t, []string{"r2"}, rules())
}

func TestMaskOfTheOptions(t *testing.T) {
	path := recordPath(t)
	phone := func(v jsontext.Value) jsontext.Value {
		if bytes.Contains(v, []byte("break")) {
			return raw(`{"broken`)
		}
		return bytes.ReplaceAll(v, []byte("13800138000"), []byte("138****8000"))
	}
	s := openStore(t, Options{Path: path, BeforeAfter: true, Mask: phone}, faults{})
	rec := call(t, protocol.StageBeforeTool, `{"meta":{"session_id":"13800138000"},"tool":"sms","arguments":{"to":"13800138000","api_key":"abc"}}`,
		protocol.Result{Action: protocol.ActionDeny, Reason: "no texts to 13800138000", Trail: []protocol.Step{{Hook: "pii", Outcome: protocol.OutcomeDeny, Detail: "13800138000"}}})
	require.NoError(t, s.Record(t.Context(), rec))
	require.NoError(t, s.Record(t.Context(), call(t, protocol.StageBeforeTool, `{"tool":"x","arguments":{"a":"break"}}`, protocol.Result{Reason: "break"})))
	closeStore(t, s)
	r := openReader(t, path)
	d, err := r.Get(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, "13800138000", d.Session, "ids by which one looks are kept")
	d.Session = ""
	require.NotContains(t, string(d.AppendJSON(nil)), "13800138000")
	require.Equal(t, `{"meta":{"session_id":"138****8000"},"tool":"sms","arguments":{"to":"138****8000","api_key":"[masked]"}}`, string(d.Params))
	require.True(t, d.Masked)
	d, err = r.Get(t.Context(), 2)
	require.NoError(t, err)
	require.Equal(t, `"[masked]"`, string(d.Params), "a mask that makes no JSON")
	_, err = d.Replay()
	require.ErrorIs(t, err, ErrCut)
}

func TestLongParams(t *testing.T) {
	path := recordPath(t)
	s := openStore(t, Options{Path: path, MaxParams: 4096}, faults{})
	text := strings.Repeat("words and words ", 100_000)
	rec := call(t, protocol.StageBeforeLLM, `{"model":"m","messages":[{"role":"user","content":"`+text+`"},{"role":"user","content":"short"}]}`, protocol.Result{})
	require.NoError(t, s.Record(t.Context(), rec))
	closeStore(t, s)
	r := openReader(t, path)
	d, err := r.Get(t.Context(), 1)
	require.NoError(t, err)
	require.Greater(t, d.ParamsBytes, int64(len(text)))
	require.Less(t, len(d.Params), 6000)
	require.Greater(t, len(d.Params), 3000, "as much as there is room for is kept")
	require.Contains(t, string(d.Params), "more bytes are not recorded]")
	require.Contains(t, string(d.Params), `"short"`)
	_, err = r.Replayable(t.Context(), 1)
	require.ErrorIs(t, err, ErrCut)
}

func TestQuery(t *testing.T) {
	path := recordPath(t)
	clock := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	s := openStore(t, Options{Path: path}, faults{})
	for n := range 300 {
		rec := toolCall(t, n)
		rec.Started = clock.Add(time.Duration(n) * time.Second)
		if n%10 == 0 {
			rec.Result.Action, rec.Result.Trail[0].Hook = protocol.ActionDeny, "gate"
		}
		if n == 77 {
			rec.Request.Subject = rec.Request.Subject.With("tool", raw(`"edit\u0000"`))
			rec.Final = rec.Request.Subject
		}
		require.NoError(t, s.Record(t.Context(), rec))
	}
	onDisk(t, s)
	r := openReader(t, path)
	ids := func(f Filter) (list []uint64) {
		for _, d := range decisions(t, r, f) {
			list = append(list, d.ID)
		}
		return list
	}
	require.Len(t, ids(Filter{}), 300)
	require.Equal(t, []uint64{298, 299, 300}, ids(Filter{Limit: 3}), "the last ones, oldest first")
	require.Equal(t, []uint64{6, 7}, ids(Filter{After: 5, Limit: 2}))
	require.Len(t, ids(Filter{Session: "s1"}), 75)
	require.Len(t, ids(Filter{Action: protocol.ActionDeny}), 30)
	require.Equal(t, ids(Filter{Action: "deny_tool"}), ids(Filter{Hook: "gate"}))
	require.Equal(t, []uint64{78}, ids(Filter{Tool: "edit\x00"}))
	require.Empty(t, ids(Filter{Agent: "nobody"}))
	require.Empty(t, ids(Filter{Stage: protocol.StageStop}))
	require.Equal(t, []uint64{11, 12}, ids(Filter{Since: clock.Add(10 * time.Second), Until: clock.Add(12 * time.Second)}))
	require.Empty(t, ids(Filter{Session: `s1' OR 1=1 --`}))
	for range r.Query(t.Context(), Filter{}) {
		break // a caller may have enough
	}
	closeStore(t, s)
	requireWhole(t, path)
}

func TestFollow(t *testing.T) {
	path := recordPath(t)
	s := openStore(t, Options{Path: path, Mode: ModeStrict}, faults{})
	for n := range 5 {
		require.NoError(t, s.Record(t.Context(), toolCall(t, n)))
	}
	r := openReader(t, path)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var got []string
	for d, err := range r.Follow(ctx, Filter{Limit: 2}) {
		require.NoError(t, err)
		got = append(got, d.CallID)
		switch len(got) {
		case 2:
			require.NoError(t, s.Record(t.Context(), toolCall(t, 5)))
		case 3: // the file is replaced by a fresh one
			require.NoError(t, os.Remove(path))
			eventually(t, func() bool { return s.Record(t.Context(), toolCall(t, 6)) == nil }, "the store opens a new file")
		case 4:
			stop()
		}
	}
	require.Equal(t, []string{"c3", "c4", "c5", "c6"}, got)
}

// Many agents at once share commits, and each gets its own record.
func TestManyAgents(t *testing.T) {
	path := recordPath(t)
	s := openStore(t, Options{Path: path, Mode: ModeStrict}, faults{})
	var wg sync.WaitGroup
	for agent := range 64 {
		wg.Go(func() {
			for n := range 10 {
				if err := s.Record(t.Context(), toolCall(t, agent*10+n)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	seen := map[string]int{}
	for _, d := range decisions(t, openReader(t, path), Filter{}) {
		seen[d.CallID]++
		require.Equal(t, 1, seen[d.CallID])
	}
	require.Len(t, seen, 640, "all are on the disk when Record returns")
	closeStore(t, s)
	require.EqualValues(t, 640, requireWhole(t, path).Records)
}
