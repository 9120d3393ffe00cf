package mount

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/hookd/hookd/child"
	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// The tests in this file run the supervisor on a fake clock against a program
// that is a goroutine at the other end of a pipe.

// fakeProgram is hookd's side of it.
type fakeProgram struct {
	net.Conn
	far    net.Conn
	done   chan struct{}
	once   sync.Once
	exit   child.Exit
	killed atomic.Bool
	stderr []string
}

func (f *fakeProgram) PID() int              { return 4711 }
func (f *fakeProgram) Done() <-chan struct{} { return f.done }
func (f *fakeProgram) Exit() child.Exit      { <-f.done; return f.exit }
func (f *fakeProgram) StderrTail() []string  { return f.stderr }

func (f *fakeProgram) Confinement() child.Confinement {
	return child.Confinement{Active: []string{"fake"}}
}

func (f *fakeProgram) Stop(ctx context.Context) child.Exit {
	f.Conn.Close()
	if ctx.Err() != nil {
		f.Kill()
	}
	f.end(child.Exit{})
	return f.exit
}

func (f *fakeProgram) Kill() {
	f.killed.Store(true)
	f.end(child.Exit{Code: -1, Signal: "SIGKILL"})
}

func (f *fakeProgram) end(exit child.Exit) {
	f.once.Do(func() {
		f.exit = exit
		f.far.Close()
		close(f.done)
	})
}

// far is the hook's side: one run of its program.
type far struct {
	*fakeProgram
	number int // of the run, from 1
	lines  *bufio.Scanner
}

// message is one line from hookd.
type message struct {
	id     string // as it stood on the wire; "" in a notification
	method string
	params protocol.Object
}

// next returns the next message, with an empty method at the end.
func (f *far) next() message {
	if !f.lines.Scan() {
		return message{}
	}
	obj, err := protocol.DecodeObject(f.lines.Bytes(), 0)
	if err != nil {
		return message{method: err.Error()}
	}
	m := message{id: string(obj.Get("id")), method: "an answer"}
	if method := obj.Get("method"); method != nil {
		m.method = protocol.Unquote(method)
	}
	m.params, _ = protocol.ParseObject(obj.Get("params"))
	return m
}

func (f *far) write(format string, args ...any) { fmt.Fprintf(f.far, format+"\n", args...) }

func (f *far) answer(id, result string) { f.write(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result) }

// greet answers the greeting.
func (f *far) greet(result string) message {
	m := f.next()
	f.answer(m.id, result)
	return m
}

// each answers the greeting and hands every later message over, to the end.
func (f *far) each(handle func(m message)) {
	f.greet(`{}`)
	for m := f.next(); m.method != ""; m = f.next() {
		handle(m)
	}
}

// states collects what onState is told.
type states struct {
	mu   sync.Mutex
	list []State
}

func (s *states) take() []State {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.list
	s.list = nil
	return list
}

// startFake runs play for each run of a hook, in a goroutine. An error of play
// before it has read anything is one of the start.
func startFake(t *testing.T, edit func(*job), play func(f *far)) (*process, *states) {
	seen := &states{}
	runs := 0
	j := job{
		name: "gate", maxInFlight: 1, files: func() []string { return nil }, limits: protocol.Limits{}.WithDefaults(),
		offer:  protocol.HookHello{Name: "gate", Version: 1, Stages: []protocol.Stage{protocol.StageBeforeTool, protocol.StageApproveTool}, Events: []string{"*"}},
		timing: defaultTiming(), jitter: func() float64 { return 0.5 }, log: zap.NewNop(),
		start: func(context.Context) (program, error) {
			near, farEnd := net.Pipe()
			runs++
			f := &far{&fakeProgram{Conn: near, far: farEnd, done: make(chan struct{})}, runs, bufio.NewScanner(farEnd)}
			f.lines.Buffer(nil, 1<<20)
			go play(f)
			return f.fakeProgram, nil
		},
		onState: func(_ string, s Status) {
			seen.mu.Lock()
			defer seen.mu.Unlock()
			seen.list = append(seen.list, s.State)
		},
	}
	if edit != nil {
		edit(&j)
	}
	p := newProcess(j)
	t.Cleanup(func() { p.shut(context.Background()) })
	return p, seen
}

// bubble runs a test on a fake clock.
func bubble(t *testing.T, test func(t *testing.T)) { synctest.Test(t, test) }

func toolCall(timeout time.Duration) *protocol.Request {
	stage := protocol.NewStageTable().Stage(protocol.StageBeforeTool)
	return &protocol.Request{Stage: stage, Timeout: timeout, Subject: protocol.Object{{Name: "tool", Value: protocol.Quote("bash")}, {Name: "arguments", Value: []byte("{}")}}}
}

func approval(timeout time.Duration) *protocol.Request {
	r := toolCall(timeout)
	r.Stage = protocol.NewStageTable().Stage(protocol.StageApproveTool)
	return r
}

// wantOutcome checks that err is a failure of this kind and says all of texts.
func wantOutcome(t *testing.T, err error, want protocol.Outcome, texts ...string) {
	t.Helper()
	f, ok := errors.AsType[*hook.Failure](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, want, f.Outcome, f.Detail)
	for _, text := range texts {
		require.Contains(t, f.Detail, text)
	}
}

func wantStates(t *testing.T, s *states, want ...State) {
	t.Helper()
	require.Equal(t, want, s.take())
}

