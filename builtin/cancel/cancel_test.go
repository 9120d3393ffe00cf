package cancel

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newTable(t testing.TB, o Options) *Table {
	t.Helper()
	table, err := NewTable(o)
	require.NoError(t, err)
	return table
}

// params are those of each stage, of the session s-1.
var params = map[protocol.Stage]string{
	protocol.StageUserMessage:        `"message":{"role":"user","content":"hi"}`,
	protocol.StageBeforeAgent:        `"request":{"input":"hi"}`,
	protocol.StageSystemPrompt:       `"prompt":{"content":"x"}`,
	protocol.StageInjectInstructions: `"request":{}`,
	protocol.StageBeforeLLM:          `"model":"m","messages":[]`,
	protocol.StageAfterLLM:           `"response":{"content":"x"}`,
	protocol.StageBeforeTool:         `"tool":"bash","arguments":{}`,
	protocol.StageApproveTool:        `"tool":"bash","arguments":{}`,
	protocol.StageAfterTool:          `"tool":"bash","arguments":{},"result":{"content":"x"}`,
	protocol.StageBeforeCompact:      `"request":{}`,
	protocol.StageStop:               `"request":{}`,
	protocol.StageOutput:             `"output":{"content":"x"}`,
}

func request(t testing.TB, stage protocol.Stage, members string) *protocol.Request {
	t.Helper()
	obj, err := protocol.DecodeObject([]byte("{"+members+"}"), 0)
	require.NoError(t, err)
	req, bad := protocol.DecodeRequest(protocol.NewStageTable().Stage(stage), obj)
	require.Nil(t, bad, "%v", bad)
	return req
}

const meta = `"meta":{"agent":"bot","session_id":"s-1"},`

func call(t testing.TB, table *Table, stage protocol.Stage) protocol.Decision {
	t.Helper()
	return callWith(t, table, stage, meta+params[stage])
}

func callWith(t testing.TB, table *Table, stage protocol.Stage, members string) protocol.Decision {
	t.Helper()
	d, err := New(table).Intercept(t.Context(), request(t, stage, members))
	require.NoError(t, err)
	return d
}

func event(t testing.TB, table *Table, kind protocol.EventKind, meta, payload, source string) {
	t.Helper()
	ev := &protocol.Event{Kind: kind, Source: source, Payload: jsontext.Value(payload)}
	if payload == "" {
		ev.Payload = nil
	}
	ev.Meta, _ = protocol.ParseObject(jsontext.Value(meta))
	require.NoError(t, New(table).Observe(t.Context(), &hook.Event{Event: ev}))
}

func TestRoles(t *testing.T) {
	roles, err := hook.RolesOf(New(newTable(t, Options{})))
	require.NoError(t, err)
	require.True(t, roles.Quick)
	require.NotNil(t, roles.Interceptor)
	require.NotNil(t, roles.Approver)
	require.NotNil(t, roles.Observer)
	for _, pattern := range Events() {
		_, err := protocol.ParseSubscription(pattern)
		require.NoError(t, err)
	}
}

