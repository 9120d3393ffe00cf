package daemon

import (
	"cmp"
	"os"
	"slices"
	"time"

	"github.com/hookd/hookd/child"
	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/manager"
	"github.com/hookd/hookd/mount"
	"github.com/hookd/hookd/protocol"
)

// Status is how hookd and everybody around it fares. It is the result of
// hookd.status.
type Status struct {
	Version string `json:"version"`
	PID     int    `json:"pid"`
	// StartedAt is in UTC.
	StartedAt time.Time `json:"started_at"`
	// Ready: every required hook has greeted, and all hooks can be used as they
	// greeted.
	Ready      bool         `json:"ready"`
	Generation uint64       `json:"generation"`
	Socket     string       `json:"socket"`
	Control    string       `json:"control_socket"`
	Config     ConfigStatus `json:"config"`
	// Agents are the connected ones, oldest first.
	Agents []AgentStatus `json:"agents"`
	// CodingAgents are those that start a program, or post, per event.
	CodingAgents map[string]SeenAgent `json:"coding_agents"`
	// Hooks are all entries of the config, in the order in which they are asked;
	// disabled ones come last.
	Hooks    []HookStatus `json:"hooks"`
	Counters Counters     `json:"counters"`
	Record   RecordStatus `json:"record"`
}

// ConfigStatus says which version of the file holds.
type ConfigStatus struct {
	// Path is empty when hookd runs without a file.
	Path     string    `json:"path"`
	SHA256   string    `json:"sha256"`
	LoadedAt time.Time `json:"loaded_at"`
	// Error says why the file as it is now was refused; empty = it was not.
	Error string `json:"error"`
	// Misfits says which hooks can't be used as they greeted; empty = none.
	Misfits string `json:"misfits"`
	// Polling: changes are found by looking every now and then, because the
	// system can't tell.
	Polling bool `json:"polling"`
}

// AgentStatus is one connection.
type AgentStatus struct {
	// Name is what it called itself; empty when it did not greet.
	Name string `json:"name"`
	// PID and UID are from the kernel; -1 = unknown (stdio).
	PID   int   `json:"pid"`
	UID   int   `json:"uid"`
	Calls int64 `json:"calls"`
	// LastEvent is the newest event's kind or call's stage.
	LastEvent string    `json:"last_event"`
	LastAt    time.Time `json:"last_at,omitzero"`
	Since     time.Time `json:"since"`
}

// HookStatus is one entry of the config and what runs for it.
type HookStatus struct {
	Name   string      `json:"name"`
	Source hook.Source `json:"source"`
	// Layer says who has put a command hook there; empty for others.
	Layer string `json:"layer,omitzero"`
	// State is starting, ready, degraded, backoff, failed, untrusted, stopping,
	// stopped or disabled; of a command hook always on demand.
	State      string           `json:"state"`
	PID        int              `json:"pid"`
	Priority   int              `json:"priority"`
	Stages     []protocol.Stage `json:"stages"`
	Events     []string         `json:"events"`
	Mode       hook.Mode        `json:"mode"`
	FailPolicy hook.FailPolicy  `json:"fail_policy"`
	Required   bool             `json:"required"`
	// Override is enabled or disabled when an operator has outranked the
	// config, Until is when that ends; zero = when hookd does.
	Override  string    `json:"override,omitzero"`
	Until     time.Time `json:"until,omitzero"`
	Restarts  int       `json:"restarts"`
	Calls     int64     `json:"calls"`
	Observed  int64     `json:"observed"`
	Failures  int64     `json:"failures"`
	InFlight  int       `json:"in_flight"`
	Missed    int64     `json:"missed"`
	LastError string    `json:"last_error"`
	P50       int64     `json:"p50_us"`
	P99       int64     `json:"p99_us"`
	// Canary is how the hook answers its canary; nil = it has none.
	Canary *mount.CanaryStatus `json:"canary,omitzero"`
	// Limits say how a process is limited, as it was last started; nil = it was
	// not, or is none.
	Limits *child.Confinement `json:"limits,omitzero"`
	// Escaped counts the processes that have left the hook's process group, so
	// that stopping the hook did not end them.
	Escaped int64 `json:"escaped_children"`
	// Outcomes counts turns by outcome; Noise what the process sent that meant
	// nothing.
	Outcomes map[protocol.Outcome]int64 `json:"outcomes"`
	Noise    map[string]int64           `json:"noise"`
	// Stderr holds the process's last lines.
	Stderr []string `json:"stderr"`
}

// Counters count what was refused.
type Counters struct {
	// StagesWithoutID are stage calls sent as notifications.
	StagesWithoutID int64 `json:"stages_without_id"`
	// EventsDropped are events that can't be read or are hookd's to send.
	EventsDropped int64 `json:"events_dropped"`
	// ConnectionsDenied are connections of other users.
	ConnectionsDenied int64 `json:"connections_denied"`
}

// States that a hook has without a process: its entry is switched off, or it is
// a program that is started per call.
const (
	stateDisabled = "disabled"
	stateOnDemand = "on demand"
)