func TestGreeting(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var hello message
		p, seen := startFake(t, nil, func(f *far) {
			hello = f.greet(`{"ok":true,"name":"my gate","version":1,"stages":["before_tool"],"new":"thing"}`)
			f.next()
		})
		require.NoError(t, p.ready(t.Context()))
		synctest.Wait()
		require.Equal(t, protocol.MethodHello, hello.method)
		require.Equal(t, "1", hello.id)
		require.Equal(t, `{"name":"gate","version":1,"modes":[],"stages":["before_tool","approve_tool"],"events":["*"],"server":{"name":""},"generation":0,"limits":{"max_message_bytes":0,"max_in_flight":0}}`, string(hello.params.AppendJSON(nil)))
		s := p.status()
		require.Equal(t, "my gate", s.Greeted)
		require.Equal(t, []protocol.Stage{"before_tool"}, s.Stages)
		require.Equal(t, 4711, s.PID)
		require.Equal(t, 0, s.Restarts)
		wantStates(t, seen, Ready)

		_, err := p.Approve(t.Context(), approval(time.Second))
		wantOutcome(t, err, protocol.OutcomeHookError, "left this stage out")
	})
}

// Until the registration is asked for again, a stage that the hook left out
// has no answer: its policy holds.
func TestDeclinedStageHasNoAnswer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := startFake(t, nil, func(f *far) { f.greet(`{"stages":["approve_tool"]}`); f.next() })
		require.NoError(t, p.ready(t.Context()))
		_, err := p.Intercept(t.Context(), toolCall(time.Second))
		wantOutcome(t, err, protocol.OutcomeHookError, "left this stage out")
	})
}

func TestGreetingThatIsAYes(t *testing.T) {
	for name, line := range map[string]string{
		"null":               `{"jsonrpc":"2.0","id":%s,"result":null}`,
		"something else":     `{"jsonrpc":"2.0","id":%s,"result":{"action":"continue"}}`,
		"unknown method":     `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"what?"}}`,
		"noise comes before": "starting up...\n" + `{"jsonrpc":"2.0","id":%s,"result":{}}`,
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				p, _ := startFake(t, nil, func(f *far) { f.write(line, f.next().id); f.next() })
				require.NoError(t, p.ready(t.Context()))
			})
		})
	}
}

func TestGreetingThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		play func(f *far)
		want string
	}{
		"refusal":           {func(f *far) { f.greet(`{"ok":false,"reason":"no licence"}`) }, "it refused the greeting: no licence"},
		"error":             {func(f *far) { f.write(`{"jsonrpc":"2.0","id":%s,"error":{"code":1,"message":"no"}}`, f.next().id) }, "it refused the greeting: no (1)"},
		"version":           {func(f *far) { f.greet(`{"version":99}`) }, "the hook speaks 99, hookd speaks 1"},
		"stage":             {func(f *far) { f.greet(`{"stages":["stop"]}`) }, `"stop" was not offered`},
		"strategy":          {func(f *far) { f.greet(`{"key_strategies":{"k":"merge_map"}}`) }, `the key "k" of state by merge_map, its entry by last_wins`},
		"silence":           {func(f *far) { f.next() }, "it did not answer the greeting within 5s"},
		"noise":             {func(f *far) { f.next(); f.write("hello!") }, "within 5s, but wrote 1 lines that can't be read: print only answers on stdout"},
		"unreadable":        {func(f *far) { f.write(`{"jsonrpc":"2.0","id":%s,"result":{"ok":tru}}`, f.next().id) }, "unreadable answer"},
		"exit":              {func(f *far) { f.next(); f.end(child.Exit{Code: 2}) }, "before it answered the greeting, it ended with exit status 2; last on stderr: first | second | last"},
		"closed its stdout": {func(f *far) { f.next(); f.far.Close() }, "before it answered the greeting, it closed its standard output and went on running"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				begin := time.Now()
				p, _ := startFake(t, func(j *job) {
					j.strategies = map[string]protocol.KeyStrategy{"k": protocol.LastWins}
				}, func(f *far) {
					if name == "exit" {
						f.stderr = []string{"zeroth", "first", "second", "last"}
					}
					c.play(f)
				})
				err := p.ready(t.Context())
				require.ErrorContains(t, err, c.want)
				require.LessOrEqual(t, time.Since(begin), 5*time.Second)
				_, err = p.Intercept(t.Context(), toolCall(time.Second))
				wantOutcome(t, err, protocol.OutcomeSpawnFailed)
				require.NotContains(t, err.Error(), "stderr", "what a hook wrote is not for agents")
				require.Contains(t, p.status().LastError, c.want)
			})
		})
	}
}

func TestCallsBeforeTheGreetingFailAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := startFake(t, nil, func(f *far) { f.next() })
		begin := time.Now()
		_, err := p.Intercept(t.Context(), toolCall(time.Second))
		wantOutcome(t, err, protocol.OutcomeStarting)
		_, err = p.Approve(t.Context(), approval(time.Second))
		wantOutcome(t, err, protocol.OutcomeStarting)
		wantOutcome(t, p.Observe(t.Context(), &hook.Event{Event: protocol.NewHookdEvent("decision", nil, nil)}), protocol.OutcomeStarting)
		require.Zero(t, time.Since(begin))
	})
}

