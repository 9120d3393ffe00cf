// Package bench measures hookd's speed from outside: a daemon, its hooks and
// what it is compared with run as processes of their own, and the agent is the
// bare client of lines that measures the floor. Absolute figures are the
// machine's; what counts is the ratio to a floor of the same run. The way in
// is [Run]; the processes that it starts call [Play].
package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"

	"github.com/hookd/hookd/child"
)

// Options say what to measure and how.
type Options struct {
	// Program is the command line that calls [Play] when the words of a part
	// are appended.
	Program []string
	// Only names the targets to measure, such as "T0"; empty means all.
	Only []string
	// Against names what T10 compares with: python, node or sh. Empty means
	// those that are installed.
	Against []string
	// Calls is how many short calls are measured per target; longer work is
	// done a fixed fraction as often. 0 means 10,000.
	Calls int
	// Tries is how often a target that is missed is measured, of which the best
	// counts. 0 means once.
	Tries int
	// Spread lets the processes use all cores. Otherwise what is about the time
	// of one call at a time (T0 to T4, T10) has one core, where the system can do that.
	Spread bool
	// Progress, when set, is told what is being measured.
	Progress func(id, work string)
}

// Row is a target and what was measured for it. The times are in
// microseconds; 0 where the target is about something else.
type Row struct {
	ID    string  `json:"id"`
	Work  string  `json:"work"`
	Floor float64 `json:"floor_us"`
	P50   float64 `json:"p50_us"`
	P99   float64 `json:"p99_us"`
	// Rate is in calls per second; 0 where it does not matter.
	Rate float64 `json:"per_second,omitzero"`
	// Ratio is what is held against Target, in Unit.
	Ratio  float64 `json:"ratio"`
	Unit   string  `json:"unit"`
	Target float64 `json:"target"`
	// AtLeast: Ratio must not be below Target. Otherwise it must not be above.
	AtLeast bool `json:"at_least"`
	OK      bool `json:"ok"`
}

// judged returns r with OK set.
func (r Row) judged() Row {
	r.OK = r.Ratio <= r.Target
	if r.AtLeast {
		r.OK = r.Ratio >= r.Target
	}
	return r
}

func (r Row) better(than Row) bool {
	if r.AtLeast {
		return r.Ratio > than.Ratio
	}
	return r.Ratio < than.Ratio
}

// target is something to measure.
type target struct {
	id, work string
	measure  func(*run) ([]Row, error)
	oneCore  bool
}

// targets are listed in the order of their worth.
func targets() []target {
	return []target{
		{"T0", "no hook matches, 200 B", noHook, true},
		{"T1", "one in-process Go hook, 200 B", inProcess, true},
		{"T2", "one Go child that continues, 200 B", oneChild, true},
		{"T3", "three Go children, 200 B", threeChildren, true},
		{"T4", "model request of 1 MB, one Go child", largeCall, true},
		{"T5", "64 agents at once, quick in-process hook", manyAgents, false},
		{"T6", "p99 beside a hung and a crashing hook", badNeighbours, false},
		{"T7", "memory", memory, false},
		{"T8", "10 observers, one stuck, 10,000 events/s", observers, false},
		{"T9", "start, and reload under load, 8 Go hooks", startAndReload, false},
		{"T10", "a process per event, the same decision", processPerEvent, true},
		{"T11", "allocations, in-process hook", allocations, false},
		{"T14", "hookd-hook, a process per event of a coding agent", perEvent, false},
	}
}

// IDs returns the ids of all targets.
func IDs() []string {
	var ids []string
	for _, t := range targets() {
		ids = append(ids, t.id)
	}
	return ids
}

// Run measures. It starts processes and a folder of its own and leaves nothing
// behind, also when ctx ends. The error says what could not be measured; a
// target that is missed is none.
func Run(ctx context.Context, o Options) (rows []Row, err error) {
	r, err := newRun(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	for _, t := range targets() {
		if len(o.Only) > 0 && !slices.Contains(o.Only, t.id) {
			continue
		}
		found, err := r.best(t)
		if ctx.Err() != nil {
			return rows, context.Cause(ctx)
		}
		if err != nil {
			return rows, fmt.Errorf("%s, %s: %w", t.id, t.work, err)
		}
		rows = append(rows, found...)
	}
	return rows, nil
}

// run is what the measuring of one run shares.
type run struct {
	Options
	ctx     context.Context
	folder  string
	spawner *child.Spawner
	stop    func() bool
	started int // daemons and echoes
}

func newRun(ctx context.Context, o Options) (*run, error) {
	folder, err := os.MkdirTemp("", "hookd-bench-")
	if err != nil {
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	r := &run{Options: o, ctx: ctx, folder: folder, spawner: child.NewSpawner()}
	r.Calls = cmp.Or(r.Calls, 10_000)
	// An exchange that waits sees the end of its stream then.
	r.stop = context.AfterFunc(ctx, func() { _ = r.spawner.Close() })
	return r, nil
}

// close ends what still runs and removes the folder.
func (r *run) close() error {
	r.stop()
	return errors.Join(r.spawner.Close(), os.RemoveAll(r.folder))
}

func (r *run) progress(id, work string) {
	if r.Progress != nil {
		r.Progress(id, work)
	}
}

// best measures t until it is met or there are no tries left.
func (r *run) best(t target) ([]Row, error) {
	var rows []Row
	for range max(r.Tries, 1) {
		r.progress(t.id, t.work)
		var again []Row
		err := r.onCores(t.oneCore, func() (err error) { again, err = t.measure(r); return err })
		if err != nil {
			return nil, err
		}
		for i, row := range again {
			row.ID = t.id
			row.Work = cmp.Or(row.Work, t.work)
			row = row.judged()
			if i >= len(rows) {
				rows = append(rows, row)
			} else if row.better(rows[i]) {
				rows[i] = row
			}
		}
		if !slices.ContainsFunc(rows, func(row Row) bool { return !row.OK }) {
			break
		}
	}
	return rows, nil
}

// onCores measures on one core or as the system likes.
func (r *run) onCores(one bool, measure func() error) error {
	if !one || r.Spread {
		return measure()
	}
	back, err := UseOneCore()
	if err != nil {
		return fmt.Errorf("use one core, which --spread does without: %w", err)
	}
	return errors.Join(measure(), back())
}

// share is a fraction of the calls, and at least few.
func (r *run) share(part, few int) int { return max(r.Calls/part, few) }

func round(x float64, digits int) float64 {
	p := math.Pow10(digits)
	return math.Round(x*p) / p
}
