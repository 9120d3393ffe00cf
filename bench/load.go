package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookd/hookd/daemon"
)

// agents is how many ask at once in T5, and in T7 for the calls in flight.
const agents = 64

// crowd is clients that all do the same at once.
type crowd struct {
	clients []*client
	series  []*series
}

func newCrowd(size int, path string, line []byte, want string) (*crowd, error) {
	m := &crowd{}
	for range size {
		c, err := dial(path)
		if err != nil {
			m.close()
			return nil, err
		}
		m.clients = append(m.clients, c)
		m.series = append(m.series, newSeries(c.asking(line, want)))
	}
	return m, nil
}

func (m *crowd) close() {
	for _, c := range m.clients {
		c.w.Close()
	}
}

// all lets each client make n exchanges, as fast as it can, and returns how
// many were made per second.
func (m *crowd) all(ctx context.Context, n int) (float64, error) {
	errs := make([]error, len(m.series))
	var wg sync.WaitGroup
	start := time.Now()
	for i, s := range m.series {
		wg.Go(func() { errs[i] = s.some(ctx, n) })
	}
	wg.Wait()
	took := time.Since(start)
	for _, err := range errs {
		if err != nil {
			return 0, err
		}
	}
	return float64(n*len(m.series)) / took.Seconds(), nil
}

// took returns the samples of all.
func (m *crowd) took() []time.Duration {
	var all []time.Duration
	for _, s := range m.series {
		all = append(all, s.took...)
	}
	return all
}

// manyAgents is T5.
func manyAgents(r *run) ([]Row, error) {
	b, err := r.busy(agents, r.share(agents, 5))
	if err != nil {
		return nil, err
	}
	strict, err := r.strictly(r.share(agents, 20))
	if err != nil {
		return nil, err
	}
	return []Row{{Floor: b.Floor, P50: b.P50, P99: b.P99, Rate: b.Rate,
		Ratio: round(b.Rate/b.echoRate, 2), Unit: "× echo's rate", Target: 0.4, AtLeast: true}, strict}, nil
}

// strictly lets many agents ask, each times, while a decision is sent only when
// it is on the disk.
func (r *run) strictly(each int) (Row, error) {
	h, err := r.startWith("strict", inHouse())
	if err != nil {
		return Row{}, err
	}
	defer h.stop()
	m, err := newCrowd(agents, h.agents, toolLine("bash"), continues)
	if err != nil {
		return Row{}, err
	}
	defer m.close()
	if _, err := m.all(r.ctx, max(each/5, 1)); err != nil { // warm up
		return Row{}, err
	}
	rate, err := m.all(r.ctx, each)
	if err != nil {
		return Row{}, err
	}
	return Row{Work: "64 agents, each decision on disk before its answer", Rate: round(rate, 0),
		Ratio: round(rate, 0), Unit: "per second", Target: 5000, AtLeast: true}, nil
}

// busyPoint is what many agents measured at once.
type busyPoint struct {
	Point
	echoRate float64
}

// busy lets so many agents ask an in-process hook as fast as they can, each
// times in a round, and the echo in turn.
func (r *run) busy(size, each int) (b busyPoint, err error) {
	line := toolLine("bash")
	e, err := r.echoServer(polling)
	if err != nil {
		return b, err
	}
	defer e.stop()
	floor, err := newCrowd(size, e.path, line, "ok")
	if err != nil {
		return b, err
	}
	defer floor.close()
	h, err := r.start(object{"builtins": object{"bench-quick": object{"intercept": []string{"before_tool"}}}})
	if err != nil {
		return b, err
	}
	defer h.stop()
	work, err := newCrowd(size, h.agents, line, continues)
	if err != nil {
		return b, err
	}
	defer work.close()

	var floors, works []float64
	for i := range 6 {
		f, err := floor.all(r.ctx, each)
		if err != nil {
			return b, err
		}
		w, err := work.all(r.ctx, each)
		if err != nil {
			return b, err
		}
		if i > 0 { // the first is to warm up
			floors, works = append(floors, f), append(works, w)
		}
	}
	slices.Sort(floors)
	slices.Sort(works)
	took := work.took()
	b.Point = Point{X: size, Floor: round(percentile(floor.took(), 0.5), 1), P50: round(percentile(took, 0.5), 1),
		P99: round(percentile(took, 0.99), 1), Rate: round(works[len(works)/2], 0)}
	b.echoRate = floors[len(floors)/2]
	return b, nil
}