func TestAnswers(t *testing.T) {
	huge := `"` + strings.Repeat("x", 2000) + `"`
	for name, c := range map[string]struct {
		line string // %s is the id
		want protocol.Outcome
		text string
	}{
		"deny":             {`{"jsonrpc":"2.0","id":%s,"result":{"action":"deny","reason":"no"}}`, "", ""},
		"carriage return":  {`{"jsonrpc":"2.0","id":%s,"result":{"action":"deny","reason":"no"}}` + "\r", "", ""},
		"noise, then deny": {"debug\n" + `{"jsonrpc":"2.0","id":%s,"result":{"action":"deny","reason":"no"}}`, "", ""},
		"error":            {`{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"it broke"}}`, protocol.OutcomeHookError, "it answered with an error: it broke (-32000)"},
		"unknown verb":     {`{"jsonrpc":"2.0","id":%s,"result":{"action":"alow"}}`, protocol.OutcomeBadAnswer, `unknown verb "alow" (did you mean "allow"?)`},
		"other case":       {`{"jsonrpc":"2.0","id":%s,"result":{"Action":"deny"}}`, protocol.OutcomeBadAnswer, `unknown member "Action"`},
		"wrong type late":  {`{"jsonrpc":"2.0","id":%s,"result":{"action":"allow","reason":5}}`, protocol.OutcomeBadAnswer, "reason"},
		"verb twice":       {`{"jsonrpc":"2.0","id":%s,"result":{"action":"deny","action":"continue"}}`, protocol.OutcomeBadAnswer, "twice"},
		"both":             {`{"jsonrpc":"2.0","id":%s,"result":{},"error":{"code":1,"message":"x"}}`, protocol.OutcomeGarbage, "can't be read"},
		"broken":           {`{"jsonrpc":"2.0","id":%s,"result":{"action":"deny}}`, protocol.OutcomeGarbage, "can't be read"},
		"two on a line":    {`{"jsonrpc":"2.0","id":%[1]s,"result":{}} {"jsonrpc":"2.0","id":%[1]s,"result":{}}`, protocol.OutcomeGarbage, "can't be read"},
		"too long":         {`{"jsonrpc":"2.0","id":%s,"result":{"reason":` + huge + `}}`, protocol.OutcomeOversize, "longer than 1024 bytes (limits.max_message_bytes)"},
		"too deep":         {`{"jsonrpc":"2.0","id":%s,"result":{"state":{"x":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}}}`, protocol.OutcomeGarbage, "can't be read"},
		"surrogate":        {`{"jsonrpc":"2.0","id":%s,"result":{"reason":"\ud800"}}`, protocol.OutcomeGarbage, "can't be read"},
		"not UTF-8":        {`{"jsonrpc":"2.0","id":%s,"result":{"reason":"` + "\xff" + `"}}`, protocol.OutcomeGarbage, "can't be read"},
		"pretty":           {"{\n \"jsonrpc\":\"2.0\",\n \"id\":%s,\n \"result\":{}\n}", protocol.OutcomeGarbage, "no answer within 1s, but wrote 5 lines that can't be read"},
		"noise only":       {"%[1]s\nhello", protocol.OutcomeGarbage, "no answer within 1s, but wrote 2 lines that can't be read"},
		"text id":          {`{"jsonrpc":"2.0","id":"%s","result":{}}`, protocol.OutcomeTimeout, "no answer within 1s"},
		"other id":         {`{"jsonrpc":"2.0","id":%s000,"result":{}}`, protocol.OutcomeTimeout, "no answer within 1s"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				p, _ := startFake(t, func(j *job) { j.limits.MaxMessageBytes = 1024 }, func(f *far) {
					f.each(func(m message) {
						if m.id != "" {
							f.write(c.line, m.id)
						}
					})
				})
				require.NoError(t, p.ready(t.Context()))
				d, err := p.Intercept(t.Context(), toolCall(time.Second))
				if c.want == "" {
					require.NoError(t, err)
					require.Equal(t, protocol.Decision{Action: protocol.ActionDeny, Reason: "no"}, d)
					return
				}
				wantOutcome(t, err, c.want, c.text)
				require.Zero(t, d)
				require.Equal(t, 0, p.status().Restarts)
			})
		})
	}
}

func TestApprovals(t *testing.T) {
	bubble(t, func(t *testing.T) {
		answers := []string{`{"approved":true,"by":"me"}`, `{}`, `{"approved":"yes"}`}
		p, _ := startFake(t, nil, func(f *far) {
			f.each(func(m message) {
				f.answer(m.id, answers[0])
				answers = answers[1:]
			})
		})
		require.NoError(t, p.ready(t.Context()))
		a, err := p.Approve(t.Context(), approval(time.Second))
		require.NoError(t, err)
		require.Equal(t, protocol.Approval{Approved: true, By: "me"}, a)
		for range 2 {
			a, err = p.Approve(t.Context(), approval(time.Second))
			wantOutcome(t, err, protocol.OutcomeBadAnswer, "approved")
			require.Zero(t, a)
		}
	})
}

func TestEventsAreNumbered(t *testing.T) {
	bubble(t, func(t *testing.T) {
		got := make(chan message, 1)
		p, _ := startFake(t, nil, func(f *far) { f.each(func(m message) { got <- m }) })
		require.NoError(t, p.ready(t.Context()))
		ev := &hook.Event{Event: &protocol.Event{Kind: "turn_end"}, Seq: 3, Missed: 2}
		require.NoError(t, p.Observe(t.Context(), ev))
		m := <-got
		require.Equal(t, "hook.event", m.method)
		require.Equal(t, []string{`"turn_end"`, "3", "2"}, []string{string(m.params.Get("kind")), string(m.params.Get("seq")), string(m.params.Get("missed"))})
	})
}

