package metrics

import (
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/hookd/hookd/builtin/cancel"
	"github.com/hookd/hookd/builtin/sessions"
	"github.com/hookd/hookd/manager"
	"github.com/hookd/hookd/protocol"
)

// Options say what a [Meter] knows of its surroundings. The zero value works.
type Options struct {
	// Agents are the names of kinds of agents, each with its label. Other agents
	// are counted as "other".
	Agents map[string]string
	// State, when set, returns how hookd fares, or nil when that is not known
	// yet. It is called for every scrape and must not wait.
	State func() *State
	// Version is hookd's.
	Version string
	// Sessions is how many sessions are followed at once; 0 = [sessions.Most].
	Sessions int
}

const (
	// maxHooks is how many names of hooks get a label of their own over the whole
	// life of hookd, and maxLabels how many names of agents.
	maxHooks, maxLabels = 500, 250
	// maxScrapes is how many may read at once.
	maxScrapes = 4
)

// Meter counts while a [Hook] is mounted. What it has counted stays. It is safe
// for concurrent use, waits for nothing and runs nothing of its own. Make it
// with [NewMeter].
type Meter struct {
	o        Options
	registry *prometheus.Registry
	handler  http.Handler
	hooks    *names
	agents   *names
	sessions *sessions.Table[session]

	calls     *cells[callKey, prometheus.Counter]
	decisions *cells[protocol.Stage, prometheus.Observer]
	turns     *cells[turnKey, turn]
	latencies *cells[hookStage, prometheus.Observer]
	kinds     *cells[string, *agentCells]

	triggered, fallback   prometheus.Counter
	before, after, millis prometheus.Histogram

	mu     sync.Mutex
	live   []*Hook              // those that are not closed, the newest last
	active atomic.Pointer[Hook] // the newest; nil: nothing is counted
}

type (
	callKey   struct{ stage, agent, action string }
	hookStage struct{ hook, stage string }
	turnKey   struct {
		hookStage
		outcome protocol.Outcome
	}
)

// turn counts turns of one outcome.
type turn struct {
	all    prometheus.Counter
	failed prometheus.Counter // nil: the outcome is no failure
}

// agentCells are the counters of one kind of agent.
type agentCells struct {
	steps, tools, toolErrors, agentErrors prometheus.Counter
	input, output, unsplit                prometheus.Counter
}

// buckets go from what a hook in process takes to what a person does, in
// seconds.
func buckets() []float64 {
	return []float64{
		50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 500e-3, 1, 2.5, 5, 10, 30, 60,
	}
}

// NewMeter makes a Meter that has counted nothing.
func NewMeter(o Options) *Meter {
	m := &Meter{
		o: o, registry: prometheus.NewRegistry(), hooks: newNames(maxHooks), agents: newNames(maxLabels), sessions: sessions.New[session](o.Sessions),
	}
	m.countCalls()
	m.countAgents()
	m.countSummaries()
	m.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "hookd_sessions", Help: "Sessions whose figures are kept."}, func() float64 { return float64(m.sessions.Len()) }),
		&watcher{meter: m, families: families(o.Version)},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	m.handler = promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: maxScrapes})
	return m
}

func (m *Meter) countCalls() {
	calls := m.counters("hookd_calls_total", "Calls of agents, by the answer that they got; cancelled = the agent did not wait for one.", "stage", "agent", "action")
	m.calls = newCells(func(k callKey) prometheus.Counter { return calls.WithLabelValues(k.stage, k.agent, k.action) })

	decisions := m.histograms("hookd_decision_duration_seconds", "How long calls took from the request to the answer.", buckets(), "stage")
	m.decisions = newCells(func(s protocol.Stage) prometheus.Observer { return decisions.WithLabelValues(string(s)) })

	turns := m.counters("hookd_hook_turns_total", "Turns of hooks in calls, by what became of them.", "hook", "stage", "outcome")
	failures := m.counters("hookd_hook_failures_total", "Turns without an answer that could be read and used, by what went wrong.", "hook", "outcome")
	m.turns = newCells(func(k turnKey) turn {
		t := turn{all: turns.WithLabelValues(k.hook, k.stage, string(k.outcome))}
		if k.outcome.Failed() {
			t.failed = failures.WithLabelValues(k.hook, string(k.outcome))
		}
		return t
	})

	latencies := m.histograms("hookd_hook_duration_seconds", "How long hooks took for a turn.", buckets(), "hook", "stage")
	m.latencies = newCells(func(k hookStage) prometheus.Observer { return latencies.WithLabelValues(k.hook, k.stage) })
}

