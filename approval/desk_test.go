package approval

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

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

func TestTicketCarriesWhoAndWhat(t *testing.T) {
	d := newDesk(t, Options{})
	a := ask(t, d, request(t, `{"tool":"bash","arguments":{ "n": 1.10, "command":"git push"},"call_id":"c-1",
		"meta":{"agent":"bot","session_id":"s-1","task_id":"t-1","user_id":"u-1","node_id":"n-1","cwd":"/repo","model":"m"},"ask":{"reason":"publishes","by":"gate"}}`))
	got := ticket(t, d)
	require.Regexp(t, `^[a-z]{4}-[a-z]{4}-\d\d$`, got.ID)
	require.Equal(t, time.Minute, got.Limit())
	require.Equal(t, `{ "n": 1.10, "command":"git push"}`, string(got.Arguments))
	want := Ticket{
		ID: got.ID, Digest: request(t, `{"tool":"bash","arguments":{"n":1.10,"command":"git push"}}`).Digest(), Tool: "bash", Arguments: got.Arguments,
		Message: "publishes", AskedBy: "gate", Agent: "bot", PID: 7, UID: 1000,
		Session: "s-1", Task: "t-1", User: "u-1", Node: "n-1", CWD: "/repo", Model: "m", CallID: "c-1", Opened: got.Opened, Expires: got.Expires,
	}
	require.Equal(t, want, got)
	a.cancel(nil)
	_, err := a.wait()
	require.ErrorIs(t, err, context.Canceled)
}

func TestPersonAnswers(t *testing.T) {
	for _, c := range []struct {
		answer Answer
		want   protocol.Approval
	}{
		{Answer{Approve: true, By: ann}, protocol.Approval{Approved: true, By: "ann (uid 1000)"}},
		{Answer{Approve: true, Reason: "fine", By: ann}, protocol.Approval{Approved: true, Reason: "fine", By: "ann (uid 1000)"}},
		{Answer{Reason: "not today", By: Ruler{UID: 0}}, protocol.Approval{Reason: "not today", By: "uid 0"}},
	} {
		seen, journal := &events{}, &Memory{}
		d := newDesk(t, Options{Publish: seen.publish, Journal: journal})
		a := ask(t, d, request(t, push))
		open := ticket(t, d)
		c.answer.Digest = open.Digest
		done, err := d.Answer(open.ID, c.answer)
		require.NoError(t, err)
		require.Equal(t, c.want.Approved, done.Resolution.Approved)
		got, err := a.wait()
		require.NoError(t, err)
		require.Equal(t, c.want, got)
		require.Empty(t, d.Open())

		require.Equal(t, []string{
			fmt.Sprintf(`approval_requested {"ticket":%q,"tool":"bash","arguments":{"command":"git push"},"message":"publishes"}`, open.ID),
			fmt.Sprintf(`approval_resolved {"ticket":%q,"approved":%t,"by":%q,"reason":%q}`, open.ID, c.want.Approved, c.want.By, c.want.Reason),
		}, seen.all())
		entries := journal.Entries()
		require.Len(t, entries, 1)
		require.Equal(t, HowAnswered, entries[0].Resolution.How)

		_, err = d.Answer(open.ID, Answer{Approve: true, By: ann})
		require.ErrorContains(t, err, "too late: "+c.want.By+" said ")
		require.ErrorAs(t, err, new(*LateError))
	}
}

func TestAnswerThatDoesNotCount(t *testing.T) {
	journal := &Memory{}
	d := newDesk(t, Options{Journal: journal, Guard: func(t *Ticket, by Ruler) error {
		if by.PID == t.PID {
			return errors.New("the agent can't answer itself")
		}
		return nil
	}})
	a := ask(t, d, request(t, `{"tool":"bash","arguments":{}}`))
	open := ticket(t, d)
	for _, c := range []struct {
		answer Answer
		want   string
	}{
		{Answer{Approve: true, By: Ruler{UID: 1000, PID: 7}}, "refused: the agent can't answer itself"},
		{Answer{Approve: true, Digest: "00", By: ann}, "refused: the call is another than the one that you were shown"},
		{Answer{Approve: true, Scope: ForSession, By: ann}, "the agent names no session"},
		{Answer{Approve: true, Scope: "ever", By: ann}, `unknown scope "ever"`},
	} {
		_, err := d.Answer(open.ID, c.answer)
		require.ErrorContains(t, err, c.want)
	}
	_, err := d.Answer(open.ID[:len(open.ID)-1], Answer{Approve: true, By: ann})
	require.ErrorContains(t, err, fmt.Sprintf("there is no open approval %q (did you mean %q?)", open.ID[:len(open.ID)-1], open.ID))
	require.Len(t, d.Open(), 1, "it is still open")
	require.EqualValues(t, 2, d.Stats().Refused)
	entries := journal.Entries()
	require.Len(t, entries, 2)
	require.Equal(t, "the agent can't answer itself", entries[0].Refusal.Why)
	require.Equal(t, Ruler{UID: 1000, PID: 7}, entries[0].Refusal.By)
	a.cancel(nil)
	_, err = a.wait()
	require.Error(t, err)
}

