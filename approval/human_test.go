package approval

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/hookd/hookd/builtin"
	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

func TestHumanFillsItsRoles(t *testing.T) {
	h, err := NewHuman(newDesk(t, Options{}), HumanOptions{})
	require.NoError(t, err)
	roles, err := hook.RolesOf(h)
	require.NoError(t, err)
	require.NotNil(t, roles.Approver)
	require.NotNil(t, roles.Observer)
	require.Nil(t, roles.Interceptor)
	require.True(t, roles.Remote)
	require.NoError(t, h.Close())
}

func TestHumanEndsSessions(t *testing.T) {
	d := newDesk(t, Options{})
	rule(t, d, request(t, push), Answer{Approve: true, Scope: ForSession, By: ann})
	h, err := NewHuman(d, HumanOptions{})
	require.NoError(t, err)
	meta, err := protocol.ParseObject(jsontext.Value(`{"session_id":"s-1"}`))
	require.NoError(t, err)
	require.NoError(t, h.Observe(t.Context(), &hook.Event{Event: &protocol.Event{Kind: protocol.EventTurnEnd, Meta: meta}}))
	require.Len(t, d.Rules(), 1)
	require.NoError(t, h.Observe(t.Context(), &hook.Event{Event: &protocol.Event{Kind: protocol.EventSessionEnd, Meta: meta}}))
	require.Empty(t, d.Rules())
}

func TestValidateHuman(t *testing.T) {
	for config, want := range map[string]string{
		``:                                      "",
		`null`:                                  "",
		`{}`:                                    "",
		`{"notify":[]}`:                         "",
		`{"notify":["a","b"],"pass_env":["C"]}`: "",
		`[]`:                                    "expected an object, got [",
		`{"notify":"a b"}`:                      "/notify: expected a list, got string",
		`{"notify":[1]}`:                        "/notify/0: expected a string, got number",
		`{"notify":[""]}`:                       "/notify/0: the command is empty",
		`{"notfy":["a"]}`:                       `/notfy: unknown key "notfy" (did you mean "notify"?)`,
		`{"pass_env":["A"]}`:                    "/pass_env: there is no notify",
		`{"notify":["a"],"pass_env":["A=1"]}`:   "/pass_env/0: this is no name of a variable",
		`{"notify":["a"],"notify":["b"]}`:       `duplicate name at "/notify"`,
		`{"notify":["a"]`:                       "the JSON ends too early",
	} {
		err := ValidateHuman(jsontext.Value(config))
		if want == "" {
			require.NoError(t, err, config)
			continue
		}
		require.ErrorContains(t, err, want, config)
		var place *builtin.ConfigError
		require.ErrorAs(t, err, &place)
	}
	_, err := NewHuman(newDesk(t, Options{}), HumanOptions{Config: jsontext.Value(`{"notify":["a"]}`)})
	require.ErrorContains(t, err, "/notify: commands can't be started here")
}

// pager is a command that takes a while.
type pager struct {
	mu    sync.Mutex
	sent  []Notice
	at    []time.Time
	takes time.Duration
	err   error
}

func (p *pager) seen() ([]Notice, []time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.sent), slices.Clone(p.at)
}

