package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hookd/hookd/child"
	"github.com/hookd/hookd/internal/invariant"
)

func TestMain(m *testing.M) {
	child.Main()
	if len(os.Args) == 3 && os.Args[1] == asDaemon {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

// A short soak with much going wrong at once. How long calls took, and how much
// memory a program with a race detector needs, is not looked at.
func TestSoak(t *testing.T) {
	o := options{length: 4 * time.Second, calm: time.Second, every: 100 * time.Millisecond, agents: 8, seed: 7}
	h, err := start(o)
	require.NoError(t, err)
	s := newSoak(o, h)
	s.progress = io.Discard
	r, err := s.run(t.Context())
	require.NoError(t, errors.Join(err, h.stop()))
	var told bytes.Buffer
	require.NoError(t, r.print(&told))
	for _, held := range r.invariants {
		wrong := slices.DeleteFunc(held.wrong, func(w string) bool { return held.id == "I6" || strings.Contains(w, "memory") })
		require.Empty(t, wrong, "%s", &told)
	}
	require.Greater(t, sum(s.counts.faults), 20, "%s", &told)
	require.Positive(t, s.alone.Count())
	require.Positive(t, s.beside.Count())
	require.Regexp(t, `faults +\d+ of \d+ kinds in \d+s`, told.String())
	require.NoDirExists(t, h.folder)
}

// What does not hold is told, and ends the soak with an error.
func TestWhatDoesNotHold(t *testing.T) {
	r := &report{invariants: []held{{id: "I1", what: "one"}, {id: "I5", what: "five", wrong: []string{"I5: 9 zombies, and 0 before"}}, {what: "else", wrong: []string{"x"}}}}
	require.EqualError(t, r.verdict(), "did not hold: I5 five; else")
	var told bytes.Buffer
	require.NoError(t, r.print(&told))
	require.Equal(t, "I1 one   ok\nI5 five  FAILED\n  I5: 9 zombies, and 0 before\nelse  FAILED\n  x\n", told.String())
	require.NoError(t, (&report{invariants: r.invariants[:1]}).verdict())

	for text, want := range map[string]string{"I5: 9 zombies": "I5", "never: I8: gate is failed": "I8", "the agent ended with exit status 1": ""} {
		require.Equal(t, want, class(text))
	}
}

// An answer that must not be, of a daemon that opens its gates, is found.
func TestWrongAnswersAreFound(t *testing.T) {
	s := newSoak(options{}, nil)
	s.progress = io.Discard
	a := &agent{soak: s}
	gate := &s.patients[0]
	trail := func(first, second string) []byte {
		return fmt.Appendf(nil, `{"action":"continue","generation":1,"trail":[{"hook":"gate","outcome":%q},{"hook":"witness","outcome":%q}]}`, first, second)
	}
	a.judge(gate, trail("continue", "continue"), false, true, time.Millisecond)
	require.Zero(t, s.wrongs)
	require.Equal(t, 1, s.alone.Count())
	a.judge(gate, trail("timeout", "continue"), false, false, 0)
	a.judge(gate, []byte(`{"action":"continue","generation":1,"trail":[{"hook":"witness","outcome":"continue"}]}`), false, false, 0)
	a.judge(gate, []byte(`{"action":"deny_tool","decided_by":"gate","generation":1,"trail":[{"hook":"gate","outcome":"crash"},{"hook":"witness","outcome":"not_run"}]}`), false, true, 0)
	a.approval(s.approver(), []byte(`{"action":"continue","generation":1,"trail":[{"hook":"human","outcome":"allow"}]}`), false)
	var ids []string
	for _, w := range s.wrong {
		ids = append(ids, class(w))
	}
	require.Equal(t, []string{"I2", "I3", "I6", ""}, ids, "%q", s.wrong)
	a.judge(gate, []byte(`{"action":"continue","generation":1,"trail":[{"hook":"witness","outcome":"continue"}]}`), true, false, 0)
	require.Len(t, s.wrong, 4, "it was switched off")
}

func TestKindsAreTold(t *testing.T) {
	all := kinds("")
	require.Greater(t, len(all), 60)
	require.Len(t, kinds("life: "), len(patients()))
	require.Empty(t, kinds("nothing like it"))
	for i := range all[1:] {
		require.Less(t, all[i].name, all[i+1].name, "each has a name of its own, and a place")
	}
	s := newSoak(options{}, nil)
	s.counts.faults["dup"], s.counts.recovery["dup"] = 2, 1234*time.Millisecond
	require.Equal(t, "\n  dup\t2, 1.23s", kindList(&s.counts))
	require.Equal(t, "b 3, a 1, c 1", list(map[string]int{"a": 1, "b": 3, "c": 1}))
	require.Equal(t, "none", list(map[int]int{}))
	var m sampler
	for i := range 100 {
		m.memory = append(m.memory, int64(i)<<20)
	}
	require.EqualValues(t, 37<<20, m.median(0.25, 0.5))
	require.EqualValues(t, 99<<20, m.most())
	require.Equal(t, "37.0 MiB", mib(m.median(0.25, 0.5)))
	require.True(t, strings.HasPrefix(latencies(&invariant.Latencies{}), "0, p50 0s"))
}