func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := &events{}
		d := newDesk(t, Options{Publish: seen.publish})
		a := ask(t, d, request(t, push))
		synctest.Wait()
		id := d.Open()[0].ID
		time.Sleep(time.Minute - time.Nanosecond)
		synctest.Wait()
		require.Len(t, d.Open(), 1)
		time.Sleep(time.Nanosecond)
		_, err := a.wait()
		var failure *hook.Failure
		require.ErrorAs(t, err, &failure)
		require.Equal(t, protocol.OutcomeTimeout, failure.Outcome)
		require.Contains(t, seen.all()[1], `"approved":false,"by":"","reason":"approval timed out (60 s)"`)
		_, err = d.Answer(id, Answer{Approve: true, By: ann})
		require.ErrorContains(t, err, "too late: approval timed out (60 s)")
		require.EqualValues(t, 1, d.Stats().TimedOut)
	})
}

// A whole day is no special case.
func TestTimeoutOfADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, Options{})
		req := request(t, push)
		req.Timeout = 24 * time.Hour
		a := ask(t, d, req)
		time.Sleep(24*time.Hour - time.Second)
		_, err := d.Answer(d.Open()[0].ID, Answer{Approve: true, By: ann})
		require.NoError(t, err)
		got, err := a.wait()
		require.NoError(t, err)
		require.True(t, got.Approved)
	})
}

// The agent's own deadline ends a ticket earlier, and is what people see.
func TestDeadlineOfTheAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, Options{})
		near := errors.New("the agent's deadline came near")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Second, near)
		defer cancel()
		a := askFrom(ctx, d, request(t, push))
		synctest.Wait()
		open := d.Open()[0]
		require.Equal(t, 5*time.Second, open.Limit())
		_, err := a.wait()
		require.ErrorIs(t, err, near)
		_, err = d.Answer(open.ID, Answer{Approve: true, By: ann})
		require.ErrorContains(t, err, "too late: approval timed out (5 s)")
	})
}

// Timers stand still while the machine sleeps; the ticket's time does not.
func TestSleepOfTheMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slept atomic.Int64
		d := newDesk(t, Options{Slept: func() time.Duration { return time.Duration(slept.Load()) }})
		a := ask(t, d, request(t, push))
		time.Sleep(time.Second + time.Millisecond)
		id := d.Open()[0].ID
		slept.Store(int64(10 * time.Minute))
		_, err := d.Answer(id, Answer{Approve: true, By: ann})
		require.ErrorContains(t, err, "too late: approval timed out (60 s)")
		_, err = a.wait()
		require.Error(t, err)

		b := ask(t, d, request(t, push)) // slept before it came
		time.Sleep(30 * time.Second)
		require.Len(t, d.Open(), 1)
		slept.Store(int64(11 * time.Minute))
		start := time.Now()
		_, err = b.wait()
		require.Error(t, err)
		require.LessOrEqual(t, time.Since(start), wakeEvery)
	})
}

func TestNobodyWaitsAnyMore(t *testing.T) {
	for _, c := range []struct {
		cause  error
		how    How
		reason string
	}{
		{errors.New("connection closed"), HowAgentGone, "the agent went away"},
		{errShutdown, HowShutdown, errShutdown.Error()},
	} {
		seen, journal := &events{}, &Memory{}
		d := newDesk(t, Options{Publish: seen.publish, Journal: journal})
		a := ask(t, d, request(t, push))
		id := ticket(t, d).ID
		a.cancel(c.cause)
		_, err := a.wait()
		require.ErrorIs(t, err, c.cause)
		require.Contains(t, seen.all()[1], fmt.Sprintf(`"approved":false,"by":"","reason":%q`, c.reason))
		require.Equal(t, c.how, journal.Entries()[0].Resolution.How)
		_, err = d.Answer(id, Answer{Approve: true, By: ann})
		require.ErrorContains(t, err, "too late: "+c.reason)
		require.EqualValues(t, 1, d.Stats().Gone)

		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(c.cause)
		_, err = d.Ask(ctx, request(t, push), nil)
		require.ErrorIs(t, err, c.cause)
		require.EqualValues(t, 1, d.Stats().Opened, "nobody is asked for a call that is over")
	}
}

