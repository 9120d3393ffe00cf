package mount

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/hookd/hookd/child"
	"github.com/hookd/hookd/config"
	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// judged is a fake hook with a canary that wants a deny. It answers canaries
// and calls with what the test sets.
type judged struct {
	*Canary
	process  *process
	guarded  *hook.Registration
	canaries atomic.Int64
	calls    atomic.Int64
	changes  atomic.Int64

	mu           sync.Mutex
	canary, call string        // results
	hold         chan struct{} // answers wait for it when it is set
}

func (j *judged) say(canary, call string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.canary, j.call = canary, call
}

func (j *judged) play(f *far) {
	f.each(func(m message) {
		j.mu.Lock()
		answer, hold := j.call, j.hold
		if m.params.Get("dry_run") != nil {
			answer, hold = j.canary, nil
			j.canaries.Add(1)
		} else if m.id != "" {
			j.calls.Add(1)
		}
		j.mu.Unlock()
		switch {
		case m.id == "" || answer == "silence":
		case answer == "crash":
			f.end(child.Exit{Code: 1})
		case hold == nil:
			f.answer(m.id, answer)
		default:
			go func() { <-hold; f.answer(m.id, answer) }()
		}
	})
}

func canaryEntry() *config.Entry {
	e := processEntry("gate", "gate")
	req := toolCall(0)
	req.DryRun = true
	e.Canary = &config.Canary{Request: req, Expect: protocol.ActionDeny}
	return e
}

// tried starts a hook that answers its canaries with canary, and calls with
// call.
func tried(t *testing.T, canary, call string, edit func(*job)) *judged {
	j := &judged{canary: canary, call: call}
	e := canaryEntry()
	p, _ := startFake(t, edit, j.play)
	mounted := &Mounted{entry: e, key: e.ProcessKey(), process: p, roles: hook.Roles{Observer: p, Interceptor: p, Approver: p, Remote: true}}
	m := NewMounter(MounterOptions{})
	j.process, j.Canary = p, m.Canary(mounted, e, func(*Canary) { j.changes.Add(1) })
	t.Cleanup(j.Canary.Close)
	var err error
	j.guarded, err = mounted.Registration(e)
	require.NoError(t, err)
	require.NoError(t, j.Guard(j.guarded))
	return j
}

func (j *judged) intercept(t *testing.T) (protocol.Decision, error) {
	return j.guarded.Roles.Interceptor.Intercept(t.Context(), toolCall(5*time.Second))
}

const (
	deny = `{"action":"deny","reason":"bad"}`
	pass = `{"action":"continue"}`
)

// It is asked when the hook is ready, then each minute; a hook at work is asked
// when it is done.
func TestCanaryIsAskedWhenTheHookIsIdle(t *testing.T) {
	bubble(t, func(t *testing.T) {
		j := tried(t, deny, pass, func(j *job) { j.maxInFlight = 2 })
		require.NoError(t, j.First(t.Context()))
		synctest.Wait()
		require.EqualValues(t, 1, j.canaries.Load())
		require.Equal(t, CanaryStatus{OK: true, Expect: "deny", Got: "deny", At: time.Now()}, j.Status())
		time.Sleep(time.Minute - time.Second)
		synctest.Wait()
		require.EqualValues(t, 1, j.canaries.Load())
		time.Sleep(time.Second)
		synctest.Wait()
		require.EqualValues(t, 2, j.canaries.Load())

		// A call of ninety seconds, by way of a longer timeout.
		j.hold = make(chan struct{})
		done := make(chan error)
		go func() {
			_, err := j.guarded.Roles.Interceptor.Intercept(context.Background(), toolCall(time.Hour))
			done <- err
		}()
		time.Sleep(90 * time.Second)
		synctest.Wait()
		require.EqualValues(t, 2, j.canaries.Load(), "the hook is at work")
		close(j.hold)
		require.NoError(t, <-done)
		synctest.Wait()
		require.EqualValues(t, 3, j.canaries.Load(), "and is asked as soon as it is done")
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		require.EqualValues(t, 13, j.canaries.Load())

		// On demand it is asked at any time.
		require.NoError(t, j.Ask(t.Context()))
		require.EqualValues(t, 14, j.canaries.Load())
		require.Zero(t, j.changes.Load())
	})
}

