package metrics

import (
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
)

func aState() *State {
	return &State{
		Ready: true, Generation: 3, Loaded: time.UnixMilli(1500), Connections: 2, Denied: 1, Dropped: 4, WithoutID: 5,
		Hooks: []HookState{
			{Name: "guard", State: "backoff", Restarts: 2, InFlight: 1},
			{Name: "log", State: "ready", Observes: true, Events: 9, Missed: 8, Queued: 7},
			{Name: "log", State: "failed"}, // a name that stands twice spoils nothing
		},
		Approvals: ApprovalState{Open: 1, Approved: 2, Denied: 3, TimedOut: 4, AgentGone: 5, NoRoom: 6, ByRule: 7, AnswersRefused: 8},
		Record:    RecordState{Mode: "strict", Queued: 1, Lag: 1500 * time.Millisecond, Missing: 2, Untold: 1, Refused: 3, Failing: true, Failed: true, Bytes: 4096, Last: 17},
	}
}

func TestState(t *testing.T) {
	m := NewMeter(Options{State: aState, Version: "v1"})
	page := scrape(t, m)
	has(t, page,
		`hookd_build_info{goversion="`+runtime.Version()+`",version="v1"} 1`,
		"hookd_ready 1", "hookd_config_generation 3", "hookd_config_refused 0", "hookd_config_loaded_timestamp_seconds 1.5",
		"hookd_connections 2", "hookd_connections_denied_total 1", "hookd_events_dropped_total 4", "hookd_stages_without_id_total 5",
		`hookd_hook_state{hook="guard",state="backoff"} 1`, `hookd_hook_state{hook="guard",state="ready"} 0`, `hookd_hook_state{hook="log",state="ready"} 1`,
		`hookd_hook_restarts_total{hook="guard"} 2`, `hookd_hook_calls_in_flight{hook="guard"} 1`,
		`hookd_observer_events_total{hook="log"} 9`, `hookd_observer_events_missed_total{hook="log"} 8`, `hookd_observer_queue_events{hook="log"} 7`,
		"hookd_approvals_open 1", `hookd_approvals_total{answer="approved"} 2`, `hookd_approvals_total{answer="denied"} 3`,
		`hookd_approvals_total{answer="timed_out"} 4`, `hookd_approvals_total{answer="agent_gone"} 5`, `hookd_approvals_total{answer="no_room"} 6`,
		"hookd_approvals_by_rule_total 7", "hookd_approval_answers_refused_total 8",
		`hookd_record_mode{mode="strict"} 1`, `hookd_record_mode{mode="off"} 0`, "hookd_record_queue_records 1", "hookd_record_lag_seconds 1.5",
		"hookd_record_missing_total 2", "hookd_record_gap_records 1", "hookd_record_refusals_total 3", "hookd_record_failing 1", "hookd_record_failed 1",
		"hookd_record_size_bytes 4096", "hookd_record_last_number 17",
	)
	require.NotContains(t, page, `hookd_observer_events_total{hook="guard"}`)
	// While hookd starts, nothing is known.
	require.NotContains(t, scrape(t, NewMeter(Options{State: func() *State { return nil }})), "hookd_ready")
}

// exposed are the labels of the metrics that a scrape has, by the names under
// which PromQL finds them.
func exposed(t *testing.T) map[string][]string {
	m, _, _ := mounted(t, ``, Options{State: aState})
	m.Take(aCall(t))
	list, err := m.registry.Gather()
	require.NoError(t, err)
	found := map[string][]string{}
	for _, f := range list {
		labels := []string{}
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		if f.GetMetric()[0].GetHistogram() == nil {
			found[f.GetName()] = labels
			continue
		}
		for _, suffix := range []string{"_sum", "_count"} {
			found[f.GetName()+suffix] = labels
		}
		found[f.GetName()+"_bucket"] = append(labels, "le")
	}
	return found
}

// dashboard is what the test reads of packaging/grafana/hookd.json.
type dashboard struct {
	SchemaVersion int `json:"schemaVersion"`
	Panels        []struct {
		ID      int    `json:"id"`
		Type    string `json:"type"`
		Title   string `json:"title"`
		GridPos struct {
			H, W, X, Y int
		} `json:"gridPos"`
		Targets []struct {
			RefID string `json:"refId"`
			Expr  string `json:"expr"`
		} `json:"targets"`
	} `json:"panels"`
	Templating struct {
		List []struct {
			Name       string `json:"name"`
			Definition string `json:"definition"`
		} `json:"list"`
	} `json:"templating"`
}