// A cancelled session gets no further at any stage, until it is resumed.
func TestCancelAndResume(t *testing.T) {
	table := newTable(t, Options{})
	for _, s := range protocol.Stages() {
		require.Contains(t, params, s.Name, "a stage is not tried")
	}
	for stage := range params {
		if stage != protocol.StageApproveTool {
			require.Zero(t, call(t, table, stage), stage)
			continue
		}
		a, err := New(table).Approve(t.Context(), request(t, stage, meta+params[stage]))
		require.NoError(t, err)
		require.Equal(t, protocol.Approval{Abstained: true}, a, "it is nobody who could say yes")
	}
	warning, err := table.Cancel("s-1", "it loops", "uid 0")
	require.NoError(t, err)
	require.Empty(t, warning)
	const why = "the session was cancelled by uid 0: it loops"
	for stage := range params {
		if stage == protocol.StageApproveTool {
			a, err := New(table).Approve(t.Context(), request(t, stage, meta+params[stage]))
			require.NoError(t, err)
			require.Equal(t, protocol.Approval{Reason: why, By: "uid 0"}, a)
			continue
		}
		d := call(t, table, stage)
		require.Equal(t, protocol.Decision{Action: protocol.ActionAbortTurn, Reason: why}, d, stage)
		require.True(t, protocol.NewStageTable().Stage(stage).Allows(d.Action), stage)
	}
	require.Zero(t, callWith(t, table, protocol.StageBeforeTool, `"meta":{"agent":"bot","session_id":"s-2"},`+params[protocol.StageBeforeTool]))

	s, err := table.Get("s-1")
	require.NoError(t, err)
	require.Equal(t, Cancelled, s.State)
	require.EqualValues(t, len(params), s.Aborted)
	require.Equal(t, "it loops", s.Cancellation.Reason)

	_, err = table.Resume("s-1")
	require.NoError(t, err)
	require.Zero(t, call(t, table, protocol.StageBeforeTool))
	_, err = table.Resume("s-1")
	require.EqualError(t, err, `the session "s-1" is not cancelled`)
	_, err = table.Cancel("s1", "", "uid 0")
	require.EqualError(t, err, `there is no session "s1" (did you mean "s-1"?)`)
	_, err = table.Resume("nobody")
	require.ErrorContains(t, err, `there is no session "nobody"`)
}

func TestSessionEnds(t *testing.T) {
	table := newTable(t, Options{})
	call(t, table, protocol.StageUserMessage)
	_, err := table.Cancel("s-1", "", "uid 0")
	require.NoError(t, err)
	event(t, table, protocol.EventSessionEnd, `{"session_id":"s-2"}`, "", "agent")
	require.Len(t, table.List(), 1)
	event(t, table, protocol.EventSessionEnd, `{"session_id":"s-1"}`, `{"reason":"done"}`, "agent")
	require.Empty(t, table.List())
	require.Zero(t, call(t, table, protocol.StageUserMessage), "a session of the same name begins anew")
	require.Zero(t, table.cancelled)
}

func TestWhatASessionDid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waiting := map[string]int{}
		table := newTable(t, Options{Waiting: func() map[string]int { return waiting }})
		begin := time.Now()
		call(t, table, protocol.StageUserMessage)
		time.Sleep(time.Second)
		for range 2 {
			callWith(t, table, protocol.StageAfterLLM, meta+`"response":{"content":"x","usage":{"input_tokens":100,"output_tokens":20,"cached":3}}`)
			callWith(t, table, protocol.StageAfterTool, meta+`"tool":"bash","arguments":{},"result":{"content":"x","is_error":true}`)
		}
		callWith(t, table, protocol.StageAfterTool, meta+`"tool":"bash","arguments":{},"result":{"content":"x","is_error":false}`)
		// The same told again, by the agent and by hookd itself.
		event(t, table, protocol.EventLLMResponse, `{"session_id":"s-1"}`, `{"usage":{"total_tokens":120}}`, "agent")
		event(t, table, protocol.EventLLMResponse, `{"session_id":"s-1"}`, `{"usage":{"total_tokens":120}}`, "hookd")
		event(t, table, protocol.EventToolError, `{"session_id":"s-1"}`, `{}`, "agent")
		event(t, table, protocol.EventToolError, `{"session_id":"s-1"}`, `{}`, "hookd")
		event(t, table, protocol.EventAgentTimeout, `{"session_id":"s-1","agent":"sub"}`, `{"timeout_ms":1}`, "agent")
		s, err := table.Get("s-1")
		require.NoError(t, err)
		require.Equal(t, Running, s.State)
		require.EqualValues(t, 6, s.Total())
		require.EqualValues(t, 3, s.Calls[protocol.StageAfterTool])
		require.True(t, s.TokensKnown)
		require.EqualValues(t, 240, s.Tokens)
		require.EqualValues(t, 3, s.Errors, "two failed tool calls and a timeout")
		require.Equal(t, "sub", s.Agent)
		require.Equal(t, "agent_timeout", s.LastEvent)
		require.Equal(t, begin, s.Since)
		require.Equal(t, time.Second, s.LastAt.Sub(begin))
		require.Equal(t, Moment{"user_message", begin}, s.Recent[0])
		require.Equal(t, "agent_timeout", s.Recent[len(s.Recent)-1].What)

		waiting["s-1"] = 2
		s, err = table.Get("s-1")
		require.NoError(t, err)
		require.Equal(t, WaitingApproval, s.State)
		require.Equal(t, 2, s.Waiting)
		clear(waiting)
		require.Equal(t, Running, table.List()[0].State, "a yes, a no and a timeout all end the waiting")
	})
}

