package approval

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/protocol"
)

// rule makes a rule by answering the only open ticket.
func rule(t *testing.T, d *Desk, req *protocol.Request, a Answer) *Answered {
	t.Helper()
	call := ask(t, d, req)
	done, err := d.Answer(ticket(t, d).ID, a)
	require.NoError(t, err)
	require.Empty(t, done.Warning)
	got, err := call.wait()
	require.NoError(t, err)
	require.Equal(t, a.Approve, got.Approved)
	return done
}

// opens reports whether somebody is asked about a call.
func opens(t *testing.T, d *Desk, params string) bool {
	t.Helper()
	before := d.Stats().Opened
	a := ask(t, d, request(t, params))
	require.Eventually(t, func() bool {
		select {
		case <-a.done:
			return true
		default:
			return d.Stats().Opened > before
		}
	}, 10*time.Second, time.Millisecond)
	a.cancel(nil)
	_, _ = a.wait()
	return d.Stats().Opened > before
}

func TestRuleAnswersExactlyThisCall(t *testing.T) {
	const call = `{"tool":"bash","arguments":{"command":"git push"},"meta":{"agent":"bot","session_id":"s-1","cwd":"/repo"}}`
	other := func(old, new string) string { return strings.Replace(call, old, new, 1) }
	for _, c := range []struct {
		name        string
		call        string
		session     bool // whether a rule for the session answers it
		always      bool
		otherDigest bool
	}{
		{"the same", call, true, true, false},
		{"with other white space", other(`{"command":"git push"}`, `{ "command" : "git push" }`), true, true, false},
		{"in another session", other("s-1", "s-2"), false, true, false},
		{"without a session", other(`"session_id":"s-1",`, ``), false, true, false},
		{"with other arguments", other("git push", "git push -f"), false, false, true},
		{"with one more argument", other(`"git push"`, `"git push","force":true`), false, false, true},
		{"of another tool", other(`"bash"`, `"sh"`), false, false, true},
		{"in another folder", other("/repo", "/other"), false, false, false},
		{"by another agent", other("bot", "cat"), false, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.otherDigest, request(t, call).Digest() != request(t, c.call).Digest())
			for scope, answers := range map[Scope]bool{ForSession: c.session, Always: c.always} {
				d := newDesk(t, Options{})
				rule(t, d, request(t, call), Answer{Approve: true, Scope: scope, By: ann})
				require.Equal(t, !answers, opens(t, d, c.call), scope)
			}
			d := newDesk(t, Options{})
			rule(t, d, request(t, call), Answer{Approve: true, By: ann})
			require.True(t, opens(t, d, c.call), "an answer for once is used up")
		})
	}
}

func TestRuleOfAnotherUserDoesNotCount(t *testing.T) {
	d := newDesk(t, Options{})
	rule(t, d, request(t, push), Answer{Approve: true, Scope: Always, By: ann})
	for uid, asks := range map[int]bool{1000: false, 1001: true, 0: true} {
		before := d.Stats().Opened
		ctx, cancel := context.WithTimeout(WithAgent(t.Context(), &Agent{PID: 8, UID: uid}), 10*time.Millisecond)
		_, err := d.Ask(ctx, request(t, push), nil)
		cancel()
		require.Equal(t, asks, err != nil, uid)
		require.Equal(t, asks, d.Stats().Opened > before, uid)
	}
}

func TestRuleSaysWhoseItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, Options{})
		call := ask(t, d, request(t, push))
		synctest.Wait()
		done, err := d.Answer(d.Open()[0].ID, Answer{Approve: true, Reason: "fine", Scope: Always, By: Ruler{UID: 0}})
		require.NoError(t, err)
		_, err = call.wait()
		require.NoError(t, err)
		require.Equal(t, 1, done.Rule.Number)
		time.Sleep(time.Hour)
		a := ask(t, d, request(t, push))
		got, err := a.wait()
		require.NoError(t, err)
		require.Equal(t, protocol.Approval{Approved: true, Reason: "fine", By: "rule 1 (made by uid 0 at 2000-01-01T00:00:00Z)"}, got)
		rules := d.Rules()
		require.Len(t, rules, 1)
		require.Equal(t, 1, rules[0].Used)
		require.Equal(t, `{"command":"git push"}`, string(rules[0].Arguments))
		require.EqualValues(t, 1, d.Stats().ByRule)
	})
}

func TestDenyingRuleIsStronger(t *testing.T) {
	d := newDesk(t, Options{})
	rule(t, d, request(t, push), Answer{Approve: true, Scope: ForSession, By: ann})
	d.rules = append(d.rules, new(*d.rules[0])) // as two people at once would make them
	d.rules[1].Number, d.rules[1].Approve, d.rules[1].Reason = 2, false, "never"
	a := ask(t, d, request(t, push))
	got, err := a.wait()
	require.NoError(t, err)
	require.False(t, got.Approved)
	require.Equal(t, "never", got.Reason)
	require.Contains(t, got.By, "rule 2 ")
}

