package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
)

// Point is what was measured at one size. Times are in microseconds.
type Point struct {
	X     int     `json:"x"`
	Floor float64 `json:"floor_us"`
	P50   float64 `json:"p50_us"`
	P99   float64 `json:"p99_us"`
	// Rate is in calls per second; 0 where it does not matter.
	Rate float64 `json:"per_second,omitzero"`
}

// Growth is how the cost of a call grows.
type Growth struct {
	Work   string  `json:"work"`
	Axis   string  `json:"axis"` // what X is
	Points []Point `json:"points"`
}

// Axes returns what [Grow] can vary.
func Axes() []string { return []string{"payload", "hooks", "agents"} }

// Grow measures how the cost of a call grows with what, one of [Axes]. It
// leaves nothing behind, as [Run] does; of the options, Only, Against and Tries
// mean nothing here.
func Grow(ctx context.Context, o Options, what string) (g Growth, err error) {
	r, err := newRun(ctx, o)
	if err != nil {
		return g, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	sizes, at := r.growth(what, &g)
	for _, x := range sizes {
		r.progress(what, strconv.Itoa(x))
		var p Point
		err := r.onCores(what != "agents", func() (err error) { p, err = at(x); return err })
		if ctx.Err() != nil {
			return g, context.Cause(ctx)
		}
		if err != nil {
			return g, fmt.Errorf("%s %d: %w", what, x, err)
		}
		g.Points = append(g.Points, p)
	}
	return g, nil
}

// growth names what is measured in g, and returns where and how.
func (r *run) growth(what string, g *Growth) (sizes []int, at func(int) (Point, error)) {
	switch what {
	case "payload":
		g.Work, g.Axis = "one Go child that continues, by size of the call", "bytes"
		return []int{200, 2_000, 20_000, 200_000, 1 << 20, 4 << 20}, func(n int) (Point, error) {
			params := modelParams(n)
			hooks := object{"processes": object{"gate": r.hook("continue", nil)}}
			return point(n)(r.one(r.share(1+n/5000, 20), 1, hooks, callLine("hook.before_llm", params), scanFloor(params)))
		}
	case "hooks":
		g.Work, g.Axis = "Go children that continue, one after the other, 200 B", "hooks"
		return []int{0, 1, 2, 4, 8, 16, 32}, func(n int) (Point, error) {
			entries := object{}
			for i := range n {
				entries["hook"+strconv.Itoa(i)] = r.hook("continue", nil)
			}
			return point(n)(r.one(r.share(1+n, 20), n, object{"processes": entries}, toolLine("bash")))
		}
	}
	g.Work, g.Axis = "agents that ask at once as fast as they can, in-process hook, 200 B", "agents"
	return []int{1, 4, 16, 64, 256, 1024}, func(n int) (Point, error) {
		b, err := r.busy(n, r.share(n, 5))
		return b.Point, err
	}
}

func point(x int) func(work *series, floor float64, err error) (Point, error) {
	return func(work *series, floor float64, err error) (Point, error) {
		if err != nil {
			return Point{}, err
		}
		return Point{X: x, Floor: round(floor, 1), P50: round(work.p(0.5), 1), P99: round(work.p(0.99), 1)}, nil
	}
}

// Print writes g as a table.
func (g Growth) Print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "%s\n%s\tFLOOR\tP50\tP99\tRATIO\tPER SECOND\n", g.Work, g.Axis)
	for _, p := range g.Points {
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%.2f\t%s\n", p.X, micros(p.Floor), micros(p.P50), micros(p.P99), p.P50/p.Floor, rate(p.Rate))
	}
	return t.Flush()
}
