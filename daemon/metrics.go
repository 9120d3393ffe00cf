package daemon

import (
	"maps"
	"time"

	"github.com/hookd/hookd/agent"
	"github.com/hookd/hookd/builtin/metrics"
	"github.com/hookd/hookd/builtin/summarize"
	"github.com/hookd/hookd/builtin/telemetry"
	"github.com/hookd/hookd/manager"
	"github.com/hookd/hookd/record"
)

// taker is shown every call once nothing of it changes any more: after the
// durable record took it, with the answer that the agent gets, which is a no
// when the record failed. Take is on the way of the answer, so it must not wait;
// it keeps nothing of rec and changes nothing in it.
type taker interface {
	Take(rec *manager.Record)
}

// takers are what built-ins count and tell of calls. It outlives reloads.
type takers struct {
	meter  *metrics.Meter
	traces *telemetry.Sink
}

// newTakers returns takers for those who only try hooks.
func newTakers() *takers { return &takers{metrics.NewMeter(metrics.Options{}), telemetry.NewSink()} }

func (d *daemon) newTakers() *takers {
	return &takers{
		meter:  metrics.NewMeter(metrics.Options{Agents: kindsOfAgents(), State: d.measured, Version: d.Version}),
		traces: telemetry.NewSink(),
	}
}

// list are all of them, in the order in which they are shown a call.
func (t *takers) list() []taker { return []taker{t.meter, t.traces} }

// summaries are told what the built-in summarize does.
func (t *takers) summaries() summarize.Metrics {
	return summarize.Metrics{
		Triggered: t.meter.SummaryTriggered, TokensBefore: t.meter.SummaryBefore, TokensAfter: t.meter.SummaryAfter,
		Fallback: t.meter.SummaryFallback, Duration: t.meter.SummaryTook,
	}
}

// kindsOfAgents are the names of agents that are counted by themselves, with
// what they are counted as. Agents choose their names, so the list is closed.
func kindsOfAgents() map[string]string {
	kinds := map[string]string{}
	for _, name := range agent.Names() {
		kinds[name] = name
	}
	for _, name := range agent.Aliases() {
		kinds[name] = agent.Canonical(name)
	}
	// Those that speak to hookd themselves, and hookd's own commands.
	for _, name := range []string{"picoclaw", "mcp", "hookd-call"} {
		kinds[name] = name
	}
	return kinds
}

// measured is how hookd fares, for who collects metrics; nil while it starts.
func (d *daemon) measured() *metrics.State {
	if d.view.Load() == nil {
		return nil
	}
	s, v, stats := d.status(), d.current(), d.manager.Stats()
	m := &metrics.State{
		Ready: s.Ready, Generation: s.Generation, Refused: v.refusal != "", Loaded: v.loadedAt, Connections: len(s.Agents),
		Denied: s.Counters.ConnectionsDenied, Dropped: s.Counters.EventsDropped, WithoutID: s.Counters.StagesWithoutID,
		Record: d.book.measured(),
	}
	for i := range s.Hooks {
		h := &s.Hooks[i]
		state := h.State
		if state == stateOnDemand {
			state = "on_demand" // without a blank, as labels are
		}
		m.Hooks = append(m.Hooks, metrics.HookState{
			Name: h.Name, State: state, Restarts: h.Restarts, InFlight: h.InFlight,
			Observes: len(h.Events) > 0, Events: h.Observed, Missed: h.Missed, Queued: stats[h.Name].Queued,
		})
	}
	a := d.people.desk.Stats()
	m.Approvals = metrics.ApprovalState{
		Open: a.Open, Approved: a.Approved, Denied: a.Denied, TimedOut: a.TimedOut, AgentGone: a.Gone, NoRoom: a.Overloaded,
		ByRule: a.ByRule, AnswersRefused: a.Refused,
	}
	return m
}

func (b *book) measured() metrics.RecordState {
	if b.store == nil {
		return metrics.RecordState{Mode: string(record.ModeOff)}
	}
	s := b.store.Status()
	m := metrics.RecordState{
		Mode: string(s.Mode), Queued: s.Queued, Lag: s.Lag, Missing: s.MissedTotal, Refused: s.Refused,
		Failing: s.Error != "", Failed: s.LastError != "", Bytes: s.Bytes, Last: s.Seq,
	}
	for n := range maps.Values(s.Missed) {
		m.Untold += n
	}
	return m
}

// SessionFigures are what the built-in metrics has counted of a session.
type SessionFigures struct {
	// Started is when the session was first heard of, Last when it was last;
	// missing = since metrics are counted it was not.
	Started time.Time `json:"started,omitzero"`
	Last    time.Time `json:"last,omitzero"`
	// Steps are calls of models, ToolCalls those of tools that went on.
	Steps     int64 `json:"steps"`
	ToolCalls int64 `json:"tool_calls"`
	TokensIn  int64 `json:"tokens_in"`
	TokensOut int64 `json:"tokens_out"`
	// TokensUnsplit are those of agents that tell the sum only.
	TokensUnsplit int64 `json:"tokens_unsplit"`
	// Errors are tool calls that failed, and errors and time-outs of the agent;
	// Denials are calls that hookd has stopped.
	Errors  int64 `json:"errors"`
	Denials int64 `json:"denials"`
}

// figures of a session, by its id in the table of sessions; nil while the
// built-in metrics is not there.
func (t *takers) figures(id string) *SessionFigures {
	f, on := t.meter.Session(id)
	if !on {
		return nil
	}
	return &SessionFigures{
		Started: f.Started.UTC(), Last: f.Last.UTC(), Steps: f.Steps, ToolCalls: f.ToolCalls, TokensIn: f.Usage.Input, TokensOut: f.Usage.Output,
		TokensUnsplit: f.Usage.Total, Errors: f.Errors(), Denials: f.Denials,
	}
}
