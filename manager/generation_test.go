package manager

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

func continues() *goHook {
	return &goHook{intercept: func(context.Context, *protocol.Request) (protocol.Decision, error) { return hook.Continue(), nil }}
}

func TestNewGenerationRefuses(t *testing.T) {
	lists := func(name string, s protocol.KeyStrategy) *hook.Registration {
		r := continues().registration(name)
		r.KeyStrategies = map[string]protocol.KeyStrategy{"tags": s, "other": protocol.MergeMap}
		return r
	}
	broken := continues().registration("broken")
	broken.Timeout = 0
	for want, hooks := range map[string][]*hook.Registration{
		`hook "a": the name stands twice`: {continues().registration("a"), continues().registration("a")},
		`hook "broken": timeouts`:         {continues().registration("a"), broken},
		`hook "b": key "tags" of state is merge_list here and last_wins in hook "a"`: {lists("a", protocol.LastWins), lists("b", protocol.MergeList)},
	} {
		_, err := NewGeneration(1, Rules{}, hooks)
		require.ErrorContains(t, err, want)
	}
	_, err := NewGeneration(1, Rules{}, []*hook.Registration{lists("a", protocol.MergeList), lists("b", protocol.MergeList)})
	require.NoError(t, err)
}

func TestHooksAreListedInOrder(t *testing.T) {
	child := continues().registration("a")
	child.Source = hook.Process
	child.Stages = append(child.Stages, child.Stages...)
	late := continues().registration("late")
	late.Priority = 9
	m := mounted(t, child, late, continues().registration("b"))
	var names []string
	for _, r := range m.Generation().Hooks() {
		names = append(names, r.Name)
	}
	require.Equal(t, []string{"b", "late", "a"}, names)
	require.Len(t, call(t, m).Trail, 3, "a stage that stands twice is one stage")
}

// Calls finish on the generation on which they began: no mixture of two, no
// failed call, and when a generation is drained nobody is in its hooks.
func TestSwapUnderLoad(t *testing.T) {
	const swaps, callers = 200, 8
	m := mounted(t)
	var inside sync.Map // generation → calls in its hooks
	next := func() *hook.Registration {
		number := m.Generation().Number + 1
		var calls atomic.Int64
		inside.Store(number, &calls)
		h := &goHook{intercept: func(_ context.Context, req *protocol.Request) (protocol.Decision, error) {
			calls.Add(1)
			defer calls.Add(-1)
			seen, err := strconv.ParseUint(string(req.Meta.Get("generation")), 10, 64)
			if err != nil || seen != number {
				t.Errorf("hook of generation %d is asked in %d: %v", number, seen, err)
			}
			return protocol.Decision{AddContext: []string{strconv.FormatUint(number, 10)}}, nil
		}}
		return h.registration("h")
	}
	swap(t, m, next())
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				res, err := m.Call(context.Background(), &Caller{}, request(t, protocol.StageBeforeTool, aCall))
				if err != nil || res.Action != "" || len(res.AddContext) != 1 || res.AddContext[0] != strconv.FormatUint(res.Generation, 10) {
					t.Errorf("%+v %v", res, err)
					return
				}
			}
		})
	}
	for range swaps {
		old := swap(t, m, next())
		require.NoError(t, old.Wait(t.Context()))
		calls, _ := inside.Load(old.Number)
		require.Zero(t, calls.(*atomic.Int64).Load())
	}
	close(stop)
	wg.Wait()
}

func TestDrainedOnlyAfterTheLastCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStubborn()
		r := s.registration("s")
		r.Roles.Remote = true
		w := newWitness().open()
		m := mounted(t, r, w.registration("w"))
		var wg sync.WaitGroup
		wg.Go(func() { call(t, m) })
		synctest.Wait()
		old := swap(t, m)
		wg.Go(func() { call(t, m) }) // on the new one, at once
		synctest.Wait()
		select {
		case <-old.Drained():
			t.Fatal("a call is still open")
		default:
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorContains(t, old.Wait(ctx), "calls are still open")
		close(s.gate)
		<-old.Drained()
		require.NoError(t, old.Wait(t.Context()))
		wg.Wait()
		require.Len(t, w.events(), 2, "what the last call did is told to the observers of its generation")
	})
}