// nuisance is an agent that asks every few milliseconds until it is stopped.
// What is answered does not matter.
type nuisance struct {
	stop     func()
	answered atomic.Int64
}

func (h *house) nuisance(tool string) (*nuisance, error) {
	c, err := h.dial()
	if err != nil {
		return nil, err
	}
	n := &nuisance{}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		line := toolLine(tool)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			if _, err := c.exchange(line); err != nil {
				return
			}
			n.answered.Add(1)
		}
	})
	n.stop = func() { close(done); wg.Wait(); c.w.Close() }
	return n, nil
}

// badNeighbours is T6: calls of one tool, whose hook is well, while other agents
// call tools whose hooks hang and crash. Before each round the two are made to
// start anew, so that hookd has not given up on them.
func badNeighbours(r *run) ([]Row, error) {
	on := func(tool string) object {
		return object{"match": object{"tools": []string{tool}}, "timeout_ms": 50}
	}
	well := r.hook("continue", object{"match": object{"tools": []string{"bash"}}})
	alone, err := r.start(object{"processes": object{"well": well}})
	if err != nil {
		return nil, err
	}
	defer alone.stop()
	beside, err := r.start(object{"processes": object{"well": well, "hangs": r.hook("hang", on("hangs")), "crashes": r.hook("crash", on("crashes"))}})
	if err != nil {
		return nil, err
	}
	defer beside.stop()

	quiet, stop, err := asker(alone)
	if err != nil {
		return nil, err
	}
	defer stop()
	loud, stop, err := asker(beside)
	if err != nil {
		return nil, err
	}
	defer stop()
	const rounds = 5
	each := max(2*r.Calls/rounds, 20)
	for i := range rounds + 1 {
		if i == 1 { // the first is to warm up
			quiet.took, loud.took = nil, nil
		}
		if err := quiet.some(r.ctx, each); err != nil {
			return nil, err
		}
		if err := r.besideBad(beside, loud, each); err != nil {
			return nil, err
		}
	}
	s, err := beside.status()
	if err != nil {
		return nil, err
	}
	for _, hook := range s.Hooks {
		if (hook.Name == "hangs" || hook.Name == "crashes") && hook.Failures == 0 {
			return nil, fmt.Errorf("hook %q never failed", hook.Name)
		}
	}
	return []Row{overP99(loud, quiet, "× alone", 2)}, nil
}

// besideBad makes n calls, and more until each of the bad hooks was asked a few
// times.
func (r *run) besideBad(h *house, work *series, n int) error {
	bad := make([]*nuisance, 2)
	for i, name := range []string{"hangs", "crashes"} {
		err := h.ask(daemon.MethodRestart, object{"name": name}, &struct{}{})
		if err == nil {
			bad[i], err = h.nuisance(name)
		}
		if err != nil {
			return err
		}
		defer bad[i].stop()
	}
	for {
		if err := work.some(r.ctx, n); err != nil {
			return err
		}
		if bad[0].answered.Load() >= 3 && bad[1].answered.Load() >= 3 {
			return nil
		}
	}
}

// asker is the series of calls that the hook which is well answers.
func asker(h *house) (s *series, stop func(), err error) {
	c, err := h.dial()
	if err != nil {
		return nil, nil, err
	}
	return newSeries(c.asking(toolLine("bash"), continues)), func() { c.w.Close() }, nil
}

// overP99 is the row of work whose p99 is held against that of the same work
// without what disturbs it.
func overP99(work, alone *series, unit string, target float64) Row {
	return Row{Floor: round(alone.p(0.99), 1), P50: round(work.p(0.5), 1), P99: round(work.p(0.99), 1),
		Ratio: round(work.p(0.99)/alone.p(0.99), 2), Unit: unit, Target: target}
}

