package record

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/manager"
	"github.com/hookd/hookd/protocol"
)

// call makes what a manager would record of a call with these params.
func call(t testing.TB, stage protocol.Stage, params string, res protocol.Result) *manager.Record {
	t.Helper()
	info := protocol.NewStageTable().Stage(stage)
	obj, err := protocol.DecodeObject([]byte(params), 0)
	require.NoError(t, err)
	req, refused := protocol.DecodeRequest(info, obj)
	require.Nil(t, refused)
	return &manager.Record{
		Caller: &manager.Caller{Name: "bot", PID: 4711, UID: 1000}, Request: req, Final: req.Subject,
		Result: &res, Started: time.Now(), Duration: 1500 * time.Microsecond,
	}
}

// toolCall makes the n-th of many simple calls.
func toolCall(t testing.TB, n int) *manager.Record {
	return call(t, protocol.StageBeforeTool,
		fmt.Sprintf(`{"meta":{"session_id":"s%d"},"call_id":"c%d","tool":"bash","arguments":{"command":"ls -l %d"}}`, n%4, n, n),
		protocol.Result{Action: protocol.ActionAllow, Reason: "fine", DecidedBy: "policy", Generation: 3, Trail: []protocol.Step{
			{Hook: "policy", Outcome: protocol.OutcomeAllow, Action: protocol.ActionAllow, Duration: 20 * time.Microsecond},
		}})
}

// recordPath is a file in a folder of its own.
func recordPath(t testing.TB) string { return filepath.Join(t.TempDir(), "state", "record.db") }

func openStore(t testing.TB, o Options, f faults) *Store {
	t.Helper()
	require.NoError(t, o.complete())
	s, err := open(o, f)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close(canceled()) })
	return s
}

// canceled is for a Close that waits for nothing.
func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func closeStore(t testing.TB, s *Store) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	require.NoError(t, s.Close(ctx))
}

// eventually waits for something that another goroutine brings about.
func eventually(t testing.TB, what func() bool, say string) {
	t.Helper()
	require.Eventually(t, what, 10*time.Second, 5*time.Millisecond, say)
}

// onDisk waits until nothing is queued any more.
func onDisk(t testing.TB, s *Store) {
	t.Helper()
	eventually(t, func() bool { return s.Status().Queued == 0 }, "the queue did not run empty")
}

func openReader(t testing.TB, path string) *Reader {
	t.Helper()
	r, err := OpenReader(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

func decisions(t testing.TB, r *Reader, f Filter) []*Decision {
	t.Helper()
	var list []*Decision
	for d, err := range r.Query(t.Context(), f) {
		require.NoError(t, err)
		list = append(list, d)
	}
	return list
}

func gaps(t testing.TB, path string) []Gap {
	t.Helper()
	r, err := OpenReader(path)
	require.NoError(t, err)
	defer r.Close()
	list, err := r.Gaps(t.Context())
	require.NoError(t, err)
	return list
}

// requireWhole checks the chain and returns how many records there are.
func requireWhole(t testing.TB, path string) *Report {
	t.Helper()
	rep, err := Verify(context.Background(), path)
	require.NoError(t, err)
	require.Nil(t, rep.Broken, "%v", rep.Broken)
	if rep.Records > 0 {
		require.Equal(t, rep.Last-rep.First+1, rep.Records, "numbers are without holes")
	}
	return rep
}

func raw(s string) jsontext.Value { return jsontext.Value(s) }

// sabotage runs SQL on a file as a program that is not hookd would.
func sabotage(t testing.TB, path, sql string) {
	t.Helper()
	c, err := connect(path, "")
	require.NoError(t, err)
	defer c.close()
	require.NoError(t, c.script("PRAGMA busy_timeout=5000; "+sql))
}

// mixedCall makes calls of several stages, without a test at hand.
func mixedCall(stages *protocol.StageTable, id string, n int) *manager.Record {
	stage, params := protocol.StageBeforeTool, `"tool":"bash","arguments":{"command":"make"}`
	res := &protocol.Result{Action: protocol.ActionAllow, DecidedBy: "policy"}
	switch n % 4 {
	case 1:
		stage, params = protocol.StageAfterTool, `"tool":"bash","arguments":{},"result":{"content":"done"}`
	case 2:
		stage, params = protocol.StageUserMessage, `"message":{"role":"user","content":"hello"}`
		res.Trail = []protocol.Step{{Hook: "slow", Outcome: protocol.OutcomeTimeout}}
	case 3:
		res.Action = protocol.ActionDeny
	}
	obj, err := protocol.DecodeObject([]byte(`{"call_id":"`+id+`","meta":{"session_id":"s"},`+params+`}`), 0)
	if err != nil {
		panic(err)
	}
	req, refused := protocol.DecodeRequest(stages.Stage(stage), obj)
	if refused != nil {
		panic(refused)
	}
	return &manager.Record{Caller: &manager.Caller{PID: -1, UID: -1}, Request: req, Final: req.Subject, Result: res, Started: time.Now()}
}
