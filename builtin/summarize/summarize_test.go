package summarize

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/hookd/hookd/builtin/conversation"
	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// program is a [Run] that says what it is told to.
type program struct {
	mu     sync.Mutex
	says   string
	err    error
	waits  bool // until its context ends
	stuck  time.Duration
	inputs []string
}

func (p *program) run(ctx context.Context, argv []string, stdin []byte) ([]byte, error) {
	p.mu.Lock()
	p.inputs = append(p.inputs, string(stdin))
	says, err, waits, stuck := p.says, p.err, p.waits, p.stuck
	p.mu.Unlock()
	time.Sleep(stuck) // it ignores its context
	if waits {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	if !slices.Equal(argv, []string{"sum", "up"}) {
		return nil, fmt.Errorf("unexpected %q", argv)
	}
	return []byte(says), err
}

// counts are what the metrics were told.
type counts struct {
	triggered, fallback int
	before, after       []int
	durations           []time.Duration
}

func (c *counts) metrics() Metrics {
	return Metrics{
		Triggered: func() { c.triggered++ }, Fallback: func() { c.fallback++ },
		TokensBefore: func(n int) { c.before = append(c.before, n) }, TokensAfter: func(n int) { c.after = append(c.after, n) },
		Duration: func(d time.Duration) { c.durations = append(c.durations, d) },
	}
}

const byCommand = `{"threshold":1000,"keep_last":2,"command":["sum","up"]}`

type fixture struct {
	*Summarizer
	program *program
	counts  *counts
	logs    *observer.ObservedLogs
}

func start(t testing.TB, config string) *fixture {
	core, logs := observer.New(zap.WarnLevel)
	f := &fixture{program: &program{says: " The user wants X. "}, counts: &counts{}, logs: logs}
	var err error
	f.Summarizer, err = New(jsontext.Value(config), "", NewTable(0), f.program.run, http.DefaultClient, f.counts.metrics(), zap.New(core))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

// ask asks about messages; more are other members of the params.
func (f *fixture) ask(t testing.TB, ctx context.Context, list, more string) protocol.Decision {
	t.Helper()
	d, err := f.Intercept(ctx, request(t, list, more))
	require.NoError(t, err)
	info := protocol.NewStageTable().Stage(protocol.StageBeforeLLM)
	require.NoError(t, d.Check(info))
	return d
}

func request(t testing.TB, list, more string) *protocol.Request {
	obj, err := protocol.DecodeObject([]byte(`{"messages":`+list+more+`}`), 0)
	require.NoError(t, err)
	req, bad := protocol.DecodeRequest(protocol.NewStageTable().Stage(protocol.StageBeforeLLM), obj)
	require.Nil(t, bad)
	return req
}

func messages(t testing.TB, d protocol.Decision) string {
	t.Helper()
	require.Equal(t, protocol.ActionModify, d.Action)
	require.Equal(t, `{"summarized":true}`, string(d.State.AppendJSON(nil)))
	o, err := protocol.ParseObject(d.Subject)
	require.NoError(t, err)
	return string(o.Get("messages"))
}

func said(role, content string) string { return string(conversation.New(role, content).Raw) }

func list(messages ...string) string { return "[" + strings.Join(messages, ",") + "]" }

var (
	system  = said("system", "be good")
	long    = said("user", strings.Repeat(" word", 2000))
	call    = `{"role":"assistant","content":null,"tool_calls":[{"id":"1","function":{"name":"find","arguments":"{}"}}]}`
	result  = `{"role":"tool","tool_call_id":"1","content":"found"}`
	answer  = said("assistant", "an answer")
	query   = said("user", "and now?")
	summary = said("user", "Summary of the conversation so far: The user wants X.")
)

func TestSummarize(t *testing.T) {
	f := start(t, byCommand)
	ctx := context.Background()
	require.Equal(t, protocol.Decision{}, f.ask(t, ctx, list(system, query, answer, query), ""), "short enough")
	require.Zero(t, f.counts.triggered)

	d := f.ask(t, ctx, list(system, long, call, result, answer, query), "")
	require.Equal(t, list(system, summary, answer, query), messages(t, d))
	require.Equal(t, "a summary took the place of 3 messages", d.Reason)
	require.Equal(t, 1, f.counts.triggered)
	require.Zero(t, f.counts.fallback)
	require.Greater(t, f.counts.before[0], 2000)
	require.Less(t, f.counts.after[0], 100)
	require.Len(t, f.counts.durations, 1)
	in := f.program.inputs[0]
	require.Contains(t, in, defaultPrompt+"\n\n<conversation>\nuser:\n word word")
	require.Contains(t, in, "find")
	require.Contains(t, in, "tool:\nfound")
	require.NotContains(t, in, "an answer")
}

// TestKeepsTogether wants a call among the last messages to keep its result, and
// a result its call.
func TestKeepsTogether(t *testing.T) {
	f := start(t, byCommand)
	d := f.ask(t, context.Background(), list(system, long, call, result, query), "")
	require.Equal(t, list(system, summary, call, result, query), messages(t, d))
	// System messages further in stay.
	d = f.ask(t, context.Background(), list(long, system, answer, call, result, query), `,"meta":{"session_id":"another"}`)
	require.Equal(t, list(system, summary, call, result, query), messages(t, d))
}

func TestOncePerLoop(t *testing.T) {
	f := start(t, byCommand)
	ctx := context.Background()
	require.Equal(t, protocol.Decision{}, f.ask(t, ctx, list(long, answer, query), `,"state":{"summarized":true}`))
	const turn = `,"meta":{"session_id":"s","turn_id":"t1"}`
	messages(t, f.ask(t, ctx, list(long, answer, query), turn))
	// The agent has kept what it got, and it has become too long again.
	require.Equal(t, protocol.Decision{}, f.ask(t, ctx, list(summary, answer, query, long, answer, query), turn))
	require.Len(t, f.program.inputs, 1)
	messages(t, f.ask(t, ctx, list(summary, answer, query, long, answer, query), `,"meta":{"session_id":"s","turn_id":"t2"}`))
	require.Len(t, f.program.inputs, 2)
}

// TestAgain wants an agent that keeps its own messages to get the same summary
// without another being made.
func TestAgain(t *testing.T) {
	f := start(t, byCommand)
	ctx := context.Background()
	const turn = `,"meta":{"session_id":"s","turn_id":"t1"}`
	own := []string{system, long, call, result, answer, query}
	require.Equal(t, list(system, summary, answer, query), messages(t, f.ask(t, ctx, list(own...), turn)))
	own = append(own, answer, said("user", "more"))
	require.Equal(t, list(system, summary, answer, query, answer, said("user", "more")), messages(t, f.ask(t, ctx, list(own...), turn)))
	require.Len(t, f.program.inputs, 1)
	// In the next turn it is too long with the summary, too.
	f.program.says = "X, then Y."
	own = append(own, long, answer, query)
	second := said("user", "Summary of the conversation so far: X, then Y.")
	const next = `,"meta":{"session_id":"s","turn_id":"t2"}`
	require.Equal(t, list(system, second, answer, query), messages(t, f.ask(t, ctx, list(own...), next)))
	require.Contains(t, f.program.inputs[1], "The user wants X.", "the second is made of the first")
	require.Equal(t, list(system, second, answer, query), messages(t, f.ask(t, ctx, list(own...), next)))
	require.Len(t, f.program.inputs, 2)
	// Another conversation is another one.
	d := f.ask(t, ctx, list(system, said("user", "else"), long, answer, query), `,"meta":{"session_id":"s","turn_id":"t3"}`)
	require.Equal(t, list(system, second, answer, query), messages(t, d))
	require.Len(t, f.program.inputs, 3)
}

func TestNothingToSummarize(t *testing.T) {
	f := start(t, byCommand)
	for _, l := range []string{list(system, long), list(said("system", strings.Repeat(" word", 2000)), query), list(summary, long, query)} {
		d := f.ask(t, context.Background(), l, "")
		require.Len(t, d.Warnings, 1)
		require.Empty(t, d.Action)
	}
	require.Empty(t, f.program.inputs)
}

func TestDryRun(t *testing.T) {
	f := start(t, byCommand)
	d := f.ask(t, context.Background(), list(long, answer, query), `,"dry_run":true`)
	require.Equal(t, protocol.Decision{Warnings: []string{"1 messages would be summarized"}}, d)
	require.Empty(t, f.program.inputs)
	require.Zero(t, f.table.Len())
}

// TestFallback wants messages to be left out when there is no summary.
func TestFallback(t *testing.T) {
	notice := said("user", "[2 earlier messages were left out here, because the conversation was too long and no summary could be made.]")
	for name, set := range map[string]func(p *program){
		"fails": func(p *program) { p.err = errors.New("exit status 1") },
		"empty": func(p *program) { p.says = " \n" },
		"late":  func(p *program) { p.waits = true },
		"stuck": func(p *program) { p.stuck = time.Minute },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := start(t, byCommand)
				set(f.program)
				req := request(t, list(system, long, answer, answer, query), "")
				req.Timeout = 20 * time.Second
				ctx, cancel := context.WithTimeout(context.Background(), req.Timeout)
				defer cancel()
				began := time.Now()
				d, err := f.Intercept(ctx, req)
				require.NoError(t, err)
				require.LessOrEqual(t, time.Since(began), 19*time.Second, "before the deadline")
				require.Equal(t, list(system, notice, answer, query), messages(t, d))
				require.Equal(t, []string{"2 messages were left out, because no summary could be made"}, d.Warnings)
				require.Equal(t, 1, f.counts.fallback)
				require.Equal(t, 1, f.logs.FilterMessage("no summary could be made: messages are left out instead").Len())
				require.NoError(t, f.Close())
			})
		})
	}
}