// T8's figures: how many observers, one of which is stuck, and how many events
// there are at once, and how often.
const (
	watchers   = 10
	eventBatch = 10
	eventEvery = time.Millisecond
)

// observers is T8.
func observers(r *run) ([]Row, error) {
	hooks := object{"well": r.hook("continue", nil)}
	files := make([]string, watchers)
	for i := range files {
		name := "watcher" + strconv.Itoa(i)
		files[i] = filepath.Join(r.folder, fmt.Sprintf("%s-%d", name, r.started))
		part := []string{"observe", "count", files[i]}
		if i == watchers-1 {
			part[1] = "stuck"
		}
		hooks[name] = r.process(part, object{"intercept": []string{}, "observe": []string{"tool_exec_end", "turn_end"}})
	}
	h, err := r.start(object{"processes": hooks})
	if err != nil {
		return nil, err
	}
	defer h.stop()
	alone, stop, err := asker(h)
	if err != nil {
		return nil, err
	}
	defer stop()
	events, err := h.dial()
	if err != nil {
		return nil, err
	}
	defer events.w.Close()

	if err := alone.some(r.ctx, r.Calls/10); err != nil { // warm up
		return nil, err
	}
	alone.took = nil
	busy := newSeries(alone.do)
	const rounds = 4
	batches := max(2*r.Calls/eventBatch/rounds, 2)
	var sending time.Duration
	for range rounds {
		if err := alone.some(r.ctx, r.Calls/rounds); err != nil {
			return nil, err
		}
		took, err := r.besideEvents(busy, events, batches)
		if err != nil {
			return nil, err
		}
		sending += took
	}
	sent := rounds * batches * eventBatch
	lost, err := h.lost(events, files[:watchers-1], sent)
	if err != nil {
		return nil, err
	}
	row := overP99(busy, alone, "× alone", 2)
	row.Work, row.Rate = "p99 beside 10 observers, one stuck, 10,000 events/s", round(float64(sent)/sending.Seconds(), 0)
	return []Row{row, {Work: "events that the other nine observers lost", Ratio: float64(lost), Unit: "events", Target: 0}}, nil
}

// besideEvents makes calls for as long as events are sent, and returns how long
// that was.
func (r *run) besideEvents(work *series, events *client, batches int) (time.Duration, error) {
	began := time.Now()
	var took time.Duration
	sent := make(chan error, 1)
	go func() {
		err := sendEvents(events, batches)
		took = time.Since(began)
		sent <- err
	}()
	for {
		if err := work.some(r.ctx, 10); err != nil {
			events.w.Close()
			<-sent
			return 0, err
		}
		select {
		case err := <-sent:
			return took, err
		default:
		}
	}
}

func event(kind string) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"hook.event","params":{"kind":%q,"payload":{"tool":"bash","duration_ms":12}}}`+"\n", kind)
}

// sendEvents sends batches of events at the pace.
func sendEvents(c *client, batches int) error {
	batch := slices.Repeat(event("tool_exec_end"), eventBatch)
	next := time.Now()
	for range batches {
		if _, err := c.w.Write(batch); err != nil {
			return err
		}
		next = next.Add(eventEvery)
		time.Sleep(time.Until(next))
	}
	return nil
}

// lost makes the observers write how many events they saw, and returns how many
// they did not.
func (h *house) lost(events *client, files []string, sent int) (int, error) {
	seen := make([]int, len(files))
	asked := time.Time{}
	err := h.until("each observer has told what it saw", func() bool {
		if time.Since(asked) > time.Second { // a queue that is full may lose this event too
			asked = time.Now()
			if _, err := events.w.Write(event("turn_end")); err != nil {
				return false
			}
		}
		for i, file := range files {
			text, err := os.ReadFile(file)
			if err == nil {
				seen[i], err = strconv.Atoi(string(text))
			}
			if err != nil {
				return false
			}
		}
		return true
	})
	lost := 0
	for _, n := range seen {
		lost += sent - n
	}
	return lost, err
}