func (m *Meter) countAgents() {
	steps := m.counters("hookd_steps_total", "Calls of models.", "agent")
	tools := m.counters("hookd_tool_calls_total", "Calls of tools that went on.", "agent")
	toolErrors := m.counters("hookd_tool_errors_total", "Calls of tools that failed.", "agent")
	agentErrors := m.counters("hookd_agent_errors_total", "Errors and time-outs that agents told of themselves.", "agent")
	tokens := m.counters("hookd_tokens_total", "Tokens that models have used, as agents tell; unsplit = the agent told the sum only.", "agent", "direction")
	m.kinds = newCells(func(agent string) *agentCells {
		return &agentCells{
			steps: steps.WithLabelValues(agent), tools: tools.WithLabelValues(agent),
			toolErrors: toolErrors.WithLabelValues(agent), agentErrors: agentErrors.WithLabelValues(agent),
			input: tokens.WithLabelValues(agent, "input"), output: tokens.WithLabelValues(agent, "output"), unsplit: tokens.WithLabelValues(agent, "unsplit"),
		}
	})
}

func (m *Meter) counters(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	m.registry.MustRegister(c) // names that clash would fail every test
	return c
}

func (m *Meter) histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	m.registry.MustRegister(h)
	return h
}

// Handler serves what was counted, in the formats that Prometheus reads.
func (m *Meter) Handler() http.Handler { return m.handler }

// enter makes a hook the one whose config holds.
func (m *Meter) enter(h *Hook) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.live = append(m.live, h)
	m.active.Store(h)
}

// leave takes a hook out. It reports whether its file is nobody else's.
func (m *Meter) leave(h *Hook) (alone bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.live = slices.DeleteFunc(m.live, func(o *Hook) bool { return o == h })
	var last *Hook
	if n := len(m.live); n > 0 {
		last = m.live[n-1]
	}
	m.active.Store(last)
	return !slices.ContainsFunc(m.live, func(o *Hook) bool { return o.path == h.path })
}

// Take counts a call with the answer that its agent gets. It keeps nothing of
// rec.
func (m *Meter) Take(rec *manager.Record) {
	h := m.active.Load()
	if h == nil || rec.Request.DryRun {
		return
	}
	stage := rec.Request.Stage.Name
	name := rec.Caller.Name
	if name == "" {
		name = protocol.MetaString(rec.Request.Meta, "agent")
	}
	label := m.label(h, name)
	m.calls.of(callKey{string(stage), label, string(answer(rec))}).Inc()
	m.decisions.of(stage).Observe(rec.Duration.Seconds())
	for i := range rec.Result.Trail {
		step := &rec.Result.Trail[i]
		at := hookStage{m.hooks.of(step.Hook), string(stage)}
		t := m.turns.of(turnKey{at, step.Outcome})
		t.all.Inc()
		if t.failed != nil {
			t.failed.Inc()
		}
		if step.Outcome != protocol.OutcomeNotRun {
			m.latencies.of(at).Observe(step.Duration.Seconds())
		}
	}
	id := protocol.MetaString(rec.Request.Meta, "session_id")
	if id == "" {
		id = rec.Caller.SessionID
	}
	m.note(h, cancel.ID(id, name), label, atStage(rec))
}

// answer is what the agent gets, in one word.
func answer(rec *manager.Record) protocol.Action {
	switch {
	case rec.Err != nil:
		return protocol.Action(protocol.OutcomeCancelled)
	case rec.Request.Stage.Name != protocol.StageApproveTool:
		return (&protocol.Decision{Action: rec.Result.Action}).Decided()
	case rec.Result.Approval != nil && rec.Result.Approval.Approved:
		return protocol.ActionAllow
	}
	return protocol.ActionDeny
}

// label is the name under which an agent is counted.
func (m *Meter) label(h *Hook, name string) string {
	if label, ok := m.o.Agents[name]; ok {
		return label
	}
	if i := slices.Index(h.config.Agents, name); i >= 0 {
		return m.agents.of(h.config.Agents[i])
	}
	return other
}