func TestObserverThatDoesNotReadCostsItsTimeoutOnly(t *testing.T) {
	bubble(t, func(t *testing.T) {
		noApprover := func(j *job) { j.offer.Stages = nil }
		p, _ := startFake(t, noApprover, func(f *far) { f.greet(`{}`); <-f.done })
		require.NoError(t, p.ready(t.Context()))
		// The first is on its way, which only the write deadline ends; the second waits behind it.
		go p.Observe(context.Background(), &hook.Event{Event: &protocol.Event{Kind: "turn_end"}})
		synctest.Wait()
		cause := errors.New("the observer's time is over")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 500*time.Millisecond, cause)
		defer cancel()
		begin := time.Now()
		require.ErrorIs(t, p.Observe(ctx, &hook.Event{Event: &protocol.Event{Kind: "turn_end"}}), cause)
		require.Equal(t, 500*time.Millisecond, time.Since(begin))
		time.Sleep(6 * time.Second)
		require.Contains(t, p.status().LastError, "it did not read what was sent to it")
	})
}

// An approver reads nothing while a person thinks, however long, and is not
// restarted for it.
func TestApproverMayLeaveItsStdinUnread(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := startFake(t, nil, func(f *far) { f.greet(`{}`); <-f.done })
		require.NoError(t, p.ready(t.Context()))
		go p.Observe(context.Background(), &hook.Event{Event: &protocol.Event{Kind: "turn_end"}})
		time.Sleep(time.Hour)
		require.Equal(t, Ready, p.status().State)
		require.Empty(t, p.status().LastError)
	})
}

// A call that was given up before anything of it was written leaves its slot:
// the hook owes no answer to it.
func TestCallThatWasNotSentLeavesItsSlot(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := startFake(t, nil, func(f *far) { f.each(func(message) {}) })
		require.NoError(t, p.ready(t.Context()))
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("the agent went away"))
		for range 20 {
			_, err := p.Intercept(ctx, toolCall(time.Second))
			require.ErrorContains(t, err, "the agent went away")
		}
		require.Zero(t, p.status().InFlight)
	})
}

func TestDeadlineIsTheTimeLeft(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var got []string
		p, _ := startFake(t, nil, func(f *far) {
			f.each(func(m message) {
				got = append(got, string(m.params.Get("deadline_ms")))
				f.answer(m.id, `{}`)
			})
		})
		require.NoError(t, p.ready(t.Context()))
		_, err := p.Intercept(t.Context(), toolCall(5*time.Second))
		require.NoError(t, err)
		chain, cancel := context.WithTimeout(t.Context(), 1200*time.Millisecond)
		defer cancel()
		_, err = p.Intercept(chain, toolCall(5*time.Second))
		require.NoError(t, err)
		require.Equal(t, []string{"5000", "1200"}, got)
	})
}

func TestTimedOutCallKeepsItsPlace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, seen := startFake(t, nil, func(f *far) {
			f.each(func(m message) {
				if m.id != "" {
					time.Sleep(1500 * time.Millisecond)
					f.answer(m.id, `{}`)
				}
			})
		})
		require.NoError(t, p.ready(t.Context()))
		begin := time.Now()
		_, err := p.Intercept(t.Context(), toolCall(time.Second))
		wantOutcome(t, err, protocol.OutcomeTimeout, "no answer within 1s")
		require.Equal(t, time.Second, time.Since(begin))
		synctest.Wait()
		require.Equal(t, Degraded, p.status().State)
		require.Equal(t, 1, p.status().InFlight)

		_, err = p.Intercept(t.Context(), toolCall(200*time.Millisecond))
		wantOutcome(t, err, protocol.OutcomeOverloaded, "1 other calls (max_in_flight) for 200ms")
		require.Equal(t, 1200*time.Millisecond, time.Since(begin))

		_, err = p.Intercept(t.Context(), toolCall(2*time.Second))
		require.NoError(t, err, "the late answer freed the place")
		require.Equal(t, 3*time.Second, time.Since(begin))
		s := p.status()
		require.Equal(t, map[string]int64{"late_reply": 1}, s.Noise)
		require.Equal(t, 0, s.InFlight)
		require.Equal(t, 0, s.Restarts)
		wantStates(t, seen, Ready, Degraded, Ready)
	})
}

func TestStuckChildIsRestarted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, seen := startFake(t, nil, func(f *far) {
			f.each(func(m message) {
				if f.number > 1 {
					f.answer(m.id, `{"reason":"alive"}`)
				}
			})
		})
		require.NoError(t, p.ready(t.Context()))
		_, err := p.Intercept(t.Context(), toolCall(5*time.Second))
		wantOutcome(t, err, protocol.OutcomeTimeout)
		time.Sleep(2*time.Second - 1)
		require.Equal(t, Degraded, p.status().State)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.Equal(t, Backoff, p.status().State)
		require.Equal(t, "all of its 1 places (max_in_flight) were held by calls without an answer for 2s", p.status().LastError)
		_, err = p.Intercept(t.Context(), toolCall(5*time.Second))
		wantOutcome(t, err, protocol.OutcomeStarting, "all of its 1 places")
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		d, err := p.Intercept(t.Context(), toolCall(5*time.Second))
		require.NoError(t, err)
		require.Equal(t, "alive", d.Reason)
		require.Equal(t, 1, p.status().Restarts)
		wantStates(t, seen, Ready, Degraded, Stopping, Backoff, Starting, Ready)
	})
}

