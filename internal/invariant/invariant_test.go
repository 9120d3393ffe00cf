package invariant_test

import (
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/daemon"
	"github.com/hookd/hookd/internal/invariant"
)

func TestAnswer(t *testing.T) {
	gate, note := invariant.Hook{Name: "gate", Denies: true}, invariant.Hook{Name: "note"}
	both := []invariant.Hook{gate, note}
	for name, tt := range map[string]struct {
		result  string
		matched []invariant.Hook
		want    string
	}{
		"well":                {`{"action":"continue","generation":1,"trail":[{"hook":"gate","outcome":"continue"},{"hook":"note","outcome":"modify"}]}`, both, ""},
		"denied":              {`{"action":"deny_tool","generation":1,"trail":[{"hook":"gate","outcome":"timeout"},{"hook":"note","outcome":"not_run"}]}`, both, ""},
		"passed over":         {`{"action":"continue","generation":1,"degraded":[{"hook":"note","outcome":"crash"}],"trail":[{"hook":"note","outcome":"crash"}]}`, both[1:], ""},
		"asked twice":         {`{"action":"continue","generation":1,"trail":[{"hook":"gate","outcome":"continue"},{"hook":"gate","outcome":"continue","recheck":true}]}`, both[:1], ""},
		"approved":            {`{"approved":true,"generation":1,"trail":[{"hook":"gate","outcome":"allow"}]}`, both[:1], ""},
		"not approved":        {`{"approved":false,"generation":1,"trail":[{"hook":"gate","outcome":"timeout"}]}`, both[:1], ""},
		"approved without":    {`{"approved":true,"generation":1,"trail":[{"hook":"gate","outcome":"timeout"}]}`, both[:1], "I2: gate has the policy deny and timeout"},
		"no answer":           {`{"action":"continue","generation":1,"degraded":[{"hook":"gate","outcome":"crash"}],"trail":[{"hook":"gate","outcome":"crash"}]}`, both[:1], "I2: gate has the policy deny and crash"},
		"no answer, unnamed":  {`{"action":"modify","generation":1,"trail":[{"hook":"note","outcome":"crash"}]}`, both[1:], "I2: note: crash, and it is not named"},
		"named as otherwise":  {`{"action":"continue","generation":1,"degraded":[{"hook":"note","outcome":"timeout"}],"trail":[{"hook":"note","outcome":"crash"}]}`, both[1:], "it is not named"},
		"unreadable":          {`{"action":"continue","generation":1,"degraded":[{"hook":"note","outcome":"garbage"}],"trail":[{"hook":"note","outcome":"garbage"}]}`, both[1:], "I2: note: garbage, and the call goes on"},
		"overloaded":          {`{"action":"respond","generation":1,"trail":[{"hook":"note","outcome":"overloaded"}]}`, both[1:], "I2: note: overloaded"},
		"left out":            {`{"action":"continue","generation":1,"trail":[{"hook":"note","outcome":"continue"}]}`, both, "I3: the hooks"},
		"in another order":    {`{"action":"continue","generation":1,"trail":[{"hook":"note","outcome":"continue"},{"hook":"gate","outcome":"continue"}]}`, both, "I3: the hooks"},
		"one too much":        {`{"action":"continue","generation":1,"trail":[{"hook":"gate","outcome":"continue"}]}`, nil, "I3: the hooks"},
		"a word of its own":   {`{"action":"continue","generation":1,"trail":[{"hook":"gate","outcome":"fine"}]}`, both[:1], `unknown outcome "fine"`},
		"not run and allowed": {`{"action":"continue","generation":1,"trail":[{"hook":"note","outcome":"not_run"}]}`, both[1:], "I3: note was not run"},
		"no generation":       {`{"action":"continue","trail":[]}`, nil, "no generation"},
		"no JSON":             {`{"action":`, nil, "can't be read"},
		"name twice":          {`{"action":"deny_tool","action":"continue"}`, nil, "can't be read"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := invariant.Answer([]byte(tt.result), tt.matched)
			if tt.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tt.want)
			}
		})
	}
}

func TestLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l invariant.Ledger
		due := time.Now().Add(time.Second)
		l.Asked("a", "1", due)
		l.Asked("a", "2", due)
		l.Asked("b", "1", due)
		require.Equal(t, []string{"1", "2"}, l.Open("a"))
		require.NoError(t, l.Answered("a", "1"))
		require.Zero(t, l.Late(), "none was")
		time.Sleep(1200 * time.Millisecond)
		require.Empty(t, l.Wrong(250*time.Millisecond))
		require.NoError(t, l.Answered("b", "1"))
		require.Equal(t, 200*time.Millisecond, l.Late())
		time.Sleep(100 * time.Millisecond)
		require.Equal(t, []string{"I1: 2 has no answer 300ms after its time"}, l.Wrong(250*time.Millisecond))
		l.Closed("a")
		require.Empty(t, l.Wrong(0))
		require.EqualValues(t, 2, l.Count())

		require.EqualError(t, l.Answered("b", "1"), "I1: an answer to 1, which is not open")
		require.Len(t, l.Wrong(0), 1)
		l.Asked("c", "1", due)
		l.Asked("c", "1", due)
		require.Len(t, l.Wrong(time.Hour), 2)
	})
}

func TestUsage(t *testing.T) {
	before, err := invariant.Own()
	require.NoError(t, err)
	require.Positive(t, before.Goroutines)
	require.Positive(t, before.Files)
	if !invariant.Counts {
		t.Skip("there is no /proc here")
	}
	require.Positive(t, before.Memory)
	stop := make(chan struct{})
	for range 6 {
		go func() { <-stop }()
	}
	defer close(stop)
	for range 4 {
		file, err := os.Open("/dev/null")
		require.NoError(t, err)
		defer file.Close()
	}
	p, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{})
	require.NoError(t, err)
	var after invariant.Usage
	require.Eventually(t, func() bool {
		after, err = invariant.Own()
		return err == nil && after.Zombies == before.Zombies+1
	}, 10*time.Second, time.Millisecond)
	after.Memory = before.Memory + 33<<20
	what := after.Beyond(before, invariant.Slack())
	require.Len(t, what, 5, "%v", what)
	require.Contains(t, what[0], "goroutines, and ")
	require.Empty(t, before.Beyond(before, invariant.Usage{}))
	_, err = p.Wait()
	require.NoError(t, err)

	require.Zero(t, invariant.Memory(-1))
}

func TestLatencies(t *testing.T) {
	fill := func(d time.Duration) *invariant.Latencies {
		l := &invariant.Latencies{}
		for i := range 100 {
			l.Add(d * time.Duration(100-i) / 100)
		}
		return l
	}
	require.Zero(t, (&invariant.Latencies{}).P(0.99))
	l := fill(100 * time.Millisecond)
	require.Equal(t, 100, l.Count())
	require.Equal(t, 50*time.Millisecond, l.P(0.5))
	require.Equal(t, 99*time.Millisecond, l.P(0.99))
	require.NoError(t, invariant.Beside(l, fill(199*time.Millisecond), 0))
	require.ErrorContains(t, invariant.Beside(l, fill(202*time.Millisecond), 0), "I6: p99 is ")
	require.NoError(t, invariant.Beside(l, fill(202*time.Millisecond), 10*time.Millisecond))
	both := fill(time.Second)
	both.AddAll(l)
	require.Equal(t, 200, both.Count())
	require.GreaterOrEqual(t, invariant.Nap(time.Microsecond), time.Duration(0))
	quick := fill(time.Millisecond)
	require.NoError(t, invariant.Beside(quick, fill(50*time.Millisecond), 0))
	require.Error(t, invariant.Beside(quick, fill(60*time.Millisecond), 0))
}

func TestSecrets(t *testing.T) {
	require.Empty(t, invariant.Secrets([]string{"hunter2"}, map[string]string{"the log": "hunter3"}))
	told := invariant.Secrets([]string{"hunter2"}, map[string]string{"the log": "password=hunter2 or so", "an answer": "hunter2"})
	require.Equal(t, []string{"I7: a secret stands in an answer: …hunter2…", "I7: a secret stands in the log: …password=hunter2 or so…"}, told)
}

func TestUnwell(t *testing.T) {
	s := &daemon.Status{Ready: true, Hooks: []daemon.HookStatus{{Name: "a", State: "ready"}}}
	require.Empty(t, invariant.Unwell(s))
	s.Ready, s.Config.Error = false, "no file"
	s.Hooks = append(s.Hooks, daemon.HookStatus{Name: "b", State: "backoff", LastError: "it ended"})
	require.Equal(t, []string{"I8: hookd is not ready", "I8: the config is refused: no file", "I8: b is backoff: it ended"}, invariant.Unwell(s))
}