// atStage says what a call adds to its session.
func atStage(rec *manager.Record) session {
	var s session
	no := stopped(rec)
	if no && rec.Err == nil {
		s.denials++
	}
	subject := rec.Request.Subject
	switch rec.Request.Stage.Name {
	case protocol.StageBeforeLLM:
		if !no {
			s.beforeLLM++
		}
	case protocol.StageAfterLLM:
		s.afterLLM++
		s.atStage, _ = sessions.ReadUsage(subject.Get("response"))
	case protocol.StageBeforeTool:
		if !no {
			s.beforeTool++
		}
	case protocol.StageAfterTool:
		s.afterTool++
		if failed(subject.Get("result")) {
			s.failedTools++
		}
	}
	return s
}

func stopped(rec *manager.Record) bool {
	return rec.Err != nil || rec.Result.Action.Stops() || rec.Result.Approval != nil && !rec.Result.Approval.Approved
}

func failed(result jsontext.Value) bool {
	if result.Kind() != '{' {
		return false
	}
	o, err := protocol.ParseObject(result)
	return err == nil && string(o.Get("is_error")) == "true"
}

// observe counts what an agent tells in an event of its own. The end of a
// session forgets it.
func (m *Meter) observe(h *Hook, ev *protocol.Event) {
	name := protocol.MetaString(ev.Meta, "agent")
	id := cancel.ID(protocol.MetaString(ev.Meta, "session_id"), name)
	var s session
	switch ev.Kind {
	case protocol.EventSessionEnd:
		m.end(h, id)
		return
	case protocol.EventAgentError, protocol.EventAgentTimeout, protocol.EventError:
		s.agentErrors++ // never made of a stage
		m.note(h, id, m.label(h, name), s)
		return
	}
	if ev.Source != sourceAgent {
		return // made of a stage, where it was counted
	}
	switch ev.Kind {
	case protocol.EventLLMResponse:
		s.llmEvents++
		s.inEvents, _ = sessions.ReadUsage(ev.Payload)
	case protocol.EventToolExecEnd:
		s.toolEnds++
		if failed(ev.Payload) {
			s.failedEnds++
		} else if o, err := protocol.ParseObject(ev.Payload); err == nil && failed(o.Get("result")) {
			s.failedEnds++
		}
	case protocol.EventToolError:
		s.failures++
	default:
		return
	}
	m.note(h, id, m.label(h, name), s)
}

// sourceAgent is the source of an event that an agent has sent.
const sourceAgent = "agent"

// note adds to a session, and to the counters of its kind of agent.
func (m *Meter) note(h *Hook, id, label string, more session) {
	now := time.Now()
	var was, is Figures
	m.sessions.Do(id, func(s *session) {
		if s.started.IsZero() {
			s.started = now
		}
		s.last, s.agent = now, label
		was = s.figures()
		s.add(&more)
		is = s.figures()
	})
	m.kinds.of(label).told(&was, &is)
	if every := int64(*h.config.EverySteps); every > 0 && is.Steps/every > was.Steps/every {
		h.say(line{soFar, id, label, is})
	}
}

func (s *session) add(more *session) {
	s.beforeLLM += more.beforeLLM
	s.afterLLM += more.afterLLM
	s.llmEvents += more.llmEvents
	s.beforeTool += more.beforeTool
	s.afterTool += more.afterTool
	s.toolEnds += more.toolEnds
	s.failedTools += more.failedTools
	s.failedEnds += more.failedEnds
	s.failures += more.failures
	s.atStage = s.atStage.Plus(more.atStage)
	s.inEvents = s.inEvents.Plus(more.inEvents)
	s.agentErrors += more.agentErrors
	s.denials += more.denials
}

// end forgets a session that is over.
func (m *Meter) end(h *Hook, id string) {
	var s session
	if !m.sessions.Look(id, func(known *session) { s = *known }) {
		return
	}
	m.sessions.Drop(id)
	if *h.config.EverySteps > 0 {
		h.say(line{ended, id, s.agent, s.figures()})
	}
}

// Gone logs the figures of a session whose agent has disconnected. It may come
// back, so that they stay.
func (m *Meter) Gone(id string) {
	h := m.active.Load()
	if h == nil || *h.config.EverySteps == 0 {
		return
	}
	m.sessions.Look(id, func(s *session) { h.say(line{gone, id, s.agent, s.figures()}) })
}

// Session returns the figures of a session, by its [cancel.ID]; zero ones when
// nothing was counted. on is false while no hook is mounted.
func (m *Meter) Session(id string) (f Figures, on bool) {
	if m.active.Load() == nil {
		return f, false
	}
	m.sessions.Look(id, func(s *session) { f = s.figures() })
	return f, true
}