// A generation is drained after the ones before it: a call that is still on an
// older one finds the hooks that it is on its way to.
func TestDrainedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := newStubborn(), newWitness().open()
		r := s.registration("s")
		r.Roles.Remote = true
		m := mounted(t, r, w.registration("w"))
		var wg sync.WaitGroup
		wg.Go(func() { call(t, m) })
		synctest.Wait()
		first := swap(t, m, w.registration("w"))
		second := swap(t, m)
		select {
		case <-second.Drained():
			t.Error("drained before the one that a call is still on")
		default:
		}
		close(s.gate)
		require.NoError(t, second.Wait(t.Context()))
		require.NoError(t, first.Wait(t.Context()))
		wg.Wait()
		require.Len(t, w.events(), 2)
	})
}

// A plan made before a reload runs on the newer generation when the older one
// is gone, and never on hooks that have been taken away.
func TestPlanOutlivesItsGeneration(t *testing.T) {
	var asked atomic.Bool
	old := &goHook{intercept: func(context.Context, *protocol.Request) (protocol.Decision, error) {
		asked.Store(true)
		return hook.Continue(), nil
	}}
	m := mounted(t, old.registration("old"))
	p := m.Plan(&Caller{}, request(t, protocol.StageBeforeTool, aCall))
	require.NoError(t, swap(t, m, continues().registration("new")).Wait(t.Context()))
	res, err := p.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, m.Generation().Number, res.Generation)
	require.Equal(t, "new", res.Trail[0].Hook)
	require.False(t, asked.Load())
}

// A hook whose value stays is the same running hook: its queue, its numbers
// and its counters go on. A new value is a new hook under the old name.
func TestUnitsAcrossSwaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept, replaced, removed := newWitness(), newWitness(), newWitness()
		m := mounted(t, kept.registration("kept"), replaced.registration("changes"), removed.registration("goes"))
		publish(m, "x_1", "x_2", "x_3")
		synctest.Wait()

		fresh := newWitness().open()
		faster := kept.registration("kept")
		faster.ObserverTimeout = time.Millisecond
		old := swap(t, m, faster, fresh.registration("changes"))
		publish(m, "x_4")
		synctest.Wait()
		require.Len(t, fresh.events(), 1)
		require.EqualValues(t, 1, fresh.events()[0].Seq, "a new hook counts anew")
		require.EqualValues(t, 3, m.Stats()["kept"].Queued)

		// Those that are gone work off what they were sent, and end.
		done := make(chan error, 1)
		go func() { done <- old.Wait(t.Context()) }()
		synctest.Wait()
		require.Empty(t, done)
		replaced.open()
		removed.open()
		require.NoError(t, <-done)
		require.Len(t, replaced.events(), 3)
		require.Len(t, removed.events(), 3)

		kept.open()
		synctest.Wait()
		for i, ev := range kept.events() {
			require.EqualValues(t, i+1, ev.Seq)
		}
		require.Len(t, kept.events(), 4)
		require.EqualValues(t, 4, m.Stats()["kept"].Events)
		require.EqualValues(t, 4, m.Stats()["changes"].Events, "counters go by name")
		require.EqualValues(t, 3, m.Stats()["goes"].Events, "and outlive their hook")
	})
}

// A hook gets a queue when a reload gives it something to observe, and works
// in mode async when a reload says so.
func TestUnitGrowsNewRoles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWitness().open()
		w.intercept = continues().intercept
		plain := w.registration("w")
		plain.Events = nil
		m := mounted(t, plain)
		call(t, m)
		both := w.registration("w")
		both.Mode = hook.Async
		require.NoError(t, swap(t, m, both).Wait(t.Context()))
		require.Equal(t, protocol.OutcomeAsync, outcomeIn(t, m))
		synctest.Wait()
		require.Len(t, w.events(), 2)
	})
}

type notComparable struct{ _ []any }

// wrapper is comparable by its type, and not by what it may hold.
type wrapper struct{ inner any }

func TestSameValue(t *testing.T) {
	h := continues()
	require.True(t, sameValue(h, h))
	require.False(t, sameValue(h, continues()))
	require.False(t, sameValue(nil, nil))
	require.False(t, sameValue(h, nil))
	require.False(t, sameValue(notComparable{}, notComparable{}))
	require.False(t, sameValue(wrapper{[]int{1}}, wrapper{[]int{1}}))
	require.True(t, sameValue(wrapper{1}, wrapper{1}))
}

func TestClosedManagerRefuses(t *testing.T) {
	m := New(Options{})
	require.NoError(t, m.Close(t.Context()))
	require.NoError(t, m.Close(t.Context()))
	for _, stage := range []protocol.Stage{protocol.StageBeforeTool, protocol.StageApproveTool} {
		res, err := m.Call(t.Context(), &Caller{}, request(t, stage, aCall))
		require.ErrorIs(t, err, &protocol.Error{Code: protocol.CodeShuttingDown})
		require.Nil(t, res)
	}
}
