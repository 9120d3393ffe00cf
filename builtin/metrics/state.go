package metrics

import (
	"runtime"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// State is how hookd fares at one moment: what is looked up for a scrape and not
// counted by the [Meter]. Counters in it go on from the start of hookd.
type State struct {
	Ready      bool
	Generation uint64
	// Refused: the config as it is now was refused. Loaded is when the one that
	// holds was read.
	Refused bool
	Loaded  time.Time
	Hooks   []HookState
	// Connections are those of agents. Denied are connections that were refused,
	// Dropped events that can't be read or are not an agent's to send, WithoutID
	// stages that were sent as notifications.
	Connections                int
	Denied, Dropped, WithoutID int64
	Approvals                  ApprovalState
	Record                     RecordState
}

// HookState is how one hook of the config fares.
type HookState struct {
	Name string
	// State is one of [States].
	State    string
	Restarts int
	InFlight int
	// Observes: it is told of events. Events is what it was handed, Missed what
	// was lost because it was slow, Queued what waits.
	Observes               bool
	Events, Missed, Queued int64
}

// ApprovalState is what persons were asked.
type ApprovalState struct {
	Open                                          int
	Approved, Denied, TimedOut, AgentGone, NoRoom int64
	// ByRule are calls that a rule has answered, AnswersRefused answers that did
	// not count.
	ByRule, AnswersRefused int64
}

// RecordState is how the durable record fares.
type RecordState struct {
	// Mode is one of [Modes].
	Mode   string
	Queued int
	Lag    time.Duration
	// Missing could not be written since the start; of Untold no gap in the
	// record tells yet.
	Missing, Untold uint64
	// Refused are answers that became a no because of the record.
	Refused uint64
	// Failing: it can't be written now. Failed: that was so at some time since
	// the start.
	Failing, Failed bool
	Bytes           int64
	Last            uint64 // number of the last record
}

// States are the words for what a hook does.
func States() []string {
	return []string{"starting", "ready", "degraded", "backoff", "failed", "untrusted", "stopping", "stopped", "disabled", "on_demand"}
}

// Modes are the words for how the record is kept.
func Modes() []string { return []string{"off", "batch", "strict"} }

// emit hands out one value with its labels.
type emit func(value float64, labels ...string)

// family is a metric that is looked up.
type family struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	each func(s *State, out emit)
}