var (
	metricName = regexp.MustCompile(`\b(?:hookd?|go|process)_[a-z0-9_]+`)
	grouping   = regexp.MustCompile(`\bby \(([^)]*)\)`)
	matcher    = regexp.MustCompile(`([a-z_]+) *(?:=~|!~|!=|=)"`)
	variable   = regexp.MustCompile(`\$([a-z]+)\b`)
)

// TestDashboard wants every name and label in the dashboard's queries to be
// there, and every metric of hookd's own to be shown.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile("../../packaging/grafana/hookd.json")
	require.NoError(t, err)
	var d dashboard
	require.NoError(t, json.Unmarshal(text, &d, json.MatchCaseInsensitiveNames(true)))
	require.Equal(t, 42, d.SchemaVersion)
	found := exposed(t)
	variables := []string{"__rate_interval"}
	for _, v := range d.Templating.List {
		variables = append(variables, v.Name)
		for _, name := range metricName.FindAllString(v.Definition, -1) {
			require.Contains(t, found, name, v.Name)
		}
	}
	var rows, shown []string
	var ids []int
	for _, p := range d.Panels {
		require.NotContains(t, ids, p.ID, p.Title)
		ids = append(ids, p.ID)
		require.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, p.Title)
		if p.Type == "row" {
			rows = append(rows, p.Title)
			continue
		}
		require.NotEmpty(t, p.Targets, p.Title)
		for _, target := range p.Targets {
			names := metricName.FindAllString(target.Expr, -1)
			require.NotEmpty(t, names, target.Expr)
			labels := []string{"job", "instance"}
			for _, name := range names {
				require.Contains(t, found, name, target.Expr)
				labels = append(labels, found[name]...)
			}
			shown = append(shown, names...)
			for _, by := range grouping.FindAllStringSubmatch(target.Expr, -1) {
				for label := range strings.SplitSeq(by[1], ", ") {
					require.Contains(t, labels, label, target.Expr)
				}
			}
			for _, m := range matcher.FindAllStringSubmatch(target.Expr, -1) {
				require.Contains(t, labels, m[1], target.Expr)
			}
			for _, v := range variable.FindAllStringSubmatch(target.Expr, -1) {
				require.Contains(t, variables, v[1], target.Expr)
			}
			require.Equal(t, strings.Count(target.Expr, "("), strings.Count(target.Expr, ")"), target.Expr)
			require.Equal(t, strings.Contains(target.Expr, "histogram_quantile("), strings.Contains(target.Expr, "_bucket{"), target.Expr)
		}
	}
	require.Equal(t, []string{"Calls and answers", "Latency", "Hooks' failures", "Approvals", "Record", "Tokens and steps", "Resources"}, rows)
	for name := range found {
		if strings.HasPrefix(name, "hook") && !strings.HasSuffix(name, "_sum") && !strings.HasSuffix(name, "_count") {
			require.Contains(t, shown, name, "no panel shows it")
		}
	}
}

// TestPageNamesAll wants each family of metrics on the docs page, and none that
// is not there.
func TestPageNamesAll(t *testing.T) {
	page, err := os.ReadFile("../../docs/builtins-metrics.md")
	require.NoError(t, err)
	var families []string
	for name := range exposed(t) {
		if strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") {
			continue
		}
		name = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
		if !slices.Contains(families, name) {
			families = append(families, name)
		}
	}
	for _, name := range families {
		require.Regexp(t, "(?m)^\\|.*`"+name+"`", string(page))
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `(hookd?_[a-z_]+)`").FindAllStringSubmatch(string(page), -1) {
		require.Contains(t, families, row[1])
	}
}

// TestNames holds the metrics to Prometheus's rules for names. The five of
// summaries are older than those.
func TestNames(t *testing.T) {
	m, _, _ := mounted(t, ``, Options{State: aState})
	m.Take(aCall(t))
	list, err := m.registry.Gather()
	require.NoError(t, err)
	for _, f := range list {
		name, own := f.GetName(), strings.HasPrefix(f.GetName(), "hookd_")
		require.NotEmpty(t, f.GetHelp(), name)
		if !own {
			continue
		}
		require.Regexp(t, `^hookd(_[a-z]+)+$`, name)
		require.Regexp(t, `^[A-Z0-9].*\.$`, f.GetHelp(), name)
		first := f.GetMetric()[0]
		require.Equal(t, first.GetCounter() != nil, strings.HasSuffix(name, "_total"), name)
		if first.GetHistogram() != nil {
			require.Regexp(t, `_seconds$`, name)
			bounds := first.GetHistogram().GetBucket()
			require.Equal(t, 50e-6, bounds[0].GetUpperBound())
			require.Equal(t, 60.0, bounds[len(bounds)-1].GetUpperBound())
		}
	}
}