func TestSessionRuleEndsWithTheSession(t *testing.T) {
	d := newDesk(t, Options{})
	rule(t, d, request(t, push), Answer{Approve: true, Scope: ForSession, By: ann})
	rule(t, d, request(t, strings.Replace(push, "s-1", "s-2", 1)), Answer{Approve: true, Scope: ForSession, By: ann})
	rule(t, d, request(t, strings.Replace(push, "git push", "ls", 1)), Answer{Approve: true, Scope: Always, By: ann})
	d.EndSession("")
	require.Len(t, d.Rules(), 3)
	d.EndSession("s-1")
	require.Len(t, d.Rules(), 2)
	require.True(t, opens(t, d, push))
	require.False(t, opens(t, d, strings.Replace(push, "s-1", "s-2", 1)))
}

func TestSessionRuleOfASilentSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, Options{})
		call := ask(t, d, request(t, push))
		synctest.Wait()
		_, err := d.Answer(d.Open()[0].ID, Answer{Approve: true, Scope: ForSession, By: ann})
		require.NoError(t, err)
		_, err = call.wait()
		require.NoError(t, err)
		for range 3 { // use keeps it
			time.Sleep(sessionRuleIdle)
			a := ask(t, d, request(t, push))
			got, err := a.wait()
			require.NoError(t, err)
			require.True(t, got.Approved)
		}
		time.Sleep(sessionRuleIdle + time.Second)
		a := ask(t, d, request(t, push))
		synctest.Wait()
		require.Len(t, d.Open(), 1)
		require.Empty(t, d.Rules())
		a.cancel(nil)
		_, err = a.wait()
		require.Error(t, err)
	})
}

func TestRevoke(t *testing.T) {
	d := newDesk(t, Options{})
	done := rule(t, d, request(t, push), Answer{Approve: true, Scope: Always, By: ann})
	_, err := d.Revoke(7, ann)
	require.EqualError(t, err, "there is no rule 7")
	gone, err := d.Revoke(done.Rule.Number, ann)
	require.NoError(t, err)
	require.Equal(t, "bash", gone.Tool)
	require.True(t, opens(t, d, push))
	next := rule(t, d, request(t, push), Answer{Approve: true, Scope: Always, By: ann})
	require.Equal(t, 2, next.Rule.Number, "a number means one rule for ever")
}

// Those who wait for the same answer need not be asked again.
func TestRuleAnswersOpenTickets(t *testing.T) {
	d := newDesk(t, Options{})
	a, b := ask(t, d, request(t, push)), ask(t, d, request(t, push))
	c := ask(t, d, request(t, strings.Replace(push, "git push", "ls", 1)))
	open := tickets(t, d, 3)
	id := ""
	for _, o := range open {
		if o.Digest == request(t, push).Digest() {
			id = o.ID
		}
	}
	done, err := d.Answer(id, Answer{Approve: true, Scope: Always, By: ann})
	require.NoError(t, err)
	require.Len(t, done.Also, 1)
	for _, call := range []*asked{a, b} {
		got, err := call.wait()
		require.NoError(t, err)
		require.True(t, got.Approved)
	}
	require.Len(t, d.Open(), 1)
	c.cancel(nil)
	_, err = c.wait()
	require.Error(t, err)
}

func TestRulesOutliveHookd(t *testing.T) {
	journal := &Memory{}
	d := newDesk(t, Options{Journal: journal})
	rule(t, d, request(t, push), Answer{Approve: true, Scope: Always, By: ann})
	rule(t, d, request(t, strings.Replace(push, "git push", "ls", 1)), Answer{Approve: true, Scope: ForSession, By: ann})
	after := newDesk(t, Options{Journal: journal})
	require.Len(t, after.Rules(), 1, "whether the session still runs nobody can tell")
	require.False(t, opens(t, after, push))
	done := rule(t, after, request(t, `{"tool":"x","arguments":{}}`), Answer{Approve: true, Scope: Always, By: ann})
	require.Equal(t, 3, done.Rule.Number)
}

func TestRuleThatCantBeRecordedDoesNotHold(t *testing.T) {
	d := newDesk(t, Options{Journal: &faulty{made: full}})
	call := ask(t, d, request(t, push))
	done, err := d.Answer(ticket(t, d).ID, Answer{Approve: true, Scope: Always, By: ann})
	require.NoError(t, err)
	require.Nil(t, done.Rule)
	require.Contains(t, done.Warning, "this call is answered, but no rule was made")
	got, err := call.wait()
	require.NoError(t, err)
	require.True(t, got.Approved)
	require.Empty(t, d.Rules())
}

func TestTooManyRules(t *testing.T) {
	d := newDesk(t, Options{})
	for i := range maxRules {
		_, err := d.addRule(Rule{Digest: fmt.Sprint(i), Scope: Always})
		require.NoError(t, err)
	}
	_, err := d.addRule(Rule{Digest: "0", Scope: Always})
	require.NoError(t, err, "it holds already")
	_, err = d.addRule(Rule{Digest: "more", Scope: Always})
	require.ErrorContains(t, err, "revoke some")
}

func TestRuleKeepsNoHugeArguments(t *testing.T) {
	d := newDesk(t, Options{})
	done := rule(t, d, request(t, fmt.Sprintf(`{"tool":"write","arguments":{"content":%q}}`, strings.Repeat("x", ruleArguments))), Answer{Approve: true, Scope: Always, By: ann})
	require.Nil(t, done.Rule.Arguments)
}