// What holds a call back stands, all else does not.
func TestAnswersOfAHookThatFailsItsCanary(t *testing.T) {
	for name, c := range map[string]struct {
		call string
		want protocol.Outcome // "": it stands
	}{
		"continue":   {pass, protocol.OutcomeCanaryFailed},
		"nothing":    {`null`, protocol.OutcomeCanaryFailed},
		"modify":     {`{"action":"modify","call":{"tool":"ls"}}`, protocol.OutcomeCanaryFailed},
		"allow":      {`{"action":"allow"}`, protocol.OutcomeCanaryFailed},
		"respond":    {`{"action":"respond","result":{"for_llm":"x"}}`, protocol.OutcomeCanaryFailed},
		"inject":     {`{"action":"inject"}`, protocol.OutcomeCanaryFailed}, // no verb of before_tool
		"deny":       {deny, ""},
		"ask":        {`{"action":"ask","call":{"tool":"ls"},"state":{"a":1}}`, ""},
		"abort_turn": {`{"action":"abort_turn"}`, ""},
		"hard_abort": {`{"action":"hard_abort"}`, ""},
		"error":      {`{"action":"deny","Reason":1}`, protocol.OutcomeBadAnswer}, // as ever
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				j := tried(t, pass, c.call, nil)
				require.EqualError(t, j.First(t.Context()), "its canary expects deny at before_tool and got continue")
				d, err := j.intercept(t)
				if c.want != "" {
					wantOutcome(t, err, c.want)
					if c.want == protocol.OutcomeCanaryFailed {
						wantOutcome(t, err, c.want, "its canary expects deny at before_tool and got continue")
					}
					return
				}
				require.NoError(t, err)
				require.EqualValues(t, name, d.Action)
				require.Nil(t, d.Subject, "what it changes is not believed")
				require.Nil(t, d.State)
			})
		})
	}
}

// The same deny as a verb that the stage does not have would let the call pass.
func TestVerbOfAnotherStageIsNotBelieved(t *testing.T) {
	bubble(t, func(t *testing.T) {
		j := tried(t, pass, deny, nil)
		require.Error(t, j.First(t.Context()))
		after := toolCall(time.Second)
		after.Stage = protocol.NewStageTable().Stage(protocol.StageAfterTool)
		inner := interceptorFunc(func() (protocol.Decision, error) { return hook.Deny("x"), nil })
		_, err := (&guardedInterceptor{j.Canary, inner}).Intercept(t.Context(), after)
		wantOutcome(t, err, protocol.OutcomeCanaryFailed)
	})
}

func TestApprovalsOfAHookThatFailsItsCanary(t *testing.T) {
	bubble(t, func(t *testing.T) {
		j := tried(t, pass, `{"approved":true}`, nil)
		require.Error(t, j.First(t.Context()))
		_, err := j.guarded.Roles.Approver.Approve(t.Context(), approval(time.Second))
		wantOutcome(t, err, protocol.OutcomeCanaryFailed)
		j.say(pass, `{"approved":false,"reason":"no"}`)
		a, err := j.guarded.Roles.Approver.Approve(t.Context(), approval(time.Second))
		require.NoError(t, err)
		require.Equal(t, protocol.Approval{Reason: "no"}, a)
		j.say(deny, `{"approved":true}`)
		require.NoError(t, j.Ask(t.Context()))
		a, err = j.guarded.Roles.Approver.Approve(t.Context(), approval(time.Second))
		require.NoError(t, err)
		require.True(t, a.Approved)
	})
}

// It recovers by itself, also when it has so much to do that it is never idle.
func TestCanaryRecovers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		j := tried(t, pass, pass, func(j *job) { j.maxInFlight = 2 })
		require.Error(t, j.First(t.Context()))
		synctest.Wait()
		require.EqualValues(t, 1, j.changes.Load())
		require.False(t, j.Status().OK)
		j.say(deny, pass)
		j.hold = make(chan struct{})
		busy := make(chan error)
		go func() {
			_, err := j.guarded.Roles.Interceptor.Intercept(context.Background(), toolCall(time.Hour))
			busy <- err
		}()
		time.Sleep(time.Minute)
		synctest.Wait()
		require.True(t, j.Status().OK)
		require.EqualValues(t, 2, j.changes.Load())
		close(j.hold)
		require.NoError(t, <-busy)
		j.hold = nil
		_, err := j.intercept(t)
		require.NoError(t, err)
	})
}

// A new process is asked before anything it lets pass is believed.
func TestNewLifeIsAskedFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		j := tried(t, deny, pass, nil)
		require.NoError(t, j.First(t.Context()))
		j.say("silence", pass)
		require.NoError(t, j.process.renew(t.Context()))
		synctest.Wait()
		require.EqualValues(t, 2, j.canaries.Load())

		// The call finds the only place taken by a canary that gets no answer.
		j.process.mu.Lock()
		j.process.run.slots = make(chan struct{}, 2)
		j.process.mu.Unlock()
		began := time.Now()
		_, err := j.intercept(t)
		wantOutcome(t, err, protocol.OutcomeCanaryFailed, "got timeout (no answer within 5s)")
		require.Equal(t, 5*time.Second, time.Since(began), "it has waited for the canary")

		// What holds back is believed at once.
		j.say("silence", deny)
		require.NoError(t, j.process.renew(t.Context()))
		synctest.Wait()
		j.process.mu.Lock()
		j.process.run.slots = make(chan struct{}, 2)
		j.process.mu.Unlock()
		began = time.Now()
		d, err := j.intercept(t)
		require.NoError(t, err)
		require.Equal(t, protocol.ActionDeny, d.Action)
		require.Zero(t, time.Since(began))

		// Nobody waits longer than he wants to.
		j.say("silence", pass)
		impatient := errors.New("the chain's time is over")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, impatient)
		defer cancel()
		_, err = j.guarded.Roles.Interceptor.Intercept(ctx, toolCall(time.Minute))
		require.ErrorIs(t, err, impatient)
	})
}