func TestCancelledSession(t *testing.T) {
	var cancelled atomic.Bool
	d := newDesk(t, Options{Cancelled: func(t *Ticket) (string, bool) {
		return "session cancelled: enough", cancelled.Load() && t.Session == "s-1"
	}})
	a := ask(t, d, request(t, push))
	other := ask(t, d, request(t, `{"tool":"bash","arguments":{},"meta":{"session_id":"s-2"}}`))
	tickets(t, d, 2)
	cancelled.Store(true)
	n := d.DenyWhere(func(t *Ticket) bool { return t.Session == "s-1" }, "session cancelled: enough", ann)
	require.Equal(t, 1, n)
	got, err := a.wait()
	require.NoError(t, err)
	require.Equal(t, protocol.Approval{Reason: "session cancelled: enough", By: "ann (uid 1000)"}, got)
	got, err = d.Ask(t.Context(), request(t, push), nil)
	require.NoError(t, err)
	require.Equal(t, protocol.Approval{Reason: "session cancelled: enough"}, got)
	require.Len(t, d.Open(), 1, "other sessions go on")
	other.cancel(nil)
	_, err = other.wait()
	require.Error(t, err)
}

// The session is cancelled after the call has looked and before it is open.
func TestCancelledWhileItOpens(t *testing.T) {
	var cancelled atomic.Bool
	d := newDesk(t, Options{
		Cancelled: func(*Ticket) (string, bool) { return "cancelled", cancelled.Load() },
		Journal:   &faulty{opened: func() error { cancelled.Store(true); return nil }},
	})
	got, err := d.Ask(t.Context(), request(t, push), nil)
	require.NoError(t, err)
	require.Equal(t, protocol.Approval{Reason: "cancelled"}, got)
	require.Empty(t, d.Open())
}

func TestDryRunAsksNobody(t *testing.T) {
	d := newDesk(t, Options{})
	req := request(t, `{"tool":"bash","arguments":{},"dry_run":true}`)
	got, err := d.Ask(t.Context(), req, nil)
	require.NoError(t, err)
	require.Equal(t, protocol.Approval{Reason: reasonDryRun}, got)
	require.Zero(t, d.Stats().Opened)
}

func TestNoRoomIsANo(t *testing.T) {
	d := newDesk(t, Options{MaxOpen: 2})
	a, b := ask(t, d, request(t, push)), ask(t, d, request(t, push))
	tickets(t, d, 2)
	_, err := d.Ask(t.Context(), request(t, push), nil)
	var failure *hook.Failure
	require.ErrorAs(t, err, &failure)
	require.Equal(t, protocol.OutcomeOverloaded, failure.Outcome)
	require.Equal(t, "2 approvals are open already", failure.Detail)
	for _, x := range []*asked{a, b} {
		x.cancel(nil)
		_, err = x.wait()
		require.Error(t, err)
	}
	require.EqualValues(t, 1, d.Stats().Overloaded)
}

// faulty is a journal whose disk can be full.
type faulty struct {
	Memory
	opened, resolved, made func() error
}

func (f *faulty) Opened(t *Ticket) error { return f.first(f.opened, f.Memory.Opened(t)) }

func (f *faulty) Resolved(t *Ticket, r *Resolution) error {
	return f.first(f.resolved, f.Memory.Resolved(t, r))
}

func (f *faulty) RuleMade(r *Rule) error { return f.first(f.made, f.Memory.RuleMade(r)) }

func (*faulty) first(fail func() error, err error) error {
	if fail != nil {
		return fail()
	}
	return err
}

var errFull = errors.New("disk full")

func full() error { return errFull }