// TestSummaryInTimeCounts wants a summary that is there to be used, always.
func TestSummaryInTimeCounts(t *testing.T) {
	f := start(t, byCommand)
	req := request(t, list(query), "")
	for range 500 {
		_, err := f.inTime(context.Background(), req, "x")
		require.NoError(t, err)
	}
}

// TestFallbackKeepsTheUser wants a task not to be lost with the middle.
func TestFallbackKeepsTheUser(t *testing.T) {
	f := start(t, byCommand)
	f.program.err = errors.New("no")
	task := said("user", "find it")
	d := f.ask(t, context.Background(), list(said("assistant", strings.Repeat(" word", 2000)), task, answer, call, result), "")
	require.Contains(t, messages(t, d), `left out here, because the conversation was too long and no summary could be made.]"},`+task+`,`+call)
}

func TestCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, byCommand)
		f.program.waits = true
		gone := errors.New("the agent has left")
		ctx, cancel := context.WithCancelCause(context.Background())
		time.AfterFunc(time.Second, func() { cancel(gone) })
		_, err := f.Intercept(ctx, request(t, list(long, answer, query), ""))
		require.ErrorIs(t, err, gone)
		require.Zero(t, f.counts.fallback)
		require.NoError(t, f.Close())
	})
}

func TestShorten(t *testing.T) {
	f := start(t, byCommand)
	f.program.says = strings.Repeat("用户想要一个很长的总结。", 100)
	d := f.ask(t, context.Background(), list(long, answer, query), "")
	m := conversation.Read(jsontext.Value(messages(t, d)))[0].Content()
	require.LessOrEqual(t, utf8.RuneCountInString(m), 500)
	require.Greater(t, utf8.RuneCountInString(m), 400)
	require.True(t, strings.HasSuffix(m, "。…"), m)
	for in, want := range map[string]string{
		"short":                 "short",
		"ten chars.":            "ten chars.",
		"one. two three":        "one. two…",
		"abcdefghijklmnop":      "abcdefghi…",
		"1234567. and the rest": "1234567.…",
	} {
		require.Equal(t, want, shorten(in, 10))
	}
}