func TestThreeTimeoutsInARow(t *testing.T) {
	for name, c := range map[string]struct{ line, want string }{
		"silent":     {"", "3 calls in a row got no answer in time"},
		"strange id": {`{"jsonrpc":"2.0","id":0,"result":{}}`, "3 calls in a row got no answer in time; 3 answers had an id that was not asked: a hook must answer with the id of the request as it was sent"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				p, _ := startFake(t, func(j *job) { j.maxInFlight = 8 }, func(f *far) {
					f.each(func(m message) {
						switch {
						case m.id == "":
						case m.params.Get("call_id") != nil:
							f.answer(m.id, "{}")
						case c.line != "":
							f.write("%s", c.line)
						}
					})
				})
				require.NoError(t, p.ready(t.Context()))
				fine := toolCall(time.Second)
				fine.CallID = "fine"
				for range 2 {
					for range 2 {
						_, err := p.Intercept(t.Context(), toolCall(time.Second))
						wantOutcome(t, err, protocol.OutcomeTimeout)
					}
					_, err := p.Intercept(t.Context(), fine)
					require.NoError(t, err)
				}
				require.Equal(t, 0, p.status().Restarts, "an answer between them")
				for range 3 {
					_, err := p.Intercept(t.Context(), toolCall(time.Second))
					wantOutcome(t, err, protocol.OutcomeTimeout)
				}
				synctest.Wait()
				require.Contains(t, p.status().LastError, strings.Replace(c.want, "; 3 answers", "; 7 answers", 1))
			})
		})
	}
}

func TestCallerThatLeaves(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var cancelled []string
		p, seen := startFake(t, nil, func(f *far) {
			f.each(func(m message) {
				if m.id == "" {
					cancelled = append(cancelled, m.method)
					return
				}
				go func() {
					time.Sleep(4 * time.Second)
					f.answer(m.id, `{}`)
				}()
			})
		})
		require.NoError(t, p.ready(t.Context()))
		gone := errors.New("the agent went away")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(100*time.Millisecond, func() { cancel(gone) })
		begin := time.Now()
		_, err := p.Intercept(ctx, toolCall(5*time.Second))
		require.ErrorIs(t, err, gone)
		require.Equal(t, 100*time.Millisecond, time.Since(begin))
		synctest.Wait()
		require.Equal(t, []string{"$/cancelRequest"}, cancelled)
		require.Equal(t, Ready, p.status().State, "its time is not over")
		require.Equal(t, 1, p.status().InFlight)

		// It works for 4 s, which is its right, and is not restarted for it.
		_, err = p.Intercept(t.Context(), toolCall(5*time.Second))
		require.NoError(t, err)
		require.Equal(t, 8*time.Second, time.Since(begin))
		wantStates(t, seen, Ready)

		ctx, cancel = context.WithCancelCause(t.Context())
		cancel(gone)
		_, err = p.Intercept(ctx, toolCall(5*time.Second))
		require.ErrorIs(t, err, gone)
		require.Equal(t, 0, p.status().InFlight, "it was never asked")
	})
}

func TestCancelledCallWithoutAnswerIsADebtLater(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, seen := startFake(t, nil, func(f *far) { f.each(func(message) {}) })
		require.NoError(t, p.ready(t.Context()))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := p.Intercept(ctx, toolCall(5*time.Second))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		time.Sleep(4*time.Second - 1) // 5 s since it was asked
		require.Equal(t, Ready, p.status().State)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.Equal(t, Degraded, p.status().State)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		wantStates(t, seen, Ready, Degraded, Stopping, Backoff)
	})
}

func TestQueueingIsNoReasonToFailOrToPass(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := startFake(t, nil, func(f *far) {
			f.each(func(m message) {
				time.Sleep(250 * time.Millisecond)
				f.answer(m.id, `{"reason":"seen"}`)
			})
		})
		require.NoError(t, p.ready(t.Context()))
		var wg sync.WaitGroup
		var served, refused atomic.Int64
		for range 12 {
			wg.Go(func() {
				d, err := p.Intercept(t.Context(), toolCall(time.Second))
				if err != nil {
					wantOutcome(t, err, protocol.OutcomeOverloaded)
					refused.Add(1)
				} else if d.Reason == "seen" {
					served.Add(1)
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, 12, served.Load()+refused.Load())
		require.GreaterOrEqual(t, served.Load(), int64(4))
		require.Equal(t, 0, p.status().Restarts)
	})
}

func TestCapacityIsTheEntrysOrTheHooks(t *testing.T) {
	for _, c := range []struct{ entry, hook, want int }{{0, 0, 1}, {0, 3, 3}, {2, 3, 2}} {
		bubble(t, func(t *testing.T) {
			p, _ := startFake(t, func(j *job) { j.maxInFlight = c.entry }, func(f *far) {
				if c.hook == 0 {
					f.greet(`{}`)
				} else {
					f.greet(fmt.Sprintf(`{"max_in_flight":%d}`, c.hook))
				}
				f.next()
			})
			require.NoError(t, p.ready(t.Context()))
			require.Equal(t, c.want, p.status().Capacity)
		})
	}
}

func TestCrashInTheMiddleOfACall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, seen := startFake(t, func(j *job) { j.maxInFlight = 3 }, func(f *far) {
			f.greet(`{}`)
			for range 3 {
				f.next()
			}
			f.end(child.Exit{Code: -1, Signal: "SIGSEGV"})
		})
		require.NoError(t, p.ready(t.Context()))
		var wg sync.WaitGroup
		begin := time.Now()
		for range 3 {
			wg.Go(func() {
				_, err := p.Intercept(t.Context(), toolCall(5*time.Second))
				wantOutcome(t, err, protocol.OutcomeCrash, "it was killed by SIGSEGV")
			})
		}
		wg.Wait()
		require.Less(t, time.Since(begin), 50*time.Millisecond)
		synctest.Wait()
		require.Equal(t, "it was killed by SIGSEGV", p.status().LastError)
		wantStates(t, seen, Ready, Stopping, Backoff)
	})
}

func TestHalfAnAnswerIsNoCrash(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := startFake(t, nil, func(f *far) {
			f.greet(`{}`)
			fmt.Fprintf(f.far, `{"jsonrpc":"2.0","id":%s,"result":{"action":"de`, f.next().id)
			f.end(child.Exit{Code: 1})
		})
		require.NoError(t, p.ready(t.Context()))
		_, err := p.Intercept(t.Context(), toolCall(5*time.Second))
		wantOutcome(t, err, protocol.OutcomeGarbage)
	})
}