func TestTokensAreOnlyNumbers(t *testing.T) {
	for usage, want := range map[string]int64{
		`{}`: -1, `{"total_tokens":5}`: 5, `{"prompt_tokens":2,"completion_tokens":3}`: 5, `{"output_tokens":3}`: 3,
		`{"total_tokens":"5"}`: -1, `{"total_tokens":-5}`: -1, `{"total_tokens":1e3}`: -1, `{"total_tokens":9223372036854775807}`: -1,
		`{"input_tokens":1.5,"output_tokens":3}`: 3, `[]`: -1, `null`: -1,
	} {
		table := newTable(t, Options{})
		callWith(t, table, protocol.StageAfterLLM, meta+`"response":{"content":"x","extra":`+usage+`}`)
		s, err := table.Get("s-1")
		require.NoError(t, err)
		require.False(t, s.TokensKnown)
		event(t, table, protocol.EventLLMResponse, `{"session_id":"s-1"}`, `{"usage":`+usage+`}`, "agent")
		s, err = table.Get("s-1")
		require.NoError(t, err)
		require.Equal(t, want >= 0, s.TokensKnown, usage)
		require.Equal(t, max(want, 0), s.Tokens, usage)
	}
}

func TestOnlyTheNewestMoments(t *testing.T) {
	table := newTable(t, Options{})
	for range recentEvents {
		call(t, table, protocol.StageBeforeLLM)
	}
	call(t, table, protocol.StageStop)
	s, err := table.Get("s-1")
	require.NoError(t, err)
	require.Len(t, s.Recent, recentEvents)
	require.Equal(t, "stop", s.Recent[recentEvents-1].What)
	require.Equal(t, "before_llm", s.Recent[0].What)
}

func TestNames(t *testing.T) {
	require.Equal(t, "s-1", ID("s-1", "bot"))
	require.Equal(t, "@bot", ID("", "bot"))
	require.Equal(t, "@", ID("", ""))
	long := strings.Repeat("ä", 300)
	require.Less(t, len(ID(long, "")), maxIDBytes)
	require.Equal(t, ID(long, ""), ID(long, "other"))
	require.NotEqual(t, ID(long, ""), ID(long+"x", ""))

	table := newTable(t, Options{})
	callWith(t, table, protocol.StageBeforeTool, `"meta":{"agent":"bot"},"tool":"x","arguments":{}`)
	_, err := table.Cancel("@bot", "", "uid 0")
	require.NoError(t, err)
	d := callWith(t, table, protocol.StageBeforeTool, `"meta":{"agent":"bot"},"tool":"x","arguments":{}`)
	require.Equal(t, "the session was cancelled by uid 0", d.Reason)
}

func TestDryRunLeavesNoTrace(t *testing.T) {
	table := newTable(t, Options{})
	dry := meta + `"dry_run":true,` + params[protocol.StageBeforeTool]
	require.Zero(t, callWith(t, table, protocol.StageBeforeTool, dry))
	require.Empty(t, table.List())
	call(t, table, protocol.StageBeforeTool)
	_, err := table.Cancel("s-1", "", "uid 0")
	require.NoError(t, err)
	require.Equal(t, protocol.ActionAbortTurn, callWith(t, table, protocol.StageBeforeTool, dry).Action)
	require.EqualValues(t, 1, table.List()[0].Total())
}

func TestIdleSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, waiting := &memory{}, map[string]int{"waits": 1}
		table := newTable(t, Options{Store: store, Waiting: func() map[string]int { return waiting }})
		for _, id := range []string{"idle", "waits", "stopped"} {
			callWith(t, table, protocol.StageStop, `"meta":{"session_id":"`+id+`"},"request":{}`)
		}
		_, err := table.Cancel("stopped", "", "uid 0")
		require.NoError(t, err)
		time.Sleep(idleAfter + time.Second)
		require.Equal(t, []string{"stopped", "waits"}, ids(table))
		time.Sleep(cancelledIdle)
		require.Equal(t, []string{"waits"}, ids(table))
		require.Empty(t, store.list)
		require.Zero(t, table.cancelled)
	})
}