// Settled reports whether every hook is ready or has failed, so that waiting
// longer would tell nothing new.
func (s *Status) Settled() bool {
	return !slices.ContainsFunc(s.Hooks, func(h HookStatus) bool {
		switch h.State {
		case string(mount.Starting), string(mount.Backoff), string(mount.Stopping):
			return true
		}
		return false
	})
}

// status answers from what is known; it waits for nobody.
func (d *daemon) status() *Status {
	v := d.current()
	s := &Status{
		Version: d.Version, PID: os.Getpid(), StartedAt: d.started.UTC(), Ready: v.misfits == "",
		Generation: d.manager.Generation().Number, Socket: d.sockets.Agents, Control: d.sockets.Control,
		Config: ConfigStatus{
			Path: v.config.Path, SHA256: v.config.SHA256, LoadedAt: v.loadedAt.UTC(), Error: v.refusal, Misfits: v.misfits, Polling: d.polling(),
		},
		Agents: d.agentStatus(), CodingAgents: d.heardOf(), Record: d.book.status(),
		Counters: Counters{
			StagesWithoutID: d.refused.Load(), EventsDropped: d.dropped.Load(), ConnectionsDenied: d.denied.Load(),
		},
	}
	stats := d.manager.Stats()
	hooks := d.manager.Generation().Hooks()
	place := func(name string) int {
		if i := slices.IndexFunc(hooks, func(r *hook.Registration) bool { return r.Name == name }); i >= 0 {
			return i
		}
		return len(hooks)
	}
	for i := range v.config.Hooks.Entries {
		e := &v.config.Hooks.Entries[i]
		h := HookStatus{
			Name: e.Name, Source: e.Source, State: stateDisabled, Priority: e.Priority, Mode: e.Mode, FailPolicy: e.FailPolicy,
			Required: e.Required, Stages: e.Intercept, Events: patterns(e.Observe),
		}
		h.count(stats[e.Name])
		if o, ok := v.overrides[e.Name]; ok {
			h.Override, h.Until = o.word(), o.until
		}
		if running := v.hooks[e.Name]; running != nil {
			h.fares(running.status())
			if running.canary != nil {
				canary := running.canary.Status()
				h.Canary = &canary
			}
			if r, err := running.mounted.Registration(e); err == nil {
				h.Stages, h.Events, h.Priority = r.Stages, patterns(r.Events), r.Priority
			}
		}
		usable := h.State == string(mount.Ready) || h.State == string(mount.Degraded)
		if e.Required && !usable && (e.Enabled || h.Override != "") {
			s.Ready = false
		}
		s.Hooks = append(s.Hooks, h)
	}
	for _, r := range v.layers.registrations() {
		if r.Roles.Value == any(v.layers.projects) && !v.layers.projects.Seen() {
			continue // no project has hooks: nothing to tell
		}
		h := HookStatus{
			Name: r.Name, Source: r.Source, Layer: r.Layer.String(), State: stateOnDemand, Priority: r.Priority, Mode: r.Mode,
			FailPolicy: r.FailPolicy, Stages: r.Stages, Events: patterns(r.Events),
		}
		h.count(stats[r.Name])
		s.Hooks = append(s.Hooks, h)
	}
	slices.SortStableFunc(s.Hooks, func(a, b HookStatus) int { return cmp.Compare(place(a.Name), place(b.Name)) })
	return s
}

func (d *daemon) polling() bool {
	w := d.watcher.Load()
	return w != nil && w.Polling()
}

func (h *HookStatus) count(s manager.HookStats) {
	h.Calls, h.Observed, h.Failures, h.Missed = s.Calls, s.Events, s.Failures, s.Missed
	h.InFlight, h.LastError, h.Outcomes = int(s.InFlight), s.LastError, s.Outcomes
	h.P50, h.P99 = s.P50.Microseconds(), s.P99.Microseconds()
}

func (h *HookStatus) fares(m mount.Status) {
	h.State, h.PID, h.Restarts, h.Noise, h.Stderr = string(m.State), m.PID, m.Restarts, m.Noise, m.StderrTail
	h.Limits, h.Escaped = m.Confinement, m.Escaped
	if m.InFlight > h.InFlight {
		h.InFlight = m.InFlight
	}
	if m.LastError != "" {
		h.LastError = m.LastError
	}
}

func (d *daemon) agentStatus() []AgentStatus {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := make([]AgentStatus, 0, len(d.sessions))
	for s := range d.sessions {
		a := AgentStatus{PID: s.caller.PID, UID: s.caller.UID, Calls: s.calls.Load(), Since: s.since.UTC()}
		if name := s.name.Load(); name != nil {
			a.Name = *name
		}
		if what := s.lastEvent.Load(); what != nil {
			a.LastEvent, a.LastAt = *what, time.UnixMilli(s.lastAt.Load()).UTC()
		}
		list = append(list, a)
	}
	slices.SortFunc(list, func(a, b AgentStatus) int { return a.Since.Compare(b.Since) })
	return list
}

func patterns(subs []protocol.Subscription) []string {
	list := make([]string, len(subs))
	for i, s := range subs {
		list[i] = s.String()
	}
	return list
}