func TestTranscriptIsBounded(t *testing.T) {
	huge := conversation.New("user", strings.Repeat("é", maxInput))
	s := transcript([]conversation.Message{conversation.New("user", "first"), huge, conversation.New("user", "last")})
	require.Less(t, len(s), maxInput+100)
	require.True(t, utf8.ValidString(s))
	require.True(t, strings.HasPrefix(s, "user:\nfirst\n"))
	require.True(t, strings.HasSuffix(s, "user:\nlast\n\n"))
	require.Contains(t, s, "bytes are left out here")
}

func TestEndpoint(t *testing.T) {
	var status int
	var body, got, auth string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		got, auth = string(data), r.Header.Get("Authorization")
		w.WriteHeader(status)
		io.WriteString(w, body)
	}))
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()
	t.Setenv("SUMMARY_KEY", "a-key")
	f := start(t, `{"threshold":1000,"keep_last":2,"endpoint":{"url":"`+server.URL+`/v1/chat/completions","model":"small","api_key_env":"SUMMARY_KEY"}}`)
	for _, c := range []struct {
		status     int
		body, want string // want "" is a fallback
	}{
		{200, `{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"The user wants X."}}]}`, summary},
		{200, `{"choices":[]}`, ""}, {200, `oops`, ""}, {200, `{"choices":[{"message":{"content":null}}]}`, ""}, {500, `{"error":"secret"}`, ""},
	} {
		status, body = c.status, c.body
		d := f.ask(t, context.Background(), list(said("user", c.body+strings.Repeat(" word", 2000)), answer, query), "")
		if c.want != "" {
			require.Equal(t, list(c.want, answer, query), messages(t, d))
		} else {
			require.Contains(t, messages(t, d), "1 earlier messages were left out", c.body)
		}
	}
	require.Equal(t, 4, f.counts.fallback)
	require.Equal(t, "Bearer a-key", auth)
	require.Contains(t, got, `{"model":"small","messages":[{"role":"system","content":"Summarize the conversation below`)
	for _, e := range f.logs.All() {
		require.NotContains(t, fmt.Sprint(e.ContextMap()), "secret")
		require.NotContains(t, fmt.Sprint(e.ContextMap()), "a-key")
	}
}