func ids(table *Table) (list []string) {
	for _, s := range table.List() {
		list = append(list, s.ID)
	}
	return list
}

func TestTableIsBounded(t *testing.T) {
	table := newTable(t, Options{})
	call(t, table, protocol.StageStop)
	_, err := table.Cancel("s-1", "", "uid 0")
	require.NoError(t, err)
	for i := range maxSessions + 10 {
		callWith(t, table, protocol.StageStop, fmt.Sprintf(`"meta":{"session_id":"n-%d"},"request":{}`, i))
	}
	require.LessOrEqual(t, len(table.sessions), maxSessions)
	require.NotNil(t, table.Cancelled("s-1"), "the oldest of all, but cancelled")
	_, err = table.Get(fmt.Sprintf("n-%d", maxSessions+9))
	require.NoError(t, err)
	for i := range maxCancelled {
		_, err = table.Cancel(fmt.Sprintf("n-%d", maxSessions-i), "", "uid 0")
	}
	require.ErrorContains(t, err, "resume some")
}

// memory is a store that can be full.
type memory struct {
	list map[string]Cancellation
	err  error
}

func (m *memory) Keep(c *Cancellation) error {
	if m.err == nil {
		if m.list == nil {
			m.list = map[string]Cancellation{}
		}
		m.list[c.ID] = *c
	}
	return m.err
}

func (m *memory) Drop(id string) error {
	if m.err == nil {
		delete(m.list, id)
	}
	return m.err
}

func (m *memory) Load() (list []Cancellation, err error) {
	for _, c := range m.list {
		list = append(list, c)
	}
	return list, m.err
}

func TestRestartResumesNothing(t *testing.T) {
	store := &memory{}
	table := newTable(t, Options{Store: store})
	call(t, table, protocol.StageStop)
	_, err := table.Cancel("s-1", "it loops", "uid 0")
	require.NoError(t, err)
	after := newTable(t, Options{Store: store})
	require.Equal(t, protocol.ActionAbortTurn, call(t, after, protocol.StageStop).Action)
	_, err = after.Resume("s-1")
	require.NoError(t, err)
	require.Empty(t, store.list)

	store.err = errors.New("disk full")
	warning, err := after.Cancel("s-1", "", "uid 0")
	require.NoError(t, err)
	require.Contains(t, warning, "it ends when hookd does (disk full)")
	require.NotNil(t, after.Cancelled("s-1"))
	warning, err = after.Resume("s-1")
	require.NoError(t, err)
	require.Contains(t, warning, "is cancelled again (disk full)")
	_, err = NewTable(Options{Store: store})
	require.ErrorContains(t, err, "read which sessions are cancelled: disk full")
}

// Calls of many sessions, cancels and lists at once.
func TestConcurrentUse(t *testing.T) {
	table := newTable(t, Options{})
	call(t, table, protocol.StageStop)
	var wg sync.WaitGroup
	for i := range 8 {
		req := request(t, protocol.StageBeforeTool, fmt.Sprintf(`"meta":{"session_id":"n-%d"},"tool":"x","arguments":{}`, i))
		wg.Go(func() {
			for range 200 {
				if _, err := New(table).Intercept(t.Context(), req); err != nil {
					t.Error(err)
				}
			}
		})
		wg.Go(func() {
			for range 50 {
				_, _ = table.Cancel("s-1", "", "uid 0")
				table.List()
				_, _ = table.Resume("s-1")
			}
		})
	}
	wg.Wait()
	for _, s := range table.List() {
		if s.ID != "s-1" {
			require.EqualValues(t, 200, s.Total())
		}
	}
	require.Nil(t, table.Cancelled("s-1"))
	require.Zero(t, table.cancelled)
}

func BenchmarkIntercept(b *testing.B) {
	h := New(newTable(b, Options{}))
	req := request(b, protocol.StageBeforeTool, meta+params[protocol.StageBeforeTool])
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.Intercept(b.Context(), req); err != nil {
			b.Fatal(err)
		}
	}
}