func TestNoRecordNoYes(t *testing.T) {
	d := newDesk(t, Options{Journal: &faulty{opened: full}})
	_, err := d.Ask(t.Context(), request(t, push), nil)
	require.ErrorIs(t, err, errFull)
	require.ErrorContains(t, err, "the approval could not be recorded")
	require.Zero(t, d.Stats().Open)

	seen := &events{}
	d = newDesk(t, Options{Journal: &faulty{resolved: full}, Publish: seen.publish})
	a := ask(t, d, request(t, push))
	_, err = d.Answer(ticket(t, d).ID, Answer{Approve: true, Scope: Always, By: ann})
	require.EqualError(t, err, "the answer could not be recorded, so the call was denied")
	require.Empty(t, d.Rules(), "what was not said makes no rule")
	got, err := a.wait()
	require.NoError(t, err)
	require.Equal(t, protocol.Approval{Reason: "the answer could not be recorded", By: "ann (uid 1000)"}, got)
	require.Contains(t, seen.all()[1], `"approved":false`)

	// A no needs no record.
	a = ask(t, d, request(t, push))
	_, err = d.Answer(ticket(t, d).ID, Answer{Reason: "no", By: ann})
	require.NoError(t, err)
	got, err = a.wait()
	require.NoError(t, err)
	require.Equal(t, "no", got.Reason)
}

// What was open when hookd was killed is a no when it comes back.
func TestAbandonedTickets(t *testing.T) {
	journal := &Memory{}
	d := newDesk(t, Options{Journal: journal})
	var calls []*asked
	for range 3 {
		calls = append(calls, ask(t, d, request(t, push)))
	}
	tickets(t, d, 3)
	after := newDesk(t, Options{Journal: journal})
	require.Empty(t, after.Open())
	entries := journal.Entries()
	require.Len(t, entries, 3)
	for _, e := range entries {
		require.Equal(t, HowAbandoned, e.Resolution.How)
		require.False(t, e.Resolution.Approved)
		require.Equal(t, "hookd ended before anybody answered", e.Resolution.Reason)
	}
	for _, c := range calls {
		c.cancel(nil)
		_, err := c.wait()
		require.Error(t, err)
	}
}

type unreadable struct{ Memory }

func (*unreadable) Load() (*Saved, error) { return nil, errFull }

func TestUnreadableJournal(t *testing.T) {
	d, err := NewDesk(Options{Journal: &unreadable{}})
	require.ErrorIs(t, err, errFull)
	require.NotNil(t, d)
	require.Empty(t, d.Rules())
}

// Yes, no, timeout, disconnect and a cancelled session, all at once: one of
// them resolves the ticket, and the agent, the journal and the observers are
// told the same.
func TestOneResolution(t *testing.T) {
	for range 200 {
		seen, journal := &events{}, &Memory{}
		d := newDesk(t, Options{Publish: seen.publish, Journal: journal})
		req := request(t, push)
		req.Timeout = 2 * time.Millisecond
		a := ask(t, d, req)
		var id string
		for open := d.Open(); id == ""; open = d.Open() {
			if len(open) > 0 {
				id = open[0].ID
			} else if d.Stats().Opened > 0 {
				break // timed out already
			}
		}
		var yes, no atomic.Int64
		var wg sync.WaitGroup
		start := make(chan struct{})
		race := func(f func()) { wg.Go(func() { <-start; f() }) }
		for range 2 {
			race(func() {
				if _, err := d.Answer(id, Answer{Approve: true, By: ann}); err == nil {
					yes.Add(1)
				}
			})
			race(func() {
				if _, err := d.Answer(id, Answer{By: ann}); err == nil {
					no.Add(1)
				}
			})
		}
		race(func() { a.cancel(errors.New("gone")) })
		race(func() { d.DenyWhere(func(*Ticket) bool { return true }, "cancelled", ann) })
		close(start)
		wg.Wait()
		got, err := a.wait()
		require.LessOrEqual(t, yes.Load()+no.Load(), int64(1))
		require.Equal(t, yes.Load() == 1, err == nil && got.Approved)
		entries := journal.Entries()
		require.Len(t, entries, 1)
		require.Equal(t, got.Approved, entries[0].Resolution.Approved)
		require.Len(t, seen.all(), 2)
		require.Contains(t, seen.all()[1], fmt.Sprintf(`"approved":%t`, got.Approved))
		require.Empty(t, d.Open())
	}
}

func TestEndedTicketsAreForgotten(t *testing.T) {
	d := newDesk(t, Options{})
	var first string
	for range maxEnded + 10 {
		a := ask(t, d, request(t, push))
		id := ticket(t, d).ID
		if first == "" {
			first = id
		}
		_, err := d.Answer(id, Answer{By: ann})
		require.NoError(t, err)
		_, err = a.wait()
		require.NoError(t, err)
	}
	require.Len(t, d.ended, maxEnded)
	_, err := d.Answer(first, Answer{Approve: true, By: ann})
	require.ErrorContains(t, err, "there is no open approval")
}