func TestKey(t *testing.T) {
	folder := t.TempDir()
	key := func(e endpoint) string {
		e.URL, e.Model = "https://x.example/v1", "m"
		k, err := e.key(folder)
		if err != nil {
			return err.Error()
		}
		return k
	}
	require.Empty(t, key(endpoint{}))
	require.Contains(t, key(endpoint{APIKeyEnv: "NO_SUCH_KEY_HERE"}), "/endpoint/api_key_env: ")
	require.Contains(t, key(endpoint{APIKeyFile: "key"}), "/endpoint/api_key_file: ")
	require.NoError(t, os.WriteFile(filepath.Join(folder, "key"), []byte("k1\n"), 0o600))
	require.Equal(t, "k1", key(endpoint{APIKeyFile: "key"}))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "key"), []byte("k1\nk2\n"), 0o600))
	require.Contains(t, key(endpoint{APIKeyFile: "key"}), "more than one line")
}

func TestConcurrently(t *testing.T) {
	f := start(t, byCommand)
	f.metrics = Metrics{}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			d := f.ask(t, context.Background(), list(long, answer, query), fmt.Sprintf(`,"meta":{"session_id":"%d"}`, i%3))
			if d.Action != protocol.ActionModify {
				t.Error("not summarized")
			}
		})
	}
	wg.Wait()
}

func TestSessionEnd(t *testing.T) {
	f := start(t, byCommand)
	f.ask(t, context.Background(), list(long, answer, query), `,"meta":{"session_id":"s"}`)
	require.Equal(t, 1, f.table.Len())
	ev := &protocol.Event{Kind: protocol.EventSessionEnd, Meta: protocol.Object{{Name: "session_id", Value: protocol.Quote("s")}}}
	require.NoError(t, f.Observe(context.Background(), &hook.Event{Event: ev}))
	require.Zero(t, f.table.Len())
}

func TestRoles(t *testing.T) {
	roles, err := hook.RolesOf(start(t, byCommand).Summarizer)
	require.NoError(t, err)
	require.False(t, roles.Quick)
	require.Equal(t, []protocol.Stage{protocol.StageBeforeLLM}, roles.Stages)
}