// A hook that is not there has not answered wrongly: its policy holds.
func TestHookThatIsNotThereFailsNoCanary(t *testing.T) {
	bubble(t, func(t *testing.T) {
		j := tried(t, deny, pass, nil)
		require.NoError(t, j.First(t.Context()))
		j.say("crash", pass)
		require.NoError(t, j.Ask(t.Context()))
		s := j.Status()
		require.True(t, s.OK)
		require.Equal(t, "crash", s.Got)
		synctest.Wait()
		_, err := j.intercept(t)
		wantOutcome(t, err, protocol.OutcomeStarting)
		require.NoError(t, j.Ask(t.Context()), "it can't be asked at all now")
		require.Equal(t, "crash", j.Status().Got)
		j.say(pass, pass)
		time.Sleep(time.Second)
		require.False(t, j.Status().OK, "the next life is asked at once")
	})
}

// At a load only the right answer will do.
func TestFirstAnswerMustBeRight(t *testing.T) {
	for answer, want := range map[string]string{
		deny:                            "",
		pass:                            "its canary expects deny at before_tool and got continue",
		`{"action":"ask","reason":"?"}`: "its canary expects deny at before_tool and got ask (?)",
		`{"Action":"deny"}`:             "its canary expects deny at before_tool and got bad_answer (unknown member",
		"silence":                       "its canary expects deny at before_tool and got timeout (no answer within 5s)",
		"crash":                         "its canary expects deny at before_tool and got crash (it ended with exit status 1)",
	} {
		bubble(t, func(t *testing.T) {
			err := tried(t, answer, pass, nil).First(t.Context())
			if want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

func TestCanaryCloses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		j := tried(t, "silence", pass, nil)
		synctest.Wait() // in the midst of the first one
		began := time.Now()
		j.Close()
		require.Zero(t, time.Since(began))
		require.ErrorIs(t, j.First(t.Context()), errClosed)
		require.ErrorIs(t, j.Ask(t.Context()), errClosed)
	})
}

func TestGuardWantsTheStage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		j := tried(t, deny, pass, nil)
		require.EqualError(t, j.Guard(&hook.Registration{Name: "gate", Stages: []protocol.Stage{protocol.StageAfterTool}}),
			`hook "gate" is not asked at before_tool, where its canary is: it has left that stage out, or can't judge there`)
		require.NoError(t, j.First(t.Context()))
	})
}

// interceptorFunc is an in-process hook.
type interceptorFunc func() (protocol.Decision, error)

func (f interceptorFunc) Intercept(context.Context, *protocol.Request) (protocol.Decision, error) {
	return f()
}

// In-process hooks are tried too. One that hangs is called once.
func TestCanaryOfABuiltin(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var calls atomic.Int64
		release := make(chan struct{})
		behave := func() (protocol.Decision, error) { return hook.Deny("bad"), nil }
		e := canaryEntry()
		e.Source, e.Timeout = hook.InProcess, time.Second
		inner := interceptorFunc(func() (protocol.Decision, error) { calls.Add(1); return behave() })
		c := NewMounter(MounterOptions{Log: zap.NewNop()}).Canary(&Mounted{entry: e, roles: hook.Roles{Interceptor: inner}}, e, nil)
		defer c.Close()
		require.NoError(t, c.First(t.Context()))
		for want, does := range map[string]func() (protocol.Decision, error){
			"got continue":        func() (protocol.Decision, error) { return hook.Continue(), nil },
			"got panic (oh)":      func() (protocol.Decision, error) { panic("oh") },
			"got hook_error (no)": func() (protocol.Decision, error) { return hook.Deny("x"), fmt.Errorf("no") },
		} {
			behave = does
			require.ErrorContains(t, c.Ask(t.Context()), want)
		}
		behave = func() (protocol.Decision, error) { <-release; return hook.Deny("late"), nil }
		calls.Store(0)
		for range 3 {
			require.ErrorContains(t, c.Ask(t.Context()), "got timeout (no answer within 1s)")
		}
		require.EqualValues(t, 1, calls.Load())
		close(release)
		synctest.Wait()
		require.NoError(t, c.Ask(t.Context()))
	})
}