func TestLineThatIsNotFinished(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := startFake(t, nil, func(f *far) {
			f.greet(`{}`)
			fmt.Fprintf(f.far, `{"jsonrpc":"2.0","id":%s,`, f.next().id)
			for f.next().method != "" {
			}
		})
		require.NoError(t, p.ready(t.Context()))
		_, err := p.Intercept(t.Context(), approval(60*time.Second))
		wantOutcome(t, err, protocol.OutcomeCrash)
		require.Contains(t, p.status().LastError, "it")
		synctest.Wait()
		require.Equal(t, "it did not finish a line in time", p.status().LastError)
	})
}

func TestStartsThatFail(t *testing.T) {
	bubble(t, func(t *testing.T) {
		begin := time.Now()
		var at []time.Duration
		p, seen := startFake(t, func(j *job) {
			good := j.start
			j.start = func(ctx context.Context) (program, error) {
				at = append(at, time.Since(begin))
				if len(at) <= 6 {
					return nil, &child.StartError{Op: "run", Path: "/secret/gate.py", Err: errors.New("permission denied"), Hint: "make it executable: chmod +x /secret/gate.py"}
				}
				return good(ctx)
			}
		}, func(f *far) { f.each(func(m message) { f.answer(m.id, `{}`) }) })

		err := p.ready(t.Context())
		require.EqualError(t, err, "run /secret/gate.py: permission denied; make it executable: chmod +x /secret/gate.py")
		_, err = p.Intercept(t.Context(), toolCall(time.Second))
		wantOutcome(t, err, protocol.OutcomeSpawnFailed, "it could not be started: permission denied")
		require.NotContains(t, err.Error(), "secret", "paths are not for agents")

		time.Sleep(10 * time.Second)
		synctest.Wait()
		ms := time.Millisecond
		require.Equal(t, []time.Duration{0, 100 * ms, 300 * ms, 700 * ms, 1500 * ms}, at)
		require.Equal(t, Failed, p.status().State)
		require.Equal(t, 4, p.status().Restarts)
		asked := time.Now()
		_, err = p.Intercept(t.Context(), toolCall(5*time.Second))
		wantOutcome(t, err, protocol.OutcomeBreakerOpen, "5 times in a minute", "permission denied")
		require.Zero(t, time.Since(asked))
		require.ErrorContains(t, p.ready(t.Context()), "chmod +x")

		time.Sleep(60 * time.Second) // a probe fails
		synctest.Wait()
		require.Len(t, at, 6)
		require.Equal(t, 61500*ms, at[5])
		require.Equal(t, Failed, p.status().State)
		time.Sleep(60 * time.Second) // a probe succeeds
		synctest.Wait()
		require.Equal(t, Ready, p.status().State)
		_, err = p.Intercept(t.Context(), toolCall(time.Second))
		require.NoError(t, err)
		wantStates(t, seen, Backoff, Starting, Backoff, Starting, Backoff, Starting, Backoff, Starting, Failed, Ready)
	})
}

// crashAfter greets and ends after d.
func crashAfter(d time.Duration) func(f *far) {
	return func(f *far) {
		f.greet(`{}`)
		select {
		case <-time.After(d):
		case <-f.done:
		}
		f.end(child.Exit{Code: 1})
	}
}

func TestCrashLoopOpensTheBreaker(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := startFake(t, nil, crashAfter(100*time.Millisecond))
		time.Sleep(5 * time.Second)
		s := p.status()
		require.Equal(t, Failed, s.State)
		require.Equal(t, 4, s.Restarts)
		begin := time.Now()
		_, err := p.Approve(t.Context(), approval(time.Minute))
		wantOutcome(t, err, protocol.OutcomeBreakerOpen, "it ended with exit status 1")
		require.Zero(t, time.Since(begin))

		// Each probe that ends badly costs one minute, not five more runs.
		time.Sleep(10 * time.Minute)
		require.Equal(t, Failed, p.status().State)
		require.InDelta(t, 14, p.status().Restarts, 1)
	})
}

func TestSlowCrashLoopOnlyWaits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := startFake(t, nil, crashAfter(20*time.Second))
		time.Sleep(10 * time.Minute)
		require.NotEqual(t, Failed, p.status().State, "never five bad runs in a minute")
		require.Less(t, p.status().Restarts, 20, "the pauses have grown")
	})
}

func TestLongRunOrAnswerForgives(t *testing.T) {
	for name, play := range map[string]func(f *far){
		"a minute up": crashAfter(61 * time.Second),
		"one answer": func(f *far) {
			f.greet(`{}`)
			f.answer(f.next().id, `{}`)
			f.end(child.Exit{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				p, _ := startFake(t, nil, play)
				for range 20 {
					require.NoError(t, p.ready(t.Context()))
					if name == "one answer" {
						_, err := p.Intercept(t.Context(), toolCall(time.Second))
						require.NoError(t, err)
					} else {
						time.Sleep(61 * time.Second)
					}
					synctest.Wait()
					require.Equal(t, Backoff, p.status().State)
					time.Sleep(100 * time.Millisecond)
					synctest.Wait()
				}
				require.Equal(t, 20, p.status().Restarts)
			})
		})
	}
}