func (p *pager) run(ctx context.Context, n *Notice) error {
	p.mu.Lock()
	p.sent, p.at = append(p.sent, *n), append(p.at, time.Now())
	p.mu.Unlock()
	select {
	case <-time.After(p.takes):
		return p.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func TestNotification(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, d := &pager{}, newDesk(t, Options{})
		h, err := NewHuman(d, HumanOptions{
			Name: "human", Folder: "/etc/hookd", Config: jsontext.Value(`{"notify":["page","ann"],"pass_env":["DISPLAY"]}`), Notify: p.run,
		})
		require.NoError(t, err)
		var calls []*asked
		begin := time.Now()
		for range 3 {
			a := &asked{done: make(chan struct{})}
			ctx, cancel := context.WithCancelCause(WithAgent(t.Context(), &Agent{PID: 7, UID: 1000}))
			a.cancel = cancel
			go func() { defer close(a.done); a.answer, a.err = h.Approve(ctx, request(t, push)) }()
			calls = append(calls, a)
			synctest.Wait()
		}
		open := d.Open()
		sent, _ := p.seen()
		require.Len(t, sent, 1, "one a second")
		require.Equal(t, []string{"page", "ann"}, sent[0].Argv)
		require.Equal(t, "/etc/hookd", sent[0].Dir)
		require.Equal(t, []string{"DISPLAY"}, sent[0].PassEnv)
		line, ended := strings.CutSuffix(string(sent[0].Stdin), "\n")
		require.True(t, ended)
		require.NotContains(t, line, "\n")
		first := slices.IndexFunc(open, func(o Ticket) bool { return strings.Contains(line, o.ID) })
		require.GreaterOrEqual(t, first, 0)
		require.Equal(t, `{"id":"`+open[first].ID+`","tool":"bash","arguments":{"command":"git push"},"message":"publishes","asked_by":"gate","agent":"bot","session":"s-1","cwd":"/repo","digest":"`+
			open[first].Digest+`","opened":"2000-01-01T00:00:00Z","expires":"2000-01-01T00:01:00Z"}`, line)
		_, err = d.Answer(open[(first+1)%3].ID, Answer{By: ann})
		require.NoError(t, err)
		time.Sleep(10 * time.Second)
		sent, at := p.seen()
		require.Len(t, sent, 2, "of what is answered nobody is told")
		require.Equal(t, noticePause, at[1].Sub(begin))
		for _, c := range calls {
			c.cancel(nil)
			_, _ = c.wait()
		}
		require.NoError(t, h.Close())
		require.EqualValues(t, 2, d.Stats().Notified)
	})
}

func TestNotificationFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			pager *pager
			want  string
		}{
			{&pager{err: errors.New("exit status 3")}, "exit status 3"},
			{&pager{takes: time.Hour}, "it took longer than 10s"},
		} {
			core, logs := observer.New(zap.InfoLevel)
			d := newDesk(t, Options{})
			h, err := NewHuman(d, HumanOptions{Config: jsontext.Value(`{"notify":["page"]}`), Notify: c.pager.run, Log: zap.New(core)})
			require.NoError(t, err)
			got := make(chan error)
			go func() { _, err := h.Approve(t.Context(), request(t, push)); got <- err }()
			time.Sleep(noticeTimeout + time.Second)
			require.Len(t, d.Open(), 1, "the ticket stays open")
			require.EqualValues(t, 1, d.Stats().NoticesFailed)
			require.Equal(t, 1, logs.Len())
			require.Equal(t, c.want, logs.All()[0].ContextMap()["error"])
			require.NotContains(t, logs.All()[0].ContextMap(), "arguments")
			require.Error(t, <-got)
			require.NoError(t, h.Close())
		}
	})
}

// A storm of tickets, and a command that hangs: the rest is left out and said.
func TestNotificationsThatAreLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.InfoLevel)
		d := newDesk(t, Options{})
		h, err := NewHuman(d, HumanOptions{Config: jsontext.Value(`{"notify":["page"]}`), Notify: (&pager{takes: time.Hour}).run, Log: zap.New(core)})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range noticeQueue + 6 {
			wg.Go(func() { _, _ = h.Approve(ctx, request(t, push)) })
			synctest.Wait()
		}
		require.EqualValues(t, 5, d.Stats().NoticesDropped, "one is being sent")
		require.Equal(t, 5, logs.FilterMessageSnippet("left out").Len())
		cancel()
		wg.Wait()
		start := time.Now()
		require.NoError(t, h.Close())
		require.Zero(t, time.Since(start), "closing does not wait for the command's time limit")
	})
}