// families are the metrics of a [State]. version is hookd's.
func families(version string) []family {
	var list []family
	add := func(kind prometheus.ValueType, name, help string, labels []string, each func(*State, emit)) {
		list = append(list, family{prometheus.NewDesc(name, help, labels, nil), kind, each})
	}
	one := func(kind prometheus.ValueType, name, help string, value func(*State) float64) {
		add(kind, name, help, nil, func(s *State, out emit) { out(value(s)) })
	}
	perHook := func(kind prometheus.ValueType, name, help string, value func(*HookState) (float64, bool)) {
		add(kind, name, help, []string{"hook"}, func(s *State, out emit) {
			for i := range s.Hooks {
				if v, has := value(&s.Hooks[i]); has {
					out(v, s.Hooks[i].Name)
				}
			}
		})
	}
	const gauge, counter = prometheus.GaugeValue, prometheus.CounterValue

	add(gauge, "hookd_build_info", "1, with the version of hookd and of Go.", []string{"version", "goversion"}, func(_ *State, out emit) {
		out(1, version, runtime.Version())
	})
	one(gauge, "hookd_ready", "1 while every required hook can be used and all hooks are as they greeted.", func(s *State) float64 { return bit(s.Ready) })
	one(gauge, "hookd_config_generation", "Number of the generation of hooks that holds.", func(s *State) float64 { return float64(s.Generation) })
	one(gauge, "hookd_config_refused", "1 while the config file as it is now was refused, so that an older version holds.", func(s *State) float64 { return bit(s.Refused) })
	one(gauge, "hookd_config_loaded_timestamp_seconds", "When the config that holds was read.", func(s *State) float64 { return float64(s.Loaded.UnixMilli()) / 1000 })
	one(gauge, "hookd_connections", "Connections of agents that are open.", func(s *State) float64 { return float64(s.Connections) })
	one(counter, "hookd_connections_denied_total", "Connections and requests of those who may not connect.", func(s *State) float64 { return float64(s.Denied) })
	one(counter, "hookd_events_dropped_total", "Events that can't be read or are not an agent's to send.", func(s *State) float64 { return float64(s.Dropped) })
	one(counter, "hookd_stages_without_id_total", "Calls that were sent as notifications and refused.", func(s *State) float64 { return float64(s.WithoutID) })

	add(gauge, "hookd_hook_state", "1 for the state that a hook of the config is in, 0 for the others.", []string{"hook", "state"}, func(s *State, out emit) {
		for i := range s.Hooks {
			for _, state := range States() {
				out(bit(s.Hooks[i].State == state), s.Hooks[i].Name, state)
			}
		}
	})
	perHook(counter, "hookd_hook_restarts_total", "Starts of a hook's process after the first one.", func(h *HookState) (float64, bool) { return float64(h.Restarts), true })
	perHook(gauge, "hookd_hook_calls_in_flight", "Turns that a hook works on.", func(h *HookState) (float64, bool) { return float64(h.InFlight), true })
	perHook(gauge, "hookd_observer_queue_events", "Events that wait for an observer.", func(h *HookState) (float64, bool) { return float64(h.Queued), h.Observes })
	perHook(counter, "hookd_observer_events_total", "Events that an observer was handed.", func(h *HookState) (float64, bool) { return float64(h.Events), h.Observes })
	perHook(counter, "hookd_observer_events_missed_total", "Events that an observer has lost because it was slow.", func(h *HookState) (float64, bool) { return float64(h.Missed), h.Observes })

	one(gauge, "hookd_approvals_open", "Calls that wait for a person.", func(s *State) float64 { return float64(s.Approvals.Open) })
	add(counter, "hookd_approvals_total", "Calls that were to wait for a person, by how that ended.", []string{"answer"}, func(s *State, out emit) {
		a := &s.Approvals
		out(float64(a.Approved), "approved")
		out(float64(a.Denied), "denied")
		out(float64(a.TimedOut), "timed_out")
		out(float64(a.AgentGone), "agent_gone")
		out(float64(a.NoRoom), "no_room")
	})
	one(counter, "hookd_approvals_by_rule_total", "Calls that a person's rule has answered.", func(s *State) float64 { return float64(s.Approvals.ByRule) })
	one(counter, "hookd_approval_answers_refused_total", "Answers of persons that did not count.", func(s *State) float64 { return float64(s.Approvals.AnswersRefused) })

	add(gauge, "hookd_record_mode", "1 for the mode of the record, 0 for the others.", []string{"mode"}, func(s *State, out emit) {
		for _, mode := range Modes() {
			out(bit(s.Record.Mode == mode), mode)
		}
	})
	one(gauge, "hookd_record_queue_records", "Records that are not on the disk yet.", func(s *State) float64 { return float64(s.Record.Queued) })
	one(gauge, "hookd_record_lag_seconds", "How long the oldest of them has waited.", func(s *State) float64 { return s.Record.Lag.Seconds() })
	one(counter, "hookd_record_missing_total", "Records that could not be written.", func(s *State) float64 { return float64(s.Record.Missing) })
	one(gauge, "hookd_record_gap_records", "Records that could not be written and of which no gap in the record tells yet.", func(s *State) float64 { return float64(s.Record.Untold) })
	one(counter, "hookd_record_refusals_total", "Answers that became a no because of the record.", func(s *State) float64 { return float64(s.Record.Refused) })
	one(gauge, "hookd_record_failing", "1 while the record can't be written.", func(s *State) float64 { return bit(s.Record.Failing) })
	one(gauge, "hookd_record_failed", "1 when the record could not be written at some time since hookd started.", func(s *State) float64 { return bit(s.Record.Failed) })
	one(gauge, "hookd_record_size_bytes", "Size of the record's file.", func(s *State) float64 { return float64(s.Record.Bytes) })
	one(gauge, "hookd_record_last_number", "Number of the last record on the disk.", func(s *State) float64 { return float64(s.Record.Last) })
	return list
}

func bit(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// watcher is a collector of what is looked up.
type watcher struct {
	meter    *Meter
	families []family
}

// Describe implements [prometheus.Collector].
func (w *watcher) Describe(out chan<- *prometheus.Desc) {
	for i := range w.families {
		out <- w.families[i].desc
	}
}

// Collect implements [prometheus.Collector].
func (w *watcher) Collect(out chan<- prometheus.Metric) {
	state := w.meter.o.State
	if state == nil {
		return
	}
	s := state()
	if s == nil {
		return
	}
	// A name that stands twice would spoil the whole scrape.
	seen := map[string]bool{}
	s.Hooks = slices.DeleteFunc(s.Hooks, func(h HookState) bool {
		twice := seen[h.Name]
		seen[h.Name] = true
		return twice
	})
	for i := range w.families {
		f := &w.families[i]
		f.each(s, func(value float64, labels ...string) {
			m, err := prometheus.NewConstMetric(f.desc, f.kind, value, labels...)
			if err != nil {
				m = prometheus.NewInvalidMetric(f.desc, err)
			}
			out <- m
		})
	}
}