func TestUnreadableAnswersAreNoGoodRun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := startFake(t, nil, func(f *far) {
			f.greet(`{}`)
			f.answer(f.next().id, `{"action":"alow"}`)
			f.end(child.Exit{})
		})
		for range 5 {
			require.NoError(t, p.ready(t.Context()))
			_, err := p.Intercept(t.Context(), toolCall(time.Second))
			wantOutcome(t, err, protocol.OutcomeBadAnswer)
			time.Sleep(3 * time.Second)
		}
		require.Equal(t, Failed, p.status().State)
	})
}

func TestFloodsEndTheRun(t *testing.T) {
	times := func(n int, line string) func(f *far) {
		return func(f *far) {
			f.each(func(m message) {
				switch m.method {
				case "hook.event":
					go func() {
						for range n {
							f.write("%s", line)
						}
					}()
				case "hook.before_tool":
					f.answer(m.id, "{}")
				}
			})
		}
	}
	for name, c := range map[string]struct {
		play   func(f *far)
		want   string // "": it lives on
		killed bool
		noise  string
	}{
		"19 unreadable lines":   {times(19, "oops"), "", false, "garbage"},
		"20 unreadable lines":   {times(20, "oops"), "it wrote 20 unreadable lines within 1m0s", false, "garbage"},
		"2 long lines":          {times(2, strings.Repeat("x", 2000)), "", false, "oversize"},
		"3 long lines":          {times(3, strings.Repeat("x", 2000)), "it wrote 3 lines in a row that are too long", false, "oversize"},
		"99 requests":           {times(99, `{"jsonrpc":"2.0","id":1,"method":"x"}`), "", false, "request_from_peer"},
		"100 requests":          {times(100, `{"jsonrpc":"2.0","id":1,"method":"x"}`), "it sent 100 requests within 1m0s, and hookd serves none", true, "request_from_peer"},
		"1000 notifications":    {times(1000, `{"jsonrpc":"2.0","method":"hook.progress"}`), "", false, "progress_dropped"},
		"1001 notifications":    {times(1001, `{"jsonrpc":"2.0","method":"hook.progress"}`), "it sent more than 1000 notifications in a second", true, "notification_flood"},
		"an answer to nothing":  {times(1, `{"jsonrpc":"2.0","id":999,"result":{}}`), "", false, "unknown_id"},
		"blank lines are quiet": {times(50, ""), "", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var first atomic.Pointer[far]
				p, _ := startFake(t, func(j *job) { j.limits.MaxMessageBytes = 1024 }, func(f *far) {
					first.CompareAndSwap(nil, f)
					c.play(f)
				})
				require.NoError(t, p.ready(t.Context()))
				// It may be over before this returns.
				_ = p.Observe(t.Context(), &hook.Event{Event: &protocol.Event{Kind: "turn_end"}})
				synctest.Wait()
				s := p.status()
				require.Equal(t, c.want, s.LastError)
				require.Equal(t, c.killed, first.Load().killed.Load())
				if c.noise != "" {
					require.NotZero(t, s.Noise[c.noise], "%v", s.Noise)
				}
				time.Sleep(time.Second)
				_, err := p.Intercept(t.Context(), toolCall(time.Second))
				require.NoError(t, err, "it lives, or lives again")
			})
		})
	}
}

func TestDuplicateAnswerEndsTheRunAfterItsCalls(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, seen := startFake(t, func(j *job) { j.maxInFlight = 2 }, func(f *far) {
			f.greet(`{}`)
			slow, quick := f.next(), f.next()
			f.answer(quick.id, `{"reason":"first"}`)
			f.answer(quick.id, `{"action":"deny"}`)
			time.Sleep(time.Second)
			f.answer(slow.id, `{"reason":"slow"}`)
			f.next()
		})
		require.NoError(t, p.ready(t.Context()))
		done := make(chan string)
		go func() {
			d, _ := p.Intercept(t.Context(), toolCall(5*time.Second))
			done <- d.Reason
		}()
		synctest.Wait()
		d, err := p.Intercept(t.Context(), toolCall(5*time.Second))
		require.NoError(t, err)
		require.Equal(t, "first", d.Reason)
		synctest.Wait()
		require.Equal(t, Stopping, p.status().State)
		_, err = p.Intercept(t.Context(), toolCall(5*time.Second))
		wantOutcome(t, err, protocol.OutcomeStarting, "it answered a call twice")
		require.Equal(t, "slow", <-done)
		synctest.Wait()
		wantStates(t, seen, Ready, Stopping, Backoff)
		require.EqualValues(t, 1, p.status().Noise["duplicate_reply"])
	})
}

func TestDuplicateAnswerDoesNotWaitForever(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := startFake(t, func(j *job) { j.maxInFlight = 2 }, func(f *far) {
			f.greet(`{}`)
			f.next()
			quick := f.next()
			f.answer(quick.id, `{}`)
			f.answer(quick.id, `{}`)
			f.next()
		})
		require.NoError(t, p.ready(t.Context()))
		done := make(chan error)
		go func() {
			_, err := p.Approve(t.Context(), approval(24*time.Hour))
			done <- err
		}()
		synctest.Wait()
		begin := time.Now()
		_, err := p.Intercept(t.Context(), toolCall(5*time.Second))
		require.NoError(t, err)
		wantOutcome(t, <-done, protocol.OutcomeCrash, "it answered a call twice")
		require.Equal(t, time.Minute, time.Since(begin))
	})
}

