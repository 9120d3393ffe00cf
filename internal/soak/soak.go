package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookd/hookd/internal/invariant"
	"github.com/hookd/hookd/protocol"
)

// soak is one run.
type soak struct {
	options
	house    *house
	progress io.Writer
	patients []patient
	ledger   invariant.Ledger
	resting  atomic.Bool  // the agents do nothing
	late     atomic.Int64 // answers that were looked for

	mu            sync.Mutex
	sick          map[string]bool // hooks with which something is wrong
	turns         map[string]int  // how often they were
	off           map[string]bool // hooks that are disabled, or about to be
	alone, beside *invariant.Latencies
	faulty        bool // things go wrong already
	counts        counts
	wrong         []string // what did not hold
	wrongs        int
}

// counts are what is told in the end.
type counts struct {
	actions  map[string]int
	denies   map[protocol.Outcome]int
	errors   map[int]int // by code
	degraded int
	byHand   int // restarts, since the hook owed an answer
	faults   map[string]int
	recovery map[string]time.Duration // the longest, by kind
}

func newSoak(o options, h *house) *soak {
	return &soak{
		options: o, house: h, progress: os.Stderr, patients: patients(), sick: map[string]bool{}, turns: map[string]int{}, off: map[string]bool{},
		alone: &invariant.Latencies{}, beside: &invariant.Latencies{},
		counts: counts{
			actions: map[string]int{}, denies: map[protocol.Outcome]int{}, errors: map[int]int{}, faults: map[string]int{},
			recovery: map[string]time.Duration{},
		},
	}
}

// count changes the counts.
func (s *soak) count(change func(c *counts)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.counts)
}

// mostWrongs is how many violations are kept in words.
const mostWrongs = 50

// violated notes that something did not hold.
func (s *soak) violated(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wrongs++; len(s.wrong) < mostWrongs {
		s.wrong = append(s.wrong, err.Error())
		fmt.Fprintln(s.progress, "did not hold:", err)
	}
}

// overdue tells that an answer is late, and lets the daemon write its stacks into
// its log. That it was late is found by the ledger.
func (s *soak) overdue(stage protocol.Stage, p *patient) {
	if s.late.Add(1) > mostWrongs {
		return
	}
	_, err := s.house.usage(askStacks)
	fmt.Fprintf(s.progress, "%s: no answer to %s of %s yet; the stacks are in the log (see -keep) %v\n", time.Now().Format(time.TimeOnly), stage, p.name, err)
}

// healthy notes how long a call took whose hooks were well.
func (s *soak) healthy(took time.Duration) {
	s.mu.Lock()
	l := s.alone
	if s.faulty {
		l = s.beside
	}
	s.mu.Unlock()
	l.Add(took)
}

// health says whether a hook is well, and how often it was not before. Between
// two looks at it that are the same nothing was wrong with it when it is well.
func (s *soak) health(hook string) (h health) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return health{!s.sick[hook], s.off[hook], s.turns[hook]}
}

type health struct {
	well, off bool
	turns     int
}

// switchOff notes that a hook is about to be disabled. It may be left out of
// calls until it has recovered.
func (s *soak) switchOff(hook string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.off[hook] = true
}

// take makes a hook sick that is well, this one or any; nil when there is none.
func (s *soak) take(r *rand.Rand, name string) *patient {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range r.Perm(len(s.patients)) {
		if p := &s.patients[i]; !s.sick[p.name] && (name == "" || p.name == name) {
			s.sick[p.name] = true
			s.turns[p.name]++
			return p
		}
	}
	return nil
}

func (s *soak) recovered(p *patient) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sick, p.name)
	delete(s.off, p.name)
}

// run lets the agents ask, things go wrong, and all come to rest.
func (s *soak) run(ctx context.Context) (*report, error) {
	working, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var agents sync.WaitGroup
	defer agents.Wait()
	defer stop(nil)
	for i := range s.agents {
		a, err := s.dial(i)
		if err != nil {
			return nil, err
		}
		defer a.conn.Close()
		agents.Go(func() {
			if err := a.work(working); err != nil && working.Err() == nil {
				stop(err)
			}
		})
	}
	samples := sampler{restarts: map[string]int{}}
	agents.Go(func() { samples.run(working, s.house) })

	fmt.Fprintf(s.progress, "%s without faults\n", s.calm)
	if err := sleep(working, s.calm); err != nil {
		return nil, err
	}
	before, err := s.rest(working, nil)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.faulty = true
	s.mu.Unlock()
	began := time.Now()
	if err := s.goWrong(working, &samples); err != nil {
		return nil, err
	}
	length := time.Since(began)
	if err := s.house.until("everything is well again", func() bool {
		status, err := s.house.status()
		return err == nil && len(invariant.Unwell(status)) == 0
	}); err != nil {
		s.violated(fmt.Errorf("I8: %w", err))
	}
	after, err := s.rest(working, &before)
	if err != nil {
		return nil, err
	}
	stop(errors.New("the soak is over"))
	agents.Wait()
	return s.report(length, before, after, &samples)
}

// rest lets the agents pause and returns what the daemon uses then. When before
// is given, it has five seconds to come down to that.
func (s *soak) rest(ctx context.Context, before *invariant.Usage) (u invariant.Usage, err error) {
	s.resting.Store(true)
	defer s.resting.Store(false)
	if err := sleep(ctx, time.Second); err != nil {
		return u, err
	}
	for end := time.Now().Add(5 * time.Second); ; {
		if u, err = s.house.usage(""); err != nil {
			return u, err
		}
		if before == nil || len(u.Beyond(*before, invariant.Usage{Memory: invariant.Slack().Memory})) == 0 {
			return u, nil
		}
		if time.Now().After(end) { // what is too much is looked for in the log
			return s.house.usage(askStacks)
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return u, err
		}
	}
}

// sleep waits, unless ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// sampler watches the daemon from outside, and how busy the machine is.
type sampler struct {
	mu        sync.Mutex
	memory    []int64 // bytes, one per samplePause
	lag       time.Duration
	status    time.Duration  // the longest that status took
	restarts  map[string]int // of hooks, when looked at last
	restarted int            // in all
}

const (
	samplePause = 100 * time.Millisecond
	statusEvery = 10 // samples
)

func (m *sampler) run(ctx context.Context, h *house) {
	for i := 0; ctx.Err() == nil; i++ {
		lag, memory := invariant.Nap(samplePause), invariant.Memory(h.process.Pid)
		m.mu.Lock()
		m.lag = max(m.lag, lag)
		m.memory = append(m.memory, memory)
		m.mu.Unlock()
		if i%statusEvery == 0 {
			m.look(h)
		}
	}
}

// look asks for the status. A hook that is restarted by hand counts anew.
func (m *sampler) look(h *house) {
	begin := time.Now()
	s, err := h.status()
	if err != nil {
		return // the others notice too
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.status = max(m.status, time.Since(begin))
	for _, hook := range s.Hooks {
		m.restarted += max(hook.Restarts-m.restarts[hook.Name], 0)
		m.restarts[hook.Name] = hook.Restarts
	}
}

// median is that of a part of the samples, from 0 to 1; most is the largest.
func (m *sampler) median(from, to float64) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := float64(len(m.memory))
	part := slices.Sorted(slices.Values(m.memory[int(from*n):int(to*n)]))
	if len(part) == 0 {
		return 0
	}
	return part[len(part)/2]
}

func (m *sampler) most() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Max(append([]int64{0}, m.memory...))
}