func TestCloseLetsCallsFinish(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, seen := startFake(t, nil, func(f *far) {
			f.each(func(m message) {
				time.Sleep(time.Second)
				f.answer(m.id, `{"reason":"seen"}`)
			})
		})
		require.NoError(t, p.ready(t.Context()))
		done := make(chan string)
		go func() {
			d, _ := p.Intercept(t.Context(), toolCall(5*time.Second))
			done <- d.Reason
		}()
		synctest.Wait()
		go p.shut(t.Context())
		synctest.Wait()
		_, err := p.Intercept(t.Context(), toolCall(5*time.Second))
		wantOutcome(t, err, protocol.OutcomeCrash, "it was closed")
		require.Equal(t, "seen", <-done)
		synctest.Wait()
		s := p.status()
		require.Equal(t, Stopped, s.State)
		require.Empty(t, s.LastError, "that is no failure")
		require.ErrorIs(t, p.ready(t.Context()), errClosed)
		require.ErrorIs(t, p.renew(t.Context()), errClosed)
		wantStates(t, seen, Ready, Stopping, Stopped)
	})
}

func TestCloseInAHurry(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var first atomic.Pointer[far]
		p, _ := startFake(t, nil, func(f *far) {
			first.Store(f)
			f.each(func(m message) {})
		})
		require.NoError(t, p.ready(t.Context()))
		done := make(chan error)
		go func() {
			_, err := p.Intercept(t.Context(), toolCall(5*time.Second))
			done <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		go p.shut(ctx)
		wantOutcome(t, <-done, protocol.OutcomeCrash, "it was closed")
		synctest.Wait()
		require.Equal(t, time.Second, time.Since(begin))
		require.True(t, first.Load().killed.Load())
		require.Equal(t, Stopped, p.status().State)
	})
}

func TestCloseWhileItStartsOrWaits(t *testing.T) {
	for name, c := range map[string]struct {
		play func(f *far)
		at   time.Duration
	}{
		"greeting": {func(f *far) { f.next(); f.next() }, 0},
		"pause":    {func(f *far) { f.greet(`{"ok":false}`) }, 50 * time.Millisecond},
		"failed":   {func(f *far) { f.greet(`{"ok":false}`) }, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				p, _ := startFake(t, nil, c.play)
				time.Sleep(c.at)
				synctest.Wait()
				begin := time.Now()
				p.shut(t.Context())
				require.Zero(t, time.Since(begin))
				require.Equal(t, Stopped, p.status().State)
			})
		})
	}
}

func TestRestartOnRequest(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, seen := startFake(t, nil, func(f *far) {
			f.each(func(m message) {
				time.Sleep(time.Second)
				f.answer(m.id, fmt.Sprintf(`{"reason":"run %d"}`, f.number))
			})
		})
		require.NoError(t, p.ready(t.Context()))
		done := make(chan string)
		go func() {
			d, _ := p.Intercept(t.Context(), toolCall(5*time.Second))
			done <- d.Reason
		}()
		synctest.Wait()
		begin := time.Now()
		go func() {
			require.NoError(t, p.renew(t.Context()))
			done <- "renewed"
		}()
		require.Equal(t, "run 1", <-done)
		require.Equal(t, "renewed", <-done)
		require.Equal(t, time.Second, time.Since(begin), "no pause")
		d, err := p.Intercept(t.Context(), toolCall(5*time.Second))
		require.NoError(t, err)
		require.Equal(t, "run 2", d.Reason)
		wantStates(t, seen, Ready, Stopping, Starting, Ready)
	})
}

func TestRestartOnRequestEndsAPause(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := startFake(t, nil, func(f *far) {
			if f.number <= 6 {
				f.greet(`{"ok":false,"reason":"not yet"}`)
				return
			}
			f.greet(`{}`)
			f.next()
		})
		time.Sleep(10 * time.Second)
		require.Equal(t, Failed, p.status().State)
		begin := time.Now()
		require.ErrorContains(t, p.renew(t.Context()), "not yet")
		require.Equal(t, Backoff, p.status().State, "the breaker is closed again")
		require.NoError(t, p.renew(t.Context()))
		require.Zero(t, time.Since(begin))
	})
}

func TestIdsOfRunsDiffer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var ids []string
		p, _ := startFake(t, nil, func(f *far) {
			f.greet(`{}`)
			m := f.next()
			ids = append(ids, m.id)
			f.answer(m.id, `{}`)
			f.end(child.Exit{})
		})
		for range 3 {
			require.NoError(t, p.ready(t.Context()))
			_, err := p.Intercept(t.Context(), toolCall(time.Second))
			require.NoError(t, err)
			time.Sleep(time.Second)
			synctest.Wait()
		}
		require.Equal(t, []string{"2", "4294967298", "8589934594"}, ids)
	})
}

func FuzzWhatAChildWrites(f *testing.F) {
	for _, text := range []string{
		`{"jsonrpc":"2.0","id":2,"result":{"action":"deny"}}`, `{"jsonrpc":"2.0","id":2,"error":{"code":1,"message":""}}`,
		`{"id":2,"result":null}` + "\n" + `{"id":2,"result":{}}`, `{"id":2,"result":{"action":"allow","action":"deny"}}`,
		`{"id":2,"method":"x"}`, `{"method":"hook.progress","params":{}}`, "\r\n\r\n[]\n", "{", `{"id":2,"result":{"call":{"tool":""}}}`, "\xff\x00",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		bubble(t, func(t *testing.T) {
			p, _ := startFake(t, func(j *job) { j.limits.MaxMessageBytes = 1024 }, func(f *far) {
				f.greet(`{}`)
				f.next()
				f.write("%s", text)
				for f.next().method != "" {
				}
			})
			require.NoError(t, p.ready(t.Context()))
			d, err := p.Intercept(t.Context(), toolCall(time.Second))
			if err == nil {
				return
			}
			require.Zero(t, d)
			failure, ok := errors.AsType[*hook.Failure](err)
			require.True(t, ok, "%v", err)
			require.True(t, failure.Outcome.Failed(), "%v", err)
		})
	})
}
